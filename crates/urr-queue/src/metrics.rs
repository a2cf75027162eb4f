//! The Prometheus metrics of the waiting rooms.

use std::collections::HashSet;
use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_kernel::Uuid;
use urr_service::Metrics;

use urr_room::{Crowd, RoomError};

/// Each event is a time series of its own, so their number is bounded.
const EVENTS_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct QueueMetrics {
    waiting: Family<EventLabel, Gauge<i64, AtomicI64>>,
    active: Family<EventLabel, Gauge<i64, AtomicI64>>,
    wait: Family<EventLabel, Gauge<i64, AtomicI64>>,
    /// The events that have gauges.
    events: Mutex<HashSet<Uuid>>,
    admitted: Family<AdmissionLabel, Counter>,
    joined: Family<EventLabel, Gauge<i64, AtomicI64>>,
    left: Family<EventLabel, Gauge<i64, AtomicI64>>,
    pub dropped: Counter,
    pub finished: Counter,
    pub reminded: Counter,
    room_errors: Family<RoomErrorLabel, Counter>,
    pub ticket_unavailable: Counter,
    pub streams: Gauge<i64, AtomicI64>,
    pub boards: Gauge<i64, AtomicI64>,
    pub live_looks: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabel {
    event: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AdmissionLabel {
    path: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoomErrorLabel {
    error: &'static str,
}

/// The gauges of an occupied room.
#[derive(Clone, Copy, Debug)]
pub struct RoomGauges<'a> {
    pub event_id: Uuid,
    pub crowd: &'a Crowd,
    /// The wait of the last user in the line; none while nobody is admitted.
    pub wait_seconds: Option<u64>,
}

/// How a user was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionPath {
    /// Without waiting.
    Direct,
    FromLine,
}

impl QueueMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let help = "Users who wait, by event";
        metrics.register("urr_queue_waiting", help, self.waiting.clone());
        let help = "Users who have a slot, by event";
        metrics.register("urr_queue_active", help, self.active.clone());
        let help = "The estimated wait of the last user in the line, by event";
        metrics.register("urr_queue_estimated_wait_seconds", help, self.wait.clone());
        let help = "Users admitted, directly or from the line";
        metrics.register("urr_queue_admitted", help, self.admitted.clone());
        let help = "Users who have joined the line so far, by event";
        metrics.register("urr_queue_joined", help, self.joined.clone());
        let help = "Users who have left the line by themselves so far, by event";
        metrics.register("urr_queue_left", help, self.left.clone());
        let help = "Users dropped from the line because they were not seen any more";
        metrics.register("urr_queue_dropped", help, self.dropped.clone());
        let help = "Slots that ended by the domain event of a purchase";
        metrics.register("urr_queue_slots_finished", help, self.finished.clone());
        let help = "Users who were reminded that their admission is near";
        metrics.register("urr_queue_reminded", help, self.reminded.clone());
        let help = "Failed requests to a room, by error";
        metrics.register("urr_queue_room_errors", help, self.room_errors.clone());
        let help = "Calls in which the ticket service did not report its sales";
        metrics.register("urr_queue_ticket_unavailable", help, self.ticket_unavailable.clone());
        let help = "Open streams of queue statuses";
        metrics.register("urr_queue_streams", help, self.streams.clone());
        let help = "Open live boards";
        metrics.register("urr_queue_live_boards", help, self.boards.clone());
        let help = "Sales that were looked at for their live boards";
        metrics.register("urr_queue_live_looks", help, self.live_looks.clone());
    }

    pub fn count_admitted(&self, path: AdmissionPath, count: usize) {
        let path = match path {
            AdmissionPath::Direct => "direct",
            AdmissionPath::FromLine => "from_line",
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.admitted.get_or_create(&AdmissionLabel { path }).inc_by(count);
    }

    pub fn count_room_error(&self, error: &RoomError) {
        let error = match error {
            RoomError::Full => "full",
            RoomError::TooManyQueues => "too_many_queues",
            RoomError::Unavailable => "unavailable",
        };
        self.room_errors.get_or_create(&RoomErrorLabel { error }).inc();
    }

    /// Sets the gauges of these rooms and removes all others.
    pub fn set_room_gauges<'a>(&self, rooms: impl Iterator<Item = RoomGauges<'a>>) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashSet::new();
        for RoomGauges { event_id, crowd, wait_seconds } in rooms.take(EVENTS_MAX) {
            let label = EventLabel { event: event_id.to_string() };
            self.waiting.get_or_create(&label).set(i64::from(crowd.waiting));
            self.active.get_or_create(&label).set(i64::from(crowd.active));
            self.joined.get_or_create(&label).set(crowd.last_number);
            let left = i64::try_from(crowd.left_total).unwrap_or(i64::MAX);
            self.left.get_or_create(&label).set(left);
            match wait_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)) {
                Some(seconds) => {
                    self.wait.get_or_create(&label).set(seconds);
                }
                None => {
                    self.wait.remove(&label);
                }
            }
            now.insert(event_id);
        }
        for gone in events.difference(&now) {
            let label = EventLabel { event: gone.to_string() };
            let families = [&self.waiting, &self.active, &self.joined, &self.left, &self.wait];
            for family in families {
                family.remove(&label);
            }
        }
        *events = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_occupied_rooms_have_gauges() {
        let registry = Metrics::new();
        let metrics = QueueMetrics::default();
        metrics.register(&registry);
        let [first, second] = [1, 2].map(Uuid::from_u128);
        let crowd = |waiting| {
            let (last_number, left_total) = (40, 4);
            Crowd { waiting, active: 3, last_number, left_total, ..Crowd::default() }
        };
        let crowds = [crowd(5), crowd(7), crowd(6)];
        let shown = |event_id, index: usize, wait_seconds| RoomGauges {
            event_id,
            crowd: &crowds[index],
            wait_seconds,
        };
        metrics.set_room_gauges([shown(first, 0, Some(8)), shown(second, 1, Some(9))].into_iter());
        let line = |of, count| format!("urr_queue_waiting{{event=\"{of}\"}} {count}\n");
        let text = registry.text();
        assert!(text.contains(&line(first, 5)) && text.contains(&line(second, 7)), "{text}");
        for (name, count) in [("joined", 40), ("left", 4)] {
            let line = format!("urr_queue_{name}{{event=\"{first}\"}} {count}\n");
            assert!(text.contains(&line), "{text}");
        }
        let wait = format!("urr_queue_estimated_wait_seconds{{event=\"{second}\"}} 9\n");
        assert!(text.contains(&wait), "{text}");
        metrics.set_room_gauges([shown(second, 2, None)].into_iter());
        let text = registry.text();
        assert!(!text.contains(&first.to_string()), "{text}");
        assert!(text.contains(&line(second, 6)) && !text.contains(&wait), "{text}");
    }
}
