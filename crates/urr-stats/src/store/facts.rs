//! The facts: read, written, and gone through in the order of their ids.

use serde_json::Value;
use urr_kernel::Uuid;
use urr_storage::{Row, StorageError, Tx, params};

use super::day_of;
use crate::domain::{Deed, DeedKind, Heard, Reservation, Terms, User};

/// Facts that are kept one row each.
pub trait Fact: Clone + PartialEq + Sized {
    /// As it is known; nothing if it is new.
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Self>, StorageError>;
    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError>;
}

impl Fact for Heard {
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Heard>, StorageError> {
        let sql = "select id, day, event_type from heard where id = $1";
        tx.query_opt(sql, params![self.id], heard)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        tx.execute(
            "insert into heard (id, day, event_type) values ($1, $2, $3) \
             on conflict (id) do update set day = excluded.day, event_type = excluded.event_type",
            params![self.id, self.day.to_string(), self.event_type],
        )?;
        Ok(())
    }
}

impl Fact for User {
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<User>, StorageError> {
        user_find(tx, self.id)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        tx.execute(
            "insert into users (id, registered_at, deleted_at) values ($1, $2, $3) \
             on conflict (id) do update set registered_at = excluded.registered_at, \
             deleted_at = excluded.deleted_at",
            params![self.id, self.registered_at, self.deleted_at],
        )?;
        Ok(())
    }
}

impl Fact for Reservation {
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Reservation>, StorageError> {
        reservation_find(tx, self.id)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        let terms = &self.terms;
        let seat_ids = Value::from(terms.seat_ids.clone());
        tx.execute(
            "insert into reservations (id, event_id, user_id, amount, quantity, seat_ids, \
             facts_rank, facts_at, facts_id, created_at, hold_ends_at, confirmed_at, \
             cancelled_at, expired_at, refund_amount) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
             on conflict (id) do update set event_id = excluded.event_id, \
             user_id = excluded.user_id, amount = excluded.amount, \
             quantity = excluded.quantity, seat_ids = excluded.seat_ids, \
             facts_rank = excluded.facts_rank, facts_at = excluded.facts_at, \
             facts_id = excluded.facts_id, \
             created_at = excluded.created_at, hold_ends_at = excluded.hold_ends_at, \
             confirmed_at = excluded.confirmed_at, cancelled_at = excluded.cancelled_at, \
             expired_at = excluded.expired_at, refund_amount = excluded.refund_amount",
            params![
                self.id,
                terms.event_id,
                terms.user_id,
                terms.amount,
                terms.quantity,
                seat_ids,
                terms.rank,
                terms.at,
                terms.message_id,
                self.created_at,
                self.hold_ends_at,
                self.confirmed_at,
                self.cancelled_at,
                self.expired_at,
                self.refund_amount,
            ],
        )?;
        Ok(())
    }
}

impl Fact for Deed {
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Deed>, StorageError> {
        let sql = format!("{DEEDS} where kind = $1 and id = $2");
        tx.query_opt(&sql, params![self.kind.name(), self.id], deed)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        tx.execute(
            "insert into deeds (kind, id, happened_at, user_id, event_id, amount, method, cause) \
             values ($1, $2, $3, $4, $5, $6, $7, $8) \
             on conflict (kind, id) do update set happened_at = excluded.happened_at, \
             user_id = excluded.user_id, event_id = excluded.event_id, \
             amount = excluded.amount, method = excluded.method, cause = excluded.cause",
            params![
                self.kind.name(),
                self.id,
                self.at,
                self.user_id,
                self.event_id,
                self.amount,
                self.method,
                self.cause,
            ],
        )?;
        Ok(())
    }
}

const RESERVATIONS: &str = "select id, event_id, user_id, amount, quantity, seat_ids, \
     facts_rank, facts_at, facts_id, created_at, hold_ends_at, confirmed_at, cancelled_at, \
     expired_at, refund_amount \
     from reservations";

const DEEDS: &str =
    "select kind, id, happened_at, user_id, event_id, amount, method, cause from deeds";

