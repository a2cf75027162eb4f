//! The rooms as the journal has them.

use hashbrown::DefaultHashBuilder;
use urr_kernel::Timestamp;
use urr_storage::{Db, StorageError};

use super::Recovered;
use super::journal::{Totals, place_page, room_all, slot_all, stray_rooms};
use super::known::Known;
use super::line::Entry;
use super::queues::Queues;
use super::room::{Restored, Room};

/// What the journal had.
pub struct Found {
    pub known: Known,
    pub recovered: Recovered,
    pub last_room_number: i64,
    /// Rooms that were cleared, and whose places have not all been removed.
    pub left_rooms: Vec<i64>,
}

pub async fn recover(
    journal: &Db,
    hasher: &DefaultHashBuilder,
    queues: &Queues,
    now: Timestamp,
) -> Result<Found, StorageError> {
    let all: Vec<Totals> = journal.read(room_all).await?;
    let numbers: Vec<i64> = all.iter().map(|totals| totals.room).collect();
    let left_rooms = journal.read(move |tx| stray_rooms(tx, &numbers)).await?;
    let numbers = all.iter().map(|totals| totals.room).chain(left_rooms.iter().copied());
    let last_room_number = numbers.max().unwrap_or(0);
    let mut recovered = Recovered::default();
    let mut known = Known::default();
    for totals in all {
        let entries = read_line(journal, totals.room, now).await?;
        for entry in &entries {
            queues.restore(entry.user_id);
        }
        let slots = journal.read(move |tx| slot_all(tx, totals.room)).await?;
        recovered.rooms += 1;
        recovered.waiting += count(entries.len());
        recovered.active += count(slots.len());
        let restored = Restored { totals, entries, slots };
        let room = Room::restore(restored, now.as_microsecond(), hasher.clone());
        known.restore(totals, room);
    }
    Ok(Found { known, recovered, last_room_number, left_rooms })
}

/// Those who wait, in the order of the line.
async fn read_line(journal: &Db, room: i64, now: Timestamp) -> Result<Vec<Entry>, StorageError> {
    let seen_at_us = now.as_microsecond();
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let last = entries.last().map_or(i64::MIN, |entry| entry.arrival);
        let page = journal.read(move |tx| place_page(tx, room, last)).await?;
        if page.is_empty() {
            break;
        }
        entries.extend(page.into_iter().map(|kept| Entry {
            user_id: kept.user_id,
            number: kept.drawn.unwrap_or(kept.arrival),
            arrival: kept.arrival,
            seen_at_us,
        }));
    }
    if !entries.is_sorted_by_key(Entry::key) {
        entries.sort_unstable_by_key(Entry::key);
    }
    Ok(entries)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).expect("memory holds no more")
}
