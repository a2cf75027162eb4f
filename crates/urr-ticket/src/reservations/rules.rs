//! Which steps a reservation may take: held, pinned while it is paid, then exactly one end.
//!
//! Whoever asks loaded the record under the lock of its sale and writes what is decided here.
//! Every step can be asked for again: [`Step::Done`] says that it was taken before.

use urr_kernel::{Timestamp, Uuid, Won};

use crate::inventory::rules::SaleStatus;
use crate::reservations::model::{PaymentStatus, Reservation, Status};

/// A reservation with everything that decides about its next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub reservation: Reservation,
    /// Seats or standing tickets together.
    pub quantity: u32,
    pub payment_id: Option<Uuid>,
    pub payment_method: Option<String>,
    pub refund_amount: Option<Won>,
    pub end_reason: Option<String>,
    pub updated_at: Timestamp,
    pub sale_status: SaleStatus,
    /// When the event begins.
    pub starts_at: Timestamp,
    /// Whose event it is.
    pub artist_id: Option<Uuid>,
}

/// What a reservation is at a moment. A hold whose time is over is over, swept or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Held,
    Pinned { by: Uuid },
    Confirmed,
    Cancelled,
    Expired,
}

/// What remains to be done for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Go,
    /// This very step was taken before.
    Done,
}

/// Why a reservation cannot take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no such reservation")]
    NotFound,
    #[error("a payment of the reservation is under way")]
    PaymentInProgress,
    #[error("the reservation is not pinned by this payment")]
    NotPinned,
    #[error("the reservation is confirmed")]
    Confirmed,
    #[error("the reservation was cancelled")]
    Cancelled,
    #[error("the time of the reservation is over")]
    Expired,
    #[error("the reservation is not being refunded")]
    NotRefunding,
    #[error("the fencing token is not the present one")]
    StaleToken,
    #[error("the amount is not that of the reservation")]
    WrongAmount,
    #[error("the event has begun")]
    EventStarted,
    #[error("the event was cancelled")]
    EventCancelled,
    #[error("a ticket of the reservation was used")]
    CheckedIn,
    #[error("the reservation is listed for others to buy")]
    Listed,
    #[error("someone is buying the reservation from its owner")]
    BeingBought,
    #[error("the reservation was sold on, and another payment is its own")]
    SoldOn,
    /// Only a bug of ours, or a hand in the tables, can cause it.
    #[error("a seat of the reservation is no longer its own")]
    SeatLost,
}

/// Who cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canceller {
    /// Up to the beginning of the event.
    Owner,
    /// At any time.
    Admin,
}

/// What a payment says when it pins a hold or confirms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentClaim {
    pub payment_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
}

impl Record {
    pub fn phase(&self, now: Timestamp) -> Phase {
        let reservation = &self.reservation;
        match (reservation.status, reservation.pinned_by) {
            (Status::Pending, Some(by)) => Phase::Pinned { by },
            (Status::Pending, None) if now >= reservation.expires_at => Phase::Expired,
            (Status::Pending, None) => Phase::Held,
            (Status::Confirmed, _) => Phase::Confirmed,
            (Status::Cancelled, _) => Phase::Cancelled,
            (Status::Expired, _) => Phase::Expired,
        }
    }

    /// What was kept when a paid reservation was cancelled.
    pub fn cancellation_fee(&self) -> Option<Won> {
        let kept = self.reservation.total_amount.minus(self.refund_amount?);
        Some(kept.expect("a refund is not more than the total"))
    }

    /// The state as users see it.
    pub fn status(&self, now: Timestamp) -> Status {
        match self.phase(now) {
            Phase::Held | Phase::Pinned { .. } => Status::Pending,
            Phase::Confirmed => Status::Confirmed,
            Phase::Cancelled => Status::Cancelled,
            Phase::Expired => Status::Expired,
        }
    }

    fn check_token(&self, token: Option<i64>) -> Result<(), Refused> {
        match token {
            Some(token) if token != self.reservation.fence => Err(Refused::StaleToken),
            _ => Ok(()),
        }
    }

