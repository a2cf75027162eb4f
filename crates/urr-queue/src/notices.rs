//! Telling others that someone was let in: put into a bounded buffer, from which whoever sends the
//! notices takes them. It never makes anybody wait: what does not fit is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use urr_kernel::{Timestamp, Uuid};

use crate::room::Admitted;

/// Someone was let in. It has no token: whoever reads it must not be able to enter (K-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
    pub at: Timestamp,
}

/// Where notices are put. Clones share the buffer.
#[derive(Clone, Debug)]
pub struct Notices {
    sender: Option<mpsc::Sender<Notice>>,
    dropped: Arc<AtomicU64>,
}

impl Notices {
    /// Nobody is told.
    pub fn off() -> Notices {
        Notices { sender: None, dropped: Arc::default() }
    }

    /// With a buffer of so many, and its other end.
    pub fn buffered(count_max: usize) -> (Notices, mpsc::Receiver<Notice>) {
        let (sender, receiver) = mpsc::channel(count_max);
        (Notices { sender: Some(sender), dropped: Arc::default() }, receiver)
    }

    pub fn admitted(&self, event_id: Uuid, admitted: &[Admitted], now: Timestamp) {
        let Some(sender) = &self.sender else { return };
        for Admitted { user_id, slot_id } in admitted {
            let notice = Notice { event_id, user_id: *user_id, slot_id: *slot_id, at: now };
            if sender.try_send(notice).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How many did not fit.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(count: u128) -> Vec<Admitted> {
        let one = |number| Admitted {
            user_id: Uuid::from_u128(number),
            slot_id: Uuid::from_u128(1_000 + number),
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn k_11_a_full_buffer_drops_and_counts_and_nobody_waits() {
        let (notices, mut receiver) = Notices::buffered(2);
        notices.admitted(Uuid::from_u128(7), &admitted(5), Timestamp::UNIX_EPOCH);
        assert_eq!(notices.dropped(), 3);
        let first = receiver.try_recv().expect("the first fitted");
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
