alter table artists add column image_url text not null default '';

-- Memberships as the ticket service announced them last.
create table artist_members (
    membership_id uuid primary key,
    artist_id uuid not null,
    is_live boolean not null,
    announced_at timestamptz not null
);

create index artist_members_live on artist_members (artist_id) where is_live;

-- Counts the changes that readers can see. A process drops cached responses of an older revision.
create table catalog_revision (
    id smallint primary key,
    revision bigint not null,
    constraint catalog_revision_one check (id = 1)
);

insert into catalog_revision (id, revision) values (1, 1);

create table venues (
    id uuid primary key,
    name text not null,
    address text not null,
    description text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);

create unique index venues_name on venues (name);

-- A hall is a template of seats. An event keeps the seats that it was created with.
create table halls (
    id uuid primary key,
    venue_id uuid not null references venues (id),
    name text not null,
    description text not null,
    layout jsonb not null,
    -- The grid that the layout was made from, if any.
    grid jsonb,
    -- A summary of the layout; the grades are a list.
    seats_total integer not null,
    grades jsonb not null,
    -- The organiser or administrator who added it.
    creator_id uuid not null,
    -- Grows with every change; editors compare it.
    revision bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint halls_seats_total check (seats_total > 0)
);

create unique index halls_name on halls (venue_id, name);

create table events (
    id uuid primary key,
    -- Grows with every change; consumers and editors compare it.
    revision bigint not null,
    title text not null,
    description text not null,
    kind text not null,
    -- The status of the last announcement. Readers see the one that follows from the times.
    status text not null,
    artist_id uuid references artists (id),
    venue_id uuid not null references venues (id),
    hall_id uuid references halls (id),
    starts_at timestamptz not null,
    sale_starts_at timestamptz not null,
    sale_ends_at timestamptz not null,
    has_presale boolean not null,
    seats_per_user_max integer not null,
    -- Whether only persons with a checked identity may buy.
    requires_identity boolean not null,
    -- Whether a ticket that was checked out admits again.
    allows_reentry boolean not null,
    -- Whose event it is.
    organiser_id uuid not null,
    poster_image_url text not null,
    -- Cancellation fees of its own; null means the usual ones.
    cancel_policy jsonb,
    age_rating text not null,
    running_minutes integer,
    notices text not null,
    -- Who performs, with their roles, in the order in which they are shown.
    casting jsonb not null,
    -- By grade; empty for standing events.
    prices jsonb not null,
    price_min bigint not null,
    price_max bigint not null,
    -- What was ordered from the ticket service: seats, kinds of tickets, and all places together.
    seats_ordered integer not null,
    ticket_types_ordered integer not null,
    places_ordered bigint not null,
    -- All places as the ticket service has them now.
    capacity bigint not null,
    inventory_ready boolean not null,
    inventory_problem text not null,
    cancel_reason text not null,
    -- Lower-case words of title, artist, venue and address, and their initial consonants.
    search_text text not null,
    created_by uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    constraint events_kind check (kind in ('seated', 'standing')),
    constraint events_hall check ((kind = 'seated') = (hall_id is not null)),
    constraint events_status check (status in ('upcoming', 'on_sale', 'ended', 'cancelled')),
    constraint events_window check (sale_starts_at < sale_ends_at and sale_ends_at <= starts_at),
    constraint events_age_rating check (age_rating in ('all', '7', '12', '15', '19')),
    constraint events_running_minutes check (running_minutes between 1 and 1440),
    constraint events_prices check (0 <= price_min and price_min <= price_max),
    constraint events_seats_per_user_max check (seats_per_user_max between 1 and 10)
);

create index events_by_sale_start on events (sale_starts_at, id) where deleted_at is null;
create index events_by_date on events (starts_at, id) where deleted_at is null;
create index events_by_title on events (title collate "C", id) where deleted_at is null;
create index events_of_artist on events (artist_id, starts_at);
create index events_of_organiser on events (organiser_id, id);
create index events_of_venue on events (venue_id);
create index events_of_hall on events (hall_id);
-- The job that announces statuses uses these.
create index events_to_open on events (sale_starts_at)
    where status = 'upcoming' and deleted_at is null;
create index events_to_end on events (sale_ends_at)
    where status in ('upcoming', 'on_sale') and deleted_at is null;

create table event_ticket_types (
    id uuid primary key,
    event_id uuid not null references events (id),
    position smallint not null,
    name text not null,
    description text not null,
    price bigint not null,
    total integer not null,
    -- The ticket service's number of the change that it shows; older ones do not overwrite it.
    fence bigint not null,
    constraint event_ticket_types_price check (price >= 0),
    constraint event_ticket_types_total check (total > 0)
);

-- Names are not unique here: the ticket service checks that, and its changes may arrive in another
-- order.
create index event_ticket_types_of_event on event_ticket_types (event_id, position);

-- Every letter and every pair of neighbouring letters in the search text of an event.
create table event_grams (
    gram text not null,
    event_id uuid not null references events (id),
    primary key (gram, event_id)
);

create index event_grams_of_event on event_grams (event_id);

-- The id is the SHA-256 of the bytes, so that an image is stored once.
create table images (
    id text primary key,
    content_type text not null,
    width integer not null,
    height integer not null,
    bytes bytea not null,
    created_by uuid not null,
    created_at timestamptz not null,
    -- A fan's, which is deleted when no post shows it.
    is_of_fan boolean not null
);

create index images_of_fans on images (created_at, id) where is_of_fan;

-- When a post has changed its pictures last: older announcements do not overwrite newer ones.
create table picture_posts (
    post_id uuid primary key,
    announced_at timestamptz not null
);

create table post_pictures (
    post_id uuid not null references picture_posts (post_id),
    image_id text not null,
    shown_since timestamptz not null,
    primary key (post_id, image_id)
);

create index post_pictures_of_image on post_pictures (image_id);

-- How much fans have uploaded in their current hour.
create table fan_uploads (
    user_id uuid primary key,
    since timestamptz not null,
    uploads integer not null
);
