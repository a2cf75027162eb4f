//! Parameters of statements and columns of answers: the few types that both databases store alike.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type};
use urr_kernel::{Timestamp, Uuid, Won};

/// One parameter or column. Floating point is deliberately absent: money and counts are whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Uuid(Uuid),
    Time(Timestamp),
    Json(&'a serde_json::Value),
}

/// The years 1970 to 2200: times that both databases store and compare alike.
pub const TIME_MIN: Timestamp = Timestamp::UNIX_EPOCH;
pub const TIME_MAX: Timestamp = Timestamp::constant(7_289_654_400, 0);

/// The nearest time that can be compared with what is stored; nothing stored is beyond it.
pub fn storable_time(time: Timestamp) -> Timestamp {
    time.clamp(TIME_MIN, TIME_MAX)
}

/// What can be a parameter. Used through [`params!`](crate::params).
pub trait ToValue {
    fn to_value(&self) -> Value<'_>;
}

/// The parameters of a statement: `params![event_id.0, price, now]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::ToValue::to_value(&$value)),*]
    };
}

macro_rules! to_value {
    ($($type:ty => $variant:ident, |$value:ident| $converted:expr;)*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Value<'_> {
                let $value = self;
                Value::$variant($converted)
            }
        }
    )*};
}

to_value! {
    bool => Bool, |value| *value;
    i64 => Int, |value| *value;
    i32 => Int, |value| i64::from(*value);
    u32 => Int, |value| i64::from(*value);
    u16 => Int, |value| i64::from(*value);
    u8 => Int, |value| i64::from(*value);
    Won => Int, |value| value.amount();
    Uuid => Uuid, |value| *value;
    Timestamp => Time, |value| *value;
    str => Text, |value| value;
    String => Text, |value| value;
    [u8] => Bytes, |value| value;
    Vec<u8> => Bytes, |value| value;
    serde_json::Value => Json, |value| value;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value<'_> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

/// SQLite: a uuid is 16 bytes, a time is microseconds since 1970, JSON is text.
impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        use rusqlite::types::Value as Owned;
        Ok(match self {
            Value::Null => ToSqlOutput::Owned(Owned::Null),
            Value::Bool(value) => ToSqlOutput::Owned(Owned::Integer(i64::from(*value))),
            Value::Int(value) => ToSqlOutput::Owned(Owned::Integer(*value)),
            Value::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Value::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            Value::Uuid(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value.as_bytes())),
            Value::Time(value) => ToSqlOutput::Owned(Owned::Integer(value.as_microsecond())),
            Value::Json(value) => ToSqlOutput::Owned(Owned::Text(value.to_string())),
        })
    }
}

/// PostgreSQL counts its microseconds from 2000-01-01.
pub(crate) const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, ty) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Bool(value), &Type::BOOL) => out.put_u8(u8::from(*value)),
            (Value::Int(value), &Type::INT8) => out.put_i64(*value),
            (Value::Int(value), &Type::INT4) => out.put_i32(i32::try_from(*value)?),
            (Value::Int(value), &Type::INT2) => out.put_i16(i16::try_from(*value)?),
            (Value::Text(value), &Type::TEXT | &Type::VARCHAR | &Type::UNKNOWN) => {
                out.put_slice(value.as_bytes());
            }
            (Value::Bytes(value), &Type::BYTEA) => out.put_slice(value),
            (Value::Uuid(value), &Type::UUID) => out.put_slice(value.as_bytes()),
            (Value::Time(value), &Type::TIMESTAMPTZ) => {
                out.put_i64(value.as_microsecond() - POSTGRES_EPOCH_MICROS);
            }
            (Value::Json(value), &Type::JSONB) => {
                out.put_u8(1); // the version of the binary form
                out.put_slice(value.to_string().as_bytes());
            }
            _ => return Err(format!("{self:?} was given where the statement has {ty}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}
