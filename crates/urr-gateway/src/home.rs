//! The page at `/`: what this is and where to go.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;

const PAGE: &str = include_str!("home.html");
const STYLE: &str = include_str!("home.css");

pub async fn home() -> impl IntoResponse {
    let policy = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'";
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, policy)], PAGE)
}

pub async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}
