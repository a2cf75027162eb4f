-- Users who wait and asked to be reminded when their admission is near. A sent reminder is deleted.
create table reminders (
    event_id uuid not null,
    user_id uuid not null,
    -- The user's number in the line, so that only users near the front are looked up. Before a draw it
    -- is the lowest number of all, because the real one is not known yet.
    number bigint not null,
    asked_at timestamptz not null,
    primary key (event_id, user_id)
);

create index reminders_by_number on reminders (event_id, number, user_id);
