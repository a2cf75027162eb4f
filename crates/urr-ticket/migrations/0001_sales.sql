-- Sales: one row per event. Every change of an event's seats, stock or reservations locks this row
-- first: the lock orders the changes, and `fence` numbers them.
create table sales (
    event_id uuid primary key,
    -- The catalog's revision of the event; older ones do not overwrite newer ones.
    revision bigint not null,
    kind text not null,
    status text not null,
    title text not null,
    venue_name text not null,
    artist_id uuid,
    starts_at timestamptz not null,
    -- Whether the start has changed and owners of tickets are still to be told.
    has_unannounced_start boolean not null default false,
    sale_starts_at timestamptz not null,
    sale_ends_at timestamptz not null,
    has_presale boolean not null,
    seats_per_user_max integer not null,
    -- Whether only persons with a checked identity may buy.
    requires_identity boolean not null,
    -- Whether a ticket that was checked out admits again.
    allows_reentry boolean not null default false,
    -- Whose event it is; null if the catalog did not say.
    organiser_id uuid,
    -- The cancellation fees of this event; null means the usual ones.
    cancel_policy jsonb,
    -- Sections, rows and seats; the prices by grade. They never change.
    layout jsonb not null,
    prices jsonb not null,
    seats_total integer not null,
    -- Whether all seats and ticket types are there and were counted.
    is_complete boolean not null,
    fence bigint not null,
    -- Whether fans wait for seats that return: then `alert_gates` says who may take them.
    has_seat_alerts boolean not null default false,
    -- When no live reservation was left after the event was cancelled or deleted, or when an event
    -- was deleted that had taken place: of that one nothing is given back.
    emptied_at timestamptz,
    -- The catalog's event that closed it: the cause of the cancellations that follow.
    closed_by uuid,
    created_at timestamptz not null,
    constraint sales_kind check (kind in ('seated', 'standing')),
    constraint sales_status check (status in ('open', 'cancelled', 'deleted')),
    constraint sales_window check (sale_starts_at < sale_ends_at),
    constraint sales_seats_per_user_max check (seats_per_user_max between 1 and 10)
);

create index sales_of_organiser on sales (organiser_id) where organiser_id is not null;

-- The door staff of an event: they check its tickets in, and sell at the box office if they may.
create table event_staff (
    event_id uuid not null,
    user_id uuid not null,
    assigned_by uuid not null,
    assigned_at timestamptz not null,
    may_sell boolean not null default false,
    primary key (event_id, user_id)
);

create index event_staff_of_user on event_staff (user_id);

-- Closed sales whose reservations are still to be cancelled.
create index sales_to_empty on sales (event_id) where status <> 'open' and emptied_at is null;
create index sales_with_seat_alerts on sales (event_id) where has_seat_alerts;
create index sales_to_announce on sales (event_id) where has_unannounced_start;

-- A seat is available, blocked by the organiser, or the held or sold seat of one reservation.
create table seats (
    event_id uuid not null,
    seat_id integer not null,
    status text not null,
    reservation_id uuid,
    -- The number of its last change.
    fence bigint not null,
    primary key (event_id, seat_id),
    constraint seats_status check (status in ('available', 'held', 'sold', 'blocked')),
    constraint seats_owner check ((status in ('held', 'sold')) = (reservation_id is not null))
);

-- House seats: why a seat is blocked. It has a row as long as it is.
create table house_seats (
    event_id uuid not null,
    seat_id integer not null,
    reason text not null,
    blocked_by uuid not null,
    blocked_at timestamptz not null,
    primary key (event_id, seat_id)
);

-- Blocked standing tickets. They are not available.
create table house_stock (
    ticket_type_id uuid primary key,
    event_id uuid not null,
    quantity integer not null,
    -- Of the last block.
    reason text not null,
    blocked_by uuid not null,
    blocked_at timestamptz not null,
    constraint house_stock_quantity check (quantity > 0)
);

create index house_stock_of_event on house_stock (event_id);

-- The changes since a seat map was read.
create index seats_changed on seats (event_id, fence);

-- Tickets without a seat.
create table ticket_types (
    id uuid primary key,
    event_id uuid not null,
    name text not null,
    description text not null,
    price bigint not null,
    total integer not null,
    available integer not null,
    created_at timestamptz not null,
    constraint ticket_types_price check (price >= 0),
    constraint ticket_types_stock check (available >= 0 and available <= total)
);

create unique index ticket_types_name on ticket_types (event_id, name);

