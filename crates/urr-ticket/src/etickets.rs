//! Tickets as files: a QR code as a picture, and all valid tickets of a reservation as a PDF.

pub mod http;

use urr_eticket::{ETicket, ETicketLabels, PdfError, QrPicture, tickets_to_pdf};
use urr_kernel::{Language, Uuid};

use crate::reservations::store::list::StoredTicket;
use crate::{
    ReservationDetails, ReservationId, ReservationKind, ReservationRejection, SignedTicket, Signer,
    TicketService, TransitionError,
};

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum ETicketError {
    #[error("The reservation has no valid ticket.")]
    NoValidTicket,
    #[error("There is no such ticket.")]
    TicketNotFound,
    #[error("The ticket is not valid any more.")]
    TicketNotValid,
    #[error(transparent)]
    Pdf(#[from] PdfError),
    #[error(transparent)]
    Reservation(#[from] TransitionError),
}

/// The tickets of a reservation, for printing.
#[derive(Clone, Debug)]
pub struct TicketDocument {
    pub reservation_number: String,
    pub pdf: Vec<u8>,
}

impl TicketService {
    /// The valid tickets of one's own reservation as a PDF.
    pub async fn my_ticket_document(
        &self,
        id: ReservationId,
        user_id: Uuid,
        language: Language,
    ) -> Result<TicketDocument, ETicketError> {
        let details = self.my_reservation(id, user_id).await?;
        self.ticket_document(details, language).await
    }

    /// The valid tickets that were given away or sold at the box office, for whoever issued them.
    pub(crate) async fn house_ticket_document(
        &self,
        event_id: Uuid,
        id: ReservationId,
        language: Language,
    ) -> Result<TicketDocument, ETicketError> {
        let details = self.reservation_details(id).await?;
        let record = &details.record;
        if record.reservation.event_id != event_id {
            return Err(TransitionError::from(ReservationRejection::NotFound).into());
        }
        if record.kind == ReservationKind::Online {
            return Err(TransitionError::from(ReservationRejection::NotSoldHere).into());
        }
        self.ticket_document(details, language).await
    }

    async fn ticket_document(
        &self,
        details: ReservationDetails,
        language: Language,
    ) -> Result<TicketDocument, ETicketError> {
        let tickets = etickets(&details, &self.signer, language);
        if tickets.is_empty() {
            return Err(ETicketError::NoValidTicket);
        }
        let labels = labels(&details, language);
        // Fonts are unpacked and divided, which takes some milliseconds.
        let drawing = tokio::task::spawn_blocking(move || tickets_to_pdf(&tickets, &labels));
        let pdf = drawing.await.expect("drawing does not panic")?;
        Ok(TicketDocument { reservation_number: details.record.reservation.number, pdf })
    }

    /// The QR code of one's own ticket.
    pub async fn my_ticket_code(
        &self,
        id: ReservationId,
        user_id: Uuid,
        number: &str,
    ) -> Result<QrPicture, ETicketError> {
        let details = self.my_reservation(id, user_id).await?;
        let ticket = details.tickets.iter().find(|ticket| ticket.number == number);
        let ticket = ticket.ok_or(ETicketError::TicketNotFound)?;
        if !ticket.is_valid {
            return Err(ETicketError::TicketNotValid);
        }
        Ok(QrPicture::encode(&payload(ticket, &self.signer)).map_err(PdfError::from)?)
    }
}

/// The text of a ticket's QR code.
pub fn payload(ticket: &StoredTicket, signer: &Signer) -> String {
    let StoredTicket { id: ticket_id, event_id, seat_id, issue, .. } = *ticket;
    signer.payload(&SignedTicket { ticket_id, event_id, seat_id, issue })
}

fn etickets(details: &ReservationDetails, signer: &Signer, language: Language) -> Vec<ETicket> {
    let record = &details.record;
    let eticket = |ticket: &StoredTicket| ETicket {
        code: payload(ticket, signer),
        event: record.event_title.clone(),
        starts_at: language.date(record.starts_at),
        venue: record.venue_name.clone(),
        place: details.ticket_place(ticket),
        number: ticket.number.clone(),
        reservation_number: record.reservation.number.clone(),
    };
    details.tickets.iter().filter(|ticket| ticket.is_valid).map(eticket).collect()
}

fn labels(details: &ReservationDetails, language: Language) -> ETicketLabels {
    ETicketLabels {
        language: language.as_str(),
        title: format!(
            "{} · {}",
            details.record.event_title, details.record.reservation.number
        ),
        number: language.pick("티켓 번호", "Ticket"),
        reservation: language.pick("예매 번호", "Reservation"),
        notice: language.pick(
            "입장할 때 이 QR 코드를 보여 주세요. 티켓마다 한 번만 입장할 수 있으니 다른 사람에게 보내지 마세요. \
             취소하거나 양도하면 이 코드는 쓸 수 없습니다.",
            "Show this QR code at the entrance. Each ticket admits once, so do not send it to \
             anyone. The code stops working when the ticket is cancelled or transferred.",
        ),
    }
}
