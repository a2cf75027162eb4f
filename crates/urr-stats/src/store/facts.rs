//! The tables of facts, read one by one or in pages by id.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;
use urr_contracts::internal::auth::AccountRole;
use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use super::day_read;
use crate::domain::{
    CountedMessage, Fact, ReservationFact, ReservationTerms, Transaction, TransactionKind, UserFact,
};
use crate::rebuild::RebuildStage;

/// A table with one row per fact.
pub struct FactTable {
    name: &'static str,
    key: &'static str,
    /// With commas between them.
    columns: &'static str,
    /// The types of the columns, in their order.
    types: &'static str,
}

impl FactTable {
    fn select(&self) -> String {
        format!("select {} from {}", self.columns, self.name)
    }

    /// Inserts or replaces a row. `values` are in the order of the columns.
    fn write(&self, tx: &mut Tx<'_>, values: &[Value<'_>]) -> DbResult<()> {
        let (FactTable { name, columns, .. }, replace) = (self, self.replace());
        let number = |number| format!("${number}");
        let numbers = (1..=values.len()).map(number).collect::<Vec<String>>().join(", ");
        let sql = format!("insert into {name} ({columns}) values ({numbers}) {replace}");
        tx.execute_later(&sql, values)
    }

    fn replace(&self) -> String {
        let set = |column| format!("{column} = excluded.{column}");
        let sets = self.columns.split(", ").map(set).collect::<Vec<String>>().join(", ");
        format!("on conflict ({}) do update set {sets}", self.key)
    }

    /// The same for many rows with different keys: on PostgreSQL by one statement.
    fn write_all<'a, F: StoredFact + 'a>(
        &self,
        tx: &mut Tx<'_>,
        mut facts: impl Iterator<Item = &'a F>,
    ) -> DbResult<()> {
        if !tx.is_postgres() {
            return facts.try_for_each(|fact| fact.write(tx));
        }
        let rows: Vec<Json> = facts.map(|fact| fact.with_values(|it| self.row(it))).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let (FactTable { name, columns, .. }, replace) = (self, self.replace());
        let typed = columns.split(", ").zip(self.types.split(", "));
        let typed = typed.map(|(column, of)| format!("{column} {of}")).collect::<Vec<String>>();
        let sql = format!(
            "insert into {name} ({columns}) select {columns} \
             from jsonb_to_recordset($1) as fact ({}) {replace}",
            typed.join(", ")
        );
        tx.execute_later(&sql, params![Json::from(rows)])
    }

    fn row(&self, values: &[Value<'_>]) -> Json {
        let columns = self.columns.split(", ").map(str::to_owned);
        Json::Object(columns.zip(values.iter().map(to_json)).collect())
    }
}

fn to_json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::from(*value),
        Value::Int(value) => Json::from(*value),
        Value::Text(value) => Json::from(*value),
        Value::Uuid(value) => Json::from(value.to_string()),
        Value::Time(value) => Json::from(value.to_string()),
        Value::Json(value) => (*value).clone(),
        Value::Bytes(_) => unreachable!("facts have no bytes"),
    }
}

/// Facts of one kind in one transaction: they are read at once and each is written once, at the end.
pub struct FactSet<F> {
    /// What is stored or will be; none: it is not stored.
    known: HashMap<Uuid, Option<F>>,
    changed: HashSet<Uuid>,
}

impl<F> Default for FactSet<F> {
    fn default() -> FactSet<F> {
        FactSet { known: HashMap::new(), changed: HashSet::new() }
    }
}

impl<F: StoredFact + Clone> FactSet<F> {
    /// Reads facts that will be asked for. `filter` is a condition on the other columns of the key.
    /// On SQLite, where a statement costs no round trip, each is read when it is asked for.
    pub fn load(&mut self, tx: &mut Tx<'_>, ids: &HashSet<Uuid>, filter: &str) -> DbResult<()> {
        if !tx.is_postgres() || ids.is_empty() {
            return Ok(());
        }
        let list = ids.iter().map(Uuid::to_string).collect::<Vec<String>>().join(",");
        // `offset 0` keeps the inner query apart: one look by the key for each id, whatever the
        // planner believes of a table that has just begun to fill.
        let sql = format!(
            "select fact.* from unnest(string_to_array($1, ',')::uuid[]) as asked (asked_id) \
             cross join lateral ({} where id = asked_id{filter} offset 0) as fact",
            F::TABLE.select()
        );
        self.known.extend(ids.iter().map(|id| (*id, None)));
        let stored = tx.query(&sql, params![list], F::read)?;
        self.known.extend(stored.into_iter().map(|fact| (fact.key().1, Some(fact))));
        Ok(())
    }

