//! Notices of admissions, in a bounded buffer from which they are sent elsewhere. Admissions never
//! wait for it: a notice that does not fit is dropped and counted.

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Metrics;

use urr_room::Admission;

/// A user was admitted. It has no token, because its readers must not be able to enter (K-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
    pub at: Timestamp,
}

/// The sender of notices. Clones share the buffer.
#[derive(Clone, Debug)]
pub struct Notices {
    sender: Option<mpsc::Sender<Notice>>,
    dropped: Counter,
}

/// The receiver of notices.
#[derive(Debug)]
pub struct NoticeReceiver {
    pub receiver: mpsc::Receiver<Notice>,
    /// Counts notices that were received and could not be sent.
    pub dropped: Counter,
}

impl Notices {
    /// No notices.
    pub fn off() -> Notices {
        Notices { sender: None, dropped: Counter::default() }
    }

    /// A bounded buffer and its receiver.
    pub fn buffered(count_max: usize) -> (Notices, NoticeReceiver) {
        let (sender, receiver) = mpsc::channel(count_max);
        let dropped = Counter::default();
        let taken = NoticeReceiver { receiver, dropped: dropped.clone() };
        (Notices { sender: Some(sender), dropped }, taken)
    }

    pub(crate) fn register(&self, metrics: &Metrics) {
        let help = "Notices of admissions that did not fit the buffer or that no queue took";
        metrics.register("urr_notices_dropped", help, self.dropped.clone());
    }

    pub fn admitted(&self, event_id: Uuid, admitted: &[Admission], now: Timestamp) {
        let Some(sender) = &self.sender else { return };
        for Admission { user_id, slot_id } in admitted {
            let notice = Notice { event_id, user_id: *user_id, slot_id: *slot_id, at: now };
            if sender.try_send(notice).is_err() {
                self.dropped.inc();
            }
        }
    }

    /// How many notices did not fit, or were received and not sent.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(count: u128) -> Vec<Admission> {
        let one = |number| Admission {
            user_id: Uuid::from_u128(number),
            slot_id: Uuid::from_u128(1_000 + number),
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn k_11_a_full_buffer_drops_and_counts_and_nobody_waits() {
        let (notices, mut taken) = Notices::buffered(2);
        let metrics = Metrics::new();
        notices.register(&metrics);
        notices.admitted(Uuid::from_u128(7), &admitted(5), Timestamp::UNIX_EPOCH);
        assert_eq!(notices.dropped(), 3);
        let text = metrics.text();
        assert!(text.contains("urr_notices_dropped_total 3\n"), "{text}");
        let first = taken.receiver.try_recv().expect("the first fitted");
        assert_eq!(first.user_id, Uuid::from_u128(1));
        notices.admitted(Uuid::from_u128(7), &admitted(1), Timestamp::UNIX_EPOCH);
        assert_eq!(notices.dropped(), 3, "there is room again");
    }

    #[test]
    fn nobody_is_told_when_notices_are_off() {
        let notices = Notices::off();
        notices.admitted(Uuid::from_u128(7), &admitted(5), Timestamp::UNIX_EPOCH);
        assert_eq!(notices.dropped(), 0);
    }
}
