//! Reconciliation with the ticket service: every ticket is paid, and every payment has its ticket.
//!
//! The two services are never read at the same moment. What looks wrong is checked once more, and
//! only what has not changed meanwhile is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use urr_contracts::clients::{ClientError, PayableRef};
use urr_contracts::internal::ticket::{
    GetPayable, ListPaidReservations, PaidReservationPage, PayableKind, PayableStatus, PayableView,
};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::{DbResult, StorageError};

use crate::PaymentService;
use crate::domain::payment::{Payment, PaymentId, PaymentStatus};
use crate::jobs::STUCK_AFTER;
use crate::store::payments;

/// How many payments are compared at a time.
const PAYMENTS_PER_PAGE: usize = 1_000;

/// What one stretch of reservations came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketComparison {
    pub reservations: usize,
    pub payments: usize,
    /// Empty if all is well.
    pub differences: Vec<TicketDifference>,
    /// The last reservation of the page; none if it was the last page.
    pub next: Option<Uuid>,
}

/// Where the ticket service and we differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketDifference {
    /// A reservation is paid by a payment that does not exist or has charged nothing.
    Unpaid { reservation_id: Uuid, payment_id: Option<Uuid>, amount: Won },
    /// We have the money, and the buyer has no ticket for it.
    NoTicket { reservation_id: Uuid, payment_id: Uuid, amount: Won },
    /// The ticket is paid with another amount than it costs.
    Amounts { reservation_id: Uuid, payment_id: Uuid, costs: Won, paid: Won },
}

#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Tickets(#[from] ClientError),
}