    /// A fact as it is now.
    pub fn find(
        &mut self,
        id: Uuid,
        read: impl FnOnce() -> DbResult<Option<F>>,
    ) -> DbResult<Option<F>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let stored = read()?;
        self.known.insert(id, stored.clone());
        Ok(stored)
    }

    pub fn replace(&mut self, fact: F) {
        let id = fact.key().1;
        self.changed.insert(id);
        self.known.insert(id, Some(fact));
    }

    /// Writes what has changed.
    pub fn write(&self, tx: &mut Tx<'_>) -> DbResult<()> {
        let changed = self.changed.iter().filter_map(|id| self.known.get(id)?.as_ref());
        F::TABLE.write_all(tx, changed)
    }
}

/// A fact with a row of its own.
pub trait StoredFact: Fact + PartialEq + Sized {
    const TABLE: FactTable;

    /// When a rebuild counts it, and its id.
    fn key(&self) -> (RebuildStage, Uuid);
    fn read(row: &Row<'_>) -> DbResult<Self>;
    /// Gives the values of its columns.
    fn with_values<T>(&self, take: impl FnOnce(&[Value<'_>]) -> T) -> T;

    fn write(&self, tx: &mut Tx<'_>) -> DbResult<()> {
        self.with_values(|values| Self::TABLE.write(tx, values))
    }

    /// The stored fact with this id.
    fn find(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<Self>> {
        tx.query_opt(&format!("{} where id = $1", Self::TABLE.select()), params![id], Self::read)
    }

    /// The stored fact that this one replaces; none if it is new.
    fn find_stored(&self, tx: &mut Tx<'_>) -> DbResult<Option<Self>> {
        Self::find(tx, self.key().1)
    }
}

impl StoredFact for CountedMessage {
    const TABLE: FactTable = FactTable {
        name: "counted_messages",
        key: "id",
        columns: "id, day, event_type",
        types: "uuid, text, text",
    };

    fn key(&self) -> (RebuildStage, Uuid) {
        (RebuildStage::Messages, self.id)
    }

    fn read(row: &Row<'_>) -> DbResult<CountedMessage> {
        Ok(from_row!(row => CountedMessage { id, event_type; day: day_read(row)? }))
    }

    fn with_values<T>(&self, take: impl FnOnce(&[Value<'_>]) -> T) -> T {
        take(params![self.id, self.day.to_string(), self.event_type])
    }
}

impl StoredFact for UserFact {
    const TABLE: FactTable = FactTable {
        name: "users",
        key: "id",
        columns: "id, registered_at, deleted_at, role, role_at",
        types: "uuid, timestamptz, timestamptz, text, timestamptz",
    };

    fn key(&self) -> (RebuildStage, Uuid) {
        (RebuildStage::Users, self.id)
    }

    fn read(row: &Row<'_>) -> DbResult<UserFact> {
        let role: String = row.get("role")?;
        Ok(from_row!(row => UserFact {
            id, registered_at, deleted_at, role_at;
            role: role.parse().unwrap_or(AccountRole::Other),
        }))
    }

    fn with_values<T>(&self, take: impl FnOnce(&[Value<'_>]) -> T) -> T {
        let role = self.role.as_str();
        take(params![self.id, self.registered_at, self.deleted_at, role, self.role_at])
    }
}

impl StoredFact for ReservationFact {
    const TABLE: FactTable = FactTable {
        name: "reservations",
        key: "id",
        columns: "id, event_id, user_id, amount, quantity, seat_ids, terms_rank, terms_at, \
            terms_message_id, created_at, hold_ends_at, confirmed_at, cancelled_at, expired_at, \
            refund_amount",
        types: "uuid, uuid, uuid, bigint, bigint, jsonb, smallint, timestamptz, uuid, \
            timestamptz, timestamptz, timestamptz, timestamptz, timestamptz, bigint",
    };

    fn key(&self) -> (RebuildStage, Uuid) {
        (RebuildStage::Reservations, self.id)
    }

    fn read(row: &Row<'_>) -> DbResult<ReservationFact> {
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

    fn with_values<T>(&self, take: impl FnOnce(&[Value<'_>]) -> T) -> T {
        let terms = &self.terms;
        let seat_ids = Json::from(terms.seat_ids.clone());
        take(params![
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
        ])
    }
}

impl StoredFact for Transaction {
    const TABLE: FactTable = FactTable {
        name: "transactions",
        key: "kind, id",
        columns: "kind, id, happened_at, user_id, event_id, amount, method, cause",
        types: "text, uuid, timestamptz, uuid, uuid, bigint, text, text",
    };

    fn key(&self) -> (RebuildStage, Uuid) {
        (RebuildStage::Transactions(self.kind), self.id)
    }

    fn read(row: &Row<'_>) -> DbResult<Transaction> {
        Ok(from_row!(row => Transaction {
            kind, id, user_id, event_id, amount, method, cause;
            at: row.get("happened_at")?,
        }))
    }

    fn with_values<T>(&self, take: impl FnOnce(&[Value<'_>]) -> T) -> T {
        take(params![
            self.kind,
            self.id,
            self.at,
            self.user_id,
            self.event_id,
            self.amount,
            self.method,
            self.cause,
        ])
    }

    fn find_stored(&self, tx: &mut Tx<'_>) -> DbResult<Option<Transaction>> {
        let sql = format!("{} where kind = $1 and id = $2", Self::TABLE.select());
        tx.query_opt(&sql, params![self.kind, self.id], Transaction::read)
    }
}

/// Inserts messages, and returns the ids of those that were not there.
pub fn messages_insert(tx: &mut Tx<'_>, messages: &[CountedMessage]) -> DbResult<HashSet<Uuid>> {
    let mut fresh = HashSet::new();
    if !tx.is_postgres() {
        for CountedMessage { id, day, event_type } in messages {
            let sql = "insert into counted_messages (id, day, event_type) values ($1, $2, $3) \
                       on conflict (id) do nothing";
            if tx.execute(sql, params![id, day.to_string(), event_type])? == 1 {
                fresh.insert(*id);
            }
        }
        return Ok(fresh);
    }
    let row = |message: &CountedMessage| {
        let CountedMessage { id, day, event_type } = message;
        serde_json::json!({"id": id, "day": day.to_string(), "event_type": event_type})
    };
    let rows: Json = messages.iter().map(row).collect();
    let ids = tx.query(
        "insert into counted_messages (id, day, event_type) select id, day, event_type \
         from jsonb_to_recordset($1) as message (id uuid, day text, event_type text) \
         on conflict (id) do nothing returning id",
        params![rows],
        |row| row.get::<Uuid>("id"),
    )?;
    fresh.extend(ids);
    Ok(fresh)
}

/// Reservations by their last message, latest first.
pub fn reservation_latest(tx: &mut Tx<'_>, limit: u32) -> DbResult<Vec<ReservationFact>> {
    let select = ReservationFact::TABLE.select();
    let sql = format!("{select} order by terms_at desc, id desc limit $1");
    tx.query(&sql, params![limit], ReservationFact::read)
}

/// A page of facts in the order of their ids; `after: None` is the first page.
pub struct FactPage {
    pub after: Option<Uuid>,
    pub limit: u32,
    /// Transactions are read by kind.
    pub kind: Option<TransactionKind>,
}

impl FactPage {
    pub fn read<F: StoredFact>(&self, tx: &mut Tx<'_>) -> DbResult<Vec<F>> {
        let (sql, limit) = (self.sql::<F>(), self.limit);
        match self.after {
            Some(after) => tx.query(&sql, params![limit, after], F::read),
            None => tx.query(&sql, params![limit], F::read),
        }
    }

    /// The first page has a text of its own, because a condition for both could not use the index.
    fn sql<F: StoredFact>(&self) -> String {
        // The name is a constant of ours, so it is safe in the text.
        let kind = self.kind.map(|kind| format!("kind = '{}'", kind.as_str()));
        let after = self.after.map(|_| "id > $2".to_owned());
        let conditions: Vec<String> = kind.into_iter().chain(after).collect();
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" where {}", conditions.join(" and ")),
        };
        format!("{}{filter} order by id limit $1", F::TABLE.select())
    }
}

#[cfg(test)]
mod tests {
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
            let page = FactPage { after: Some(Uuid::nil()), limit: 10, kind: None };
            let charges = FactPage { kind: Some(TransactionKind::Charge), ..page };
            let pages = [
                page.sql::<CountedMessage>(),
                page.sql::<UserFact>(),
                page.sql::<ReservationFact>(),
                charges.sql::<Transaction>(),
            ];
            let values = [Value::Int(10), Value::Uuid(Uuid::nil())];
            let plan = |sql: &String| {
                let sql = format!("{word} {sql}");
                Ok(tx.query(&sql, &values, |row| row.get::<String>(column))?.join(" "))
            };
            pages.iter().map(plan).collect()
        };
        block_on(async {
            let plans: DbResult<Vec<String>> = database.db.read(explain).await;
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
