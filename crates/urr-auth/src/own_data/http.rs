//! The copy of a user's data over HTTP, and the losses of a deletion.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};
use urr_kernel::Timestamp;
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;

use super::{DeleteAccountError, ExportError};
use crate::http::reauthentication;
use crate::sessions::login_history::LoginEntry;
use crate::sessions::own::LiveSession;
use crate::terms::AgreedTerms;
use crate::{AuthService, LinkedIdentity, Profile, UserId};

const RETRY_AFTER: Duration = Duration::from_secs(10);

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportMeBody {
    /// Required if the login was not recent.
    password: Option<String>,
}

/// Returns a copy of all the user's data, as a file.
///
/// Account, sessions, the last hundred logins, linked logins, answers to terms, reservations,
/// tickets, transfers, memberships, points, payments, refunds, mails with what they said, and posts. Of
/// each up to 2,000, the newest; `truncated` names what was more. Needs a login at most ten minutes
/// ago, or `password`.
///
/// Errors: 403 `RECENT_LOGIN_REQUIRED`, `WRONG_PASSWORD`; 404 `USER_NOT_FOUND`; 503
/// `EXPORT_UNAVAILABLE` with `missing` (`tickets`, `payments`, `mails`, `community`): no copy lacks a part.
#[utoipa::path(
    post, path = "/api/auth/me/export", tag = "auth", request_body = ExportMeBody,
    responses((status = 200, body = Object), Errors<401, 403, 404>),
)]
pub async fn export_me(
    State(auth): State<AuthService>,
    User(identity): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<ExportMeBody>,
) -> Result<impl IntoResponse, ApiError> {
    let id = UserId(identity.user_id);
    let proof = reauthentication(body.password, &headers);
    let document = auth.export_account(id, proof, context).await?;
    let file = [
        (CONTENT_DISPOSITION, "attachment; filename=\"urr-my-data.json\""),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((file, Json(document)))
}

/// What a copy is made of.
pub struct ExportParts {
    pub exported_at: Timestamp,
    pub profile: Profile,
    pub sessions: Vec<LiveSession>,
    pub logins: Vec<LoginEntry>,
    pub identities: Vec<LinkedIdentity>,
    pub terms: Vec<AgreedTerms>,
    pub tickets: Value,
    pub payments: Value,
    pub mails: Value,
    pub community: Value,
}

pub fn export_document(parts: ExportParts) -> Value {
    let ExportParts { exported_at, profile, sessions, logins, identities, terms, .. } = parts;
    let user = profile.user;
    let session = |session: LiveSession| {
        json!({
            "id": session.id,
            "method": session.method,
            "address": session.address,
            "userAgent": session.user_agent,
            "loginAt": session.login_at,
            "lastUsedAt": session.last_used_at,
        })
    };
    let login = |entry: LoginEntry| {
        json!({
            "method": entry.method,
            "failure": entry.failure,
            "address": entry.address,
            "userAgent": entry.user_agent,
            "happenedAt": entry.happened_at,
        })
    };
    let agreed = |terms: AgreedTerms| {
        json!({
            "kind": terms.kind.as_str(),
            "version": terms.version,
            "agreed": terms.agreed,
            "agreedAt": terms.agreed_at,
        })
    };
    json!({
        "exportedAt": exported_at,
        "account": {
            "id": user.id.0,
            "email": user.person.email.as_str(),
            "emailVerified": user.email_verified,
            "name": user.person.name.as_str(),
            "phone": user.person.phone.as_ref().map(|phone| phone.as_str()),
            "role": user.role.as_str(),
            "language": user.language.as_str(),
            "status": user.status.as_str(),
            "identityVerified": profile.identity_verified,
            "hasPassword": profile.has_password,
            "createdAt": user.created_at,
            "lastLoginAt": user.last_login_at,
        },
        "linkedLogins": identities,
        "terms": terms.into_iter().map(agreed).collect::<Vec<_>>(),
        "sessions": sessions.into_iter().map(session).collect::<Vec<_>>(),
        "logins": logins.into_iter().map(login).collect::<Vec<_>>(),
        "tickets": parts.tickets,
        "payments": parts.payments,
        "mails": parts.mails,
        "community": parts.community,
    })
}

impl From<DeleteAccountError> for ApiError {
    fn from(error: DeleteAccountError) -> ApiError {
        let sentence = error.to_string();
        match error {
            DeleteAccountError::Losses(losses) => {
                let holdings = serde_json::to_value(losses.holdings).expect("they are plain JSON");
                ApiError::conflict("LOSSES_NOT_ACCEPTED", sentence)
                    .with("losses", holdings)
                    .with("lossesName", losses.name)
            }
            DeleteAccountError::TicketsUnknown => tickets_unknown(sentence),
            DeleteAccountError::NotConfirmed(error) => error.into(),
        }
    }
}

impl From<ExportError> for ApiError {
    fn from(error: ExportError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ExportError::PartUnavailable(part) => {
                ApiError::unavailable("EXPORT_UNAVAILABLE", sentence, RETRY_AFTER)
                    .with("missing", part)
            }
            ExportError::NotConfirmed(error) => error.into(),
            ExportError::User(error) => error.into(),
            ExportError::Internal(error) => error.into(),
        }
    }
}

fn tickets_unknown(sentence: String) -> ApiError {
    ApiError::unavailable("TICKETS_UNAVAILABLE", sentence, RETRY_AFTER)
}
