//! Refunds of cancelled reservations, and the preview of a refund.

pub(crate) mod rules;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_storage::{DbResult, Tx};
use utoipa::ToSchema;

use crate::reservations::cancel::check_owner;
use crate::reservations::refund::rules::{
    FeeMode, RefundBasis, RefundPeriod, RefundQuote, RefundRule, TicketFee, refund_changes_at,
    refund_of, refund_of_tickets, refund_schedule, ticket_fee,
};
use crate::reservations::rules::{
    CancelActor, ReservationRecord, ReservationRejection, Transition, decide_cancel,
};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::store::list::{self as listing, StoredTicket};
use crate::reservations::transition::TransitionError;
use crate::transfers::store as transfers;
use crate::{
    CancelPolicy, ReservationDetails, ReservationId, ReservationItem, ReservationStatus,
    SaleStatus, TicketService,
};

/// The refund if the owner cancelled now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundPreview {
    #[schema(value_type = i64, example = 180_000)]
    pub refund_amount: Won,
    /// What would be kept; refund and fee together are the paid amount.
    #[schema(value_type = i64, example = 22_000)]
    pub cancellation_fee: Won,
    /// `UNPAID`, `FULL` (the event was cancelled), `EVENT_MOVED` (to another day), `GRACE`,
    /// `FREE_DAYS`, `PERCENT_…` (so much of each ticket) or `PERCENT_…_CAPPED` (but not more than a
    /// fixed fee).
    #[schema(example = "PERCENT_10")]
    pub rule: String,
    /// Until when it is valid, unless the event is moved or cancelled.
    pub until: Timestamp,
    /// Part of the refund if the whole reservation is cancelled. While a ticket stays, the booking
    /// fee stays too.
    #[schema(value_type = i64, example = 0)]
    pub booking_fee_refund: Won,
    /// What each valid ticket gives if it is cancelled now, alone or with others.
    pub tickets: Vec<TicketRefund>,
}

/// What a cancellation of the whole reservation costs in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancellationTerm {
    pub from: Timestamp,
    /// The first moment of the next period, or the start of the event.
    pub until: Timestamp,
    #[schema(value_type = i64, example = 180_000)]
    pub refund_amount: Won,
    #[schema(value_type = i64, example = 22_000)]
    pub cancellation_fee: Won,
    /// As in the refund preview.
    #[schema(example = "PERCENT_10")]
    pub rule: String,
}

impl From<RefundPeriod> for CancellationTerm {
    fn from(RefundPeriod { from, until, quote }: RefundPeriod) -> CancellationTerm {
        CancellationTerm {
            from,
            until,
            refund_amount: quote.refund,
            cancellation_fee: quote.fee,
            rule: quote.rule.name(),
        }
    }
}

/// The refund of one ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketRefund {
    #[schema(example = "T-4GZ8-0QKX-M2VD")]
    pub ticket_number: String,
    /// None: a standing ticket.
    pub seat_id: Option<SeatId>,
    #[schema(value_type = i64, example = 100_000)]
    pub price: Won,
    #[schema(value_type = i64, example = 10_000)]
    pub cancellation_fee: Won,
    #[schema(value_type = i64, example = 90_000)]
    pub refund_amount: Won,
}

impl TicketRefund {
    fn new(ticket: &StoredTicket, fee: &TicketFee) -> TicketRefund {
        let (price, cancellation_fee) = (ticket.unit_price, fee.of(ticket.unit_price));
        TicketRefund {
            ticket_number: ticket.number.clone(),
            seat_id: ticket.seat_id,
            price,
            cancellation_fee,
            refund_amount: price.minus(cancellation_fee).expect("a fee is a part of the price"),
        }
    }
}

/// The terms of a paid reservation's refund.
pub(crate) struct RefundTerms {
    pub policy: CancelPolicy,
    pub items: Vec<ReservationItem>,
}

impl RefundTerms {
    pub(crate) fn load(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<RefundTerms> {
        let policy = transitions::cancel_policy_find(tx, id)?;
        let items = items::item_list(tx, id)?;
        Ok(RefundTerms { policy, items })
    }

    pub(crate) fn booking(&self, record: &ReservationRecord, fee: FeeMode) -> RefundBasis<'_> {
        RefundBasis {
            booked_at: record.reservation.created_at,
            agreed_starts_at: record.agreed_starts_at,
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
                return Ok(unpaid_preview(&record));
            }
            let tickets = listing::ticket_list(tx, id)?;
            if transfers::active_listing_find(tx, id)?.is_some() {
                return Err(ReservationRejection::Listed.into());
            }
            paid_preview(tx, &record, &tickets, now)
        });
        preview.await
    }

    /// What cancelling costs by date, as it was agreed on at the booking. Nothing if the reservation
    /// has ended.
    pub async fn cancellation_terms(
        &self,
        details: &ReservationDetails,
    ) -> DbResult<Vec<CancellationTerm>> {
        use ReservationStatus::{Confirmed, Pending};
        let record = &details.record;
        if !matches!(record.status(self.clock.now()), Pending | Confirmed) {
            return Ok(Vec::new());
        }
        let id = record.reservation.id;
        let policy = self.db.read(move |tx| transitions::cancel_policy_find(tx, id)).await?;
        let agreed = RefundTerms { policy, items: details.items.clone() };
        let booking = agreed.booking(record, owners_fee(record));
        let periods = refund_schedule(&agreed.policy, &booking);
        Ok(periods.into_iter().map(CancellationTerm::from).collect())
    }
}

fn unpaid_preview(record: &ReservationRecord) -> RefundPreview {
    RefundPreview {
        refund_amount: Won::ZERO,
        cancellation_fee: Won::ZERO,
        rule: RefundRule::Unpaid.name(),
        until: record.reservation.expires_at,
        booking_fee_refund: Won::ZERO,
        tickets: Vec::new(),
    }
}

/// Of a reservation with a used ticket, the others can still be cancelled one by one.
fn paid_preview(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    tickets: &[StoredTicket],
    now: Timestamp,
) -> Result<RefundPreview, TransitionError> {
    let is_open = |ticket: &&StoredTicket| ticket.is_valid && ticket.checked_in_at.is_none();
    let is_used = tickets.iter().any(|ticket| ticket.checked_in_at.is_some());
    if is_used && !tickets.iter().any(|ticket| is_open(&ticket)) {
        return Err(ReservationRejection::CheckedIn.into());
    }
    let agreed = RefundTerms::load(tx, record.reservation.id)?;
    let booking = agreed.booking(record, owners_fee(record));
    let of_ticket = ticket_fee(&agreed.policy, &booking, now);
    let tickets: Vec<TicketRefund> = tickets
        .iter()
        .filter(is_open)
        .map(|ticket| TicketRefund::new(ticket, &of_ticket))
        .collect();
    let quote = match is_used {
        false => refund_of(&agreed.policy, &booking, now),
        true => {
            let prices: Vec<Won> = tickets.iter().map(|ticket| ticket.price).collect();
            refund_of_tickets(&agreed.policy, &booking, &prices, now)
        }
    };
    let of_tickets: i64 = tickets.iter().map(|ticket| ticket.refund_amount.amount()).sum();
    Ok(RefundPreview {
        refund_amount: quote.refund,
        cancellation_fee: quote.fee,
        rule: quote.rule.name(),
        until: refund_changes_at(&agreed.policy, &booking, now),
        booking_fee_refund: Won::new(quote.refund.amount() - of_tickets),
        tickets,
    })
}
