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
    let provider = &auth.0.settings.identity;
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

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompleteVerificationBody {
    verification_id: Uuid,
    /// Ignored unless the provider is the sandbox.
    sandbox: Option<SandboxPerson>,
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
    let verified_at = auth.complete_verification(user_id, id, body.sandbox).await?;
    Ok(Json(VerifiedIdentityView { identity_verified: true, verified_at }))
}

impl From<StartVerificationError> for ApiError {
    fn from(error: StartVerificationError) -> ApiError {
        let sentence = error.to_string();
        match error {
            StartVerificationError::Off => ApiError::not_found("IDENTITY_CHECK_OFF", sentence),
            StartVerificationError::UserNotFound => ApiError::not_found("USER_NOT_FOUND", sentence),
            StartVerificationError::AlreadyVerified => {
                ApiError::conflict("ALREADY_VERIFIED", sentence)
            }
            StartVerificationError::TooMany => {
                let again = Duration::from_secs(15 * 60);
                ApiError::too_many("TOO_MANY_VERIFICATIONS", sentence, again)
            }
            StartVerificationError::Internal(error) => error.into(),
        }
    }
}

impl From<CompleteVerificationError> for ApiError {
    fn from(error: CompleteVerificationError) -> ApiError {
        use CompleteVerificationError as Error;
        let sentence = error.to_string();
        match error {
            Error::Off => ApiError::not_found("IDENTITY_CHECK_OFF", sentence),
            Error::NotFound => ApiError::not_found("VERIFICATION_NOT_FOUND", sentence),
            Error::Pending => ApiError::conflict("VERIFICATION_PENDING", sentence),
            Error::Failed => ApiError::unprocessable("VERIFICATION_FAILED", sentence),
            Error::KeyMissing => ApiError::unprocessable("VERIFICATION_INCOMPLETE", sentence),
            Error::Expired => ApiError::new(StatusCode::GONE, "VERIFICATION_EXPIRED", sentence),
            Error::VerifiedElsewhere => ApiError::conflict("ALREADY_VERIFIED_ELSEWHERE", sentence),
            Error::DeletedRecently { until } => {
                ApiError::conflict("LEFT_LATELY", sentence).with("until", until.to_string())
            }
            Error::OtherPerson => ApiError::conflict("VERIFIED_AS_ANOTHER", sentence),
            Error::Provider(error) => {
                ApiError::unavailable("IDENTITY_PROVIDER_UNAVAILABLE", sentence, RETRY_AFTER)
                    .caused_by(error)
            }
            Error::Internal(error) => error.into(),
        }
    }
}
