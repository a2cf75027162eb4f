//! Mails, for administrators.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, Errors, Json, Page, Paged, Pagination, Path, Query, Support};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::mail_not_found;
use crate::MailFilter;
use crate::MailService;
use crate::domain::mail::{Mail, MailId, MailKind, MailStatus};

pub fn routes() -> OpenApiRouter<MailService> {
    OpenApiRouter::new()
        .routes(routes!(list_mails))
        .routes(routes!(get_mail))
        .routes(routes!(retry_mail))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailView {
    id: Uuid,
    /// `purchase`, `complimentary`, `cancellation`, `part_cancellation`, `event_moved`, `refund`,
    /// `admission_near`, `sale_alert`, `seat_alert`, `email_verification` or `password_reset`.
    #[schema(example = "purchase")]
    kind: &'static str,
    /// What it is about: a reservation, a refund, a link, or the message that asked for it.
    subject_id: Uuid,
    user_id: Uuid,
    /// `waiting`, `sent`, `failed` or `dropped`.
    #[schema(example = "sent")]
    status: &'static str,
    /// The language of the last attempt.
    #[schema(example = "ko")]
    language: Option<&'static str>,
    attempts: u32,
    /// The reason for dropping it, or the error of the last attempt.
    #[schema(example = "RECIPIENT 550")]
    last_error: Option<String>,
    /// When a waiting mail is tried next; otherwise null.
    due_at: Option<Timestamp>,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
struct MailListView {
    mails: Vec<MailView>,
    pagination: Pagination,
}

/// A mail with its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailPreviewView {
    #[serde(flatten)]
    mail: MailView,
    /// The masked address; null if it is not known.
    #[schema(example = "m***@example.com")]
    address: Option<String>,
    subject: String,
    text: String,
    html: String,
}

#[derive(Serialize, ToSchema)]
struct MailPreviewAnswer {
    mail: MailPreviewView,
}

#[derive(Serialize, ToSchema)]
struct MailAnswer {
    mail: MailView,
}

impl From<&Mail> for MailView {
    fn from(mail: &Mail) -> MailView {
        MailView {
            id: mail.id.0,
            kind: mail.kind.as_str(),
            subject_id: mail.subject_id,
            user_id: mail.user_id,
            status: mail.status.as_str(),
            language: mail.language.map(|language| language.as_str()),
            attempts: mail.attempts,
            last_error: mail.last_error.clone(),
            due_at: (mail.status == MailStatus::Waiting).then_some(mail.due_at),
            created_at: mail.created_at,
            ended_at: mail.ended_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct AdminMailFilter {
    /// `waiting`, `sent`, `failed` or `dropped`.
    #[param(example = "failed")]
    status: Option<String>,
    /// As `kind` of a mail.
    #[param(example = "purchase")]
    kind: Option<String>,
    user_id: Option<Uuid>,
}

impl AdminMailFilter {
    fn parse(self) -> Result<MailFilter, ApiError> {
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        let status = named(self.status).map(|name| {
            let refusal = || ApiError::bad_request("INVALID_STATUS", "There is no such state.");
            name.parse::<MailStatus>().map_err(|_| refusal())
        });
        let kind = named(self.kind).map(|name| {
            let refusal = || ApiError::bad_request("INVALID_KIND", "There is no such kind.");
            name.parse::<MailKind>().map_err(|_| refusal())
        });
        let (status, kind) = (status.transpose()?, kind.transpose()?);
        Ok(MailFilter { user_id: self.user_id, status, kind, without_links: false })
    }
}

/// Lists all mails, newest first.
///
/// For support and administrators. Errors: 400 `INVALID_STATUS`, `INVALID_KIND`.
#[utoipa::path(
    get, path = "/api/admin/mails", tag = "admin", params(Page, AdminMailFilter),
    responses((status = 200, body = MailListView), Errors<401, 403>),
)]
async fn list_mails(
    State(service): State<MailService>,
    _support: Support,
    page: Page,
    Query(filter): Query<AdminMailFilter>,
) -> Result<Json<MailListView>, ApiError> {
    let (list, total) = service.list_mails(filter.parse()?, page).await?;
    let views = list.iter().map(MailView::from).collect();
    let Paged { items: mails, pagination } = Paged::new(views, total, page);
    Ok(Json(MailListView { mails, pagination }))
}

/// Returns a mail with its text.
///
/// For support and administrators. The address is masked, and a link is shown without its secret. Errors: 404
/// `MAIL_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/mails/{id}", tag = "admin", params(("id" = Uuid, Path)),
    responses((status = 200, body = MailPreviewAnswer), Errors<401, 403, 404>),
)]
async fn get_mail(
    State(service): State<MailService>,
    _support: Support,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<MailPreviewAnswer>, ApiError> {
    let mail = service.find_mail(MailId(id)).await?.ok_or_else(mail_not_found)?;
    let address = service.masked_address(&mail, &context).await;
    let rendered = service.preview_mail(&mail);
    let (subject, text, html) = (rendered.subject, rendered.text, rendered.html);
    let mail = MailPreviewView { mail: MailView::from(&mail), address, subject, text, html };
    Ok(Json(MailPreviewAnswer { mail }))
}

/// Sends a failed mail again.
///
/// For support and administrators. It starts over with all its attempts. Errors: 404 `MAIL_NOT_FOUND`; 409
/// `MAIL_NOT_FAILED`.
#[utoipa::path(
    post, path = "/api/admin/mails/{id}/retry", tag = "admin", params(("id" = Uuid, Path)),
    responses((status = 200, body = MailAnswer), Errors<401, 403, 404, 409>),
)]
async fn retry_mail(
    State(service): State<MailService>,
    Support(admin): Support,
    Path(id): Path<Uuid>,
) -> Result<Json<MailAnswer>, ApiError> {
    let mail = service.retry_mail(MailId(id), admin.user_id).await?;
    Ok(Json(MailAnswer { mail: MailView::from(&mail) }))
}
