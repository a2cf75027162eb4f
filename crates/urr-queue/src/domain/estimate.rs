//! Estimates how long a user waits, with a range.
//!
//! While slots are free, the line moves at the rate that is set, or as it moved in the last twenty
//! seconds. Once the room is full, every admission needs a slot that was given back: how many slots
//! ended in the last minute is divided by the time for which slots were used meanwhile. The range
//! covers chance, and the beginning of a room: its first users came together and leave together, so
//! a measurement can be off by a part of such a generation, which shrinks with each generation that
//! has gone. Users in front who leave shorten the wait, and become fewer with the line.
//!
//! Nothing is told if the upper end is more than four times the lower end, if slots were given back
//! and no longer are, and if more users are inside than may be. `tests/queue/wait_shapes.rs` shows
//! for many kinds of sales how many users are admitted within their range.

#![expect(clippy::float_arithmetic, reason = "times and rates for people, never money")]

use std::time::Duration;

use urr_room::{AdmissionRules, Crowd, LinePace};

/// Fewer seconds, or fewer slots that were given back, are not enough for a measurement.
const SECONDS_MIN: usize = 5;
const ENDED_MIN: f64 = 3.0;
/// The speed of a line that waits for no slot is that of so many seconds at least and at most.
const SPEED_SECONDS_MIN: usize = 3;
const SPEED_SECONDS_MAX: usize = 20;
const SPEED_MIN: f64 = 0.1;
/// A room with so large a share of its slots in use is full: some end at any moment.
const FULL_SHARE: f64 = 0.98;
const OVERFULL_SHARE: f64 = 1.02;
/// Until a speed is measured, the line may be slower than the rate that is set.
const UNMEASURED_SLOWER: f64 = 1.5;
/// What the speed of a line that waits for no slot may differ.
const SPEED_UNSURE: f64 = 0.1;
const UNMEASURED_UNSURE: f64 = 0.1;
/// While the window holds the beginning of the room, at least this part of a generation is uncertain.
const BEGINNING_UNSURE: f64 = 0.5;
/// The uncertainty of every wait, however steadily the line moves.
const UNKNOWABLE: f64 = 0.03;
/// About nine in ten users are within this many deviations: found by simulated sales.
const DEVIATIONS: f64 = 1.5;
/// The variance is computed over pieces of this length, and over longer ones.
const PIECE_SECONDS: usize = 5;
const LONG_PIECE_SECONDS: usize = 20;
/// Slots are no longer given back if so many seconds pass without, and twice as many as ever before,
/// in which so many were to be expected.
const STALLED_SECONDS_MIN: usize = 5;
const STALLED_EXPECTED_MIN: f64 = 10.0;
/// A wider range says nothing, unless it is short.
const UPPER_OVER_LOWER_MAX: f64 = 4.0;
const SHORT_RANGE_SECONDS: f64 = 15.0;
/// Until it is measured how long slots are used, it is guessed: a quarter of their time to live.
const GUESS_QUARTERS: f64 = 0.25;

/// The longest estimate.
const SECONDS_MAX: f64 = 30.0 * 24.0 * 3_600.0;

/// The estimated wait of a user, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatedWait {
    pub seconds: u64,
    /// About nine in ten users are admitted between these.
    pub from: u64,
    pub to: u64,
}

/// Estimates the wait at any position of a line. It is made once from a [`Crowd`].
#[derive(Clone, Debug, PartialEq)]
pub struct WaitEstimator {
    threshold: f64,
    active: f64,
    /// The admissions per second at most, as it is set.
    rate: f64,
    speed: LineSpeed,
    /// `None` if it is not known how fast slots are given back.
    turnover: Option<Turnover>,
    /// The guessed share of slots that end per second.
    guess: f64,
    /// The share of waiting users who leave per second.
    leaving: f64,
}

/// The admissions per second while slots are free.
#[derive(Clone, Debug, PartialEq)]
struct LineSpeed {
    fast: f64,
    slow: f64,
    is_measured: bool,
}

