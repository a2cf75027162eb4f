//! The answer to a request that goes no further.

use axum::response::{IntoResponse, Response};
use urr_service::ApiError;

/// What a step of the way answers instead of letting a request pass.
#[derive(Debug)]
pub struct Refused(Box<Response>);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Refused {
        Refused(Box::new(error.into_response()))
    }
}

impl From<Response> for Refused {
    fn from(response: Response) -> Refused {
        Refused(Box::new(response))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}
