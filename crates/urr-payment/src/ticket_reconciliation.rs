//! Our books beside the ticket service's: every ticket is paid, and every payment has its ticket.
//!
//! The two are never read at one moment. Whatever attempts wrong is therefore looked at once more, and
//! only what has not moved meanwhile is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::StorageError;

use crate::domain::payment::{PayableKind, Payment, PaymentId, PaymentStatus};
use crate::jobs::STUCK_AFTER;
use crate::store::payments::{self, PayableRange};
use crate::ticket_client::{PaidPage, PaidReservation};
use crate::{PaymentService, TicketClientError};

/// So many payments are compared at a time at most.
const PAYMENTS_PER_PAGE: usize = 1_000;

/// What one stretch of reservations came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketComparison {
    pub reservations: usize,
    pub payments: usize,
    /// Empty if all is well.
    pub differences: Vec<TicketDifference>,
    /// The last reservation of the stretch; none if it was the last stretch.
    pub next: Option<Uuid>,
}

/// Where the ticket service's books and ours differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketDifference {
    /// The ticket service was paid by a payment that is not there or has not taken anything.
    Unpaid { reservation_id: Uuid, payment_id: Option<Uuid>, amount: Won },
    /// The money is ours, and the buyer has no ticket for it.
    NoTicket { reservation_id: Uuid, payment_id: Uuid, amount: Won },
    /// The ticket was paid, and not what it costs.
    Amounts { reservation_id: Uuid, payment_id: Uuid, costs: Won, paid: Won },
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Tickets(#[from] TicketClientError),
}

/// Decides whether a reservation and its payments tell the same story. `reservation` is one that
/// was ever paid; one that was handed over is paid by the payment of that transfer. Whatever has a
/// step left is on its way, and so is what the ticket service has just announced.
fn judge(
    id: Uuid,
    reservation: Option<&PaidReservation>,
    payments: &[Payment],
    now: Timestamp,
) -> Option<TicketDifference> {
    let paid_by = reservation.and_then(|reservation| reservation.payment_id);
    let changed_at = reservation.and_then(|reservation| reservation.updated_at);
    let is_announced = changed_at.is_some_and(|at| now - STUCK_AFTER < at);
    let without_ticket = payments.iter().find(|payment| {
        let stands = payment.status == PaymentStatus::Confirmed && payment.is_settled();
        stands && Some(payment.id.0) != paid_by && payment.payable.id == id
    });
    if let Some(payment) = without_ticket.filter(|_| !is_announced) {
        return Some(no_ticket(id, payment));
    }
    let reservation = reservation?;
    let is_confirmed = reservation.status == "confirmed";
    let payment = payments.iter().find(|payment| Some(payment.id.0) == paid_by);
    let payment = payment.filter(|payment| {
        payment.payable.id == id || payment.payable.kind == PayableKind::Transfer
    });
    let unpaid = TicketDifference::Unpaid {
        reservation_id: id,
        payment_id: paid_by,
        amount: reservation.total_amount,
    };
    let Some(payment) = payment else { return Some(unpaid) };
    let is_other_price = payment.payable.id == id && payment.amount != reservation.total_amount;
    match payment.status {
        _ if !payment.is_settled() => None,
        PaymentStatus::Confirmed if is_confirmed && is_other_price => {
            Some(TicketDifference::Amounts {
                reservation_id: id,
                payment_id: payment.id.0,
                costs: reservation.total_amount,
                paid: payment.amount,
            })
        }
        PaymentStatus::Confirmed if is_confirmed || is_announced => None,
        PaymentStatus::Confirmed => Some(no_ticket(id, payment)),
        _ if is_confirmed => Some(unpaid),
        _ => None,
    }
}

fn no_ticket(id: Uuid, payment: &Payment) -> TicketDifference {
    let amount = payment.remaining();
    TicketDifference::NoTicket { reservation_id: id, payment_id: payment.id.0, amount }
}

