-- The numbers of waiting rooms by hour in Korea. Totals count from the opening of the room to the end
-- of the hour. A message that comes again, or late, changes nothing.
create table queue_hours (
    event_id uuid not null,
    day text not null,
    hour integer not null,
    waiting_max bigint not null,
    inside_max bigint not null,
    joined_total bigint not null,
    admitted_total bigint not null,
    left_total bigint not null,
    primary key (event_id, day, hour)
);

create index queue_hours_by_day on queue_hours (day);

-- The same by minute, for live boards. Minutes of an event are deleted after two days.
create table queue_minutes (
    event_id uuid not null,
    minute timestamptz not null,
    waiting bigint not null,
    inside bigint not null,
    joined_total bigint not null,
    admitted_total bigint not null,
    left_total bigint not null,
    primary key (event_id, minute)
);