create table reservations (
    id uuid primary key,
    number text not null,
    user_id uuid not null,
    event_id uuid not null,
    -- How it came about: bought online, given away, or sold at the box office.
    kind text not null default 'online',
    status text not null,
    payment_status text not null,
    -- What it costs: its items and the booking fee, without tickets that were cancelled one by one.
    total_amount bigint not null,
    -- The surcharge of a purchase in a pre-sale, once for the reservation.
    booking_fee bigint not null,
    -- Seats or standing tickets together.
    quantity integer not null,
    -- The fencing token: the number of the change that made or last changed the hold.
    fence bigint not null,
    expires_at timestamptz not null,
    -- When its owner asked for more time, which is given once.
    extended_at timestamptz,
    -- The payment that is under way. A pinned hold does not expire.
    pinned_by uuid,
    pinned_at timestamptz,
    -- The attempts to pay that have released it: a late copy of their pin has no effect.
    ended_attempts jsonb,
    payment_id uuid,
    payment_method text,
    -- What is kept if its owner cancels: as it was agreed on when the reservation was made.
    cancel_policy jsonb not null,
    -- The start of the event when its owner booked it or bought it from someone else: moving the
    -- event does not take away what was promised then.
    agreed_starts_at timestamptz not null,
    -- The start of the event that its owner was last told.
    announced_starts_at timestamptz not null,
    -- Tickets that its owner cancelled one by one: their price, and what of it is refunded. Together
    -- with the total the price is what the present payment has paid.
    cancelled_amount bigint not null default 0,
    cancelled_refund_amount bigint not null default 0,
    -- What is to be paid back, decided when a paid reservation was cancelled.
    refund_amount bigint,
    end_reason text,
    -- Its event chain: the flow that it began, and the last event about it.
    correlation_id uuid,
    last_event_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint reservations_status
        check (status in ('pending', 'confirmed', 'cancelled', 'expired')),
    constraint reservations_kind check (kind in ('online', 'complimentary', 'box_office')),
    constraint reservations_payment_status
        check (payment_status in ('unpaid', 'paid', 'refunding', 'refunded')),
    constraint reservations_pin check ((pinned_by is null) = (pinned_at is null)),
    constraint reservations_pinned check (pinned_by is null or status = 'pending'),
    constraint reservations_refund_amount
        check (refund_amount is null or (refund_amount >= 0 and refund_amount <= total_amount)),
    constraint reservations_cancelled_amount check (cancelled_amount >= 0
        and cancelled_refund_amount >= 0 and cancelled_refund_amount <= cancelled_amount),
    constraint reservations_total_amount check (total_amount >= 0),
    constraint reservations_booking_fee
        check (booking_fee >= 0 and booking_fee <= total_amount)
);

create unique index reservations_number on reservations (number);
-- One hold in progress per user and event.
create unique index reservations_one_pending on reservations (event_id, user_id)
    where status = 'pending';
create index reservations_of_user on reservations (user_id, id);
-- The few that did not come from the sale.
create index reservations_of_house on reservations (event_id, id) where kind <> 'online';
create index reservations_of_buyer on reservations (event_id, user_id, status);
-- Holds in the order in which their time is over. Those that are being paid do not expire.
create index reservations_overdue on reservations (expires_at, id)
    where status = 'pending' and pinned_by is null;

-- What happened to a reservation and leaves no other trace. Each row is what a domain event said.
create table reservation_history (
    -- The id of the domain event.
    id uuid primary key,
    reservation_id uuid not null,
    kind text not null,
    -- Who did it: `owner`, `admin` or `system`.
    actor text not null,
    actor_id uuid,
    -- What goes back by it.
    amount bigint,
    reason text,
    details jsonb not null,
    created_at timestamptz not null,
    constraint reservation_history_kind
        check (kind in ('seats_changed', 'tickets_cancelled', 'cancelled', 'event_moved',
            'complimentary', 'box_office')),
    constraint reservation_history_actor
        check (actor in ('owner', 'admin', 'system') and (actor = 'system') = (actor_id is null))
);

create index reservation_history_of on reservation_history (reservation_id, created_at);

-- What is known of complimentary tickets and of sales at the box office.
create table house_reservations (
    reservation_id uuid primary key,
    issued_by uuid not null,
    -- Why tickets were given away; the receipt of a card terminal.
    reason text,
    receipt_number text
);

