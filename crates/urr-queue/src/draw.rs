//! The draw of a lottery. Each step can be repeated after a crash, by any process and by two at once,
//! with the same result.
//!
//! Commit: when the event becomes a lottery, a secret is made and its hash published. Close: the last
//! number that takes part is stored. Fix: the users who wait with a number up to it are read from the
//! room, and their list and the round of the beacon are stored and published. Order: when the round has
//! appeared, the order is computed and stored. Number: those who still wait get their new numbers.
//! Finish: the secret is published, and users are admitted.

mod beacon;
pub(crate) mod cache;
pub(crate) mod downloads;
mod file;
mod seal;
mod verify;

use std::collections::HashMap;

use urr_kernel::{Timestamp, Uuid};
use urr_room::RoomError;
use urr_storage::{DbResult, StorageError, Tx};

pub use crate::domain::beacon::BeaconValue;
use crate::domain::beacon::round_for;
use crate::domain::draw as domain;
pub use crate::domain::draw::{Digest, DrawSecret, Entrant, EntrantList, EntrantTag};
use crate::store::draws::{self, DrawClosing, DrawCommitment, StoredDraw};
use crate::store::rooms;
use crate::{QueueService, RoomPhase};

pub use beacon::{BeaconError, BeaconSource, DrandClient};
pub use file::{DrawFileHeader, lines};
pub use seal::{DrawSeal, SealedWithOtherKey};
pub use verify::{DrawReport, VerifyError, verify_draw};

/// Why a step of a draw failed. It will be retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("there is no draw in this state")]
    OutOfOrder,
    #[error("the beacon has not told its round yet: {0}")]
    BeaconPending(String),
}

/// A random secret.
pub fn new_secret() -> DrawSecret {
    DrawSecret::new(rand::random())
}

/// Commits to the secret of a lottery, in the transaction that makes the event one. An earlier
/// commitment stays, because it may have been seen.
pub fn commit(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    secret: &DrawSecret,
    seal: &DrawSeal,
    now: Timestamp,
) -> DbResult<()> {
    let commitment = DrawCommitment::new(event_id, secret, seal);
    draws::draw_insert(tx, event_id, &commitment, now).map(drop)
}

impl QueueService {
    /// Draws the order of the users who joined before the sale of a lottery, if it is time.
    pub async fn draw(&self, event_id: Uuid) -> Result<(), DrawError> {
        let (room, now) = (self.0.event_index.get(event_id), self.0.clock.now());
        if room.is_none_or(|room| room.phase(&self.0.settings, now) != RoomPhase::Drawing) {
            return Ok(());
        }
        close(self, event_id, now).await?;
        fix_entrants(self, event_id, now).await?;
        order_entrants(self, event_id, now).await?;
        number_entrants(self, event_id).await?;
        finish(self, event_id).await
    }
}

/// Stores the last number that takes part. Users who join from now on stand behind.
pub async fn close(queue: &QueueService, event_id: Uuid, now: Timestamp) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?;
    if draw.as_ref().is_some_and(|draw| draw.closing.is_some()) {
        return Ok(());
    }
    if draw.is_none() {
        // Impossible unless the tables were changed from outside. A late commitment proves little, as
        // its date shows, but a sale that never opens would be worse.
        tracing::error!(%event_id, "a lottery had no commitment; it is made after the opening");
    }
    let last_number = queue.0.rooms.crowd(event_id, now).await?.last_number;
    let commitment = DrawCommitment::new(event_id, &new_secret(), &queue.0.draw_seal);
    let is_lost = draw.is_some_and(|draw| draw.secret(&queue.0.draw_seal).is_err());
    if is_lost {
        tracing::error!(%event_id, "the secret of a lottery cannot be decrypted; it gets another one");
    }
    let closed = queue.0.db.write(move |tx| {
        if is_lost {
            draws::draw_delete_unclosed(tx, event_id)?;
        }
        draws::draw_insert(tx, event_id, &commitment, now)?;
        draws::draw_close(tx, event_id, &DrawClosing { last_number, closed_at: now })
    });
    if closed.await? {
        tracing::info!(%event_id, last_number, "the draw is closed");
    }
    Ok(())
}

/// Stores who takes part, and which round of the beacon will decide.
pub async fn fix_entrants(
    queue: &QueueService,
    event_id: Uuid,
    now: Timestamp,
) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?.ok_or(DrawError::OutOfOrder)?;
    if draw.entrants.is_some() {
        return Ok(());
    }
    let closing = draw.closing.ok_or(DrawError::OutOfOrder)?;
    let users = queue.0.rooms.entrants(event_id, closing.last_number).await?;
    let list = off_the_runtime(move || {
        let tags: Vec<EntrantTag> =
            users.iter().map(|user_id| EntrantTag::of(event_id, *user_id)).collect();
        EntrantList::new(&tags)
    });
    let list = list.await;
    let count = list.entrants.len();
    let fixed = queue.0.db.write(move |tx| draws::entrants_insert(tx, event_id, &list, now));
    if fixed.await? {
        tracing::info!(%event_id, count, "those who take part are known");
    }
    Ok(())
}

