//! The SQL of accounts.
//!
//! Whatever changes a user's sessions, role or password first locks the user's row
//! ([`users::user_lock`]). So a refresh and the logout, change of role or deletion beside it happen
//! one after the other, and none of them misses a token that the other issues. The counter of
//! revocations is locked last.

pub mod records;
pub mod sessions;
pub mod social;
pub mod users;

/// `$2, $3, $4` for three parameters from the second on.
pub fn parameters(first: usize, count: usize) -> String {
    let numbers: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    numbers.join(", ")
}
