//! Estimates how long a user waits, with a range.
//!
//! The first users fill the room as fast as the rate allows. Then every admission needs a slot that
//! was given back, and the line moves at that turnover, which is measured over the last minute. As
//! long as no slot was given back, users who wait for one are told nothing: they can be used for a
//! minute or for half an hour. A sale may be open for days before a crowd comes, so the time counts
//! from the first admission of the last minute if the room was never full before.
//!
//! Users in front who leave shorten the wait, and become fewer with the line. The range follows
//! from the variance of the movement, from the number of observations, and from a fixed
//! uncertainty. `benches/estimate.rs` shows how many users are admitted within their range.

use std::time::Duration;

use urr_room::{AdmissionRules, Crowd};

/// Fewer seconds are not enough for a measurement.
const SECONDS_MIN: usize = 5;
/// The variance is computed over pieces of this length, and over longer ones.
const PIECE_SECONDS: usize = 5;
const LONG_PIECE_SECONDS: usize = 20;
/// Until it is measured how long slots are used, it is guessed: a quarter of the slot's time to
/// live, with this uncertainty in thousandths.
const GUESS_QUARTERS: u64 = 1;
const GUESS_MILLI: u64 = 500;
/// So many slots that were given back are enough to see that the guess is too slow.
const FASTER_COUNT_MIN: u64 = 10;
/// The uncertainty of every wait, however steadily the line moves, in thousandths.
const UNKNOWABLE_MILLI: u64 = 30;
/// About nine in ten users are within this many deviations, in thousandths: found by simulated
/// sales.
const DEVIATIONS_MILLI: u64 = 1_500;

/// The longest estimate.
const MILLIS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;

/// The estimated wait of a user, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatedWait {
    pub seconds: u64,
    /// About nine in ten users are admitted between these.
    pub from: u64,
    pub to: u64,
}

/// Estimates the wait at any position of a line. It is made once from a [`Crowd`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitEstimator {
    /// The admissions per second at most, in thousandths.
    rate_milli: u64,
    /// How many users are admitted at that rate. Users behind them wait for slots to be given back.
    filling: u64,
    /// `None` if nobody was admitted lately, or not since the room is full.
    turnover: Option<Turnover>,
    /// Without a turnover: how long a slot is used, and how many are given back per second, in
    /// thousandths.
    guess_seconds: u64,
    guess_milli: u64,
    /// The share of waiting users who leave per second, in millionths.
    leaving_micro: u64,
}

/// How fast slots are given back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Turnover {
    /// Per second, in thousandths.
    milli: u64,
    /// How many were observed.
    count: u64,
    /// Variance over mean of the observations, in thousandths: a thousand for a Poisson process.
    dispersion_milli: u64,
    /// The guessed share, in thousandths.
    guessed_milli: u64,
}

impl WaitEstimator {
    /// `open_for` is how long the sale has been open; zero before it.
    pub fn new(crowd: &Crowd, rules: &AdmissionRules, open_for: Duration) -> WaitEstimator {
        let open_for = open_for.min(busy_for(crowd, rules));
        let rate_milli = u64::from(rules.admitted_per_second_max.max(1)) * 1_000;
        let free = u64::from(rules.threshold.saturating_sub(crowd.active));
        let admitted = lately(&crowd.pace.let_in, open_for);
        let left = lately(&crowd.pace.left, open_for);
        // A full room from which nobody has gone says nothing about the next slot.
        let is_stuck = free == 0 && sum(since_filled(crowd, rules, admitted)) == 0;
        let is_measured = admitted.len() >= SECONDS_MIN && admitted.iter().any(|n| *n > 0);
        let turnover = match is_measured && !is_stuck {
            true => Some(Turnover::new(crowd, rules, admitted, open_for)),
            false => None,
        };
        // While the room fills, slots are given back already: on average half as fast as later.
        let given_back = turnover.as_ref().map_or(0, |turnover| turnover.milli / 2);
        let growing = rate_milli.saturating_sub(given_back).max(1);
        let filling = free.saturating_mul(rate_milli) / growing;
        let waiting_seconds = u64::from(crowd.waiting.max(1)) * len(left).max(1);
        WaitEstimator {
            rate_milli,
            filling,
            turnover,
            guess_seconds: guess_seconds(rules),
            guess_milli: guess_milli(rules),
            leaving_micro: sum(left) * 1_000_000 / waiting_seconds,
        }
    }

