//! One run: a seed decides everything. First people act and things fail; then everything heals, and
//! all must come to its end.
//!
//! All tasks run on one thread, under tokio's paused time. Between two steps they run until each of
//! them waits for something. Then the schedule picks what happens next: a transaction, a message,
//! an action, a job, a crash, or that time passes.

mod actions;
mod processes;
mod steps;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use urr_bus::{Bus, TopicSpec};
use urr_kernel::{Clock, Timestamp};
use urr_storage::StepQueue;

use crate::databases::{DatabaseName, Databases, epoch};
use crate::fans::{ActionResult, Fans};
use crate::faults::{CLOCK_SKEW_MS, FaultGate, Kept, Swarm};
use crate::jobs::{self, JobKind};
use crate::network::Network;
use crate::oracle::{Figures, Moment, Oracle, Violation, is_settled};
use crate::panics;
use crate::plan::{self, Action, FANS};
use crate::random::Random;
use crate::sabotage::Sabotage;
use crate::services::{Registry, Role, SimulatedProcess, Surroundings, provider};
use crate::trace::{Trace, TraceHash};

/// What happens between two steps takes this long.
const STEP: Duration = Duration::from_millis(1);
/// When runs begin, after what was prepared for them.
const PREPARED_AFTER: Duration = Duration::from_secs(60);
const STEPS_MAX: u32 = 1_500;
/// Longer than any pause of the product between two attempts.
const HEALING_PAUSE: Duration = Duration::from_secs(310);
const HEALING_ROUNDS_MAX: u32 = 30;
/// A request that is older than this never reaches the provider: the product relies on it.
const PROVIDER_REQUEST_LIFE: Duration = Duration::from_secs(42);
/// How often an action that has to wait is tried again.
const ATTEMPTS_MAX: u32 = 8;
/// Where the provider is among those who are not ours.
const PROVIDER: usize = 1;

/// What is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    pub seed: u64,
    pub sabotage: Option<Sabotage>,
    /// None: everything.
    pub kept: Option<Kept>,
    /// Whether every step is described.
    pub has_lines: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct RunReport {
    pub seed: u64,
    pub hash: TraceHash,
    pub steps: u32,
    pub violation: Option<Violation>,
    /// The actions and faults that happened, by their numbers.
    pub happened: Kept,
    pub lines: Vec<String>,
    pub figures: Figures,
}

/// Runs a seed on the databases of this thread.
pub fn run(databases: &Databases, options: &RunOptions) -> RunReport {
    databases.begin_run().expect("an empty database in memory can be begun");
    let queues = Arc::new(std::sync::Mutex::new(Vec::new()));
    let report = with_runtime(async {
        let mut run = Run::new(databases, options, Arc::clone(&queues), epoch() + PREPARED_AFTER);
        let outcome = run.whole().await;
        run.surroundings.registry.clear();
        run.report(outcome.err())
    });
    // The tasks are gone; what they submitted refers to what they had.
    let queues = std::mem::take(&mut *queues.lock().expect("nobody else is left"));
    queues.iter().for_each(StepQueue::clear);
    databases.end_run();
    report
}

/// Puts an event on sale, once for all runs of a thread.
pub fn prepare(sabotage: Option<Sabotage>) -> Databases {
    let databases = Databases::new(sabotage).expect("the tables can be made");
    databases.begin_run().expect("an empty database in memory can be begun");
    let queues = Arc::new(std::sync::Mutex::new(Vec::new()));
    let options = RunOptions { sabotage, ..RunOptions::default() };
    with_runtime(async {
        let mut run = Run::new(&databases, &options, Arc::clone(&queues), epoch());
        run.swarm = Swarm::NONE;
        run.faults.close();
        run.prepare().await;
        run.surroundings.registry.clear();
    });
    let queues = std::mem::take(&mut *queues.lock().expect("nobody else is left"));
    queues.iter().for_each(StepQueue::clear);
    databases.keep_run().expect("what was prepared can be kept");
    databases
}

fn with_runtime<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without threads can be built");
    let _watched = panics::watch();
    let result = runtime.block_on(work);
    // What is dropped with the runtime may still want to spawn something.
    let handle = runtime.handle().clone();
    let _entered = handle.enter();
    drop(runtime);
    result
}

type Queues = Arc<std::sync::Mutex<Vec<StepQueue>>>;

/// A process that should be there, and the one that is, if it is.
struct Place {
    role: Role,
    clock: Arc<AtomicI64>,
    process: Option<SimulatedProcess>,
}

struct PendingAction {
    number: u32,
    action: Action,
    attempts: u32,
}

