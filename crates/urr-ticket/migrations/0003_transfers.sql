-- Confirmed reservations that their owners sell to other members. A row is one attempt to sell: it is listed, and
-- then completed or cancelled. What the buyer has paid is the total of the reservation from then
-- on; the fee is part of its booking fee.
create table transfers (
    id uuid primary key,
    reservation_id uuid not null,
    -- Which attempt to sell the reservation it is, from 1: the fencing token.
    number bigint not null,
    event_id uuid not null,
    seller_id uuid not null,
    -- What the seller had paid, and by which payment: it goes back to them when the ticket moves.
    seller_payment_id uuid not null,
    original_price bigint not null,
    fee_percent integer not null,
    fee bigint not null,
    status text not null,
    -- Why it was cancelled.
    end_reason text,
    -- Who buys it: of one that is being paid, or was sold.
    buyer_id uuid,
    -- The payment that is under way. Nobody else can buy meanwhile.
    pinned_by uuid,
    pinned_at timestamptz,
    -- The attempts to pay that have released it: a late copy of their pin has no effect.
    ended_attempts jsonb,
    -- The start of the event when the buyer began to pay: what they agree to.
    agreed_starts_at timestamptz,
    payment_id uuid,
    -- What came back of the buyer's payment.
    refund_amount bigint,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    completed_at timestamptz,
    constraint transfers_status check (status in ('listed', 'completed', 'cancelled')),
    constraint transfers_pin check ((pinned_by is null) = (pinned_at is null)),
    constraint transfers_agreed check (pinned_by is null or agreed_starts_at is not null),
    constraint transfers_pinned check (pinned_by is null or status = 'listed'),
    constraint transfers_buyer check ((buyer_id is null) =
        (pinned_by is null and status <> 'completed')),
    constraint transfers_not_to_oneself check (buyer_id is null or buyer_id <> seller_id),
    constraint transfers_completed check ((status = 'completed') = (payment_id is not null)),
    constraint transfers_price check (original_price >= 0 and fee >= 0)
);

-- The last guard: a reservation is for sale once at most.
create unique index transfers_one_listed on transfers (reservation_id) where status = 'listed';
create unique index transfers_number on transfers (reservation_id, number);
-- A payment buys one.
create unique index transfers_payment on transfers (payment_id) where payment_id is not null;
create index transfers_listed on transfers (event_id, id) where status = 'listed';
create index transfers_of_event on transfers (event_id);
create index transfers_of_seller on transfers (seller_id, id);
