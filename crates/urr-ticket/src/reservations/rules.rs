//! Rules of reservations: held, pinned while it is paid, then exactly one end.
//!
//! The caller loads the record under the lock of its sale and writes the decision. Every step can
//! be repeated: [`Transition::AlreadyDone`] means that it was taken before.

use urr_kernel::{Timestamp, Uuid, Won};

use crate::inventory::rules::SaleStatus;
use crate::payables::attempts::EndedAttempts;
use crate::reservations::model::{
    Reservation, ReservationKind, ReservationPaymentStatus, ReservationStatus,
};

/// A reservation with everything that its transitions depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRecord {
    pub reservation: Reservation,
    pub kind: ReservationKind,
    /// When its owner was given more time to pay.
    pub extended_at: Option<Timestamp>,
    /// The attempts to pay that have released it.
    pub ended_attempts: EndedAttempts,
    pub payment_id: Option<Uuid>,
    pub payment_method: Option<String>,
    pub refund_amount: Option<Won>,
    pub end_reason: Option<String>,
    pub updated_at: Timestamp,
    /// The start of the event when its owner booked it, or bought it from someone else.
    pub agreed_starts_at: Timestamp,
    /// The start of the event that its owner was last told.
    pub announced_starts_at: Timestamp,
    /// The price of the tickets that its owner cancelled one by one.
    pub cancelled_amount: Won,
    /// What of it is refunded.
    pub cancelled_refund_amount: Won,
    pub sale_status: SaleStatus,
    /// When the event begins.
    pub starts_at: Timestamp,
    /// Whose event it is.
    pub artist_id: Option<Uuid>,
    pub event_title: String,
    pub venue_name: String,
}

/// The phase of a reservation at a moment. An expired hold is expired, swept or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationPhase {
    Held,
    Pinned { by: Uuid },
    Confirmed,
    Cancelled,
    Expired,
}

/// Whether a step is still to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Apply,
    /// The same step was taken before.
    AlreadyDone,
}

/// Why a reservation cannot take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservationRejection {
    #[error("There is no such reservation.")]
    NotFound,
    #[error("A payment of this reservation is under way.")]
    PaymentInProgress,
    #[error("This payment has not pinned the reservation.")]
    NotPinned,
    #[error("This attempt to pay is over.")]
    AttemptOver,
    #[error("This reservation is paid.")]
    Confirmed,
    #[error("This reservation is not paid, so it has no tickets yet.")]
    Unpaid,
    #[error("The reservation has no such ticket.")]
    TicketNotFound,
    #[error("This reservation was cancelled.")]
    Cancelled,
    #[error("The time to pay for this reservation is over.")]
    Expired,
    #[error("This hold cannot be extended.")]
    NotExtendable,
    #[error("Nothing of this reservation is to be refunded.")]
    NotRefunding,
    #[error("The reservation has changed in the meantime.")]
    StaleToken,
    #[error("Say which version you change: send its fencingToken, or overwrite.")]
    TokenRequired,
    #[error("This is not the amount of the reservation.")]
    WrongAmount,
    #[error("The event has begun. It cannot be cancelled any more.")]
    EventStarted,
    #[error("This event was cancelled.")]
    EventCancelled,
    #[error("A ticket of this reservation has been used.")]
    CheckedIn,
    #[error("This is for sale. Take the listing back before you cancel.")]
    Listed,
    #[error("Someone is paying for this ticket.")]
    BeingBought,
    #[error("The ticket was handed over.")]
    SoldOn,
    #[error("Complimentary tickets are revoked together.")]
    Complimentary,
    #[error("These are no complimentary tickets.")]
    NotComplimentary,
    #[error("This was not sold at the box office.")]
    NotSoldHere,
    /// Only a bug, or a change of the tables by hand, can cause it.
    #[error("A seat of this reservation was lost.")]
    SeatLost,
}

/// Who cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelActor {
    /// Up to the beginning of the event.
    Owner,
    /// At any time.
    Admin,
}

/// What a payment states when it pins or confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentClaim {
    pub payment_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
}

impl ReservationRecord {
    pub fn phase(&self, now: Timestamp) -> ReservationPhase {
        let reservation = &self.reservation;
        match (reservation.status, reservation.pinned_by) {
            (ReservationStatus::Pending, Some(by)) => ReservationPhase::Pinned { by },
            (ReservationStatus::Pending, None) if now >= reservation.expires_at => {
                ReservationPhase::Expired
            }
            (ReservationStatus::Pending, None) => ReservationPhase::Held,
            (ReservationStatus::Confirmed, _) => ReservationPhase::Confirmed,
            (ReservationStatus::Cancelled, _) => ReservationPhase::Cancelled,
            (ReservationStatus::Expired, _) => ReservationPhase::Expired,
        }
    }

