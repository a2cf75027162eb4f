-- Tables for the contract: one of every type, one of every guard.

create table samples (
    id uuid primary key,
    amount bigint,
    small integer,
    flag boolean,
    label text,
    document jsonb,
    payload bytea,
    made_at timestamptz
);

create table events (
    id bigint primary key,
    title text not null
);

create table seats (
    id bigint primary key,
    event_id bigint not null references events (id),
    number bigint not null,
    holder bigint,
    version bigint not null default 0,
    available bigint not null default 1,
    constraint seats_available_range check (available >= 0 and available <= 1)
);

create unique index seats_number on seats (event_id, number);

-- At most one live hold per seat.
create table holds (
    id bigint primary key,
    seat_id bigint not null,
    status text not null
);

create unique index holds_one_live_per_seat on holds (seat_id) where status = 'live';

create table numbers (
    n bigint primary key
);
