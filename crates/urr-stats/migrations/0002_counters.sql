-- Facts (what is known about each thing that is counted) and counters (sums over facts).
--
-- There is one fact per thing (a reservation, a payment ...) and not per message: a message that comes
-- twice, late or as a copy changes nothing. Counters can be deleted and counted again; `rebuild` says
-- how far that has come.

-- One row. Every transaction that counts locks it first.
create table rebuild (
    id smallint primary key,
    -- The kind of facts that is being counted; 100 when all are counted.
    stage smallint not null,
    -- Facts of that kind are counted up to this id.
    after_id uuid not null
);

-- Every message that was counted, so that none is counted twice.
create table counted_messages (
    id uuid primary key,
    day text not null,
    event_type text not null
);

create table users (
    id uuid primary key,
    registered_at timestamptz,
    deleted_at timestamptz,
    role text not null,
    -- When the role was announced; older announcements do not overwrite it.
    role_at timestamptz
);

create index users_role on users (role) where registered_at is not null and deleted_at is null;

create table reservations (
    id uuid primary key,
    event_id uuid not null,
    user_id uuid not null,
    amount bigint not null,
    quantity bigint not null,
    seat_ids jsonb not null,
    -- The message of the columns above: the most recent one.
    terms_rank smallint not null,
    terms_at timestamptz not null,
    terms_message_id uuid not null,
    created_at timestamptz,
    hold_ends_at timestamptz,
    confirmed_at timestamptz,
    cancelled_at timestamptz,
    expired_at timestamptz,
    refund_amount bigint not null
);

create index reservations_created on reservations (created_at);
create index reservations_latest on reservations (terms_at);
create index reservations_user on reservations (user_id);
create index reservations_pending on reservations (hold_ends_at)
    where confirmed_at is null and cancelled_at is null and expired_at is null;

-- What happens once: a charge, a refund, a transfer, a year of a membership.
create table transactions (
    kind text not null,
    id uuid not null,
    happened_at timestamptz not null,
    user_id uuid,
    event_id uuid,
    amount bigint not null,
    -- The payment method; empty without a payment.
    method text not null,
    -- The cause of a refund; empty otherwise.
    cause text not null,
    primary key (kind, id)
);

create index transactions_latest on transactions (kind, happened_at);
create index transactions_of_event on transactions (event_id, happened_at)
    where event_id is not null;

-- The projection of the catalog.
create table events (
    id uuid primary key,
    revision bigint not null,
    title text,
    venue text,
    kind text,
    -- Whose event it is; null until the catalog has said.
    organiser_id uuid,
    starts_at timestamptz,
    prices jsonb,
    layout jsonb,
    status text,
    status_revision bigint not null,
    -- Seats of the layout, and with standing tickets.
    seats bigint not null,
    places bigint not null,
    -- House seats; the higher fence is newer.
    blocked bigint not null default 0,
    blocked_fence bigint not null default -1
);

create index events_start on events (starts_at);

create table ticket_types (
    event_id uuid not null,
    id uuid not null,
    price bigint not null,
    total bigint not null,
    fence bigint not null,
    primary key (event_id, id)
);

-- From here on: counters.

create table hour_counters (
    day text not null,
    hour smallint not null,
    created bigint not null,
    confirmed bigint not null,
    cancelled bigint not null,
    expired bigint not null,
    completed bigint not null,
    dropped bigint not null,
    lapsed bigint not null,
    pending bigint not null,
    places_sold bigint not null,
    held_seconds bigint not null,
    holds bigint not null,
    paid_seconds bigint not null,
    pays bigint not null,
    cancelled_seconds bigint not null,
    cancels bigint not null,
    owed bigint not null,
    charges bigint not null,
    charged bigint not null,
    refunds bigint not null,
    refunded bigint not null,
    undelivered bigint not null,
    transfers bigint not null,
    transferred bigint not null,
    memberships bigint not null,
    registered bigint not null,
    deleted bigint not null,
    primary key (day, hour)
);

create table event_counters (
    event_id uuid not null,
    day text not null,
    created bigint not null,
    confirmed bigint not null,
    cancelled bigint not null,
    expired bigint not null,
    completed bigint not null,
    dropped bigint not null,
    lapsed bigint not null,
    pending bigint not null,
    places_sold bigint not null,
    held_seconds bigint not null,
    holds bigint not null,
    paid_seconds bigint not null,
    pays bigint not null,
    cancelled_seconds bigint not null,
    cancels bigint not null,
    owed bigint not null,
    charges bigint not null,
    charged bigint not null,
    refunds bigint not null,
    refunded bigint not null,
    undelivered bigint not null,
    transfers bigint not null,
    transferred bigint not null,
    memberships bigint not null,
    registered bigint not null,
    deleted bigint not null,
    primary key (event_id, day)
);

create table method_totals (
    day text not null,
    method text not null,
    charges bigint not null,
    charged bigint not null,
    refunds bigint not null,
    refunded bigint not null,
    primary key (day, method)
);

create table sold_seats (
    event_id uuid not null,
    seat_id bigint not null,
    sold bigint not null,
    primary key (event_id, seat_id)
);
