-- A pre-sale was added after users had joined: the room is cleared, and until then nobody is
-- admitted.
alter table rooms add column awaits_clearing boolean not null default false;

-- Events that ended long ago are not loaded.
create index rooms_by_end on rooms (sale_ends_at);
