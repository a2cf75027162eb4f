-- The journal of rooms that live in a process: what must be there again after it was killed.
-- Numbered by the room, so that places are added at the end of the table and taken from its front.
create table journal_rooms (
    room bigint primary key,
    event_id uuid not null,
    -- The newest arrival, those who came in and those who left: also of those who are gone.
    last_number bigint not null,
    admitted_total bigint not null,
    left_total bigint not null,
    -- The last entry of its log of slots.
    logged_total bigint not null default 0
);

create unique index journal_rooms_event on journal_rooms (event_id);

create table places (
    room bigint not null,
    arrival bigint not null,
    user_id uuid not null,
    -- By the draw; null: the arrival is the number.
    drawn bigint,
    primary key (room, arrival)
);

create table slots (
    room bigint not null,
    user_id uuid not null,
    slot_id uuid not null,
    admitted_at timestamptz not null,
    primary key (room, user_id)
);

-- Every admission and every end of a slot, in order. `urr audit` replays it: it proves who was admitted
-- in which order, and how many were inside. It is deleted when nothing was added for 30 days.
create table slot_log (
    event_id uuid not null,
    entry bigint not null,
    change text not null,
    -- Null: the room was cleared.
    user_id uuid,
    at timestamptz not null,
    -- Of an admission: the number in the line (null: nobody waited), the newest number that was
    -- given, and how many might be inside.
    number bigint,
    last_number bigint,
    inside_max bigint,
    primary key (event_id, entry),
    constraint slot_log_change check (change in ('admitted', 'ended', 'cleared'))
);
