//! More time to pay: the owner of a hold can extend it once, while it is not being paid.
//!
//! Readers of a screen, and people who type slowly, need that. It is bounded, so that nobody keeps
//! seats from others by asking again.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::Tx;

use crate::reservations::cancel::check_owner;
use crate::reservations::model::seat_ids;
use crate::reservations::rules::{
    ReservationRecord, ReservationRejection, Transition, decide_extend,
};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::transition::{TransitionCheck, TransitionError, check_transition, reload};
use crate::{ReservationId, TicketService};

impl TicketService {
    /// Extends one's own hold. One that was extended before stays as it is.
    pub async fn extend_hold(
        &self,
        id: ReservationId,
        user_id: Uuid,
        token: i64,
    ) -> Result<ReservationRecord, TransitionError> {
        let (extension, now) = (self.settings.hold_extension, self.clock.now());
        let extended = self.db.write(move |tx: &mut Tx<'_>| {
            let found = check_transition(tx, id, |record| {
                check_owner(record, user_id)?;
                match extension.is_zero() {
                    true => Err(ReservationRejection::NotExtendable),
                    false => decide_extend(record, token, now),
                }
            })?;
            let record = match found {
                TransitionCheck::AlreadyDone(record) => return Ok((record, Vec::new())),
                TransitionCheck::Apply(record, _) => record,
            };
            transitions::hold_extend(tx, id, record.reservation.expires_at + extension, now)?;
            let seats = seat_ids(&items::item_list(tx, id)?);
            Ok::<_, TransitionError>((reload(tx, id)?, seats))
        });
        let (record, seats) = extended.await?;
        if !seats.is_empty() {
            let held = &record.reservation;
            let ttl = self.lock_ttl_of(held.expires_at, now);
            self.locks.confirm(held.event_id, &seats, user_id, held.fence, ttl).await;
        }
        Ok(record)
    }

    /// By how much a hold can be extended now. None: it cannot.
    pub(crate) fn extension_of(
        &self,
        record: &ReservationRecord,
        now: Timestamp,
    ) -> Option<Duration> {
        let extension = self.settings.hold_extension;
        let decided = decide_extend(record, record.reservation.fence, now);
        (decided == Ok(Transition::Apply) && !extension.is_zero()).then_some(extension)
    }

    /// How long the locks of a hold last that ends then: a little longer.
    fn lock_ttl_of(&self, expires_at: Timestamp, now: Timestamp) -> Duration {
        let left = Duration::try_from(expires_at.duration_since(now)).unwrap_or_default();
        left + self.settings.lock_ttl.saturating_sub(self.settings.hold_ttl)
    }
}
