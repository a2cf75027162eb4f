//! What fans do, drawn from a seed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The shares of fans who do something, and how long they take.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// Of all fans: programs that break the rules.
    pub programs: f64,
    /// Who asks for the best seats instead of picking on the map.
    pub best_seats: f64,
    /// Who clicks twice when reserving.
    pub double_clicks: f64,
    /// Who reloads the waiting page once, or loses the network for some seconds.
    pub interruptions: f64,
    /// Whose first card is declined.
    pub declines: f64,
    /// Whose card is one of `cards`.
    pub odd_cards: f64,
    /// Cards of the sandbox: some of [`CARDS`].
    pub cards: Vec<&'static str>,
    /// Who changes the seats of the hold before paying.
    pub seat_changes: f64,
    /// Who releases the hold instead of paying.
    pub changes_of_mind: f64,
    /// Who cancels after paying.
    pub cancels: f64,
    /// Who lists the tickets for sale after paying; as large a share of those who come too late
    /// buys such tickets.
    pub transfers: f64,
    /// Who reads the crowd document while they wait, and asks for their own position when it is near.
    pub crowd_readers: f64,
    /// A fan tries again so often after an error of the system.
    pub tries: u32,
    /// The mean time on the seat map and at the checkout.
    pub choosing: Duration,
    pub paying: Duration,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            programs: 0.05,
            best_seats: 0.4,
            double_clicks: 0.05,
            interruptions: 0.05,
            declines: 0.05,
            odd_cards: 0.01,
            cards: CARDS[1..].iter().copied().filter(|it| !NEED_OPERATOR.contains(it)).collect(),
            seat_changes: 0.05,
            changes_of_mind: 0.03,
            cancels: 0.03,
            transfers: 0.03,
            crowd_readers: 0.3,
            tries: 5,
            choosing: Duration::from_secs(8),
            paying: Duration::from_secs(12),
        }
    }
}

/// All cards of the sandbox: the good one, and those without money, with a slow or lost answer, with
/// an answer that says something else than what happened, or that cannot be refunded.
pub const CARDS: [&str; 15] = [
    "approve",
    "decline",
    "insufficient",
    "slow",
    "timeout",
    "stumble",
    "charge-timeout",
    "charge-500",
    "duplicate",
    "wrong-amount",
    "test-channel",
    "unknown-code",
    "refund-timeout",
    "refund-decline",
    "refund-whole",
];
/// A payment with one of these may wait for an operator who refunds it by other means. A fan has one
/// only if that was asked for, because the audit after a rush would name such a payment.
const NEED_OPERATOR: [&str; 2] = ["refund-decline", "refund-whole"];

/// Who a fan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanKind {
    Person,
    /// Polls five times a second.
    FastPoller,
    /// Reserves with the entry token of someone else.
    TokenThief,
    /// Reserves without waiting.
    QueueSkipper,
    /// Waits as a person does, and books from two devices with one entry token.
    TokenSharer,
}

/// An interruption while waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Reload,
    Offline(Duration),
}

/// What one fan will do.
#[derive(Clone, Debug, PartialEq)]
pub struct FanDecisions {
    pub kind: FanKind,
    pub seats: u32,
    pub asks_for_best: bool,
    /// Between 0 and 1: which grade, and where on the map the search begins.
    pub grade: f64,
    pub position: f64,
    pub clicks_twice: bool,
    pub interruption: Option<Interruption>,
    pub is_declined_first: bool,
    /// Of the sandbox.
    pub card: &'static str,
    pub changes_seats: bool,
    pub changes_mind: bool,
    pub cancels: bool,
    /// Sells the tickets again, or buys from somebody who does.
    pub trades: bool,
    pub reads_crowd: bool,
    pub tries: u32,
    pub choosing: Duration,
    pub paying: Duration,
}