    /// What its present payment has paid: also for tickets that were cancelled since.
    pub fn paid_amount(&self) -> Won {
        let paid = self.reservation.total_amount.plus(self.cancelled_amount);
        paid.expect("amounts are bounded")
    }

    /// What was kept of a cancelled paid reservation.
    pub fn cancellation_fee(&self) -> Option<Won> {
        let kept = self.reservation.total_amount.minus(self.refund_amount?);
        Some(kept.expect("a refund is not more than the total"))
    }

    /// The state as users see it.
    pub fn status(&self, now: Timestamp) -> ReservationStatus {
        match self.phase(now) {
            ReservationPhase::Held | ReservationPhase::Pinned { .. } => ReservationStatus::Pending,
            ReservationPhase::Confirmed => ReservationStatus::Confirmed,
            ReservationPhase::Cancelled => ReservationStatus::Cancelled,
            ReservationPhase::Expired => ReservationStatus::Expired,
        }
    }

    fn check_token(&self, token: Option<i64>) -> Result<(), ReservationRejection> {
        match token {
            Some(token) if token != self.reservation.fence => Err(ReservationRejection::StaleToken),
            _ => Ok(()),
        }
    }

    fn check_claim(&self, claim: &PaymentClaim) -> Result<(), ReservationRejection> {
        self.check_token(Some(claim.fencing_token))?;
        if claim.amount != self.paid_amount() {
            return Err(ReservationRejection::WrongAmount);
        }
        Ok(())
    }
}

/// Whether the hold can be paid now.
pub fn decide_pay(record: &ReservationRecord, now: Timestamp) -> Result<(), ReservationRejection> {
    match record.phase(now) {
        ReservationPhase::Held if record.sale_status != SaleStatus::Open => {
            Err(ReservationRejection::EventCancelled)
        }
        ReservationPhase::Held => Ok(()),
        ReservationPhase::Pinned { .. } => Err(ReservationRejection::PaymentInProgress),
        ReservationPhase::Confirmed => Err(ReservationRejection::Confirmed),
        ReservationPhase::Cancelled => Err(ReservationRejection::Cancelled),
        ReservationPhase::Expired => Err(ReservationRejection::Expired),
    }
}

/// A payment is about to charge. The expiry is checked here for the last time: from now on the hold
/// waits for the payment (M-16). A pin that arrives after its own unpin has no
/// effect.
pub fn decide_pin(
    record: &ReservationRecord,
    claim: &PaymentClaim,
    attempt: i64,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    if record.ended_attempts.contains(claim.payment_id, attempt) {
        return Err(ReservationRejection::AttemptOver);
    }
    if record.phase(now) == (ReservationPhase::Pinned { by: claim.payment_id }) {
        return record.check_claim(claim).map(|()| Transition::AlreadyDone);
    }
    decide_pay(record, now)?;
    record.check_claim(claim).map(|()| Transition::Apply)
}

/// An attempt to pay has failed. Without a pin it is recorded all the same: the pin may still be on
/// its way. A confirmed reservation stays confirmed.
pub fn decide_unpin(
    record: &ReservationRecord,
    payment_id: Uuid,
    attempt: i64,
) -> Result<Transition, ReservationRejection> {
    if record.ended_attempts.contains(payment_id, attempt) {
        return Ok(Transition::AlreadyDone);
    }
    match record.reservation.status {
        ReservationStatus::Pending => Ok(Transition::Apply),
        ReservationStatus::Confirmed if record.payment_id == Some(payment_id) => {
            Err(ReservationRejection::Confirmed)
        }
        _ => Ok(Transition::AlreadyDone),
    }
}

/// A payment was made. Only the payment that pinned the hold can confirm it.
pub fn decide_confirm(
    record: &ReservationRecord,
    claim: &PaymentClaim,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    let step = match record.phase(now) {
        ReservationPhase::Pinned { by } if by == claim.payment_id => Transition::Apply,
        ReservationPhase::Pinned { .. } => return Err(ReservationRejection::PaymentInProgress),
        ReservationPhase::Confirmed if record.payment_id == Some(claim.payment_id) => {
            Transition::AlreadyDone
        }
        ReservationPhase::Confirmed => return Err(ReservationRejection::Confirmed),
        ReservationPhase::Held => return Err(ReservationRejection::NotPinned),
        ReservationPhase::Cancelled => return Err(ReservationRejection::Cancelled),
        ReservationPhase::Expired => return Err(ReservationRejection::Expired),
    };
    record.check_claim(claim).map(|()| step)
}

