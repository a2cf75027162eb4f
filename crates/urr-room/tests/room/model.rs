//! Rooms beside a simple model: whatever people, workers and organisers do, in whatever order, both
//! give the same answers.

mod plain;

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use urr_kernel::Uuid;
use urr_room::{AdmissionRules, AdmissionState, ClearedCounts, UserStatus};

use self::plain::{Plain, Refusal};
use crate::fixture::{Form, NOBODY, ROOMY, World};

const EVENTS: usize = 3;
const USERS: usize = 8;

/// Something that happens. Events and users are named by their number.
#[derive(Clone, Debug)]
enum Op {
    Check {
        event: usize,
        user: usize,
    },
    Look {
        event: usize,
        user: usize,
    },
    /// Everybody.
    Locate {
        event: usize,
    },
    Leave {
        event: usize,
        user: usize,
    },
    Finish {
        event: usize,
        user: usize,
        seconds_ago: u32,
    },
    /// The newest slot that was given to them, or the one before.
    Holds {
        event: usize,
        user: usize,
        is_old: bool,
    },
    Admit {
        event: usize,
    },
    Sweep {
        event: usize,
        seconds_ago: u32,
    },
    Clear {
        event: usize,
    },
    Crowd {
        event: usize,
    },
    Events,
    /// For those who came until so many arrivals ago.
    Draw {
        event: usize,
        arrivals_ago: i64,
        seed: i64,
    },
    Pass {
        millis: u64,
    },
    Rule {
        admission: AdmissionState,
        threshold: u32,
        rate: u32,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let at = || (0..EVENTS, 0..USERS);
    let ago = 0..8_u32;
    let pause = prop_oneof![
        Just(1_u64),
        Just(250),
        Just(500),
        Just(1_000),
        Just(3_000),
        Just(9_000),
        Just(125_000)
    ];
    let admission = prop_oneof![4 => Just(AdmissionState::Open), 1 => Just(AdmissionState::Closed)];
    prop_oneof![
        12 => at().prop_map(|(event, user)| Op::Check { event, user }),
        6 => at().prop_map(|(event, user)| Op::Look { event, user }),
        3 => (0..EVENTS).prop_map(|event| Op::Locate { event }),
        4 => at().prop_map(|(event, user)| Op::Leave { event, user }),
        3 => (at(), ago.clone())
            .prop_map(|((event, user), seconds_ago)| Op::Finish { event, user, seconds_ago }),
        4 => (at(), any::<bool>())
            .prop_map(|((event, user), is_old)| Op::Holds { event, user, is_old }),
        6 => (0..EVENTS).prop_map(|event| Op::Admit { event }),
        3 => (0..EVENTS, ago)
            .prop_map(|(event, seconds_ago)| Op::Sweep { event, seconds_ago }),
        1 => (0..EVENTS).prop_map(|event| Op::Clear { event }),
        3 => (0..EVENTS).prop_map(|event| Op::Crowd { event }),
        1 => Just(Op::Events),
        1 => (0..EVENTS, 0..3_i64, 0..100_i64)
            .prop_map(|(event, arrivals_ago, seed)| Op::Draw { event, arrivals_ago, seed }),
        6 => pause.prop_map(|millis| Op::Pass { millis }),
        2 => (admission, 0..4_u32, 0..4_u32)
            .prop_map(|(admission, threshold, rate)| Op::Rule { admission, threshold, rate }),
    ]
}

/// Tiny, so that everything is full all the time.
const RULES: AdmissionRules = AdmissionRules {
    threshold: 2,
    admitted_per_second_max: 2,
    slot_ttl: Duration::from_secs(10),
    slot_max: Duration::from_secs(25),
    waiting_max: 4,
    queues_per_user_max: 2,
    ..ROOMY
};

/// Rooms with events and users of this case, and the model beside them.
struct Case {
    world: World,
    occupied_events: Vec<Uuid>,
    /// Their ids are in order, as ties of the draw need it.
    users: Vec<Uuid>,
    plain: Plain,
    /// All that were ever given, by event and user; the newest last.
    slots: Vec<Vec<Vec<Uuid>>>,
    known: BTreeSet<Uuid>,
}

type Verdict = Result<(), TestCaseError>;

impl Case {
    fn new(world: &World) -> Case {
        let mut world = world.clone();
        world.rules = RULES;
        Case {
            occupied_events: (0..EVENTS).map(|_| world.ids.next_id()).collect(),
            users: world.users(USERS),
            plain: Plain::new(EVENTS),
            slots: vec![vec![Vec::new(); USERS]; EVENTS],
            known: BTreeSet::new(),
            world,
        }
    }

