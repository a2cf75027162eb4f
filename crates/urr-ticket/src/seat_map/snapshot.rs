//! The seats of an event at one version, and its rendered views.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, OnceLock, PoisonError};

use axum::body::Bytes;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_layout::{Layout, SeatId};
use utoipa::ToSchema;

use crate::Inventory;
use crate::seat_map::statuses::{SeatStatus, Statuses};

/// How many recent changes are kept for clients with an older version.
const CHANGES_MAX: usize = 4_096;
/// How many different views of changes are cached per version.
const ANSWERS_MAX: usize = 256;
/// The approximate size of a change in a view.
const CHANGE_BYTES: usize = 10;
/// The lower bits of a version are the number of a change, the higher bits its epoch.
const FENCE_BITS: u32 = 36;
/// So a version is below 2^53, and JavaScript can count it.
const EPOCHS: i64 = 1 << (53 - FENCE_BITS);

/// A seat as a change left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatChange {
    pub seat_id: SeatId,
    pub status: SeatStatus,
    pub fence: i64,
}

/// Within an epoch a number stands for one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEpoch(i64);

impl MapEpoch {
    /// The epoch of a process that has not seen numbers go back.
    pub const FIRST: MapEpoch = MapEpoch(0);

    /// Named by the time, not counted: processes that count differently would give one name to two
    /// epochs.
    pub fn next(self, now: Timestamp) -> MapEpoch {
        let named = |seconds: i64| MapEpoch(1 + seconds.rem_euclid(EPOCHS - 1));
        let next = named(now.as_second());
        if next == self { named(now.as_second() + 1) } else { next }
    }
}

/// The seats at one version. A version is the number of the last change of any seat, so it names
/// the same snapshot in every process.
#[derive(Debug)]
pub struct SeatSnapshot {
    epoch: MapEpoch,
    /// The number of the last change.
    fence: i64,
    statuses: Statuses,
    /// The last changes, oldest first. A seat that changed twice is listed twice.
    recent: VecDeque<(i64, SeatId)>,
    /// All changes after this one are in `recent`.
    recent_since: i64,
    rendered: RenderedViews,
}

/// Views of this snapshot that were rendered already.
#[derive(Debug, Default)]
struct RenderedViews {
    whole: OnceLock<Bytes>,
    statuses: OnceLock<Bytes>,
    changes: Mutex<HashMap<i64, Bytes>>,
    available_by_grade: OnceLock<HashMap<String, u32>>,
}

/// The seats of an event. Fields that the client already knows are null.
///
/// `statuses` decodes to bytes; the seat with the number `n` has the status
/// `(bytes[n >> 2] >> ((n & 3) * 2)) & 3`: 0 available, 1 held, 2 sold, 3 blocked. In JavaScript:
/// `const bytes = Uint8Array.from(atob(map.statuses), c => c.charCodeAt(0))`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatMapView<'a> {
    event_id: Uuid,
    /// Grows with every change of a seat. Send it as `since` to learn only what changed after it.
    /// `statuses` replace what you have, whatever their version. With `changes`, a version that is
    /// smaller than yours says that nothing newer is known here: keep yours.
    #[schema(minimum = 0)]
    version: i64,
    /// Seats are numbered from 0 in the order of sections, rows and seats. It never changes.
    layout: Option<&'a Layout>,
    /// By grade, in won. They never change.
    #[schema(value_type = Option<std::collections::BTreeMap<String, i64>>)]
    prices: Option<&'a std::collections::BTreeMap<String, urr_kernel::Won>>,
    /// Two bits per seat, in base64.
    #[schema(example = "AAAAAJQB")]
    statuses: Option<String>,
    /// The seats that changed, each as its number and its present status.
    #[schema(value_type = Option<Vec<Vec<u32>>>, example = json!([[12, 1], [13, 0]]))]
    changes: Option<Vec<(SeatId, u8)>>,
}

impl SeatSnapshot {
    /// The seats before the first change.
    pub fn blank(epoch: MapEpoch, seats: u32) -> SeatSnapshot {
        SeatSnapshot {
            epoch,
            fence: 0,
            statuses: Statuses::all_available(seats),
            recent: VecDeque::new(),
            recent_since: 0,
            rendered: RenderedViews::default(),
        }
    }

