//! The SQL of the search index.

use urr_kernel::search::{GRAMS_MAX, SearchQuery, SearchText, WORDS_MAX};
use urr_storage::{DbResult, ToValue, Tx, Value, params};

use crate::events::rules::EventId;
use crate::sql::Conditions;

/// How many grams one statement inserts. The last chunk repeats its last gram, so that the database
/// prepares one statement and not fifty.
const CHUNK: usize = 50;

/// Replaces the indexed grams of an event.
pub fn grams_replace(tx: &mut Tx<'_>, id: EventId, search_text: &SearchText) -> DbResult<()> {
    tx.execute("delete from event_grams where event_id = $1", params![id])?;
    let rows: Vec<String> = (2..CHUNK + 2).map(|number| format!("(${number}, $1)")).collect();
    let sql = format!(
        "insert into event_grams (gram, event_id) values {} on conflict do nothing",
        rows.join(", ")
    );
    let grams: Vec<&String> = search_text.grams.iter().collect();
    for chunk in grams.chunks(CHUNK) {
        let last = chunk.last().expect("a chunk is not empty");
        let padded = chunk.iter().chain(std::iter::repeat(last)).take(CHUNK);
        let mut values = vec![id.to_value()];
        values.extend(padded.map(|gram| Value::Text(gram)));
        tx.execute(&sql, &values)?;
    }
    Ok(())
}

/// Restricts a list to the matches of a search: the index narrows it down, the words decide.
pub fn search_condition<'a>(
    conditions: &mut Conditions<'a>,
    search: &'a SearchQuery,
    patterns: &'a [String],
) {
    let grams = search.grams();
    let placeholders: Vec<String> =
        padded(grams, GRAMS_MAX).map(|gram| conditions.value(gram.to_value())).collect();
    let distinct = i64::try_from(grams.len()).expect("they are few");
    let distinct = conditions.value(Value::Int(distinct));
    let condition = format!(
        "e.id in (select event_id from event_grams where gram in ({}) \
         group by event_id having count(*) = {distinct}::bigint)",
        placeholders.join(", "),
    );
    conditions.and_sql(&condition);
    for pattern in padded(patterns, WORDS_MAX) {
        conditions.and("e.search_text like ? escape '\\'", pattern.to_value());
    }
}

/// Repeats the last text up to `number`, so that every search is the same SQL statement, which the
/// database prepares once.
fn padded(all: &[String], number: usize) -> impl Iterator<Item = &String> {
    let last = all.last().expect("a search has at least one word");
    all.iter().chain(std::iter::repeat(last)).take(number)
}

/// The database's plan for a search.
pub fn search_explain(tx: &mut Tx<'_>, search: &SearchQuery) -> DbResult<Vec<String>> {
    let patterns = search.patterns();
    let mut conditions = Conditions::new("e.deleted_at is null");
    search_condition(&mut conditions, search, &patterns);
    let query = format!("select e.id from events e where {}", conditions.sql());
    let (words, column) = match tx.is_postgres() {
        true => ("explain", "QUERY PLAN"),
        false => ("explain query plan", "detail"),
    };
    tx.query(&format!("{words} {query}"), conditions.values(), |row| row.get(column))
}

/// Writes the search text of an event and its grams.
pub fn search_text_update(tx: &mut Tx<'_>, id: EventId, search_text: &SearchText) -> DbResult<()> {
    let sql = "update events set search_text = $2 where id = $1";
    tx.execute(sql, params![id, search_text.text])?;
    grams_replace(tx, id, search_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_the_same_text_for_the_database() {
        let text = |search: &str| {
            let search = SearchQuery::parse(search).unwrap();
            let patterns = search.patterns();
            let mut conditions = Conditions::new("1 = 1");
            search_condition(&mut conditions, &search, &patterns);
            (conditions.sql().to_owned(), conditions.values().len())
        };
        let one = text("밤");
        for search in ["한강의 밤", "a b c d e f g", &"가나다라마바사아".repeat(9), "%_\\' ?"]
        {
            assert_eq!(text(search), one, "{search}");
        }
    }
}
