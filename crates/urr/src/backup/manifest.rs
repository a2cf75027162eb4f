//! What a backup consists of, with hashes.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use urr_kernel::{Timestamp, hex};

pub const MANIFEST_FILE: &str = "manifest.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    /// The version of the program that made it.
    pub program: String,
    /// All files show this moment.
    pub made_at: Timestamp,
    /// For how long nothing could be written.
    pub pause_ms: u64,
    /// Of `secrets.toml`, which is kept elsewhere: tells whether another one fits.
    pub secrets_fingerprint: Option<String>,
    pub files: Vec<BackupFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

impl BackupFile {
    pub fn read(folder: &Path, name: &str) -> Result<BackupFile> {
        let path = folder.join(name);
        let bytes = fs::metadata(&path).with_context(|| path.display().to_string())?.len();
        Ok(BackupFile { name: name.to_owned(), bytes, sha256: hash(&path, "")? })
    }

    /// A file of ours: it can only be in the folder itself.
    fn has_plain_name(&self) -> bool {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !self.name.is_empty() && !self.name.starts_with('.') && self.name.chars().all(is_plain)
    }
}

impl BackupManifest {
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let path = folder.join(MANIFEST_FILE);
        fs::write(&path, text)?;
        File::open(&path)?.sync_all().context("the manifest")
    }

    /// Reads the manifest of a backup and compares every file with it.
    pub fn verify(folder: &Path) -> Result<BackupManifest> {
        let path = folder.join(MANIFEST_FILE);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{} is no backup: it has no manifest", folder.display()))?;
        let manifest: BackupManifest =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for file in &manifest.files {
            ensure!(file.has_plain_name(), "{:?} is no file of a backup", file.name);
            let found = BackupFile::read(folder, &file.name)?;
            ensure!(
                found == *file,
                "{} of {} is not what was backed up; use another backup",
                file.name,
                folder.display()
            );
        }
        Ok(manifest)
    }
}

/// Tells a file of secrets from another one, and nothing else about it.
pub fn fingerprint(secrets: &Path) -> Result<String> {
    hash(secrets, "urr-backup-secrets:")
}

fn hash(path: &Path, prefix: &str) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let (mut sha256, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    sha256.update(prefix);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(sha256.finalize())),
            count => sha256.update(&buffer[..count]),
        }
    }
}
