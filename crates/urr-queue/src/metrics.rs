//! What operators see of the waiting rooms.

use std::collections::HashSet;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_kernel::Uuid;
use urr_service::Metrics;

use urr_room::{Crowd, RoomError};

/// Each event is a time series of its own: of more than these with people in them, the rest is not
/// shown.
const EVENTS_MAX: usize = 200;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct QueueMetrics {
    waiting: Family<EventLabel, Gauge<i64, AtomicI64>>,
    active: Family<EventLabel, Gauge<i64, AtomicI64>>,
    wait: Family<EventLabel, Gauge<i64, AtomicI64>>,
    /// The events that are shown.
    shown: Arc<Mutex<HashSet<Uuid>>>,
    admitted: Family<AdmissionLabel, Counter>,
    dropped: Counter,
    finished: Counter,
    reminded: Counter,
    room_errors: Family<RoomErrorLabel, Counter>,
    ticket_unavailable: Counter,
    streams: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabel {
    event: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AdmissionLabel {
    way: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoomErrorLabel {
    error: &'static str,
}

/// A room with people in it.
#[derive(Clone, Copy, Debug)]
pub struct RoomGauges<'a> {
    pub event_id: Uuid,
    pub crowd: &'a Crowd,
    /// Of the last in line; none while nobody is let in.
    pub wait_seconds: Option<u64>,
}

/// How someone came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionPath {
    /// Nobody waited.
    Direct,
    FromLine,
}

impl QueueMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let waiting = self.waiting.clone();
        metrics.register("urr_queue_waiting", "People who wait, by event", waiting);
        let active = self.active.clone();
        metrics.register("urr_queue_active", "People who are in, by event", active);
        let wait = self.wait.clone();
        let help = "How long the last in line is told to wait, by event";
        metrics.register("urr_queue_estimated_wait_seconds", help, wait);
        let admitted = self.admitted.clone();
        metrics.register("urr_queue_admitted", "People let in, at once or from the line", admitted);
        let dropped = self.dropped.clone();
        let help = "People dropped from the line because they were not seen any more";
        metrics.register("urr_queue_dropped", help, dropped);
        let finished = self.finished.clone();
        let help = "Slots that a purchase has ended after it was heard of on the bus";
        metrics.register("urr_queue_slots_finished", help, finished);
        let reminded = self.reminded.clone();
        let help = "People who were told that their turn is near";
        metrics.register("urr_queue_reminded", help, reminded);
        let errors = self.room_errors.clone();
        let help = "Questions that a room did not answer, by why";
        metrics.register("urr_queue_room_errors", help, errors);
        let silent = self.ticket_unavailable.clone();
        let help = "Times that the ticket office did not say what is left";
        metrics.register("urr_queue_office_silent", help, silent);
        let streams = self.streams.clone();
        metrics.register("urr_queue_streams", "People who follow their place", streams);
    }

    pub fn count_admitted(&self, way: AdmissionPath, count: usize) {
        let way = match way {
            AdmissionPath::Direct => "at_once",
            AdmissionPath::FromLine => "from_line",
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.admitted.get_or_create(&AdmissionLabel { way }).inc_by(count);
    }

    pub fn count_dropped(&self, count: u32) {
        self.dropped.inc_by(u64::from(count));
    }

    pub fn count_finished(&self) {
        self.finished.inc();
    }

    pub fn count_reminded(&self, count: usize) {
        self.reminded.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    }

    pub fn count_room_error(&self, error: &RoomError) {
        let error = match error {
            RoomError::Full => "full",
            RoomError::TooManyQueues => "too_many_queues",
            RoomError::Unavailable => "unavailable",
        };
        self.room_errors.get_or_create(&RoomErrorLabel { error }).inc();
    }

    pub fn count_ticket_unavailable(&self) {
        self.ticket_unavailable.inc();
    }

    pub fn stream_begun(&self) {
        self.streams.inc();
    }

    pub fn stream_ended(&self) {
        self.streams.dec();
    }

    /// Shows these rooms and no others.
    pub fn show_crowds<'a>(&self, crowds: impl Iterator<Item = RoomGauges<'a>>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashSet::new();
        for RoomGauges { event_id, crowd, wait_seconds } in crowds.take(EVENTS_MAX) {
            let label = EventLabel { event: event_id.to_string() };
            self.waiting.get_or_create(&label).set(i64::from(crowd.waiting));
            self.active.get_or_create(&label).set(i64::from(crowd.active));
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
        for gone in shown.difference(&now) {
            let label = EventLabel { event: gone.to_string() };
            for family in [&self.waiting, &self.active, &self.wait] {
                family.remove(&label);
            }
        }
        *shown = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_with_people_are_shown() {
        let metrics = Metrics::new();
        let metrics = QueueMetrics::default();
        metrics.register(&metrics);
        let [first, second] = [1, 2].map(Uuid::from_u128);
        let crowd = |waiting| Crowd { waiting, active: 3, ..Crowd::default() };
        let crowds = [crowd(5), crowd(7), crowd(6)];
        let shown = |event_id, index: usize, wait_seconds| RoomGauges {
            event_id,
            crowd: &crowds[index],
            wait_seconds,
        };
        metrics.show_crowds([shown(first, 0, Some(8)), shown(second, 1, Some(9))].into_iter());
        let line = |of, count| format!("urr_queue_waiting{{event=\"{of}\"}} {count}\n");
        let text = metrics.text();
        assert!(text.contains(&line(first, 5)) && text.contains(&line(second, 7)), "{text}");
        let wait = format!("urr_queue_estimated_wait_seconds{{event=\"{second}\"}} 9\n");
        assert!(text.contains(&wait), "{text}");
        metrics.show_crowds([shown(second, 2, None)].into_iter());
        let text = metrics.text();
        assert!(!text.contains(&first.to_string()), "{text}");
        assert!(text.contains(&line(second, 6)) && !text.contains(&wait), "{text}");
    }
}
