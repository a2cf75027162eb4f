//! The settings in force.

use axum::extract::State;
use serde::Serialize;
use urr_service::{Admin, ApiError, Errors, Json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::CatalogService;

/// A setting. Its value is fit to be shown: secrets are not in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SettingInForce {
    #[schema(example = "queue.threshold")]
    pub key: String,
    #[schema(example = "1000")]
    pub value: String,
    /// Where it comes from: the default, a file or an environment variable.
    #[schema(example = "default")]
    pub source: String,
    /// The environment variables that set it.
    pub environment: Vec<String>,
    /// What it is for.
    pub comment: String,
}

#[derive(Serialize, ToSchema)]
struct SettingsView<'a> {
    settings: &'a [SettingInForce],
}

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(list_settings))
}

/// Lists the settings in force.
///
/// For administrators. Those of the process that answers, with their sources, as `urr config` prints
/// them. Secrets are masked.
#[utoipa::path(
    get, path = "/api/admin/settings", tag = "admin",
    responses((status = 200, body = SettingsView<'static>), Errors<401, 403>),
)]
async fn list_settings(
    State(catalog): State<CatalogService>,
    _admin: Admin,
) -> Result<Json<serde_json::Value>, ApiError> {
    let settings = catalog.operations().map_or(&[][..], |operations| &operations.settings);
    let view = serde_json::to_value(SettingsView { settings });
    view.map(Json).map_err(ApiError::internal)
}
