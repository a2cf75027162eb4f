//! Draws over HTTP: for everybody, without a login.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorBody, Json, Path};
use urr_storage::StorageError;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::draw::hex;
use crate::draw::{self, Header, lines};
use crate::store::draws::Draw;
use crate::{EventStatus, Opening, Queue};

/// A draw that is done never changes; until then it may at any moment.
const FOR_A_MOMENT: &str = "public, max-age=1";
const FOR_LONG: &str = "public, max-age=86400";

pub fn routes() -> OpenApiRouter<Queue> {
    OpenApiRouter::new().routes(routes!(get_draw)).routes(routes!(get_draw_file))
}

/// A draw. What belongs to its result is missing until it is done.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DrawView {
    event_id: Uuid,
    /// `committed`: the secret is made and its hash published. `drawing`: the sale has begun.
    /// `done`: everybody has their place.
    #[schema(example = "committed")]
    state: &'static str,
    /// SHA-256 of the secret: 64 hexadecimal digits, like all that follow.
    commitment: String,
    #[schema(value_type = String, format = DateTime)]
    committed_at: Timestamp,
    /// Who came later did not take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    closed_at: Option<Timestamp>,
    #[serde(flatten)]
    result: Option<ResultView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResultView {
    secret: String,
    /// Of those who took part.
    digest: String,
    /// Of the order in which they came.
    arrivals: String,
    seed: String,
    /// How many took part.
    count: u32,
    #[schema(value_type = String, format = DateTime)]
    done_at: Timestamp,
}

/// The draw of a lottery: its commitment, and when it is done everything that it followed from.
///
/// Note the commitment before the sale: it shows that the secret was not chosen later.
#[utoipa::path(
    get, path = "/api/queue/draw/{eventId}", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = DrawView),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`, or `NO_LOTTERY`: \
            people are let in as they came."),
    ),
)]
async fn get_draw(
    State(queue): State<Queue>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let draw = look(&queue, event_id).await?;
    let view = DrawView::from(&draw);
    let lasts = if view.result.is_some() { FOR_LONG } else { FOR_A_MOMENT };
    Ok(([(CACHE_CONTROL, lasts)], Json(view)).into_response())
}

/// Everybody who took part in a draw that is done, in the order that was drawn.
///
/// Plain text, one line each, as `docs/DRAW.md` specifies it; `urr queue verify-draw` checks it. Who
/// took part is named by a tag that only they can find.
#[utoipa::path(
    get, path = "/api/queue/draw/{eventId}/file", tag = "queue",
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, content_type = "text/plain", body = String),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`, or `NO_LOTTERY`."),
        (status = 409, body = ErrorBody, description = "`NOT_DRAWN_YET`"),
    ),
)]
async fn get_draw_file(
    State(queue): State<Queue>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let header = Header::of(&look(&queue, event_id).await?).ok_or_else(not_drawn_yet)?;
    let first = stream::iter([Ok(Bytes::from(header.to_string()))]);
    let body = Body::from_stream(first.chain(parts(queue, event_id)));
    let name = format!("attachment; filename=\"draw-{event_id}.txt\"");
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CONTENT_DISPOSITION, &name),
        (CACHE_CONTROL, FOR_LONG),
    ];
    Ok((headers, body).into_response())
}

/// The entrants, read as they are sent: a million of them are never in memory at once. If the
/// storage fails on the way the answer breaks off, and the count in its header shows it.
fn parts(queue: Queue, event_id: Uuid) -> impl Stream<Item = Result<Bytes, StorageError>> {
    stream::try_unfold((queue, 0), move |(queue, part)| async move {
        let entrants = draw::find_part(&queue, event_id, part).await?;
        Ok(entrants.map(|entrants| (Bytes::from(lines(&entrants)), (queue, part + 1))))
    })
}

/// The draw of an event that is a lottery.
async fn look(queue: &Queue, event_id: Uuid) -> Result<Draw, ApiError> {
    let room = queue.0.directory.get(event_id).filter(|room| room.status != EventStatus::Deleted);
    let room = room.ok_or_else(|| {
        ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id on sale.")
    })?;
    let draw = match room.wishes.opening {
        Opening::Lottery => draw::find(queue, event_id).await?,
        Opening::Fifo => None,
    };
    draw.ok_or_else(|| {
        let sentence = "There is no draw for this event: people are let in as they came.";
        ApiError::not_found("NO_LOTTERY", sentence)
    })
}

fn not_drawn_yet() -> ApiError {
    ApiError::conflict("NOT_DRAWN_YET", "The draw is not done yet. Please come back after it.")
}

impl From<&Draw> for DrawView {
    fn from(draw: &Draw) -> DrawView {
        let header = Header::of(draw);
        let result = header.zip(draw.done_at).map(|(header, done_at)| ResultView {
            secret: hex(header.secret.expose()),
            digest: hex(&header.digest),
            arrivals: hex(&header.arrivals),
            seed: hex(&header.seed),
            count: header.count,
            done_at,
        });
        DrawView {
            event_id: draw.event_id,
            state: match (&draw.closing, &result) {
                (_, Some(_)) => "done",
                (Some(_), None) => "drawing",
                (None, None) => "committed",
            },
            commitment: hex(&draw.commitment),
            committed_at: draw.committed_at,
            closed_at: draw.closing.map(|closing| closing.closed_at),
            result,
        }
    }
}