    /// The snapshot after these changes, which come in the order of their numbers.
    pub fn after(&self, changes: &[SeatChange]) -> SeatSnapshot {
        assert!(changes.is_sorted_by_key(|change| change.fence), "changes come in their order");
        let mut next = SeatSnapshot {
            epoch: self.epoch,
            fence: changes.last().map_or(self.fence, |last| last.fence),
            statuses: self.statuses.clone(),
            recent: self.recent.clone(),
            recent_since: self.recent_since,
            rendered: RenderedViews::default(),
        };
        for change in changes {
            next.statuses.set(change.seat_id, change.status);
            next.recent.push_back((change.fence, change.seat_id));
        }
        while next.recent.len() > CHANGES_MAX
            && let Some((forgotten, _)) = next.recent.pop_front()
        {
            next.recent_since = forgotten;
        }
        next
    }

    pub fn epoch(&self) -> MapEpoch {
        self.epoch
    }

    pub fn version(&self) -> i64 {
        assert!(self.fence < 1 << FENCE_BITS, "{} changes of one event", self.fence);
        self.epoch.0 << FENCE_BITS | self.fence
    }

    /// Whether a client with this version has something to learn.
    pub fn is_news_to(&self, version: i64) -> bool {
        self.fence_in(version).is_none_or(|known| known < self.fence)
    }

    /// The number of a change; none if the version is of another epoch.
    fn fence_in(&self, version: i64) -> Option<i64> {
        (version >> FENCE_BITS == self.epoch.0).then_some(version & ((1 << FENCE_BITS) - 1))
    }

    pub fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// The seats that changed after a version, with their current status. None: too long ago to
    /// know, or in another epoch.
    pub fn changes_since(&self, version: i64) -> Option<Vec<(SeatId, SeatStatus)>> {
        let known = self.fence_in(version).filter(|known| *known >= self.recent_since)?;
        let later = self.recent.iter().rev().take_while(|(fence, _)| *fence > known);
        let ids: BTreeSet<SeatId> = later.map(|(_, id)| *id).collect();
        let status = |id| self.statuses.get(id).expect("only seats that exist change");
        Some(ids.into_iter().map(|id| (id, status(id))).collect())
    }

    /// The view for a client that knows nothing.
    pub fn whole(&self, inventory: &Inventory) -> Bytes {
        let view = || {
            let (layout, prices) = (Some(&inventory.layout), Some(&inventory.prices));
            render(&SeatMapView { layout, prices, ..self.view(inventory.event_id) })
        };
        self.rendered.whole.get_or_init(view).clone()
    }

    /// The view for a client that knows the layout.
    pub fn without_layout(&self, event_id: Uuid) -> Bytes {
        self.rendered.statuses.get_or_init(|| render(&self.view(event_id))).clone()
    }

    /// The changes after a version, or all statuses if that is shorter or the changes are not
    /// known.
    pub fn since(&self, event_id: Uuid, version: i64) -> Bytes {
        let mut rendered = self.rendered.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = rendered.get(&version) {
            return bytes.clone();
        }
        let bytes = match self.changes_since(version) {
            Some(changes) if self.is_worth_it(changes.len()) => {
                let changes = changes.into_iter().map(|(id, status)| (id, status.code()));
                let changes = Some(changes.collect());
                render(&SeatMapView { changes, statuses: None, ..self.view(event_id) })
            }
            _ => self.without_layout(event_id),
        };
        if rendered.len() < ANSWERS_MAX {
            rendered.insert(version, bytes.clone());
        }
        bytes
    }

    fn is_worth_it(&self, changes: usize) -> bool {
        let statuses_bytes = usize::try_from(self.statuses.count() / 3).expect("it is in memory");
        changes * CHANGE_BYTES <= statuses_bytes.max(100 * CHANGE_BYTES)
    }

    fn view<'a>(&self, event_id: Uuid) -> SeatMapView<'a> {
        SeatMapView {
            event_id,
            version: self.version(),
            layout: None,
            prices: None,
            statuses: Some(self.statuses.to_base64()),
            changes: None,
        }
    }

    /// How many seats of a grade are available.
    pub fn available(&self, layout: &Layout, grade: &str) -> u32 {
        let count = || count_by_grade(layout, &self.statuses);
        let counts = self.rendered.available_by_grade.get_or_init(count);
        counts.get(grade).copied().unwrap_or(0)
    }
}

