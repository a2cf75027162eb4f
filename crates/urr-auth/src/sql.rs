//! Helpers for the SQL of the auth service.
//!
//! Whatever changes a user's sessions, role or password first locks the user's row with
//! `user_lock`. So a refresh and a concurrent logout, change of role or deletion run one after the
//! other, and none misses a token that another issues. The counter of revocations is locked last.

use std::fmt::Display;
use std::str::FromStr;

use urr_storage::{Row, StorageError};

/// A column that holds the name of a variant of a foreign enum.
pub fn get_named<T: FromStr<Err: Display>>(row: &Row<'_>, column: &str) -> Result<T, StorageError> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error: T::Err| StorageError::Decode {
        column: column.to_owned(),
        reason: error.to_string(),
    })
}

/// Placeholders such as `$2, $3, $4` for three parameters from the second on.
pub fn parameters(first: usize, count: usize) -> String {
    let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
