//! Which domain events become mails.

use std::time::Duration;

use urr_bus::{HandleError, HandlerContext, HandlerOutcome, decode_event};
use urr_contracts::events::alert::{self, SaleAlertDue, SeatAlertDue};
use urr_contracts::events::payment::{self, ChargeReversed, PaymentRefunded, RefundCause};
use urr_contracts::events::queue::{self, AdmissionNear};
use urr_contracts::events::reservation::{
    self, ComplimentaryIssued, ReservationCancelled, ReservationConfirmed,
    ReservationPartlyCancelled, ReservationRescheduled, ReservationSnapshot,
};
use urr_contracts::events::transfer::{self, TransferCompleted};
use urr_contracts::events::user::{self, AccountLinkIssued};
use urr_contracts::internal::auth::AccountLinkKind;
use urr_kernel::{DomainEvent, EventData, Uuid, Won};
use urr_storage::{Tx, storable_time};

use crate::domain::mail::{MailId, MailKind};
use crate::domain::template_data::TemplateData;
use crate::store::{self, NewMail};

/// The consumer group of the mail service.
pub const GROUP: &str = "mail-service-group";

/// The topics that it consumes.
pub const TOPICS: &[&str] =
    &[alert::TOPIC, payment::TOPIC, queue::TOPIC, reservation::TOPIC, transfer::TOPIC, user::TOPIC];

/// The types that [`handle`] handles. It ignores others.
pub const TYPES: &[&str] = &[
    ReservationConfirmed::TYPE,
    ComplimentaryIssued::TYPE,
    ReservationCancelled::TYPE,
    ReservationPartlyCancelled::TYPE,
    ReservationRescheduled::TYPE,
    PaymentRefunded::TYPE,
    ChargeReversed::TYPE,
    TransferCompleted::TYPE,
    AdmissionNear::TYPE,
    SaleAlertDue::TYPE,
    SeatAlertDue::TYPE,
    AccountLinkIssued::TYPE,
];

/// By then a waiting user has been admitted or has given up.
const ADMISSION_NEAR_TTL: Duration = Duration::from_mins(30);

/// A sale that has been open for longer is no news.
const SALE_ALERT_TTL: Duration = Duration::from_mins(30);

/// A link is void by then.
const LINK_TTL: Duration = Duration::from_mins(30);

/// A user who gives back an unpaid hold gets no mail about it.
const OWNER_REASONS: &[&str] = &["CANCELLED_BY_OWNER", "RELEASED_BY_OWNER"];

/// Stores the mail that an event calls for. A repeated event finds the mail there.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &DomainEvent,
    context: &HandlerContext,
) -> Result<HandlerOutcome, HandleError> {
    let mail = match event.event_type.as_str() {
        ReservationConfirmed::TYPE => Some(purchase(decode_event(event)?)),
        ComplimentaryIssued::TYPE => Some(complimentary(&decode_event(event)?)),
        ReservationCancelled::TYPE => cancellation(decode_event(event)?),
        ReservationPartlyCancelled::TYPE => Some(part_cancellation(decode_event(event)?)),
        ReservationRescheduled::TYPE => Some(event_moved(decode_event(event)?, event.id)),
        PaymentRefunded::TYPE => refund(decode_event(event)?),
        ChargeReversed::TYPE => Some(reversed_charge(decode_event(event)?)),
        TransferCompleted::TYPE => Some(transfer_purchase(&decode_event(event)?)),
        AdmissionNear::TYPE => Some(admission_near(decode_event(event)?, event)),
        SaleAlertDue::TYPE => Some(sale_alert(decode_event(event)?, event.id)),
        SeatAlertDue::TYPE => Some(seat_alert(decode_event(event)?)),
        AccountLinkIssued::TYPE => account_link(&decode_event(event)?, event),
        _ => None,
    };
    let Some(mail) = mail else { return Ok(HandlerOutcome::Ignored) };
    store::mail_insert(tx, MailId(context.derived_id("mail")), &mail, context.now)?;
    Ok(HandlerOutcome::Done)
}

