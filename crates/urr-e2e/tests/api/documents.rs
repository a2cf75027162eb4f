//! The documents name tests and files that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).expect("a document")
}

fn read_sources(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).expect("a source file"));
        }
    }
}

/// The texts between single backticks.
fn quoted(document: &str) -> impl Iterator<Item = &str> {
    document.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut sources = String::new();
    read_sources(&root().join("crates"), &mut sources);
    let mut named = 0;
    for document in ["docs/LESSONS.md", "docs/INVARIANTS.md"] {
        let text = read(document);
        let is_test = |word: &&str| {
            word.matches('_').count() >= 3
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        for test in quoted(&text).filter(is_test) {
            let exists = sources.contains(&format!("fn {test}("));
            assert!(exists || test.ends_with('_'), "{document} names {test}, which does not exist");
            named += 1;
        }
    }
    assert!(named > 50, "only {named} tests were found in the documents");
}

#[test]
fn every_lesson_has_a_test() {
    let mut sources = String::new();
    read_sources(&root().join("crates"), &mut sources);
    let text = read("docs/LESSONS.md");
    let (lessons, _) = text.split_once("Tests of pages").expect("two tables");
    let cells = lessons.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let mut count = 0;
    for id in cells.filter(|cell| cell.contains('-')) {
        let name = id.to_lowercase().replace('-', "_");
        let exists =
            sources.contains(&format!("fn {name}_")) || sources.contains(&format!("_{name}_"));
        assert!(exists, "no test has the id {id} in its name");
        count += 1;
    }
    assert!(count > 80, "only {count} lessons were found");
}

#[test]
fn every_file_that_a_document_names_exists() {
    for document in ["docs/ARCHITECTURE.md", "docs/INVARIANTS.md", "CONTRIBUTING.md"] {
        let text = read(document);
        for path in quoted(&text).filter(|word| word.starts_with("urr-") && word.contains('/')) {
            let exists = root().join("crates").join(path).exists();
            assert!(exists, "{document} names {path}, which does not exist");
        }
    }
}
