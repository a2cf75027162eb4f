//! Whole sales are simulated, and everybody is told a range: as soon as one is known, half way, and
//! near the front. Of those who were told one at a moment, at least eight in ten must be admitted
//! within it, and its upper end must be worth something.
//!
//! The line here is a plain queue: what is looked at is the estimate alone.

#![expect(clippy::float_arithmetic, reason = "times and shares, never money")]

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use urr_queue::WaitEstimator;
use urr_room::{AdmissionRules, AdmissionState, Crowd, LinePace};

/// Steps of a simulated second.
const STEPS: u32 = 4;
/// A fan learns of the admission by the next poll, and ranges are in whole seconds.
const SLACK_SECONDS: f64 = 2.0;
const WITHIN_MIN: f64 = 0.8;
/// The median of the upper end over the wait.
const UPPER_RATIO_MAX: f64 = 4.0;
/// Every so many fans are told something: their neighbours would be told the same.
const ASKS_ONE_IN: usize = 7;

/// A sale as it goes. Times are in seconds.
#[derive(Clone)]
struct Shape {
    name: &'static str,
    /// All come within a second.
    fans: u32,
    threshold: u32,
    rate: u32,
    /// A slot is used for a fixed time, and for two more that vary.
    purchase: [f64; 3],
    /// The time that fans stay in the line on average; for ever if 0.
    patience: f64,
    /// The program stands still: from and until.
    stops: Vec<(f64, f64)>,
    /// The program is killed so often on average, and is back after a second or so.
    killed_every: f64,
    /// A restart forgets who gave slots back, as it did once.
    forgets: bool,
    /// From when on another threshold holds.
    new_threshold: Option<(f64, u32)>,
    /// The server admits no more per second.
    admits_max: u32,
    /// The room was idle for so long when the fans came.
    idle: f64,
    /// What is told before is not looked at: nobody could know.
    looked_at_from: f64,
}

fn shape(name: &'static str, fans: u32, threshold: u32, purchase: [f64; 3]) -> Shape {
    Shape {
        name,
        fans,
        threshold,
        purchase,
        rate: 100,
        patience: 0.0,
        stops: Vec::new(),
        killed_every: 0.0,
        forgets: false,
        new_threshold: None,
        admits_max: u32::MAX,
        idle: 0.0,
        looked_at_from: 0.0,
    }
}

const QUICK: [f64; 3] = [0.0, 0.8, 1.2];
const USUAL: [f64; 3] = [0.0, 8.0, 12.0];

fn shapes() -> Vec<Shape> {
    let large = |name| shape(name, 8_000, 1_000, USUAL);
    let small = |name| shape(name, 600, 50, USUAL);
    vec![
        large("large, 20 s"),
        shape("large, 2 s", 8_000, 1_000, QUICK),
        shape("large, two minutes", 8_000, 1_000, [60.0, 60.0, 0.0]),
        shape("three rooms full, 20 s", 3_000, 1_000, USUAL),
        shape("small, 2 s", 3_000, 100, QUICK),
        shape("smaller, 2 s", 300, 30, QUICK),
        small("small, 20 s"),
        shape("small, two minutes", 300, 30, [60.0, 20.0, 40.0]),
        shape("tiny, a minute", 100, 10, [20.0, 20.0, 20.0]),
        shape("two slots", 40, 2, USUAL),
        shape("slow buyers", 4_000, 400, [180.0, 200.0, 0.0]),
        shape("all take the same time", 6_000, 1_000, [60.0, 3.0, 0.0]),
        Shape { patience: 900.0, ..large("fans leave") },
        Shape { stops: vec![(40.0, 70.0)], ..large("a stop of 30 s") },
        Shape { stops: vec![(40.0, 70.0)], ..small("small, a stop of 30 s") },
        Shape {
            stops: vec![(60.0, 180.0)],
            looked_at_from: 180.0,
            ..large("after a stop of two minutes")
        },
        Shape {
            stops: (1..40_u32).map(|it| f64::from(it) * 20.0).map(|at| (at, at + 5.0)).collect(),
            ..large("many stops")
        },
        Shape { killed_every: 6.0, ..large("killed, 20 s") },
        Shape { killed_every: 6.0, ..shape("killed, 2 s", 8_000, 1_000, QUICK) },
        Shape {
            threshold: 500,
            new_threshold: Some((60.0, 1_500)),
            looked_at_from: 63.0,
            ..large("more may come in")
        },
        Shape {
            new_threshold: Some((60.0, 200)),
            looked_at_from: 62.0,
            ..large("fewer may come in")
        },
        Shape { idle: 300.0, ..large("after an idle time") },
        Shape {
            admits_max: 30,
            looked_at_from: 4.0,
            ..shape("a slow server", 3_000, 1_000, QUICK)
        },
    ]
}

