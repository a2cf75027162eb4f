//! Tables and columns as the two databases describe them.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::types::Type;

use crate::dialect::sqlite_type;
use crate::{DbResult, Row, StorageError, Tx, from_row, params};

/// A table of PostgreSQL.
#[derive(Clone, Debug)]
pub struct TableShape {
    pub name: String,
    pub columns: Vec<ColumnShape>,
}

#[derive(Clone, Debug)]
pub struct ColumnShape {
    pub name: String,
    /// As PostgreSQL calls it.
    type_name: String,
    pub kind: Type,
    is_identity: bool,
}

/// The columns of each table of a SQLite file, with their types.
pub type SqliteTables = BTreeMap<String, BTreeMap<String, String>>;

impl TableShape {
    pub fn column_list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    pub fn select(&self) -> String {
        format!("select {} from {}", self.column_list(), self.name)
    }

    pub fn types(&self) -> Vec<Type> {
        self.columns.iter().map(|column| column.kind.clone()).collect()
    }

    /// The column whose numbers the database gives.
    pub fn identity(&self) -> Option<&str> {
        let column = self.columns.iter().find(|column| column.is_identity);
        column.map(|column| column.name.as_str())
    }
}

pub fn sqlite_tables(tx: &mut Tx<'_>) -> DbResult<SqliteTables> {
    let sql = "select m.name as table_name, c.name as column_name, c.type as type_name \
               from sqlite_master m join pragma_table_info(m.name) c \
               where m.type = 'table' and m.name not like 'sqlite%'";
    let columns: Vec<(String, String, String)> = tx.query(sql, &[], |row| {
        Ok((row.get("table_name")?, row.get("column_name")?, row.get("type_name")?))
    })?;
    let mut tables = SqliteTables::new();
    for (table, column, type_name) in columns {
        tables.entry(table).or_default().insert(column, type_name);
    }
    Ok(tables)
}

/// The tables of a schema, in the order of their names.
pub fn postgres_tables(tx: &mut Tx<'_>, schema: &str) -> DbResult<Vec<TableShape>> {
    struct Found {
        table_name: String,
        column_name: String,
        type_name: String,
        is_identity: bool,
    }
    let sql = "select c.relname as table_name, a.attname as column_name, \
               format_type(a.atttypid, a.atttypmod) as type_name, \
               a.attidentity <> '' as is_identity \
               from pg_class c join pg_namespace n on n.oid = c.relnamespace \
               join pg_attribute a on a.attrelid = c.oid \
               where n.nspname = $1::text and c.relkind in ('r', 'p') and not c.relispartition \
               and a.attnum > 0 and not a.attisdropped order by c.relname, a.attnum";
    let read = |row: &Row<'_>| {
        Ok(from_row!(row => Found { table_name, column_name, type_name, is_identity }))
    };
    let mut tables: Vec<TableShape> = Vec::new();
    for found in tx.query(sql, params![schema], read)? {
        let Found { table_name, column_name, type_name, is_identity } = found;
        let kind = kind(&type_name).ok_or_else(|| {
            let column = format!("{schema}.{table_name}.{column_name}");
            StorageError::Unsafe(format!("{column} has a type that is not moved: {type_name}"))
        })?;
        let column = ColumnShape { name: column_name, type_name, kind, is_identity };
        match tables.last_mut().filter(|table| table.name == table_name) {
            Some(table) => table.columns.push(column),
            None => tables.push(TableShape { name: table_name, columns: vec![column] }),
        }
    }
    Ok(tables)
}

fn kind(type_name: &str) -> Option<Type> {
    Some(match type_name {
        "uuid" => Type::UUID,
        "bytea" => Type::BYTEA,
        "timestamp with time zone" => Type::TIMESTAMPTZ,
        "boolean" => Type::BOOL,
        "bigint" => Type::INT8,
        "integer" => Type::INT4,
        "smallint" => Type::INT2,
        "text" => Type::TEXT,
        "jsonb" => Type::JSONB,
        _ => return None,
    })
}

/// Which table refers to which other one.
pub fn references(tx: &mut Tx<'_>, schema: &str) -> DbResult<Vec<(String, String)>> {
    let sql = "select child.relname as child, parent.relname as parent from pg_constraint k \
               join pg_class child on child.oid = k.conrelid \
               join pg_class parent on parent.oid = k.confrelid \
               join pg_namespace n on n.oid = child.relnamespace \
               where k.contype = 'f' and n.nspname = $1::text and child.oid <> parent.oid";
    tx.query(sql, params![schema], |row| Ok((row.get("child")?, row.get("parent")?)))
}

