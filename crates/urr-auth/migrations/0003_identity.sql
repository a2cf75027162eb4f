-- What keeps programs out, and what ties an account to one person.

-- Challenges of the proof of work that were solved. Each counts once, until it expires.
create table spent_challenges (
    id uuid primary key,
    expires_at timestamptz not null
);

create index spent_challenges_expires_at on spent_challenges (expires_at);

-- Logins that failed lately, by the keyed hash of the address that was tried. Addresses without an
-- account count as well: what is asked of a client must not tell which ones have one.
create table failed_logins (
    id bigint generated always as identity primary key,
    email_index bytea not null,
    failed_at timestamptz not null
);

create index failed_logins_email on failed_logins (email_index, failed_at);

create index failed_logins_failed_at on failed_logins (failed_at);

-- Attempts of users to prove who they are.
create table identity_verifications (
    -- The provider knows the attempt by this id.
    id uuid primary key,
    user_id uuid not null references users (id),
    provider text not null,
    status text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    ended_at timestamptz,
    constraint identity_verifications_status
        check (status in ('started', 'verified', 'failed', 'expired')),
    constraint identity_verifications_ended check ((status = 'started') = (ended_at is null))
);

create index identity_verifications_user on identity_verifications (user_id, created_at);

create index identity_verifications_expires_at on identity_verifications (expires_at);

-- Who is behind an account. `ci` is the same for a person everywhere, `di` only with us. Both are
-- encrypted; their keyed hashes keep a person to one account.
create table identities (
    user_id uuid primary key references users (id),
    ci_cipher bytea not null,
    ci_index bytea not null,
    di_cipher bytea,
    di_index bytea,
    -- Which key the four columns above were made with.
    key_version integer not null,
    provider text not null,
    verified_at timestamptz not null,
    constraint identities_di check ((di_cipher is null) = (di_index is null))
);

create unique index identities_ci_index on identities (ci_index);

create unique index identities_di_index on identities (di_index);

create index identities_key_version on identities (key_version);