const MOMENTS: [&str; 3] = ["first", "half way", "near the front"];

/// What a fan was told.
#[derive(Clone, Copy)]
struct ToldRange {
    at: f64,
    from: f64,
    to: f64,
}

/// Someone in the line.
struct WaitingFan {
    joined_at: f64,
    leaves_at: f64,
    first_position: u32,
    is_asking: bool,
    told: [Option<ToldRange>; MOMENTS.len()],
}

/// Of those who were told something at a moment.
#[derive(Clone, Default)]
struct Score {
    within: usize,
    sooner: usize,
    /// The upper end over the wait, of each.
    upper_ratios: Vec<f64>,
}

/// What is counted of a second.
#[derive(Clone, Copy, Default)]
struct CountedSecond {
    let_in: u32,
    admitted: u32,
    left: u32,
    ended: u32,
}

struct Sale<'a> {
    shape: &'a Shape,
    random: StdRng,
    now: f64,
    line: VecDeque<WaitingFan>,
    /// When each slot is given back.
    slots: Vec<f64>,
    seconds: Vec<CountedSecond>,
    admitted_total: u64,
    down_until: f64,
    killed_at: f64,
    scores: [Score; MOMENTS.len()],
}

impl Sale<'_> {
    fn run(shape: &Shape, seed: u64) -> [Score; MOMENTS.len()] {
        let mut sale = Sale {
            shape,
            random: StdRng::seed_from_u64(seed),
            now: 0.0,
            line: VecDeque::new(),
            slots: Vec::new(),
            seconds: Vec::new(),
            admitted_total: 0,
            down_until: 0.0,
            killed_at: if shape.killed_every > 0.0 { 2.0 } else { f64::INFINITY },
            scores: [const { Score { within: 0, sooner: 0, upper_ratios: Vec::new() } }; 3],
        };
        let mut arrivals: Vec<f64> =
            (0..shape.fans).map(|_| shape.idle + sale.random.random::<f64>()).collect();
        arrivals.sort_by(f64::total_cmp);
        let mut arrivals = arrivals.into_iter().enumerate().peekable();
        for step in 1_u32.. {
            sale.now = f64::from(step) / f64::from(STEPS);
            sale.seconds.resize((step / STEPS + 1) as usize, CountedSecond::default());
            while let Some((number, _)) = arrivals.next_if(|(_, at)| *at <= sale.now) {
                sale.join(number);
            }
            if arrivals.peek().is_none() && sale.line.is_empty() {
                return sale.scores;
            }
            if !sale.is_down() {
                sale.step();
                if step.is_multiple_of(STEPS) && sale.now >= shape.looked_at_from {
                    sale.tell();
                }
            }
        }
        unreachable!("a line comes to its end");
    }

    fn is_down(&mut self) -> bool {
        if self.now >= self.killed_at {
            self.down_until = self.now + 0.3 + 1.4 * self.random.random::<f64>();
            self.killed_at = self.now + 0.5 + self.varied(self.shape.killed_every);
            if self.shape.forgets {
                self.seconds.iter_mut().for_each(|it| (it.ended, it.let_in) = (0, 0));
            }
        }
        let is_stopped = |(from, until): &(f64, f64)| (*from..*until).contains(&self.now);
        self.now < self.down_until || self.shape.stops.iter().any(is_stopped)
    }

    /// Most are quick, some take long; nobody takes more than five times the mean.
    fn varied(&mut self, mean: f64) -> f64 {
        mean * (-(1.0 - self.random.random::<f64>()).ln()).min(5.0)
    }

    fn join(&mut self, number: usize) {
        let patience = match self.shape.patience {
            0.0 => f64::INFINITY,
            mean => self.varied(mean),
        };
        self.line.push_back(WaitingFan {
            joined_at: self.now,
            leaves_at: self.now + patience,
            first_position: 0,
            is_asking: number.is_multiple_of(ASKS_ONE_IN),
            told: [None; MOMENTS.len()],
        });
    }

    fn counted(&mut self) -> &mut CountedSecond {
        self.seconds.last_mut().expect("the present second")
    }

    /// Slots end, fans leave, and others are admitted.
    fn step(&mut self) {
        let (now, before) = (self.now, (self.slots.len(), self.line.len()));
        self.slots.retain(|until| *until > now);
        self.line.retain(|fan| fan.leaves_at > now);
        let (ended, left) = (before.0 - self.slots.len(), before.1 - self.line.len());
        self.counted().ended += to_u32(ended);
        self.counted().left += to_u32(left);
        // Users are admitted once a second.
        if self.now.fract() > 0.0 {
            return;
        }
        let rate = self.shape.rate.min(self.shape.admits_max);
        let threshold = self.threshold() as usize;
        while self.counted().let_in < rate && self.slots.len() < threshold {
            let Some(fan) = self.line.pop_front() else { break };
            self.judge(&fan);
            let [fixed, choosing, paying] = self.shape.purchase;
            let until = now + fixed + self.varied(choosing) + self.varied(paying);
            self.slots.push(until);
            self.admitted_total += 1;
            self.counted().let_in += 1;
            self.counted().admitted += u32::from(fan.joined_at < now);
        }
    }

    fn threshold(&self) -> u32 {
        match self.shape.new_threshold {
            Some((from, threshold)) if self.now >= from => threshold,
            _ => self.shape.threshold,
        }
    }

    /// Compares what someone was told with what came.
    fn judge(&mut self, fan: &WaitingFan) {
        for (score, told) in self.scores.iter_mut().zip(fan.told) {
            let Some(ToldRange { at, from, to }) = told else { continue };
            let waited = self.now - at;
            let (is_sooner, is_longer) =
                (waited + SLACK_SECONDS < from, waited > to + SLACK_SECONDS);
            score.sooner += usize::from(is_sooner);
            score.within += usize::from(!is_sooner && !is_longer);
            score.upper_ratios.push(to / waited.max(5.0));
        }
    }

    /// Tells everybody who has come to a moment how long they will wait.
    fn tell(&mut self) {
        let now = self.now;
        let estimator = WaitEstimator::new(&self.crowd(), &self.rules());
        for (position, fan) in (1_u32..).zip(&mut self.line).filter(|(_, fan)| fan.is_asking) {
            if fan.first_position == 0 {
                fan.first_position = position;
            }
            let moment = match fan.first_position {
                first if position <= (first / 20).max(20) => 2,
                first if position <= first / 2 => 1,
                _ => 0,
            };
            if fan.told[moment].is_none() {
                let wait = estimator.wait_at(position);
                let told = wait.map(|it| (it.from as f64, it.to as f64));
                fan.told[moment] = told.map(|(from, to)| ToldRange { at: now, from, to });
            }
        }
    }

    fn crowd(&self) -> Crowd {
        let (present, past) = self.seconds.split_last().expect("the present second");
        let missing = LinePace::SECONDS.saturating_sub(past.len());
        let past = &past[past.len().saturating_sub(LinePace::SECONDS)..];
        let counts = |of: fn(&CountedSecond) -> u32| {
            std::iter::repeat_n(0, missing).chain(past.iter().map(of)).collect()
        };
        let active = to_u32(self.slots.len());
        Crowd {
            waiting: to_u32(self.line.len()),
            active,
            admitted_total: self.admitted_total,
            pace: LinePace {
                admitted: counts(|it| it.admitted),
                left: counts(|it| it.left),
                let_in: counts(|it| it.let_in),
                ended: counts(|it| it.ended),
                in_use: (active + present.ended).saturating_sub(present.let_in),
            },
            ..Crowd::default()
        }
    }

    fn rules(&self) -> AdmissionRules {
        AdmissionRules {
            admission: AdmissionState::Open,
            threshold: self.threshold(),
            admitted_per_second_max: self.shape.rate,
            slot_ttl: Duration::from_mins(10),
            slot_max: Duration::from_mins(30),
            waiting_max: u32::MAX,
            queues_per_user_max: 3,
        }
    }
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a crowd is smaller")
}

