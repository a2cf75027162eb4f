//! What purchases leave in the tables of all services: rows and bytes, indexes included.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use urr::role::ProcessRole;
use urr_storage::{Db, StorageError};

use crate::tables::open_database;

/// Tables that grow by less than this per purchase are not shown.
const SHOWN_BYTES_MIN: f64 = 1.0;

/// The databases of all services. Nothing is written to them here.
pub struct Growth {
    databases: Vec<(&'static str, Db)>,
    is_postgres: bool,
    before: BTreeMap<String, TableSize>,
}

#[derive(Clone, Copy, Default)]
struct TableSize {
    rows: i64,
    bytes: i64,
}

impl Growth {
    /// `postgres_url`: without one the databases are files in the folder.
    pub async fn begin(folder: &Path, postgres_url: Option<&str>) -> Result<Growth> {
        let mut databases = Vec::new();
        for role in ProcessRole::ALL {
            let Some(schema) = role.schema() else { continue };
            let db = open_database(role, folder, postgres_url)?;
            databases.push((schema.name, db));
        }
        let is_postgres = postgres_url.is_some();
        let mut growth = Growth { databases, is_postgres, before: BTreeMap::new() };
        growth.before = growth.sizes().await?;
        Ok(growth)
    }

    /// Prints what the purchases since the beginning left, the largest table first.
    pub async fn print(&self, purchases: usize) -> Result<()> {
        let each = |count: i64| count as f64 / purchases as f64;
        let mut tables: Vec<(String, f64, f64)> = Vec::new();
        for (name, after) in self.sizes().await? {
            let before = self.before.get(&name).copied().unwrap_or_default();
            tables.push((name, each(after.rows - before.rows), each(after.bytes - before.bytes)));
        }
        tables.sort_by(|one, other| other.2.total_cmp(&one.2));
        let all: f64 = tables.iter().map(|table| table.2).sum();
        println!("a purchase leaves {all:.0} bytes in tables and indexes");
        for (name, rows, bytes) in tables.iter().filter(|table| table.2 >= SHOWN_BYTES_MIN) {
            println!("  {name:<42} {rows:>6.2} rows {bytes:>8.0} bytes");
        }
        Ok(())
    }

    async fn sizes(&self) -> Result<BTreeMap<String, TableSize>> {
        let sql = if self.is_postgres { POSTGRES_SIZES } else { SQLITE_SIZES };
        let mut sizes = BTreeMap::new();
        for (schema, db) in &self.databases {
            let read = db.read(move |tx| {
                let tables: Vec<(String, i64)> =
                    tx.query(sql, &[], |row| Ok((row.get("name")?, row.get("bytes")?)))?;
                let mut found = Vec::new();
                for (name, bytes) in tables {
                    let count = format!("select count(*) as n from {name}");
                    let rows = tx.query_one(&count, &[], |row| row.get("n"))?;
                    found.push((name, TableSize { rows, bytes }));
                }
                Ok(found)
            });
            let found: Result<Vec<(String, TableSize)>, StorageError> = read.await;
            for (name, size) in found? {
                sizes.insert(format!("{schema}.{name}"), size);
            }
        }
        Ok(sizes)
    }
}

const SQLITE_SIZES: &str = "select master.tbl_name as name, sum(pages.pgsize) as bytes \
    from dbstat pages join sqlite_master master on master.name = pages.name \
    where master.tbl_name not like 'sqlite_%' group by master.tbl_name";
const POSTGRES_SIZES: &str = "select relname::text as name, pg_total_relation_size(oid) as bytes \
    from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace";
