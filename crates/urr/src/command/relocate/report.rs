//! What was moved, as lines for people.

use urr_kernel::Won;
use urr_payment::LedgerAccount;

use super::{EmbeddedShop, MovedTables};
use crate::config::Config;
use crate::engines;
use crate::text_table::align;

/// Both sides of every table that has rows, and of the ledger.
pub fn render(moved: &MovedTables) -> String {
    let header = ["table", "rows", "sum of amounts", "contents", ""].map(str::to_owned);
    let mut lines = vec![header];
    let (mut tables, mut rows) = (0, 0);
    for (schema, table) in &moved.tables {
        tables += 1;
        rows += table.source.rows;
        if table.source.rows == 0 && table.is_equal() {
            continue;
        }
        for (side, summary) in [("", &table.source), ("found", &table.target)] {
            if side.is_empty() || !table.is_equal() {
                let amounts = summary.amounts.map(|sum| sum.to_string()).unwrap_or_default();
                lines.push([
                    format!("{schema}.{}", summary.table),
                    summary.rows.to_string(),
                    amounts,
                    summary.contents.to_string(),
                    verdict(side, table.is_equal()),
                ]);
            }
        }
    }
    for (account, balance) in &moved.source_balances {
        let is_equal = moved.target_balances.contains(&(*account, *balance));
        lines.push(ledger_line(*account, *balance, verdict("", is_equal)));
    }
    format!("{}\n{tables} tables, {rows} rows", align(&lines))
}

fn verdict(side: &str, is_equal: bool) -> String {
    match (side, is_equal) {
        (_, true) => "same",
        ("", false) => "DIFFERENT",
        (side, false) => side,
    }
    .to_owned()
}

fn ledger_line(account: LedgerAccount, balance: Won, verdict: String) -> [String; 5] {
    let name = format!("ledger: {}", account.as_str());
    [name, String::new(), balance.amount().to_string(), String::new(), verdict]
}

/// Tables that have rows.
pub fn render_counts(rows: &[(&str, String, u64)]) -> String {
    let line = |(schema, table, count): &(&str, String, u64)| {
        [format!("{schema}.{table}"), count.to_string()]
    };
    let lines: Vec<[String; 2]> =
        rows.iter().filter(|(_, _, count)| *count > 0).map(line).collect();
    align(&lines)
}

pub fn messages(shop: &EmbeddedShop, target: &Config) -> String {
    let (unread, letters) = (shop.unread.messages.len(), shop.unread.dead_letters.len());
    let counts = format!("Messages: {unread} that nobody has handled yet, {letters} dead letters");
    match target.bus.kafka_bootstrap_servers.is_empty() {
        false => format!("{counts}, go to Kafka"),
        true => format!("{counts}, stay in {}", engines::bus_path(&target.data.dir).display()),
    }
}

pub fn rooms(shop: &EmbeddedShop, target: &Config) -> String {
    let [rooms, waiting, active] = shop.rooms.counts();
    let counts = format!("Waiting rooms: {rooms}, with {waiting} waiting and {active} inside");
    let journal = engines::sqlite_path(&target.data.dir, &urr_room::JOURNAL);
    match engines::has_rooms_in_process(target) {
        false => format!("{counts}, go to Redis"),
        true => format!("{counts}, stay in {}", journal.display()),
    }
}