/// How fast slots are given back.
#[derive(Clone, Debug, PartialEq)]
struct Turnover {
    /// The share of the slots in use that ends per second.
    ended_share: f64,
    /// How many ends were seen.
    count: f64,
    /// Variance over mean of the ends: one for a Poisson process.
    dispersion: f64,
    /// By what share more or fewer may end, because the first users came together.
    more: f64,
    fewer: f64,
}

impl WaitEstimator {
    pub fn new(crowd: &Crowd, rules: &AdmissionRules) -> WaitEstimator {
        let (threshold, active) = (f64::from(rules.threshold), f64::from(crowd.active));
        let rate = f64::from(rules.admitted_per_second_max.max(1));
        let is_full = active >= threshold * FULL_SHARE;
        let speed = LineSpeed::new(&crowd.pace.admitted, rate, is_full);
        let is_moving = is_full || speed.is_measured;
        let turnover = Turnover::new(crowd)
            .filter(|_| is_moving && active <= (threshold * OVERFULL_SHARE).max(1.0));
        let waiting = f64::from(crowd.waiting.max(1));
        WaitEstimator {
            threshold,
            active,
            rate,
            speed,
            turnover,
            guess: 1.0 / (rules.slot_ttl.as_secs_f64() * GUESS_QUARTERS).max(1.0),
            leaving: mean(&crowd.pace.left) / waiting,
        }
    }

    /// Counted from the opening: before it, the time until the opening has to be added. None if
    /// nothing can be said.
    pub fn wait_at(&self, position: u32) -> Option<EstimatedWait> {
        let position = f64::from(position);
        let (from, to) = match &self.turnover {
            Some(turnover) => self.measured(position, turnover),
            None if position <= self.threshold - self.active => {
                let slow = self.speed.slow / UNMEASURED_SLOWER;
                (position / self.rate / (1.0 + UNMEASURED_UNSURE), position / slow)
            }
            None => return None,
        };
        let (from, to) = (self.shortened(from), self.shortened(to));
        if to - from > SHORT_RANGE_SECONDS && to > UPPER_OVER_LOWER_MAX * from {
            return None;
        }
        // Rounded outwards, because users are admitted once a second.
        let wait = self.expected(position);
        Some(EstimatedWait {
            seconds: whole(wait.ceil()).max(1),
            from: whole(from),
            to: whole(to.ceil()) + 1,
        })
    }

    /// How many users at the front wait no longer than this, by a guess if need be.
    pub fn people_within(&self, seconds: u64) -> u32 {
        let (mut within, mut behind) = (0, u32::MAX);
        while within + 1 < behind {
            let middle = within.midpoint(behind);
            match whole(self.expected(f64::from(middle)).ceil()).max(1) <= seconds {
                true => within = middle,
                false => behind = middle,
            }
        }
        within
    }

    /// The most likely wait, by a guess if it is not measured how fast slots are given back.
    fn expected(&self, position: f64) -> f64 {
        let share = self.turnover.as_ref().map_or(self.guess, Turnover::expected_share);
        self.shortened(self.wait(position, self.speed.fast.min(self.rate), share).0)
    }

    /// The range.
    fn measured(&self, position: f64, turnover: &Turnover) -> (f64, f64) {
        let LineSpeed { fast, slow, .. } = self.speed;
        let share = turnover.expected_share();
        let (_, slots) = self.wait(position, fast, share);
        // Who waits for no slot comes in while as many end as are in front.
        let unsure = turnover.unsure(if slots > 0.0 { slots } else { position });
        let faster = turnover.ended_share * (1.0 + unsure + turnover.more);
        let slower = turnover.ended_share / (1.0 + unsure + turnover.fewer);
        let fast = (fast * (1.0 + SPEED_UNSURE)).min(self.rate);
        let slow = slow / (1.0 + SPEED_UNSURE);
        (self.wait(position, fast, faster).0, self.wait(position, slow, slower).0)
    }