    /// The room of an event.
    fn room(&self, event: usize) -> World {
        self.world.of_event(self.occupied_events[event])
    }

    /// A slot that was given just now: nobody has had it before.
    fn note_slot(&mut self, event: usize, user: usize, slot_id: Uuid) -> Verdict {
        prop_assert!(self.known.insert(slot_id), "the slot {} was given twice", slot_id);
        self.slots[event][user].push(slot_id);
        Ok(())
    }

    async fn apply(&mut self, op: &Op) -> Verdict {
        match *op {
            Op::Check { event, user } => return self.check(event, user).await,
            Op::Look { event, user } => {
                let snapshot = self.room(event).poll(self.users[user]).await;
                prop_assert_eq!(snapshot, self.plain.poll(event, user, &self.world));
            }
            Op::Locate { event } => {
                let found = self.room(event).locate(&self.users).await;
                prop_assert_eq!(found, self.plain.locate(event, USERS, self.world.now()));
            }
            Op::Leave { event, user } => {
                let is_gone = self.room(event).leave(self.users[user]).await;
                prop_assert_eq!(is_gone, self.plain.leave(event, user, self.world.now()));
            }
            Op::Finish { event, user, seconds_ago } => {
                let bought_at = self.world.now() - Duration::from_secs(seconds_ago.into());
                let is_over = self.room(event).finish(self.users[user], bought_at).await;
                let expected = self.plain.finish(event, user, bought_at, self.world.now());
                prop_assert_eq!(is_over, expected);
            }
            Op::Holds { event, user, is_old } => return self.holds(event, user, is_old).await,
            Op::Admit { event } => return self.admit(event).await,
            Op::Sweep { event, seconds_ago } => {
                let since = self.world.now() - Duration::from_secs(seconds_ago.into());
                let dropped = self.room(event).sweep(since, 100).await;
                prop_assert_eq!(dropped, self.plain.sweep(event, since, self.world.now()));
            }
            Op::Clear { event } => {
                let (waiting, active) = self.room(event).clear().await;
                let cleared = ClearedCounts { waiting, active };
                prop_assert_eq!(cleared, self.plain.clear(event, self.world.now()));
            }
            Op::Crowd { event } => return self.crowd(event).await,
            Op::Events => return self.list().await,
            Op::Draw { event, arrivals_ago, seed } => {
                return self.draw(event, arrivals_ago, seed).await;
            }
            Op::Pass { millis } => self.world.pass(Duration::from_millis(millis)),
            Op::Rule { admission, threshold, rate } => {
                let rules = &mut self.world.rules;
                (rules.admission, rules.threshold, rules.admitted_per_second_max) =
                    (admission, threshold, rate);
            }
        }
        Ok(())
    }

    async fn check(&mut self, event: usize, user: usize) -> Verdict {
        let answer = self.room(event).try_check(self.users[user]).await;
        // An id is the room's to choose; the model takes it over.
        let fresh = match answer {
            Ok(snapshot) => match snapshot.status {
                UserStatus::Active(slot) => slot.id,
                UserStatus::Waiting(_) | UserStatus::Absent => Uuid::nil(),
            },
            Err(_) => Uuid::nil(),
        };
        match (answer, self.plain.check(event, user, fresh, &self.world)) {
            (Ok(snapshot), Ok(expected)) => {
                prop_assert_eq!(snapshot, expected);
                if snapshot.is_just_admitted {
                    self.note_slot(event, user, fresh)?;
                }
            }
            (Err(error), Err(Refusal(possible))) => {
                prop_assert!(possible.contains(&error), "{:?} and not {:?}", error, possible);
            }
            (answer, expected) => prop_assert!(false, "{:?} and not {:?}", answer, expected),
        }
        Ok(())
    }

    async fn holds(&mut self, event: usize, user: usize, is_old: bool) -> Verdict {
        let given = &self.slots[event][user];
        let Some(slot_id) = given.iter().rev().nth(usize::from(is_old)).copied() else {
            return Ok(());
        };
        let holds = self.room(event).holds(self.users[user], slot_id).await;
        prop_assert_eq!(holds, self.plain.holds(event, user, slot_id, &self.world));
        Ok(())
    }

