//! The disk that a rehearsal with faults fills and slows down.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use urr_kernel::Clock;
use urr_rush::SyncTimes;

/// A small disk, if one can be mounted.
const DISK_BYTES: u64 = 512 * 1024 * 1024;
/// So many writers keep the disk busy, each with a file of this size.
const DISK_WRITERS: usize = 4;
const WRITTEN_BYTES: usize = 16 * 1024 * 1024;
/// So many syncs are measured before the disk is slow, and at most so many meanwhile.
const SYNCS_BEFORE: usize = 20;
const SYNCS_MAX: usize = 1_000;
/// About what a commit writes.
const SYNCED_BYTES: usize = 4 * 1024;

/// Where the data is: a folder, or a small disk of its own that can be filled.
pub struct ChaosDisk {
    pub folder: PathBuf,
    is_mounted: bool,
    is_temporary: bool,
}

impl ChaosDisk {
    /// In a new folder of this name, or a temporary one. A small disk is mounted if it is to be full.
    pub fn create(named: Option<&Path>, is_small: bool) -> Result<ChaosDisk> {
        let folder = named.map_or_else(temporary_folder, Path::to_owned);
        ensure!(!folder.exists(), "{} exists; name a new folder", folder.display());
        fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        let mut disk = ChaosDisk { folder, is_mounted: false, is_temporary: named.is_none() };
        if is_small {
            disk.mount()?;
        }
        Ok(disk)
    }

    fn mount(&mut self) -> Result<()> {
        let size = format!("size={DISK_BYTES}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&self.folder);
        let mounted = command.stderr(Stdio::null()).status();
        self.is_mounted = mounted.is_ok_and(|status| status.success());
        ensure!(self.is_mounted, "a small disk cannot be mounted here; leave out --full-disks");
        Ok(())
    }

    /// The file that fills the disk.
    pub fn ballast(&self) -> Option<PathBuf> {
        self.is_mounted.then(|| self.folder.join("ballast"))
    }
}

impl Drop for ChaosDisk {
    fn drop(&mut self) {
        // What cannot be removed stays in the temporary folder.
        if self.is_mounted && self.is_temporary {
            Command::new("umount").arg(&self.folder).status().ok();
        }
        if self.is_temporary {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

fn temporary_folder() -> PathBuf {
    let now = Clock::System.now().as_millisecond();
    std::env::temp_dir().join(format!("urr-chaos-{}-{now}", std::process::id()))
}

/// Writes until nothing more can be written.
pub fn fill(path: &Path) -> Result<()> {
    let mut file = fs::File::create(path)?;
    for size in [1 << 20, 1 << 12, 1] {
        let bytes = vec![0; size];
        while file.write_all(&bytes).is_ok() {}
    }
    Ok(())
}

/// Keeps the disk of this folder busy: syncs of others have to wait for ours. Measures a sync before
/// and meanwhile, so that it is known how slow the disk was.
pub fn keep_busy(folder: &Path, lasts: Duration) -> Result<SyncTimes> {
    fs::create_dir_all(folder)?;
    let probe = folder.join("probe");
    let before = median_sync(&probe, SYNCS_BEFORE, Instant::now() + lasts)?;
    let ends_at = Instant::now() + lasts;
    let meanwhile = thread::scope(|scope| {
        let write = |number: usize| keep_writing(&folder.join(number.to_string()), ends_at);
        let writers: Vec<_> =
            (0..DISK_WRITERS).map(|number| scope.spawn(move || write(number))).collect();
        let measured = median_sync(&probe, SYNCS_MAX, ends_at);
        writers.into_iter().try_for_each(|writer| writer.join().expect("it does not panic"))?;
        measured
    })?;
    fs::remove_dir_all(folder)?;
    Ok(SyncTimes::new(before, meanwhile))
}

/// Writes a file again and again, and syncs it each time.
fn keep_writing(path: &Path, ends_at: Instant) -> std::io::Result<()> {
    let bytes = vec![1; WRITTEN_BYTES];
    while Instant::now() < ends_at {
        let mut file = fs::File::create(path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
    }
    Ok(())
}

/// The median time of a small write with its sync. At least one is measured.
fn median_sync(path: &Path, count: usize, ends_at: Instant) -> std::io::Result<Duration> {
    let mut file = fs::File::create(path)?;
    let bytes = vec![1; SYNCED_BYTES];
    let mut times = Vec::new();
    while times.is_empty() || (times.len() < count && Instant::now() < ends_at) {
        let begun = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_disk_is_measured_and_left_as_it_was() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, lasts) = (outer.path().join("busy"), Duration::from_millis(100));
        let begun = Instant::now();
        let times = keep_busy(&folder, lasts).unwrap();
        assert!(begun.elapsed() >= lasts && !folder.exists());
        assert!(times.before_ms > 0.0 && times.meanwhile_ms > 0.0, "{times:?}");
    }

    #[test]
    fn a_folder_that_exists_is_not_touched() {
        let outer = tempfile::tempdir().unwrap();
        assert!(ChaosDisk::create(Some(outer.path()), false).is_err());
        assert!(ChaosDisk::create(Some(&outer.path().join("new")), false).is_ok());
        assert!(outer.path().join("new").exists(), "a folder that was named stays");
    }
}
