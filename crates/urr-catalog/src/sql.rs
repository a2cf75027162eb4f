//! Helpers for SQL: columns with JSON, and conditions with their parameters.

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use urr_storage::{DbResult, Row, StorageError, Value};

pub fn decode_error(column: &str, reason: impl ToString) -> StorageError {
    StorageError::Decode { column: column.to_owned(), reason: reason.to_string() }
}

/// A column that holds the name of a variant.
pub fn get_named<T: FromStr<Err: Display>>(row: &Row<'_>, column: &str) -> DbResult<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| decode_error(column, error))
}

pub fn to_json<T: Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).expect("only plain structs and maps are stored as JSON")
}

/// A `where` clause with its parameters, so that numbers and values stay in step.
pub struct Conditions<'a> {
    sql: String,
    values: Vec<Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Starts with a condition that has no parameter.
    pub fn new(first: &str) -> Conditions<'a> {
        Conditions { sql: first.to_owned(), values: Vec::new() }
    }

    /// `?` in the condition stands for the value.
    pub fn and(&mut self, condition: &str, value: Value<'a>) {
        let placeholder = self.value(value);
        self.sql.push_str(" and ");
        self.sql.push_str(&condition.replace('?', &placeholder));
    }

    /// A condition without a parameter of its own.
    pub fn and_sql(&mut self, condition: &str) {
        self.sql.push_str(" and ");
        self.sql.push_str(condition);
    }

    /// Adds a parameter and returns its placeholder, such as `$3`.
    pub fn value(&mut self, value: Value<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    pub fn sql(&self) -> &str {
        &self.sql
    }

    pub fn values(&self) -> &[Value<'a>] {
        &self.values
    }
}
