-- The last minute for which each room's statistics were published: of several processes one does it.
create table observations (
    event_id uuid primary key,
    minute timestamptz not null
);
