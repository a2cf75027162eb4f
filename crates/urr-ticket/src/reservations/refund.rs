//! Refunds of cancelled reservations, and the preview of a refund.

pub(crate) mod rules;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, Tx};
use utoipa::ToSchema;

use crate::reservations::cancel::check_owner;
use crate::reservations::refund::rules::{
    FeeMode, RefundBasis, RefundQuote, RefundRule, refund_changes_at, refund_of,
};
use crate::reservations::rules::{
    CancelActor, ReservationRecord, ReservationRejection, Transition, decide_cancel,
};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::store::list as listing;
use crate::reservations::transition::TransitionError;
use crate::transfers::store as transfers;
use crate::{
    CancelPolicy, ReservationId, ReservationItem, ReservationStatus, SaleStatus, TicketService,
};

/// The refund if the owner cancelled now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundPreview {
    #[schema(value_type = i64, example = 180_000)]
    pub refund_amount: Won,
    /// What would be kept; refund and fee together are the paid amount.
    #[schema(value_type = i64, example = 20_000)]
    pub cancellation_fee: Won,
    /// `UNPAID`, `FULL` (the event was cancelled), `GRACE`, `FREE_DAYS`, `PERCENT_…` (so much of each
    /// ticket) or `PERCENT_…_CAPPED` (but not more than a fixed fee).
    #[schema(example = "PERCENT_10")]
    pub rule: String,
    /// Until when it is valid, unless the event is moved or cancelled.
    pub until: Timestamp,
}

impl RefundPreview {
    fn new(quote: RefundQuote, until: Timestamp) -> RefundPreview {
        let RefundQuote { refund, fee, rule } = quote;
        RefundPreview { refund_amount: refund, cancellation_fee: fee, rule: rule.name(), until }
    }
}

/// The terms of a paid reservation's refund.
struct RefundTerms {
    policy: CancelPolicy,
    items: Vec<ReservationItem>,
}

impl RefundTerms {
    fn load(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<RefundTerms> {
        let policy = transitions::cancel_policy_find(tx, id)?;
        let items = items::item_list(tx, id)?;
        Ok(RefundTerms { policy, items })
    }

    fn booking(&self, record: &ReservationRecord, fee: FeeMode) -> RefundBasis<'_> {
        RefundBasis {
            booked_at: record.reservation.created_at,
            starts_at: record.starts_at,
            booking_fee: record.reservation.booking_fee,
            items: &self.items,
            fee,
        }
    }
}

/// The owner bears the fee, unless the event was cancelled or deleted.
pub(crate) fn owners_fee(record: &ReservationRecord) -> FeeMode {
    match record.sale_status {
        SaleStatus::Open => FeeMode::ByPolicy,
        SaleStatus::Cancelled | SaleStatus::Deleted => FeeMode::Waived,
    }
}

/// The refund of a reservation that is cancelled now. None: all that was paid, if it was.
pub(crate) fn refund_for(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    fee: FeeMode,
    now: Timestamp,
) -> DbResult<Option<Won>> {
    if record.reservation.status != ReservationStatus::Confirmed || fee == FeeMode::Waived {
        return Ok(None);
    }
    let agreed = RefundTerms::load(tx, record.reservation.id)?;
    let RefundQuote { refund, fee, .. } =
        refund_of(&agreed.policy, &agreed.booking(record, fee), now);
    let total = refund.plus(fee).expect("they are parts of the total");
    assert_eq!(total, record.reservation.total_amount, "the total is what the items cost");
    Ok(Some(refund))
}

impl TicketService {
    /// The refund if the owner cancelled now, or why they cannot.
    pub async fn preview_refund(
        &self,
        id: ReservationId,
        user_id: Uuid,
    ) -> Result<RefundPreview, TransitionError> {
        let now = self.clock.now();
        let preview = self.db.read(move |tx| {
            let record = transitions::record_find(tx, id)?.ok_or(ReservationRejection::NotFound)?;
            check_owner(&record, user_id)?;
            if decide_cancel(&record, CancelActor::Owner, now)? == Transition::AlreadyDone {
                return Err(ReservationRejection::Cancelled.into());
            }
            if record.reservation.status == ReservationStatus::Pending {
                let refund =
                    RefundQuote { refund: Won::ZERO, fee: Won::ZERO, rule: RefundRule::Unpaid };
                return Ok(RefundPreview::new(refund, record.reservation.expires_at));
            }
            let tickets = listing::ticket_list(tx, id)?;
            if tickets.iter().any(|ticket| ticket.checked_in_at.is_some()) {
                return Err(ReservationRejection::CheckedIn.into());
            }
            if transfers::active_listing_find(tx, id)?.is_some() {
                return Err(ReservationRejection::Listed.into());
            }
            let agreed = RefundTerms::load(tx, id)?;
            let booking = agreed.booking(&record, owners_fee(&record));
            let refund = refund_of(&agreed.policy, &booking, now);
            let until = refund_changes_at(&agreed.policy, &booking, now);
            Ok::<_, TransitionError>(RefundPreview::new(refund, until))
        });
        preview.await
    }
}
