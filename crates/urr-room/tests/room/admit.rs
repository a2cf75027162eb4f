//! Turns of the admission: in order, up to the threshold, and no faster than the rate.

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_room::{AdmissionState, RoomRequest, UserStatus};

use crate::fixture::{MILLISECOND, NOBODY, SECOND, SLOT_MAX, SLOT_TTL, World, slot};

/// People who wait in front of a door that has just been opened.
async fn crowd_at(world: &World, count: usize) -> Vec<Uuid> {
    world.with(|rules| rules.admission = AdmissionState::Closed).line(count).await
}

on_all_forms! {
    /// A clock that is corrected lives through some seconds twice.
    async fn r_8_a_second_that_comes_again_has_no_rate_of_its_own_again(world: World) {
        let world = world.with(|rules| rules.admitted_per_second_max = 2);
        let begin = world.now();
        let check_at = async |now| {
            let request = RoomRequest { now, ..world.request(world.user()) };
            world.rooms.check(request, &world.rules).await.unwrap().is_just_admitted
        };
        assert!(check_at(begin).await && check_at(begin).await);
        assert!(check_at(begin + 30 * SECOND).await);
        assert!(!check_at(begin).await, "both of this second are in");
        let admitted = world.rooms.admit(world.event_id, &world.rules, begin + 29 * SECOND).await;
        assert_eq!(admitted.unwrap().len(), 1, "the control: another second");
    }

    async fn a_turn_lets_in_from_the_front_up_to_the_threshold(world: World) {
        let users = crowd_at(&world, 5).await;
        let world = world.with(|rules| rules.threshold = 3);
        assert_eq!(world.admit().await, users[..3]);
        assert_eq!(world.admit().await, NOBODY);
        assert_eq!(world.counts().await, (2, 3));
        assert_eq!(world.positions(&users[3..]).await, [1, 2], "the others have moved up");
        world.leave(users[1]).await;
        assert_eq!(world.admit().await, [users[3]]);
    }

    async fn a_turn_without_anybody_lets_nobody_in(world: World) {
        assert_eq!(world.admit().await, NOBODY);
        world.enter(world.user()).await;
        assert_eq!(world.admit().await, NOBODY);
        assert_eq!(world.counts().await, (0, 1));
    }

    async fn who_is_let_in_gets_a_slot_and_waits_no_more(world: World) {
        let users = crowd_at(&world, 2).await;
        world.pass(5 * SECOND);
        let admitted = world.rooms.admit(world.event_id, &world.rules, world.now()).await.unwrap();
        assert_eq!(admitted.iter().map(|admitted| admitted.user_id).collect::<Vec<_>>(), users);
        for admitted in admitted {
            let snapshot = world.poll(admitted.user_id).await;
            let slot = slot(snapshot);
            assert_eq!(slot.id, admitted.slot_id);
            assert_eq!(slot.admitted_at, world.now());
            assert_eq!(slot.ends_at, world.now() + SLOT_TTL);
            assert_eq!(slot.last_end, world.now() + SLOT_MAX);
            assert_eq!((snapshot.waiting, snapshot.active, snapshot.is_just_admitted), (0, 2, false));
            assert!(world.holds(admitted.user_id, admitted.slot_id).await);
        }
        assert_eq!(world.entrants(i64::MAX).await, NOBODY);
    }

    async fn in_a_second_of_the_clock_no_more_are_let_in_than_the_rate_allows(world: World) {
        let users = crowd_at(&world, 9).await;
        let world = world.with(|rules| rules.admitted_per_second_max = 3);
        world.pass(SECOND / 2);
        assert_eq!(world.admit().await, users[..3]);
        assert_eq!(world.admit().await, NOBODY);
        world.pass(SECOND / 2 - MILLISECOND);
        assert_eq!(world.admit().await, NOBODY, "it is still the same second");
        world.pass(MILLISECOND);
        assert_eq!(world.admit().await, users[3..6], "a second begins with the clock's");
        world.pass(60 * SECOND);
        assert_eq!(world.admit().await, users[6..], "what was not used is not saved up");
    }

    async fn who_is_let_in_at_once_counts_for_the_rate_too(world: World) {
        let world = world.with(|rules| rules.admitted_per_second_max = 2);
        let users = world.users(5);
        world.enter(users[0]).await;
        world.enter(users[1]).await;
        world.line_up(users[2]).await;
        assert_eq!(world.admit().await, NOBODY, "this second is used up");
        world.pass(SECOND);
        assert_eq!(world.admit().await, [users[2]]);
        world.enter(users[3]).await;
        world.line_up(users[4]).await;
        assert_eq!(world.counts().await, (1, 4));
    }

    async fn a_rate_that_changes_counts_for_the_second_that_runs(world: World) {
        let users = crowd_at(&world, 6).await;
        let rate = |rate| world.with(|rules| rules.admitted_per_second_max = rate);
        assert_eq!(rate(3).admit().await, users[..3]);
        assert_eq!(rate(2).admit().await, NOBODY);
        assert_eq!(rate(4).admit().await, users[3..4]);
        rate(4).pass(SECOND);
        assert_eq!(rate(1).admit().await, users[4..5]);
    }

    async fn a_lower_threshold_throws_nobody_out_and_lets_nobody_in(world: World) {
        let users = crowd_at(&world, 6).await;
        let threshold = |threshold| world.with(|rules| rules.threshold = threshold);
        assert_eq!(threshold(4).admit().await.len(), 4);
        let small = threshold(2);
        assert_eq!(small.admit().await, NOBODY);
        assert_eq!(small.counts().await, (2, 4));
        for user in &users[..3] {
            assert_eq!(small.admit().await, NOBODY);
            small.leave(*user).await;
        }
        assert_eq!(small.admit().await, [users[4]], "one is in, so there is room for one");
        assert_eq!(threshold(3).admit().await, [users[5]]);
    }

    async fn who_is_not_seen_makes_room_at_the_end_of_their_slot(world: World) {
        let users = crowd_at(&world, 3).await;
        let world = world.with(|rules| rules.threshold = 2);
        assert_eq!(world.admit().await, users[..2]);
        world.pass(SLOT_TTL / 2);
        world.poll(users[1]).await;
        world.pass(SLOT_TTL / 2 - MILLISECOND);
        assert_eq!(world.admit().await, NOBODY);
        world.pass(MILLISECOND);
        assert_eq!(world.admit().await, [users[2]]);
        assert_eq!(world.status(users[0]).await, UserStatus::Absent);
        assert_eq!(world.counts().await, (0, 2));
    }

    async fn r_2_no_two_slots_have_the_same_id(world: World) {
        let users = crowd_at(&world, 120).await;
        let world = world.with(|rules| rules.admitted_per_second_max = 4);
        let mut slot_ids = Vec::new();
        for _ in 0..40 {
            let turn = world.rooms.admit(world.event_id, &world.rules, world.now()).await.unwrap();
            slot_ids.extend(turn.iter().map(|admitted| admitted.slot_id));
            // Others come in elsewhere, at the very moment.
            slot_ids.push(world.another_event().enter(users[0]).await.id);
            world.pass(SECOND);
        }
        assert_eq!(slot_ids.len(), 160);
        let distinct: BTreeSet<Uuid> = slot_ids.into_iter().collect();
        assert_eq!(distinct.len(), 160);
    }

    /// Each has its own wish to let in a hundred a second; together they must not.
    async fn r_8_many_workers_let_in_no_more_than_one(world: World) {
        let users = crowd_at(&world, 100).await;
        let world = world.with(|rules| {
            rules.threshold = 25;
            rules.admitted_per_second_max = 10;
        });
        let mut expected = users.as_slice();
        for count in [10, 10, 5, 0] {
            let (now, rest) = expected.split_at(count);
            expected = rest;
            let admitted = admit_by_workers(&world, 16).await;
            assert_eq!(admitted.len(), count, "nobody is let in twice, and no more than may");
            assert_eq!(admitted.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from_iter(
                now.iter().copied(),
            ));
            world.pass(SECOND);
        }
        assert_eq!(world.counts().await, (75, 25));
        assert_eq!(world.entrants(i64::MAX).await, expected, "nobody is in and waits");
    }
}

/// Admissions per step.
async fn admit_by_workers(world: &World, count: usize) -> Vec<Uuid> {
    let mut workers = JoinSet::new();
    for _ in 0..count {
        let world = world.clone();
        workers.spawn(async move { world.admit().await });
    }
    workers.join_all().await.concat()
}