    /// Counted from the opening: before it, the time until the opening has to be added. None if it
    /// follows neither from free slots nor from a measurement: nobody knows when the next slot is
    /// given back.
    pub fn wait_at(&self, position: u32) -> Option<EstimatedWait> {
        let position = u64::from(position);
        match &self.turnover {
            Some(turnover) => Some(self.measured(position, turnover)),
            None if position <= self.filling => {
                let millis = self.quick_millis(position);
                Some(EstimatedWait::new(millis, millis * 9 / 10, millis * 11 / 10))
            }
            None => None,
        }
    }

    /// The wait, by a guess if need be: whoever comes after the room is full waits until those in it
    /// have used their slots.
    fn seconds_at(&self, position: u32) -> u64 {
        if let Some(wait) = self.wait_at(position) {
            return wait.seconds;
        }
        let (quick, slow) = self.split(u64::from(position));
        let first_back = self.quick_millis(quick) + self.guess_seconds * 1_000;
        (first_back + self.slow_millis(slow - 1, self.guess_milli)).div_ceil(1_000).max(1)
    }

    /// How many users at the front wait no longer than this.
    pub fn people_within(&self, seconds: u64) -> u32 {
        let (mut within, mut behind) = (0, u32::MAX);
        while within + 1 < behind {
            let middle = within.midpoint(behind);
            match self.seconds_at(middle) <= seconds {
                true => within = middle,
                false => behind = middle,
            }
        }
        within
    }

    fn measured(&self, position: u64, turnover: &Turnover) -> EstimatedWait {
        let (quick, slow) = self.split(position);
        let unsure = turnover.unsure_milli(slow);
        let (quick, slow) = (self.quick_millis(quick), self.slow_millis(slow, turnover.milli));
        let wait = |quick: u64, slow: u64| shortened(quick + slow, self.leaving_micro);
        let from = wait(less(quick, UNKNOWABLE_MILLI), less(slow, unsure));
        let to = wait(more(quick, UNKNOWABLE_MILLI), more(slow, unsure));
        EstimatedWait::new(wait(quick, slow), from, to)
    }

    /// How many of these users are admitted while the room fills, and how many wait for slots.
    fn split(&self, position: u64) -> (u64, u64) {
        let quick = position.min(self.filling);
        (quick, position - quick)
    }

    /// How long it takes to admit so many users at the configured rate.
    fn quick_millis(&self, people: u64) -> u64 {
        (people * 1_000_000 / self.rate_milli).min(MILLIS_MAX)
    }

    /// How long it takes until so many slots are given back.
    fn slow_millis(&self, slots: u64, turnover_milli: u64) -> u64 {
        (slots * 1_000_000 / turnover_milli.clamp(1, self.rate_milli)).min(MILLIS_MAX)
    }
}

fn less(millis: u64, unsure_milli: u64) -> u64 {
    millis * 1_000 / (1_000 + unsure_milli)
}

fn more(millis: u64, unsure_milli: u64) -> u64 {
    millis * (1_000 + unsure_milli) / 1_000
}

