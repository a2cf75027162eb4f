-- What proves that it is really they: a recent login, and who left lately.

-- When the login happened that began the session; the same for all of its tokens. Null for sessions
-- that began before this was written down: they count as old.
alter table refresh_tokens add column login_at timestamptz;

-- People whose verified account was deleted lately. Only the keyed hash of their `ci` is kept, so
-- that they can be recognised and not named.
create table departed_people (
    ci_index bytea primary key,
    kept_until timestamptz not null
);

create index departed_people_kept_until on departed_people (kept_until);
