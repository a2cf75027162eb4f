//! The OpenAPI document of all services, with an example for the operations where it helps.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use urr_service::{SchemaConflict, merge_openapi};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, OpenApi, PathItem, RefOr};

use crate::role::ProcessRole;

/// Examples by method and path, in a file of their own to keep the handlers readable.
const EXAMPLES: &str = include_str!("openapi/examples.json");
const JSON: &str = "application/json";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationExample {
    request: Option<Value>,
    /// The body of the successful response.
    response: Option<Value>,
}

/// The document that `/docs/openapi.json` serves.
pub fn document() -> Result<OpenApi, SchemaConflict> {
    let services = ProcessRole::ALL.into_iter();
    let services = services.filter_map(|role| Some((role.name(), role.openapi()?)));
    let mut document = merge_openapi(env!("CARGO_PKG_VERSION"), services)?;
    let mut examples = examples();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            if let Some(example) = examples.remove(&format!("{method} {path}")) {
                add_example(operation, example);
            }
        }
    }
    Ok(document)
}

fn examples() -> BTreeMap<String, OperationExample> {
    serde_json::from_str(EXAMPLES).expect("a test reads the examples")
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn add_example(operation: &mut Operation, example: OperationExample) {
    if let Some(content) = request_content(operation) {
        content.example = example.request;
    }
    if let Some(content) = success_content(operation) {
        content.example = example.response;
    }
}

fn request_content(operation: &mut Operation) -> Option<&mut Content> {
    operation.request_body.as_mut()?.content.get_mut(JSON)
}

fn success_content(operation: &mut Operation) -> Option<&mut Content> {
    let responses = &mut operation.responses.responses;
    let (_, response) = responses.iter_mut().find(|(status, _)| status.starts_with('2'))?;
    match response {
        RefOr::T(response) => response.content.get_mut(JSON),
        RefOr::Ref(_) => None,
    }
}

#[cfg(test)]
mod tests;