    fn check_claim(&self, claim: &PaymentClaim) -> Result<(), Refused> {
        self.check_token(Some(claim.fencing_token))?;
        if claim.amount != self.reservation.total_amount {
            return Err(Refused::WrongAmount);
        }
        Ok(())
    }
}

/// Whether someone may pay now.
pub fn decide_pay(record: &Record, now: Timestamp) -> Result<(), Refused> {
    match record.phase(now) {
        Phase::Held if record.sale_status != SaleStatus::Open => Err(Refused::EventCancelled),
        Phase::Held => Ok(()),
        Phase::Pinned { .. } => Err(Refused::PaymentInProgress),
        Phase::Confirmed => Err(Refused::Confirmed),
        Phase::Cancelled => Err(Refused::Cancelled),
        Phase::Expired => Err(Refused::Expired),
    }
}

/// A payment is about to charge. The time is looked at here, for the last time: from now on the
/// hold waits for the payment (M-16).
pub fn decide_pin(record: &Record, claim: &PaymentClaim, now: Timestamp) -> Result<Step, Refused> {
    if record.phase(now) == (Phase::Pinned { by: claim.payment_id }) {
        return record.check_claim(claim).map(|()| Step::Done);
    }
    decide_pay(record, now)?;
    record.check_claim(claim).map(|()| Step::Go)
}

/// A payment has come to nothing. Where it has no pin, nothing is left to do; what it has confirmed
/// stays confirmed.
pub fn decide_unpin(record: &Record, payment_id: Uuid) -> Result<Step, Refused> {
    if record.reservation.pinned_by == Some(payment_id) {
        return Ok(Step::Go);
    }
    let is_confirmed = record.reservation.status == Status::Confirmed;
    match is_confirmed && record.payment_id == Some(payment_id) {
        true => Err(Refused::Confirmed),
        false => Ok(Step::Done),
    }
}

/// A payment was made. Only the one that pinned the hold can confirm it.
pub fn decide_confirm(
    record: &Record,
    claim: &PaymentClaim,
    now: Timestamp,
) -> Result<Step, Refused> {
    let step = match record.phase(now) {
        Phase::Pinned { by } if by == claim.payment_id => Step::Go,
        Phase::Pinned { .. } => return Err(Refused::PaymentInProgress),
        Phase::Confirmed if record.payment_id == Some(claim.payment_id) => Step::Done,
        Phase::Confirmed => return Err(Refused::Confirmed),
        Phase::Held => return Err(Refused::NotPinned),
        Phase::Cancelled => return Err(Refused::Cancelled),
        Phase::Expired => return Err(Refused::Expired),
    };
    record.check_claim(claim).map(|()| step)
}

/// The money of a cancelled reservation is back. Seats and stock have no part in it: they were
/// given back when it was cancelled and may be someone else's by now (M-13).
pub fn decide_refunded(record: &Record, payment_id: Uuid, back: Back) -> Result<Step, Refused> {
    let is_ours = record.payment_id == Some(payment_id);
    match record.reservation.payment_status {
        PaymentStatus::Refunding | PaymentStatus::Refunded if !is_ours => {
            Err(Refused::NotRefunding)
        }
        PaymentStatus::Refunded => Ok(Step::Done),
        PaymentStatus::Refunding => {
            let is_right = record.refund_amount == Some(back.asked) && back.returned <= back.asked;
            if is_right { Ok(Step::Go) } else { Err(Refused::WrongAmount) }
        }
        PaymentStatus::Unpaid | PaymentStatus::Paid => Err(Refused::NotRefunding),
    }
}

/// Money that is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// What we asked for.
    pub asked: Won,
    /// What of that came: less if a part had been given back before.
    pub returned: Won,
}

impl Back {
    pub fn whole(amount: Won) -> Back {
        Back { asked: amount, returned: amount }
    }
}

