//! Settings of the ticket service.

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Timestamp, Won};

use crate::reserve::rules::HoldTerms;
use crate::{AlertSettings, CancelPolicy, SeatMapSettings};

/// The rules that an operator can change.
#[derive(Clone, Debug)]
pub struct TicketSettings {
    /// How long a hold waits for its payment.
    pub hold_ttl: Duration,
    /// By how much its owner can extend a hold, once. Zero: not at all.
    pub hold_extension: Duration,
    /// How long the lock of a held seat lasts: longer than the hold.
    pub lock_ttl: Duration,
    /// Time between two sweeps for holds whose time is over.
    pub expiry_interval: Duration,
    /// The cancellation fees, agreed on with everybody who reserves from now on.
    pub cancel_policy: Arc<CancelPolicy>,
    /// Support may cancel what costs at most this much.
    pub support_refund_max: Won,
    /// How seat maps are kept in memory.
    pub seat_maps: SeatMapSettings,
    /// How long guests without an account are kept after their event.
    pub guests_kept: Duration,
    /// When fans are told of openings and returned seats.
    pub alerts: AlertSettings,
    /// Whether several processes sell, which tell each other how booking goes.
    pub shares_bookings: bool,
    /// Sells without checking that a seat is free and without the index that guards it, so that
    /// only the seat locks are left. It sells seats twice: negative controls of the tests use it.
    pub dangerous_without_seat_guard: bool,
}

impl TicketSettings {
    /// The terms of holds that are made now.
    pub(crate) fn hold_terms(&self, now: Timestamp) -> HoldTerms {
        HoldTerms {
            now,
            hold_ttl: self.hold_ttl,
            cancel_policy: Arc::clone(&self.cancel_policy),
            gate_max: self.alerts.exclusive_max,
            dangerous_without_seat_guard: self.dangerous_without_seat_guard,
        }
    }
}

impl Default for TicketSettings {
    fn default() -> TicketSettings {
        TicketSettings {
            hold_ttl: Duration::from_secs(300),
            hold_extension: Duration::from_secs(180),
            lock_ttl: Duration::from_secs(420),
            expiry_interval: Duration::from_secs(1),
            cancel_policy: Arc::new(CancelPolicy::korean()),
            support_refund_max: Won::new(100_000),
            seat_maps: SeatMapSettings::default(),
            shares_bookings: false,
            guests_kept: Duration::from_secs(30 * 24 * 60 * 60),
            alerts: AlertSettings::default(),
            dangerous_without_seat_guard: false,
        }
    }
}