impl NewMail {
    fn about(kind: MailKind, reservation: &ReservationSnapshot, data: TemplateData) -> NewMail {
        NewMail {
            kind,
            subject_id: reservation.reservation_id,
            user_id: reservation.user_id,
            template_data: TemplateData {
                event_id: Some(reservation.event_id),
                reservation_id: Some(reservation.reservation_id),
                reservation_number: Some(reservation.reservation_number.clone()),
                quantity: Some(reservation.quantity),
                ..data
            },
            useful_until: None,
        }
    }
}

fn purchase(confirmed: ReservationConfirmed) -> NewMail {
    let data = TemplateData {
        amount: Some(confirmed.reservation.total_amount),
        method: confirmed.payment_method,
        ..TemplateData::default()
    };
    NewMail::about(MailKind::Purchase, &confirmed.reservation, data)
}

/// Whoever the tickets are for may have no account: the address is asked for when the mail is sent.
fn complimentary(issued: &ComplimentaryIssued) -> NewMail {
    NewMail::about(MailKind::Complimentary, &issued.reservation, TemplateData::default())
}

/// The buyer gets the mail of a purchase. The seller gets one about the refund.
fn transfer_purchase(completed: &TransferCompleted) -> NewMail {
    NewMail {
        kind: MailKind::Purchase,
        subject_id: completed.transfer_id,
        user_id: completed.buyer_id,
        template_data: TemplateData {
            event_id: Some(completed.event_id),
            reservation_id: Some(completed.reservation_id),
            amount: Some(completed.total_price),
            ..TemplateData::default()
        },
        useful_until: None,
    }
}

/// None if the user gave back their own unpaid hold.
fn cancellation(cancelled: ReservationCancelled) -> Option<NewMail> {
    let was_paid = cancelled.payment_id.is_some();
    let is_own = OWNER_REASONS.contains(&cancelled.reason.as_str());
    if !was_paid && is_own {
        return None;
    }
    // The mail about a hold that was never paid names no amounts.
    let if_paid = |amount: Won| was_paid.then_some(amount);
    let data = TemplateData {
        amount: if_paid(cancelled.reservation.total_amount),
        refund: if_paid(cancelled.refund_amount),
        fee: if_paid(cancelled.cancellation_fee),
        reason: Some(cancelled.reason),
        ..TemplateData::default()
    };
    Some(NewMail::about(MailKind::Cancellation, &cancelled.reservation, data))
}

/// Tickets of a reservation may be cancelled several times, so the mail is about one cancellation.
/// It names no seats: those of the reservation are the ones that stay.
fn part_cancellation(cancelled: ReservationPartlyCancelled) -> NewMail {
    let data = TemplateData {
        amount: Some(cancelled.cancelled_amount),
        refund: Some(cancelled.refund_amount),
        fee: Some(cancelled.cancellation_fee),
        reason: Some(cancelled.reason),
        ..TemplateData::default()
    };
    let mut mail = NewMail::about(MailKind::PartCancellation, &cancelled.reservation, data);
    mail.template_data.quantity = Some(cancelled.cancelled_quantity);
    NewMail { subject_id: cancelled.cancellation_id, ..mail }
}

/// An event may be moved several times, so the mail is about the message.
fn event_moved(moved: ReservationRescheduled, message_id: Uuid) -> NewMail {
    let data = TemplateData {
        starts_at: Some(storable_time(moved.starts_at)),
        previous_starts_at: Some(storable_time(moved.previous_starts_at)),
        is_free_to_cancel: Some(moved.is_free_to_cancel),
        ..TemplateData::default()
    };
    let mail = NewMail::about(MailKind::EventMoved, &moved.reservation, data);
    NewMail { subject_id: message_id, ..mail }
}

