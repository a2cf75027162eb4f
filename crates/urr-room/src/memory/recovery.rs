//! Recovers the rooms from the journal.

use hashbrown::DefaultHashBuilder;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Db, DbResult};

use super::RecoverySummary;
use super::flow_counters::SECONDS_KEPT;
use super::journal::{
    LOG_KEPT_FOR, RoomTotals, orphan_room_list, position_list, room_list, slot_list,
    slot_log_delete_some, slot_log_is_older, slot_log_list_back,
};
use super::line::LineEntry;
use super::queue_counts::QueueCounts;
use super::registry::RoomRegistry;
use super::room::{MemoryRoom, RestoredRoom};
use crate::slot_log::SlotLogEntry;

/// The rooms of the journal.
pub struct RecoveredState {
    pub registry: RoomRegistry,
    pub recovered: RecoverySummary,
    pub last_room_number: i64,
    /// Retired rooms whose positions were not all deleted.
    pub retired_rooms: Vec<i64>,
}

pub async fn recover(
    journal: &Db,
    hasher: &DefaultHashBuilder,
    queue_counts: &QueueCounts,
    now: Timestamp,
) -> DbResult<RecoveredState> {
    let all: Vec<RoomTotals> = journal.read(room_list).await?;
    let numbers: Vec<i64> = all.iter().map(|totals| totals.room).collect();
    let retired_rooms = journal.read(move |tx| orphan_room_list(tx, &numbers)).await?;
    let numbers = all.iter().map(|totals| totals.room).chain(retired_rooms.iter().copied());
    let last_room_number = numbers.max().unwrap_or(0);
    let mut recovered = RecoverySummary::default();
    let mut registry = RoomRegistry::default();
    for totals in all {
        let (event_id, before) = (totals.event_id, now - LOG_KEPT_FOR);
        if journal.read(move |tx| slot_log_is_older(tx, event_id, before)).await? {
            while journal.write(move |tx| slot_log_delete_some(tx, event_id)).await? {}
        }
        let entries = read_line(journal, totals.room, now).await?;
        for entry in &entries {
            queue_counts.restore(entry.user_id);
        }
        let slots = journal.read(move |tx| slot_list(tx, totals.room)).await?;
        recovered.rooms += 1;
        recovered.waiting += count(entries.len());
        recovered.active += count(slots.len());
        let recent = read_recent(journal, event_id, now).await?;
        let restored = RestoredRoom { totals, entries, slots, recent };
        let room = MemoryRoom::restore(restored, now.as_microsecond(), hasher.clone());
        registry.restore(totals, room);
    }
    Ok(RecoveredState { registry, recovered, last_room_number, retired_rooms })
}

/// The entries of a room, in the order of the line.
async fn read_line(journal: &Db, room: i64, now: Timestamp) -> DbResult<Vec<LineEntry>> {
    let seen_at_us = now.as_microsecond();
    let mut entries: Vec<LineEntry> = Vec::new();
    loop {
        let last = entries.last().map_or(i64::MIN, |entry| entry.arrival);
        let page = journal.read(move |tx| position_list(tx, room, last)).await?;
        if page.is_empty() {
            break;
        }
        entries.extend(page.into_iter().map(|kept| LineEntry {
            user_id: kept.user_id,
            number: kept.drawn.unwrap_or(kept.arrival),
            arrival: kept.arrival,
            seen_at_us,
        }));
    }
    if !entries.is_sorted_by_key(LineEntry::key) {
        entries.sort_unstable_by_key(LineEntry::key);
    }
    Ok(entries)
}

/// What happened to slots in the last seconds.
async fn read_recent(journal: &Db, event_id: Uuid, now: Timestamp) -> DbResult<Vec<SlotLogEntry>> {
    let kept = i64::try_from(SECONDS_KEPT).expect("few");
    let is_recent =
        |logged: &SlotLogEntry| (0..kept).contains(&(now.as_second() - logged.at.as_second()));
    let mut recent: Vec<SlotLogEntry> = Vec::new();
    loop {
        let before = recent.last().map_or(i64::MAX, |logged| logged.entry);
        let page = journal.read(move |tx| slot_log_list_back(tx, event_id, before)).await?;
        let is_last = page.last().is_none_or(|logged| !is_recent(logged));
        recent.extend(page.into_iter().filter(is_recent));
        if is_last {
            return Ok(recent);
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).expect("memory holds no more")
}
