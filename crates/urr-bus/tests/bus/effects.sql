-- What handlers of these tests leave behind.

create table effect (
    number bigint generated always as identity primary key,
    event_id uuid not null,
    seat_id uuid not null,
    step bigint not null
);

create table guarded (
    step bigint primary key constraint guarded_step_is_positive check (step > 0)
);
