//! Rows and the types read from them.

use std::cell::Cell;
use std::error::Error;

use serde::de::DeserializeOwned;
use tokio_postgres::types::{FromSql, Type};
use urr_kernel::{Timestamp, Uuid, Won};

use crate::value::POSTGRES_EPOCH_MICROS;
use crate::{DbResult, StorageError, Value};

/// One row of an answer. Columns are read by name: `row.get::<Uuid>("id")?`.
pub struct Row<'a> {
    columns: RowColumns<'a>,
    /// Where the next column is looked for first: most are read in the order of the statement.
    next: Cell<usize>,
}

enum RowColumns<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    pub(crate) fn of_sqlite(row: &'a rusqlite::Row<'a>) -> Row<'a> {
        Row { columns: RowColumns::Sqlite(row), next: Cell::new(0) }
    }

    pub(crate) fn of_postgres(row: &'a tokio_postgres::Row) -> Row<'a> {
        Row { columns: RowColumns::Postgres(row), next: Cell::new(0) }
    }

    pub fn get<T: FromColumn>(&self, name: &str) -> DbResult<T> {
        let index = self.position(name).ok_or_else(|| no_column(name))?;
        self.next.set(index + 1);
        let decoded = match self.columns {
            RowColumns::Sqlite(row) => {
                let value = row.get_ref(index).map_err(|_| no_column(name))?;
                Value::from_sqlite(value).and_then(T::from_column)
            }
            RowColumns::Postgres(row) => {
                let raw: RawColumn = row.try_get(index).map_err(|_| no_column(name))?;
                Value::from_postgres(&raw).and_then(T::from_column)
            }
        };
        decoded.map_err(|reason| StorageError::Decode { column: name.to_owned(), reason })
    }

    /// A column by its place in the statement.
    pub(crate) fn value(&self, index: usize) -> DbResult<Value<'_>> {
        let place = || format!("column {index}");
        let decoded = match self.columns {
            RowColumns::Sqlite(row) => {
                let value = row.get_ref(index).map_err(|_| no_column(&place()))?;
                Value::from_sqlite(value)
            }
            RowColumns::Postgres(row) => {
                let raw: RawColumn = row.try_get(index).map_err(|_| no_column(&place()))?;
                Value::from_postgres(&raw)
            }
        };
        decoded.map_err(|reason| StorageError::Decode { column: place(), reason })
    }

    fn position(&self, name: &str) -> Option<usize> {
        let next = self.next.get();
        match self.columns {
            RowColumns::Sqlite(row) => {
                let statement = row.as_ref();
                let is_next = statement.column_name(next).is_ok_and(|found| found == name);
                if is_next { Some(next) } else { statement.column_index(name).ok() }
            }
            RowColumns::Postgres(row) => {
                let columns = row.columns();
                let is_next = columns.get(next).is_some_and(|column| column.name() == name);
                let mut others = columns.iter();
                if is_next { Some(next) } else { others.position(|column| column.name() == name) }
            }
        }
    }

    /// A value that is stored as a JSON document; a null column is JSON's `null`.
    pub fn get_json<T: DeserializeOwned>(&self, name: &str) -> DbResult<T> {
        let document: Option<serde_json::Value> = self.get(name)?;
        serde_json::from_value(document.unwrap_or_default()).map_err(|error| StorageError::Decode {
            column: name.to_owned(),
            reason: error.to_string(),
        })
    }
}

fn no_column(name: &str) -> StorageError {
    StorageError::Decode { column: name.to_owned(), reason: "the answer has no such column".into() }
}

