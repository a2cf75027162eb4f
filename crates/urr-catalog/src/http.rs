//! The catalogue over HTTP.

mod admin_events;
mod artists;
mod audit;
mod cached;
mod errors;
mod event_bodies;
mod events;
mod halls;
pub mod images;
mod internal;
mod multipart;
mod venues;
mod views;

use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use urr_kernel::CallContext;
use urr_service::{Identity, Limits};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::{Actor, Catalog};

pub fn routes() -> OpenApiRouter<Catalog> {
    let usual = OpenApiRouter::new()
        .routes(routes!(artists::list_artists))
        .routes(routes!(artists::get_artist))
        .routes(routes!(artists::create_artist))
        .routes(routes!(artists::edit_artist))
        .routes(routes!(venues::list_venues))
        .routes(routes!(venues::get_venue))
        .routes(routes!(venues::create_venue))
        .routes(routes!(venues::edit_venue, venues::delete_venue))
        .routes(routes!(halls::create_hall))
        .routes(routes!(halls::get_hall, halls::edit_hall, halls::delete_hall))
        .routes(routes!(halls::list_seat_layouts))
        .routes(routes!(events::list_events))
        .routes(routes!(events::get_event))
        .routes(routes!(admin_events::list_admin_events, admin_events::create_event))
        .routes(routes!(
            admin_events::get_admin_event,
            admin_events::edit_event,
            admin_events::delete_event
        ))
        .routes(routes!(admin_events::cancel_event))
        .routes(routes!(admin_events::get_dashboard))
        .routes(routes!(audit::list_audit_log))
        .routes(routes!(images::get_image))
        .route("/internal/catalog/events/{id}", get(internal::get_event))
        .layer(DefaultBodyLimit::max(Limits::default().body_bytes_max));
    // Only pictures may be larger than everything else.
    usual.routes(routes!(images::upload_image))
}

/// An administrator at work.
fn actor(identity: &Identity, context: CallContext) -> Actor {
    Actor { admin_id: identity.user_id, context }
}