impl Turnover {
    fn new(
        crowd: &Crowd,
        rules: &AdmissionRules,
        admitted: &[u32],
        open_for: Duration,
    ) -> Turnover {
        let used = since_filled(crowd, rules, admitted);
        let (count, millis) = match used.len() >= SECONDS_MIN {
            true => (sum(used), len(used) * 1_000),
            false => given_back_while_filling(crowd, rules, open_for),
        };
        let (guess_seconds, guess_milli) = (guess_seconds(rules), guess_milli(rules));
        let known = open_for.as_secs().min(guess_seconds);
        let guessed_milli = 1_000 - known * 1_000 / guess_seconds;
        let seen_milli = count * 1_000_000 / millis.max(1);
        let mixed_milli =
            (seen_milli * (1_000 - guessed_milli) + guess_milli * guessed_milli) / 1_000;
        // Users who were admitted a moment ago have had little time to give their slots back: what
        // was seen is rather too slow. If it is faster than the guess, the guess is wrong.
        let is_faster = seen_milli > guess_milli && count >= FASTER_COUNT_MIN;
        Turnover {
            milli: if is_faster { seen_milli } else { mixed_milli },
            count,
            dispersion_milli: dispersion_milli(used),
            guessed_milli,
        }
    }

    /// The relative error for the next `slots`, in thousandths.
    fn unsure_milli(&self, slots: u64) -> u64 {
        // Variances of the relative error, in millionths: of the observations, and of the future.
        let seen = self.dispersion_milli * 1_000 / (self.count + 1);
        let to_come = self.dispersion_milli * 1_000 / slots.max(1);
        let guessed = (GUESS_MILLI * self.guessed_milli / 1_000).pow(2);
        let all = seen + to_come + guessed + UNKNOWABLE_MILLI.pow(2);
        all.isqrt() * DEVIATIONS_MILLI / 1_000
    }
}

impl EstimatedWait {
    /// Rounded outwards, because users are admitted once a second.
    fn new(millis: u64, from_millis: u64, to_millis: u64) -> EstimatedWait {
        EstimatedWait {
            seconds: millis.div_ceil(1_000).max(1),
            from: from_millis / 1_000,
            to: to_millis.div_ceil(1_000) + 1,
        }
    }
}

/// How long a slot is used, by a guess.
fn guess_seconds(rules: &AdmissionRules) -> u64 {
    (rules.slot_ttl.as_secs() * GUESS_QUARTERS / 4).max(1)
}

/// How many slots of a full room are given back per second, by that guess, in thousandths.
fn guess_milli(rules: &AdmissionRules) -> u64 {
    u64::from(rules.threshold) * 1_000 / guess_seconds(rules)
}

/// Since when users come in. It is long ago, unless the room was never full before the seconds that
/// were counted.
fn busy_for(crowd: &Crowd, rules: &AdmissionRules) -> Duration {
    let counted = &crowd.pace.let_in;
    if crowd.admitted_total.saturating_sub(sum(counted)) >= u64::from(rules.threshold) {
        return Duration::MAX;
    }
    let idle = counted.iter().take_while(|count| **count == 0).count();
    Duration::from_secs(len(&counted[idle..]))
}

/// The last seconds in which the sale was open.
fn lately(counts: &[u32], open_for: Duration) -> &[u32] {
    let seconds = usize::try_from(open_for.as_secs()).unwrap_or(usize::MAX);
    &counts[counts.len().saturating_sub(seconds)..]
}

/// The seconds since the room was filled: from then on every admission needs a slot that was given
/// back.
fn since_filled<'a>(crowd: &Crowd, rules: &AdmissionRules, admitted: &'a [u32]) -> &'a [u32] {
    let mut total = crowd.admitted_total.saturating_sub(sum(admitted));
    let filling = admitted.iter().take_while(|count| {
        let is_filled = total >= u64::from(rules.threshold);
        total += u64::from(**count);
        !is_filled
    });
    let filling = filling.count();
    &admitted[filling..]
}

/// How many slots were given back while the room was filling, and in how many milliseconds a full
/// room would give back as many.
fn given_back_while_filling(
    crowd: &Crowd,
    rules: &AdmissionRules,
    open_for: Duration,
) -> (u64, u64) {
    let active = u64::from(crowd.active);
    let count = crowd.admitted_total.saturating_sub(active);
    let open_millis = u64::try_from(open_for.as_millis()).unwrap_or(MILLIS_MAX).min(MILLIS_MAX);
    let rate = u64::from(rules.admitted_per_second_max.max(1));
    // It filled evenly: on average half of the slots were used meanwhile.
    let filling_millis = (active * 1_000 / rate).min(open_millis);
    let used_millis = active * (open_millis - filling_millis / 2);
    (count, used_millis / u64::from(rules.threshold.max(1)))
}