/// The money of a cancelled reservation has gone back. Seats and stock are not touched: they were
/// released when it was cancelled and may be sold again (M-13).
pub fn decide_refunded(
    record: &ReservationRecord,
    payment_id: Uuid,
    money: ReturnedMoney,
) -> Result<Transition, ReservationRejection> {
    let is_ours = record.payment_id == Some(payment_id);
    match record.reservation.payment_status {
        ReservationPaymentStatus::Refunding | ReservationPaymentStatus::Refunded if !is_ours => {
            Err(ReservationRejection::NotRefunding)
        }
        ReservationPaymentStatus::Refunded => Ok(Transition::AlreadyDone),
        ReservationPaymentStatus::Refunding => {
            let is_right =
                record.refund_amount == Some(money.requested) && money.returned <= money.requested;
            if is_right { Ok(Transition::Apply) } else { Err(ReservationRejection::WrongAmount) }
        }
        ReservationPaymentStatus::Unpaid | ReservationPaymentStatus::Paid => {
            Err(ReservationRejection::NotRefunding)
        }
    }
}

/// Money that has gone back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedMoney {
    /// The amount that was asked for.
    pub requested: Won,
    /// The amount that came: less if a part had gone back before.
    pub returned: Won,
}

impl ReturnedMoney {
    pub fn whole(amount: Won) -> ReturnedMoney {
        ReturnedMoney { requested: amount, returned: amount }
    }
}

/// Whether a reservation may be cancelled. Cancelling twice is harmless, and nothing is released a
/// second time (M-2).
pub fn decide_cancel(
    record: &ReservationRecord,
    by: CancelActor,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    match (record.phase(now), by) {
        (ReservationPhase::Held, _) | (ReservationPhase::Confirmed, CancelActor::Admin) => {
            Ok(Transition::Apply)
        }
        (ReservationPhase::Confirmed, CancelActor::Owner) if now < record.starts_at => {
            Ok(Transition::Apply)
        }
        (ReservationPhase::Confirmed, CancelActor::Owner) => {
            Err(ReservationRejection::EventStarted)
        }
        (ReservationPhase::Pinned { .. }, _) => Err(ReservationRejection::PaymentInProgress),
        (ReservationPhase::Cancelled, _) => Ok(Transition::AlreadyDone),
        (ReservationPhase::Expired, _) => Err(ReservationRejection::Expired),
    }
}

/// Whether single tickets of a reservation may be cancelled.
pub fn decide_cancel_tickets(
    record: &ReservationRecord,
    by: CancelActor,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    match record.phase(now) {
        ReservationPhase::Held => Err(ReservationRejection::Unpaid),
        _ => decide_cancel(record, by, now),
    }
}

/// Whether a hold may be released. The token is optional, but a stale one is rejected.
pub fn decide_release(
    record: &ReservationRecord,
    token: Option<i64>,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    let step = match record.phase(now) {
        ReservationPhase::Held => Transition::Apply,
        ReservationPhase::Cancelled => Transition::AlreadyDone,
        ReservationPhase::Pinned { .. } => return Err(ReservationRejection::PaymentInProgress),
        ReservationPhase::Confirmed => return Err(ReservationRejection::Confirmed),
        ReservationPhase::Expired => return Err(ReservationRejection::Expired),
    };
    record.check_token(token).map(|()| step)
}

/// Whether the seats of a hold may be changed.
pub fn decide_change(
    record: &ReservationRecord,
    token: Option<i64>,
    now: Timestamp,
) -> Result<(), ReservationRejection> {
    decide_pay(record, now)?;
    record.check_token(token)
}

