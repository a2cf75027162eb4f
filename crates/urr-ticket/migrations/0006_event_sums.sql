-- The sums of events that are over, so that figures of everything that was ever sold do not read it.
create table event_sums (
    event_id uuid primary key,
    -- The number of the last change of the event that they include: with another number they are old.
    fence bigint not null,
    -- Confirmed reservations, and what they cost.
    confirmed bigint not null,
    revenue bigint not null
);
