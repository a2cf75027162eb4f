-- One row per order: what somebody is to pay for, and how far that is.
create table payments (
    id uuid primary key,
    -- What the provider knows it by.
    order_id text not null,
    user_id uuid not null,
    -- What is paid for: a reservation, a transfer or a membership, and which.
    target_type text not null,
    target_id uuid not null,
    event_id uuid,
    -- Of the hold that is paid for: another one is another purchase.
    fencing_token bigint,
    order_name text not null,
    amount bigint not null,
    -- Part of the amount: the surcharge of a purchase in a pre-sale.
    booking_fee bigint not null,
    currency text not null,
    provider text not null,
    -- What the provider calls the payment; known when the buyer comes back from it.
    payment_key text,
    method text,
    status text not null,
    -- What is to be done next; null when nothing is.
    step text,
    -- Whoever takes a step says until when nobody else should.
    claimed_until timestamptz,
    next_look_at timestamptz,
    looks integer not null,
    -- Whether the provider was ever asked to charge: from then on only it knows whether it did.
    charge_sent_at timestamptz,
    failure_code text,
    approved_at timestamptz,
    receipt_url text,
    -- What the provider says it took; not the amount if it took something else.
    charged_amount bigint not null,
    refunded_amount bigint not null,
    -- The flow that it belongs to, and the event by which others learnt that it is paid.
    correlation_id uuid not null,
    confirmed_event_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint payments_target_type check (target_type in ('reservation', 'transfer', 'membership')),
    constraint payments_status check (status in
        ('pending', 'approving', 'confirmed', 'failed', 'unknown', 'refunding', 'refunded')),
    constraint payments_step check (step in
        ('pin', 'charge', 'query', 'deliver', 'unpin', 'refund', 'tell')),
    constraint payments_amount check (amount >= 0 and booking_fee >= 0 and booking_fee <= amount),
    constraint payments_refunded
        check (refunded_amount >= 0 and refunded_amount <= charged_amount),
    -- Whoever has something to do is looked at.
    constraint payments_looked_at check (step is null or next_look_at is not null)
);

create unique index payments_order on payments (order_id);
-- A buyer says the key before the provider does: only then can it be somebody else's.
create unique index payments_key on payments (provider, payment_key)
    where status in ('confirmed', 'refunding', 'refunded');
-- The last guard: one charge at most per target that is under way or stands (M-11).
create unique index payments_one_charge on payments (target_type, target_id)
    where status in ('approving', 'unknown', 'confirmed');
create index payments_of_user on payments (user_id, id);
create index payments_of_target on payments (target_id);
create index payments_to_do on payments (next_look_at, id) where step is not null;

-- A command is done once per order, action and key: inserted first, in the same transaction as its
-- effect.
create table payment_idempotency (
    order_id text not null,
    action text not null,
    idempotency_key text not null,
    created_at timestamptz not null,
    constraint payment_idempotency_action check (action in ('CREATE', 'APPROVE', 'REFUND'))
);

create unique index uq_payment_idempotency
    on payment_idempotency (order_id, action, idempotency_key);

-- Every call to a provider: written before it is made and completed afterwards.
create table attempts (
    id uuid primary key,
    payment_id uuid not null references payments (id),
    refund_id uuid,
    action text not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    outcome text,
    code text,
    constraint attempts_action check (action in ('confirm', 'query', 'cancel'))
);

create index attempts_of_payment on attempts (payment_id, started_at);

-- Money that goes back. One per cause.
create table refunds (
    id uuid primary key,
    payment_id uuid not null references payments (id),
    -- Why: `cancelled`, `not_confirmable`, `duplicate`, `mismatch`, or an administrator's own key.
    cause text not null,
    amount bigint not null,
    -- What is kept of the price, by the policy of the purchase.
    fee bigint not null,
    reason text not null,
    requested_by uuid,
    -- What the ticket office expects to hear; null if it expects nothing.
    office_amount bigint,
    status text not null,
    sent_at timestamptz,
    -- How often the provider has said no: the next attempt is another one for it.
    declines integer not null,
    failure_code text,
    correlation_id uuid not null,
    causation_id uuid,
    created_at timestamptz not null,
    done_at timestamptz,
    told_at timestamptz,
    constraint refunds_amount check (amount >= 0 and fee >= 0),
    constraint refunds_status check (status in ('requested', 'unknown', 'done'))
);

create unique index refunds_cause on refunds (payment_id, cause);

-- The books. Every entry's lines add up to zero; nothing is ever changed or taken out.
create table ledger_entries (
    id uuid primary key,
    at timestamptz not null,
    payment_id uuid not null references payments (id),
    refund_id uuid,
    kind text not null,
    constraint ledger_entries_kind check (kind in
        ('charge', 'deliver', 'cancel', 'return', 'refund'))
);

-- Each happens once per payment, or once per refund.
create unique index ledger_entries_of_payment on ledger_entries (payment_id, kind)
    where refund_id is null;
create unique index ledger_entries_of_refund on ledger_entries (refund_id, kind)
    where refund_id is not null;

create table ledger_lines (
    entry_id uuid not null references ledger_entries (id),
    account text not null,
    -- What the account is given; taken, if below zero.
    amount bigint not null,
    primary key (entry_id, account)
);

create index ledger_lines_by_account on ledger_lines (account);

-- Messages of providers, each once.
create table webhooks (
    provider text not null,
    message_id text not null,
    received_at timestamptz not null,
    order_id text not null,
    primary key (provider, message_id)
);

create index webhooks_of_order on webhooks (order_id);
