-- Whether a hold is pinned is not in the index, so that pinning changes none. Few pinned holds are overdue:
-- those whose payment is not settled for minutes. A large shop may build it beforehand.
create index if not exists reservations_expiring on reservations (expires_at, id) where status = 'pending';

drop index reservations_overdue;

-- The pinned version of a hold fits into the page of the old one.
-- only: postgres
alter table reservations set (fillfactor = 70);
