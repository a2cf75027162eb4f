//! Draws over HTTP: public, without a login.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use tokio::sync::mpsc;
use urr_kernel::{Timestamp, Uuid, hex};
use urr_service::{ApiError, Errors, Json, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{event_not_found, room_not_ready};
use crate::domain::beacon::round_for;
use crate::draw::cache::PublicDraw;
use crate::draw::downloads::DownloadPlace;
use crate::draw::{self, DrawFileHeader, DrawSeal, lines};
use crate::status::is_new_id;
use crate::store::draws::StoredDraw;
use crate::{OpeningOrder, QueueService, RoomEventStatus};

/// A draw never changes once it is done.
const FOR_A_MOMENT: &str = "public, max-age=1";
const FOR_LONG: &str = "public, max-age=86400";
/// A slower download is ended, so that others get their turn.
const DOWNLOAD_WITHIN: Duration = Duration::from_mins(5);
const DOWNLOAD_AGAIN_AFTER: Duration = Duration::from_secs(10);

pub fn routes() -> OpenApiRouter<QueueService> {
    OpenApiRouter::new().routes(routes!(get_draw)).routes(routes!(get_draw_file))
}

/// A draw. The fields of its result are null until it is done.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DrawView {
    event_id: Uuid,
    /// `committed`: the secret is made and its hash published. `drawing`: the sale has begun.
    /// `done`: all entrants have their positions.
    #[schema(example = "committed")]
    state: &'static str,
    /// SHA-256 of the secret: 64 hexadecimal digits, as in the fields below.
    commitment: String,
    committed_at: Timestamp,
    /// Users who joined later did not take part.
    closed_at: Option<Timestamp>,
    /// Of the entrants. It is told before the beacon's round, so that nobody can be added for a value.
    digest: Option<String>,
    /// Of the order in which the entrants joined.
    arrivals: Option<String>,
    /// The number of entrants.
    count: Option<u32>,
    /// When the list of entrants was fixed.
    fixed_at: Option<Timestamp>,
    /// The round of drand's quicknet that belongs to `fixedAt`.
    beacon_round: Option<i64>,
    /// The value that decided: `drand <chain> <round> <signature>`, or `offline <value>` where the
    /// beacon was switched off or could not be reached.
    beacon: Option<String>,
    secret: Option<String>,
    seed: Option<String>,
    done_at: Option<Timestamp>,
}

/// Returns the draw of an event that opens by lottery.
///
/// Public. The `commitment` is published before the sale and proves that `secret` was not chosen
/// later. `digest` and `beaconRound` follow when the list is fixed, seconds before the round appears;
/// `secret` and `seed` when the draw is done. Errors: 404 `EVENT_NOT_FOUND`, `NO_LOTTERY`; 409
/// `ROOM_NOT_READY`.
#[utoipa::path(
    get, path = "/api/queue/draw/{eventId}", tag = "queue", security(()),
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = DrawView), Errors<404, 409>),
)]
async fn get_draw(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let public = find_draw(&queue, event_id).await?;
    let view = DrawView::new(draw_of(&public)?, &queue.0.draw_seal);
    let lasts = if view.seed.is_some() { FOR_LONG } else { FOR_A_MOMENT };
    Ok(([(CACHE_CONTROL, lasts)], Json(view)).into_response())
}

/// Returns the participants of a draw in the drawn order.
///
/// Public, as plain text, one participant per line, named by a tag that only they can compute;
/// `docs/DRAW.md` specifies it. Errors: 404 `EVENT_NOT_FOUND`, `NO_LOTTERY`; 409 `NOT_DRAWN_YET`,
/// `ROOM_NOT_READY`; 503 `TOO_MANY_DOWNLOADS`.
#[utoipa::path(
    get, path = "/api/queue/draw/{eventId}/file", tag = "queue", security(()),
    params(("eventId" = Uuid, Path)),
    responses(
        (status = 200, content_type = "text/plain", body = String),
        Errors<404, 409>,
    ),
)]
async fn get_draw_file(
    State(queue): State<QueueService>,
    Path(event_id): Path<Uuid>,
) -> Result<Response, ApiError> {
    let public = find_draw(&queue, event_id).await?;
    let header = DrawFileHeader::of(draw_of(&public)?, &queue.0.draw_seal);
    let header = header.ok_or_else(not_drawn_yet)?;
    let place = queue.0.draw_cache.downloads.take().ok_or_else(too_many_downloads)?;
    let first = stream::iter([Ok(Bytes::from(header.to_string()))]);
    let body = Body::from_stream(first.chain(parts(queue, event_id, place)));
    let name = format!("attachment; filename=\"draw-{event_id}.txt\"");
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (CONTENT_DISPOSITION, &name),
        (CACHE_CONTROL, FOR_LONG),
    ];
    Ok((headers, body).into_response())
}