/// Decides whether a reservation and its payments agree. `reservation` is one that was ever paid; one
/// that was transferred is paid by the payment of that transfer. A payment with a step left is under
/// way, and so is what the ticket service has just announced.
fn compare(
    id: Uuid,
    reservation: Option<&PayableView>,
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
    let is_confirmed = reservation.status == PayableStatus::Confirmed;
    let payment = payments.iter().find(|payment| Some(payment.id.0) == paid_by);
    let payment = payment.filter(|payment| {
        payment.payable.id == id || payment.payable.kind == PayableKind::Transfer
    });
    let unpaid = TicketDifference::Unpaid {
        reservation_id: id,
        payment_id: paid_by,
        amount: reservation.total_amount,
    };
    // The payment of a sale at the box office follows the sale.
    let Some(payment) = payment else {
        return (!reservation.is_box_office || !is_announced).then_some(unpaid);
    };
    // Tickets that were cancelled one by one are paid by the same payment.
    let costs = Won::new(reservation.total_amount.amount() + reservation.cancelled_amount.amount());
    let is_other_price = payment.payable.id == id && payment.amount != costs;
    match payment.status {
        _ if !payment.is_settled() => None,
        PaymentStatus::Confirmed if is_confirmed && is_other_price => {
            Some(TicketDifference::Amounts {
                reservation_id: id,
                payment_id: payment.id.0,
                costs,
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
    /// Compares a page of reservations with their payments, in both directions.
    pub async fn reconcile_tickets(
        &self,
        after: Option<Uuid>,
        context: &CallContext,
    ) -> Result<TicketComparison, CompareError> {
        let page = self.0.tickets.call(ListPaidReservations { after }, context).await?;
        let PaidReservationPage { mut reservations, more } = page;
        let end = reservations.last().filter(|_| more).map(|reservation| reservation.id);
        let (from, until) = (after.unwrap_or(Uuid::nil()), end.unwrap_or(Uuid::max()));
        let (payments, cut) = self.payments_within(from, until).await?;
        if let Some(cut) = cut {
            reservations.retain(|reservation| reservation.id <= cut);
        }
        let mut found = TicketComparison {
            reservations: reservations.len(),
            payments: payments.values().map(Vec::len).sum(),
            differences: Vec::new(),
            next: cut.or(end),
        };
        let reservations: BTreeMap<Uuid, PayableView> =
            reservations.into_iter().map(|reservation| (reservation.id, reservation)).collect();
        let now = self.0.clock.now();
        let ids: BTreeSet<Uuid> = reservations.keys().chain(payments.keys()).copied().collect();
        for id in ids {
            let ours = payments.get(&id).map_or(&[][..], Vec::as_slice);
            if compare(id, reservations.get(&id), ours, now).is_some() {
                found.differences.extend(self.recheck_reservation(id, context).await?);
            }
        }
        Ok(found)
    }

    /// The payments of a range by reservation. If there are too many for one page, also the last
    /// reservation that they reach.
    async fn payments_within(
        &self,
        after: Uuid,
        until: Uuid,
    ) -> DbResult<(BTreeMap<Uuid, Vec<Payment>>, Option<Uuid>)> {
        let limit = u32::try_from(PAYMENTS_PER_PAGE).expect("a page is small");
        let list = self
            .read(move |tx| payments::payment_list_by_reservation(tx, after, until, limit))
            .await?;
        let is_cut = list.len() == PAYMENTS_PER_PAGE;
        let mut payments: BTreeMap<Uuid, Vec<Payment>> = BTreeMap::new();
        for payment in list {
            payments.entry(payment.payable.id).or_default().push(payment);
        }
        // The last reservation may have more payments than fit.
        if is_cut && payments.len() > 1 {
            payments.pop_last();
        }
        let reach = payments.keys().next_back().copied();
        Ok((payments, reach.filter(|_| is_cut)))
    }

    /// None if it has changed meanwhile, or was seen half way.
    async fn recheck_reservation(
        &self,
        id: Uuid,
        context: &CallContext,
    ) -> Result<Option<TicketDifference>, CompareError> {
        let payable = PayableRef { kind: PayableKind::Reservation, id };
        let find = async || {
            let found = self.0.tickets.find(GetPayable { payable }, context).await?;
            Ok::<_, ClientError>(found.map(|answer| answer.payable))
        };
        let paid_by = find().await?.and_then(|reservation| reservation.payment_id);
        let before = self.payments_for_reservation(id, paid_by).await?;
        let reservation = find().await?.filter(|reservation| reservation.payment_id.is_some());
        let after = self.payments_for_reservation(id, paid_by).await?;
        let is_still = reservation.as_ref().and_then(|now| now.payment_id) == paid_by;
        match is_still && before == after {
            true => Ok(compare(id, reservation.as_ref(), &after, self.0.clock.now())),
            false => Ok(None),
        }
    }

    /// The payments for a reservation, and the one that pays for it, which may be a transfer's.
    async fn payments_for_reservation(
        &self,
        id: Uuid,
        paid_by: Option<Uuid>,
    ) -> DbResult<Vec<Payment>> {
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
                    "reservation {reservation_id}: {amount} are paid by payment \
                     {payment}, which has not charged them"
                )
            }
            TicketDifference::NoTicket { reservation_id, payment_id, amount } => write!(
                f,
                "payment {payment_id}: {amount} are charged for reservation {reservation_id}, which \
                 it does not pay"
            ),
            TicketDifference::Amounts { reservation_id, payment_id, costs, paid } => write!(
                f,
                "payment {payment_id}: {paid} are charged for reservation {reservation_id}, which \
                 costs {costs}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::internal::ticket::PayablePaymentStatus;

    use super::*;
    use crate::domain::payment::SagaStep;
    use crate::domain::payment::tests::payment;

    const NOW: &str = "2026-12-01T12:00:00Z";
    const LONG_AGO: &str = "2026-12-01T11:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn paid(by: &Payment, status: &str, updated_at: &str) -> PayableView {
        PayableView {
            kind: by.payable.kind,
            id: by.payable.id,
            order_name: None,
            user_id: Some(by.user_id),
            event_id: None,
            artist_id: None,
            reservation_number: Some("R12345".to_owned()),
            reservation_id: None,
            seller_id: None,
            status: status.parse().unwrap(),
            payment_status: PayablePaymentStatus::Paid,
            total_amount: by.amount,
            booking_fee: Won::ZERO,
            transfer_fee: Won::ZERO,
            quantity: Some(1),
            expires_at: None,
            fencing_token: 1,
            pinned_by: None,
            payment_id: Some(by.id.0),
            is_box_office: false,
            refund_amount: None,
            cancellation_fee: None,
            cancelled_amount: Won::ZERO,
            updated_at: Some(at(updated_at)),
            correlation_id: None,
            last_event_id: None,
        }
    }

    fn word(reservation: Option<&PayableView>, payments: &[Payment]) -> &'static str {
        let id = reservation.map_or_else(|| payments[0].payable.id, |reservation| reservation.id);
        match compare(id, reservation, payments, at(NOW)) {
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
        let of_another = PayableView { payment_id: Some(Uuid::max()), ..ticket.clone() };
        assert_eq!(word(Some(&of_another), std::slice::from_ref(&confirmed)), "no ticket");
        let cheap = PayableView { total_amount: Won::new(1), ..ticket.clone() };
        assert_eq!(word(Some(&cheap), std::slice::from_ref(&confirmed)), "amounts");
        let cancelled_amount = Won::new(confirmed.amount.amount() - 1);
        let in_part = PayableView { cancelled_amount, ..cheap };
        assert_eq!(word(Some(&in_part), &[confirmed]), "agrees");
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
        let ticket = PayableView { payment_id: Some(second.id.0), ..ticket };
        assert_eq!(word(Some(&ticket), &[first.clone(), second.clone()]), "agrees");
        // The seller was not refunded.
        let unpaid_seller = payment(PaymentStatus::Confirmed, None);
        assert_eq!(word(Some(&ticket), &[unpaid_seller.clone(), second.clone()]), "no ticket");
        let announced = PayableView { updated_at: Some(at(NOW)), ..ticket.clone() };
        assert_eq!(word(Some(&announced), &[unpaid_seller, second.clone()]), "agrees");
        let other = PayableRef { kind: PayableKind::Reservation, id: Uuid::from_u128(99) };
        assert_eq!(word(Some(&ticket), &[first, Payment { payable: other, ..second }]), "unpaid");
    }

    #[test]
    fn the_payment_of_a_sale_at_the_box_office_follows_within_minutes() {
        let sold = payment(PaymentStatus::Confirmed, None);
        let just_now = PayableView { is_box_office: true, ..paid(&sold, "confirmed", NOW) };
        assert_eq!(word(Some(&just_now), &[]), "agrees");
        let online = PayableView { is_box_office: false, ..just_now.clone() };
        assert_eq!(word(Some(&online), &[]), "unpaid", "control");
        let long_ago = PayableView { updated_at: Some(at(LONG_AGO)), ..just_now };
        assert_eq!(word(Some(&long_ago), &[]), "unpaid");
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