    /// How long it takes if `speed` are admitted per second while slots are free and `share` of the
    /// slots in use end per second; and for how many slots the user waits in the full room.
    fn wait(&self, position: f64, speed: f64, share: f64) -> (f64, f64) {
        // The room grows until as many leave as come.
        let in_balance = speed / share;
        if in_balance <= self.threshold {
            return (position / speed, 0.0);
        }
        let active = self.active.min(self.threshold);
        let filling = ((in_balance - active) / (in_balance - self.threshold)).ln() / share;
        let slots = position - speed * filling;
        match slots > 0.0 {
            true => (filling + slots / (share * self.threshold), slots),
            false => (position / speed, 0.0),
        }
    }

    /// Shortens a wait by the users in front who leave. They become fewer with the line.
    fn shortened(&self, seconds: f64) -> f64 {
        let gone = self.leaving * seconds;
        let seconds = if gone < 0.001 { seconds } else { gone.ln_1p() / self.leaving };
        seconds.min(SECONDS_MAX)
    }
}

impl LineSpeed {
    /// `admitted` are those from the line: who did not have to wait says nothing about its speed.
    fn new(admitted: &[u32], rate: f64, is_full: bool) -> LineSpeed {
        let recent = &admitted[admitted.len().saturating_sub(SPEED_SECONDS_MAX)..];
        let idle = recent.iter().take_while(|count| **count == 0).count();
        let recent = &recent[idle..];
        let is_measured = recent.len() >= SPEED_SECONDS_MIN && !is_full;
        if !is_measured {
            return LineSpeed { fast: rate, slow: rate, is_measured };
        }
        let last = |seconds| mean(&recent[recent.len() - seconds..]).clamp(SPEED_MIN, rate);
        let fastest = (SPEED_SECONDS_MIN..=recent.len()).map(last).fold(0.0, f64::max);
        let fast = if recent.len() < SPEED_SECONDS_MAX { rate } else { fastest };
        LineSpeed { fast, slow: last(recent.len()), is_measured }
    }
}

impl Turnover {
    fn new(crowd: &Crowd) -> Option<Turnover> {
        let (in_use, ended) = (slots_in_use(crowd), &crowd.pace.ended);
        let begun = in_use.iter().take_while(|count| **count == 0.0).count();
        let (in_use, ended) = (&in_use[begun..], ended.get(begun..)?);
        // A slot that ended is free until the next admission, once a second: that time counts too.
        let most = in_use.iter().copied().fold(crowd.active.into(), f64::max);
        let taken = in_use.iter().zip(ended).map(|(count, ended)| count + f64::from(*ended));
        let used_seconds = taken.map(|count| count.min(most)).sum::<f64>().max(1.0);
        let count = sum(ended);
        if ended.len() < SECONDS_MIN || count < ENDED_MIN {
            return None;
        }
        let ended_share = count / used_seconds;
        if is_stalled(ended, ended_share * f64::from(crowd.active)) {
            return None;
        }
        let generation = (used_seconds / seconds_of(in_use.len())).max(1.0);
        let gone = crowd.admitted_total.saturating_sub(crowd.active.into());
        let generations = gone as f64 / generation;
        let uncertain = 1.0 / (1.0 + generations).powi(3);
        // Seconds without users are before the beginning. Then it is measured from the first on, and
        // who has just been admitted has had no time to leave: rather more end than were seen.
        let (more, fewer) = match begun > 0 {
            true => (uncertain.max(BEGINNING_UNSURE), 0.0),
            false => (uncertain, uncertain),
        };
        let seen = count / generation;
        Some(Turnover {
            ended_share,
            count,
            dispersion: dispersion(ended),
            more: more / seen,
            fewer: fewer / seen,
        })
    }

    fn expected_share(&self) -> f64 {
        self.ended_share * (1.0 + self.more / 4.0)
    }

    /// The relative error for the next `slots`, by chance alone.
    fn unsure(&self, slots: f64) -> f64 {
        let (seen, to_come) = (self.count + 1.0, slots.max(1.0));
        let variance = self.dispersion / seen + self.dispersion / to_come + UNKNOWABLE.powi(2);
        variance.sqrt() * DEVIATIONS
    }
}