/// The download was cut off: the count in its header shows that entrants are missing.
#[derive(Debug, thiserror::Error)]
#[error("the file was not sent completely")]
struct IncompleteDownload;

/// The entrants, read as they are sent: a million of them are never in memory at once. A client that
/// reads slowly loses its place when others want the file.
fn parts(
    queue: QueueService,
    event_id: Uuid,
    place: DownloadPlace,
) -> impl Stream<Item = Result<Bytes, IncompleteDownload>> {
    // `None` is the end. If the channel closes without it, the download has failed.
    let (sender, receiver) = mpsc::channel::<Option<Bytes>>(1);
    tokio::spawn(async move {
        let sending = send_parts(&queue, event_id, &sender, &place);
        let is_sent = tokio::select! {
            sent = tokio::time::timeout(DOWNLOAD_WITHIN, sending) => sent.is_ok(),
            () = place.ended.cancelled() => false,
        };
        if !is_sent {
            tracing::debug!(%event_id, "a draw file is downloaded too slowly");
        }
    });
    stream::unfold(Some(receiver), async |receiver| {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(part)) => Some((Ok(part), Some(receiver))),
            Some(None) => None,
            None => Some((Err(IncompleteDownload), None)),
        }
    })
}

async fn send_parts(
    queue: &QueueService,
    event_id: Uuid,
    sender: &mpsc::Sender<Option<Bytes>>,
    place: &DownloadPlace,
) {
    for part in 0.. {
        let entrants = match draw::find_part(queue, event_id, part).await {
            Ok(entrants) => entrants,
            Err(error) => {
                tracing::warn!(%event_id, %error, "a draw file could not be read");
                return;
            }
        };
        let is_last = entrants.is_none();
        let text = entrants.map(|entrants| Bytes::from(lines(&entrants)));
        if sender.send(text).await.is_err() || is_last {
            return;
        }
        place.note_part();
    }
}

/// The draw of an event that is not deleted.
async fn find_draw(queue: &QueueService, event_id: Uuid) -> Result<Arc<PublicDraw>, ApiError> {
    let public = queue.public_draw(event_id).await?;
    let public = public.filter(|public| public.event.status != RoomEventStatus::Deleted);
    public.ok_or_else(|| match is_new_id(event_id, queue.0.clock.now()) {
        true => room_not_ready(),
        false => event_not_found(),
    })
}

/// The draw of an event that is a lottery.
fn draw_of(public: &PublicDraw) -> Result<&StoredDraw, ApiError> {
    let draw = match public.event.room_settings.opening {
        OpeningOrder::Lottery => public.draw.as_ref(),
        OpeningOrder::Fifo => None,
    };
    draw.ok_or_else(|| {
        let sentence =
            "There is no draw for this event: users are admitted in the order of arrival.";
        ApiError::not_found("NO_LOTTERY", sentence)
    })
}

fn too_many_downloads() -> ApiError {
    let sentence = "There are too many downloads of draws at the moment. Please try again soon.";
    ApiError::unavailable("TOO_MANY_DOWNLOADS", sentence, DOWNLOAD_AGAIN_AFTER)
}

fn not_drawn_yet() -> ApiError {
    ApiError::conflict("NOT_DRAWN_YET", "The draw is not done yet. Please try again after it.")
}

impl DrawView {
    fn new(draw: &StoredDraw, seal: &DrawSeal) -> DrawView {
        let result = DrawFileHeader::of(draw, seal);
        let entrants = draw.entrants.as_ref();
        DrawView {
            event_id: draw.event_id,
            state: match (&draw.closing, &result) {
                (_, Some(_)) => "done",
                (Some(_), None) => "drawing",
                (None, None) => "committed",
            },
            commitment: hex::encode(draw.commitment),
            committed_at: draw.committed_at,
            closed_at: draw.closing.map(|closing| closing.closed_at),
            digest: entrants.map(|entrants| hex::encode(entrants.digest)),
            arrivals: entrants.map(|entrants| hex::encode(entrants.arrivals)),
            count: entrants.map(|entrants| entrants.count),
            fixed_at: entrants.map(|entrants| entrants.fixed_at),
            beacon_round: entrants.map(|entrants| round_for(entrants.fixed_at)),
            beacon: draw.beacon.as_ref().map(ToString::to_string),
            secret: result.as_ref().map(|result| hex::encode(result.secret.expose())),
            seed: result.as_ref().map(|result| hex::encode(result.seed)),
            done_at: draw.done_at,
        }
    }
}
