//! Rules for the OpenAPI document: schemas are unique, operations are described, examples are true.

use std::fs;
use std::path::{Path, PathBuf};

use urr_test::snapshot;

use super::*;

/// The names of the schemas that a source file declares.
fn schemas_in(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    for declaration in source.split("#[derive(").skip(1) {
        let Some((derives, rest)) = declaration.split_once(")]") else { continue };
        if !derives.contains("ToSchema") {
            continue;
        }
        let mut words =
            rest.split_whitespace().skip_while(|word| !["struct", "enum"].contains(word));
        let name = words.nth(1).unwrap_or_default();
        let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
        names.push(name[..end].to_owned());
    }
    names
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Two types of one name become one schema, and clients read the wrong one. `merge_openapi` sees
/// that between services; within a service only the sources show it.
#[test]
fn a_schema_name_is_declared_once() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut declared: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let mut files = Vec::new();
        let sources = entry.unwrap().path().join("src");
        if sources.is_dir() {
            rust_files(&sources, &mut files);
        }
        for file in files {
            for name in schemas_in(&fs::read_to_string(&file).unwrap()) {
                declared.entry(name).or_default().push(file.clone());
            }
        }
    }
    assert!(declared.len() > 100, "{} schemas: the scan finds them", declared.len());
    let repeated: Vec<_> = declared.into_iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(repeated.is_empty(), "{repeated:#?}");
}

#[test]
fn the_schema_scan_finds_two_types_of_one_name() {
    let source = "#[derive(Debug, Serialize, ToSchema)]\n#[serde(x)]\npub struct SampleView {}\n\
                  #[derive(Clone)]\nstruct Other;\n#[derive(ToSchema)]\nenum SampleView<T> {}";
    assert_eq!(schemas_in(source), ["SampleView", "SampleView"]);
}

#[test]
fn schemas_of_different_services_do_not_collide() {
    document().unwrap();
}

/// Client generators refuse a document with a reference to a schema that is not there.
#[test]
fn every_reference_leads_to_a_schema() {
    let document = document().unwrap();
    let text = serde_json::to_string(&document).unwrap();
    let schemas = document.components.unwrap().schemas;
    let names = text.split("\"#/components/schemas/").skip(1);
    let missing: Vec<&str> = names
        .filter_map(|rest| rest.split('"').next())
        .filter(|name| !schemas.contains_key(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_operation_has_a_summary_and_a_description() {
    let mut document = document().unwrap();
    let mut missing = Vec::new();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let is_empty = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
            if is_empty(&operation.summary) || is_empty(&operation.description) {
                missing.push(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_document_in_the_repository_is_fresh() {
    let document = serde_json::to_value(document().unwrap()).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    snapshot::assert_fresh("docs/openapi.json", &text);
}

#[test]
fn every_example_has_an_operation_and_the_shape_of_its_schema() {
    let mut document = document().unwrap();
    let schemas = serde_json::to_value(document.components.as_ref().unwrap()).unwrap();
    let mut examples = examples();
    let mut problems = Vec::new();
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let name = format!("{method} {path}");
            let Some(example) = examples.remove(&name) else { continue };
            let contents = [
                ("request", example.request, request_content(operation).cloned()),
                ("response", example.response, success_content(operation).cloned()),
            ];
            for (side, value, content) in contents {
                let Some(value) = value else { continue };
                let Some(schema) = content.and_then(|content| content.schema) else {
                    problems.push(format!("{name} {side}: it has no JSON body"));
                    continue;
                };
                let schema = serde_json::to_value(schema).unwrap();
                check_shape(&value, &schema, &schemas, &format!("{name} {side}"), &mut problems);
            }
        }
    }
    problems.extend(examples.into_keys().map(|name| format!("{name}: there is no operation")));
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Names properties of `value` that the schema does not have, and required ones that are missing.
fn check_shape(
    value: &Value,
    schema: &Value,
    schemas: &Value,
    at: &str,
    problems: &mut Vec<String>,
) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return check_shape(value, &schemas["schemas"][name], schemas, at, problems);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        // Parts of one object: each knows only some of the properties.
        let mut missing = Vec::new();
        check_shape(value, part, schemas, at, &mut missing);
        problems.extend(missing.into_iter().filter(|problem| problem.ends_with("is missing")));
    }
    if let Some(variants) = schema["oneOf"].as_array() {
        let fits = |variant: &Value| {
            let mut problems = Vec::new();
            check_shape(value, variant, schemas, at, &mut problems);
            problems.is_empty() && (variant["type"] == "null") == value.is_null()
        };
        if !variants.iter().any(fits) {
            problems.push(format!("{at} fits no variant"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        check_shape(item, &schema["items"], schemas, at, problems);
    }
    let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    for (name, field) in fields {
        match properties.get(name) {
            Some(schema) => check_shape(field, schema, schemas, &format!("{at} {name}"), problems),
            None => problems.push(format!("{at} {name} is unknown")),
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            problems.push(format!("{at} {name} is missing"));
        }
    }
}
