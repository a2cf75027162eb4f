//! The routes of tickets as files.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use urr_contracts::internal::auth::AccountLanguage;
use urr_contracts::internal::ticket::{GetTicketDocument, TicketDocumentAnswer};
use urr_eticket::PdfError;
use urr_kernel::{CallContext, Language, Uuid};
use urr_service::{ApiError, Errors, Path, Query, User, document_language};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::etickets::ETicketError;
use crate::{ReservationId, TicketService};

/// Fonts are part of the program: waiting does not bring them.
const NO_FONTS_RETRY: Duration = Duration::from_hours(1);

const NO_FONTS: &str = "This server cannot make documents.";

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(get_ticket_document))
        .routes(routes!(get_ticket_code_svg))
        .routes(routes!(get_ticket_code_png))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct DocumentQuery {
    /// `ko` or `en`. Without it `Accept-Language` decides.
    language: Option<String>,
}

/// Returns the tickets of the user's reservation as a PDF.
///
/// Each valid ticket is a page of A5 with its QR code. Errors: 400 `INVALID_LANGUAGE`; 404
/// `RESERVATION_NOT_FOUND`; 409 `NO_VALID_TICKET`; 503 `DOCUMENTS_UNAVAILABLE` if the program was
/// built without the fonts of its pages.
#[utoipa::path(
    get, path = "/api/reservations/{id}/tickets.pdf", tag = "reservations",
    params(("id" = Uuid, Path), DocumentQuery),
    responses(
        (status = 200, content_type = "application/pdf", body = Vec<u8>),
        Errors<400, 401, 404, 409, 503>,
    ),
)]
async fn get_ticket_document(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
    Query(query): Query<DocumentQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let language = document_language(query.language.as_deref(), &headers)?;
    let document = ticket.my_ticket_document(ReservationId(id), user.user_id, language).await?;
    let file = format!("attachment; filename=\"tickets-{}.pdf\"", document.reservation_number);
    let headers = [
        (header::CONTENT_TYPE, "application/pdf".to_owned()),
        (header::CONTENT_DISPOSITION, file),
        (header::CONTENT_LANGUAGE, language.as_str().to_owned()),
    ];
    Ok((headers, document.pdf).into_response())
}

/// The tickets of a reservation for a mail to its present owner.
pub async fn get_ticket_document_for_mail(
    ticket: TicketService,
    call: GetTicketDocument,
    _: CallContext,
) -> Result<TicketDocumentAnswer, ApiError> {
    let language = match call.language {
        AccountLanguage::Korean | AccountLanguage::Other => Language::Korean,
        AccountLanguage::English => Language::English,
    };
    let found = ticket.my_ticket_document(ReservationId(call.id), call.user_id, language).await;
    let document = found.map_err(|error| match error {
        // Asking again does not help, and says nothing about the health of this service.
        ETicketError::Pdf(PdfError::NoFonts) => {
            ApiError::conflict("DOCUMENTS_UNAVAILABLE", NO_FONTS)
        }
        other => other.into(),
    })?;
    let file_name = format!("tickets-{}.pdf", document.reservation_number);
    Ok(TicketDocumentAnswer { file_name, pdf: STANDARD.encode(document.pdf) })
}

/// Returns the QR code of the user's ticket as an SVG.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`, `TICKET_NOT_FOUND`; 409 `TICKET_NOT_VALID`.
#[utoipa::path(
    get, path = "/api/reservations/{id}/tickets/{number}/qr.svg", tag = "reservations",
    params(("id" = Uuid, Path), ("number" = String, Path)),
    responses(
        (status = 200, content_type = "image/svg+xml", body = String), Errors<401, 404, 409>,
    ),
)]
async fn get_ticket_code_svg(
    State(ticket): State<TicketService>,
    User(user): User,
    Path((id, number)): Path<(Uuid, String)>,
) -> Result<Response, ApiError> {
    let code = ticket.my_ticket_code(ReservationId(id), user.user_id, &number).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], code.svg()).into_response())
}

/// Returns the QR code of the user's ticket as a PNG.
///
/// Errors: 404 `RESERVATION_NOT_FOUND`, `TICKET_NOT_FOUND`; 409 `TICKET_NOT_VALID`.
#[utoipa::path(
    get, path = "/api/reservations/{id}/tickets/{number}/qr.png", tag = "reservations",
    params(("id" = Uuid, Path), ("number" = String, Path)),
    responses((status = 200, content_type = "image/png", body = Vec<u8>), Errors<401, 404, 409>),
)]
async fn get_ticket_code_png(
    State(ticket): State<TicketService>,
    User(user): User,
    Path((id, number)): Path<(Uuid, String)>,
) -> Result<Response, ApiError> {
    let code = ticket.my_ticket_code(ReservationId(id), user.user_id, &number).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], code.png()).into_response())
}

impl From<ETicketError> for ApiError {
    fn from(error: ETicketError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ETicketError::NoValidTicket => ApiError::conflict("NO_VALID_TICKET", sentence),
            ETicketError::TicketNotFound => ApiError::not_found("TICKET_NOT_FOUND", sentence),
            ETicketError::TicketNotValid => ApiError::conflict("TICKET_NOT_VALID", sentence),
            ETicketError::Reservation(error) => error.into(),
            ETicketError::Pdf(PdfError::NoFonts) => {
                ApiError::unavailable("DOCUMENTS_UNAVAILABLE", NO_FONTS, NO_FONTS_RETRY)
            }
            ETicketError::Pdf(error) => ApiError::internal(error),
        }
    }
}