/// Stores the order, once the round of the beacon has appeared.
pub async fn order_entrants(
    queue: &QueueService,
    event_id: Uuid,
    now: Timestamp,
) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?.ok_or(DrawError::OutOfOrder)?;
    let fixed = draw.entrants.ok_or(DrawError::OutOfOrder)?;
    if draw.beacon.is_some() {
        return Ok(());
    }
    let secret = draw.secret(&queue.0.draw_seal).map_err(|_| DrawError::OutOfOrder)?;
    let beacon = beacon_value(queue, fixed.fixed_at, now).await?;
    let entrants = read_entrants(queue, event_id).await?;
    let list = EntrantList { digest: fixed.digest, arrivals: fixed.arrivals, entrants };
    let used = beacon.clone();
    let drawn = off_the_runtime(move || list.drawn(&secret, &used)).await;
    let told = beacon.to_string();
    let ordered =
        queue.0.db.write(move |tx| draws::entrants_reorder(tx, event_id, &beacon, &drawn.entrants));
    if ordered.await? {
        tracing::info!(%event_id, beacon = told, "the order is drawn");
    }
    Ok(())
}

/// The value that decides. If the beacon cannot be reached for too long, the sale opens with a value of
/// our own, and the file says so.
async fn beacon_value(
    queue: &QueueService,
    fixed_at: Timestamp,
    now: Timestamp,
) -> Result<BeaconValue, DrawError> {
    let BeaconSource::Drand(client) = &queue.0.beacon else {
        return Ok(BeaconValue::Offline(rand::random()));
    };
    match client.fetch(round_for(fixed_at)).await {
        Ok(value) => Ok(value),
        Err(error) if now < fixed_at + queue.0.settings.beacon_wait => {
            Err(DrawError::BeaconPending(error.to_string()))
        }
        Err(error) => {
            tracing::error!(%error, "the beacon cannot be reached; the draw goes on without it");
            Ok(BeaconValue::Offline(rand::random()))
        }
    }
}

/// Gives the entrants who still wait their numbers.
pub async fn number_entrants(queue: &QueueService, event_id: Uuid) -> Result<(), DrawError> {
    let draw = find(queue, event_id).await?.ok_or(DrawError::OutOfOrder)?;
    let closing = draw.closing.ok_or(DrawError::OutOfOrder)?;
    draw.beacon.ok_or(DrawError::OutOfOrder)?;
    let drawn = read_entrants(queue, event_id).await?;
    let waiting = queue.0.rooms.entrants(event_id, closing.last_number).await?;
    let numbers = off_the_runtime(move || numbers(event_id, &drawn, &waiting)).await;
    // Also if nobody is left to number: only the answer of the room says that the numbers which were
    // given before are durable.
    queue.0.rooms.renumber(event_id, closing.last_number, &numbers).await?;
    Ok(())
}

/// Publishes the draw and opens the admission, after all entrants have their numbers.
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

async fn find(queue: &QueueService, event_id: Uuid) -> DbResult<Option<StoredDraw>> {
    queue.0.db.read(move |tx| draws::draw_find(tx, event_id)).await
}

/// One part of the entrants in drawn order, or of arrival until they are drawn; `None` behind the last.
pub(crate) async fn find_part(
    queue: &QueueService,
    event_id: Uuid,
    part: u32,
) -> DbResult<Option<Vec<Entrant>>> {
    queue.0.db.read(move |tx| draws::entrants_find(tx, event_id, part)).await
}

async fn read_entrants(queue: &QueueService, event_id: Uuid) -> DbResult<Vec<Entrant>> {
    let mut all = Vec::new();
    for part in 0.. {
        match find_part(queue, event_id, part).await? {
            Some(entrants) => all.extend(entrants),
            None => break,
        }
    }
    Ok(all)
}

/// The numbers of the entrants who still wait, front first.
fn numbers(event_id: Uuid, drawn: &[Entrant], waiting: &[Uuid]) -> Vec<(Uuid, i64)> {
    let count = u32::try_from(drawn.len()).expect("a room holds fewer than 2^32");
    let ranks: HashMap<EntrantTag, u32> =
        drawn.iter().map(|entrant| entrant.tag).zip(1..).collect();
    let number = |user_id: &Uuid| {
        let rank = ranks.get(&EntrantTag::of(event_id, *user_id))?;
        Some((*user_id, domain::number_in_line(*rank, count)))
    };
    let mut numbers: Vec<_> = waiting.iter().filter_map(number).collect();
    numbers.sort_unstable_by_key(|(_, number)| *number);
    numbers
}

/// A million hashes take about a second and would block the runtime.
async fn off_the_runtime<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.expect("it does not panic, and is not cancelled once it runs")
}
