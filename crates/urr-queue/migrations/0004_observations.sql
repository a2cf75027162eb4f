-- Of which minute each room was last told to the statistics: of several processes one tells it.
create table observations (
    event_id uuid primary key,
    minute timestamptz not null
);
