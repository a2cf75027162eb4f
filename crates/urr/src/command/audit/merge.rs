//! Compares what two services say about the same things, a page at a time.

use anyhow::Result;
use urr_kernel::Uuid;
use urr_storage::RowDifference;

/// More differences than this are not listed.
pub const DIFFERENCES_MAX: usize = 1_000;

/// What one side says: a line for each id, in their order.
pub type LinePage = Vec<(Uuid, String)>;

/// The words for a comparison.
#[derive(Clone, Copy)]
pub struct Comparison {
    pub kind: &'static str,
    /// What is compared, for example a reservation.
    pub noun: &'static str,
    /// Who has it, for example the table of the ticket service.
    pub left: &'static str,
    pub right: &'static str,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ComparedRows {
    pub count: u64,
    pub differences: Vec<RowDifference>,
}

/// One side: its present page and where the next one begins.
struct Side<F> {
    read: F,
    page: std::vec::IntoIter<(Uuid, String)>,
    after: Option<Uuid>,
    is_done: bool,
}

impl<F: AsyncFnMut(Option<Uuid>) -> Result<LinePage>> Side<F> {
    fn new(read: F) -> Side<F> {
        Side { read, page: Vec::new().into_iter(), after: None, is_done: false }
    }

    /// The next line without taking it.
    async fn peek(&mut self) -> Result<Option<Uuid>> {
        if self.page.as_slice().is_empty() && !self.is_done {
            let page = (self.read)(self.after).await?;
            self.is_done = page.is_empty();
            self.after = page.last().map(|(id, _)| *id).or(self.after);
            self.page = page.into_iter();
        }
        Ok(self.page.as_slice().first().map(|(id, _)| *id))
    }

    fn take(&mut self) -> Option<String> {
        self.page.next().map(|(_, line)| line)
    }
}

/// Reads both sides to their end. Only a page of each is in memory.
pub async fn compare_lines(
    words: Comparison,
    left: impl AsyncFnMut(Option<Uuid>) -> Result<LinePage>,
    right: impl AsyncFnMut(Option<Uuid>) -> Result<LinePage>,
) -> Result<ComparedRows> {
    let (mut left, mut right) = (Side::new(left), Side::new(right));
    let mut found = ComparedRows::default();
    loop {
        let (id, ours, theirs) = match (left.peek().await?, right.peek().await?) {
            (None, None) => return Ok(found),
            (Some(ours), Some(theirs)) if ours == theirs => (ours, left.take(), right.take()),
            (Some(ours), theirs) if theirs.is_none_or(|theirs| ours < theirs) => {
                (ours, left.take(), None)
            }
            (_, Some(theirs)) => (theirs, None, right.take()),
            (Some(_), None) => unreachable!("the case before has it"),
        };
        found.count += 1;
        if ours != theirs && found.differences.len() < DIFFERENCES_MAX {
            found.differences.push(difference(words, id, ours.as_deref(), theirs.as_deref()));
        }
    }
}

fn difference(
    words: Comparison,
    id: Uuid,
    left: Option<&str>,
    right: Option<&str>,
) -> RowDifference {
    let Comparison { kind, noun, left: left_name, right: right_name } = words;
    let said = match (left, right) {
        (Some(_), None) => format!("{left_name} has it, and {right_name} has not"),
        (None, Some(_)) => format!("{right_name} has it, and {left_name} has not"),
        _ => format!("{left_name} and {right_name} differ"),
    };
    let row = |name: &str, line: &str| format!("{name} id={id} {line}");
    let rows = [left.map(|line| row(left_name, line)), right.map(|line| row(right_name, line))];
    RowDifference {
        kind,
        sentence: format!("{noun} {id}: {said}"),
        rows: rows.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Comparison =
        Comparison { kind: "test", noun: "thing", left: "left", right: "right" };

    /// Sides are texts such as `1=a 2=b`, read two at a time.
    fn compared(left: &str, right: &str) -> (u64, Vec<String>) {
        let side = |text: &str| {
            let lines: LinePage = text
                .split_whitespace()
                .map(|pair| pair.split_once('=').unwrap())
                .map(|(id, line)| (Uuid::from_u128(id.parse().unwrap()), line.to_owned()))
                .collect();
            async move |after: Option<Uuid>| {
                let later = lines.iter().filter(|(id, _)| after.is_none_or(|after| *id > after));
                Ok(later.take(2).cloned().collect::<LinePage>())
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(compare_lines(WORDS, side(left), side(right))).unwrap();
        let last = |found: &RowDifference| {
            let (_, said) = found.sentence.split_once(": ").unwrap();
            format!("{} {said}", found.rows.len())
        };
        (found.count, found.differences.iter().map(last).collect())
    }

    #[test]
    fn lines_are_compared_in_both_directions_over_pages() {
        assert_eq!(compared("1=a 2=b 3=c", "1=a 2=b 3=c"), (3, vec![]));
        assert_eq!(compared("", ""), (0, vec![]));
        assert_eq!(
            compared("1=a 3=c 4=d 5=e", "1=a 2=b 3=c 4=x"),
            (
                5,
                vec![
                    "1 right has it, and left has not".to_owned(),
                    "2 left and right differ".to_owned(),
                    "1 left has it, and right has not".to_owned(),
                ]
            )
        );
    }
}