fn render(view: &SeatMapView<'_>) -> Bytes {
    serde_json::to_vec(view).expect("a map is JSON").into()
}

pub(crate) fn count_by_grade(layout: &Layout, statuses: &Statuses) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    let mut first = 0;
    for section in &layout.sections {
        let end = first + section.seat_count();
        let free = (first..end).filter(|id| statuses.is_available(*id)).count();
        let free = u32::try_from(free).expect("no more than there are seats");
        *counts.entry(section.grade.clone()).or_insert(0) += free;
        first = end;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(seat_id: SeatId, status: SeatStatus, fence: i64) -> SeatChange {
        SeatChange { seat_id, status, fence }
    }

    #[test]
    fn only_what_changed_after_a_version_is_told_and_only_once() {
        use SeatStatus::{Available, Held, Sold};
        let snapshot = SeatSnapshot::blank(MapEpoch::FIRST, 10)
            .after(&[change(1, Held, 3), change(2, Held, 3)]);
        let snapshot = snapshot.after(&[change(7, Held, 5), change(1, Available, 6)]);
        let snapshot = snapshot.after(&[change(7, Sold, 9)]);
        assert_eq!(snapshot.version(), 9);
        let since = |version| snapshot.changes_since(version).expect("it is recent");
        assert_eq!(since(0), [(1, Available), (2, Held), (7, Sold)]);
        assert_eq!(since(3), [(1, Available), (7, Sold)]);
        assert_eq!(since(4), since(3), "numbers that changed no seat do not matter");
        assert_eq!(since(6), [(7, Sold)]);
        assert_eq!(since(9), []);
        assert_eq!(since(100), [], "what is not known yet is no change");
    }

    #[test]
    fn whoever_is_too_far_behind_is_told_everything() {
        let mut snapshot = SeatSnapshot::blank(MapEpoch::FIRST, 10);
        let rounds = i64::try_from(CHANGES_MAX).expect("small") / 2 + 10;
        for fence in 1..=rounds {
            let status = SeatStatus::ALL[usize::try_from(fence % 3).expect("small")];
            snapshot = snapshot.after(&[change(1, status, fence), change(2, status, fence)]);
        }
        assert_eq!(snapshot.changes_since(9), None);
        let forgotten = 10;
        assert_eq!(snapshot.changes_since(forgotten).map(|changes| changes.len()), Some(2));
        let event_id = Uuid::nil();
        assert_eq!(snapshot.since(event_id, 9), snapshot.without_layout(event_id));
        assert_ne!(snapshot.since(event_id, 10), snapshot.without_layout(event_id));
    }

    #[test]
    fn whoever_knows_another_epoch_is_told_everything() {
        let event_id = Uuid::nil();
        let old = SeatSnapshot::blank(MapEpoch::FIRST, 10).after(&[change(1, SeatStatus::Held, 5)]);
        let epoch = MapEpoch::FIRST.next(Timestamp::UNIX_EPOCH);
        assert_ne!(epoch.next(Timestamp::UNIX_EPOCH), epoch, "twice in a second");
        let new = SeatSnapshot::blank(epoch, 10).after(&[change(2, SeatStatus::Held, 7)]);
        for (here, there) in [(&old, &new), (&new, &old)] {
            assert!(here.is_news_to(there.version()) && !here.is_news_to(here.version()));
            assert_eq!(here.since(event_id, there.version()), here.without_layout(event_id));
        }
        assert_eq!(new.changes_since(new.version() - 1).map(|changes| changes.len()), Some(1));
        assert_eq!(new.changes_since(i64::MAX), None);
        let last = Timestamp::from_second(EPOCHS - 2).expect("a time");
        assert!(SeatSnapshot::blank(MapEpoch::FIRST.next(last), 1).version() < 1 << 53);
    }

    #[test]
    fn many_changes_are_told_as_statuses() {
        let taken: Vec<_> = (0..1_000).map(|id| change(id, SeatStatus::Held, 1)).collect();
        let blank = SeatSnapshot::blank(MapEpoch::FIRST, 1_000);
        let (few, many) = (blank.after(&taken[..20]), blank.after(&taken));
        let is_changes = |snapshot: &SeatSnapshot| {
            let bytes = snapshot.since(Uuid::nil(), 0);
            String::from_utf8_lossy(&bytes).contains("\"changes\":[")
        };
        assert!(is_changes(&few) && !is_changes(&many));
    }
}
