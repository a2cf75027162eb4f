//! Bot checks over HTTP.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use urr_kernel::Timestamp;
use urr_service::{ApiError, Errors, Json, Query};
use utoipa::{IntoParams, ToSchema};

use crate::{
    AuthService, BotAttempt, BotCheckError, BotCheckPurpose, BotCheckTask, ClientInfo, Email,
};

const PROOF_OF_WORK: &str = "x-proof-of-work";
const REMOTE_TOKEN: &str = "x-bot-check-token";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ChallengeQuery {
    /// The operation that the proof is for.
    #[serde(rename = "for")]
    #[param(inline)]
    purpose: BotCheckPurpose,
}

/// The task. `proof-of-work`: find a `nonce` of letters and digits such that the SHA-256 of
/// `<challenge>:<nonce>` begins with `difficulty` zero bits, and send that text in the header
/// `x-proof-of-work`. The others: send the token of their widget in the header `x-bot-check-token`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BotCheckTaskView {
    /// `none`, `proof-of-work`, `recaptcha-v2`, `recaptcha-v3` or `turnstile`.
    #[schema(example = "proof-of-work")]
    method: &'static str,
    challenge: Option<String>,
    difficulty: Option<u8>,
    expires_at: Option<Timestamp>,
    site_key: Option<String>,
}

impl From<BotCheckTask> for BotCheckTaskView {
    fn from(task: BotCheckTask) -> BotCheckTaskView {
        let method = match &task {
            BotCheckTask::Nothing => "none",
            BotCheckTask::Work(_) => "proof-of-work",
            BotCheckTask::Remote { kind, .. } => kind.as_str(),
        };
        let (work, site_key) = match task {
            BotCheckTask::Nothing => (None, None),
            BotCheckTask::Work(challenge) => (Some(challenge), None),
            BotCheckTask::Remote { site_key, .. } => (None, Some(site_key)),
        };
        let (difficulty, expires_at) =
            work.as_ref().map(|work| (work.difficulty, work.expires_at)).unzip();
        let challenge = work.map(|work| work.text);
        BotCheckTaskView { method, challenge, difficulty, expires_at, site_key }
    }
}

/// Returns the check that registering or logging in requires now.
///
/// `for` is `register` or `login`. For `proof-of-work` find a nonce of letters and digits so that
/// the SHA-256 of `<challenge>:<nonce>` begins with `difficulty` zero bits, and send
/// `<challenge>:<nonce>` as `x-proof-of-work`. The token of a remote check (`recaptcha-v2`,
/// `recaptcha-v3`, `turnstile`) goes into `x-bot-check-token`. A solution counts once, within two
/// minutes.
#[utoipa::path(
    get, path = "/api/auth/challenge", tag = "auth", params(ChallengeQuery),
    responses((status = 200, body = BotCheckTaskView), Errors<400>),
)]
pub async fn get_challenge(
    State(auth): State<AuthService>,
    Query(query): Query<ChallengeQuery>,
) -> Json<BotCheckTaskView> {
    Json(auth.bot_task(query.purpose).into())
}

/// The proofs in the headers of a request.
pub fn bot_attempt(
    purpose: BotCheckPurpose,
    email: &Email,
    headers: &HeaderMap,
    client: &ClientInfo,
) -> BotAttempt {
    let text = |name| {
        let text = headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())?;
        Some(text.to_owned())
    };
    BotAttempt {
        purpose,
        email: email.clone(),
        proof_of_work: text(PROOF_OF_WORK),
        remote_token: text(REMOTE_TOKEN),
        address: client.address.clone(),
    }
}

/// Rejects a request that needs a proof and has no valid one.
pub async fn check_bot(auth: &AuthService, attempt: BotAttempt) -> Result<(), ApiError> {
    let purpose = attempt.purpose;
    auth.check_bot(&attempt).await.map_err(|error| match error {
        BotCheckError::ProofRequired { rejection, task } => {
            let view = serde_json::to_value(BotCheckTaskView::from(*task));
            let view = view.expect("a view can be written as JSON");
            let url = format!("/api/auth/challenge?for={}", purpose);
            let sentence = "Please complete the bot check and try again.";
            ApiError::forbidden("PROOF_REQUIRED", sentence)
                .with("challengeUrl", url)
                .with("task", view)
                .caused_by(rejection)
        }
        BotCheckError::Internal(error) => error.into(),
    })
}
