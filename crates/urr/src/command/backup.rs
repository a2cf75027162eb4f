//! `urr backup` and `urr restore`: the data folder of an embedded installation.

use std::path::{Path, PathBuf};

use anyhow::Result;
use urr_kernel::Clock;

use super::print_line;
use crate::backup::restore::{RestorePlan, restore};
use crate::backup::{self, FinishedBackup};
use crate::config::Config;

#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The folder for backups; each is a folder within it
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Remove all but the newest N backups afterwards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,
}

#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A backup that `urr backup` made
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// Your copy of the secrets.toml of that installation
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// Leave out who waited in which line: after some minutes nobody expects to be there
    #[arg(long)]
    without_lines: bool,
}

pub fn back_up(config: &Config, args: &BackupArgs) -> Result<()> {
    let keep = args.keep.map(usize::from);
    let FinishedBackup { folder, manifest, removed } =
        backup::back_up(config, &args.to, keep, &Clock::System)?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    print_line(&format!(
        "{}: {} files, {} KiB, as of {}; writes waited for {} ms",
        folder.display(),
        manifest.files.len(),
        bytes.div_ceil(1024),
        manifest.made_at,
        manifest.pause_ms
    ))?;
    for path in removed {
        print_line(&format!("removed {}", path.display()))?;
    }
    match manifest.secrets_fingerprint {
        Some(_) => print_line(
            "secrets.toml is not in it: keep a copy elsewhere, without which it cannot be restored",
        ),
        None => Ok(()),
    }
}

pub fn restore_into(config: &Config, args: &RestoreArgs) -> Result<()> {
    let folder: &Path = &config.data.dir;
    let manifest = restore(&RestorePlan {
        backup: &args.from,
        folder,
        secrets: args.secrets.as_deref(),
        with_lines: !args.without_lines,
    })?;
    print_line(&format!(
        "{} is as it was at {time}. Start `urr up`, and before you sell again run\n\
         urr audit money --since {time}",
        folder.display(),
        time = manifest.made_at
    ))
}
