//! Columns that hold the name of a variant of an enum of the contracts.

use std::fmt::Display;
use std::str::FromStr;

use urr_storage::{DbResult, Row, StorageError};

pub fn get_named<T: FromStr<Err: Display>>(row: &Row<'_>, column: &str) -> DbResult<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| StorageError::Decode {
        column: column.to_owned(),
        reason: error.to_string(),
    })
}
