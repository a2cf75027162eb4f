//! Files in the repository that are made by the program and must stay fresh.

use std::fs;
use std::path::{Path, PathBuf};

/// Compares a file of the repository with what the program makes of it now. With
/// `URR_TEST_UPDATE=1` the file is written instead, to be read and committed.
pub fn assert_fresh(path_in_repository: &str, content: &str) {
    let path = repository().join(path_in_repository);
    if crate::servers::variable("URR_TEST_UPDATE").as_deref() == Some("1") {
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == content,
        "{path_in_repository} is not what the program makes; write it anew with \
         URR_TEST_UPDATE=1 and read the difference"
    );
}

fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is in crates/").to_owned()
}
