//! Renumbers a line after a draw, from the first copy until all numbers are on disk.

use std::sync::{Arc, Mutex};

use tokio::sync::OwnedMutexGuard;

use super::journal::{Journal, JournalRecord};
use super::room::{DrawnNumbers, MemoryRoom};
use super::{Inner, SCANNED_AT_ONCE_MAX, lock};
use crate::RoomError;

/// How many numbers one batch holds.
const DRAWN_AT_ONCE_MAX: usize = 5_000;

/// The drawn numbers, and the last arrival that takes part.
pub struct DrawNumbers {
    pub numbers: DrawnNumbers,
    pub last_number: i64,
}

/// Must run to its end even if the caller is cancelled.
pub async fn draw(
    inner: Arc<Inner>,
    room: Arc<Mutex<MemoryRoom>>,
    draw: DrawNumbers,
    guard: OwnedMutexGuard<()>,
) -> Result<(), RoomError> {
    let mut copied = lock(&room).draw_begin();
    while lock(&room).draw_copy(&mut copied, SCANNED_AT_ONCE_MAX) {
        tokio::task::yield_now().await;
    }
    let hasher = inner.hasher.clone();
    let lined_up = tokio::task::spawn_blocking(move || {
        let new = copied.join_line(&draw.numbers, draw.last_number, hasher);
        let (number, written, old) = lock(&room).draw_end(new);
        drop((room, old));
        (number, written)
    });
    let (number, written) = lined_up.await.map_err(|_| RoomError::Unavailable)?;
    let outcome = write(&inner.journal, number, &written).await;
    drop(guard);
    outcome
}

/// Appends everything even after an error, because the room has these numbers and nobody sets them
/// a second time. The error is returned at the end.
async fn write(journal: &Journal, room: i64, written: &[(i64, i64)]) -> Result<(), RoomError> {
    let mut outcome = Ok(());
    for some in written.chunks(DRAWN_AT_ONCE_MAX) {
        let records = some.iter().map(|&(arrival, number)| JournalRecord::NumberDrawn {
            room,
            arrival,
            number,
        });
        let batch = journal.append(records, None);
        outcome = outcome.and(journal.wait(batch).await);
    }
    // The batches of an earlier, cancelled draw are awaited as well.
    outcome.and(journal.wait(journal.newest_batch()).await)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// After a failed draw nobody is left to be numbered.
    #[test]
    fn a_draw_is_not_done_before_everything_is_on_disk() {
        let journal = Journal::new();
        assert_eq!(write(&journal, 1, &[]).now_or_never(), Some(Ok(())));
        journal.append([JournalRecord::NumberDrawn { room: 1, arrival: 1, number: -1 }], None);
        assert_eq!(write(&journal, 1, &[]).now_or_never(), None);
    }
}
