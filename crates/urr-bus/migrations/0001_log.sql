-- The embedded bus: a log per partition, and how far each group of consumers has come.

create table bus_partition (
    topic text not null,
    partition integer not null,
    -- The offset of the next message. Kept apart from the messages, which are trimmed.
    next_offset bigint not null,
    retention_ms bigint not null,
    primary key (topic, partition)
);

create table bus_message (
    topic text not null,
    partition integer not null,
    message_offset bigint not null,
    key bytea not null,
    body bytea not null,
    headers jsonb not null,
    appended_at timestamptz not null,
    primary key (topic, partition, message_offset)
);

create table bus_group_offset (
    consumer_group text not null,
    topic text not null,
    partition integer not null,
    -- The first offset that the group has not acknowledged.
    next_offset bigint not null,
    primary key (consumer_group, topic, partition)
);
