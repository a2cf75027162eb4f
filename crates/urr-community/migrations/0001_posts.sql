-- Artists as the catalogue announced them last. Each has a board.
create table artists (
    id uuid primary key,
    name text not null,
    announced_at timestamptz not null
);

-- Whose events an artist plays. An organiser with a live event writes the artist's news and
-- moderates the board.
create table artist_events (
    event_id uuid primary key,
    artist_id uuid,
    organiser_id uuid,
    -- Older announcements do not overwrite newer ones.
    revision bigint not null,
    is_live boolean not null
);

create index artist_events_of_organiser on artist_events (organiser_id, artist_id) where is_live;

-- Posts of fans and news. Deleted ones lose their text at once and their row a day later: until
-- then they count for the limit of their author.
create table posts (
    id uuid primary key,
    kind text not null,
    -- Null for news about everything.
    artist_id uuid,
    -- Null when the account was closed.
    author_id uuid,
    title text not null,
    content text not null,
    -- Addresses with what they show, in words.
    images jsonb not null,
    status text not null,
    is_pinned boolean not null,
    views bigint not null,
    -- Visible ones.
    comment_count bigint not null,
    created_at timestamptz not null,
    edited_at timestamptz,
    deleted_at timestamptz,
    -- The normalised title, to find it by.
    search_text text not null,
    constraint posts_kind check (kind in ('post', 'news')),
    constraint posts_board check (kind = 'news' or artist_id is not null),
    constraint posts_status check (status in ('visible', 'hidden', 'deleted')),
    constraint posts_deleted check ((status = 'deleted') = (deleted_at is not null)),
    constraint posts_counts check (views >= 0 and comment_count >= 0)
);

-- Ids grow with time, so a page continues after the id of the last one.
create index posts_by_kind on posts (kind, id) where status = 'visible';
create index posts_of_artist on posts (artist_id, kind, id) where status = 'visible';
create index posts_pinned on posts (artist_id, kind, id) where status = 'visible' and is_pinned;
create index posts_of_author on posts (author_id, created_at);
create index posts_to_purge on posts (deleted_at, id) where status = 'deleted';

-- Every letter and every pair of neighbouring letters in the title of a post.
create table post_grams (
    gram text not null,
    post_id uuid not null references posts (id),
    primary key (gram, post_id)
);

create index post_grams_of_post on post_grams (post_id);

create table comments (
    id uuid primary key,
    post_id uuid not null references posts (id),
    -- Null when the account was closed.
    author_id uuid,
    content text not null,
    status text not null,
    created_at timestamptz not null,
    edited_at timestamptz,
    deleted_at timestamptz,
    constraint comments_status check (status in ('visible', 'hidden', 'deleted')),
    constraint comments_deleted check ((status = 'deleted') = (deleted_at is not null))
);

create index comments_of_post on comments (post_id, status, id);
create index comments_of_author on comments (author_id, created_at);
create index comments_to_purge on comments (deleted_at, id) where status = 'deleted';

create table reports (
    id uuid primary key,
    post_id uuid not null,
    -- Null: the post itself was reported.
    comment_id uuid,
    -- The comment, or else the post.
    subject_id uuid not null,
    artist_id uuid,
    -- Null when the account was closed.
    reporter_id uuid,
    reason text not null,
    note text not null,
    -- Until a moderator has decided.
    is_open boolean not null,
    created_at timestamptz not null,
    constraint reports_reason check (reason in ('spam', 'abuse', 'sexual', 'personal_data',
        'resale', 'other'))
);

-- The last guard: a user reports a post or comment once.
create unique index reports_once on reports (subject_id, reporter_id);
create index reports_by_state on reports (is_open, id);
create index reports_of_artist on reports (artist_id, is_open, id);
create index reports_of_reporter on reports (reporter_id, created_at);

-- One row per post or comment that earns points: what the ticket service is still to be told.
create table point_awards (
    -- The post or comment.
    reference_id uuid primary key,
    user_id uuid not null,
    artist_id uuid,
    action text not null,
    step text not null,
    -- The post or comment was deleted.
    is_withdrawn boolean not null,
    -- How many calls began in all.
    attempts bigint not null,
    due_at timestamptz not null,
    -- Until then no other process makes the call.
    leased_until timestamptz,
    last_error text,
    created_at timestamptz not null,
    constraint point_awards_step check (step in ('award', 'return', 'done'))
);

create index point_awards_due on point_awards (due_at, reference_id) where step <> 'done';
