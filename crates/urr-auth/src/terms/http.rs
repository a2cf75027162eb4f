//! The terms over HTTP.

use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use urr_service::{ApiError, Errors, Json, Path, Query, User, preferred_language};
use utoipa::{IntoParams, ToSchema};

use crate::{
    AuthService, FindTermsError, InvalidTerms, TermsAnswer, TermsAnswers, TermsKind, TermsVersions,
    UserId,
};

/// One of the terms, in the version in force.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TermsView {
    #[serde(rename = "type")]
    kind: TermsKind,
    #[schema(example = "2026-11")]
    version: String,
    /// Whether an account needs the agreement.
    required: bool,
}

pub fn terms_views(kinds: &[TermsKind], in_force: &TermsVersions) -> Vec<TermsView> {
    let view = |kind: &TermsKind| TermsView {
        kind: *kind,
        version: in_force.of(*kind).as_str().to_owned(),
        required: kind.is_required(),
    };
    kinds.iter().map(view).collect()
}

#[derive(Serialize, ToSchema)]
pub struct TermsListView {
    terms: Vec<TermsView>,
}

/// Lists the legal documents in force.
///
/// Public. `required` documents must be agreed to when registering; `GET /api/auth/terms/{kind}` has
/// their texts.
#[utoipa::path(
    get, path = "/api/auth/terms", tag = "auth",
    responses((status = 200, body = TermsListView)),
)]
pub async fn list_terms(State(auth): State<AuthService>) -> Json<TermsListView> {
    Json(TermsListView { terms: terms_views(&TermsKind::ALL, &auth.0.settings.terms) })
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TermsQuery {
    /// An earlier version. Without it, the one in force.
    #[param(max_length = 20, example = "2026-11")]
    version: Option<String>,
}

/// What a legal document says.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TermsTextView {
    #[serde(rename = "type")]
    kind: TermsKind,
    #[schema(example = "2026-11")]
    version: String,
    /// Whether an account needs the agreement.
    required: bool,
    /// `ko` or `en`.
    #[schema(example = "ko")]
    language: &'static str,
    /// Plain text. Lines that begin with `# ` are headings, with `- ` items of a list; an empty line
    /// ends a paragraph.
    text: String,
    /// Whether it is the program's example, which the operator has not replaced.
    is_example: bool,
}

/// Returns the text of a legal document, in the language of `Accept-Language`.
///
/// Public. Every version that was in force can be read. Errors: 404 `TERMS_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/auth/terms/{kind}", tag = "auth",
    params(("kind" = TermsKind, Path), TermsQuery),
    responses((status = 200, body = TermsTextView), Errors<404>),
)]
pub async fn get_terms(
    State(auth): State<AuthService>,
    Path(kind): Path<TermsKind>,
    Query(query): Query<TermsQuery>,
    headers: HeaderMap,
) -> Result<Json<TermsTextView>, ApiError> {
    let language = preferred_language(&headers);
    let document = auth.find_terms(kind, query.version).await?;
    Ok(Json(TermsTextView {
        kind,
        version: document.version,
        required: kind.is_required(),
        language: language.as_str(),
        text: document.text.in_language(language).to_owned(),
        is_example: document.text.is_example(),
    }))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerTermsBody {
    /// Required terms can only be agreed to; MARKETING can also be refused.
    #[schema(max_items = 3)]
    terms: Vec<TermsAnswer>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutstandingTermsView {
    /// The required terms that are still outstanding.
    terms_outstanding: Vec<TermsView>,
}

/// Records the user's answers to legal documents.
///
/// For documents that have a new version. The same answer again changes nothing. Returns what is
/// still outstanding, which does not restrict the user.
///
/// Errors: 400 `TERMS_OUTDATED`, `TERMS_REQUIRED` (a required document cannot be declined),
/// `INVALID_TERMS` (one is answered twice); 404 `USER_NOT_FOUND`.
#[utoipa::path(
    post, path = "/api/auth/terms", tag = "auth", request_body = AnswerTermsBody,
    responses((status = 200, body = OutstandingTermsView), Errors<401, 404>),
)]
pub async fn answer_terms(
    State(auth): State<AuthService>,
    User(identity): User,
    Json(body): Json<AnswerTermsBody>,
) -> Result<Json<OutstandingTermsView>, ApiError> {
    let terms = TermsAnswers::for_account(body.terms, &auth.0.settings.terms)?;
    let outstanding = auth.answer_terms(UserId(identity.user_id), terms).await?;
    let terms_outstanding = terms_views(&outstanding, &auth.0.settings.terms);
    Ok(Json(OutstandingTermsView { terms_outstanding }))
}

impl From<InvalidTerms> for ApiError {
    fn from(invalid: InvalidTerms) -> ApiError {
        let code = match invalid {
            InvalidTerms::NotAgreed(_) => "TERMS_REQUIRED",
            InvalidTerms::Twice(_) => "INVALID_TERMS",
            InvalidTerms::Outdated { .. } => "TERMS_OUTDATED",
        };
        ApiError::bad_request(code, invalid.to_string())
    }
}

impl From<FindTermsError> for ApiError {
    fn from(error: FindTermsError) -> ApiError {
        let sentence = error.to_string();
        match error {
            FindTermsError::UnknownVersion => ApiError::not_found("TERMS_NOT_FOUND", sentence),
            FindTermsError::Internal(error) => error.into(),
        }
    }
}
