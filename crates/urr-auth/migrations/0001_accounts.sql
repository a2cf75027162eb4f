-- Accounts and their sessions. What names a person is encrypted; see src/personal_data.rs.

create table users (
    id uuid primary key,
    email_cipher bytea,
    -- Keyed hash of the address in lower case, by which it is found and kept unique.
    email_index bytea,
    name_cipher bytea,
    phone_cipher bytea,
    -- Keyed hashes of name and phone number, by which administrators find an account.
    name_index bytea,
    phone_index bytea,
    -- Which key the columns above were made with.
    key_version integer not null,
    -- Null for an account without a password.
    password_hash text,
    -- Counts the passwords that were chosen. A stronger hash of the same one does not count.
    password_version integer not null,
    role text not null,
    -- In which mails are written.
    language text not null,
    status text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    last_login_at timestamptz not null,
    deleted_at timestamptz,
    constraint users_role
        check (role in ('user', 'staff', 'organiser', 'support', 'admin')),
    constraint users_language check (language in ('ko', 'en')),
    constraint users_status check (status in ('active', 'dormant', 'suspended', 'deleted')),
    -- Of a deleted account nothing personal remains; every other has an address and a name.
    constraint users_person check (
        case when status = 'deleted'
            then email_cipher is null and email_index is null and name_cipher is null
                and phone_cipher is null and name_index is null and phone_index is null
                and password_hash is null and deleted_at is not null
            else email_cipher is not null and email_index is not null and name_cipher is not null
                and deleted_at is null
        end
    )
);

create unique index users_email_index on users (email_index);

create index users_name_index on users (name_index) where name_index is not null;

create index users_phone_index on users (phone_index) where phone_index is not null;

create index users_created_at on users (created_at, id);

create index users_admins on users (id) where role = 'admin';

create index users_active_last_login on users (last_login_at) where status = 'active';

create index users_key_version on users (key_version) where status <> 'deleted';

create table refresh_tokens (
    -- The id within the token (jti).
    id uuid primary key,
    user_id uuid not null references users (id),
    -- The session: all tokens that follow from one login.
    family_id uuid not null,
    -- SHA-256 of the token. The token itself is not stored.
    token_hash bytea not null,
    -- The access token that was issued beside it.
    access_jti uuid not null,
    access_expires_at timestamptz not null,
    access_revoked_at timestamptz,
    issued_at timestamptz not null,
    expires_at timestamptz not null,
    rotated_at timestamptz,
    successor_id uuid,
    revoked_at timestamptz,
    constraint refresh_tokens_successor check ((rotated_at is null) = (successor_id is null))
);

create unique index refresh_tokens_token_hash on refresh_tokens (token_hash);

-- A family is a chain: two tokens that both wait to be replaced would be two sessions.
create unique index refresh_tokens_one_tip on refresh_tokens (family_id) where rotated_at is null;

create index refresh_tokens_family on refresh_tokens (family_id, issued_at);

create index refresh_tokens_user on refresh_tokens (user_id, issued_at);

create index refresh_tokens_expires_at on refresh_tokens (expires_at);

-- Access tokens that are refused although they have not expired. The gateways follow this list by
-- its number, so the numbers must become visible in their order: they come from the counter below,
-- whose row lock is held until the commit. A sequence would let a smaller number appear late.
create table revoked_access_tokens (
    seq bigint primary key,
    jti uuid not null,
    expires_at timestamptz not null
);

create unique index revoked_access_tokens_jti on revoked_access_tokens (jti);

create index revoked_access_tokens_expires_at on revoked_access_tokens (expires_at);

create table revocation_counter (
    id bigint primary key constraint revocation_counter_single check (id = 1),
    last_seq bigint not null
);

insert into revocation_counter (id, last_seq) values (1, 0);

create table login_history (
    id bigint generated always as identity primary key,
    -- Null when no account was found.
    user_id uuid references users (id),
    -- The session that the login began.
    family_id uuid,
    method text not null,
    success boolean not null,
    failure text,
    address text not null,
    user_agent text not null,
    happened_at timestamptz not null,
    constraint login_history_failure check (success = (failure is null))
);

create index login_history_user on login_history (user_id, happened_at);

create index login_history_family on login_history (family_id) where family_id is not null;

create index login_history_happened_at on login_history (happened_at);

create table terms_agreements (
    user_id uuid not null references users (id),
    kind text not null,
    version text not null,
    agreed boolean not null,
    agreed_at timestamptz not null,
    primary key (user_id, kind, agreed_at),
    constraint terms_agreements_kind check (kind in ('SERVICE', 'PRIVACY', 'MARKETING'))
);

-- What each version of the terms said, so that users can read later what they agreed to.
create table terms_documents (
    kind text not null,
    version text not null,
    text_ko text not null,
    text_en text not null,
    -- The program's text, which an operator has to replace.
    is_example boolean not null,
    in_force_from timestamptz not null,
    primary key (kind, version),
    constraint terms_documents_kind check (kind in ('SERVICE', 'PRIVACY', 'MARKETING'))
);

-- The way to the first administrator. SHA-256 of a secret that was shown once.
create table admin_invites (
    token_hash bytea primary key,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz,
    used_by uuid references users (id),
    constraint admin_invites_used check ((used_at is null) = (used_by is null))
);
