-- How many events of each type happened on each day.

create table activity (
    -- The day in Korea, written 2026-11-15.
    day text not null,
    event_type text not null,
    total bigint not null,
    primary key (day, event_type)
);