/// How many slots were in use at the end of each second, oldest first: computed backwards.
fn slots_in_use(crowd: &Crowd) -> Vec<f64> {
    let LinePace { let_in, ended, in_use, .. } = &crowd.pace;
    let mut in_use = f64::from(*in_use);
    let mut counts: Vec<f64> = let_in
        .iter()
        .zip(ended)
        .rev()
        .map(|(let_in, ended)| {
            let at_end = in_use;
            in_use = (in_use - f64::from(*let_in) + f64::from(*ended)).max(0.0);
            at_end
        })
        .collect();
    counts.reverse();
    counts
}

/// Whether slots were given back and no longer are.
fn is_stalled(ended: &[u32], per_second: f64) -> bool {
    let mut pauses = ended.rsplit(|count| *count > 0).map(<[u32]>::len);
    let now = pauses.next().unwrap_or(0);
    let longest = pauses.max().unwrap_or(0);
    let expected = per_second * seconds_of(now);
    now >= STALLED_SECONDS_MIN && now > 2 * longest && expected > STALLED_EXPECTED_MIN
}

/// Variance over mean of the counts. Short pieces exaggerate bursts, long ones are few: it is the
/// mean of both.
fn dispersion(counts: &[u32]) -> f64 {
    let in_pieces_of = |seconds| {
        let pieces: Vec<f64> = counts.rchunks_exact(seconds).map(sum).collect();
        let (n, total) = (seconds_of(pieces.len()), pieces.iter().sum::<f64>());
        let squares: f64 = pieces.iter().map(|count| count * count).sum();
        // One is assumed as long as there are few observations.
        let seen = match n > 1.0 && total > 0.0 {
            true => (n * squares - total * total) / ((n - 1.0) * total),
            false => 1.0,
        };
        (seen * n + 1.0) / (n + 1.0)
    };
    f64::midpoint(in_pieces_of(PIECE_SECONDS), in_pieces_of(LONG_PIECE_SECONDS))
}

fn sum(counts: &[u32]) -> f64 {
    counts.iter().map(|count| f64::from(*count)).sum()
}

fn mean(counts: &[u32]) -> f64 {
    sum(counts) / seconds_of(counts.len()).max(1.0)
}

/// A count has an entry per second.
fn seconds_of(entries: usize) -> f64 {
    entries as f64
}

