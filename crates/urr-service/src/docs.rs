//! The reference of the interface: the OpenAPI documents of all services merged into one, and a
//! small page of our own to read it with. No script or style comes from elsewhere: the viewers that
//! can be bundled (Swagger UI) are 4 MB instead of 11 kB and need inline styles, which our content
//! security policy forbids.

use std::collections::BTreeMap;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{
    Components, ContentBuilder, Info, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    Response as ApiResponse, ResponseBuilder,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use crate::ErrorBody;

const PAGE: &str = include_str!("docs/index.html");
const SCRIPT: &str = include_str!("docs/docs.js");
const STYLE: &str = include_str!("docs/docs.css");
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Two services describe different schemas under one name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schema {schema} of {first} differs from that of {second}: rename one of the types")]
pub struct SchemaConflict {
    pub schema: String,
    pub first: &'static str,
    pub second: &'static str,
}

/// Merges the documents of all services, given with their names, and adds the shared error body.
///
/// utoipa would silently keep one of two different schemas of one name, so that clients generated
/// from the document read the other one wrongly.
pub fn merge_openapi(
    version: &str,
    services: impl IntoIterator<Item = (&'static str, OpenApi)>,
) -> Result<OpenApi, SchemaConflict> {
    let mut components = Components::new();
    components.schemas.insert(ErrorBody::name().into_owned(), ErrorBody::schema());
    let mut merged =
        OpenApiBuilder::new().info(about(version)).components(Some(components)).build();
    let mut owners: BTreeMap<String, &'static str> = BTreeMap::new();
    for (service, document) in services {
        let schemas = document.components.iter().flat_map(|components| &components.schemas);
        for (name, schema) in schemas {
            let known = merged.components.as_ref().and_then(|all| all.schemas.get(name));
            if known.is_some_and(|known| known != schema) {
                let first = owners.get(name).copied().unwrap_or("all services");
                return Err(SchemaConflict { schema: name.clone(), first, second: service });
            }
            owners.entry(name.clone()).or_insert(service);
        }
        merged.merge(document);
    }
    for item in merged.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            add_common_answers(operation);
        }
    }
    Ok(merged)
}

/// The refusals of an operation, by status, for `#[utoipa::path(responses(…, Errors<401, 404>))]`.
/// What any operation may answer ([`COMMON`]) need not be named.
pub struct Errors<
    const A: u16,
    const B: u16 = 0,
    const C: u16 = 0,
    const D: u16 = 0,
    const E: u16 = 0,
    const F: u16 = 0,
>;

impl<const A: u16, const B: u16, const C: u16, const D: u16, const E: u16, const F: u16>
    IntoResponses for Errors<A, B, C, D, E, F>
{
    fn responses() -> BTreeMap<String, RefOr<ApiResponse>> {
        let statuses = [A, B, C, D, E, F].into_iter().filter(|status| *status > 0);
        statuses.map(|status| (status.to_string(), error_answer(description_of(status)))).collect()
    }
}

fn description_of(status: u16) -> &'static str {
    match status {
        401 => "There is no login, or it is not valid any more.",
        402 => "The payment was declined.",
        403 => "This user may not do this.",
        404 => "There is no such thing, or it is not this user's.",
        409 => "The present state does not allow it; `code` says why.",
        410 => "It has expired.",
        422 => "The idempotency key belongs to another request, or the content is not acceptable.",
        _ => "`code` says why.",
    }
}

fn error_answer(description: &str) -> RefOr<ApiResponse> {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name())));
    let answer = ResponseBuilder::new().description(description);
    RefOr::T(answer.content("application/json", body.build()).build())
}

/// What the gateway may answer to any operation.
const COMMON: [(&str, &str); 5] = [
    ("400", "The address, a header or the body is not acceptable."),
    ("429", "Too many requests; `Retry-After` says when to come back."),
    ("431", "The headers are too large."),
    ("503", "The service is not available or too busy; `Retry-After` says when to come back."),
    ("504", "The answer took too long."),
];

/// And to a request with a body.
const COMMON_WITH_BODY: [(&str, &str); 3] = [
    ("408", "The body did not arrive in time."),
    ("413", "The body is too large."),
    ("415", "The body is not JSON."),
];

