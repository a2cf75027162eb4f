-- The tables of the sandbox. It plays a remote provider: nothing else refers to these tables, and
-- they are written in transactions of their own.
create table sandbox_payments (
    payment_key text primary key,
    order_id text not null,
    -- What the buyer agreed to.
    amount bigint not null,
    attempts integer not null,
    charged bigint not null,
    refunded bigint not null,
    -- Why it will never be charged.
    refusal text,
    created_at timestamptz not null,
    approved_at timestamptz,
    constraint sandbox_payments_amount check (amount > 0),
    constraint sandbox_payments_returned check (refunded >= 0 and refunded <= charged)
);

-- An order is charged once, however often its buyer went through the checkout.
create unique index sandbox_payments_charged on sandbox_payments (order_id) where charged > 0;
create index sandbox_payments_of_order on sandbox_payments (order_id, payment_key);

-- Movements of money, once per idempotency key of the caller.
create table sandbox_movements (
    idempotency_key text primary key,
    payment_key text not null references sandbox_payments (payment_key),
    -- Charged; refunded if below zero.
    amount bigint not null,
    moved_at timestamptz not null
);

create index sandbox_movements_by_time on sandbox_movements (moved_at, payment_key);