/// Variance over mean of the counts, in thousandths. Short pieces exaggerate bursts, long ones are
/// few: it is the mean of both.
fn dispersion_milli(counts: &[u32]) -> u64 {
    let in_pieces_of = |seconds| {
        let pieces: Vec<u64> = counts.rchunks_exact(seconds).map(sum).collect();
        let (n, total) = (len(&pieces), pieces.iter().sum::<u64>());
        let squares: u64 = pieces.iter().map(|count| count * count).sum();
        let spread = (n * squares - total * total).saturating_mul(1_000);
        // A thousand is assumed as long as there are few observations.
        let seen = spread.checked_div(n.saturating_sub(1) * total).unwrap_or(1_000);
        (seen * n + 1_000) / (n + 1)
    };
    (in_pieces_of(PIECE_SECONDS) + in_pieces_of(LONG_PIECE_SECONDS)) / 2
}

/// Shortens a wait by the users in front who leave. They become fewer with the line: t becomes ln(1
/// + at) / a.
fn shortened(millis: u64, leaving_micro: u64) -> u64 {
    let gone_micro = leaving_micro * millis / 1_000;
    if gone_micro < 1_000 {
        return millis;
    }
    let ln_micro = ln_micro(1_000_000 + gone_micro);
    millis * ln_micro / gone_micro
}

