//! A column on its way: what SQLite stores, written as the type of PostgreSQL wants it.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type};

use crate::Value;
use crate::value::POSTGRES_EPOCH_MICROS;

#[derive(Debug)]
pub enum MovedValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Value<'_>> for MovedValue {
    fn from(value: Value<'_>) -> MovedValue {
        match value {
            Value::Null => MovedValue::Null,
            Value::Bool(value) => MovedValue::Int(i64::from(value)),
            Value::Int(value) => MovedValue::Int(value),
            Value::Text(value) => MovedValue::Text(value.to_owned()),
            Value::Bytes(value) => MovedValue::Bytes(value.to_owned()),
            Value::Uuid(value) => MovedValue::Bytes(value.as_bytes().to_vec()),
            Value::Time(value) => MovedValue::Int(value.as_microsecond()),
            Value::Json(value) => MovedValue::Text(value.to_string()),
        }
    }
}

impl ToSql for MovedValue {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, ty) {
            (MovedValue::Null, _) => return Ok(IsNull::Yes),
            (MovedValue::Int(value @ (0 | 1)), &Type::BOOL) => out.put_u8(u8::from(*value == 1)),
            (MovedValue::Int(value), &Type::INT8) => out.put_i64(*value),
            (MovedValue::Int(value), &Type::INT4) => out.put_i32(i32::try_from(*value)?),
            (MovedValue::Int(value), &Type::INT2) => out.put_i16(i16::try_from(*value)?),
            (MovedValue::Int(value), &Type::TIMESTAMPTZ) => {
                out.put_i64(value - POSTGRES_EPOCH_MICROS);
            }
            (MovedValue::Text(value), &Type::TEXT) => out.put_slice(value.as_bytes()),
            (MovedValue::Text(value), &Type::JSONB) => {
                out.put_u8(1); // the version of the binary form
                out.put_slice(value.as_bytes());
            }
            (MovedValue::Bytes(value), &Type::BYTEA) => out.put_slice(value),
            (MovedValue::Bytes(value), &Type::UUID) if value.len() == 16 => out.put_slice(value),
            _ => return Err(format!("the file has {self:?} where {ty} is expected").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}
