-- What every schema has: events on their way out, events that came in, and who sends them.

create table outbox (
    -- Facts about one aggregate are appended under its row lock, so this number keeps their order.
    seq bigint generated always as identity primary key,
    event_id uuid not null,
    topic text not null,
    key text not null,
    body text not null,
    created_at timestamptz not null,
    published_at timestamptz
);

create unique index outbox_event_id on outbox (event_id);

create index outbox_unpublished on outbox (seq) where published_at is null;

create index outbox_published on outbox (published_at) where published_at is not null;

-- One row: the relay that sends at present. Two at once would be harmless but out of order.
create table outbox_lease (
    id bigint primary key constraint outbox_lease_single check (id = 1),
    holder uuid,
    held_until timestamptz not null
);



create table inbox (
    consumer text not null,
    event_id uuid not null,
    handled_at timestamptz not null,
    primary key (consumer, event_id)
);

create index inbox_handled_at on inbox (handled_at);
