//! Accounts over HTTP: opening, changing and deleting one.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use urr_kernel::Language;
use urr_service::{ApiError, Context, Errors, Json, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::views::{MessageView, ProfileDetailView, SessionView, session_answer};
use crate::bot_check::http::{bot_attempt, check_bot};
use crate::http::reauthentication;
use crate::sessions::client_info::ClientInfo;
use crate::sessions::cookies;
use crate::{
    AccountDeletion, AuthService, BotCheckPurpose, Email, Password, PasswordChange, PersonName,
    PersonalDetails, PhoneNumber, Registration, TermsAnswer, TermsAnswers, TermsVersions, UserId,
};

pub fn routes() -> OpenApiRouter<AuthService> {
    OpenApiRouter::new()
        .routes(routes!(register))
        .routes(routes!(get_me, update_me, delete_me))
        .routes(routes!(change_password))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegisterBody {
    #[schema(max_length = 254, example = "mina@example.com")]
    email: String,
    #[schema(min_length = 8, max_length = 128)]
    password: String,
    #[schema(max_length = 100, example = "김민아")]
    name: String,
    #[schema(max_length = 20, example = "010-1234-5678")]
    phone: Option<String>,
    /// SERVICE and PRIVACY must be agreed to, MARKETING may be.
    #[schema(max_items = 3)]
    terms: Vec<TermsAnswer>,
    /// The language of mails: `ko` or `en`. The default is the language of the browser.
    #[schema(example = "ko")]
    language: Option<String>,
}

impl RegisterBody {
    fn parse(self, in_force: &TermsVersions) -> Result<Registration, ApiError> {
        let email = Email::parse(&self.email)?;
        let password = Password::parse(&self.password, &email)?;
        let name = PersonName::parse(&self.name)?;
        let phone = parse_phone(self.phone)?;
        let terms = TermsAnswers::for_new_account(self.terms, in_force)?;
        let language = parse_language(self.language)?;
        Ok(Registration {
            person: PersonalDetails { email, name, phone },
            password,
            terms,
            language,
        })
    }
}

/// An empty text counts as absent, because forms send it for an empty field.
fn parse_phone(phone: Option<String>) -> Result<Option<PhoneNumber>, ApiError> {
    let phone = phone.filter(|phone| !phone.trim().is_empty());
    Ok(phone.map(|phone| PhoneNumber::parse(&phone)).transpose()?)
}

fn parse_language(language: Option<String>) -> Result<Option<Language>, ApiError> {
    let language = language.filter(|code| !code.is_empty());
    let parsed = language.map(|code| code.parse()).transpose();
    parsed.map_err(|_| ApiError::bad_request("INVALID_LANGUAGE", "The language is ko or en."))
}

/// Creates an account and logs in.
///
/// `terms` answers every document once; `SERVICE` and `PRIVACY` must be agreed to, in the version
/// that `GET /api/auth/terms` lists. Without `language`, `Accept-Language` decides between `ko` and
/// `en`. The header `x-proof-of-work` carries the solution of `GET
/// /api/auth/challenge?for=register`. The response also sets both cookies.
///
/// Errors: 400 `INVALID_EMAIL`, `INVALID_PASSWORD` (8 to 128 characters, not a common one),
/// `INVALID_NAME`, `INVALID_PHONE`, `INVALID_LANGUAGE`, `TERMS_REQUIRED`, `TERMS_OUTDATED`,
/// `INVALID_TERMS`; 403 `PROOF_REQUIRED` with a new challenge; 409 `REGISTRATION_FAILED` if the
/// address has an account; 503 `LOGIN_BUSY`.
#[utoipa::path(
    post, path = "/api/auth/register", tag = "auth", request_body = RegisterBody,
    responses((status = 201, body = SessionView), Errors<403, 409>),
)]
pub async fn register(
    State(auth): State<AuthService>,
    Context(context): Context,
    client: ClientInfo,
    headers: HeaderMap,
    Json(body): Json<RegisterBody>,
) -> Result<impl IntoResponse, ApiError> {
    let registration = body.parse(&auth.0.settings.terms)?;
    let email = &registration.person.email;
    let attempt = bot_attempt(BotCheckPurpose::Register, email, &headers, &client);
    check_bot(&auth, attempt).await?;
    let session = auth.register(registration, client, context).await?;
    let answer = session_answer(&auth, &headers, "Registration completed", session);
    Ok((StatusCode::CREATED, answer))
}