/// An action that is under way.
struct RunningAction {
    pending: PendingAction,
    task: JoinHandle<ActionResult>,
}

struct Run {
    random: Random,
    swarm: Swarm,
    faults: FaultGate,
    kept_actions: Option<BTreeSet<u32>>,
    happened: Vec<u32>,
    trace: Trace,
    oracle: Oracle,
    surroundings: Surroundings,
    /// Of those who are not ours: the bus and the provider.
    foreign: Vec<(DatabaseName, StepQueue)>,
    /// When each waiting transaction of the provider was first seen.
    provider_since: Vec<i64>,
    places: Vec<Place>,
    /// That of the fans, the bus and the provider. It is never wrong.
    clock: Arc<AtomicI64>,
    fans: Fans,
    actions: Vec<PendingAction>,
    running: Vec<RunningAction>,
    queues: Queues,
    next_number: u32,
    is_provider_down: bool,
    crashes: u64,
    seed: u64,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Of a process, by its place.
    Transaction {
        place: usize,
        queue: usize,
        index: usize,
    },
    Foreign {
        queue: usize,
        index: usize,
    },
    Message(usize),
}

impl Run {
    fn new(databases: &Databases, options: &RunOptions, queues: Queues, start: Timestamp) -> Run {
        let seed = options.seed;
        let mut random = Random::new(seed);
        let swarm = Swarm::choose(&mut random);
        let clock = Arc::new(AtomicI64::new(start.as_microsecond()));
        let (bus_db, bus_queue) = databases.get(DatabaseName::Bus).open();
        let (sandbox, provider_queue) = provider(databases, &clock, seed);
        let surroundings = Surroundings {
            databases: databases.clone(),
            network: Network::default(),
            registry: Registry::default(),
            bus: Bus::on_database(bus_db, &Clock::Manual(Arc::clone(&clock))),
            provider: sandbox,
            sabotage: options.sabotage,
            seed,
        };
        let actions = plan::actions(&mut random, swarm.odd_cards, swarm.disconnects);
        let number = |index: usize| u32::try_from(index).expect("a plan is short") + 1;
        let actions = actions.into_iter().enumerate();
        let fans = Fans::new(&surroundings, Clock::Manual(Arc::clone(&clock)), FANS);
        let foreign =
            vec![(DatabaseName::Bus, bus_queue), (DatabaseName::Provider, provider_queue)];
        queues
            .lock()
            .expect("nothing panics while it holds it")
            .extend(foreign.iter().map(|(_, queue)| queue.clone()));
        let kept = options.kept.clone();
        Run {
            places: places(&swarm, &mut random, start),
            random,
            swarm,
            faults: FaultGate::new(kept.as_ref().map(|kept| kept.faults.clone())),
            kept_actions: kept.map(|kept| kept.actions),
            happened: Vec::new(),
            trace: Trace::new(options.has_lines),
            oracle: Oracle::new(),
            surroundings,
            foreign,
            provider_since: Vec::new(),
            clock,
            fans,
            actions: actions
                .map(|(index, action)| PendingAction { number: number(index), action, attempts: 0 })
                .collect(),
            running: Vec::new(),
            queues,
            next_number: 0,
            is_provider_down: false,
            crashes: 0,
            seed,
        }
    }

    /// Makes topics, artist and events, and waits until every service knows them.
    async fn prepare(&mut self) {
        let topics: Vec<TopicSpec> = urr_stats::TOPICS
            .iter()
            .map(|topic| TopicSpec { partitions: 1, ..TopicSpec::new(*topic) })
            .collect();
        let bus = self.surroundings.bus.clone();
        let made = tokio::spawn(async move { bus.ensure_topics(&topics).await });
        self.drain().await.expect("nothing is broken yet");
        made.await.expect("it does not panic").expect("topics can be made");
        self.start_missing().await;
        let catalog = self.surroundings.registry.find(Role::Catalog).expect("it was started");
        let announcing = jobs::announce_events(catalog.instance.tables().clone());
        let announced = tokio::spawn(announcing);
        for _ in 0..6 {
            self.drain().await.expect("nothing is broken yet");
            self.pass(Duration::from_millis(1_100)).await;
        }
        announced.await.expect("it does not panic");
    }

    async fn whole(&mut self) -> Result<(), Violation> {
        let swarm = self.swarm;
        self.trace.say(|| format!("seed {}, {swarm:?}", self.seed));
        self.start_missing().await;
        self.act_and_fail().await?;
        self.heal().await
    }

