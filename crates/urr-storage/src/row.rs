//! Rows and the types read from them.

use std::error::Error;

use serde::de::DeserializeOwned;
use tokio_postgres::types::{FromSql, Type};
use urr_kernel::{Timestamp, Uuid, Won};

use crate::StorageError;
use crate::value::POSTGRES_EPOCH_MICROS;

/// One row of an answer. Columns are read by name: `row.get::<Uuid>("id")?`.
pub enum Row<'a> {
    #[doc(hidden)]
    Sqlite(&'a rusqlite::Row<'a>),
    #[doc(hidden)]
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    pub fn get<T: FromColumn>(&self, name: &str) -> Result<T, StorageError> {
        let decoded = match self {
            Row::Sqlite(row) => {
                let index = row.as_ref().column_index(name).map_err(|_| no_column(name))?;
                let value = row.get_ref(index).map_err(|_| no_column(name))?;
                Column::from_sqlite(value).and_then(T::from_column)
            }
            Row::Postgres(row) => {
                let raw: RawColumn = row.try_get(name).map_err(|_| no_column(name))?;
                Column::from_postgres(&raw).and_then(T::from_column)
            }
        };
        decoded.map_err(|reason| StorageError::Decode { column: name.to_owned(), reason })
    }

    /// A value that is stored as a JSON document; a null column is JSON's `null`.
    pub fn get_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, StorageError> {
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

/// What a column holds. SQLite has fewer types: there a uuid arrives as bytes, a time as a number.
#[derive(Debug)]
pub enum Column<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Uuid(Uuid),
    Time(Timestamp),
}

impl<'a> Column<'a> {
    fn from_sqlite(value: rusqlite::types::ValueRef<'a>) -> Result<Column<'a>, String> {
        use rusqlite::types::ValueRef;
        Ok(match value {
            ValueRef::Null => Column::Null,
            ValueRef::Integer(value) => Column::Int(value),
            ValueRef::Text(bytes) => {
                Column::Text(std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8")?)
            }
            ValueRef::Blob(bytes) => Column::Bytes(bytes),
            ValueRef::Real(_) => return Err("floating point is not used here".to_owned()),
        })
    }

    fn from_postgres(raw: &RawColumn<'a>) -> Result<Column<'a>, String> {
        let Some(bytes) = raw.bytes else {
            return Ok(Column::Null);
        };
        let text =
            |bytes| std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned());
        Ok(match raw.ty {
            Type::BOOL => Column::Bool(bytes != [0]),
            Type::INT8 => Column::Int(i64::from_be_bytes(exactly(bytes)?)),
            Type::INT4 => Column::Int(i64::from(i32::from_be_bytes(exactly(bytes)?))),
            Type::INT2 => Column::Int(i64::from(i16::from_be_bytes(exactly(bytes)?))),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => Column::Text(text(bytes)?),
            Type::BYTEA => Column::Bytes(bytes),
            Type::UUID => Column::Uuid(Uuid::from_bytes(exactly(bytes)?)),
            Type::TIMESTAMPTZ => {
                let micros = i64::from_be_bytes(exactly(bytes)?);
                Column::Time(time_from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS))?)
            }
            Type::JSONB => Column::Text(text(bytes.get(1..).unwrap_or_default())?),
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

/// The bytes of a PostgreSQL column with its type, for [`Column`] to read.
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
    fn from_column(column: Column<'_>) -> Result<Self, String>;
}

/// Each type with its name for people, and the columns that it is read from.
macro_rules! from_column {
    ($($type:ty, $wanted:literal { $($column:pat => $value:expr),+ $(,)? })+) => {$(
        impl FromColumn for $type {
            fn from_column(column: Column<'_>) -> Result<$type, String> {
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
        Column::Bool(value) => Ok(value),
        Column::Int(0) => Ok(false),
        Column::Int(1) => Ok(true),
    }
    i64, "an integer" { Column::Int(value) => Ok(value) }
    Won, "an integer" { Column::Int(value) => Ok(Won::new(value)) }
    String, "a text" { Column::Text(value) => Ok(value.to_owned()) }
    Vec<u8>, "bytes" { Column::Bytes(value) => Ok(value.to_owned()) }
    Uuid, "a uuid" {
        Column::Uuid(value) => Ok(value),
        Column::Bytes(bytes) => Ok(Uuid::from_bytes(exactly(bytes)?)),
    }
    Timestamp, "a time" {
        Column::Time(value) => Ok(value),
        Column::Int(micros) => time_from_micros(micros),
    }
    serde_json::Value, "a JSON document" {
        Column::Text(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

macro_rules! smaller_integer {
    ($($type:ty),*) => {$(
        impl FromColumn for $type {
            fn from_column(column: Column<'_>) -> Result<$type, String> {
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
    fn from_column(column: Column<'_>) -> Result<Option<T>, String> {
        match column {
            Column::Null => Ok(None),
            other => T::from_column(other).map(Some),
        }
    }
}
