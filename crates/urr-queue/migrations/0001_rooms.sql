-- Each event with the settings of its waiting room. The users who wait are in the room itself, not
-- here.
create table rooms (
    event_id uuid primary key,
    -- The catalog's revision: an older update does not overwrite a newer one. 0 if only the end of
    -- the event was announced so far.
    revision bigint not null,
    status text not null,
    title text not null,
    artist_id uuid,
    artist_name text,
    -- Whose event it is; null if the catalog did not say.
    organiser_id uuid,
    sale_starts_at timestamptz,
    sale_ends_at timestamptz,
    has_presale boolean not null,
    -- The organiser's room settings; null stands for the default of the installation.
    threshold integer,
    admitted_per_second_max integer,
    gathering_seconds integer,
    -- fifo or lottery.
    opening text not null,
    is_paused boolean not null,
    has_autopilot boolean not null,
    message text,
    updated_at timestamptz not null,
    constraint rooms_status check (status in ('open', 'deleted', 'cancelled')),
    constraint rooms_opening check (opening in ('fifo', 'lottery')),
    constraint rooms_threshold check (threshold > 0),
    constraint rooms_rate check (admitted_per_second_max > 0),
    constraint rooms_gathering check (gathering_seconds >= 0)
);

-- Counts every change of a room: a process that has an older number loads the rooms again.
create table rooms_revision (
    id smallint primary key,
    revision bigint not null,
    constraint rooms_revision_one check (id = 1)
);

insert into rooms_revision (id, revision) values (1, 1);

-- A draw: committed before anybody joins, closed at the opening, done when all entrants have their
-- numbers.
create table draws (
    event_id uuid primary key references rooms (event_id),
    -- Encrypted: whoever reads the table before the draw must not know the order.
    sealed_secret bytea not null,
    commitment bytea not null,
    committed_at timestamptz not null,
    -- The last arrival that takes part; null before the opening.
    last_number bigint,
    closed_at timestamptz,
    -- Null until the entrants are read.
    entrants_count integer,
    entrants_digest bytea,
    arrivals_digest bytea,
    fixed_at timestamptz,
    -- The public value that decided, as in the file. Null until the entrants are in drawn order.
    beacon text,
    -- Null until all entrants have their numbers.
    done_at timestamptz
);

-- The entrants in the order of arrival, and from the draw on in drawn order, several thousand per row:
-- the tag and the arrival number of each.
create table draw_entrants (
    event_id uuid not null references draws (event_id),
    part integer not null,
    entrants bytea not null,
    primary key (event_id, part)
);

-- Purchases after which the buyer's slot has to end, until it has ended.
create table slot_ends (
    reservation_id uuid primary key,
    event_id uuid not null,
    user_id uuid not null,
    bought_at timestamptz not null
);
