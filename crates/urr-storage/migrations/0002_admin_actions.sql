-- The admin log of a service: what administrators did, written in the transaction of what they did.

create table admin_actions (
    id uuid primary key,
    -- Null: an operator, by the command line.
    admin_id uuid,
    action text not null,
    resource_type text not null,
    resource_id text not null,
    summary text not null,
    details jsonb,
    created_at timestamptz not null
);

create index admin_actions_by_time on admin_actions (created_at, id);

create index admin_actions_of_resource on admin_actions (resource_id, created_at);

create index admin_actions_of_admin on admin_actions (admin_id, created_at);
