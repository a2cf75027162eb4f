//! Conditions of SQL statements, built together with their parameters.

/// A `where` clause with its parameters, so that numbers and values stay in step.
pub struct Conditions<'a> {
    sql: String,
    values: Vec<urr_storage::Value<'a>>,
}

impl<'a> Conditions<'a> {
    /// Starts with a condition that has no parameter.
    pub fn new(first: &str) -> Conditions<'a> {
        Conditions { sql: first.to_owned(), values: Vec::new() }
    }

    /// `?` in the condition stands for the value.
    pub fn and(&mut self, condition: &str, value: urr_storage::Value<'a>) {
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