/// SQLite has fewer types: there a uuid arrives as bytes, a time as a number, JSON as text.
impl<'a> Value<'a> {
    fn from_sqlite(value: rusqlite::types::ValueRef<'a>) -> Result<Value<'a>, String> {
        use rusqlite::types::ValueRef;
        Ok(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Int(value),
            ValueRef::Text(bytes) => {
                Value::Text(std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8")?)
            }
            ValueRef::Blob(bytes) => Value::Bytes(bytes),
            ValueRef::Real(_) => return Err("floating point is not used here".to_owned()),
        })
    }

    fn from_postgres(raw: &RawColumn<'a>) -> Result<Value<'a>, String> {
        let Some(bytes) = raw.bytes else {
            return Ok(Value::Null);
        };
        let text =
            |bytes| std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned());
        Ok(match raw.ty {
            Type::BOOL => Value::Bool(bytes != [0]),
            Type::INT8 => Value::Int(i64::from_be_bytes(exactly(bytes)?)),
            Type::INT4 => Value::Int(i64::from(i32::from_be_bytes(exactly(bytes)?))),
            Type::INT2 => Value::Int(i64::from(i16::from_be_bytes(exactly(bytes)?))),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => Value::Text(text(bytes)?),
            Type::BYTEA => Value::Bytes(bytes),
            Type::UUID => Value::Uuid(Uuid::from_bytes(exactly(bytes)?)),
            Type::TIMESTAMPTZ => {
                let micros = i64::from_be_bytes(exactly(bytes)?);
                Value::Time(time_from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS))?)
            }
            Type::JSONB => Value::Text(text(bytes.get(1..).unwrap_or_default())?),
            ref other => return Err(format!("type {other} is not used here; cast it in the SQL")),
        })
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| format!("expected {N} bytes, found {}", bytes.len()))
}

fn time_from_micros(micros: i64) -> Result<Timestamp, String> {
    Timestamp::from_microsecond(micros).map_err(|error| error.to_string())
}

/// The bytes of a PostgreSQL column with its type, for [`Value`] to read.
struct RawColumn<'a> {
    ty: Type,
    bytes: Option<&'a [u8]>,
}

impl<'a> FromSql<'a> for RawColumn<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(RawColumn { ty: ty.clone(), bytes: Some(raw) })
    }

    fn from_sql_null(ty: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(RawColumn { ty: ty.clone(), bytes: None })
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// What can be read from a column.
pub trait FromColumn: Sized {
    fn from_column(column: Value<'_>) -> Result<Self, String>;
}

/// Each type with its name for people, and the columns that it is read from.
macro_rules! from_column {
    ($($type:ty, $wanted:literal { $($column:pat => $value:expr),+ $(,)? })+) => {$(
        impl FromColumn for $type {
            fn from_column(column: Value<'_>) -> Result<$type, String> {
                match column {
                    $($column => $value,)+
                    other => Err(format!(concat!("expected ", $wanted, ", found {:?}"), other)),
                }
            }
        }
    )+};
}

from_column! {
    bool, "a boolean" {
        Value::Bool(value) => Ok(value),
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
    }
    i64, "an integer" { Value::Int(value) => Ok(value) }
    Won, "an integer" { Value::Int(value) => Ok(Won::new(value)) }
    String, "a text" { Value::Text(value) => Ok(value.to_owned()) }
    Vec<u8>, "bytes" { Value::Bytes(value) => Ok(value.to_owned()) }
    Uuid, "a uuid" {
        Value::Uuid(value) => Ok(value),
        Value::Bytes(bytes) => Ok(Uuid::from_bytes(exactly(bytes)?)),
    }
    Timestamp, "a time" {
        Value::Time(value) => Ok(value),
        Value::Int(micros) => time_from_micros(micros),
    }
    serde_json::Value, "a JSON document" {
        Value::Text(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

macro_rules! smaller_integer {
    ($($type:ty),*) => {$(
        impl FromColumn for $type {
            fn from_column(column: Value<'_>) -> Result<$type, String> {
                let value = i64::from_column(column)?;
                <$type>::try_from(value).map_err(|_| {
                    format!(concat!("{} does not fit ", stringify!($type)), value)
                })
            }
        }
    )*};
}

smaller_integer!(i32, u64, u32, u16, u8);

impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(column: Value<'_>) -> Result<Option<T>, String> {
        match column {
            Value::Null => Ok(None),
            other => T::from_column(other).map(Some),
        }
    }
}
