-- Signing in by the account that someone has with another service.

-- When somebody proved that the address of the account is theirs. Null: nobody did.
alter table users add column email_verified_at timestamptz;

create table social_identities (
    provider text not null,
    -- Keyed hash of the provider and its name for the person, by which the identity is found.
    subject_index bytea not null,
    -- The provider's name for the person, from which the hash is made anew when the key changes.
    subject_cipher bytea not null,
    -- Which key the two columns above were made with.
    key_version integer not null,
    user_id uuid not null references users (id),
    linked_at timestamptz not null,
    primary key (provider, subject_index),
    constraint social_identities_provider check (provider in ('google', 'kakao', 'naver'))
);

-- Of each provider one identity.
create unique index social_identities_user on social_identities (user_id, provider);

create index social_identities_key_version on social_identities (key_version);

-- Ways to a provider that nobody has come back from. The secrets of a way are in the browser's
-- cookie alone.
create table social_attempts (
    -- SHA-256 of the state.
    state_hash bytea primary key,
    provider text not null,
    -- The local path to go on at.
    redirect text not null,
    -- Whether the terms of service and privacy were agreed to before the way began.
    terms_agreed boolean not null,
    -- Who wants to add the identity to their account. Null: someone who logs in.
    link_user_id uuid references users (id),
    expires_at timestamptz not null
);

create index social_attempts_expires_at on social_attempts (expires_at);