/// Whether a reservation may be cancelled. What is cancelled stays so: asking again is harmless,
/// and what is over gives nothing back a second time (M-2).
pub fn decide_cancel(record: &Record, by: Canceller, now: Timestamp) -> Result<Step, Refused> {
    match (record.phase(now), by) {
        (Phase::Held, _) | (Phase::Confirmed, Canceller::Admin) => Ok(Step::Go),
        (Phase::Confirmed, Canceller::Owner) if now < record.starts_at => Ok(Step::Go),
        (Phase::Confirmed, Canceller::Owner) => Err(Refused::EventStarted),
        (Phase::Pinned { .. }, _) => Err(Refused::PaymentInProgress),
        (Phase::Cancelled, _) => Ok(Step::Done),
        (Phase::Expired, _) => Err(Refused::Expired),
    }
}

/// Whether a hold may be released. A token is not needed, but a stale one releases nothing.
pub fn decide_release(
    record: &Record,
    token: Option<i64>,
    now: Timestamp,
) -> Result<Step, Refused> {
    let step = match record.phase(now) {
        Phase::Held => Step::Go,
        Phase::Cancelled => Step::Done,
        Phase::Pinned { .. } => return Err(Refused::PaymentInProgress),
        Phase::Confirmed => return Err(Refused::Confirmed),
        Phase::Expired => return Err(Refused::Expired),
    };
    record.check_token(token).map(|()| step)
}

