//! Ends a stream with the token that opened it: who is logged out, or has lost a role, sees nothing
//! more.

use std::future::ready;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures_util::StreamExt;

use crate::Gateway;
use crate::authenticate::{LiveToken, Requester};

/// The response; a stream of server-sent events ends when its token expires, and with the first
/// message after its token was revoked.
pub fn end_with_token(gateway: &Gateway, requester: Requester, response: Response) -> Response {
    let Requester::User { token, .. } = requester else { return response };
    if !is_event_stream(&response) {
        return response;
    }
    let LiveToken { id, expires_at } = token;
    let rest = expires_at.duration_since(gateway.clock.now());
    let expired = tokio::time::sleep(Duration::try_from(rest).unwrap_or(Duration::ZERO));
    let feed = gateway.feed.clone();
    let is_revoked = move || feed.as_ref().is_some_and(|feed| feed.is_revoked(id) == Some(true));
    response.map(|body| {
        let messages = body.into_data_stream().take_until(expired);
        Body::from_stream(messages.take_while(move |_| ready(!is_revoked())))
    })
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}
