-- Audits of everything that a service has: the one that runs now, and what came of the last one.

create table whole_audits (
    name text primary key,
    -- The run under way, and until when it counts as alive.
    run_id uuid,
    run_until timestamptz,
    run_started_at timestamptz,
    -- The last run that ended.
    started_at timestamptz,
    ended_at timestamptz,
    result jsonb,
    constraint whole_audits_run check ((run_id is null) = (run_until is null)
        and (run_id is null) = (run_started_at is null)),
    constraint whole_audits_ended check ((started_at is null) = (ended_at is null)
        and (started_at is null) = (result is null))
);
