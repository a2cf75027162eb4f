//! What goes back of a reservation that is cancelled, and what would go back now.

pub(crate) mod http;
pub(crate) mod rules;

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx};

use crate::reservations::cancel::check_owner;
use crate::reservations::refund::rules::{
    Booking, Fee, Refund, Rule, refund_changes_at, refund_of,
};
use crate::reservations::rules::{Canceller, Record, Refused, Step, decide_cancel};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::store::list as listing;
use crate::reservations::transition::StepError;
use crate::transfers::store as transfers;
use crate::{CancelPolicy, Item, ReservationId, SaleStatus, Status, Ticket};

/// What would go back if the owner cancelled now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefundPreview {
    pub refund: Refund,
    /// When it is over, or something else would go back.
    pub until: Timestamp,
}

/// A paid reservation with what its refund depends on.
struct Agreed {
    policy: CancelPolicy,
    items: Vec<Item>,
}

impl Agreed {
    fn load(tx: &mut Tx<'_>, id: ReservationId) -> Result<Agreed, StorageError> {
        let policy = transitions::cancel_policy_find(tx, id)?;
        let items = items::item_list(tx, id)?.into_iter().map(|stored| stored.item).collect();
        Ok(Agreed { policy, items })
    }

    fn booking(&self, record: &Record, fee: Fee) -> Booking<'_> {
        Booking {
            booked_at: record.reservation.created_at,
            starts_at: record.starts_at,
            booking_fee: record.reservation.booking_fee,
            items: &self.items,
            fee,
        }
    }
}

/// An owner bears the fee, unless the event was taken from them.
pub(crate) fn owners_fee(record: &Record) -> Fee {
    match record.sale_status {
        SaleStatus::Open => Fee::ByPolicy,
        SaleStatus::Cancelled | SaleStatus::Deleted => Fee::Waived,
    }
}

/// What goes back of a reservation that is cancelled now. None: all that was paid, if it was.
pub(crate) fn refund_for(
    tx: &mut Tx<'_>,
    record: &Record,
    fee: Fee,
    now: Timestamp,
) -> Result<Option<Won>, StorageError> {
    if record.reservation.status != Status::Confirmed || fee == Fee::Waived {
        return Ok(None);
    }
    let agreed = Agreed::load(tx, record.reservation.id)?;
    let Refund { refund, fee, .. } = refund_of(&agreed.policy, &agreed.booking(record, fee), now);
    let total = refund.plus(fee).expect("they are parts of the total");
    assert_eq!(total, record.reservation.total_amount, "the total is what the items cost");
    Ok(Some(refund))
}

impl Ticket {
    /// What would go back if the owner cancelled now, or why they cannot.
    pub async fn preview_refund(
        &self,
        id: ReservationId,
        user_id: Uuid,
    ) -> Result<RefundPreview, StepError> {
        let now = self.clock.now();
        let preview = self.db.read(move |tx| {
            let record = transitions::record_find(tx, id)?.ok_or(Refused::NotFound)?;
            check_owner(&record, user_id)?;
            if decide_cancel(&record, Canceller::Owner, now)? == Step::Done {
                return Err(Refused::Cancelled.into());
            }
            if record.reservation.status == Status::Pending {
                let refund = Refund { refund: Won::ZERO, fee: Won::ZERO, rule: Rule::Unpaid };
                return Ok(RefundPreview { refund, until: record.reservation.expires_at });
            }
            let tickets = listing::ticket_list(tx, id)?;
            if tickets.iter().any(|ticket| ticket.checked_in_at.is_some()) {
                return Err(Refused::CheckedIn.into());
            }
            if transfers::live_find(tx, id)?.is_some() {
                return Err(Refused::Listed.into());
            }
            let agreed = Agreed::load(tx, id)?;
            let booking = agreed.booking(&record, owners_fee(&record));
            let refund = refund_of(&agreed.policy, &booking, now);
            let until = refund_changes_at(&agreed.policy, &booking, now);
            Ok::<_, StepError>(RefundPreview { refund, until })
        });
        preview.await
    }
}
