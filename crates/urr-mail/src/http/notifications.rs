//! A user's own notifications.

use axum::extract::State;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Errors, Json, Page, Paged, Pagination, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::MailFilter;
use crate::MailService;
use crate::domain::mail::Mail;

pub fn routes() -> OpenApiRouter<MailService> {
    OpenApiRouter::new().routes(routes!(list_notifications))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationView {
    id: Uuid,
    /// `purchase`, `complimentary`, `cancellation`, `part_cancellation`, `event_moved`, `refund`,
    /// `admission_near`, `sale_alert` or `seat_alert`.
    #[schema(example = "purchase")]
    kind: &'static str,
    #[schema(example = "예매가 완료되었습니다: 한강의 밤")]
    subject: String,
    /// The page with more about it.
    link: String,
    created_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
struct NotificationListView {
    notifications: Vec<NotificationView>,
    pagination: Pagination,
}

impl NotificationView {
    fn new(service: &MailService, mail: &Mail) -> NotificationView {
        let rendered = service.preview_mail(mail);
        NotificationView {
            id: mail.id.0,
            kind: mail.kind.as_str(),
            subject: rendered.subject,
            link: rendered.link,
            created_at: mail.created_at,
        }
    }
}

/// Lists what the user was notified of, newest first.
///
/// `kind` tells why. Notifications are deleted after 90 days.
#[utoipa::path(
    get, path = "/api/notifications", tag = "mail", params(Page),
    responses((status = 200, body = NotificationListView), Errors<401>),
)]
async fn list_notifications(
    State(service): State<MailService>,
    User(identity): User,
    page: Page,
) -> Result<Json<NotificationListView>, ApiError> {
    let user_id = Some(identity.user_id);
    let filter = MailFilter { user_id, without_links: true, ..MailFilter::default() };
    let (list, total) = service.list_mails(filter, page).await?;
    let views = list.iter().map(|mail| NotificationView::new(&service, mail)).collect();
    let Paged { items: notifications, pagination } = Paged::new(views, total, page);
    Ok(Json(NotificationListView { notifications, pagination }))
}
