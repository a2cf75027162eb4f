//! The draw of a lottery. Each step can be taken again after a crash, by any process and by two at
//! once, and comes to the same.
//!
//! Commit: a secret is made when the event becomes a lottery, and its hash published. Close: the
//! last number that takes part is written down. Fix: who waits with a number up to it is read from
//! the room, their order computed and written down. Number: those who still wait get their number
//! from it. Finish: the secret is published, and the door opens.

mod file;
mod verify;

use std::collections::HashMap;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx};

use crate::domain::draw as domain;
pub use crate::domain::draw::{Digest, DrawSecret, DrawResult, Entrant, EntrantTag, draw as order, hex};
use crate::store::draws::{self, DrawClosing, StoredDraw};
use crate::store::rooms;
use crate::{EventRoom, RoomPhase, QueueService};
use urr_room::RoomError;

pub use file::{DrawFileHeader, lines};
pub use verify::{DrawReport, VerifyError, verify_draw};

/// Why a step of a draw was not taken. It is taken again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("there is no draw in this state")]
    OutOfOrder,
}

/// A secret nobody can predict.
pub fn new_secret() -> DrawSecret {
    DrawSecret::new(rand::random())
}

/// Commits to the secret of a lottery. To be called in the transaction that makes the event one. A
/// commitment from before stays: it may have been seen.
pub fn commit(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    secret: &DrawSecret,
    now: Timestamp,
) -> Result<(), StorageError> {
    draws::draw_insert(tx, event_id, secret, now).map(drop)
}

/// Draws the order of those who came before the sale, if it is time. Called once a second, by every
/// process.
pub async fn draw_due(queue: &QueueService, room: &EventRoom, now: Timestamp) -> Result<(), DrawError> {
    if room.phase(&queue.0.settings, now) != RoomPhase::Drawing {
        return Ok(());
    }
    let event_id = room.event_id;
    close(queue, event_id, now).await?;
    fix_entrants(queue, event_id).await?;
    number_entrants(queue, event_id).await?;
    finish(queue, event_id).await
}

impl QueueService {
    /// Draws the order of those who came before the sale of an event, if it is time.
    pub async fn draw(&self, event_id: Uuid) -> Result<(), DrawError> {
        match self.0.event_index.get(event_id) {
            Some(room) => draw_due(self, &room, self.0.clock.now()).await,
            None => Ok(()),
        }
    }
}

/// Writes down the last number that takes part. Who comes from now on stands behind.
pub async fn close(queue: &QueueService, event_id: Uuid, now: Timestamp) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?;
    if draw.as_ref().is_some_and(|draw| draw.closing.is_some()) {
        return Ok(());
    }
    if draw.is_none() {
        // Impossible unless someone wrote into our tables. A late commitment proves little, which
        // its date shows; a sale that never opens would be worse.
        tracing::error!(%event_id, "a lottery had no commitment; it is made after the opening");
    }
    let last_number = queue.0.rooms.crowd(event_id, now).await?.last_number;
    let secret = new_secret();
    let closed = queue.0.db.write(move |tx| {
        draws::draw_insert(tx, event_id, &secret, now)?;
        draws::draw_close(tx, event_id, &DrawClosing { last_number, closed_at: now })
    });
    if closed.await? {
        tracing::info!(%event_id, last_number, "the draw is closed");
    }
    Ok(())
}

/// Writes down who takes part and in which order.
pub async fn fix_entrants(queue: &QueueService, event_id: Uuid) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?.ok_or(DrawError::OutOfOrder)?;
    if draw.entrants.is_some() {
        return Ok(());
    }
    let closing = draw.closing.ok_or(DrawError::OutOfOrder)?;
    let users = queue.0.rooms.entrants(event_id, closing.last_number).await?;
    let drawn = off_the_runtime(move || {
        let tags: Vec<EntrantTag> = users.iter().map(|user_id| EntrantTag::of(event_id, *user_id)).collect();
        domain::draw(&draw.secret, &tags)
    });
    let drawn = drawn.await;
    let count = drawn.entrants.len();
    let fixed = queue.0.db.write(move |tx| draws::entrants_insert(tx, event_id, &drawn));
    if fixed.await? {
        tracing::info!(%event_id, count, "the order is drawn");
    }
    Ok(())
}

/// Gives those who still wait their number.
pub async fn number_entrants(queue: &QueueService, event_id: Uuid) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?.ok_or(DrawError::OutOfOrder)?;
    let closing = draw.closing.ok_or(DrawError::OutOfOrder)?;
    draw.entrants.ok_or(DrawError::OutOfOrder)?;
    let drawn = read_entrants(queue, event_id).await?;
    let waiting = queue.0.rooms.entrants(event_id, closing.last_number).await?;
    let numbers = off_the_runtime(move || numbers(event_id, &drawn, &waiting)).await;
    // Also with nobody left to number: that alone does not say that the numbers others have are
    // durable, but the room's answer does.
    queue.0.rooms.renumber(event_id, closing.last_number, &numbers).await?;
    Ok(())
}

/// Publishes the draw and opens the door. To be called when everybody has their number.
pub async fn finish(queue: &QueueService, event_id: Uuid) -> Result<(), DrawError> {
    let now = queue.0.clock.now();
    let finished = queue.0.db.write(move |tx| {
        let is_first = draws::draw_finish(tx, event_id, now)?;
        if is_first {
            rooms::revision_raise(tx)?;
        }
        Ok::<_, StorageError>(is_first)
    });
    if finished.await? {
        tracing::info!(%event_id, "the draw is done");
    }
    queue.0.event_index.refresh(&queue.0.db).await?;
    Ok(())
}

/// A draw as far as it is.
pub(crate) async fn find(queue: &QueueService, event_id: Uuid) -> Result<Option<StoredDraw>, StorageError> {
    queue.0.db.read(move |tx| draws::draw_find(tx, event_id)).await
}

/// Some of the entrants in the order that was drawn; `None` behind the last.
pub(crate) async fn find_part(
    queue: &QueueService,
    event_id: Uuid,
    part: u32,
) -> Result<Option<Vec<Entrant>>, StorageError> {
    queue.0.db.read(move |tx| draws::entrants_find(tx, event_id, part)).await
}

async fn read_entrants(queue: &QueueService, event_id: Uuid) -> Result<Vec<Entrant>, StorageError> {
    let mut all = Vec::new();
    for part in 0.. {
        match find_part(queue, event_id, part).await? {
            Some(entrants) => all.extend(entrants),
            None => break,
        }
    }
    Ok(all)
}

/// The numbers of those who still wait, front first.
fn numbers(event_id: Uuid, drawn: &[Entrant], waiting: &[Uuid]) -> Vec<(Uuid, i64)> {
    let count = u32::try_from(drawn.len()).expect("a room holds fewer than 2^32");
    let ranks: HashMap<EntrantTag, u32> = drawn.iter().map(|entrant| entrant.tag).zip(1..).collect();
    let number = |user_id: &Uuid| {
        let rank = ranks.get(&EntrantTag::of(event_id, *user_id))?;
        Some((*user_id, domain::number_in_line(*rank, count)))
    };
    let mut numbers: Vec<_> = waiting.iter().filter_map(number).collect();
    numbers.sort_unstable_by_key(|(_, number)| *number);
    numbers
}

/// A million hashes take about a second: the threads that answer requests must not wait for them.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("it does not panic, and is not cancelled once it runs")
}
