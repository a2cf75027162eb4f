//! The tables of facts, read one by one or in pages by id.

use serde_json::Value;
use urr_kernel::Uuid;
use urr_storage::{Row, StorageError, Tx, from_row, params};

use super::day_read;
use crate::domain::{
    CountedMessage, Fact, ReservationFact, ReservationTerms, Transaction, TransactionKind, UserFact,
};
use crate::rebuild::RebuildStage;

/// A fact with a row of its own.
pub trait StoredFact: Fact + PartialEq + Sized {
    /// When a rebuild counts it.
    fn stage(&self) -> RebuildStage;
    /// The stored fact with the same id; none if it is new.
    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Self>, StorageError>;
    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError>;
}

impl StoredFact for CountedMessage {
    fn stage(&self) -> RebuildStage {
        RebuildStage::Messages
    }

    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<CountedMessage>, StorageError> {
        let sql = "select id, day, event_type from counted_messages where id = $1";
        tx.query_opt(sql, params![self.id], counted_message_read)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        tx.execute(
            "insert into counted_messages (id, day, event_type) values ($1, $2, $3) \
             on conflict (id) do update set day = excluded.day, event_type = excluded.event_type",
            params![self.id, self.day.to_string(), self.event_type],
        )?;
        Ok(())
    }
}

