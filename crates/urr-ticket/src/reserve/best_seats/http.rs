//! The route for best available seats.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use urr_kernel::Uuid;
use urr_service::idempotency::header_key;
use urr_service::{ApiError, Context, ErrorBody, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::TicketService;
use crate::reserve::best_seats::choose::{NoSeatsFit, SeatPreference};
use crate::reserve::best_seats::{BestSeatsError, BestSeatsRequest};
use crate::reserve::http::{AdmittedEvent, ReservationAnswer};
use crate::reserve::slots::EntrySlot;

const COUNT_MAX: u32 = 10;

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(reserve_best_seats))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReserveBestBody {
    event_id: Uuid,
    /// How many seats beside each other; the event says how many one person may have.
    #[schema(minimum = 1, maximum = 10, example = 2)]
    count: u32,
    /// The grade, the section, or both must be given.
    #[schema(max_length = 50, example = "VIP")]
    grade: Option<String>,
    /// The name of a section.
    #[schema(max_length = 50)]
    section: Option<String>,
    /// Whether one of the seats must be for a wheelchair. Only then such seats are given.
    #[serde(default)]
    accessible: bool,
}

impl ReserveBestBody {
    fn preference(&self) -> Result<SeatPreference, ApiError> {
        if !(1..=COUNT_MAX).contains(&self.count) {
            let sentence = format!("Please ask for 1 to {COUNT_MAX} seats.");
            return Err(ApiError::bad_request("INVALID_COUNT", sentence));
        }
        let (grade, section) = (self.grade.clone(), self.section.clone());
        if grade.is_none() && section.is_none() {
            let sentence = "Please say of which grade or section.";
            return Err(ApiError::bad_request("NOTHING_CHOSEN", sentence));
        }
        Ok(SeatPreference { count: self.count, grade, section, accessible: self.accessible })
    }
}

/// Holds the best seats beside each other.
///
/// Needs an entry token. Chooses seats in one row, nearest to the stage and the middle, leaves no
/// single seat alone if possible, and uses seats with a restricted view last. `grade` and `section`
/// narrow the choice. `accessible` includes one wheelchair seat; otherwise none is chosen.
///
/// Errors: as for holding seats; 400 `INVALID_COUNT`; 404 `GRADE_NOT_FOUND`, `SECTION_NOT_FOUND`;
/// 409 `SOLD_OUT`, `NOT_ADJACENT` (with `available` and `adjacentMax`).
#[utoipa::path(
    post, path = "/api/seats/best", tag = "reservations", request_body = ReserveBestBody,
    params(("idempotency-key" = Option<String>, Header, max_length = 64)),
    responses(
        (status = 201, body = ReservationAnswer),
        Errors<401, 403, 422>,
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`, `GRADE_NOT_FOUND`, \
            `SECTION_NOT_FOUND`."),
        (status = 409, body = ErrorBody, description = "`SOLD_OUT`; `NOT_ADJACENT` (with \
            `available` and `adjacentMax`); or what the reservation of seats says."),
        (status = 503, body = ErrorBody, description = "`BUSY`: too many ask at the moment; \
            `QUEUE_UNAVAILABLE`: the waiting room cannot say whose turn it is."),
    ),
)]
async fn reserve_best_seats(
    State(ticket): State<TicketService>,
    User(user): User,
    entry: AdmittedEvent,
    slot: EntrySlot,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ReserveBestBody>,
) -> Result<(StatusCode, Json<ReservationAnswer>), ApiError> {
    entry.check(body.event_id)?;
    let request = BestSeatsRequest {
        user_id: user.user_id,
        event_id: body.event_id,
        preference: body.preference()?,
        key: header_key(&headers)?,
    };
    slot.check(&ticket, request.event_id, request.user_id, context).await?;
    let hold = ticket.booking_stats.measure(ticket.reserve_best_seats(request, context)).await?;
    Ok((StatusCode::CREATED, Json(ticket.reservation_answer(hold).await?)))
}

impl From<BestSeatsError> for ApiError {
    fn from(error: BestSeatsError) -> ApiError {
        match error {
            BestSeatsError::GradeNotFound => {
                ApiError::not_found("GRADE_NOT_FOUND", "There are no seats of this grade there.")
            }
            BestSeatsError::SectionNotFound => {
                ApiError::not_found("SECTION_NOT_FOUND", "The event has no such section.")
            }
            BestSeatsError::NoneFits(NoSeatsFit::SoldOut) => {
                ApiError::conflict("SOLD_OUT", "Nothing is left there.")
            }
            BestSeatsError::NoneFits(NoSeatsFit::NotAdjacent { available, adjacent_max }) => {
                let sentence = "Not so many seats are left beside each other.";
                ApiError::conflict("NOT_ADJACENT", sentence)
                    .with("available", available)
                    .with("adjacentMax", adjacent_max)
            }
            BestSeatsError::Reserve(error) => error.into(),
        }
    }
}
