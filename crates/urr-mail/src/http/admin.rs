//! Everybody's mails, for administrators.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{
    Admin, ApiError, Context, ErrorBody, Json, Page, Paged, Pagination, Path, Query,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::not_found;
use crate::Mails;
use crate::domain::mail::{Kind, Mail, MailId, Status};
use crate::looking::MailFilter;

pub fn routes() -> OpenApiRouter<Mails> {
    OpenApiRouter::new()
        .routes(routes!(list_mails))
        .routes(routes!(get_mail))
        .routes(routes!(retry_mail))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailView {
    id: Uuid,
    /// `purchase`, `cancellation`, `refund` or `turn_near`.
    #[schema(example = "purchase")]
    kind: &'static str,
    /// What it is about: a reservation, a refund, or the message that asked for it.
    subject_id: Uuid,
    user_id: Uuid,
    /// `waiting`, `sent`, `failed` or `dropped`.
    #[schema(example = "sent")]
    status: &'static str,
    /// In which it was last about to be sent.
    #[schema(example = "ko")]
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    attempts: u32,
    /// Why it was dropped or has failed, or what the last attempt ended with.
    #[schema(example = "RECIPIENT 550")]
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    /// Only of one that waits: when it is tried next.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
struct MailListView {
    mails: Vec<MailView>,
    pagination: Pagination,
}

/// A mail as it is read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MailPreviewView {
    #[serde(flatten)]
    mail: MailView,
    /// Where it goes, so that one recognises it.
    #[schema(example = "m***@example.com")]
    #[serde(skip_serializing_if = "Option::is_none")]
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
            kind: mail.kind.name(),
            subject_id: mail.subject_id,
            user_id: mail.user_id,
            status: mail.status.name(),
            language: mail.language.map(|language| language.code()),
            attempts: mail.attempts,
            last_error: mail.last_error.clone(),
            due_at: (mail.status == Status::Waiting).then_some(mail.due_at),
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
    /// `purchase`, `cancellation`, `refund` or `turn_near`.
    #[param(example = "purchase")]
    kind: Option<String>,
    user_id: Option<Uuid>,
}

impl AdminMailFilter {
    fn parse(self) -> Result<MailFilter, ApiError> {
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        let status = named(self.status).map(|name| {
            let refusal = || ApiError::bad_request("INVALID_STATUS", "There is no such state.");
            Status::parse(&name).ok_or_else(refusal)
        });
        let kind = named(self.kind).map(|name| {
            let refusal = || ApiError::bad_request("INVALID_KIND", "There is no such kind.");
            Kind::parse(&name).ok_or_else(refusal)
        });
        let (status, kind) = (status.transpose()?, kind.transpose()?);
        Ok(MailFilter { user_id: self.user_id, status, kind })
    }
}

/// Everybody's mails, the newest first.
#[utoipa::path(
    get, path = "/api/admin/mails", tag = "admin", params(Page, AdminMailFilter),
    responses(
        (status = 200, body = MailListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
    ),
)]
async fn list_mails(
    State(mails): State<Mails>,
    _admin: Admin,
    page: Page,
    Query(filter): Query<AdminMailFilter>,
) -> Result<Json<MailListView>, ApiError> {
    let (list, total) = mails.list(filter.parse()?, page).await?;
    let views = list.iter().map(MailView::from).collect();
    let Paged { items: mails, pagination } = Paged::new(views, total, page);
    Ok(Json(MailListView { mails, pagination }))
}

/// Anybody's mail, as it is read.
#[utoipa::path(
    get, path = "/api/admin/mails/{id}", tag = "admin", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = MailPreviewAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    ),
)]
async fn get_mail(
    State(mails): State<Mails>,
    _admin: Admin,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<MailPreviewAnswer>, ApiError> {
    let mail = mails.find(MailId(id)).await?.ok_or_else(not_found)?;
    let address = mails.masked_address(&mail, &context).await;
    let rendered = mails.preview(&mail);
    let (subject, text, html) = (rendered.subject, rendered.text, rendered.html);
    let mail = MailPreviewView { mail: MailView::from(&mail), address, subject, text, html };
    Ok(Json(MailPreviewAnswer { mail }))
}

/// Sends a mail again that has failed.
#[utoipa::path(
    post, path = "/api/admin/mails/{id}/retry", tag = "admin", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = MailAnswer),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    ),
)]
async fn retry_mail(
    State(mails): State<Mails>,
    _admin: Admin,
    Path(id): Path<Uuid>,
) -> Result<Json<MailAnswer>, ApiError> {
    let mail = mails.retry(MailId(id)).await?;
    Ok(Json(MailAnswer { mail: MailView::from(&mail) }))
}
