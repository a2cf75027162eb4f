//! What a user was told.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, ErrorBody, Json, Page, Paged, Pagination, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Mails;
use crate::domain::mail::Mail;
use crate::looking::MailFilter;

pub fn routes() -> OpenApiRouter<Mails> {
    OpenApiRouter::new().routes(routes!(list_notifications))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationView {
    id: Uuid,
    /// `purchase`, `cancellation`, `refund` or `turn_near`.
    #[schema(example = "purchase")]
    kind: &'static str,
    #[schema(example = "예매가 완료되었습니다: 한강의 밤")]
    subject: String,
    /// Where one can see more.
    link: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
struct NotificationListView {
    notifications: Vec<NotificationView>,
    pagination: Pagination,
}

impl NotificationView {
    fn new(mails: &Mails, mail: &Mail) -> NotificationView {
        let rendered = mails.preview(mail);
        NotificationView {
            id: mail.id.0,
            kind: mail.kind.name(),
            subject: rendered.subject,
            link: rendered.link,
            created_at: mail.created_at,
        }
    }
}

/// What I was told, the newest first.
#[utoipa::path(
    get, path = "/api/notifications", tag = "mail", params(Page),
    responses(
        (status = 200, body = NotificationListView),
        (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody),
    ),
)]
async fn list_notifications(
    State(mails): State<Mails>,
    User(identity): User,
    page: Page,
) -> Result<Json<NotificationListView>, ApiError> {
    let filter = MailFilter { user_id: Some(identity.user_id), ..MailFilter::default() };
    let (list, total) = mails.list(filter, page).await?;
    let views = list.iter().map(|mail| NotificationView::new(&mails, mail)).collect();
    let Paged { items: notifications, pagination } = Paged::new(views, total, page);
    Ok(Json(NotificationListView { notifications, pagination }))
}