impl PaymentService {
    /// Compares a stretch of reservations with their payments, in both directions.
    pub async fn reconcile_tickets(
        &self,
        after: Option<Uuid>,
        context: &CallContext,
    ) -> Result<TicketComparison, CompareError> {
        let PaidPage { mut reservations, more } = self.0.tickets.paid(after, context).await?;
        let end = reservations.last().filter(|_| more).map(|reservation| reservation.id);
        let span =
            PayableRange { after: after.unwrap_or(Uuid::nil()), until: end.unwrap_or(Uuid::max()) };
        let (payments, cut) = self.payments_within(span).await?;
        if let Some(cut) = cut {
            reservations.retain(|reservation| reservation.id <= cut);
        }
        let mut found = TicketComparison {
            reservations: reservations.len(),
            payments: payments.values().map(Vec::len).sum(),
            differences: Vec::new(),
            next: cut.or(end),
        };
        let reservations: BTreeMap<Uuid, PaidReservation> =
            reservations.into_iter().map(|reservation| (reservation.id, reservation)).collect();
        let now = self.0.clock.now();
        let ids: BTreeSet<Uuid> = reservations.keys().chain(payments.keys()).copied().collect();
        for id in ids {
            let ours = payments.get(&id).map_or(&[][..], Vec::as_slice);
            if judge(id, reservations.get(&id), ours, now).is_some() {
                found.differences.extend(self.recheck_reservation(id, context).await?);
            }
        }
        Ok(found)
    }

    /// The payments of a span by what they are for. If there are too many, the answer also says
    /// how far they reach.
    async fn payments_within(
        &self,
        span: PayableRange,
    ) -> Result<(BTreeMap<Uuid, Vec<Payment>>, Option<Uuid>), StorageError> {
        let limit = u32::try_from(PAYMENTS_PER_PAGE).expect("a page is small");
        let read =
            move |tx: &mut urr_storage::Tx<'_>| payments::payments_of_reservations(tx, span, limit);
        let list = self.0.db.read(read).await?;
        let is_cut = list.len() == PAYMENTS_PER_PAGE;
        let mut payments: BTreeMap<Uuid, Vec<Payment>> = BTreeMap::new();
        for payment in list {
            payments.entry(payment.payable.id).or_default().push(payment);
        }
        // There may be others of the last one.
        if is_cut && payments.len() > 1 {
            payments.pop_last();
        }
        let reach = payments.keys().next_back().copied();
        Ok((payments, reach.filter(|_| is_cut)))
    }

    /// None: it has moved meanwhile, or was seen half way.
    async fn recheck_reservation(
        &self,
        id: Uuid,
        context: &CallContext,
    ) -> Result<Option<TicketDifference>, CompareError> {
        let reservation = self.0.tickets.find(id, context).await?;
        let paid_by = reservation.and_then(|reservation| reservation.payment_id);
        let before = self.payments_for_reservation(id, paid_by).await?;
        let reservation = self.0.tickets.find(id, context).await?;
        let reservation = reservation.filter(|reservation| reservation.payment_id.is_some());
        let after = self.payments_for_reservation(id, paid_by).await?;
        let is_still = reservation.as_ref().and_then(|now| now.payment_id) == paid_by;
        match is_still && before == after {
            true => Ok(judge(id, reservation.as_ref(), &after, self.0.clock.now())),
            false => Ok(None),
        }
    }

    /// Those for a reservation, and the one that has paid for it, whatever that was for.
    async fn payments_for_reservation(
        &self,
        id: Uuid,
        paid_by: Option<Uuid>,
    ) -> Result<Vec<Payment>, StorageError> {
        let mut payments = self.list_by_payable(id).await?;
        if let Some(paid_by) = paid_by
            && !payments.iter().any(|payment| payment.id.0 == paid_by)
        {
            payments.extend(self.find(PaymentId(paid_by)).await?);
        }
        Ok(payments)
    }
}

