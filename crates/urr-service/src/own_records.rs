//! What a service has of one user, as plain JSON for the copy of their data.

use serde_json::{Map, Value, json};

/// Puts tables side by side. Each was read up to one row more than `rows_max`: a table that has more
/// is cut and named in `truncated`, so that no copy is incomplete without saying so.
pub fn bounded_records(
    tables: impl IntoIterator<Item = (&'static str, Vec<Value>)>,
    rows_max: u32,
) -> Value {
    let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX);
    let (mut records, mut truncated) = (Map::new(), Vec::new());
    for (name, mut rows) in tables {
        if rows.len() > rows_max {
            rows.truncate(rows_max);
            truncated.push(name);
        }
        records.insert(name.to_owned(), Value::Array(rows));
    }
    records.insert("truncated".to_owned(), json!(truncated));
    Value::Object(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_named() {
        let rows = |count: u32| (0..count).map(Value::from).collect::<Vec<_>>();
        let records = bounded_records([("mails", rows(3)), ("payments", rows(2))], 2);
        let expected = json!({ "mails": [0, 1], "payments": [0, 1], "truncated": ["mails"] });
        assert_eq!(records, expected);
    }
}
