-- Those who wait and want to be told when their turn is near. Who was told is not here any more.
create table reminders (
    event_id uuid not null,
    user_id uuid not null,
    -- Of their place, so that only those are looked for who may be near. Who asked before a draw has
    -- the lowest of all: theirs is not known yet.
    number bigint not null,
    asked_at timestamptz not null,
    primary key (event_id, user_id)
);

create index reminders_by_number on reminders (event_id, number, user_id);
