-- The reservations of an event in the order of making: without it a page of an old event reads all that
-- were made since. An operator of a large shop may build it beforehand, without stopping sales.
create index if not exists reservations_of_event on reservations (event_id, id);
