//! Sends the mail with the tickets to their owner once more.
//!
//! The mail service decides whether that is too soon. The log is written first: whoever made the mail
//! is known, also if this process dies between the two.

use serde_json::json;
use urr_contracts::clients::ClientError;
use urr_contracts::internal::mail::{ResendTicketMail, ResendTicketMailAnswer};
use urr_kernel::{CallContext, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::StorageError;

use crate::reservations::rules::{ReservationRecord, ReservationRejection};
use crate::{ReservationStatus, TicketService};

/// Why no mail is sent.
#[derive(Debug, thiserror::Error)]
pub enum ResendError {
    #[error(transparent)]
    Rejected(#[from] ReservationRejection),
    #[error("Mail cannot be sent at the moment.")]
    MailUnavailable,
    #[error(transparent)]
    Mail(#[from] ClientError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// The reservation was checked to be in the scope of who asks.
    pub async fn resend_tickets(
        &self,
        record: &ReservationRecord,
        admin_id: Uuid,
        context: &CallContext,
    ) -> Result<Uuid, ResendError> {
        match record.status(self.clock.now()) {
            ReservationStatus::Confirmed => {}
            ReservationStatus::Pending => return Err(ReservationRejection::Unpaid.into()),
            ReservationStatus::Cancelled => return Err(ReservationRejection::Cancelled.into()),
            ReservationStatus::Expired => return Err(ReservationRejection::Expired.into()),
        }
        let peers = self.peers.as_ref().ok_or(ResendError::MailUnavailable)?;
        let reservation = &record.reservation;
        let action = self.admin_action(admin_id, "TICKETS_RESENT", "reservation", reservation.id.0);
        let begun = Some(json!({ "outcome": "begun" }));
        let action = AdminAction { summary: reservation.number.clone(), details: begun, ..action };
        let action_id = action.id;
        let written = self.db.write(move |tx| admin_log::insert(tx, &action)).await;
        written.map_err(|error: StorageError| ResendError::Storage(error))?;
        let call = ResendTicketMail {
            reservation_id: reservation.id.0,
            user_id: reservation.user_id,
            request_id: action_id,
        };
        let sent = peers.mail.call(call, context).await;
        let details = match &sent {
            Ok(ResendTicketMailAnswer { mail_id }) => {
                json!({ "outcome": "done", "mailId": mail_id })
            }
            Err(ClientError::Refused { code, .. }) => json!({ "outcome": "refused", "code": code }),
            Err(ClientError::NoAnswer { .. }) => json!({ "outcome": "unknown" }),
        };
        let noted = self.db.write(move |tx| admin_log::set_details(tx, action_id, &details)).await;
        if let Err(error) = noted {
            let error: StorageError = error;
            // The log says that it was begun.
            tracing::warn!(%error, "the result of sending tickets again was not logged");
        }
        Ok(sent?.mail_id)
    }
}
