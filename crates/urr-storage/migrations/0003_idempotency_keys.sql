-- Requests that clients named by a key of their own, so that a retry has no second effect.

create table idempotency_keys (
    user_id uuid not null,
    operation text not null,
    key text not null,
    -- Of the request: the same key with another request is refused.
    fingerprint text not null,
    -- What came of it; null while it is under way.
    resource_id text,
    created_at timestamptz not null,
    primary key (user_id, operation, key)
);

create index idempotency_keys_by_time on idempotency_keys (created_at);
