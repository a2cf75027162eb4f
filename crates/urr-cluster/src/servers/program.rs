//! Finds the programs that `scripts/install-test-servers.sh` installs, and runs those that end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const HINT: &str = "run scripts/install-test-servers.sh";

/// An environment variable that says how tests run; set but empty counts as not set.
#[expect(clippy::disallowed_methods, reason = "no configuration of URR: it says how tests run")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A program on the `PATH`.
pub(super) fn find(owner: &str, name: &str) -> Result<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    match std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("{owner}'s {name} was not found; {HINT}"),
    }
}

/// One of PostgreSQL's programs. Debian keeps them off the `PATH`, in a folder per version; the
/// newest that is complete is taken.
pub(super) fn find_postgres(name: &str) -> Result<PathBuf> {
    let is_complete = |folder: &PathBuf| {
        ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file())
    };
    let newest = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .map(|version| (version, PathBuf::from(format!("/usr/lib/postgresql/{version}/bin"))))
        .filter(|(_, folder)| is_complete(folder))
        .max();
    match newest {
        Some((_, folder)) => Ok(folder.join(name)),
        None => find("PostgreSQL", name),
    }
}

/// Where the install script keeps what is no package of the system.
fn cache(owner: &str) -> Result<PathBuf> {
    match (variable("URR_TEST_CACHE"), variable("XDG_CACHE_HOME"), variable("HOME")) {
        (Some(cache), _, _) => Ok(PathBuf::from(cache)),
        (None, Some(caches), _) => Ok(Path::new(&caches).join("urr-test")),
        (None, None, Some(home)) => Ok(Path::new(&home).join(".cache/urr-test")),
        (None, None, None) => bail!("{owner} is looked for in URR_TEST_CACHE, which is not set"),
    }
}

/// The program that tries an interface by its description.
pub(super) fn find_schemathesis() -> Result<PathBuf> {
    let program = cache("Schemathesis")?.join("schemathesis/bin/schemathesis");
    if !program.is_file() {
        bail!("Schemathesis was not found at {}; {HINT}", program.display());
    }
    Ok(program)
}

/// The Java class path of what was downloaded into the cache under this name.
pub(super) fn find_jars(owner: &str, name: &str) -> Result<OsString> {
    let cache = cache(owner)?;
    let jars = cache.join(name);
    if !jars.is_dir() {
        bail!("{owner}'s jars were not found in {}; {HINT}", jars.display());
    }
    Ok(jars.join("*").into_os_string())
}

/// Runs a program to its end and gives what it printed; what it complained of is in the error.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{name} could not be started; {HINT}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed with {}:\n{}{}", output.status, printed, complaint.trim_end());
    }
    Ok(printed)
}
