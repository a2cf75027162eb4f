//! Which faults a run has. Each run turns a random set of them on ("swarm"): a run with few kinds of
//! faults gets further into some states than one in which everything fails at once.

use std::collections::BTreeSet;

use crate::random::Random;

/// A clock is ahead by less than this.
pub const CLOCK_SKEW_MS: u16 = 1_500;

/// The kinds of faults of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swarm {
    pub crashes: bool,
    pub lost_messages: bool,
    pub repeated_messages: bool,
    pub refused_transactions: bool,
    pub lost_commits: bool,
    pub clock_jumps: bool,
    pub clock_skew: bool,
    pub provider_outages: bool,
    pub slow_provider: bool,
    pub odd_cards: bool,
    pub disconnects: bool,
    pub replicas: bool,
}

impl Swarm {
    pub fn choose(random: &mut Random) -> Swarm {
        let mut coin = || random.chance(500);
        Swarm {
            crashes: coin(),
            lost_messages: coin(),
            repeated_messages: coin(),
            refused_transactions: coin(),
            lost_commits: coin(),
            clock_jumps: coin(),
            clock_skew: coin(),
            provider_outages: coin(),
            slow_provider: coin(),
            odd_cards: coin(),
            disconnects: coin(),
            replicas: coin(),
        }
    }

    /// No faults at all.
    pub const NONE: Swarm = Swarm {
        crashes: false,
        lost_messages: false,
        repeated_messages: false,
        refused_transactions: false,
        lost_commits: false,
        clock_jumps: false,
        clock_skew: false,
        provider_outages: false,
        slow_provider: false,
        odd_cards: false,
        disconnects: false,
        replicas: false,
    };
}

/// Which actions and faults of a run happen, by their numbers. A shrunken run keeps few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub actions: BTreeSet<u32>,
    pub faults: BTreeSet<u32>,
}

/// Numbers the faults of a run, and leaves out those that are not kept.
#[derive(Debug)]
pub struct FaultGate {
    kept: Option<BTreeSet<u32>>,
    next: u32,
    is_open: bool,
    pub fired: Vec<u32>,
}

impl FaultGate {
    pub fn new(kept: Option<BTreeSet<u32>>) -> FaultGate {
        FaultGate { kept, next: 0, is_open: true, fired: Vec::new() }
    }

    /// From now on nothing fails.
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// Whether this fault happens. The chance is taken in any case, so that leaving out a fault
    /// changes as little as possible of what follows.
    pub fn fires(&mut self, is_on: bool, per_mille: u64, random: &mut Random) -> bool {
        let hit = random.chance(per_mille);
        if !(self.is_open && is_on && hit) {
            return false;
        }
        self.next += 1;
        let is_kept = self.kept.as_ref().is_none_or(|kept| kept.contains(&self.next));
        if is_kept {
            self.fired.push(self.next);
        }
        is_kept
    }
}
