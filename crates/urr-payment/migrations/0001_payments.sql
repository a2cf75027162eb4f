-- One row per order: what is to be paid, and how far the saga is.
create table payments (
    id uuid primary key,
    -- The provider's name for the payment.
    order_id text not null,
    user_id uuid not null,
    -- A reservation, a transfer or a membership, and its id.
    payable_kind text not null,
    payable_id uuid not null,
    event_id uuid,
    -- The reservation that a transfer hands over.
    reservation_id uuid,
    -- Of the hold that is paid. A hold with another token is another purchase.
    fencing_token bigint,
    order_name text not null,
    amount bigint not null,
    -- Part of the amount: the surcharge of a purchase in a pre-sale, or the fee of a transfer.
    booking_fee bigint not null,
    currency text not null,
    provider text not null,
    -- The provider's key of the checkout, which the buyer's browser sends.
    payment_key text,
    -- The provider's id of the charge.
    provider_key text,
    method text,
    status text not null,
    -- The next step; null when nothing is left to do.
    step text,
    -- Until then the step belongs to the process that claimed it.
    claimed_until timestamptz,
    next_attempt_at timestamptz,
    attempts integer not null,
    -- Which attempt to pin the payable it is.
    pin_attempt bigint not null default 1,
    -- When the provider was first asked to charge: from then on only it knows whether it did.
    charge_sent_at timestamptz,
    -- When the provider was last asked to charge.
    last_charge_at timestamptz,
    -- Why the payment failed or is refunded.
    failure_code text,
    -- The code of the last attempt that had no result.
    wait_code text,
    -- Why the buyer cancelled, in their own words.
    cancel_reason text,
    approved_at timestamptz,
    receipt_url text,
    -- What the provider charged, which may differ from the amount.
    charged_amount bigint not null,
    refunded_amount bigint not null,
    -- The flow that it belongs to.
    correlation_id uuid not null,
    -- The trace of the request that confirmed it, which everything that follows belongs to.
    traceparent text,
    -- The event that announced the hold.
    cause_event_id uuid,
    -- The event by which others learnt that it is paid.
    confirmed_event_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint payments_payable_kind check (payable_kind in ('reservation', 'transfer', 'membership')),
    constraint payments_status check (status in
        ('pending', 'approving', 'confirmed', 'failed', 'unknown', 'refunding', 'refunded')),
    constraint payments_step check (step in
        ('pin', 'charge', 'query', 'deliver', 'unpin', 'refund', 'report')),
    constraint payments_amount check (amount >= 0 and booking_fee >= 0 and booking_fee <= amount),
    constraint payments_refunded
        check (refunded_amount >= 0 and refunded_amount <= charged_amount),
    -- A payment with a step left is attempted at some time.
    constraint payments_attempted check (step is null or next_attempt_at is not null)
);

create unique index payments_order on payments (order_id);
-- A charge belongs to one order.
create unique index payments_key on payments (provider, provider_key)
    where provider_key is not null;
-- The last guard: at most one charge per payable that is under way or stands (M-11).
create unique index payments_one_charge on payments (payable_kind, payable_id)
    where payable_kind <> 'membership' and status in ('approving', 'unknown', 'confirmed');
-- A membership is paid once per term.
create unique index payments_one_charge_of_term on payments (payable_id, fencing_token)
    where payable_kind = 'membership' and status in ('approving', 'unknown', 'confirmed');
create index payments_of_user on payments (user_id, id);
create index payments_of_payable on payments (payable_id);
create index payments_of_status on payments (status, id);
-- What a provider has charged: an order is not in it before.
create index payments_of_provider on payments (provider, approved_at)
    where charged_amount > 0;
-- Purchases and refunds are resolved side by side, so neither waits for the other.
create index payments_purchases_due on payments (next_attempt_at, id)
    where step in ('pin', 'charge', 'query', 'deliver', 'unpin');
create index payments_refunds_due on payments (next_attempt_at, id)
    where step in ('refund', 'report');
create index payments_stuck_since on payments (updated_at, id) where step is not null;

create index payments_of_event on payments (event_id, id) where event_id is not null;
-- For live boards. Payments that work are never in it.
create index payments_unsettled_of_event on payments (event_id, status)
    where status in ('failed', 'unknown') and event_id is not null;

-- The projection of the catalog: whose event it is, by its newest revision.
create table event_organisers (
    event_id uuid primary key,
    revision bigint not null,
    organiser_id uuid
);

create index event_organisers_of on event_organisers (organiser_id);

