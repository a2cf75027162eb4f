//! Puts a backup back as a data folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::manifest::{BackupManifest, fingerprint};
use super::{create_private, sync_folder};
use crate::config::secrets_path;

/// What to restore, and where.
#[derive(Debug)]
pub struct RestorePlan<'a> {
    pub backup: &'a Path,
    /// Must be absent or empty.
    pub folder: &'a Path,
    /// The copy of `secrets.toml`, unless secrets come from elsewhere.
    pub secrets: Option<&'a Path>,
    /// Whether those who waited come back into their lines.
    pub with_lines: bool,
}

/// Restores into a folder beside the target, which gets its name when it is complete: a crash leaves
/// nothing that `urr up` would start on.
pub fn restore(plan: &RestorePlan<'_>) -> Result<BackupManifest> {
    let manifest = BackupManifest::verify(plan.backup)?;
    require_empty(plan.folder)?;
    check_secrets(plan, &manifest)?;
    let partial = beside(plan.folder)?;
    match fs::remove_dir_all(&partial) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| partial.display().to_string()),
    }
    create_private(&partial).with_context(|| partial.display().to_string())?;
    let lines = format!("{}.db", urr_room::JOURNAL.name);
    for file in manifest.files.iter().filter(|file| plan.with_lines || file.name != lines) {
        copy_private(&plan.backup.join(&file.name), &partial.join(&file.name))?;
    }
    if let Some(secrets) = plan.secrets {
        copy_private(secrets, &secrets_path(&partial))?;
    }
    sync_folder(&partial)?;
    // Replaces an empty folder.
    fs::rename(&partial, plan.folder).with_context(|| plan.folder.display().to_string())?;
    sync_folder(&parent(plan.folder)?)?;
    Ok(manifest)
}

fn require_empty(folder: &Path) -> Result<()> {
    match fs::read_dir(folder) {
        Ok(mut entries) => ensure!(
            entries.next().is_none(),
            "{} is not empty; move it away, or choose another folder with --data",
            folder.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| folder.display().to_string()),
    }
    Ok(())
}

/// Other secrets would make every stored account and ticket unreadable.
fn check_secrets(plan: &RestorePlan<'_>, manifest: &BackupManifest) -> Result<()> {
    let Some(expected) = &manifest.secrets_fingerprint else { return Ok(()) };
    match plan.secrets {
        None => bail!(
            "this backup needs the secrets.toml of its installation; name your copy with --secrets"
        ),
        Some(secrets) if fingerprint(secrets)? != *expected => bail!(
            "{} is not the secrets.toml of this backup; accounts and tickets could not be read",
            secrets.display()
        ),
        Some(_) => Ok(()),
    }
}

fn copy_private(from: &Path, to: &Path) -> Result<()> {
    let copy = || -> io::Result<()> {
        fs::copy(from, to)?;
        fs::set_permissions(to, PermissionsExt::from_mode(0o600))?;
        File::open(to)?.sync_all()
    };
    copy().with_context(|| to.display().to_string())
}

/// `data` becomes `data.restoring`.
fn beside(folder: &Path) -> Result<PathBuf> {
    let mut name = folder.file_name().context("the data folder has no name")?.to_owned();
    name.push(".restoring");
    Ok(parent(folder)?.join(name))
}

fn parent(folder: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(folder)?;
    let parent = absolute.parent().context("the data folder is in no folder")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    Ok(parent.to_owned())
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;

    use super::super::manifest::BackupFile;
    use super::*;

    /// A backup of two files, and the secrets that belong to it.
    fn backup() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (backup, secrets) = (folder.path().join("backup"), folder.path().join("secrets.toml"));
        fs::create_dir(&backup).unwrap();
        fs::write(&secrets, "the secrets").unwrap();
        let names = ["bus.db", "queue_room.db"];
        names.iter().for_each(|name| fs::write(backup.join(name), name).unwrap());
        let manifest = BackupManifest {
            program: "1".to_owned(),
            made_at: Timestamp::UNIX_EPOCH,
            pause_ms: 1,
            secrets_fingerprint: Some(fingerprint(&secrets).unwrap()),
            files: names.map(|name| BackupFile::read(&backup, name).unwrap()).to_vec(),
        };
        manifest.write(&backup).unwrap();
        (folder, backup, secrets)
    }

    fn refused(plan: &RestorePlan<'_>, part: &str) {
        let error = format!("{:#}", restore(plan).unwrap_err());
        assert!(error.contains(part), "{part:?} is not in {error}");
        assert!(!beside(plan.folder).unwrap().exists(), "nothing was begun");
    }

    #[test]
    fn a_backup_comes_back_as_it_was_and_private() {
        let (folder, backup, secrets) = backup();
        let target = folder.path().join("data");
        let plan = RestorePlan {
            backup: &backup,
            folder: &target,
            secrets: Some(&secrets),
            with_lines: false,
        };
        // As a crash leaves it.
        fs::create_dir(beside(&target).unwrap()).unwrap();
        restore(&plan).unwrap();
        assert_eq!(fs::read_to_string(target.join("bus.db")).unwrap(), "bus.db");
        assert!(!target.join("queue_room.db").exists(), "the lines were left out");
        let mode = fs::metadata(target.join("secrets.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = restore(&plan).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_written() {
        let (folder, backup, secrets) = backup();
        let (target, others) = (folder.path().join("data"), folder.path().join("others.toml"));
        fs::write(&others, "other secrets").unwrap();
        let plan =
            |secrets| RestorePlan { backup: &backup, folder: &target, secrets, with_lines: true };
        refused(&plan(None), "--secrets");
        refused(&plan(Some(&others)), "is not the secrets.toml of this backup");
        let elsewhere = RestorePlan { backup: folder.path(), ..plan(Some(&secrets)) };
        refused(&elsewhere, "it has no manifest");
        fs::write(backup.join("bus.db"), "bus.dc").unwrap();
        refused(&plan(Some(&secrets)), "bus.db of ");
        fs::remove_file(backup.join("bus.db")).unwrap();
        refused(&plan(Some(&secrets)), "bus.db");
        fs::write(backup.join("bus.db"), "bus.db").unwrap();
        restore(&plan(Some(&secrets))).unwrap();
        assert!(target.join("queue_room.db").exists());
    }

    #[test]
    fn a_manifest_cannot_name_files_elsewhere() {
        let (folder, backup, secrets) = backup();
        let text = fs::read_to_string(backup.join("manifest.json")).unwrap();
        fs::write(backup.join("manifest.json"), text.replace("bus.db", "../secrets.toml")).unwrap();
        let target = folder.path().join("data");
        let plan = RestorePlan {
            backup: &backup,
            folder: &target,
            secrets: Some(&secrets),
            with_lines: true,
        };
        refused(&plan, "is no file of a backup");
    }
}
