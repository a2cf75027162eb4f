//! The mails about a reservation, for those who look after it.

use std::time::Duration;

use urr_contracts::internal::mail::{
    ListReservationMails, ResendTicketMail, ResendTicketMailAnswer, ReservationMail,
    ReservationMailsAnswer,
};
use urr_kernel::{CallContext, Timestamp};
use urr_service::ApiError;
use urr_storage::{StorageError, Tx};

use crate::MailService;
use crate::domain::mail::{Mail, MailId, MailKind};
use crate::domain::template_data::TemplateData;
use crate::store::{self, NewMail};

/// The tickets of a reservation are not sent more often than this.
const RESEND_INTERVAL: Duration = Duration::from_mins(5);

pub async fn list_reservation_mails(
    service: MailService,
    ListReservationMails { reservation_id }: ListReservationMails,
    _: CallContext,
) -> Result<ReservationMailsAnswer, ApiError> {
    let read = move |tx: &mut Tx<'_>| store::mail_list_of_reservation(tx, reservation_id);
    let mails: Result<Vec<Mail>, StorageError> = service.parts.db.read(read).await;
    let view = |mail: Mail| ReservationMail {
        id: mail.id.0,
        user_id: mail.user_id,
        kind: mail.kind.as_str().to_owned(),
        status: mail.status.as_str().to_owned(),
        created_at: mail.created_at,
        ended_at: mail.ended_at,
    };
    Ok(ReservationMailsAnswer { mails: mails?.into_iter().map(view).collect() })
}

/// What came of a request to send the tickets once more.
enum ResendOutcome {
    Stored(MailId),
    /// The last mail with the tickets is too young.
    TooSoon {
        wait: Duration,
    },
}

/// Stores another mail with the tickets. A repeated request finds the mail there.
pub async fn resend_ticket_mail(
    service: MailService,
    call: ResendTicketMail,
    _: CallContext,
) -> Result<ResendTicketMailAnswer, ApiError> {
    let (id, now) = (MailId(service.parts.ids.next_id()), service.parts.clock.now());
    let write = move |tx: &mut Tx<'_>| resend(tx, id, &call, now);
    let outcome: Result<ResendOutcome, StorageError> = service.parts.db.write(write).await;
    match outcome? {
        ResendOutcome::Stored(MailId(mail_id)) => Ok(ResendTicketMailAnswer { mail_id }),
        ResendOutcome::TooSoon { wait } => {
            let sentence = "The tickets were sent a moment ago. Please wait before sending again.";
            Err(ApiError::conflict("MAIL_SENT_RECENTLY", sentence).retry_after(wait))
        }
    }
}

fn resend(
    tx: &mut Tx<'_>,
    id: MailId,
    call: &ResendTicketMail,
    now: Timestamp,
) -> Result<ResendOutcome, StorageError> {
    let ResendTicketMail { reservation_id, user_id, request_id } = *call;
    // Of two requests at the same moment one waits, and then sees the mail of the other.
    tx.lock_name(&format!("resend {reservation_id}"))?;
    for kind in MailKind::ALL.into_iter().filter(|kind| kind.has_tickets()) {
        if let Some(mail) = store::mail_find_by_subject(tx, kind, request_id)? {
            return Ok(ResendOutcome::Stored(mail.id));
        }
    }
    let mails = store::mail_list_of_reservation(tx, reservation_id)?;
    let is_same = |mail: &&Mail| mail.kind.has_tickets() && mail.user_id == user_id;
    let last = mails.iter().filter(is_same).max_by_key(|mail| mail.created_at);
    if let Some(last) = last.filter(|last| now < last.created_at + RESEND_INTERVAL) {
        let wait = (last.created_at + RESEND_INTERVAL).duration_since(now).unsigned_abs();
        return Ok(ResendOutcome::TooSoon { wait });
    }
    let known = last.map(|last| last.template_data.clone());
    let template_data = TemplateData {
        reservation_id: Some(reservation_id),
        // Seats and times may be different by now: they are asked for again.
        places: Vec::new(),
        starts_at: None,
        quantity: None,
        ..known.unwrap_or_default()
    };
    let kind = last.map_or(MailKind::Purchase, |last| last.kind);
    let subject_id = request_id;
    let mail = NewMail { kind, subject_id, user_id, template_data, useful_until: None };
    store::mail_insert(tx, id, &mail, now)?;
    Ok(ResendOutcome::Stored(id))
}
