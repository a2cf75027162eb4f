-- Artists as the catalog last announced them.
create table artists (
    id uuid primary key,
    name text not null,
    membership_price bigint not null,
    -- When the catalog announced it; older announcements do not overwrite it.
    announced_at timestamptz not null,
    constraint artists_membership_price check (membership_price >= 0)
);

-- A membership is `pending` until it is paid for the first time, and `active` from then on: whether
-- it counts is decided by `expires_at`. Its tier follows from its points, as far as they count.
alter table memberships add column points bigint not null default 0
    constraint memberships_points check (points >= 0);
-- Points of purchases that can still be cancelled for free: they do not count yet.
alter table memberships add column pending_points bigint not null default 0
    constraint memberships_pending_points check (pending_points >= 0);
-- The number of its last term, paid or not.
alter table memberships add column term bigint not null default 0;
alter table memberships add column joined_at timestamptz;
-- The attempts to pay for a term that have released it: a late copy of their pin has no effect.
alter table memberships add column ended_attempts jsonb;
-- Whether its beginning was announced and its end was not yet.
alter table memberships add column is_live boolean not null default false;

-- The members of an artist, for organisers.
create index memberships_of_artist on memberships (artist_id, id);
create index memberships_to_end on memberships (expires_at, id) where is_live;

-- The years of a membership: the last one may be for sale, those before it were sold.
create table membership_terms (
    membership_id uuid not null,
    -- The fencing token: a payment names the term that it is for.
    number bigint not null,
    payment_status text not null,
    -- What is charged; fixed when a payment begins.
    amount bigint,
    pinned_by uuid,
    pinned_at timestamptz,
    payment_id uuid,
    payment_method text,
    starts_at timestamptz,
    ends_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (membership_id, number),
    constraint membership_terms_payment_status
        check (payment_status in ('unpaid', 'paid', 'refunded')),
    constraint membership_terms_pin check ((pinned_by is null) = (pinned_at is null)),
    constraint membership_terms_pinned check (pinned_by is null or payment_status = 'unpaid'),
    constraint membership_terms_paid check (payment_status = 'unpaid' or (payment_id is not null
        and amount is not null and starts_at is not null and ends_at is not null)),
    constraint membership_terms_amount check (amount is null or amount >= 0)
);

-- A payment buys one term.
create unique index membership_terms_payment on membership_terms (payment_id)
    where payment_id is not null;
-- One term at most is for sale.
create unique index membership_terms_one_unpaid on membership_terms (membership_id)
    where payment_status = 'unpaid';

-- Points that were given or taken back. Nothing is ever deleted: a balance is a sum.
create table membership_points (
    membership_id uuid not null,
    action text not null,
    -- What they were given for: a payment, a reservation, a post.
    reference_id uuid not null,
    points bigint not null,
    created_at timestamptz not null,
    -- When it is to be looked at whether they count, and whether they do.
    settles_at timestamptz not null,
    is_settled boolean not null,
    constraint membership_points_action check (length(action) <= 50)
);

-- Each once.
create unique index membership_points_once
    on membership_points (membership_id, action, reference_id);
create index membership_points_by_time on membership_points (membership_id, created_at);
create index membership_points_of_reference on membership_points (reference_id);
create index membership_points_to_settle on membership_points (settles_at, reference_id)
    where not is_settled;