/// Whether the seats of a hold may be changed.
pub fn decide_change(record: &Record, token: Option<i64>, now: Timestamp) -> Result<(), Refused> {
    decide_pay(record, now)?;
    record.check_token(token)
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
    fn record(state: &str) -> Record {
        let (status, payment_status) = match state {
            "held" | "pinned" => (Status::Pending, PaymentStatus::Unpaid),
            "paid" => (Status::Confirmed, PaymentStatus::Paid),
            "given back" => (Status::Cancelled, PaymentStatus::Unpaid),
            "refunding" => (Status::Cancelled, PaymentStatus::Refunding),
            "refunded" => (Status::Cancelled, PaymentStatus::Refunded),
            "expired" => (Status::Expired, PaymentStatus::Unpaid),
            other => panic!("no such state: {other}"),
        };
        let was_paid = payment_status != PaymentStatus::Unpaid;
        let amount = Won::new(100_000);
        Record {
            reservation: Reservation {
                id: ReservationId(Uuid::nil()),
                number: "R".to_owned(),
                user_id: Uuid::nil(),
                event_id: Uuid::nil(),
                status,
                payment_status,
                total_amount: amount,
                booking_fee: Won::ZERO,
                fence: 7,
                expires_at: at("12:05"),
                pinned_by: (state == "pinned").then_some(OURS),
                created_at: at("12:00"),
            },
            quantity: 1,
            payment_id: was_paid.then_some(OURS),
            payment_method: None,
            refund_amount: (was_paid && status == Status::Cancelled).then_some(amount),
            end_reason: None,
            updated_at: at("12:00"),
            sale_status: SaleStatus::Open,
            starts_at: at("19:00"),
            artist_id: None,
        }
    }

    fn claim(payment_id: Uuid) -> PaymentClaim {
        PaymentClaim { payment_id, fencing_token: 7, amount: Won::new(100_000) }
    }

    /// `go`, `done` or why not, for each step in each state.
    fn row(state: &str, now: &str) -> String {
        let (record, now) = (record(state), at(now));
        let word = |step: Result<Step, Refused>| match step {
            Ok(Step::Go) => "go".to_owned(),
            Ok(Step::Done) => "done".to_owned(),
            Err(refused) => format!("{refused:?}"),
        };
        let steps = [
            word(decide_pin(&record, &claim(OURS), now)),
            word(decide_unpin(&record, OURS)),
            word(decide_confirm(&record, &claim(OURS), now)),
            word(decide_release(&record, Some(7), now)),
            word(decide_change(&record, Some(7), now).map(|()| Step::Go)),
            word(decide_cancel(&record, Canceller::Owner, now)),
            word(decide_cancel(&record, Canceller::Admin, now)),
            word(decide_refunded(&record, OURS, Back::whole(Won::new(100_000)))),
        ];
        steps.join(" ")
    }

    #[test]
    fn every_step_in_every_state() {
        //                          pin unpin confirm release change owner's admin's refunded
        let table = [
            ("held", "12:04", "go done NotPinned go go go go NotRefunding"),
            ("held", "12:05", "Expired done Expired Expired Expired Expired Expired NotRefunding"),
            (
                "pinned",
                "12:30",
                "done go go PaymentInProgress PaymentInProgress PaymentInProgress \
                 PaymentInProgress NotRefunding",
            ),
            ("paid", "18:59", "Confirmed Confirmed done Confirmed Confirmed go go NotRefunding"),
            (
                "paid",
                "19:00",
                "Confirmed Confirmed done Confirmed Confirmed EventStarted go NotRefunding",
            ),
            (
                "given back",
                "12:04",
                "Cancelled done Cancelled done Cancelled done done NotRefunding",
            ),
            ("refunding", "12:04", "Cancelled done Cancelled done Cancelled done done go"),
            ("refunded", "12:04", "Cancelled done Cancelled done Cancelled done done done"),
            (
                "expired",
                "12:04",
                "Expired done Expired Expired Expired Expired Expired NotRefunding",
            ),
        ];
        for (state, now, expected) in table {
            assert_eq!(row(state, now), expected, "{state} at {now}");
        }
    }

    #[test]
    fn another_payment_is_always_refused_and_has_nothing_to_let_go() {
        let now = at("12:30");
        let (pinned, paid) = (record("pinned"), record("paid"));
        for decide in [decide_pin, decide_confirm] {
            assert_eq!(decide(&pinned, &claim(THEIRS), now), Err(Refused::PaymentInProgress));
            assert_eq!(decide(&paid, &claim(THEIRS), now), Err(Refused::Confirmed));
        }
        for record in [&pinned, &paid] {
            assert_eq!(decide_unpin(record, THEIRS), Ok(Step::Done));
        }
        let refunding = record("refunding");
        let refunded = decide_refunded(&refunding, THEIRS, Back::whole(Won::new(100_000)));
        assert_eq!(refunded, Err(Refused::NotRefunding));
    }

    #[test]
    fn a_stale_token_or_another_amount_takes_no_step() {
        let now = at("12:04");
        let stale = PaymentClaim { fencing_token: 6, ..claim(OURS) };
        let cheap = PaymentClaim { amount: Won::new(99_999), ..claim(OURS) };
        for state in ["held", "pinned"] {
            let record = record(state);
            assert_eq!(decide_pin(&record, &stale, now), Err(Refused::StaleToken), "{state}");
            assert_eq!(decide_pin(&record, &cheap, now), Err(Refused::WrongAmount), "{state}");
        }
        for state in ["pinned", "paid"] {
            let record = record(state);
            assert_eq!(decide_confirm(&record, &stale, now), Err(Refused::StaleToken), "{state}");
            assert_eq!(decide_confirm(&record, &cheap, now), Err(Refused::WrongAmount), "{state}");
        }
        assert_eq!(decide_release(&record("held"), Some(6), now), Err(Refused::StaleToken));
        assert_eq!(decide_change(&record("held"), Some(6), now), Err(Refused::StaleToken));
        let (asked, half) = (Won::new(100_000), Won::new(50_000));
        let back = |back| decide_refunded(&record("refunding"), OURS, back);
        assert_eq!(back(Back::whole(half)), Err(Refused::WrongAmount));
        assert_eq!(back(Back { asked: half, returned: asked }), Err(Refused::WrongAmount));
        assert_eq!(back(Back { asked, returned: half }), Ok(Step::Go));
    }

    #[test]
    fn m_9_a_hold_of_a_cancelled_event_can_only_be_given_back() {
        let closed = Record { sale_status: SaleStatus::Cancelled, ..record("held") };
        let now = at("12:04");
        assert_eq!(decide_pin(&closed, &claim(OURS), now), Err(Refused::EventCancelled));
        assert_eq!(decide_change(&closed, None, now), Err(Refused::EventCancelled));
        assert_eq!(decide_cancel(&closed, Canceller::Owner, now), Ok(Step::Go));
        // What is being paid is decided first.
        let paying = Record { sale_status: SaleStatus::Cancelled, ..record("pinned") };
        assert_eq!(decide_confirm(&paying, &claim(OURS), now), Ok(Step::Go));
    }
}