-- Guests of complimentary tickets who have no account, encrypted. They are erased after the event.
create table house_guests (
    reservation_id uuid primary key,
    key_version integer not null,
    name_cipher bytea,
    -- Keyed hashes, by which guests are found.
    name_index bytea,
    email_cipher bytea,
    email_index bytea
);

create index house_guests_by_name on house_guests (name_index);
create index house_guests_by_email on house_guests (email_index);

-- Who holds a reservation of an event that requires a checked identity: a keyed hash of the person.
create table reservation_persons (
    reservation_id uuid primary key,
    event_id uuid not null,
    person_hash text not null
);

create index reservation_persons_of_event on reservation_persons (event_id, person_hash);

create table reservation_items (
    reservation_id uuid not null,
    position smallint not null,
    event_id uuid not null,
    seat_id integer,
    ticket_type_id uuid,
    -- What is left of it, and what was cancelled ticket by ticket.
    quantity integer not null,
    cancelled_quantity integer not null default 0,
    unit_price bigint not null,
    -- Whether the reservation is pending or confirmed and still has this item.
    is_live boolean not null,
    primary key (reservation_id, position),
    constraint reservation_items_subject check ((seat_id is null) <> (ticket_type_id is null)),
    constraint reservation_items_quantity
        check (quantity >= 0 and cancelled_quantity >= 0 and quantity + cancelled_quantity > 0)
);

-- The last guard: a seat has at most one live hold or sale.
create unique index reservation_items_one_live_per_seat on reservation_items (event_id, seat_id)
    where is_live and seat_id is not null;

-- One row per person who may enter.
create table tickets (
    id uuid primary key,
    number text not null,
    reservation_id uuid not null,
    event_id uuid not null,
    position smallint not null,
    -- Which of the item's persons, from 0.
    unit smallint not null,
    seat_id integer,
    -- Counts how often it was issued anew, for example to a new owner. Only the last one is valid.
    issue integer not null,
    is_valid boolean not null,
    -- The first entry that counts: when, by whom and at which door. It follows from the scans.
    checked_in_at timestamptz,
    checked_in_by uuid,
    checked_in_door text,
    -- Whether the visitor is in the hall: they came in and did not go out since.
    is_inside boolean not null default false,
    created_at timestamptz not null,
    constraint tickets_inside check (not is_inside or checked_in_at is not null)
);

create unique index tickets_number on tickets (number);
create index tickets_of_event on tickets (event_id, id);
create unique index tickets_unit on tickets (reservation_id, position, unit);

-- Tickets that were scanned at a door, and what came of it. What the scans of one ticket mean follows
-- from their times, in whatever order they arrive.
create table ticket_scans (
    event_id uuid not null,
    -- Given by the phone, so that a repeated scan changes nothing.
    id uuid not null,
    ticket_id uuid not null,
    direction text not null,
    door text not null,
    staff_id uuid not null,
    -- When the phone saw the ticket, and when we were told.
    scanned_at timestamptz not null,
    recorded_at timestamptz not null,
    outcome text not null,
    undone_at timestamptz,
    undone_by uuid,
    primary key (event_id, id),
    constraint ticket_scans_direction check (direction in ('entry', 'exit')),
    constraint ticket_scans_outcome check (outcome in ('accepted', 'duplicate', 'not_inside',
        'reentry_not_allowed', 'cancelled', 'reissued')),
    constraint ticket_scans_undone check ((undone_at is null) = (undone_by is null))
);

create index ticket_scans_of_ticket on ticket_scans (ticket_id);
-- Visitors who were let in although they should not have been.
create index ticket_scans_conflicts on ticket_scans (event_id, scanned_at)
    where outcome <> 'accepted' and undone_at is null;

-- Fan memberships decide who may buy in a pre-sale.
create table memberships (
    id uuid primary key,
    user_id uuid not null,
    artist_id uuid not null,
    tier text not null,
    status text not null,
    expires_at timestamptz not null,
    constraint memberships_tier check (tier in ('silver', 'gold', 'diamond')),
    constraint memberships_status check (status in ('pending', 'active'))
);

create unique index memberships_one_per_artist on memberships (user_id, artist_id);

-- The projection of the catalog: the state of each event, in whatever order its events arrived, also
-- before its sale was created. Its lock orders the changes of an event.
create table event_states (
    event_id uuid primary key,
    status text not null,
    -- The newest revision, if one has arrived.
    facts jsonb,
    constraint event_states_status check (status in ('open', 'cancelled', 'deleted'))
);
