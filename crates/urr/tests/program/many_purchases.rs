//! Many purchases in a data folder, made from the only one in it: its rows are copied with ids of
//! their own, and the sums are raised by as much. Everything agrees afterwards.

use std::time::Duration;

use anyhow::{Context, Result};
use urr_storage::{Db, DbResult, Schema, SqliteOptions, Tx};

use crate::process::Installation;

/// Copying takes a while on a busy machine.
const COPY_TIMEOUT: Duration = Duration::from_secs(120);

/// Rows that belong to a purchase: the table, what marks the rows of the first purchase, and the
/// columns that differ between purchases.
struct CopiedRows {
    schema: &'static Schema,
    table: &'static str,
    mark: ColumnMark,
    ids: &'static [&'static str],
    texts: &'static [&'static str],
    /// Columns with an expression over `copy`, the number of the purchase.
    others: &'static [(&'static str, &'static str)],
}

/// Copied ids begin with the number of the purchase where others have their time; copied texts end with
/// `~` and the number.
#[derive(Clone, Copy)]
enum ColumnMark {
    Id(&'static str),
    Text(&'static str),
}

const SEAT: &[(&str, &str)] = &[("seat_id", "1000000 + copy")];

const COPIED: [CopiedRows; 11] = [
    of_ticket("reservations", &["id", "user_id", "payment_id"], &["number"], &[]),
    CopiedRows {
        mark: ColumnMark::Id("reservation_id"),
        ..of_ticket("reservation_items", &["reservation_id"], &[], SEAT)
    },
    of_ticket("tickets", &["id", "reservation_id"], &["number"], SEAT),
    CopiedRows {
        mark: ColumnMark::Id("reservation_id"),
        ..of_ticket("seats", &["reservation_id"], &[], SEAT)
    },
    of_payment(
        "payments",
        ColumnMark::Id("id"),
        &["id", "user_id", "payable_id", "confirmed_event_id"],
        &["order_id", "payment_key", "provider_key"],
    ),
    of_payment("ledger_entries", ColumnMark::Id("id"), &["id", "payment_id"], &[]),
    of_payment("ledger_lines", ColumnMark::Id("entry_id"), &["entry_id"], &[]),
    of_payment(
        "sandbox_payments",
        ColumnMark::Text("payment_key"),
        &[],
        &["payment_key", "order_id"],
    ),
    of_payment(
        "sandbox_movements",
        ColumnMark::Text("idempotency_key"),
        &[],
        &["idempotency_key", "payment_key"],
    ),
    of_stats("reservations", &["id", "user_id", "terms_message_id"]),
    of_stats("transactions", &["id", "user_id"]),
];

/// Sums over purchases: what is added for each.
const SUMS: [(&Schema, &str, &[&str]); 5] = [
    (&urr_ticket::SCHEMA, "sales", &["seats_total"]),
    (&urr_stats::SCHEMA, "hour_counters", OF_A_PURCHASE),
    (&urr_stats::SCHEMA, "event_counters", OF_A_PURCHASE),
    (&urr_stats::SCHEMA, "method_totals", &["charges", "charged"]),
    (&urr_stats::SCHEMA, "sold_seats", &["sold"]),
];
const OF_A_PURCHASE: &[&str] = &[
    "created",
    "confirmed",
    "completed",
    "places_sold",
    "held_seconds",
    "holds",
    "paid_seconds",
    "pays",
    "owed",
    "charges",
    "charged",
];

const fn of_ticket(
    table: &'static str,
    ids: &'static [&'static str],
    texts: &'static [&'static str],
    others: &'static [(&'static str, &'static str)],
) -> CopiedRows {
    let mark = ColumnMark::Id("id");
    CopiedRows { schema: &urr_ticket::SCHEMA, table, mark, ids, texts, others }
}

const fn of_payment(
    table: &'static str,
    mark: ColumnMark,
    ids: &'static [&'static str],
    texts: &'static [&'static str],
) -> CopiedRows {
    CopiedRows { schema: &urr_payment::SCHEMA, table, mark, ids, texts, others: &[] }
}

const fn of_stats(table: &'static str, ids: &'static [&'static str]) -> CopiedRows {
    let mark = ColumnMark::Id("id");
    CopiedRows { schema: &urr_stats::SCHEMA, table, mark, ids, texts: &[], others: &[] }
}

impl ColumnMark {
    fn is_first(self) -> String {
        match self {
            ColumnMark::Id(column) => format!("substr({column}, 1, 3) <> x'000000'"),
            ColumnMark::Text(column) => format!("instr({column}, '~') = 0"),
        }
    }
}

impl CopiedRows {
    /// The statement that makes the purchases with these numbers.
    fn sql(&self, columns: &[String], first: u64, last: u64) -> String {
        let value = |column: &String| {
            let name = column.as_str();
            if let Some((_, expression)) = self.others.iter().find(|(of, _)| *of == name) {
                return (*expression).to_owned();
            }
            match () {
                () if self.ids.contains(&name) => {
                    format!("cast(unhex(printf('%012x', copy)) || substr({name}, 7) as blob)")
                }
                () if self.texts.contains(&name) => format!("{name} || '~' || copy"),
                () => name.to_owned(),
            }
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        format!(
            "with recursive copies(copy) as (select {first} union all select copy + 1 from copies \
             where copy < {last}) insert into {table} ({columns}) select {values} \
             from {table} cross join copies where {is_first}",
            table = self.table,
            columns = columns.join(", "),
            values = values.join(", "),
            is_first = self.mark.is_first()
        )
    }
}

fn column_list(tx: &mut Tx<'_>, table: &str) -> DbResult<Vec<String>> {
    let sql = format!("select name from pragma_table_info('{table}')");
    tx.query(&sql, &[], |row| row.get("name"))
}

/// Makes the purchases with the numbers from `first` on to `last`, in a folder that nobody has open.
pub fn copy_purchase(installation: &Installation, first: u64, last: u64) -> Result<()> {
    for schema in [&urr_ticket::SCHEMA, &urr_payment::SCHEMA, &urr_stats::SCHEMA] {
        let path = installation.path(&format!("data/{}.db", schema.name));
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async {
            let options = SqliteOptions { statement_timeout: COPY_TIMEOUT, ..Default::default() };
            let db = Db::open_sqlite(&path, &options)?;
            let written: DbResult<()> =
                db.write(move |tx| copy_rows(tx, schema, first, last)).await;
            written.with_context(|| schema.name)?;
            tokio::task::spawn_blocking(move || db.close()).await?;
            anyhow::Ok(())
        })?;
    }
    Ok(())
}

fn copy_rows(tx: &mut Tx<'_>, schema: &Schema, first: u64, last: u64) -> DbResult<()> {
    for rows in COPIED.iter().filter(|rows| rows.schema.name == schema.name) {
        let columns = column_list(tx, rows.table)?;
        tx.execute(&rows.sql(&columns, first, last), &[])?;
    }
    for (_, table, columns) in SUMS.iter().filter(|(of, ..)| of.name == schema.name) {
        // The purchases before, and the first.
        let (more, before) = (last - first + 1, first);
        let raised = |column: &&str| match *table {
            "sales" => format!("{column} = {column} + {more}"),
            _ => format!("{column} = {column} / {before} * ({before} + {more})"),
        };
        let raised: Vec<String> = columns.iter().map(raised).collect();
        let only = match *table {
            "sales" => {
                "where exists (select 1 from reservations as r \
                        where r.event_id = sales.event_id)"
            }
            _ => "",
        };
        tx.execute(&format!("update {table} set {} {only}", raised.join(", ")), &[])?;
    }
    Ok(())
}