    fn report(self, violation: Option<Violation>) -> RunReport {
        let figures = Figures {
            crashes: self.crashes,
            faults: u64::try_from(self.faults.fired.len()).unwrap_or(0),
            ..self.oracle.figures(&self.moment())
        };
        let happened = Kept {
            actions: self.happened.iter().copied().collect(),
            faults: self.faults.fired.iter().copied().collect(),
        };
        let (hash, steps, seed) = (self.trace.hash(), self.trace.steps(), self.seed);
        RunReport {
            seed,
            hash,
            steps,
            violation,
            happened,
            lines: self.trace.into_lines(),
            figures,
        }
    }

    fn moment(&self) -> Moment<'_> {
        let clocks = self.places.iter().map(|place| place.clock.load(Ordering::Relaxed));
        let latest = clocks.max().unwrap_or(0).max(self.clock.load(Ordering::Relaxed));
        let latest_now = Timestamp::from_microsecond(latest).expect("it is in this century");
        Moment { databases: &self.surroundings.databases, fans: &self.fans, latest_now }
    }

    /// The first phase.
    async fn act_and_fail(&mut self) -> Result<(), Violation> {
        while self.trace.steps() < STEPS_MAX
            && !(self.actions.is_empty() && self.running.is_empty())
        {
            self.settle_tasks().await?;
            self.maybe_fail_at_large().await;
            let choices = self.likely_choices();
            let roll = self.random.below(100);
            match choices.is_empty() {
                false if roll < 80 => {
                    let choice = self.random.pick(&choices);
                    self.take(choice)?;
                }
                _ if roll < 90 => self.begin_action(),
                true if roll < 60 => self.pass_a_while().await,
                _ => self.begin_job(),
            }
        }
        Ok(())
    }

    /// Lets the tasks run until all of them wait, and looks at what they have found.
    async fn settle_tasks(&mut self) -> Result<(), Violation> {
        self.advance_clocks(STEP);
        tokio::time::sleep(STEP).await;
        let mut index = 0;
        while index < self.running.len() {
            if !self.running[index].task.is_finished() {
                index += 1;
                continue;
            }
            let RunningAction { mut pending, task } = self.running.remove(index);
            // A task that was ended had its browser closed.
            let result = task.await.unwrap_or(ActionResult::Done);
            pending.attempts += 1;
            let is_retried = result == ActionResult::NotYet && pending.attempts < ATTEMPTS_MAX;
            if is_retried {
                self.actions.insert(0, pending);
            }
        }
        let panicked = panics::take().map(|what| Violation { invariant: "nothing panics", what });
        match self.fans.violation().or(panicked) {
            Some(violation) => Err(violation),
            None => Ok(()),
        }
    }

    /// The second phase: nothing fails any more, and all jobs run until nothing is left to do.
    async fn heal(&mut self) -> Result<(), Violation> {
        self.trace.say(|| "everything heals".to_owned());
        self.faults.close();
        self.set_provider_down(false);
        self.start_missing().await;
        self.drain().await?;
        for round in 0..HEALING_ROUNDS_MAX {
            self.trace.step(&[11, u64::from(round)], || format!("healing, round {round}"));
            for job in JobKind::ALL {
                self.spawn_job(job);
                self.drain().await?;
            }
            for _ in 0..3 {
                self.pass(Duration::from_millis(1_100)).await;
                self.drain().await?;
            }
            if round >= 1 && is_settled(&self.moment()) {
                break;
            }
            self.advance_clocks(HEALING_PAUSE);
        }
        let mut oracle = std::mem::take(&mut self.oracle);
        let verdict = oracle.at_the_end(&self.moment());
        self.oracle = oracle;
        verdict
    }

    /// Runs whatever waits, in order, until nothing does.
    async fn drain(&mut self) -> Result<(), Violation> {
        loop {
            self.settle_tasks().await?;
            let choices = self.choices();
            let Some(choice) = choices.first().copied() else { return Ok(()) };
            self.take(choice)?;
        }
    }
}

/// The processes of a run.
fn places(swarm: &Swarm, random: &mut Random, start: Timestamp) -> Vec<Place> {
    let mut roles =
        vec![Role::Ticket, Role::Payment, Role::Queue, Role::Stats, Role::Catalog, Role::Witness];
    if swarm.replicas {
        roles.extend([Role::Ticket, Role::Payment]);
    }
    let place = |role| {
        let skew_ms = random.below(usize::from(CLOCK_SKEW_MS));
        let skew_us =
            if swarm.clock_skew { i64::try_from(skew_ms).unwrap_or(0) * 1_000 } else { 0 };
        let clock = Arc::new(AtomicI64::new(start.as_microsecond() + skew_us));
        Place { role, clock, process: None }
    };
    roles.into_iter().map(place).collect()
}