impl StoredFact for UserFact {
    fn stage(&self) -> RebuildStage {
        RebuildStage::Users
    }

    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<UserFact>, StorageError> {
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

impl StoredFact for ReservationFact {
    fn stage(&self) -> RebuildStage {
        RebuildStage::Reservations
    }

    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<ReservationFact>, StorageError> {
        reservation_find(tx, self.id)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        let terms = &self.terms;
        let seat_ids = Value::from(terms.seat_ids.clone());
        tx.execute(
            "insert into reservations (id, event_id, user_id, amount, quantity, seat_ids, \
             terms_rank, terms_at, terms_message_id, created_at, hold_ends_at, confirmed_at, \
             cancelled_at, expired_at, refund_amount) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
             on conflict (id) do update set event_id = excluded.event_id, \
             user_id = excluded.user_id, amount = excluded.amount, \
             quantity = excluded.quantity, seat_ids = excluded.seat_ids, \
             terms_rank = excluded.terms_rank, terms_at = excluded.terms_at, \
             terms_message_id = excluded.terms_message_id, \
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

impl StoredFact for Transaction {
    fn stage(&self) -> RebuildStage {
        RebuildStage::Transactions(self.kind)
    }

    fn find(&self, tx: &mut Tx<'_>) -> Result<Option<Transaction>, StorageError> {
        let sql = format!("{TRANSACTIONS} where kind = $1 and id = $2");
        tx.query_opt(&sql, params![self.kind, self.id], transaction_read)
    }

    fn write(&self, tx: &mut Tx<'_>) -> Result<(), StorageError> {
        tx.execute(
            "insert into transactions (kind, id, happened_at, user_id, event_id, amount, method, cause) \
             values ($1, $2, $3, $4, $5, $6, $7, $8) \
             on conflict (kind, id) do update set happened_at = excluded.happened_at, \
             user_id = excluded.user_id, event_id = excluded.event_id, \
             amount = excluded.amount, method = excluded.method, cause = excluded.cause",
            params![
                self.kind,
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
     terms_rank, terms_at, terms_message_id, created_at, hold_ends_at, confirmed_at, cancelled_at, \
     expired_at, refund_amount \
     from reservations";

const TRANSACTIONS: &str =
    "select kind, id, happened_at, user_id, event_id, amount, method, cause from transactions";

pub fn user_find(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<UserFact>, StorageError> {
    let sql = "select id, registered_at, deleted_at from users where id = $1";
    tx.query_opt(sql, params![id], user_read)
}

pub fn reservation_find(
    tx: &mut Tx<'_>,
    id: Uuid,
) -> Result<Option<ReservationFact>, StorageError> {
    tx.query_opt(&format!("{RESERVATIONS} where id = $1"), params![id], reservation_read)
}

/// Reservations by their last message, latest first.
pub fn reservation_latest(
    tx: &mut Tx<'_>,
    limit: u32,
) -> Result<Vec<ReservationFact>, StorageError> {
    let sql = format!("{RESERVATIONS} order by terms_at desc, id desc limit $1");
    tx.query(&sql, params![limit], reservation_read)
}

/// A page of facts in the order of their ids; `after: None` is the first page.
pub struct FactPage {
    pub after: Option<Uuid>,
    pub limit: u32,
}

impl FactPage {
    /// Reads the page from a table or a part of it. The first page has a text of its own, because a
    /// condition for both could not use the index.
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

pub fn counted_message_page(
    tx: &mut Tx<'_>,
    page: &FactPage,
) -> Result<Vec<CountedMessage>, StorageError> {
    page.read(tx, "select id, day, event_type from counted_messages", counted_message_read)
}

pub fn user_page(tx: &mut Tx<'_>, page: &FactPage) -> Result<Vec<UserFact>, StorageError> {
    page.read(tx, "select id, registered_at, deleted_at from users", user_read)
}

pub fn reservation_page(
    tx: &mut Tx<'_>,
    page: &FactPage,
) -> Result<Vec<ReservationFact>, StorageError> {
    page.read(tx, RESERVATIONS, reservation_read)
}

pub fn transaction_page(
    tx: &mut Tx<'_>,
    kind: TransactionKind,
    page: &FactPage,
) -> Result<Vec<Transaction>, StorageError> {
    // The name is a constant of ours, so it is safe in the text.
    let name = kind.as_str();
    page.read(tx, &format!("{TRANSACTIONS} where kind = '{name}'"), transaction_read)
}

fn counted_message_read(row: &Row<'_>) -> Result<CountedMessage, StorageError> {
    let day = day_read(row)?;
    Ok(CountedMessage { id: row.get("id")?, day, event_type: row.get("event_type")? })
}

fn user_read(row: &Row<'_>) -> Result<UserFact, StorageError> {
    Ok(UserFact {
        id: row.get("id")?,
        registered_at: row.get("registered_at")?,
        deleted_at: row.get("deleted_at")?,
    })
}

fn reservation_read(row: &Row<'_>) -> Result<ReservationFact, StorageError> {
    Ok(from_row!(row => ReservationFact {
        id, created_at, hold_ends_at, confirmed_at, cancelled_at, expired_at, refund_amount;
        terms: from_row!(row => ReservationTerms {
            event_id, user_id, amount, quantity;
            rank: row.get("terms_rank")?,
            at: row.get("terms_at")?,
            message_id: row.get("terms_message_id")?,
            seat_ids: row.get_json("seat_ids")?,
        }),
    }))
}

fn transaction_read(row: &Row<'_>) -> Result<Transaction, StorageError> {
    Ok(from_row!(row => Transaction {
        kind, id, user_id, event_id, amount, method, cause;
        at: row.get("happened_at")?,
    }))
}

#[cfg(test)]
mod tests {
    use urr_storage::Value;
    use urr_test::engines::{Database, Engine, block_on};

    use super::*;
    use crate::SCHEMA;

    /// A rebuild reads millions of facts: each page begins where the last one ended.
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
            let transactions = format!("{TRANSACTIONS} where kind = 'charge'");
            let tables = [
                "select id from counted_messages",
                "select id from users",
                RESERVATIONS,
                &transactions,
            ];
            let page = FactPage { after: Some(Uuid::nil()), limit: 10 };
            let values = [Value::Int(10), Value::Uuid(Uuid::nil())];
            let plan = |table: &&str| {
                let sql = format!("{word} {}", page.sql(table));
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
    fn a_page_of_facts_is_found_by_its_index_on_sqlite() {
        check(Engine::Sqlite);
    }

    #[test]
    fn a_page_of_facts_is_found_by_its_index_on_postgres() {
        check(Engine::Postgres);
    }
}