    async fn admit(&mut self, event: usize) -> Verdict {
        let (room, now) = (self.room(event), self.world.now());
        let admitted = room.rooms.admit(room.event_id, &room.rules, now).await.unwrap();
        let user_ids: Vec<Uuid> = admitted.iter().map(|admitted| admitted.user_id).collect();
        let slot_ids: Vec<Uuid> = admitted.iter().map(|admitted| admitted.slot_id).collect();
        let expected = self.plain.admit(event, &slot_ids, &self.world);
        let expected_ids: Vec<Uuid> = expected.iter().map(|user| self.users[*user]).collect();
        prop_assert_eq!(user_ids, expected_ids);
        for (user, slot_id) in expected.into_iter().zip(slot_ids) {
            self.note_slot(event, user, slot_id)?;
        }
        Ok(())
    }

    async fn crowd(&mut self, event: usize) -> Verdict {
        let mut crowd = self.room(event).crowd().await;
        let expected = self.plain.crowd(event, self.world.now());
        let marks = std::mem::take(&mut crowd.marks);
        prop_assert_eq!(marks.first(), expected.marks.first());
        prop_assert_eq!(marks.last(), expected.marks.last());
        for mark in &marks {
            prop_assert!(expected.marks.contains(mark), "{:?} is no place", mark);
        }
        for pace in [&mut crowd.pace.admitted, &mut crowd.pace.left] {
            while pace.len() < expected.pace.left.len() {
                pace.insert(0, 0);
            }
        }
        crowd.marks.clone_from(&expected.marks);
        (crowd.pace.ended, crowd.pace.in_use) = (Vec::new(), 0);
        prop_assert_eq!(crowd, expected);
        Ok(())
    }

    /// Slots end without anybody noticing, so those rooms are asked first.
    async fn list(&mut self) -> Verdict {
        for event in 0..EVENTS {
            self.room(event).admit_nobody().await;
        }
        let listed = self.world.rooms.occupied_events().await.unwrap();
        for event in 0..EVENTS {
            let is_listed = listed.contains(&self.occupied_events[event]);
            let crowd = self.plain.crowd(event, self.world.now());
            prop_assert_eq!(is_listed, crowd.waiting + crowd.active > 0, "event {}", event);
        }
        Ok(())
    }

    async fn draw(&mut self, event: usize, arrivals_ago: i64, seed: i64) -> Verdict {
        let last = self.plain.crowd(event, self.world.now()).last_number - arrivals_ago;
        let entrants = self.room(event).entrants(last).await;
        let expected = self.plain.entrants(event, last);
        let expected_ids: Vec<Uuid> = expected.iter().map(|user| self.users[*user]).collect();
        prop_assert_eq!(&entrants, &expected_ids);
        let number_of = |user: i64| -1 - (user + 1) * (seed + 1) % 5;
        let drawn: Vec<(usize, i64)> = expected
            .into_iter()
            .map(|user| (user, number_of(i64::try_from(user).unwrap())))
            .collect();
        let by_id: Vec<(Uuid, i64)> =
            drawn.iter().map(|(user, number)| (self.users[*user], *number)).collect();
        self.room(event).renumber_until(last, &by_id).await;
        self.plain.renumber(event, last, &drawn);
        Ok(())
    }
}

impl World {
    /// A turn in front of a shut door.
    async fn admit_nobody(&self) {
        assert_eq!(
            self.with(|rules| rules.admission = AdmissionState::Closed).admit().await,
            NOBODY
        );
    }
}

async fn run_case(world: &World, ops: &[Op]) -> Verdict {
    let mut case = Case::new(world);
    for (number, op) in ops.iter().enumerate() {
        let in_context = |error| match error {
            TestCaseError::Fail(why) => {
                TestCaseError::fail(format!("step {number}, {op:?}: {why}"))
            }
            TestCaseError::Reject(why) => TestCaseError::Reject(why),
        };
        case.apply(op).await.map_err(in_context)?;
    }
    for event in 0..EVENTS {
        case.crowd(event).await?;
        for user in 0..USERS {
            case.apply(&Op::Look { event, user }).await?;
        }
        // A draw after somebody was admitted, which no sale makes, is out of order.
        let is_drawn = ops.iter().any(|op| matches!(op, Op::Draw { .. }));
        let mut found = case.room(event).audit().await;
        found.retain(|difference| !is_drawn || difference.kind != "order");
        prop_assert_eq!(found, vec![]);
    }
    Ok(())
}

fn check(form: Form, cases: u32) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let Some(world) = runtime.block_on(World::open(form)) else { return };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(&vec(op(), 1..120), |ops| runtime.block_on(run_case(&world, &ops)));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn rooms_in_memory_follow_the_model() {
    check(Form::Memory, 300);
}

#[test]
fn rooms_in_redis_follow_the_model() {
    check(Form::Redis, 300);
}

#[test]
fn rooms_in_a_cluster_follow_the_model() {
    check(Form::Cluster, 100);
}
