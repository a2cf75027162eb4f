//! The SQL of the catalogue: small functions that take a transaction.

pub mod artists;
pub mod audit;
pub mod events;
pub mod images;
pub mod listing;
pub mod revision;
pub mod search;
pub mod venues;

/// Adds conditions and their parameters to a statement, so that both stay in step.
pub struct Conditions<'a> {
    sql: String,
    values: Vec<urr_storage::Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Begins with a condition that has no parameter.
    pub fn new(first: &str) -> Conditions<'a> {
        Conditions { sql: first.to_owned(), values: Vec::new() }
    }

    /// `?` in the condition stands for the value.
    pub fn and(&mut self, condition: &str, value: urr_storage::Value<'a>) {
        let place = self.value(value);
        self.sql.push_str(" and ");
        self.sql.push_str(&condition.replace('?', &place));
    }

    /// A condition without a parameter of its own.
    pub fn and_sql(&mut self, condition: &str) {
        self.sql.push_str(" and ");
        self.sql.push_str(condition);
    }

    /// Adds a parameter and gives its place: `$3`.
    pub fn value(&mut self, value: urr_storage::Value<'a>) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    pub fn sql(&self) -> &str {
        &self.sql
    }

    pub fn values(&self) -> &[urr_storage::Value<'a>] {
        &self.values
    }
}
