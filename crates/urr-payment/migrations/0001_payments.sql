-- One row per order: what somebody is to pay for, and how far that is.
create table payments (
    id uuid primary key,
    -- What the provider knows it by.
    order_id text not null,
    user_id uuid not null,
    -- What is paid for: a reservation, a transfer or a membership, and which.
    payable_kind text not null,
    payable_id uuid not null,
    event_id uuid,
    -- The ticket that a transfer hands over.
    reservation_id uuid,
    -- Of the hold that is paid for: another one is another purchase.
    fencing_token bigint,
    order_name text not null,
    amount bigint not null,
    -- Part of the amount: the surcharge of a purchase in a pre-sale, or the fee of a transfer.
    booking_fee bigint not null,
    currency text not null,
    provider text not null,
    -- What the buyer brought back from the provider.
    payment_key text,
    -- What the provider calls the charge, when there is one.
    provider_key text,
    method text,
    status text not null,
    -- What is to be done next; null when nothing is.
    step text,
    -- Whoever takes a step says until when nobody else should.
    claimed_until timestamptz,
    next_attempt_at timestamptz,
    attempts integer not null,
    -- When the provider was first asked to charge: from then on only it knows whether it did.
    charge_sent_at timestamptz,
    -- When it was last asked.
    last_charge_at timestamptz,
    -- Why it failed, or why the money goes back.
    failure_code text,
    -- What the last look said that brought nothing.
    wait_code text,
    -- Why the buyer wants their money back, in their own words.
    cancel_reason text,
    approved_at timestamptz,
    receipt_url text,
    -- What the provider says it took; not the amount if it took something else.
    charged_amount bigint not null,
    refunded_amount bigint not null,
    -- The flow that it belongs to, and the event by which others learnt that it is paid.
    correlation_id uuid not null,
    -- What told of the hold that is paid for.
    cause_event_id uuid,
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
    -- Whoever has something to do is looked at.
    constraint payments_attempted check (step is null or next_attempt_at is not null)
);

create unique index payments_order on payments (order_id);
-- A charge is of one order.
create unique index payments_key on payments (provider, provider_key)
    where provider_key is not null;
-- The last guard: one charge at most per payable that is under way or stands (M-11).
create unique index payments_one_charge on payments (payable_kind, payable_id)
    where payable_kind <> 'membership' and status in ('approving', 'unknown', 'confirmed');
-- A membership is paid once per term.
create unique index payments_one_charge_of_term on payments (payable_id, fencing_token)
    where payable_kind = 'membership' and status in ('approving', 'unknown', 'confirmed');
create index payments_of_user on payments (user_id, id);
create index payments_of_payable on payments (payable_id);
create index payments_of_status on payments (status, id);
create index payments_of_provider on payments (provider, approved_at);
-- A purchase that waits never waits behind money that goes back.
create index payments_purchases_due on payments (next_attempt_at, id)
    where step in ('pin', 'charge', 'query', 'deliver', 'unpin');
create index payments_refunds_due on payments (next_attempt_at, id)
    where step in ('refund', 'report');
create index payments_stuck_since on payments (updated_at, id) where step is not null;

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

-- What a client has sent under its own key: a second time it must be the same.
create table request_keys (
    user_id uuid not null,
    action text not null,
    idempotency_key text not null,
    request text not null,
    -- What came of it, as soon as that is known.
    order_id text,
    created_at timestamptz not null,
    primary key (user_id, action, idempotency_key),
    constraint request_keys_action check (action in ('confirm', 'process', 'refund'))
);

create index request_keys_by_time on request_keys (created_at);

-- Every call to a provider: written before it is made and completed afterwards.
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

-- Money that goes back. One per cause.
create table refunds (
    id uuid primary key,
    payment_id uuid not null references payments (id),
    -- Why: `cancelled`, `transferred`, `not_confirmable`, `duplicate`, `mismatch`, or an
    -- administrator's own key.
    cause text not null,
    amount bigint not null,
    -- What is kept of the price, by the policy of the purchase.
    fee bigint not null,
    reason text not null,
    requested_by uuid,
    -- What the ticket service expects to hear; null if it expects nothing.
    requested_amount bigint,
    status text not null,
    -- When the provider was first asked by the present key.
    sent_at timestamptz,
    -- The number of the key: providers repeat their answers by key.
    key_number integer not null,
    -- How often the provider has said no.
    declines integer not null,
    -- What the provider last said, if that was not yes.
    failure_code text,
    correlation_id uuid not null,
    causation_id uuid,
    created_at timestamptz not null,
    done_at timestamptz,
    reported_at timestamptz,
    constraint refunds_amount check (amount >= 0 and fee >= 0),
    constraint refunds_status check (status in
        ('requested', 'unknown', 'done', 'closed', 'withdrawn'))
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
        ('charge', 'deliver', 'cancel', 'return', 'refund', 'withdraw', 'close'))
);

-- Each happens once per payment, or once per refund.
create unique index ledger_entries_of_payment on ledger_entries (payment_id, kind)
    where refund_id is null;
create unique index ledger_entries_of_refund on ledger_entries (refund_id, kind)
    where refund_id is not null;

-- The books of one payment, and what was written lately.
create index ledger_entries_by_payment on ledger_entries (payment_id);
create index ledger_entries_by_time on ledger_entries (at, id);

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

create index webhooks_of_order on webhooks (order_id, received_at);
create index webhooks_by_time on webhooks (received_at);

-- What administrators did, written with the change itself.
create table admin_audit (
    id uuid primary key,
    admin_id uuid not null,
    action text not null,
    resource_type text not null,
    resource_id uuid not null,
    summary text not null,
    created_at timestamptz not null
);

create index admin_audit_by_time on admin_audit (created_at, id);
create index admin_audit_of_resource on admin_audit (resource_id, created_at);
create index admin_audit_of_admin on admin_audit (admin_id, created_at);

-- What is looked through again and again: how far that has come, and who is at it.
create table audit_runs (
    -- `books`, or `provider:` and the provider's name.
    name text primary key,
    -- One process at a time.
    holder uuid,
    held_until timestamptz,
    -- What happened before this was looked at.
    up_to timestamptz,
    -- The whole is gone through as well, a part each time: payments up to this one were.
    after_id uuid,
    succeeded_at timestamptz
);

-- PaymentService that the books could not explain: they are looked at every time until they can.
create table unexplained_payments (
    payment_id uuid primary key,
    found_at timestamptz not null
);

-- Orders on which a provider's books and ours differ: the same.
create table differing_orders (
    provider text not null,
    order_id text not null,
    found_at timestamptz not null,
    primary key (provider, order_id)
);
