//! Draws over HTTP: for everybody, without a login.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorBody, Json, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::domain::draw::hex;
use crate::draw::{self, DrawFileHeader, lines};
use crate::draw::cache::PublicDraw;
use crate::store::draws::StoredDraw;
use crate::{EventStatus, OpeningOrder, QueueService};

/// A draw that is done never changes; until then it may at any moment.
const FOR_A_MOMENT: &str = "public, max-age=1";
const FOR_LONG: &str = "public, max-age=86400";
/// Who reads a file slower than this is not sent the rest: others want theirs.
const DOWNLOAD_WITHIN: Duration = Duration::from_mins(5);
const DOWNLOAD_AGAIN_AFTER: Duration = Duration::from_secs(10);

pub fn routes() -> OpenApiRouter<QueueService> {
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
    get, path = "/api/queue/draw/{eventId}", tag = "queue", security(()),
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, body = DrawView),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`, or `NO_LOTTERY`: \
            people are let in as they came."),
    ),
)]
async fn get_draw(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let found = look(&queue, event_id).await?;
    let view = DrawView::from(draw_of(&found)?);
    let lasts = if view.result.is_some() { FOR_LONG } else { FOR_A_MOMENT };
    Ok(([(CACHE_CONTROL, lasts)], Json(view)).into_response())
}

/// Everybody who took part in a draw that is done, in the order that was drawn.
///
/// Plain text, one line each, as `docs/DRAW.md` specifies it; `urr queue verify-draw` checks it. Who
/// took part is named by a tag that only they can find.
#[utoipa::path(
    get, path = "/api/queue/draw/{eventId}/file", tag = "queue", security(()),
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, content_type = "text/plain", body = String),
        (status = 400, body = ErrorBody),
        (status = 404, body = ErrorBody, description = "`EVENT_NOT_FOUND`, or `NO_LOTTERY`."),
        (status = 409, body = ErrorBody, description = "`NOT_DRAWN_YET`"),
        (status = 503, body = ErrorBody, description = "`TOO_MANY_DOWNLOADS`: too many read \
            such files at the moment. With `Retry-After`."),
    ),
)]
async fn get_draw_file(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let found = look(&queue, event_id).await?;
    let header = DrawFileHeader::of(draw_of(&found)?).ok_or_else(not_drawn_yet)?;
    let download = queue.begin_download().ok_or_else(too_many_downloads)?;
    let first = stream::iter([Ok(Bytes::from(header.to_string()))]);
    let body = Body::from_stream(first.chain(parts(queue, event_id, download)));
    let name = format!("attachment; filename=\"draw-{event_id}.txt\"");
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CONTENT_DISPOSITION, &name),
        (CACHE_CONTROL, FOR_LONG),
    ];
    Ok((headers, body).into_response())
}

/// An answer broke off: the count in its header shows that something is missing.
#[derive(Debug, thiserror::Error)]
#[error("the file was not sent to its end")]
struct BrokenOff;

/// The entrants, read as they are sent: a million of them are never in memory at once. Who stops
/// reading does not keep others from it for longer than a while.
fn parts(
    queue: QueueService,
    event_id: Uuid,
    download: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, BrokenOff>> {
    // Nothing is the end. Without it the channel's own end is a failure.
    let (sender, receiver) = mpsc::channel::<Option<Bytes>>(1);
    tokio::spawn(async move {
        let _download = download;
        let sent = tokio::time::timeout(DOWNLOAD_WITHIN, send_parts(&queue, event_id, &sender));
        if sent.await.is_err() {
            tracing::debug!(%event_id, "someone reads the file of a draw too slowly");
        }
    });
    stream::unfold(Some(receiver), async |receiver| {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(part)) => Some((Ok(part), Some(receiver))),
            Some(None) => None,
            None => Some((Err(BrokenOff), None)),
        }
    })
}

async fn send_parts(queue: &QueueService, event_id: Uuid, sender: &mpsc::Sender<Option<Bytes>>) {
    for part in 0.. {
        let entrants = match draw::find_part(queue, event_id, part).await {
            Ok(entrants) => entrants,
            Err(error) => {
                tracing::warn!(%event_id, %error, "the file of a draw could not be read");
                return;
            }
        };
        let is_last = entrants.is_none();
        let text = entrants.map(|entrants| Bytes::from(lines(&entrants)));
        if sender.send(text).await.is_err() || is_last {
            return;
        }
    }
}

/// An event that was not taken out of sight.
async fn look(queue: &QueueService, event_id: Uuid) -> Result<Arc<PublicDraw>, ApiError> {
    let found = queue.public_draw(event_id).await?;
    let found = found.filter(|found| found.event.status != EventStatus::Deleted);
    found.ok_or_else(|| {
        ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id on sale.")
    })
}

/// The draw of an event that is a lottery.
fn draw_of(found: &PublicDraw) -> Result<&StoredDraw, ApiError> {
    let draw = match found.event.room_settings.opening {
        OpeningOrder::Lottery => found.draw.as_ref(),
        OpeningOrder::Fifo => None,
    };
    draw.ok_or_else(|| {
        let sentence = "There is no draw for this event: people are let in as they came.";
        ApiError::not_found("NO_LOTTERY", sentence)
    })
}

fn too_many_downloads() -> ApiError {
    let sentence = "Too many read the files of draws at the moment. Please come back soon.";
    ApiError::unavailable("TOO_MANY_DOWNLOADS", sentence, DOWNLOAD_AGAIN_AFTER)
}

fn not_drawn_yet() -> ApiError {
    ApiError::conflict("NOT_DRAWN_YET", "The draw is not done yet. Please come back after it.")
}

impl From<&StoredDraw> for DrawView {
    fn from(draw: &StoredDraw) -> DrawView {
        let header = DrawFileHeader::of(draw);
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