/// Refuses if one side has a table or a column that the other side lacks.
pub fn require_same(schema: &str, sqlite: &SqliteTables, postgres: &[TableShape]) -> DbResult<()> {
    let mut differences = BTreeSet::new();
    for (table, columns) in sqlite {
        let found = postgres.iter().find(|shape| shape.name == *table);
        let known = |name: &String| {
            found.is_some_and(|shape| shape.columns.iter().any(|column| column.name == *name))
        };
        let missing = columns.keys().filter(|name| !known(name));
        differences.extend(missing.map(|name| format!("{table}.{name} is only in the file")));
    }
    for table in postgres {
        for column in &table.columns {
            let found = sqlite.get(&table.name).and_then(|columns| columns.get(&column.name));
            let wanted = sqlite_type(type_word(&column.type_name)).unwrap_or_default();
            let place = format!("{}.{}", table.name, column.name);
            match found {
                None => differences.insert(format!("{place} is only on PostgreSQL")),
                Some(found) if found != wanted => differences.insert(format!(
                    "{place} is {found} in the file and {} on PostgreSQL",
                    column.type_name
                )),
                Some(_) => false,
            };
        }
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(StorageError::Unsafe(format!(
            "the tables of {schema} differ: {}; both sides need the migrations of this program",
            Vec::from_iter(differences).join(", ")
        ))),
    }
}

/// PostgreSQL's long name as our migrations write it.
fn type_word(type_name: &str) -> &str {
    if type_name == "timestamp with time zone" { "timestamptz" } else { type_name }
}

/// The tables in an order in which a table comes behind those that it refers to.
pub fn order(
    mut tables: Vec<TableShape>,
    references: &[(String, String)],
) -> DbResult<Vec<TableShape>> {
    let mut ordered: Vec<TableShape> = Vec::new();
    while !tables.is_empty() {
        let waits = |table: &TableShape| {
            let mut parents = references.iter().filter(|(child, _)| *child == table.name);
            parents.any(|(_, parent)| tables.iter().any(|table| table.name == *parent))
        };
        let (later, now): (Vec<_>, Vec<_>) = tables.iter().cloned().partition(waits);
        if now.is_empty() {
            let names: Vec<&str> = later.iter().map(|table| table.name.as_str()).collect();
            let names = names.join(", ");
            return Err(StorageError::Unsafe(format!("tables refer to each other: {names}")));
        }
        ordered.extend(now);
        tables = later;
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str, columns: &[(&str, &str)]) -> TableShape {
        let column = |(name, type_name): &(&str, &str)| ColumnShape {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            kind: kind(type_name).unwrap(),
            is_identity: false,
        };
        TableShape { name: name.to_owned(), columns: columns.iter().map(column).collect() }
    }

    fn file(tables: &[(&str, &[(&str, &str)])]) -> SqliteTables {
        let columns = |columns: &[(&str, &str)]| {
            columns.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
        };
        tables.iter().map(|(name, of)| ((*name).to_owned(), columns(of))).collect()
    }

    #[test]
    fn tables_are_the_same_whatever_the_order_of_their_columns() {
        let postgres = [shape("a", &[("id", "uuid"), ("at", "timestamp with time zone")])];
        let sqlite = file(&[("a", &[("at", "INTEGER"), ("id", "BLOB")])]);
        require_same("s", &sqlite, &postgres).unwrap();
    }

    #[test]
    fn a_table_a_column_or_a_type_of_one_side_alone_is_named() {
        let postgres = [shape("a", &[("id", "uuid"), ("more", "text"), ("n", "bigint")])];
        let sqlite = file(&[("a", &[("id", "BLOB"), ("n", "TEXT")]), ("b", &[("x", "TEXT")])]);
        let error = require_same("s", &sqlite, &postgres).unwrap_err().to_string();
        for part in [
            "a.more is only on PostgreSQL",
            "a.n is TEXT in the file and bigint on PostgreSQL",
            "b.x is only in the file",
        ] {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }

    #[test]
    fn a_table_comes_behind_those_that_it_refers_to() {
        let tables = ["a", "b", "c"].map(|name| shape(name, &[("id", "uuid")])).to_vec();
        let refers = |child: &str, parent: &str| (child.to_owned(), parent.to_owned());
        let ordered = order(tables.clone(), &[refers("a", "b"), refers("b", "c")]).unwrap();
        let names: Vec<&str> = ordered.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
        let circle = [refers("a", "b"), refers("b", "a")];
        assert!(order(tables, &circle).unwrap_err().to_string().contains("a, b"));
    }
}