impl FanDecisions {
    /// The decisions of the fan with this number.
    pub fn draw(behaviour: &Behaviour, seed: u64, number: u64) -> FanDecisions {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number);
        let mut random = StdRng::seed_from_u64(mixed);
        let mut happens = |share: f64| random.random::<f64>() < share;
        let is_program = happens(behaviour.programs);
        let asks_for_best = happens(behaviour.best_seats);
        let clicks_twice = happens(behaviour.double_clicks);
        let is_interrupted = happens(behaviour.interruptions);
        let is_declined_first = happens(behaviour.declines);
        let changes_mind = happens(behaviour.changes_of_mind);
        let cancels = happens(behaviour.cancels);
        let trades = happens(behaviour.transfers);
        let reads_crowd = happens(behaviour.crowd_readers);
        let changes_seats = happens(behaviour.seat_changes);
        let has_odd_card = happens(behaviour.odd_cards);
        let odd_card = match behaviour.cards.as_slice() {
            [] => CARDS[0],
            cards => cards[random.random_range(0..cards.len())],
        };
        let kinds =
            [FanKind::FastPoller, FanKind::TokenThief, FanKind::QueueSkipper, FanKind::TokenSharer];
        let kind = kinds[random.random_range(0..kinds.len())];
        let interruptions = [Interruption::Reload, Interruption::Offline(Duration::from_secs(15))];
        let interruption = interruptions[random.random_range(0..interruptions.len())];
        FanDecisions {
            kind: if is_program { kind } else { FanKind::Person },
            // Most people come in pairs.
            seats: [1, 1, 2, 2, 2, 2, 3, 4][random.random_range(0..8)],
            asks_for_best,
            grade: random.random(),
            // Everybody likes the front: small values are more likely.
            position: random.random::<f64>().powi(2),
            clicks_twice,
            interruption: is_interrupted.then_some(interruption),
            is_declined_first,
            card: if has_odd_card { odd_card } else { CARDS[0] },
            changes_seats,
            changes_mind,
            cancels,
            trades,
            reads_crowd,
            tries: behaviour.tries,
            choosing: exponential(behaviour.choosing, &mut random),
            paying: exponential(behaviour.paying, &mut random),
        }
    }
}

/// Most people are quick, some take long; nobody takes more than five times the mean.
fn exponential(mean: Duration, random: &mut StdRng) -> Duration {
    let factor = -(1.0 - random.random::<f64>()).ln();
    mean.mul_f64(factor.min(5.0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(behaviour: &Behaviour, seed: u64) -> Vec<FanDecisions> {
        (0..10_000).map(|number| FanDecisions::draw(behaviour, seed, number)).collect()
    }

    #[test]
    fn a_seed_repeats_the_decisions() {
        let behaviour = Behaviour::default();
        assert_eq!(all(&behaviour, 3), all(&behaviour, 3));
        assert_ne!(all(&behaviour, 3), all(&behaviour, 4));
    }

    #[test]
    fn shares_and_means_are_kept() {
        let behaviour =
            Behaviour { programs: 0.3, cancels: 0.1, odd_cards: 0.2, ..Behaviour::default() };
        let fans = all(&behaviour, 3);
        let share = |is: fn(&FanDecisions) -> bool| fans.iter().filter(|fan| is(fan)).count();
        assert!((2_800..3_200).contains(&share(|fan| fan.kind != FanKind::Person)));
        assert!((850..1_150).contains(&share(|fan| fan.cancels)));
        assert!((1_850..2_150).contains(&share(|fan| fan.card != "approve")));
        let used: BTreeSet<&str> = fans.iter().map(|fan| fan.card).collect();
        assert_eq!(used.len(), CARDS.len() - NEED_OPERATOR.len(), "each is tried");
        let every = Behaviour { cards: CARDS.to_vec(), odd_cards: 1.0, ..Behaviour::default() };
        let used: BTreeSet<&str> = all(&every, 3).iter().map(|fan| fan.card).collect();
        assert_eq!(used, BTreeSet::from(CARDS), "each can be asked for");
        let mean = fans.iter().map(|fan| fan.choosing.as_secs_f64()).sum::<f64>() / 10_000.0;
        assert!((7.5..8.5).contains(&mean), "{mean}");
    }
}
