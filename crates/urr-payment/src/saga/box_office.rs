//! Sales at the box office: the money is there before we hear of it, so nobody is asked.

use urr_bus::HandlerContext;
use urr_contracts::clients::PayableRef;
use urr_contracts::events::reservation::BoxOfficeSold;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Uuid, Won};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, Tx};

use super::refund_steps::{advance_after_refund, record_refund};
use crate::domain::ledger::{Posting, PurchaseAmounts};
use crate::domain::payment::{BOX_OFFICE, CURRENCY, Payment, PaymentId, PaymentStatus, SagaStep};
use crate::store::ledger::{self, EntryOf};
use crate::store::transitions::TransitionTo;
use crate::store::{payments, refunds};
use crate::{SOURCE, events};

/// Records a sale: the payment, its ledger entries and its event. Returns false if it was recorded
/// before.
pub(crate) fn record_sale(
    tx: &mut Tx<'_>,
    sold: &BoxOfficeSold,
    context: &HandlerContext,
) -> DbResult<bool> {
    let payment = sold_payment(sold, context);
    if !payments::payment_insert(tx, &payment)? {
        return Ok(false);
    }
    payments::box_office_fill(tx, &payment)?;
    if payment.charged != Won::ZERO {
        let entry_of = |name| EntryOf {
            id: context.derived_id(name),
            payment_id: payment.id,
            refund_id: None,
            now: context.now,
        };
        let taken = Posting::take(payment.keeping_account(), payment.charged);
        ledger::entry_insert(tx, entry_of("charge"), &taken)?;
        let delivered = Posting::deliver(PurchaseAmounts::new(&payment));
        ledger::entry_insert(tx, entry_of("deliver"), &delivered)?;
    }
    let stamp = stamp(events::confirmed_event_id(&payment), context);
    let confirmed = events::payment_confirmed(&payment, &sold.payment_method, context.now);
    outbox::append(tx, &stamp, &confirmed)?;
    Ok(true)
}

fn stamp(event_id: Uuid, context: &HandlerContext) -> EventMetadata {
    EventMetadata { event_id, source: SOURCE, time: context.now, context: context.call }
}

fn sold_payment(sold: &BoxOfficeSold, context: &HandlerContext) -> Payment {
    let (reservation, now) = (&sold.reservation, context.now);
    let payment = Payment {
        id: PaymentId(sold.payment_id),
        order_id: format!("box-office-{}", sold.payment_id),
        user_id: reservation.user_id,
        payable: PayableRef { kind: PayableKind::Reservation, id: reservation.reservation_id },
        event_id: Some(reservation.event_id),
        reservation_id: None,
        fencing_token: Some(sold.fencing_token),
        order_name: reservation.reservation_number.clone(),
        amount: reservation.total_amount,
        booking_fee: reservation.booking_fee,
        currency: CURRENCY.to_owned(),
        provider: BOX_OFFICE.to_owned(),
        payment_key: None,
        // Of the card terminal. Terminals are many, so it need not be unique.
        provider_key: None,
        method: Some(sold.payment_method.clone()),
        status: PaymentStatus::Confirmed,
        step: None,
        attempts: 0,
        pin_attempt: 1,
        charge_sent_at: None,
        last_charge_at: None,
        failure_code: None,
        wait_code: None,
        cancel_reason: None,
        approved_at: Some(reservation.timestamp),
        receipt_url: None,
        charged: reservation.total_amount,
        refunded: Won::ZERO,
        correlation_id: context.call.correlation_id,
        traceparent: Some(context.call.trace.to_string()),
        cause_event_id: context.call.causation_id,
        confirmed_event_id: None,
        created_at: now,
        updated_at: now,
    };
    Payment { confirmed_event_id: Some(events::confirmed_event_id(&payment)), ..payment }
}

/// The staff have handed over what is due for a payment. Refunds of a payment through a provider are
/// left alone.
pub(crate) fn refund_handed_over(
    tx: &mut Tx<'_>,
    id: PaymentId,
    context: &HandlerContext,
) -> DbResult<()> {
    let Some(payment) = payments::payment_lock(tx, id)?.filter(Payment::is_box_office) else {
        return Ok(());
    };
    let (now, refund_id) = (context.now, context.derived_id("refund"));
    let mut refunds = refunds::refund_list(tx, id)?.into_iter();
    let due = refunds.find(|refund| refund.id.0 == refund_id && refund.status.is_open());
    let Some(refund) = due else { return Ok(()) };
    let stamp = stamp(context.derived_id("refunded"), context);
    let entry_id = context.derived_id("refund entry");
    record_refund(tx, &payment, &refund, (entry_id, &stamp), now)?;
    let (status, step) = (PaymentStatus::Refunding, Some(SagaStep::Refund));
    let to = TransitionTo { status, step, claimed_until: None, attempt_at: now, now };
    advance_after_refund(tx, &payment, to)
}
