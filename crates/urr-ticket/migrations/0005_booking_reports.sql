-- How booking went in the last seconds in each ticket process: whoever is asked answers for all.
create table booking_reports (
    process_id uuid primary key,
    reported_at timestamptz not null,
    answered bigint not null,
    failed bigint not null,
    -- How many took how long: pairs of a bucket and a number.
    by_duration jsonb not null
);
