//! Compares messages with their golden files. `UPDATE_GOLDEN=1 cargo test -p urr-contracts`
//! rewrites the files; the difference is then read in the review.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use urr_kernel::{Timestamp, Uuid};

/// The golden files of one folder, and which of them a sample was compared with.
pub struct GoldenFolder {
    folder: PathBuf,
    seen: BTreeSet<String>,
    is_update: bool,
}

impl GoldenFolder {
    pub fn open(name: &str) -> GoldenFolder {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
        let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
        GoldenFolder { folder, seen: BTreeSet::new(), is_update }
    }

    /// The sample is written as its file, and its file is read as the sample.
    pub fn check<T>(&mut self, name: &str, sample: &T)
    where
        T: Serialize + DeserializeOwned + PartialEq + Debug,
    {
        let file = format!("{name}.v1.json");
        let path = self.folder.join(&file);
        let written = serde_json::to_string_pretty(sample).expect("a message is plain JSON") + "\n";
        if self.is_update {
            fs::write(&path, &written).expect("the golden folder is writable");
        }
        let golden = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{file}: {error}; run with UPDATE_GOLDEN=1"));
        assert_eq!(written, golden, "{file} differs; is the change compatible with old readers?");
        let read: T = serde_json::from_str(&golden)
            .unwrap_or_else(|error| panic!("{file} cannot be read: {error}"));
        assert_eq!(&read, sample, "{file}");
        assert!(self.seen.insert(file), "{name} has two samples");
    }

    /// Every expected message had a sample, and every file belongs to a message.
    pub fn finish(self, expected: impl IntoIterator<Item = String>) {
        let expected: BTreeSet<String> =
            expected.into_iter().map(|name| format!("{name}.v1.json")).collect();
        assert_eq!(expected, self.seen, "messages on the left, samples on the right");
        let files = fs::read_dir(&self.folder).expect("the golden folder is there");
        let files: BTreeSet<String> = files
            .map(|file| file.expect("a file").file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".v1.json"))
            .collect();
        assert_eq!(files, self.seen, "files on the left, messages on the right");
    }
}

pub fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0198_b7a0_0000_7000_8000_0000_0000_0000 + number)
}

pub fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}
