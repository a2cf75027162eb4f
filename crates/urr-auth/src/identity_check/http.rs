//! Identity verification over HTTP.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Errors, Json, User};
use utoipa::ToSchema;

use crate::{
    AuthService, CompleteVerificationError, IdentityProvider, PortOneIdentity, SandboxPerson,
    StartVerificationError, UserId, VerificationId,
};

/// When a client may retry after an outage of the provider.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a page needs to open the provider's window.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationView {
    /// PortOne calls it `identityVerificationId`.
    verification_id: Uuid,
    /// `portone` or `sandbox`.
    #[schema(example = "portone")]
    provider: &'static str,
    store_id: Option<String>,
    channel_key: Option<String>,
    expires_at: Timestamp,
}

/// Starts the verification of the user's identity.
///
/// Returns the `verificationId` and what the provider's page needs. Errors: 404
/// `IDENTITY_CHECK_OFF`; 409 `ALREADY_VERIFIED`; 429 after ten attempts in 15 minutes; 503
/// `IDENTITY_PROVIDER_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/auth/identity/start", tag = "auth",
    responses((status = 201, body = VerificationView), Errors<401, 404, 409>),
)]
pub async fn start_verification(
    State(auth): State<AuthService>,
    User(identity): User,
) -> Result<(StatusCode, Json<VerificationView>), ApiError> {
    let verification = auth.start_verification(UserId(identity.user_id)).await?;
    let provider = &auth.settings.identity;
    let (store_id, channel_key) = match provider {
        IdentityProvider::PortOne(PortOneIdentity { store_id, channel_key, .. }) => {
            (Some(store_id.clone()), Some(channel_key.clone()))
        }
        IdentityProvider::Off | IdentityProvider::Sandbox => (None, None),
    };
    let view = VerificationView {
        verification_id: verification.id.0,
        provider: provider.name(),
        store_id,
        channel_key,
        expires_at: verification.expires_at,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// A person for the sandbox. The names `FAILED`, `PENDING`, `SLOW`, `WRONG-ID` and `NO-CI` cause
/// errors.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SandboxPersonBody {
    #[schema(max_length = 100, example = "김민아")]
    name: String,
    #[schema(max_length = 10, example = "1999-01-31")]
    birth_date: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteVerificationBody {
    verification_id: Uuid,
    /// Ignored unless the provider is the sandbox.
    sandbox: Option<SandboxPersonBody>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedIdentityView {
    identity_verified: bool,
    verified_at: Timestamp,
}

/// Completes the verification of the user's identity.
///
/// The server asks the provider; nothing that the browser sends about the person counts. A person
/// has one account.
///
/// Errors: 404 `IDENTITY_CHECK_OFF`, `VERIFICATION_NOT_FOUND`; 409 `VERIFICATION_PENDING`,
/// `ALREADY_VERIFIED`, `ALREADY_VERIFIED_ELSEWHERE`, `VERIFIED_AS_ANOTHER`, `LEFT_LATELY` (an
/// account of this person was deleted less than a month ago; with `until`); 410
/// `VERIFICATION_EXPIRED`; 422 `VERIFICATION_FAILED`, `VERIFICATION_INCOMPLETE`; 503
/// `IDENTITY_PROVIDER_UNAVAILABLE`.
#[utoipa::path(
    post, path = "/api/auth/identity/complete", tag = "auth",
    request_body = CompleteVerificationBody,
    responses((status = 200, body = VerifiedIdentityView), Errors<401, 404, 409, 410, 422>),
)]
pub async fn complete_verification(
    State(auth): State<AuthService>,
    User(identity): User,
    Json(body): Json<CompleteVerificationBody>,
) -> Result<Json<VerifiedIdentityView>, ApiError> {
    let (user_id, id) = (UserId(identity.user_id), VerificationId(body.verification_id));
    let sandbox = body.sandbox.map(|person| {
        let SandboxPersonBody { name, birth_date } = person;
        SandboxPerson { name, birth_date }
    });
    let verified_at = auth.complete_verification(user_id, id, sandbox).await?;
    Ok(Json(VerifiedIdentityView { identity_verified: true, verified_at }))
}

fn switched_off() -> ApiError {
    ApiError::not_found("IDENTITY_CHECK_OFF", "Identity verification is not enabled here.")
}

impl From<StartVerificationError> for ApiError {
    fn from(error: StartVerificationError) -> ApiError {
        match error {
            StartVerificationError::Off => switched_off(),
            StartVerificationError::UserNotFound => crate::http::user_not_found(),
            StartVerificationError::AlreadyVerified => {
                ApiError::conflict("ALREADY_VERIFIED", "Your identity is verified already.")
            }
            StartVerificationError::TooMany => ApiError::too_many(
                "TOO_MANY_VERIFICATIONS",
                "You have tried too often. Please wait 15 minutes.",
                Duration::from_secs(15 * 60),
            ),
            StartVerificationError::Internal(error) => error.into(),
        }
    }
}

impl From<CompleteVerificationError> for ApiError {
    fn from(error: CompleteVerificationError) -> ApiError {
        match error {
            CompleteVerificationError::Off => switched_off(),
            CompleteVerificationError::NotFound => ApiError::not_found(
                "VERIFICATION_NOT_FOUND",
                "There is no such verification. Please begin again.",
            ),
            CompleteVerificationError::Pending => ApiError::conflict(
                "VERIFICATION_PENDING",
                "Please finish in the window of the identity provider first.",
            ),
            CompleteVerificationError::Failed => ApiError::unprocessable(
                "VERIFICATION_FAILED",
                "The identity provider could not verify you. Please begin again.",
            ),
            CompleteVerificationError::KeyMissing => ApiError::unprocessable(
                "VERIFICATION_INCOMPLETE",
                "This method of verification is not sufficient. Please choose another.",
            ),
            CompleteVerificationError::Expired => ApiError::new(
                StatusCode::GONE,
                "VERIFICATION_EXPIRED",
                "This took too long. Please begin again.",
            ),
            CompleteVerificationError::VerifiedElsewhere => ApiError::conflict(
                "ALREADY_VERIFIED_ELSEWHERE",
                "You have another account already. A person can have only one.",
            ),
            CompleteVerificationError::DeletedRecently { until } => ApiError::conflict(
                "LEFT_LATELY",
                "You deleted an account recently. Please try again later.",
            )
            .with("until", until.to_string()),
            CompleteVerificationError::OtherPerson => ApiError::conflict(
                "VERIFIED_AS_ANOTHER",
                "This account belongs to another person already.",
            ),
            CompleteVerificationError::SocialProvider(error) => ApiError::unavailable(
                "IDENTITY_PROVIDER_UNAVAILABLE",
                "The identity provider does not answer. Please try again in a moment.",
                RETRY_AFTER,
            )
            .caused_by(error),
            CompleteVerificationError::Internal(error) => error.into(),
        }
    }
}
