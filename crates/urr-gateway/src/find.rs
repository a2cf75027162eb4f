//! Looking a request up in the table of routes.

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::IntoResponse;
use urr_service::ApiError;

use crate::Gateway;
use crate::refused::Refused;
use crate::routes::{Found, Methods, Route, match_route};

/// The row of a request and its place in the table. A service that this installation does not have
/// is not there for anybody.
pub fn find(
    gateway: &Gateway,
    method: &Method,
    path: &str,
) -> Result<(usize, &'static Route), Refused> {
    match match_route(method, path) {
        Found::Route(position, route) if gateway.has(route) => Ok((position, route)),
        Found::OtherMethods(methods) => Err(other_methods(methods)),
        Found::Route(..) | Found::Nothing => {
            Err(ApiError::not_found("NOT_FOUND", "There is nothing at this address.").into())
        }
    }
}

fn other_methods(methods: Methods) -> Refused {
    let sentence = "This address does not answer to this method.";
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", sentence);
    let mut response = error.into_response();
    let names = HeaderValue::from_str(&methods.names()).expect("names of methods are ASCII");
    response.headers_mut().insert(header::ALLOW, names);
    response.into()
}
