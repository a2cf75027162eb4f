//! How many may wait for an event, and for how many events one person may.

use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_room::{AdmissionRules, AdmissionState, RoomError, StatusSnapshot, UserStatus};
use urr_test::eventually;

use crate::fixture::{SECOND, World};

fn shut(rules: &mut AdmissionRules) {
    rules.admission = AdmissionState::Closed;
}

/// Checks by all of them at the same time.
async fn check_at_once(
    requests: impl Iterator<Item = (World, Uuid)>,
) -> Vec<Result<StatusSnapshot, RoomError>> {
    let mut checks = JoinSet::new();
    for (world, user) in requests {
        checks.spawn(async move { world.try_check(user).await });
    }
    checks.join_all().await
}

/// Rooms in which nobody is let in, and in which a person may wait for two events.
fn two_of(world: &World, occupied_events: usize) -> Vec<World> {
    let world = world.with(|rules| {
        shut(rules);
        rules.queues_per_user_max = 2;
    });
    (0..occupied_events).map(|_| world.another_event()).collect()
}

on_all_forms! {
    async fn a_full_line_takes_nobody(world: World) {
        let world = world.with(|rules| {
            shut(rules);
            rules.waiting_max = 3;
        });
        let users = world.line(3).await;
        let late = world.user();
        assert_eq!(world.try_check(late).await, Err(RoomError::Full));
        assert_eq!(world.status(late).await, UserStatus::Absent);
        assert_eq!(world.crowd().await.last_number, 3, "a refusal uses up no number");
        assert_eq!(world.line_up(users[2]).await.position, 3, "those in it are told as ever");
        world.with(|rules| rules.waiting_max = 4).line_up(late).await;
    }

    async fn a_full_line_takes_someone_when_someone_has_gone(world: World) {
        let world = world.with(|rules| {
            shut(rules);
            rules.waiting_max = 2;
        });
        let users = world.line(2).await;
        let begin = world.now();
        world.leave(users[0]).await;
        world.pass(SECOND);
        world.line(1).await;
        assert_eq!(world.try_check(world.user()).await, Err(RoomError::Full));
        assert_eq!(world.sweep(begin, 10).await, 1);
        world.line(1).await;
        assert_eq!(world.try_check(world.user()).await, Err(RoomError::Full));
        let open = world.with(|rules| (rules.admission, rules.threshold) = (AdmissionState::Open, 1));
        assert_eq!(open.admit().await.len(), 1);
        world.line(1).await;
        assert_eq!(world.try_check(world.user()).await, Err(RoomError::Full));
        assert_eq!(world.clear().await, (2, 1));
        world.line(2).await;
    }

    async fn who_need_not_wait_needs_no_place(world: World) {
        let world = world.with(|rules| (rules.threshold, rules.waiting_max) = (1, 0));
        world.enter(world.user()).await;
        assert_eq!(world.try_check(world.user()).await, Err(RoomError::Full));
    }

    async fn however_many_come_at_once_no_more_wait_than_may(world: World) {
        let world = world.with(|rules| {
            shut(rules);
            rules.waiting_max = 50;
        });
        let outcomes = check_at_once((0..200).map(|_| (world.clone(), world.user()))).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 50);
        assert_eq!(
            outcomes.iter().filter(|outcome| **outcome == Err(RoomError::Full)).count(),
            150
        );
        assert_eq!(world.counts().await, (50, 0));
    }

    async fn one_person_waits_for_few_events(world: World) {
        let (rooms, ann) = (two_of(&world, 3), world.user());
        rooms[0].line_up(ann).await;
        rooms[1].line_up(ann).await;
        assert_eq!(rooms[2].try_check(ann).await, Err(RoomError::TooManyQueues));
        assert_eq!(rooms[2].status(ann).await, UserStatus::Absent);
        assert_eq!(rooms[2].counts().await, (0, 0));
        assert_eq!(rooms[2].crowd().await.last_number, 0, "a refusal uses up no number");
        for room in &rooms[..2] {
            assert_eq!(room.line_up(ann).await.position, 1, "the same event again is no other");
        }
        rooms[2].line_up(world.user()).await;
        rooms[2].with(|rules| rules.queues_per_user_max = 3).line_up(ann).await;
    }

    async fn who_has_left_a_line_may_join_another(world: World) {
        let (rooms, ann) = (two_of(&world, 3), world.user());
        rooms[0].line_up(ann).await;
        rooms[1].line_up(ann).await;
        rooms[0].leave(ann).await;
        rooms[2].line_up(ann).await;
        assert_eq!(rooms[0].try_check(ann).await, Err(RoomError::TooManyQueues));
    }

    async fn who_was_let_in_may_join_another_line(world: World) {
        let (rooms, ann) = (two_of(&world, 3), world.user());
        rooms[0].line_up(ann).await;
        rooms[1].line_up(ann).await;
        assert_eq!(rooms[0].with(|rules| rules.admission = AdmissionState::Open).admit().await, [ann]);
        rooms[2].line_up(ann).await;
        rooms[0].leave(ann).await;
        assert_eq!(
            rooms[0].try_check(ann).await,
            Err(RoomError::TooManyQueues),
            "leaving a slot frees no place in a line"
        );
    }

    async fn who_was_dropped_or_cleared_may_join_another_line(world: World) {
        let (rooms, ann) = (two_of(&world, 4), world.user());
        rooms[0].line_up(ann).await;
        rooms[1].line_up(ann).await;
        assert_eq!(rooms[2].try_check(ann).await, Err(RoomError::TooManyQueues));
        assert_eq!(rooms[0].clear().await, (1, 0));
        rooms[2].line_up(ann).await;
        assert_eq!(rooms[3].try_check(ann).await, Err(RoomError::TooManyQueues));
        assert_eq!(rooms[1].sweep(world.now(), 10).await, 1);
        rooms[3].line_up(ann).await;
        assert_eq!(rooms[0].try_check(ann).await, Err(RoomError::TooManyQueues));
    }

    async fn being_in_is_not_waiting(world: World) {
        let (rooms, ann) = (two_of(&world, 3), world.user());
        let open = |room: &World| room.with(|rules| rules.admission = AdmissionState::Open);
        rooms[0].line_up(ann).await;
        rooms[1].line_up(ann).await;
        let fourth = rooms[0].another_event();
        open(&rooms[2]).enter(ann).await;
        assert_eq!(fourth.try_check(ann).await, Err(RoomError::TooManyQueues));
        open(&fourth).enter(ann).await;
    }

    async fn a_full_line_is_none_that_one_waits_in(world: World) {
        let (rooms, ann) = (two_of(&world, 3), world.user());
        let full = rooms[0].with(|rules| rules.waiting_max = 0);
        assert_eq!(full.try_check(ann).await, Err(RoomError::Full));
        rooms[1].line_up(ann).await;
        rooms[2].line_up(ann).await;
    }

    async fn d_9_who_asks_everywhere_at_once_waits_for_no_more_events_than_they_may(world: World) {
        for _ in 0..5 {
            let (rooms, ann) = (two_of(&world, 12), world.user());
            let requests = rooms.iter().chain(&rooms).map(|room| (room.clone(), ann));
            let outcomes = check_at_once(requests).await;
            for outcome in outcomes {
                assert!(matches!(outcome, Ok(_) | Err(RoomError::TooManyQueues)), "{outcome:?}");
            }
            assert_eq!(count_queues(&rooms).await, 2);
        }
    }

    /// Leaving and coming at the same moment must not lose count.
    async fn d_9_who_leaves_and_comes_at_once_waits_for_no_more_events_than_they_may(world: World) {
        for _ in 0..50 {
            let (rooms, ann) = (two_of(&world, 3), world.user());
            rooms[0].line_up(ann).await;
            let mut tasks = JoinSet::new();
            for room in [rooms[0].clone(), rooms[0].clone()] {
                let leaver = room.clone();
                tasks.spawn(async move { leaver.leave(ann).await; });
                tasks.spawn(async move { room.check(ann).await; });
            }
            tasks.join_all().await;
            rooms[0].try_check(ann).await.ok();
            for room in &rooms[1..] {
                room.try_check(ann).await.ok();
            }
            assert!(count_queues(&rooms).await <= 2);
        }
    }

    async fn who_has_come_and_gone_everywhere_at_once_may_come_again(world: World) {
        let (rooms, ann) = (two_of(&world, 4), world.user());
        let mut tasks = JoinSet::new();
        for room in &rooms {
            let (room, leaver) = (room.clone(), room.clone());
            tasks.spawn(async move {
                for _ in 0..40 {
                    room.try_check(ann).await.ok();
                }
            });
            tasks.spawn(async move {
                for _ in 0..40 {
                    leaver.leave(ann).await;
                    tokio::task::yield_now().await;
                }
            });
        }
        tasks.join_all().await;
        for room in &rooms {
            room.leave(ann).await;
        }
        assert_eq!(count_queues(&rooms).await, 0);
        eventually("what was lost on the way is found", async || {
            check_at_once(rooms.iter().map(|room| (room.clone(), ann))).await;
            (count_queues(&rooms).await == 2).then_some(())
        })
        .await;
    }
}

/// In how many of these rooms somebody waits.
async fn count_queues(rooms: &[World]) -> u32 {
    let mut count = 0;
    for room in rooms {
        count += room.counts().await.0;
    }
    count
}
