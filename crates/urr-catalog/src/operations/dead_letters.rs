//! Dead letters: messages that no handler could take. What `urr dlq` does, for administrators.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use urr_bus::dead_letters::{self, DeadLetterScope, RepeatedReplay};
use urr_bus::{Bus, BusError, DeadLetter, DeadLetterError, MessagePosition};
use urr_kernel::Timestamp;
use urr_service::admin_log::{self, AdminAction};
use urr_service::{Admin, ApiError, Errors, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{AdminActor, CatalogService};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
/// A message is at most 256 KiB; of more letters the pages show the beginning.
const BODY_CHARS_MAX: usize = 4_000;
/// In the admin log.
const RETRIED: &str = "DEAD_LETTER_RETRIED";

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_dead_letters)).routes(routes!(retry_dead_letter))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct DeadLetterQuery {
    /// For example `reservation-events`.
    #[param(max_length = 100)]
    topic: Option<String>,
    /// `true`: also those that were sent again.
    all: Option<bool>,
    /// 100 by default, at most 500.
    limit: Option<usize>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeadLetterListView {
    /// Oldest first in each partition.
    dead_letters: Vec<DeadLetterView>,
    has_more: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeadLetterView {
    #[schema(example = "reservation-events-dlq:0:12")]
    id: String,
    topic: String,
    reason: String,
    /// The group whose handler could not take it.
    group: String,
    failed_at: Option<Timestamp>,
    /// Null if the message is not an event.
    event_type: Option<String>,
    /// The beginning of the message.
    body: String,
    is_replayed: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReplayedView {
    id: String,
    /// Where the message is now.
    sent_as: String,
}

impl From<DeadLetter> for DeadLetterView {
    fn from(letter: DeadLetter) -> DeadLetterView {
        let body = String::from_utf8_lossy(&letter.body).chars().take(BODY_CHARS_MAX).collect();
        DeadLetterView {
            id: public_id(&letter.id),
            topic: letter.id.topic.clone(),
            reason: letter.reason,
            group: letter.group,
            failed_at: letter.failed_at,
            event_type: letter.event_type,
            body,
            is_replayed: letter.is_replayed,
        }
    }
}

/// A place with colons, because slashes divide paths.
fn public_id(place: &MessagePosition) -> String {
    place.to_string().replace('/', ":")
}

fn parse_id(id: &str) -> Result<MessagePosition, ApiError> {
    id.replace(':', "/").parse().map_err(|_| dead_letter_not_found())
}

/// Lists the messages that could not be handled.
///
/// For administrators. Errors: 503 `BUS_UNAVAILABLE`.
#[utoipa::path(
    get, path = "/api/admin/dead-letters", tag = "admin", params(DeadLetterQuery),
    responses((status = 200, body = DeadLetterListView), Errors<401, 403>),
)]
async fn list_dead_letters(
    State(catalog): State<CatalogService>,
    _admin: Admin,
    Query(query): Query<DeadLetterQuery>,
) -> Result<Json<DeadLetterListView>, ApiError> {
    let scope = match query.all {
        Some(true) => DeadLetterScope::OpenAndReplayed,
        _ => DeadLetterScope::Open,
    };
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
    let topic = query.topic.filter(|topic| urr_contracts::events::TOPICS.contains(&&**topic));
    let list = dead_letters::list(catalog.bus()?, topic.as_deref(), scope, limit).await;
    let list = list.map_err(|error| bus_unavailable(&error))?;
    let dead_letters = list.letters.into_iter().map(DeadLetterView::from).collect();
    Ok(Json(DeadLetterListView { dead_letters, has_more: list.is_cut }))
}

/// Sends a message to its topic again.
///
/// For administrators; the admin log has it. Only the group that failed handles it. Errors: 404
/// `DEAD_LETTER_NOT_FOUND`; 409 `ALREADY_REPLAYED`; 503 `BUS_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/admin/dead-letters/{id}/retry", tag = "admin",
    params(("id" = String, Path)),
    responses((status = 200, body = ReplayedView), Errors<401, 403, 404, 409>),
)]
async fn retry_dead_letter(
    State(catalog): State<CatalogService>,
    actor: AdminActor,
    Path(id): Path<String>,
) -> Result<Json<ReplayedView>, ApiError> {
    let sent_as = catalog.retry_dead_letter(&parse_id(&id)?, actor).await?;
    Ok(Json(ReplayedView { id, sent_as: public_id(&sent_as) }))
}

impl CatalogService {
    fn bus(&self) -> Result<&Bus, ApiError> {
        let bus = self.operations().and_then(|operations| operations.bus.as_ref());
        bus.ok_or_else(|| ApiError::internal("this process has no bus"))
    }

    /// The bus is not in the database, so the intent is logged first and the result afterwards.
    async fn retry_dead_letter(
        &self,
        id: &MessagePosition,
        actor: AdminActor,
    ) -> Result<MessagePosition, ApiError> {
        let bus = self.bus()?;
        dead_letters::show(bus, id).await.map_err(refused)?;
        let action = self.admin_action(actor, (RETRIED, "dead_letter", id));
        let (summary, details) =
            (format!("{id} was sent again"), Some(json!({ "outcome": "begun" })));
        let (log_id, intent) = (action.id, AdminAction { summary, details, ..action });
        self.0.db.write(move |tx| admin_log::insert(tx, &intent)).await?;
        let sent = dead_letters::replay(bus, id, RepeatedReplay::Refuse, self.0.clock.now()).await;
        let outcome = match &sent {
            Ok(place) => json!({ "outcome": "done", "sentAs": place.to_string() }),
            Err(DeadLetterError::Bus(_)) => json!({ "outcome": "unknown" }),
            Err(_) => json!({ "outcome": "refused" }),
        };
        let logged = self.0.db.write(move |tx| admin_log::set_details(tx, log_id, &outcome)).await;
        if let Err(error) = logged {
            tracing::warn!(%id, %error, "the result of sending a dead letter was not logged");
        }
        sent.map_err(refused)
    }
}

fn refused(error: DeadLetterError) -> ApiError {
    match error {
        DeadLetterError::NotFound(_) => dead_letter_not_found(),
        DeadLetterError::AlreadyReplayed(_) => {
            ApiError::conflict("ALREADY_REPLAYED", "This message was sent again before.")
        }
        DeadLetterError::Bus(error) => bus_unavailable(&error),
    }
}

fn dead_letter_not_found() -> ApiError {
    ApiError::not_found("DEAD_LETTER_NOT_FOUND", "There is no such dead letter.")
}

fn bus_unavailable(error: &BusError) -> ApiError {
    let sentence = "The messages cannot be read at the moment. Please try again.";
    let retry_after = std::time::Duration::from_secs(5);
    ApiError::unavailable("BUS_UNAVAILABLE", sentence, retry_after).caused_by(error.to_string())
}
