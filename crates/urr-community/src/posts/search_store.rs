//! The SQL of the search index: titles of posts, letter by letter.

use urr_kernel::search::{GRAMS_MAX, SearchQuery, SearchText, WORDS_MAX};
use urr_storage::{DbResult, ToValue, Tx, Value, params};

use super::PostId;

/// How many grams one statement inserts. The last chunk repeats its last gram, so that the database
/// prepares one statement and not fifty.
const CHUNK: usize = 50;

pub fn grams_delete(tx: &mut Tx<'_>, id: PostId) -> DbResult<()> {
    tx.execute("delete from post_grams where post_id = $1", params![id]).map(drop)
}

/// Replaces the indexed grams of a post.
pub fn grams_replace(tx: &mut Tx<'_>, id: PostId, search_text: &SearchText) -> DbResult<()> {
    grams_delete(tx, id)?;
    let rows: Vec<String> = (2..CHUNK + 2).map(|number| format!("(${number}, $1)")).collect();
    let rows = rows.join(", ");
    let sql =
        format!("insert into post_grams (gram, post_id) values {rows} on conflict do nothing");
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

/// Restricts a list to the matches of a search: the index narrows it down, the words decide. Every
/// search is the same text, which the database prepares once.
pub fn search_condition<'a>(
    search: &'a SearchQuery,
    patterns: &'a [String],
    values: &mut Vec<Value<'a>>,
) -> String {
    let mut add = |value: Value<'a>| {
        values.push(value);
        format!("${}", values.len())
    };
    let grams = search.grams();
    let placeholders: Vec<String> =
        padded(grams, GRAMS_MAX).map(|gram| add(Value::Text(gram))).collect();
    let distinct = add(Value::Int(i64::try_from(grams.len()).expect("they are few")));
    let mut condition = format!(
        " and p.id in (select post_id from post_grams where gram in ({}) \
         group by post_id having count(*) = {distinct}::bigint)",
        placeholders.join(", ")
    );
    for pattern in padded(patterns, WORDS_MAX) {
        let pattern = add(Value::Text(pattern));
        condition += &format!(" and p.search_text like {pattern} escape '\\'");
    }
    condition
}

fn padded(all: &[String], number: usize) -> impl Iterator<Item = &String> {
    let last = all.last().expect("a search has at least one word");
    all.iter().chain(std::iter::repeat(last)).take(number)
}