fn add_common_answers(operation: &mut Operation) {
    let with_body = operation.request_body.is_some();
    let answers = COMMON.iter().chain(COMMON_WITH_BODY.iter().filter(|_| with_body));
    for (status, description) in answers {
        let answers = &mut operation.responses.responses;
        answers.entry((*status).to_owned()).or_insert_with(|| error_answer(description));
    }
}

fn about(version: &str) -> Info {
    let description = "Every refusal has the body ErrorBody and a status that says whose turn it \
                       is: 4xx yours, 5xx ours.";
    let about = InfoBuilder::new().title("URR").version(version);
    about.description(Some(description)).build()
}

/// `/docs`, its script and style, and `/docs/openapi.json`.
pub fn docs_router(openapi: &OpenApi) -> Router {
    let json = openapi.to_json().expect("an OpenAPI document is plain data");
    let file = |kind: &'static str, content: Bytes| get(async move || answer(kind, content));
    let text = |text: &'static str| Bytes::from_static(text.as_bytes());
    Router::new()
        .route("/docs", file("text/html; charset=utf-8", text(PAGE)))
        .route("/docs/docs.js", file("text/javascript; charset=utf-8", text(SCRIPT)))
        .route("/docs/docs.css", file("text/css; charset=utf-8", text(STYLE)))
        .route("/docs/openapi.json", file("application/json", json.into()))
}

fn answer(kind: &'static str, content: Bytes) -> Response {
    let headers =
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, content).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;
    use utoipa::openapi::schema::Type;
    use utoipa::openapi::{ComponentsBuilder, ObjectBuilder};

    use super::*;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let all = [PAGE, SCRIPT, STYLE];
        let bytes: usize = all.iter().map(|file| file.len()).sum();
        assert!(bytes < 15_000, "{bytes} bytes");
        for file in all {
            assert!(!file.contains("//cdn") && !file.contains("https://"), "{file}");
        }
        assert!(!PAGE.contains("<script>") && !PAGE.contains("style="));
    }

    #[tokio::test]
    async fn the_page_and_its_files_are_served_under_a_strict_policy() {
        let router = docs_router(&merge_openapi("1", []).unwrap());
        for (path, kind) in [
            ("/docs", "text/html"),
            ("/docs/docs.js", "text/javascript"),
            ("/docs/docs.css", "text/css"),
            ("/docs/openapi.json", "application/json"),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let headers = response.headers();
            assert!(headers[CONTENT_TYPE].to_str().unwrap().starts_with(kind));
            assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
        }
    }

    #[test]
    fn services_are_merged_into_one_document_with_the_error_body() {
        #[utoipa::path(get, path = "/api/seats", responses((status = 200, body = String)))]
        #[expect(dead_code, reason = "only its description matters")]
        async fn list_seats() {}
        #[derive(utoipa::OpenApi)]
        #[openapi(paths(list_seats))]
        struct Seats;
        let merged =
            merge_openapi("1.2.3", [("seats", <Seats as utoipa::OpenApi>::openapi())]).unwrap();
        let json = serde_json::to_value(&merged).unwrap();
        assert_eq!(json["info"]["version"], "1.2.3");
        assert_eq!(json["paths"]["/api/seats"]["get"]["operationId"], "list_seats");
        assert!(json["components"]["schemas"]["ErrorBody"]["properties"]["traceId"].is_object());
    }

    fn with_schema(property: &str) -> OpenApi {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let schema = ObjectBuilder::new().property(property, text).build();
        let components = ComponentsBuilder::new().schema("SeatView", schema).build();
        OpenApiBuilder::new().components(Some(components)).build()
    }

    #[test]
    fn two_different_schemas_of_one_name_are_refused() {
        let merge = |first, second| {
            let documents = [("ticket", with_schema(first)), ("stats", with_schema(second))];
            merge_openapi("1", documents).map(|_| ())
        };
        assert_eq!(merge("row", "row"), Ok(()), "control: equal schemas may meet");
        let conflict = merge("row", "section").unwrap_err();
        assert_eq!((conflict.first, conflict.second), ("ticket", "stats"));
        assert!(conflict.to_string().contains("SeatView"), "{conflict}");
    }
}
