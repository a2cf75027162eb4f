//! A table in a few figures that are the same on both databases if its rows are.

use std::fmt;

use sha2::{Digest, Sha256};
use tokio_postgres::types::Type;

use super::catalogue::TableShape;
use crate::{DbResult, Row, StorageError, Value};

/// Rows, money and contents of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    pub table: String,
    pub rows: u64,
    /// The sum of all columns that are amounts; none if there is no such column.
    pub amounts: Option<i128>,
    pub contents: RowsDigest,
}

/// The sum of the hashes of all rows: it depends on every column, and not on the order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsDigest([u64; 4]);

impl fmt::Display for RowsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0[0])
    }
}

impl RowsDigest {
    fn add(&mut self, row: &[u8]) {
        let hash = Sha256::digest(row);
        for (sum, part) in self.0.iter_mut().zip(hash.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_be_bytes(*part));
        }
    }
}

fn is_amount(column: &str, kind: &Type) -> bool {
    *kind == Type::INT8 && column.contains("amount")
}

impl TableSummary {
    pub(super) fn new(table: &TableShape) -> TableSummary {
        let has_amounts = table.columns.iter().any(|column| is_amount(&column.name, &column.kind));
        TableSummary {
            table: table.name.clone(),
            rows: 0,
            amounts: has_amounts.then_some(0),
            contents: RowsDigest::default(),
        }
    }

    /// Adds a row of either database, with the columns of the table in their order.
    pub(super) fn add(&mut self, table: &TableShape, row: &Row<'_>) -> DbResult<()> {
        let mut bytes = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            let value = row.value(index)?;
            if let (Some(sum), Value::Int(amount)) = (&mut self.amounts, &value)
                && is_amount(&column.name, &column.kind)
            {
                *sum += i128::from(*amount);
            }
            write_plain(&mut bytes, &value, &column.kind).map_err(|reason| {
                let column = format!("{}.{}", table.name, column.name);
                StorageError::Decode { column, reason }
            })?;
        }
        self.rows += 1;
        self.contents.add(&bytes);
        Ok(())
    }
}

/// Appends a value in a form that both databases agree on.
fn write_plain(out: &mut Vec<u8>, value: &Value<'_>, kind: &Type) -> Result<(), String> {
    let number = |value: i64| value.to_be_bytes().to_vec();
    let plain = match value {
        Value::Null => {
            out.push(0);
            return Ok(());
        }
        // Databases write the spaces and the order of keys as they like.
        Value::Text(text) if *kind == Type::JSONB => {
            let document: serde_json::Value =
                serde_json::from_str(text).map_err(|error| error.to_string())?;
            document.to_string().into_bytes()
        }
        Value::Bool(value) => number(i64::from(*value)),
        Value::Int(value) => number(*value),
        Value::Time(value) => number(value.as_microsecond()),
        Value::Uuid(value) => value.as_bytes().to_vec(),
        Value::Text(value) => value.as_bytes().to_vec(),
        Value::Bytes(value) => value.to_vec(),
        Value::Json(value) => value.to_string().into_bytes(),
    };
    out.push(1);
    out.extend(u64::try_from(plain.len()).expect("a column is in memory").to_be_bytes());
    out.extend(plain);
    Ok(())
}

#[cfg(test)]
mod tests {
    use urr_kernel::{Timestamp, Uuid};

    use super::*;

    fn plain(value: Value<'_>, kind: &Type) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_plain(&mut bytes, &value, kind).unwrap();
        bytes
    }

    #[test]
    fn both_databases_give_one_form_of_a_value() {
        let id = Uuid::from_u128(7);
        let at = Timestamp::from_microsecond(1_700_000_000_123_456).unwrap();
        let same = [
            (Value::Bytes(id.as_bytes()), Value::Uuid(id), Type::UUID),
            (Value::Int(at.as_microsecond()), Value::Time(at), Type::TIMESTAMPTZ),
            (Value::Int(1), Value::Bool(true), Type::BOOL),
            (
                Value::Text("{\"b\":1,\"a\":[null]}"),
                Value::Text("{\"a\": [null], \"b\": 1}"),
                Type::JSONB,
            ),
        ];
        for (sqlite, postgres, kind) in same {
            assert_eq!(plain(sqlite, &kind), plain(postgres, &kind), "{kind}");
        }
        assert_ne!(plain(Value::Null, &Type::TEXT), plain(Value::Text(""), &Type::TEXT));
    }

    #[test]
    fn a_digest_depends_on_every_row_and_not_on_their_order() {
        let of = |rows: &[&str]| {
            let mut digest = RowsDigest::default();
            rows.iter().for_each(|row| digest.add(row.as_bytes()));
            digest
        };
        assert_eq!(of(&["a", "b", "b"]), of(&["b", "a", "b"]));
        assert_ne!(of(&["a", "b", "b"]), of(&["a", "a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "b", "b"]));
    }
}
