-- The journal of rooms that live in a process: what must be there again after it was killed.
-- Numbered by the room, so that places are added at the end of the table and taken from its front.
create table journal_rooms (
    room bigint primary key,
    event_id uuid not null,
    -- The newest arrival, those who came in and those who left: also of those who are gone.
    last_number bigint not null,
    admitted_total bigint not null,
    left_total bigint not null
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