/// Whether the hold may be given more time. It is given once, for the version that its owner sees.
pub fn decide_extend(
    record: &ReservationRecord,
    token: i64,
    now: Timestamp,
) -> Result<Transition, ReservationRejection> {
    decide_change(record, Some(token), now)?;
    Ok(match record.extended_at {
        None => Transition::Apply,
        Some(_) => Transition::AlreadyDone,
    })
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;
    use crate::ReservationId;

    const OURS: Uuid = Uuid::from_u128(1);
    const THEIRS: Uuid = Uuid::from_u128(2);

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}:00Z").parse().expect("a time")
    }

    /// A reservation in one of the states of the table below; its hold ends at 12:05.
    fn record(state: &str) -> ReservationRecord {
        let (status, payment_status) = match state {
            "held" | "pinned" => (ReservationStatus::Pending, ReservationPaymentStatus::Unpaid),
            "paid" => (ReservationStatus::Confirmed, ReservationPaymentStatus::Paid),
            "given back" => (ReservationStatus::Cancelled, ReservationPaymentStatus::Unpaid),
            "refunding" => (ReservationStatus::Cancelled, ReservationPaymentStatus::Refunding),
            "refunded" => (ReservationStatus::Cancelled, ReservationPaymentStatus::Refunded),
            "expired" => (ReservationStatus::Expired, ReservationPaymentStatus::Unpaid),
            other => panic!("no such state: {other}"),
        };
        let was_paid = payment_status != ReservationPaymentStatus::Unpaid;
        let amount = Won::new(100_000);
        ReservationRecord {
            reservation: Reservation {
                id: ReservationId(Uuid::nil()),
                number: "R".to_owned(),
                user_id: Uuid::nil(),
                event_id: Uuid::nil(),
                status,
                payment_status,
                total_amount: amount,
                booking_fee: Won::ZERO,
                quantity: 1,
                fence: 7,
                expires_at: at("12:05"),
                pinned_by: (state == "pinned").then_some(OURS),
                created_at: at("12:00"),
            },
            kind: ReservationKind::Online,
            extended_at: None,
            ended_attempts: EndedAttempts::default(),
            payment_id: was_paid.then_some(OURS),
            payment_method: None,
            refund_amount: (was_paid && status == ReservationStatus::Cancelled).then_some(amount),
            end_reason: None,
            updated_at: at("12:00"),
            agreed_starts_at: at("19:00"),
            announced_starts_at: at("19:00"),
            cancelled_amount: Won::ZERO,
            cancelled_refund_amount: Won::ZERO,
            sale_status: SaleStatus::Open,
            starts_at: at("19:00"),
            artist_id: None,
            event_title: String::new(),
            venue_name: String::new(),
        }
    }

    fn claim(payment_id: Uuid) -> PaymentClaim {
        PaymentClaim { payment_id, fencing_token: 7, amount: Won::new(100_000) }
    }

    /// `go`, `done` or why not, for each step in each state.
    fn row(state: &str, now: &str) -> String {
        let (record, now) = (record(state), at(now));
        let word = |step: Result<Transition, ReservationRejection>| match step {
            Ok(Transition::Apply) => "go".to_owned(),
            Ok(Transition::AlreadyDone) => "done".to_owned(),
            Err(refused) => format!("{refused:?}"),
        };
        let steps = [
            word(decide_pin(&record, &claim(OURS), 1, now)),
            word(decide_unpin(&record, OURS, 1)),
            word(decide_confirm(&record, &claim(OURS), now)),
            word(decide_release(&record, Some(7), now)),
            word(decide_change(&record, Some(7), now).map(|()| Transition::Apply)),
            word(decide_extend(&record, 7, now)),
            word(decide_cancel(&record, CancelActor::Owner, now)),
            word(decide_cancel(&record, CancelActor::Admin, now)),
            word(decide_refunded(&record, OURS, ReturnedMoney::whole(Won::new(100_000)))),
        ];
        steps.join(" ")
    }

    #[test]
    fn every_step_in_every_state() {
        //                          pin unpin confirm release change extend owner's admin's refunded
        let table = [
            ("held", "12:04", "go go NotPinned go go go go go NotRefunding"),
            (
                "held",
                "12:05",
                "Expired go Expired Expired Expired Expired Expired Expired NotRefunding",
            ),
            (
                "pinned",
                "12:30",
                "done go go PaymentInProgress PaymentInProgress PaymentInProgress \
                 PaymentInProgress PaymentInProgress NotRefunding",
            ),
            (
                "paid",
                "18:59",
                "Confirmed Confirmed done Confirmed Confirmed Confirmed go go NotRefunding",
            ),
            (
                "paid",
                "19:00",
                "Confirmed Confirmed done Confirmed Confirmed Confirmed EventStarted go NotRefunding",
            ),
            (
                "given back",
                "12:04",
                "Cancelled done Cancelled done Cancelled Cancelled done done NotRefunding",
            ),
            (
                "refunding",
                "12:04",
                "Cancelled done Cancelled done Cancelled Cancelled done done go",
            ),
            (
                "refunded",
                "12:04",
                "Cancelled done Cancelled done Cancelled Cancelled done done done",
            ),
            (
                "expired",
                "12:04",
                "Expired done Expired Expired Expired Expired Expired Expired NotRefunding",
            ),
        ];
        for (state, now, expected) in table {
            assert_eq!(row(state, now), expected, "{state} at {now}");
        }
    }

    #[test]
    fn another_payment_is_always_refused() {
        let now = at("12:30");
        let (pinned, paid) = (record("pinned"), record("paid"));
        for (record, refused) in [
            (&pinned, ReservationRejection::PaymentInProgress),
            (&paid, ReservationRejection::Confirmed),
        ] {
            assert_eq!(decide_pin(record, &claim(THEIRS), 1, now), Err(refused));
            assert_eq!(decide_confirm(record, &claim(THEIRS), now), Err(refused));
        }
        assert_eq!(decide_unpin(&paid, THEIRS, 1), Ok(Transition::AlreadyDone));
        let refunding = record("refunding");
        let refunded = decide_refunded(&refunding, THEIRS, ReturnedMoney::whole(Won::new(100_000)));
        assert_eq!(refunded, Err(ReservationRejection::NotRefunding));
    }

    #[test]
    fn an_attempt_that_is_over_neither_pins_nor_unpins() {
        let now = at("12:04");
        let ended_attempts = EndedAttempts::default().with(OURS, 2).with(THEIRS, 9);
        let held = ReservationRecord { ended_attempts: ended_attempts.clone(), ..record("held") };
        let pinned = ReservationRecord { ended_attempts, ..record("pinned") };
        for attempt in [1, 2] {
            let late = decide_pin(&held, &claim(OURS), attempt, now);
            assert_eq!(late, Err(ReservationRejection::AttemptOver));
            assert_eq!(decide_unpin(&pinned, OURS, attempt), Ok(Transition::AlreadyDone));
        }
        assert_eq!(decide_pin(&held, &claim(OURS), 3, now), Ok(Transition::Apply));
        assert_eq!(decide_unpin(&pinned, OURS, 3), Ok(Transition::Apply));
    }

    #[test]
    fn a_stale_token_or_another_amount_takes_no_step() {
        let now = at("12:04");
        let stale = PaymentClaim { fencing_token: 6, ..claim(OURS) };
        let cheap = PaymentClaim { amount: Won::new(99_999), ..claim(OURS) };
        for state in ["held", "pinned"] {
            let record = record(state);
            assert_eq!(
                decide_pin(&record, &stale, 1, now),
                Err(ReservationRejection::StaleToken),
                "{state}"
            );
            assert_eq!(
                decide_pin(&record, &cheap, 1, now),
                Err(ReservationRejection::WrongAmount),
                "{state}"
            );
        }
        for state in ["pinned", "paid"] {
            let record = record(state);
            assert_eq!(
                decide_confirm(&record, &stale, now),
                Err(ReservationRejection::StaleToken),
                "{state}"
            );
            assert_eq!(
                decide_confirm(&record, &cheap, now),
                Err(ReservationRejection::WrongAmount),
                "{state}"
            );
        }
        assert_eq!(
            decide_release(&record("held"), Some(6), now),
            Err(ReservationRejection::StaleToken)
        );
        assert_eq!(
            decide_change(&record("held"), Some(6), now),
            Err(ReservationRejection::StaleToken)
        );
        let (asked, half) = (Won::new(100_000), Won::new(50_000));
        let back = |back| decide_refunded(&record("refunding"), OURS, back);
        assert_eq!(back(ReturnedMoney::whole(half)), Err(ReservationRejection::WrongAmount));
        assert_eq!(
            back(ReturnedMoney { requested: half, returned: asked }),
            Err(ReservationRejection::WrongAmount)
        );
        assert_eq!(back(ReturnedMoney { requested: asked, returned: half }), Ok(Transition::Apply));
    }

    #[test]
    fn m_9_a_hold_of_a_cancelled_event_can_only_be_given_back() {
        let closed = ReservationRecord { sale_status: SaleStatus::Cancelled, ..record("held") };
        let now = at("12:04");
        assert_eq!(
            decide_pin(&closed, &claim(OURS), 1, now),
            Err(ReservationRejection::EventCancelled)
        );
        assert_eq!(decide_change(&closed, None, now), Err(ReservationRejection::EventCancelled));
        assert_eq!(decide_cancel(&closed, CancelActor::Owner, now), Ok(Transition::Apply));
        // A pinned hold is decided by its payment first.
        let paying = ReservationRecord { sale_status: SaleStatus::Cancelled, ..record("pinned") };
        assert_eq!(decide_confirm(&paying, &claim(OURS), now), Ok(Transition::Apply));
    }
}
