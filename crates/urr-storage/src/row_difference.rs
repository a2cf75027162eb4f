//! What an audit reports.

use serde::Serialize;

/// Rows that do not agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RowDifference {
    /// For programs.
    pub kind: &'static str,
    /// For people. It names what differs.
    pub sentence: String,
    /// The rows as they are: the table, then its columns.
    pub rows: Vec<String>,
}
