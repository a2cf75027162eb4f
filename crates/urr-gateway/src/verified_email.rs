//! Only users with a verified e-mail address ask for alerts, and buy if a setting says so.
//!
//! The access token says whether the address is verified. When a user verifies it, the auth service
//! revokes the tokens that say otherwise, so that the client refreshes.

use axum::http::Method;
use urr_service::ApiError;

use crate::Gateway;
use crate::authenticate::Requester;

/// What begins a purchase: holding seats or tickets, and ordering a payment for anything.
const PURCHASES: [&str; 4] =
    ["/api/seats/reserve", "/api/seats/best", "/api/reservations", "/api/payments/prepare"];

/// What asks for a mail later. Unverified addresses get none.
const ALERTS: &str = "/api/alerts/";

/// Refuses a purchase or an alert of a user whose address nobody has verified.
pub fn check(
    gateway: &Gateway,
    method: &Method,
    path: &str,
    requester: Requester,
) -> Result<(), ApiError> {
    let is_purchase = *method == Method::POST && PURCHASES.contains(&path);
    let is_unverified = matches!(requester, Requester::User { email_verified: false, .. });
    let is_alert = *method == Method::PUT && path.starts_with(ALERTS);
    let is_concerned = is_alert || (is_purchase && gateway.settings.verified_email_to_buy);
    if is_concerned && is_unverified {
        let sentence = "Please verify your e-mail address first.";
        return Err(ApiError::forbidden("EMAIL_NOT_VERIFIED", sentence));
    }
    Ok(())
}
