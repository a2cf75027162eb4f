-- A pre-sale was put before the sale of people who wait already: they are sent home, and until then
-- nobody is let in.
alter table rooms add column awaits_clearing boolean not null default false;

-- What ended long ago is not read any more.
create index rooms_by_end on rooms (sale_ends_at);
