//! The secrets `urr up` makes for itself, in `secrets.toml` of the data folder.
//!
//! Only the owner may read the file. It is replaced as a whole, so a crash leaves the old one or
//! the new one; the folder is locked meanwhile, so two first starts agree on one set of secrets.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use urr_kernel::Secret;

use super::source::{TomlEntries, parse_toml};
use super::{Setting, is_absent};

const HEADER: &str = "# Made by `urr up`. Keep a copy: without these, log-ins end and encrypted \
                      data is lost.\n";

/// Tells that `urr up` has been started on a folder.
pub const FIRST_START_MARK: &str = "first-start-done";

pub fn secrets_path(data_dir: &Path) -> PathBuf {
    data_dir.join("secrets.toml")
}

/// The secrets made earlier; none when there is no file yet.
///
/// Keys that are not known are kept and not refused: after a step back to an older version, a
/// newer version's secret must still be there for the next step forward.
pub fn read(path: &Path) -> Result<TomlEntries, Vec<String>> {
    let text = read_private(path).map_err(|problem| vec![problem])?;
    parse_toml(&text, path)
}

/// The variables that give a process the secrets of a folder, with their values. `settings` are all
/// that there are.
pub fn variables(data_dir: &Path, settings: &[Setting]) -> Result<Vec<(String, String)>, String> {
    let entries = read(&secrets_path(data_dir)).map_err(|problems| problems.join("; "))?;
    let known = settings.iter().filter_map(|setting| {
        let entry = entries.get(&setting.key).filter(|entry| !entry.raw.is_empty())?;
        Some((setting.env_names.first()?.clone(), entry.raw.to_string()))
    });
    Ok(known.collect())
}

/// What to say if the folder was used before and its secrets are gone. New ones would not fit what is
/// stored there.
pub fn lost(data_dir: &Path) -> Option<String> {
    let path = secrets_path(data_dir);
    let is_empty = read(&path).is_ok_and(|entries| entries.is_empty());
    let was_used = data_dir.join(FIRST_START_MARK).exists();
    (is_empty && was_used).then(|| {
        format!(
            "{}: missing, but the data folder was used before; restore it from your copy: without \
             it nobody can log in, and neither personal data nor tickets can be read; to begin \
             anew, choose another folder with --data",
            path.display()
        )
    })
}

/// Makes the `missing` secrets and returns all that the file then holds.
pub fn create(data_dir: &Path, missing: &[String]) -> Result<TomlEntries, Vec<String>> {
    let path = secrets_path(data_dir);
    let cannot = |error: io::Error| {
        vec![format!("{}: cannot be written: {error}; it keeps the secrets", path.display())]
    };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(cannot)?;
    let folder = File::open(data_dir).map_err(cannot)?;
    folder.lock().map_err(cannot)?;

    // Another process may have made them while this one waited for the lock.
    let mut text = read_private(&path).map_err(|problem| vec![problem])?;
    let present = parse_toml(&text, &path)?;
    if text.is_empty() {
        text.push_str(HEADER);
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    for key in missing.iter().filter(|key| !present.contains_key(*key)) {
        text.push_str(&format!("{key} = \"{}\"\n", Secret::generate().expose()));
    }
    let entries = parse_toml(&text, &path)?;
    let is_absent = |key: &&String| entries.get(*key).is_none_or(|entry| entry.raw.is_empty());
    if let Some(key) = missing.iter().find(is_absent) {
        let shown = path.display();
        return Err(vec![format!(
            "{shown}: {key} has no value; remove its line and a new one is made"
        )]);
    }
    replace(&folder, &path, &text).map_err(cannot)?;
    Ok(entries)
}

/// The text of a file that only its owner may read; empty when there is none.
fn read_private(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let read = || {
        let mut file = File::open(path)?;
        let rights = file.metadata()?.permissions().mode();
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok((rights, text))
    };
    match read() {
        Ok((rights, _)) if rights & 0o077 != 0 => Err(format!(
            "{shown}: others than its owner can read or change it; run `chmod 600 {shown}`, and \
             replace the secrets if somebody may have seen them"
        )),
        Ok((_, text)) => Ok(text),
        Err(error) if is_absent(&error) => Ok(String::new()),
        Err(error) => Err(format!("{shown}: cannot be read: {error}")),
    }
}

/// Puts a new file in place of the old one, durably. The caller holds the lock on `folder`.
fn replace(folder: &File, path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("toml.new");
    match fs::remove_file(&temporary) {
        // A crash may have left one.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    folder.sync_all()
}