/// Rounded down.
fn whole(seconds: f64) -> u64 {
    Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX)).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use urr_room::AdmissionState;

    const RULES: AdmissionRules = AdmissionRules {
        admission: AdmissionState::Open,
        threshold: 1_000,
        admitted_per_second_max: 100,
        slot_ttl: Duration::from_mins(10),
        slot_max: Duration::from_mins(30),
        waiting_max: 1_000_000,
        queues_per_user_max: 3,
    };

    /// A full room in which so many slots were given back each second of the last minute.
    fn crowd(each_second: impl Fn(usize) -> u32, left: u32) -> Crowd {
        let counts = || (0..LinePace::SECONDS).map(&each_second).collect();
        Crowd {
            waiting: 50_000,
            active: 1_000,
            admitted_total: 20_000,
            pace: LinePace {
                admitted: counts(),
                left: vec![left; LinePace::SECONDS],
                let_in: counts(),
                ended: counts(),
                in_use: 1_000,
            },
            ..Crowd::default()
        }
    }

    fn estimator(crowd: &Crowd) -> WaitEstimator {
        WaitEstimator::new(crowd, &RULES)
    }

    fn told(wait_estimator: &WaitEstimator, position: u32) -> EstimatedWait {
        wait_estimator.wait_at(position).expect("there is a measurement")
    }

    #[test]
    fn before_anybody_was_let_in_the_rate_that_was_set_is_believed() {
        let still = crowd(|_| 0, 0);
        let pace = LinePace { in_use: 0, ..still.pace.clone() };
        let wait_estimator = estimator(&Crowd { active: 0, admitted_total: 0, pace, ..still });
        for (position, seconds) in [(1, 1), (99, 1), (101, 2), (1_000, 10)] {
            assert_eq!(told(&wait_estimator, position).seconds, seconds, "{position}");
        }
        // Not thirty seconds for each, nor a floor of five.
        assert_eq!(told(&wait_estimator, 1), EstimatedWait { seconds: 1, from: 0, to: 2 });
        // A user who joins a full room waits for slots, for an unknown time.
        assert_eq!(wait_estimator.wait_at(1_001), None);
        assert_eq!(wait_estimator.wait_at(50_000), None);
        assert!(told(&wait_estimator, 900).to <= 15, "{:?}", wait_estimator.wait_at(900));
    }

    /// Somebody was told "1 second" for as long as nobody went, and later up to two days.
    #[test]
    fn nobody_is_promised_a_slot_of_a_full_room_from_which_nobody_goes() {
        let filled = |second: usize| if second < 10 { 100 } else { 0 };
        let never = vec![0; LinePace::SECONDS];
        for let_in in [filled, |_| 0] {
            let mut crowd = Crowd { admitted_total: 1_000, ..crowd(let_in, 0) };
            crowd.pace.ended.clone_from(&never);
            assert_eq!(estimator(&crowd).wait_at(1), None);
        }
        // The control: as soon as somebody goes, that counts.
        assert_eq!(told(&estimator(&crowd(|_| 10, 0)), 1).seconds, 1);
    }

    /// Who was told something during a stop of two minutes waited longer, and later much less.
    #[test]
    fn while_slots_are_no_longer_given_back_nothing_is_told() {
        let until = |last: usize| crowd(move |second| if second < last { 10 } else { 0 }, 0);
        assert_eq!(estimator(&until(50)).wait_at(1_000), None);
        // The control: four seconds are no stop, and slots that always end in bursts are none either.
        told(&estimator(&until(56)), 1_000);
        let bursts = |second| if second % 15 == 0 { 150 } else { 0 };
        told(&estimator(&crowd(bursts, 0)), 5_000);
    }

    #[test]
    fn of_a_room_with_more_users_than_it_may_have_nothing_is_told() {
        let crowd = crowd(|_| 10, 0);
        let of = |threshold| WaitEstimator::new(&crowd, &AdmissionRules { threshold, ..RULES });
        assert_eq!(of(900).wait_at(1), None);
        told(&of(1_000), 1);
    }

    /// Of 1,000 who came together, 60 have gone: the others can go now or in half an hour.
    #[test]
    fn a_range_that_says_nothing_is_not_told() {
        let first = Crowd { admitted_total: 1_060, ..crowd(|_| 1, 0) };
        assert_eq!(estimator(&first).wait_at(20_000), None);
        // The control: after nineteen rooms full of users the same minute is worth something.
        told(&estimator(&Crowd { admitted_total: 20_000, ..first }), 20_000);
    }

    #[test]
    fn fewer_than_five_seconds_are_no_measurement() {
        let begun = |ago: usize| {
            let first = LinePace::SECONDS - ago;
            let mut crowd = crowd(|second| if second >= first { 400 } else { 0 }, 0);
            crowd.pace.let_in[first] = 1_400;
            crowd
        };
        assert_eq!(estimator(&begun(4)).wait_at(20_000), None);
        assert!(told(&estimator(&begun(5)), 20_000).seconds > 40);
    }

    #[test]
    fn the_measured_movement_is_believed() {
        for each_second in [1, 4, 20, 100] {
            let wait = told(&estimator(&crowd(|_| each_second, 0)), 20_000);
            let exact = u64::from(20_000 / each_second);
            assert!(wait.seconds.abs_diff(exact) <= exact / 100, "{each_second}: {wait:?}");
            assert!(wait.from <= wait.seconds && wait.seconds < wait.to, "{wait:?}");
            assert!(wait.to < 2 * exact, "{wait:?}");
        }
    }

    /// They were told the wait by the rate that is set, which a busy server did not reach.
    #[test]
    fn a_line_that_is_slower_than_the_rate_is_believed_too() {
        let mut crowd = crowd(|_| 30, 0);
        (crowd.active, crowd.pace.in_use) = (60, 60);
        let wait = told(&estimator(&crowd), 3_000);
        assert_eq!(wait.seconds, 100);
        assert!(wait.from >= 90 && wait.to <= 112, "{wait:?}");
    }

    #[test]
    fn the_reach_of_a_time_are_those_who_wait_no_longer() {
        for (each_second, left) in [(1, 0), (4, 2), (100, 50)] {
            let wait_estimator = estimator(&crowd(|_| each_second, left));
            for seconds in [1, 10, 180, 5_000] {
                let reach = wait_estimator.people_within(seconds);
                assert!(reach > 0 && told(&wait_estimator, reach).seconds <= seconds, "{reach}");
                assert!(told(&wait_estimator, reach + 1).seconds > seconds, "{reach}");
            }
            assert_eq!(wait_estimator.people_within(0), 0);
        }
    }

    #[test]
    fn free_slots_are_filled_at_the_rate() {
        // Users came and went without waiting, and now there is a line.
        let mut crowd = crowd(|_| 2, 0);
        (crowd.active, crowd.pace.in_use) = (500, 500);
        crowd.pace.admitted.fill(0);
        assert_eq!(told(&estimator(&crowd), 500).seconds, 5);
        assert_eq!(estimator(&crowd).wait_at(1_000), None);
        // It has moved for some seconds.
        crowd.pace.admitted[56..].fill(100);
        assert_eq!(told(&estimator(&crowd), 500).seconds, 5);
        assert!(told(&estimator(&crowd), 1_000).seconds > 50);
    }

    #[test]
    fn those_who_leave_shorten_the_wait() {
        let wait = |left| told(&estimator(&crowd(|_| 10, left)), 50_000);
        let (stays, leaves) = (wait(0), wait(20));
        // ln(1 + 0.0004 × 5,000 s) / 0.0004: the fewer are left, the fewer leave.
        assert!((4_990..=5_000).contains(&stays.seconds), "{stays:?}");
        assert!((2_700..=2_790).contains(&leaves.seconds), "{leaves:?}");
    }

    #[test]
    fn the_range_grows_with_the_distance_and_with_unsteadiness() {
        let width = |wait_estimator: &WaitEstimator, position| {
            let wait = told(wait_estimator, position);
            wait.to - wait.from
        };
        let steady = estimator(&crowd(|_| 10, 0));
        let wild = estimator(&crowd(|second| if second % 10 < 2 { 50 } else { 0 }, 0));
        assert_eq!(told(&wild, 5_000).seconds, told(&steady, 5_000).seconds);
        for wait_estimator in [&steady, &wild] {
            assert!(width(wait_estimator, 100) < width(wait_estimator, 1_000));
            assert!(width(wait_estimator, 1_000) < width(wait_estimator, 20_000));
        }
        assert!(width(&steady, 5_000) * 3 / 2 < width(&wild, 5_000));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_seen_there_is_an_answer(
            let_in in proptest::collection::vec(0..1_000_000_u32, 0..=60),
            left in proptest::collection::vec(0..1_000_000_u32, 0..=60),
            ended in proptest::collection::vec(0..1_000_000_u32, 0..=60),
            waiting: u32, active: u32, in_use: u32, admitted_total in 0..1_000_000_000_000_u64,
            threshold: u32, rate: u32, position: u32,
        ) {
            let pace = LinePace { admitted: let_in.clone(), left, let_in, ended, in_use };
            let crowd = Crowd { waiting, active, admitted_total, pace, ..Crowd::default() };
            let rules = AdmissionRules { threshold, admitted_per_second_max: rate, ..RULES };
            let wait_estimator = WaitEstimator::new(&crowd, &rules);
            let expected = |position: u32| wait_estimator.expected(position.into());
            let (seconds, before) = (expected(position), expected(position / 2));
            proptest::prop_assert!(0.0 <= before && before <= seconds && seconds <= SECONDS_MAX);
            if let Some(wait) = wait_estimator.wait_at(position) {
                proptest::prop_assert!(wait.from <= wait.seconds && wait.seconds <= wait.to);
            }
        }
    }
}