impl Score {
    fn told(&self) -> usize {
        self.upper_ratios.len()
    }

    fn within_share(&self) -> f64 {
        self.within as f64 / self.told().max(1) as f64
    }

    fn upper_ratio(&mut self) -> f64 {
        self.upper_ratios.sort_by(f64::total_cmp);
        self.upper_ratios.get(self.told() / 2).copied().unwrap_or(0.0)
    }
}

/// The scores of a few sales of a shape.
fn score(shape: &Shape) -> [Score; MOMENTS.len()] {
    let sales = if shape.fans < 1_000 { 20 } else { 2 };
    let mut scores: [Score; MOMENTS.len()] = Default::default();
    for seed in 0..sales {
        for (score, more) in scores.iter_mut().zip(Sale::run(shape, seed)) {
            score.within += more.within;
            score.sooner += more.sooner;
            score.upper_ratios.extend(more.upper_ratios);
        }
    }
    scores
}

#[test]
fn in_every_kind_of_sale_eight_in_ten_are_admitted_within_their_range() {
    let mut missed = Vec::new();
    for shape in shapes() {
        for (moment, mut score) in MOMENTS.into_iter().zip(score(&shape)) {
            let (told, within, upper) = (score.told(), score.within_share(), score.upper_ratio());
            let line = format!(
                "{}, {moment}: {told} told, {:.0} % within, {} sooner, upper end {upper:.1} times",
                shape.name,
                within * 100.0,
                score.sooner
            );
            if told > 0 && (within < WITHIN_MIN || upper > UPPER_RATIO_MAX) {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The rule that says nothing would pass the test above.
#[test]
fn most_fans_are_told_a_range_before_they_are_half_way() {
    for shape in shapes().into_iter().filter(|it| it.looked_at_from == 0.0) {
        let sales = if shape.fans < 1_000 { 20 } else { 2 };
        let asking = shape.fans as usize / ASKS_ONE_IN * sales;
        // Whoever is near from the beginning is not told anything half way.
        let told: usize = score(&shape).iter().map(Score::told).sum();
        assert!(told * 2 > asking, "{}: {told} of {asking}", shape.name);
    }
}

/// The control: with restarts that forget, as they did once, the ranges are wrong.
#[test]
fn a_restart_that_forgets_how_slots_were_given_back_is_noticed() {
    let all = shapes();
    let killed = all.iter().find(|it| it.name == "killed, 20 s").expect("it is in the list");
    let [_, half_way, _] = score(&Shape { forgets: true, ..killed.clone() });
    let share = half_way.within_share();
    assert!(share < WITHIN_MIN || half_way.told() == 0, "{share}");
}