/// None if nothing is refunded: the mail about the cancellation says so.
fn refund(refunded: PaymentRefunded) -> Option<NewMail> {
    if refunded.amount <= Won::ZERO {
        return None;
    }
    let payment = refunded.payment;
    let reason = match refunded.cause {
        RefundCause::Goodwill | RefundCause::Other => refunded.reason,
        cause => cause.as_str().to_owned(),
    };
    let template_data = TemplateData {
        event_id: payment.event_id,
        reservation_id: payment.reservation_id,
        refund: Some(refunded.amount),
        fee: Some(refunded.fee).filter(|fee| *fee > Won::ZERO),
        method: payment.payment_method,
        reason: Some(reason),
        ..TemplateData::default()
    };
    Some(NewMail {
        kind: MailKind::Refund,
        subject_id: refunded.refund_id,
        user_id: payment.user_id,
        template_data,
        useful_until: None,
    })
}

/// The buyer was charged for nothing, and has the money back.
fn reversed_charge(reversed: ChargeReversed) -> NewMail {
    let payment = reversed.payment;
    let template_data = TemplateData {
        event_id: payment.event_id,
        reservation_id: payment.reservation_id,
        refund: Some(reversed.amount),
        method: payment.payment_method,
        reason: Some(reversed.cause.as_str().to_owned()),
        ..TemplateData::default()
    };
    NewMail {
        kind: MailKind::Refund,
        subject_id: reversed.refund_id,
        user_id: payment.user_id,
        template_data,
        useful_until: None,
    }
}

/// A user may ask for several reminders of one event, so the mail is about the message.
fn admission_near(near: AdmissionNear, event: &DomainEvent) -> NewMail {
    let useful_until = event.time + ADMISSION_NEAR_TTL;
    let useful_until = near.sale_ends_at.map_or(useful_until, |end| end.min(useful_until));
    NewMail {
        kind: MailKind::AdmissionNear,
        subject_id: event.id,
        user_id: near.user_id,
        template_data: TemplateData {
            event_id: Some(near.event_id),
            event_title: near.event_title,
            position: near.position,
            wait_seconds: near.estimated_wait_seconds.filter(|_| near.position != Some(0)),
            ..TemplateData::default()
        },
        useful_until: Some(storable_time(useful_until)),
    }
}

/// A fan is told again if the opening moves, so the mail is about the message.
fn sale_alert(due: SaleAlertDue, message_id: Uuid) -> NewMail {
    NewMail {
        kind: MailKind::SaleAlert,
        subject_id: message_id,
        user_id: due.user_id,
        useful_until: Some(storable_time(due.opens_at + SALE_ALERT_TTL)),
        template_data: TemplateData {
            event_id: Some(due.event_id),
            event_title: Some(due.event_title),
            venue_name: Some(due.venue_name),
            starts_at: Some(storable_time(due.event_starts_at)),
            opens_at: Some(storable_time(due.opens_at)),
            is_presale: Some(due.is_presale),
            ..TemplateData::default()
        },
    }
}

/// An alert is told once.
fn seat_alert(due: SeatAlertDue) -> NewMail {
    NewMail {
        kind: MailKind::SeatAlert,
        subject_id: due.alert_id,
        user_id: due.user_id,
        useful_until: Some(storable_time(due.useful_until)),
        template_data: TemplateData {
            event_id: Some(due.event_id),
            event_title: Some(due.event_title),
            venue_name: Some(due.venue_name),
            starts_at: Some(storable_time(due.event_starts_at)),
            grade: due.grade,
            quantity: Some(due.quantity),
            head_start_until: due.head_start_until.map(storable_time),
            ..TemplateData::default()
        },
    }
}

/// The link itself is asked for when the mail is sent.
fn account_link(issued: &AccountLinkIssued, event: &DomainEvent) -> Option<NewMail> {
    let kind = match issued.kind {
        AccountLinkKind::VerifyEmail => MailKind::EmailVerification,
        AccountLinkKind::ResetPassword => MailKind::PasswordReset,
        AccountLinkKind::Other => return None,
    };
    Some(NewMail {
        kind,
        subject_id: issued.link_id,
        user_id: issued.user_id,
        template_data: TemplateData::default(),
        useful_until: Some(storable_time(event.time + LINK_TTL)),
    })
}
