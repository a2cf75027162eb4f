//! What the program and its servers have used, as the kernel counts it: processor time, and calls
//! that write to files.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts processor time in hundredths of a second, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);

/// By the name of the process, or of the program's thread; those of one name are added.
pub type ProcessUses = BTreeMap<String, ProcessUse>;

#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUse {
    pub processor: Duration,
    pub write_calls: u64,
    pub written_bytes: u64,
}

/// A line of the table of processes.
struct ProcessLine {
    pid: u32,
    parent: u32,
    name: String,
    ticks: u32,
}

/// What this process and those that it has started have used so far.
pub fn read() -> Result<ProcessUses> {
    let (own, mut uses) = (std::process::id(), ProcessUses::new());
    let lines: Vec<ProcessLine> = std::fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| read_line(&format!("/proc/{pid}")).ok())
        .collect();
    let parent_of: BTreeMap<u32, u32> = lines.iter().map(|line| (line.pid, line.parent)).collect();
    for line in lines {
        let parent = line.parent;
        let is_ours = line.pid == own || parent == own || parent_of.get(&parent) == Some(&own);
        if !is_ours {
            continue;
        }
        let name = if line.pid == own { "program and buyers".to_owned() } else { line.name };
        let folder = format!("/proc/{}", line.pid);
        uses.entry(name).or_default().add(line.ticks, &folder);
    }
    for entry in std::fs::read_dir("/proc/self/task")? {
        let folder = entry?.path().display().to_string();
        // A thread may have ended meanwhile.
        if let Ok(thread) = read_line(&folder) {
            let name = format!("program, {}", thread.name);
            uses.entry(name).or_default().add(thread.ticks, &folder);
        }
    }
    Ok(uses)
}

impl ProcessUse {
    fn add(&mut self, ticks: u32, folder: &str) {
        let (write_calls, written_bytes) = read_writes(folder).unwrap_or_default();
        self.processor += TICK * ticks;
        self.write_calls += write_calls;
        self.written_bytes += written_bytes;
    }
}

/// `pid (name) state parent …`; the 14th to 17th fields are its time and that of ended children.
fn read_line(folder: &str) -> Result<ProcessLine> {
    let text = std::fs::read_to_string(format!("{folder}/stat"))?;
    let pid = text.split(' ').next().context("an id")?.parse()?;
    let (head, rest) = text.rsplit_once(')').context("a name")?;
    let (_, name) = head.split_once('(').context("a name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| -> Result<u32> { Ok(fields.get(place).context("more")?.parse()?) };
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Ok(ProcessLine { pid, parent: number(1)?, name: name.to_owned(), ticks })
}

fn read_writes(folder: &str) -> Result<(u64, u64)> {
    let text = std::fs::read_to_string(format!("{folder}/io"))?;
    let number = |name: &str| -> Result<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context("a counter")?;
        Ok(line.trim().parse()?)
    };
    Ok((number("syscw:")?, number("wchar:")?))
}

/// Adds what was used between two looks.
pub fn add_difference(sum: &mut ProcessUses, after: &ProcessUses, before: &ProcessUses) {
    for (name, after) in after {
        let before = before.get(name).copied().unwrap_or_default();
        let sum = sum.entry(name.clone()).or_default();
        sum.processor += after.processor.saturating_sub(before.processor);
        sum.write_calls += after.write_calls.saturating_sub(before.write_calls);
        sum.written_bytes += after.written_bytes.saturating_sub(before.written_bytes);
    }
}
