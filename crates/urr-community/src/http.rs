//! The routes of the community.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use urr_service::admin_log::{self, AdminLogRoute};
use urr_service::{ApiError, Context, Identity, User};
use utoipa_axum::router::OpenApiRouter;

use crate::{CommunityActor, CommunityService, comments, moderation, posts};

const ADMIN_LOG: AdminLogRoute = AdminLogRoute {
    path: "/api/admin/community/log",
    operation_id: "list_community_admin_actions",
    tag: "admin",
};

pub fn routes() -> OpenApiRouter<CommunityService> {
    OpenApiRouter::new()
        .merge(posts::http::routes())
        .merge(posts::news_http::routes())
        .merge(comments::http::routes())
        .merge(moderation::http::routes())
        .merge(admin_log::routes(ADMIN_LOG))
}

impl CommunityActor {
    /// Somebody whose role a handler has checked.
    pub fn of(identity: &Identity, Context(context): Context) -> CommunityActor {
        CommunityActor { user_id: identity.user_id, role: identity.role, context }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for CommunityActor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<CommunityActor, ApiError> {
        let User(identity) = User::from_request_parts(parts, state).await?;
        let context = Context::from_request_parts(parts, state).await?;
        Ok(CommunityActor::of(&identity, context))
    }
}
