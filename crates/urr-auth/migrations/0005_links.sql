-- Links that are sent by mail and work once: to verify an address, and to choose another password.

create table account_links (
    id uuid primary key,
    kind text not null,
    user_id uuid not null references users (id),
    -- SHA-256 of the secret in the link. The secret follows from the id and the data key of this
    -- version, so that a mail that is sent again has the same link.
    token_hash bytea not null,
    key_version integer not null,
    -- The state of the account that the link is for: its address and its password.
    email_index bytea not null,
    password_version integer not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz,
    constraint account_links_kind check (kind in ('verify_email', 'reset_password'))
);

create unique index account_links_token_hash on account_links (token_hash);

create index account_links_user on account_links (user_id);

create index account_links_expires_at on account_links (expires_at);

-- Who asked for links lately, by the keyed hash of the address, with or without an account: nobody
-- can fill a mailbox with our mails, and the answer does not tell who has an account.
create table link_requests (
    id bigint generated always as identity primary key,
    kind text not null,
    email_index bytea not null,
    requested_at timestamptz not null
);

create index link_requests_email on link_requests (email_index, requested_at);

create index link_requests_requested_at on link_requests (requested_at);
