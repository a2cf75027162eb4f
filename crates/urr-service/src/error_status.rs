//! Error answers in the interface description.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};

/// An error answer with this status and the usual body, for the `responses` of a handler:
///
/// ```text
/// responses((status = 200, body = ArtistView), ErrorStatus<400>, ErrorStatus<404>)
/// ```
pub struct ErrorStatus<const STATUS: u16>;

impl<const STATUS: u16> IntoResponses for ErrorStatus<STATUS> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
        let response = ResponseBuilder::new().content("application/json", body).build();
        BTreeMap::from([(STATUS.to_string(), response.into())])
    }
}