-- A command is executed once per order, action and key: the row is inserted first, in the
-- transaction of the effect (P4).
create table payment_idempotency (
    order_id text not null,
    action text not null,
    idempotency_key text not null,
    created_at timestamptz not null,
    constraint payment_idempotency_action check (action in ('CREATE', 'APPROVE', 'REFUND'))
);

create unique index uq_payment_idempotency
    on payment_idempotency (order_id, action, idempotency_key);

-- Calls to providers that move money: written before they are made, completed afterwards.
create table provider_calls (
    id uuid primary key,
    payment_id uuid not null references payments (id),
    refund_id uuid,
    action text not null,
    started_at timestamptz not null,
    finished_at timestamptz,
    outcome text,
    code text,
    constraint provider_calls_action check (action in ('confirm', 'query', 'cancel'))
);

create index provider_calls_of_payment on provider_calls (payment_id, started_at);

-- At most one refund per payment and cause.
create table refunds (
    id uuid primary key,
    payment_id uuid not null references payments (id),
    -- Why: `cancelled`, `part:` and which cancellation of some tickets, `transferred`, `not_confirmable`, `duplicate`, `mismatch`, or an
    -- administrator's own key.
    cause text not null,
    amount bigint not null,
    -- The cancellation fee by the policy of the purchase.
    fee bigint not null,
    reason text not null,
    requested_by uuid,
    -- The amount that the ticket service asked for; null if it did not ask.
    requested_amount bigint,
    status text not null,
    -- When the provider was first asked with the present key.
    sent_at timestamptz,
    -- The number of the idempotency key: providers repeat their answer to a key.
    key_number integer not null,
    -- How often the provider has declined.
    declines integer not null,
    -- The provider's last code that did not mean success.
    failure_code text,
    correlation_id uuid not null,
    -- The trace of the request or event that caused it.
    traceparent text,
    causation_id uuid,
    created_at timestamptz not null,
    done_at timestamptz,
    reported_at timestamptz,
    constraint refunds_amount check (amount >= 0 and fee >= 0),
    constraint refunds_status check (status in
        ('requested', 'unknown', 'done', 'closed', 'withdrawn'))
);

create unique index refunds_cause on refunds (payment_id, cause);
create index refunds_declined on refunds (created_at)
    where status = 'requested' and declines > 0;

-- The ledger. The lines of an entry add up to zero; rows are never changed or deleted.
create table ledger_entries (
    id uuid primary key,
    at timestamptz not null,
    payment_id uuid not null references payments (id),
    refund_id uuid,
    kind text not null,
    constraint ledger_entries_kind check (kind in
        ('charge', 'deliver', 'cancel', 'return', 'refund', 'withdraw', 'close'))
);

-- Each kind exists once per payment, or once per refund.
create unique index ledger_entries_of_payment on ledger_entries (payment_id, kind)
    where refund_id is null;
create unique index ledger_entries_of_refund on ledger_entries (refund_id, kind)
    where refund_id is not null;

-- For the entries of one payment, and for the latest entries.
create index ledger_entries_by_payment on ledger_entries (payment_id);
create index ledger_entries_by_time on ledger_entries (at, id);

create table ledger_lines (
    entry_id uuid not null references ledger_entries (id),
    account text not null,
    -- Added to the account; taken from it if below zero.
    amount bigint not null,
    primary key (entry_id, account)
);

create index ledger_lines_by_account on ledger_lines (account);

-- Webhooks of providers, each stored once.
create table webhooks (
    provider text not null,
    message_id text not null,
    received_at timestamptz not null,
    order_id text not null,
    primary key (provider, message_id)
);

create index webhooks_of_order on webhooks (order_id, received_at);
create index webhooks_by_time on webhooks (received_at);

-- Periodic audits: how far each has come, and which process runs it.
create table audit_runs (
    -- `ledger`, or `provider:` and the provider's name.
    name text primary key,
    -- The process that runs it.
    holder uuid,
    held_until timestamptz,
    -- Everything before this time was audited.
    up_to timestamptz,
    -- The whole ledger is audited too, a part each time: payments up to this one were.
    after_id uuid,
    succeeded_at timestamptz
);

-- Payments that the ledger did not explain. Every run checks them again.
create table unexplained_payments (
    payment_id uuid primary key,
    found_at timestamptz not null
);

-- Orders on which a provider and we differ. Every run checks them again.
create table differing_orders (
    provider text not null,
    order_id text not null,
    found_at timestamptz not null,
    primary key (provider, order_id)
);