impl fmt::Display for TicketDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TicketDifference::Unpaid { reservation_id, payment_id, amount } => {
                let payment = payment_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
                write!(
                    f,
                    "reservation {reservation_id}: the ticket service has {amount} as paid by \
                     payment {payment}, which has not taken them"
                )
            }
            TicketDifference::NoTicket { reservation_id, payment_id, amount } => write!(
                f,
                "payment {payment_id}: {amount} are taken for reservation {reservation_id}, which \
                 is not theirs"
            ),
            TicketDifference::Amounts { reservation_id, payment_id, costs, paid } => write!(
                f,
                "payment {payment_id}: {paid} are taken for reservation {reservation_id}, which \
                 costs {costs}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::payment::tests::payment;
    use crate::domain::payment::{PayableRef, SagaStep};

    const NOW: &str = "2026-12-01T12:00:00Z";
    const LONG_AGO: &str = "2026-12-01T11:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn paid(by: &Payment, status: &str, updated_at: &str) -> PaidReservation {
        PaidReservation {
            id: by.payable.id,
            reservation_number: "R12345".to_owned(),
            order_name: None,
            user_id: by.user_id,
            event_id: Uuid::nil(),
            status: status.to_owned(),
            payment_status: "paid".to_owned(),
            total_amount: by.amount,
            booking_fee: Won::ZERO,
            fencing_token: 1,
            pinned_by: None,
            payment_id: Some(by.id.0),
            refund_amount: None,
            updated_at: Some(at(updated_at)),
            correlation_id: None,
            last_event_id: None,
        }
    }

    fn word(reservation: Option<&PaidReservation>, payments: &[Payment]) -> &'static str {
        let id = reservation.map_or_else(|| payments[0].payable.id, |reservation| reservation.id);
        match judge(id, reservation, payments, at(NOW)) {
            None => "agrees",
            Some(TicketDifference::Unpaid { .. }) => "unpaid",
            Some(TicketDifference::NoTicket { .. }) => "no ticket",
            Some(TicketDifference::Amounts { .. }) => "amounts",
        }
    }

    #[test]
    fn every_ticket_has_its_payment_and_every_payment_its_ticket() {
        let confirmed = payment(PaymentStatus::Confirmed, None);
        let ticket = paid(&confirmed, "confirmed", LONG_AGO);
        assert_eq!(word(Some(&ticket), std::slice::from_ref(&confirmed)), "agrees");
        assert_eq!(word(Some(&ticket), &[]), "unpaid");
        for (status, expected) in
            [(PaymentStatus::Refunded, "unpaid"), (PaymentStatus::Failed, "unpaid")]
        {
            assert_eq!(word(Some(&ticket), &[payment(status, None)]), expected);
        }
        assert_eq!(word(None, std::slice::from_ref(&confirmed)), "no ticket");
        let of_another = PaidReservation { payment_id: Some(Uuid::max()), ..ticket.clone() };
        assert_eq!(word(Some(&of_another), std::slice::from_ref(&confirmed)), "no ticket");
        let cheap = PaidReservation { total_amount: Won::new(1), ..ticket };
        assert_eq!(word(Some(&cheap), &[confirmed]), "amounts");
    }

    #[test]
    fn a_ticket_that_was_handed_over_is_paid_by_its_transfer() {
        let first = payment(PaymentStatus::Refunded, None);
        let payable = PayableRef { kind: PayableKind::Transfer, id: Uuid::from_u128(99) };
        let second = Payment {
            id: PaymentId(Uuid::max()),
            payable,
            ..payment(PaymentStatus::Confirmed, None)
        };
        let ticket = paid(&first, "confirmed", LONG_AGO);
        let ticket = PaidReservation { payment_id: Some(second.id.0), ..ticket };
        assert_eq!(word(Some(&ticket), &[first.clone(), second.clone()]), "agrees");
        // Nobody has given the seller their money.
        let unpaid_seller = payment(PaymentStatus::Confirmed, None);
        assert_eq!(word(Some(&ticket), &[unpaid_seller.clone(), second.clone()]), "no ticket");
        let announced = PaidReservation { updated_at: Some(at(NOW)), ..ticket.clone() };
        assert_eq!(word(Some(&announced), &[unpaid_seller, second.clone()]), "agrees");
        let other = PayableRef { kind: PayableKind::Reservation, id: Uuid::from_u128(99) };
        assert_eq!(word(Some(&ticket), &[first, Payment { payable: other, ..second }]), "unpaid");
    }

    #[test]
    fn what_is_on_its_way_explains_itself() {
        let under_way = payment(PaymentStatus::Confirmed, Some(SagaStep::Deliver));
        let ticket = paid(&under_way, "confirmed", LONG_AGO);
        assert_eq!(word(None, std::slice::from_ref(&under_way)), "agrees");
        assert_eq!(
            word(Some(&ticket), &[payment(PaymentStatus::Refunding, Some(SagaStep::Refund))]),
            "agrees"
        );
        assert_eq!(word(None, &[payment(PaymentStatus::Refunded, None)]), "agrees");
        let confirmed = payment(PaymentStatus::Confirmed, None);
        let announced = paid(&confirmed, "cancelled", NOW);
        assert_eq!(word(Some(&announced), std::slice::from_ref(&confirmed)), "agrees");
        let unheard = paid(&confirmed, "cancelled", LONG_AGO);
        assert_eq!(word(Some(&unheard), &[confirmed]), "no ticket");
    }
}
