//! Statements over many ids with one text for both databases.
//!
//! A statement names 1, 8, 32, 100 or 500 ids; a short chunk is filled up with its last id, which
//! changes nothing for `in (…)`. So there are five texts to prepare and not hundreds.

use urr_kernel::Uuid;
use urr_storage::Value;

/// The last is the most that one statement names.
const CHUNKS: [usize; 5] = [1, 8, 32, 100, 500];

/// Runs `statement` over the ids: it is given the list for `in (…)`, whose numbers begin after
/// those of `first`, and all parameters.
pub fn for_each_chunk<E>(
    ids: &[Uuid],
    first: &[Value<'_>],
    mut statement: impl FnMut(&str, &[Value<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let size = CHUNKS.into_iter().find(|size| ids.len() <= *size).unwrap_or(500);
    let numbers: Vec<String> = (1..=size).map(|n| format!("${}", first.len() + n)).collect();
    let list = numbers.join(", ");
    for chunk in ids.chunks(size) {
        let last = chunk.last().expect("a chunk is not empty");
        let padded = chunk.iter().chain(std::iter::repeat(last)).take(size);
        let ids = padded.map(|id| Value::Uuid(*id));
        let values: Vec<Value<'_>> = first.iter().cloned().chain(ids).collect();
        statement(&list, &values)?;
    }
    Ok(())
}
