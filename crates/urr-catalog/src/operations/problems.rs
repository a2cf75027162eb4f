//! What is wrong now, put together from what every service knows.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Serialize;
use urr_bus::dead_letters::{self, DeadLetterScope};
use urr_contracts::clients::{ClientError, ServiceClient};
use urr_contracts::internal::problems::{
    ListMailProblems, ListPaymentProblems, ListQueueProblems, ListTicketProblems, Problem,
    ProblemCode, ProblemList,
};
use urr_kernel::{CallContext, Clock, Timestamp, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_service::{ApiError, Context, Errors, EventReader, InternalCall, Json, preferred_language};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem_texts::{link, sentence};
use crate::{CatalogPeers, CatalogService};

/// All pages that look at it ask once.
const TTL: Duration = Duration::from_secs(3);
const SCOPES_MAX: usize = 1_000;
/// Dead letters are read from the bus, which may be away.
const BUS_PATIENCE: Duration = Duration::from_secs(1);
/// More dead letters than this are not counted.
const DEAD_LETTERS_COUNTED_MAX: usize = 100;

/// Lists of problems by organiser; that of everything under none.
pub(crate) type ProblemCache = Cache<Option<Uuid>, Arc<[Problem]>, ()>;

pub(crate) fn problem_cache(clock: Clock) -> ProblemCache {
    Cache::new(clock, CacheOptions { ttl: TTL, entries_max: SCOPES_MAX })
}

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_problems))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProblemListView {
    /// Empty: nothing is wrong.
    problems: Vec<ProblemView>,
    server_time: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProblemView {
    #[schema(example = "PAYMENTS_UNCLEAR")]
    code: &'static str,
    /// In the language that the client prefers.
    sentence: String,
    count: u64,
    /// Null if it is not known since when.
    since: Option<Timestamp>,
    /// The event that it concerns alone.
    event_id: Option<Uuid>,
    /// The page on which it can be mended.
    #[schema(example = "/admin/dead-letters")]
    link: String,
}

/// Lists what is wrong now.
///
/// For organisers (what concerns their events), support and administrators (everything): unclear
/// payments, declined refunds, differences that audits found, dead letters, stopped calls, paused
/// rooms in which people wait, failed mails, and services that do not answer. Up to three seconds old.
#[utoipa::path(
    get, path = "/api/admin/problems", tag = "admin",
    responses((status = 200, body = ProblemListView), Errors<401, 403>),
)]
async fn list_problems(
    State(catalog): State<CatalogService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    headers: HeaderMap,
) -> Result<Json<ProblemListView>, ApiError> {
    let problems = catalog.problems(reader.event_scope().organiser_id(), context).await;
    let language = preferred_language(&headers);
    let view = |problem: &Problem| ProblemView {
        code: problem.code.as_str(),
        sentence: sentence(problem, language),
        count: problem.count,
        since: problem.since,
        event_id: problem.event_id,
        link: link(problem),
    };
    let problems = problems.iter().map(view).collect();
    Ok(Json(ProblemListView { problems, server_time: catalog.0.clock.now() }))
}

impl CatalogService {
    async fn problems(&self, organiser_id: Option<Uuid>, context: CallContext) -> Arc<[Problem]> {
        let Some(peers) = self.peers().cloned() else { return Arc::new([]) };
        let load = || async move { Ok(find_problems(&peers, organiser_id, &context).await.into()) };
        let found = self.0.problems.get_or_load(organiser_id, load).await;
        found.unwrap_or_default()
    }
}

/// Asks every service at once.
async fn find_problems(
    peers: &CatalogPeers,
    organiser_id: Option<Uuid>,
    context: &CallContext,
) -> Vec<Problem> {
    let operations = &peers.operations;
    let lists = tokio::join!(
        ask("ticket", Some(&peers.ticket), ListTicketProblems { organiser_id }, context),
        ask("payment", operations.payment.as_ref(), ListPaymentProblems { organiser_id }, context),
        ask("queue", operations.queue.as_ref(), ListQueueProblems { organiser_id }, context),
        ask("mail", operations.mail.as_ref(), ListMailProblems { organiser_id }, context),
        async { if organiser_id.is_none() { own_problems(peers).await } else { Vec::new() } },
    );
    let mut problems = [lists.0, lists.1, lists.2, lists.3, lists.4].concat();
    // The longest-lasting first; what has no beginning comes last.
    problems.sort_by_key(|problem| (problem.since.is_none(), problem.since));
    problems
}

/// A service that does not answer is itself a problem.
async fn ask<S, C>(
    name: &str,
    client: Option<&ServiceClient<S>>,
    call: C,
    context: &CallContext,
) -> Vec<Problem>
where
    C: InternalCall<Service = S, Answer = ProblemList>,
{
    let Some(client) = client else { return Vec::new() };
    let answer: Result<ProblemList, ClientError> = client.call(call, context).await;
    answer.map(|list| list.problems).unwrap_or_else(|error| {
        tracing::warn!(%error, "a service does not say what is wrong");
        let subject = Some(name.to_owned());
        vec![Problem { subject, ..Problem::new(ProblemCode::ServiceAway, 1) }]
    })
}

/// Dead letters, and stopped calls of our own.
async fn own_problems(peers: &CatalogPeers) -> Vec<Problem> {
    let operations = &peers.operations;
    let open = [
        peers.ticket.open_breaker(),
        peers.auth.open_breaker(),
        operations.payment.as_ref().and_then(ServiceClient::open_breaker),
        operations.queue.as_ref().and_then(ServiceClient::open_breaker),
        operations.mail.as_ref().and_then(ServiceClient::open_breaker),
    ];
    let mut problems: Vec<Problem> =
        open.into_iter().flatten().map(|target| Problem::breaker("catalog", target)).collect();
    let Some(bus) = &operations.bus else { return problems };
    let list = dead_letters::list(bus, None, DeadLetterScope::Open, DEAD_LETTERS_COUNTED_MAX);
    match tokio::time::timeout(BUS_PATIENCE, list).await {
        Ok(Ok(list)) if list.letters.is_empty() => {}
        Ok(Ok(list)) => problems.push(Problem {
            since: list.letters.iter().filter_map(|letter| letter.failed_at).min(),
            ..Problem::new(
                ProblemCode::DeadLetters,
                u64::try_from(list.letters.len()).unwrap_or(u64::MAX),
            )
        }),
        Ok(Err(_)) | Err(_) => problems.push(Problem {
            subject: Some("bus".to_owned()),
            ..Problem::new(ProblemCode::ServiceAway, 1)
        }),
    }
    problems
}
