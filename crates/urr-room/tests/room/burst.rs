//! Everybody comes in the same moment: those who are in are never more than may be.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Barrier, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use urr_kernel::Uuid;
use urr_room::{StatusSnapshot, UserStatus};

use crate::fixture::{NOBODY, SECOND, World};

const PEOPLE: usize = 5_000;
const THRESHOLD: u32 = 100;
const OBSERVERS: usize = 2;

/// Looks at the room as a whole, again and again.
struct Observers {
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<u32>>,
}

impl Observers {
    fn start(world: &World) -> Observers {
        let is_over = Arc::new(AtomicBool::new(false));
        let tasks = (0..OBSERVERS).map(|_| {
            let (world, is_over) = (world.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                let mut active_max = 0;
                loop {
                    let was_over = is_over.load(Ordering::SeqCst);
                    active_max = active_max.max(world.crowd().await.active);
                    // One look at least is after everything.
                    if was_over {
                        return active_max;
                    }
                    tokio::task::yield_now().await;
                }
            })
        });
        Observers { tasks: tasks.collect(), is_over }
    }

    /// The most they have ever seen in.
    async fn finish(self) -> u32 {
        self.is_over.store(true, Ordering::SeqCst);
        let mut active_max = 0;
        for task in self.tasks {
            active_max = active_max.max(task.await.unwrap());
        }
        active_max
    }
}

/// First checks of so many people, all at once.
async fn check_all_at_once(world: &World, count: usize) -> Vec<StatusSnapshot> {
    let start = Arc::new(Barrier::new(count));
    let mut checks = JoinSet::new();
    for user in world.users(count) {
        let (world, start) = (world.clone(), Arc::clone(&start));
        checks.spawn(async move {
            start.wait().await;
            world.check(user).await
        });
    }
    checks.join_all().await
}

/// The most that anybody saw in, and how many were let in.
async fn burst(world: &World) -> (u32, usize) {
    let observers = Observers::start(world);
    let answers = check_all_at_once(world, PEOPLE).await;
    let answer = answers.iter().map(|snapshot| snapshot.active).max().unwrap();
    let admitted = answers.iter().filter(|snapshot| snapshot.is_just_admitted).count();
    (observers.finish().await.max(answer), admitted)
}

on_all_forms! {
    async fn r_1_a_burst_of_first_checks_never_passes_the_threshold(world: World) {
        let world = world.with(|rules| rules.threshold = THRESHOLD);
        assert_eq!(burst(&world).await, (THRESHOLD, 100));
        assert_eq!(world.counts().await, (4_900, THRESHOLD));
        assert_eq!(world.audit().await, []);
    }

    /// The control: where one more is let in, the same observers see it.
    async fn r_1_one_too_many_would_be_seen(world: World) {
        let world = world.with(|rules| rules.threshold = THRESHOLD + 1);
        assert_eq!(burst(&world).await, (THRESHOLD + 1, 101));
    }

    async fn a_burst_of_first_checks_keeps_the_rate(world: World) {
        let world = world.with(|rules| rules.admitted_per_second_max = 30);
        let answers = check_all_at_once(&world, 1_000).await;
        assert_eq!(answers.iter().filter(|snapshot| snapshot.is_just_admitted).count(), 30);
        assert_eq!(world.admit().await, NOBODY);
        world.pass(SECOND);
        assert_eq!(world.admit().await.len(), 30);
    }

    /// People check, are let in by several workers, and go; meanwhile others come.
    async fn r_1_coming_and_going_never_passes_the_threshold(world: World) {
        const GUESTS: usize = 600;
        let world = world.with(|rules| rules.threshold = 10);
        let observers = Observers::start(&world);
        let (admitted, mut leave) = mpsc::unbounded_channel::<Uuid>();
        let mut guests = JoinSet::new();
        for user in world.users(GUESTS) {
            let (world, admitted) = (world.clone(), admitted.clone());
            guests.spawn(async move {
                if world.check(user).await.is_just_admitted {
                    admitted.send(user).unwrap();
                }
            });
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let mut workers = JoinSet::new();
        for _ in 0..3 {
            let (world, admitted) = (world.clone(), admitted.clone());
            let is_over = Arc::clone(&is_over);
            workers.spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    for user in world.admit().await {
                        admitted.send(user).unwrap();
                    }
                    tokio::task::yield_now().await;
                }
            });
        }
        let mut guests_seen = BTreeSet::new();
        while guests_seen.len() < GUESTS {
            let user = leave.recv().await.unwrap();
            assert!(guests_seen.insert(user), "{user} was let in twice");
            assert!(world.leave(user).await, "{user} was in");
        }
        is_over.store(true, Ordering::SeqCst);
        workers.join_all().await;
        guests.join_all().await;
        assert_eq!(observers.finish().await, 10);
        assert_eq!(world.counts().await, (0, 0));
        assert_eq!(world.crowd().await.admitted_total, 600);
    }

    /// Whatever happens at once, afterwards everything agrees.
    async fn after_a_turmoil_everybody_is_in_or_waits_or_is_gone(world: World) {
        let world = world.with(|rules| rules.threshold = 5);
        let users = Arc::new(world.users(40));
        let observers = Observers::start(&world);
        let mut tasks = JoinSet::new();
        for task in 0..32_usize {
            let (world, users) = (world.clone(), Arc::clone(&users));
            tasks.spawn(async move {
                for step in 0..25 {
                    let user = users[(task * 7 + step * 11) % users.len()];
                    match (task + step) % 8 {
                        0..=3 => assert!(world.check(user).await.active <= 5),
                        4 => assert!(world.admit().await.len() <= 5),
                        5 => {
                            world.finish(user, world.now()).await;
                        }
                        6 => {
                            world.leave(user).await;
                        }
                        _ => assert!(world.poll(user).await.active <= 5),
                    }
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(observers.finish().await, 5);
        let crowd = world.crowd().await;
        let (mut line, mut active) = (Vec::new(), 0);
        for user in users.iter() {
            match world.status(*user).await {
                UserStatus::Waiting(place) => line.push((place, *user)),
                UserStatus::Active(_) => active += 1,
                UserStatus::Absent => {}
            }
        }
        line.sort_unstable_by_key(|(place, _)| place.number);
        let positions: Vec<u32> = line.iter().map(|(place, _)| place.position).collect();
        assert_eq!(positions, (1..=crowd.waiting).collect::<Vec<_>>());
        assert_eq!(active, crowd.active);
        let order: Vec<Uuid> = line.into_iter().map(|(_, user)| user).collect();
        assert_eq!(world.entrants(i64::MAX).await, order);
        let arrivals = u64::try_from(crowd.last_number).unwrap();
        assert!(crowd.admitted_total + crowd.left_total + u64::from(crowd.waiting) >= arrivals);
    }
}
