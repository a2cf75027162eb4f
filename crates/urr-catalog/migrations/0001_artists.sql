create table artists (
    id uuid primary key,
    name text not null,
    description text not null,
    membership_price bigint not null,
    created_at timestamptz not null,
    constraint artists_membership_price check (membership_price >= 0)
);

create unique index artists_name on artists (name);
