//! What happened in a run: a hash of every step, and lines for people if they are wanted.

use std::fmt;

/// FNV-1a over the numbers of each step.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    steps: u32,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub fn new(has_lines: bool) -> Trace {
        Trace { hash: 0xCBF2_9CE4_8422_2325, steps: 0, lines: has_lines.then(Vec::new) }
    }

    /// Notes a step. Two runs with the same numbers in the same order have the same hash.
    pub fn step(&mut self, numbers: &[u64], words: impl FnOnce() -> String) {
        self.steps += 1;
        for number in numbers {
            for byte in number.to_le_bytes() {
                self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
        self.say(words);
    }

    /// Adds a line that is no step.
    pub fn say(&mut self, words: impl FnOnce() -> String) {
        let step = self.steps;
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{step:>5}  {}", words()));
        }
    }

    pub fn hash(&self) -> TraceHash {
        TraceHash(self.hash)
    }

    pub fn steps(&self) -> u32 {
        self.steps
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// Equal if and only if two runs took the same steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

impl fmt::Display for TraceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