/// Returns the user's account.
///
/// `termsOutstanding` lists the documents that must be agreed to again. `hasPassword` is false for
/// accounts that were created by social login. Errors: 404 `USER_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/auth/me", tag = "auth",
    responses((status = 200, body = ProfileDetailView), Errors<401>, Errors<404>),
)]
pub async fn get_me(
    State(auth): State<AuthService>,
    User(identity): User,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let profile = auth.get_profile(UserId(identity.user_id)).await?;
    Ok(Json(ProfileDetailView::new(&profile, &auth.0.settings.terms)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateMeBody {
    #[schema(max_length = 100)]
    name: String,
    /// Without it the stored number is deleted.
    #[schema(max_length = 20)]
    phone: Option<String>,
    /// The language of mails: `ko` or `en`. Without it the language does not change.
    #[schema(example = "ko")]
    language: Option<String>,
}

/// Replaces name and phone number, and the language if it is given.
///
/// Without `phone` the number is deleted. Errors: 400 `INVALID_NAME`, `INVALID_PHONE`,
/// `INVALID_LANGUAGE`; 404 `USER_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/auth/me", tag = "auth", request_body = UpdateMeBody,
    responses((status = 200, body = ProfileDetailView), Errors<401, 404>),
)]
pub async fn update_me(
    State(auth): State<AuthService>,
    User(identity): User,
    Json(body): Json<UpdateMeBody>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let (name, phone) = (PersonName::parse(&body.name)?, parse_phone(body.phone)?);
    let language = parse_language(body.language)?;
    let id = UserId(identity.user_id);
    auth.update_profile(id, name, phone, language).await?;
    let profile = auth.get_profile(id).await?;
    Ok(Json(ProfileDetailView::new(&profile, &auth.0.settings.terms)))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteMeBody {
    /// Required if the account has one; otherwise the login must be recent.
    password: Option<String>,
    /// The `lossesName` of the refusal `LOSSES_NOT_ACCEPTED`: accepts what it lists.
    #[schema(max_length = 64)]
    accepted_losses: Option<String>,
}

/// Deletes the account.
///
/// Ends all sessions and erases e-mail address, name and phone number; the address can register
/// again. Needs `password`, or for an account without one a login at most ten minutes ago. Tickets,
/// offers and memberships that are still valid are lost: the first attempt is refused with
/// `LOSSES_NOT_ACCEPTED`, their list `losses` and its `lossesName`, which the second attempt sends as
/// `acceptedLosses`.
///
/// Errors: 400 `PASSWORD_REQUIRED`; 403 `WRONG_PASSWORD`, `RECENT_LOGIN_REQUIRED`; 404
/// `USER_NOT_FOUND`; 409 `LOSSES_NOT_ACCEPTED`, `LAST_ADMIN`; 429 `TOO_MANY_PASSWORD_FAILURES`: a
/// wrong password is a failed login, and ten within 15 minutes are enough; 503 `LOGIN_BUSY`,
/// `TICKETS_UNAVAILABLE`.
#[utoipa::path(
    delete, path = "/api/auth/me", tag = "auth", request_body = DeleteMeBody,
    responses((status = 200, body = MessageView), Errors<401, 403, 404, 409>),
)]
pub async fn delete_me(
    State(auth): State<AuthService>,
    User(identity): User,
    Context(context): Context,
    headers: HeaderMap,
    Json(body): Json<DeleteMeBody>,
) -> Result<impl IntoResponse, ApiError> {
    let id = UserId(identity.user_id);
    let reauthentication = reauthentication(body.password, &headers);
    let deletion = AccountDeletion { reauthentication, accepted_losses: body.accepted_losses };
    auth.close_account(id, deletion, context).await?;
    let cookies = cookies::clear_session_cookies(&auth.0.settings, &headers);
    Ok((cookies, Json(MessageView { message: "Account deleted" })))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangePasswordBody {
    /// Required if the account has one; otherwise the login must be recent.
    old_password: Option<String>,
    #[schema(min_length = 8, max_length = 128)]
    new_password: String,
}

/// Changes the password, or sets the first one.
///
/// All sessions end, and the response starts a new one. An account without a password needs
/// `newPassword` only, and a login at most ten minutes ago; refreshing does not count as a login.
///
/// Errors: 400 `INVALID_PASSWORD`, `PASSWORD_REQUIRED`; 403 `WRONG_PASSWORD`,
/// `RECENT_LOGIN_REQUIRED`; 404 `USER_NOT_FOUND`; 429 `TOO_MANY_PASSWORD_FAILURES`, as for deleting the
/// account; 503 `LOGIN_BUSY`.
#[utoipa::path(
    put, path = "/api/auth/password", tag = "auth", request_body = ChangePasswordBody,
    responses((status = 200, body = SessionView), Errors<401, 403, 404>),
)]
pub async fn change_password(
    State(auth): State<AuthService>,
    User(identity): User,
    client: ClientInfo,
    headers: HeaderMap,
    Json(body): Json<ChangePasswordBody>,
) -> Result<impl IntoResponse, ApiError> {
    let reauthentication = reauthentication(body.old_password, &headers);
    let change = PasswordChange { reauthentication, new: body.new_password };
    let session = auth.change_password(UserId(identity.user_id), change, client).await?;
    Ok(session_answer(&auth, &headers, "Password changed", session))
}
