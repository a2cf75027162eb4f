//! Statements over many ids with one text for both databases.
//!
//! A statement names either one id or a hundred; a short chunk is filled up with its last id, which
//! changes nothing for `in (…)`. So there are two texts to prepare and not a hundred.

use urr_kernel::Uuid;
use urr_storage::Value;

const CHUNK: usize = 100;

/// Runs `statement` over the ids: it is given the list for `in (…)`, whose numbers begin after
/// those of `first`, and all parameters.
pub fn for_each_chunk<E>(
    ids: &[Uuid],
    first: &[Value<'_>],
    mut statement: impl FnMut(&str, &[Value<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let size = if ids.len() == 1 { 1 } else { CHUNK };
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