pub fn user_find(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<User>, StorageError> {
    let sql = "select id, registered_at, deleted_at from users where id = $1";
    tx.query_opt(sql, params![id], user)
}

pub fn reservation_find(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Reservation>, StorageError> {
    tx.query_opt(&format!("{RESERVATIONS} where id = $1"), params![id], reservation)
}

/// Reservations by when something was last heard of them, latest first.
pub fn reservation_latest(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<Reservation>, StorageError> {
    let sql = format!("{RESERVATIONS} order by facts_at desc, id desc limit $1");
    tx.query(&sql, params![limit], reservation)
}

/// So many facts with ids after this one; before the first one there is `None`.
pub struct Stretch {
    pub after: Option<Uuid>,
    pub limit: u32,
}

impl Stretch {
    /// The facts of a table, or of a part of it, in the order of their ids. From the first one on
    /// and after another one are two texts: of one for both no index could be used.
    fn read<T>(
        &self,
        tx: &mut Tx<'_>,
        from: &str,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Result<Vec<T>, StorageError> {
        let (sql, limit) = (self.sql(from), self.limit);
        match self.after {
            Some(after) => tx.query(&sql, params![limit, after], read),
            None => tx.query(&sql, params![limit], read),
        }
    }

    pub(super) fn sql(&self, from: &str) -> String {
        let word = if from.contains(" where ") { "and" } else { "where" };
        match self.after {
            Some(_) => format!("{from} {word} id > $2 order by id limit $1"),
            None => format!("{from} order by id limit $1"),
        }
    }
}

pub fn heard_page(tx: &mut Tx<'_>, stretch: &Stretch) -> Result<Vec<Heard>, StorageError> {
    stretch.read(tx, "select id, day, event_type from heard", heard)
}

pub fn user_page(tx: &mut Tx<'_>, stretch: &Stretch) -> Result<Vec<User>, StorageError> {
    stretch.read(tx, "select id, registered_at, deleted_at from users", user)
}

pub fn reservation_page(
    tx: &mut Tx<'_>,
    stretch: &Stretch,
) -> Result<Vec<Reservation>, StorageError> {
    stretch.read(tx, RESERVATIONS, reservation)
}

pub fn deed_page(
    tx: &mut Tx<'_>,
    kind: DeedKind,
    stretch: &Stretch,
) -> Result<Vec<Deed>, StorageError> {
    // The name is one of ours and no text of anybody else.
    let name = kind.name();
    stretch.read(tx, &format!("{DEEDS} where kind = '{name}'"), deed)
}

fn heard(row: &Row<'_>) -> Result<Heard, StorageError> {
    let day = day_of(&row.get::<String>("day")?);
    Ok(Heard { id: row.get("id")?, day, event_type: row.get("event_type")? })
}

fn user(row: &Row<'_>) -> Result<User, StorageError> {
    Ok(User {
        id: row.get("id")?,
        registered_at: row.get("registered_at")?,
        deleted_at: row.get("deleted_at")?,
    })
}

fn reservation(row: &Row<'_>) -> Result<Reservation, StorageError> {
    let seat_ids: Value = row.get("seat_ids")?;
    Ok(Reservation {
        id: row.get("id")?,
        terms: Terms {
            rank: row.get("facts_rank")?,
            at: row.get("facts_at")?,
            message_id: row.get("facts_id")?,
            event_id: row.get("event_id")?,
            user_id: row.get("user_id")?,
            amount: row.get("amount")?,
            quantity: row.get("quantity")?,
            seat_ids: serde_json::from_value(seat_ids).expect("only numbers are stored"),
        },
        created_at: row.get("created_at")?,
        hold_ends_at: row.get("hold_ends_at")?,
        confirmed_at: row.get("confirmed_at")?,
        cancelled_at: row.get("cancelled_at")?,
        expired_at: row.get("expired_at")?,
        refund_amount: row.get("refund_amount")?,
    })
}

fn deed(row: &Row<'_>) -> Result<Deed, StorageError> {
    let kind: String = row.get("kind")?;
    let kind = DeedKind::ALL.into_iter().find(|known| known.name() == kind);
    Ok(Deed {
        kind: kind.expect("only names of kinds are stored"),
        id: row.get("id")?,
        at: row.get("happened_at")?,
        user_id: row.get("user_id")?,
        event_id: row.get("event_id")?,
        amount: row.get("amount")?,
        method: row.get("method")?,
        cause: row.get("cause")?,
    })
}

#[cfg(test)]
mod tests {
    use urr_storage::Value;
    use urr_test::engines::{Database, Engine, block_on};

    use super::*;
    use crate::SCHEMA;

    /// A rebuild goes through millions of them: each stretch begins where the last one ended.
    fn check(engine: Engine) {
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        let Some(database) = Database::open(engine, &SCHEMA, now) else { return };
        let explain = |tx: &mut Tx<'_>| {
            let (word, column) = match tx.is_postgres() {
                true => ("explain", "QUERY PLAN"),
                false => ("explain query plan", "detail"),
            };
            if tx.is_postgres() {
                tx.execute("set local enable_seqscan = off", &[])?;
            }
            let deeds = format!("{DEEDS} where kind = 'charge'");
            let tables = ["select id from heard", "select id from users", RESERVATIONS, &deeds];
            let stretch = Stretch { after: Some(Uuid::nil()), limit: 10 };
            let values = [Value::Int(10), Value::Uuid(Uuid::nil())];
            let plan = |table: &&str| {
                let sql = format!("{word} {}", stretch.sql(table));
                Ok(tx.query(&sql, &values, |row| row.get::<String>(column))?.join(" "))
            };
            tables.iter().map(plan).collect()
        };
        block_on(async {
            let plans: Result<Vec<String>, StorageError> = database.db.read(explain).await;
            for plan in plans.unwrap() {
                // SQLite names what it looks for, PostgreSQL what it compares the index with.
                let is_found = ["id>?", "Index Cond: (id >", "Index Cond: ((kind ="];
                assert!(is_found.iter().any(|word| plan.contains(word)), "{plan}");
            }
        });
    }

    #[test]
    fn a_stretch_of_facts_is_found_by_its_index_on_sqlite() {
        check(Engine::Sqlite);
    }

    #[test]
    fn a_stretch_of_facts_is_found_by_its_index_on_postgres() {
        check(Engine::Postgres);
    }
}
