-- Fans who want to be told before the sale of an event opens for them.
create table sale_alerts (
    event_id uuid not null,
    user_id uuid not null,
    -- The opening that the fan was told. If it moves, the fan is told again.
    told_opens_at timestamptz,
    told_at timestamptz,
    -- When the alert is looked at next.
    due_at timestamptz not null,
    asked_at timestamptz not null,
    primary key (event_id, user_id),
    constraint sale_alerts_told check ((told_opens_at is null) = (told_at is null))
);

create index sale_alerts_due on sale_alerts (due_at, event_id, user_id);
create index sale_alerts_of_user on sale_alerts (user_id, asked_at);

-- Users who have asked for alerts. Their row is locked while one of their alerts is added, so that
-- two that are asked for at the same time count each other.
create table alert_owners (
    user_id uuid primary key
);

-- Fans who want to be told when seats return. An alert is waiting, then its fan is told once, and
-- then the fan may have taken seats. Who withdraws after being told leaves a row: the audit looks
-- at who was told.
create table seat_alerts (
    id uuid primary key,
    event_id uuid not null,
    user_id uuid not null,
    -- A grade, the id of a ticket type, or empty: the whole event.
    subject text not null,
    quantity integer not null,
    -- The order of asking, given under the lock of the sale.
    number bigint not null,
    status text not null,
    asked_at timestamptz not null,
    told_at timestamptz,
    constraint seat_alerts_status check (status in ('waiting', 'told', 'taken', 'withdrawn')),
    constraint seat_alerts_told check ((status = 'waiting') = (told_at is null)),
    constraint seat_alerts_quantity check (quantity between 1 and 10)
);

create unique index seat_alerts_one_waiting on seat_alerts (event_id, user_id, subject)
    where status = 'waiting';
create index seat_alerts_in_order on seat_alerts (event_id, subject, number)
    where status = 'waiting';
create index seat_alerts_of_event on seat_alerts (event_id, number);
create index seat_alerts_told_of_fan on seat_alerts (event_id, user_id) where status = 'told';
create index seat_alerts_of_user on seat_alerts (user_id, asked_at);

-- What fans wait for, one row per event and subject. While it is in force, only fans who were told
-- may take what has returned.
create table alert_gates (
    event_id uuid not null,
    subject text not null,
    -- When something returned; null while nothing is free.
    returned_at timestamptz,
    -- Nobody who waits can use what is free: everybody may take it until something returns again.
    is_open boolean not null,
    -- When the waiting fans are looked at next; null while nothing is free.
    next_at timestamptz,
    -- The number of the last change before it was closed.
    closed_fence bigint not null,
    primary key (event_id, subject),
    constraint alert_gates_next check ((returned_at is null) = (next_at is null)),
    constraint alert_gates_open check (not is_open or returned_at is not null)
);

create index alert_gates_due on alert_gates (next_at) where next_at is not null;

-- When gates were closed, for the audit: what was taken between the two changes, and before the
-- time was over, was for fans who were told.
create table alert_gate_periods (
    event_id uuid not null,
    subject text not null,
    closed_fence bigint not null,
    opened_fence bigint not null,
    exclusive_until timestamptz not null,
    primary key (event_id, subject, closed_fence)
);