/// The natural logarithm of a number in millionths, in millionths, to about a hundredth.
fn ln_micro(number_micro: u64) -> u64 {
    const ONE: u64 = 1 << 16;
    const LN_2_MICRO: u64 = 693_147;
    let log2 = |number: u64| {
        let whole = u64::from(number.ilog2());
        let rest = (number << 16 >> whole) - ONE;
        // A line, and the bow that is missing between its ends.
        whole * ONE + rest + rest * (ONE - rest) / ONE * 22_500 / ONE
    };
    (log2(number_micro) - log2(1_000_000)) * LN_2_MICRO / ONE
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

fn len<T>(counts: &[T]) -> u64 {
    counts.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use urr_room::{AdmissionState, LinePace};

    const RULES: AdmissionRules = AdmissionRules {
        admission: AdmissionState::Open,
        threshold: 1_000,
        admitted_per_second_max: 100,
        slot_ttl: Duration::from_mins(10),
        slot_max: Duration::from_mins(30),
        waiting_max: 1_000_000,
        queues_per_user_max: 3,
    };
    const LONG: Duration = Duration::from_secs(3_600);

    /// A full room in which so many slots were given back each second of the last minute.
    fn crowd(each_second: impl Fn(usize) -> u32, left: u32) -> Crowd {
        Crowd {
            waiting: 50_000,
            active: 1_000,
            admitted_total: 20_000,
            pace: LinePace {
                admitted: (0..LinePace::SECONDS).map(&each_second).collect(),
                left: vec![left; LinePace::SECONDS],
                let_in: (0..LinePace::SECONDS).map(&each_second).collect(),
            },
            ..Crowd::default()
        }
    }

    fn told(wait_estimator: &WaitEstimator, position: u32) -> EstimatedWait {
        wait_estimator.wait_at(position).expect("there is a measurement")
    }

    #[test]
    fn before_anybody_was_let_in_the_rate_that_was_set_is_believed() {
        let empty = Crowd { active: 0, admitted_total: 0, ..crowd(|_| 0, 0) };
        let wait_estimator = WaitEstimator::new(&empty, &RULES, Duration::ZERO);
        for (position, seconds) in [(1, 1), (99, 1), (101, 2), (1_000, 10)] {
            assert_eq!(told(&wait_estimator, position).seconds, seconds, "{position}");
        }
        // Not thirty seconds for each, nor a floor of five.
        assert_eq!(told(&wait_estimator, 1), EstimatedWait { seconds: 1, from: 0, to: 2 });
        // A user who joins a full room waits for slots, for an unknown time.
        assert_eq!(wait_estimator.wait_at(1_001), None);
        assert_eq!(wait_estimator.wait_at(50_000), None);
        assert!(told(&wait_estimator, 900).to <= 11, "{:?}", wait_estimator.wait_at(900));
    }

    /// Somebody was told "1 second" for as long as nobody went, and later up to two days.
    #[test]
    fn nobody_is_promised_a_slot_of_a_full_room_from_which_nobody_goes() {
        let filled = |second: usize| if second < 10 { 100 } else { 0 };
        let filling = Crowd { admitted_total: 1_000, ..crowd(filled, 0) };
        let still = Crowd { admitted_total: 1_000, ..crowd(|_| 0, 0) };
        for (crowd, open_for) in [(&filling, 60), (&still, 61), (&still, 150), (&still, 86_400)] {
            let wait_estimator = WaitEstimator::new(crowd, &RULES, Duration::from_secs(open_for));
            assert_eq!(wait_estimator.wait_at(1), None, "{open_for}");
        }
        // The control: as soon as somebody goes, that counts.
        let moving = crowd(|_| 10, 0);
        assert_eq!(told(&WaitEstimator::new(&moving, &RULES, LONG), 1).seconds, 1);
    }

    /// A sale was open for a day when the crowd came; the upper end was a hundred times the wait.
    #[test]
    fn a_day_without_a_crowd_says_nothing_about_the_turnover() {
        // The crowd came 9 seconds ago. 150 of the 900 who were let in are gone.
        let came = |second: usize| if second >= 51 { 100 } else { 0 };
        let crowd = Crowd { active: 750, admitted_total: 900, ..crowd(came, 0) };
        let wait = |open_for| told(&WaitEstimator::new(&crowd, &RULES, open_for), 10_000);
        let day = Duration::from_hours(24);
        assert_eq!(wait(day), wait(Duration::from_secs(9)));
        // A fifth of the slots in about seven seconds, which half of them had: some 28 a second.
        assert!((200..600).contains(&wait(day).seconds), "{:?}", wait(day));
        assert!(wait(day).to < 1_000, "{:?}", wait(day));
        // The control: if the room was full before, the crowd did not come just now.
        let older = Crowd { admitted_total: 50_000, ..crowd.clone() };
        let full_before = told(&WaitEstimator::new(&older, &RULES, day), 10_000);
        assert_ne!(full_before, wait(day));
    }

    #[test]
    fn fewer_than_five_seconds_are_no_measurement() {
        let crowd = crowd(|_| 4, 0);
        let wait =
            |open| WaitEstimator::new(&crowd, &RULES, Duration::from_secs(open)).wait_at(40_000);
        assert_eq!(wait(4), None);
        // By slots of 150 seconds, and by four a second, as far as that is known.
        assert!((6_000..10_000).contains(&wait(5).unwrap().seconds), "{:?}", wait(5));
    }

    #[test]
    fn the_measured_movement_is_believed() {
        for each_second in [1, 4, 20, 100] {
            let wait_estimator = WaitEstimator::new(&crowd(|_| each_second, 0), &RULES, LONG);
            let wait = told(&wait_estimator, 20_000);
            assert_eq!(wait.seconds, u64::from(20_000 / each_second), "{each_second}");
            assert!(wait.from < wait.seconds && wait.seconds < wait.to, "{wait:?}");
        }
    }

    #[test]
    fn the_reach_of_a_time_are_those_who_wait_no_longer() {
        for (each_second, left) in [(1, 0), (4, 2), (100, 50)] {
            let wait_estimator = WaitEstimator::new(&crowd(|_| each_second, left), &RULES, LONG);
            for seconds in [1, 10, 180, 5_000] {
                let reach = wait_estimator.people_within(seconds);
                assert!(reach > 0 && told(&wait_estimator, reach).seconds <= seconds, "{reach}");
                assert!(told(&wait_estimator, reach + 1).seconds > seconds, "{reach}");
            }
            assert_eq!(wait_estimator.people_within(0), 0);
        }
    }

    #[test]
    fn the_seconds_in_which_the_room_was_filled_are_not_taken_for_the_later_speed() {
        // It opened 40 seconds ago: ten seconds of a hundred each filled it, then came two a second.
        let filled = |second: usize| if (20..30).contains(&second) { 100 } else { 2 };
        let crowd = Crowd { admitted_total: 1_060, ..crowd(filled, 0) };
        let wait_estimator = WaitEstimator::new(&crowd, &RULES, Duration::from_secs(40));
        let slow = told(&wait_estimator, 20_000);
        // A mean of all would say 800 seconds.
        assert!(slow.seconds > 3_000, "{slow:?}");
    }

    #[test]
    fn free_slots_are_filled_at_the_rate() {
        let crowd = Crowd { active: 500, ..crowd(|_| 2, 0) };
        let wait_estimator = WaitEstimator::new(&crowd, &RULES, LONG);
        assert_eq!(told(&wait_estimator, 500).seconds, 5);
        assert!(told(&wait_estimator, 1_000).seconds > 200);
    }

    #[test]
    fn those_who_leave_shorten_the_wait() {
        let wait = |left| told(&WaitEstimator::new(&crowd(|_| 10, left), &RULES, LONG), 50_000);
        let (stays, leaves) = (wait(0), wait(20));
        // ln(1 + 0.0004 × 5,000 s) / 0.0004: the fewer are left, the fewer leave.
        assert_eq!(stays.seconds, 5_000);
        assert!((2_700..=2_790).contains(&leaves.seconds), "{leaves:?}");
    }

    #[test]
    fn the_range_grows_with_the_distance_and_with_unsteadiness() {
        let width = |wait_estimator: &WaitEstimator, position| {
            let wait = told(wait_estimator, position);
            wait.to - wait.from
        };
        let steady = WaitEstimator::new(&crowd(|_| 10, 0), &RULES, LONG);
        let wild = |second| if second % 10 < 2 { 50 } else { 0 };
        let wild = WaitEstimator::new(&crowd(wild, 0), &RULES, LONG);
        assert_eq!(told(&wild, 5_000).seconds, told(&steady, 5_000).seconds);
        for wait_estimator in [&steady, &wild] {
            assert!(width(wait_estimator, 100) < width(wait_estimator, 1_000));
            assert!(width(wait_estimator, 1_000) < width(wait_estimator, 20_000));
        }
        assert!(width(&steady, 5_000) * 3 / 2 < width(&wild, 5_000));
    }

    #[test]
    fn the_logarithm_is_right_to_a_hundredth() {
        let known = [(1_000_000, 0), (2_000_000, 693_147), (3_000_000, 1_098_612)];
        for (number, ln) in known.into_iter().chain([(11_000_000, 2_397_895)]) {
            assert!(ln_micro(number).abs_diff(ln) < 10_000, "{number}: {}", ln_micro(number));
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_seen_there_is_an_answer(
            let_in in proptest::collection::vec(0..1_000_000_u32, 0..=60),
            left in proptest::collection::vec(0..1_000_000_u32, 0..=60),
            waiting: u32, active: u32, admitted_total in 0..1_000_000_000_000_u64,
            threshold: u32, rate: u32, open_seconds: u32, position: u32,
        ) {
            let pace = LinePace { admitted: let_in.clone(), left, let_in };
            let crowd = Crowd { waiting, active, admitted_total, pace, ..Crowd::default() };
            let rules = AdmissionRules { threshold, admitted_per_second_max: rate, ..RULES };
            let open_for = Duration::from_secs(open_seconds.into());
            let wait_estimator = WaitEstimator::new(&crowd, &rules, open_for);
            let (seconds, before) =
                (wait_estimator.seconds_at(position), wait_estimator.seconds_at(position / 2));
            proptest::prop_assert!(1 <= seconds && before <= seconds);
            if let Some(wait) = wait_estimator.wait_at(position) {
                proptest::prop_assert!(wait.from <= wait.seconds && wait.seconds <= wait.to);
            }
        }
    }
}
