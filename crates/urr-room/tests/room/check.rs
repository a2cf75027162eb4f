//! A check reports, or lets in, or lines up, in one step.

use std::time::Duration;

use tokio::task::JoinSet;
use urr_room::{AdmissionState, LinePosition, RoomRequest, StatusSnapshot, UserStatus};

use crate::fixture::{NOBODY, SECOND, slot, waiting};

on_all_forms! {
    async fn the_first_ones_are_let_in_and_the_next_ones_wait(world: World) {
        let world = world.with(|rules| rules.threshold = 2);
        let users = world.users(4);
        for (user, active) in users[..2].iter().zip(1..) {
            let snapshot = world.check(*user).await;
            slot(snapshot);
            let expected =
                StatusSnapshot { status: snapshot.status, waiting: 0, active, is_just_admitted: true };
            assert_eq!(snapshot, expected, "the counts include who asks");
        }
        for (user, number) in users[2..].iter().zip(1..) {
            let place = LinePosition { number: i64::from(number), position: number };
            let status = UserStatus::Waiting(place);
            let expected = StatusSnapshot { status, waiting: number, active: 2, is_just_admitted: false };
            assert_eq!(world.check(*user).await, expected);
        }
    }

    async fn checking_again_reports_and_changes_nothing(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben) = (world.user(), world.user());
        let (ann_first, ben_first) = (world.check(ann).await, world.check(ben).await);
        for _ in 0..3 {
            let ann_again = world.check(ann).await;
            assert_eq!(ann_again, StatusSnapshot { waiting: 1, is_just_admitted: false, ..ann_first });
            assert_eq!(world.check(ben).await, ben_first);
        }
        assert_eq!(world.crowd().await.last_number, 1, "no number was used up");
        assert_eq!(world.crowd().await.admitted_total, 1);
    }

    async fn nobody_jumps_in_while_a_line_exists(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben, cho) = (world.user(), world.user(), world.user());
        world.enter(ann).await;
        world.line_up(ben).await;
        assert!(world.leave(ann).await);
        assert_eq!(world.line_up(cho).await, LinePosition { number: 2, position: 2 });
        assert_eq!(world.line_up(ben).await.position, 1, "nor is the first one, by asking");
        assert_eq!(world.counts().await, (2, 0));
        assert_eq!(world.admit().await, [ben]);
    }

    async fn when_the_line_is_empty_again_the_next_one_is_let_in(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben, cho) = (world.user(), world.user(), world.user());
        world.enter(ann).await;
        world.line_up(ben).await;
        assert!(world.leave(ann).await);
        assert!(world.leave(ben).await);
        assert!(world.check(cho).await.is_just_admitted);
    }

    async fn in_front_of_a_shut_door_everybody_waits(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(3).await;
        assert_eq!(shut.admit().await, NOBODY);
        assert_eq!(shut.counts().await, (3, 0));
        assert_eq!(world.admit().await, users, "and comes in when it opens");
    }

    async fn a_door_that_is_shut_throws_nobody_out(world: World) {
        let ann = world.user();
        let before = world.enter(ann).await;
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        shut.pass(SECOND);
        let after = shut.enter(ann).await;
        assert_eq!((after.id, after.ends_at), (before.id, before.ends_at + SECOND));
        assert!(shut.holds(ann, before.id).await);
        shut.line_up(shut.user()).await;
    }

    async fn without_room_or_rate_nobody_is_let_in(world: World) {
        let no_room = world.with(|rules| rules.threshold = 0);
        no_room.line_up(no_room.user()).await;
        assert_eq!(no_room.admit().await, NOBODY);
        let no_rate = world.another_event().with(|rules| rules.admitted_per_second_max = 0);
        no_rate.line_up(no_rate.user()).await;
        assert_eq!(no_rate.admit().await, NOBODY);
    }

    async fn looking_lines_nobody_up(world: World) {
        let ann = world.user();
        let nobody =
            StatusSnapshot { status: UserStatus::Absent, waiting: 0, active: 0, is_just_admitted: false };
        assert_eq!(world.poll(ann).await, nobody);
        let small = world.with(|rules| rules.threshold = 1);
        small.enter(small.user()).await;
        small.line_up(small.user()).await;
        assert_eq!(small.poll(ann).await, StatusSnapshot { waiting: 1, active: 1, ..nobody });
        assert_eq!(small.counts().await, (1, 1));
    }

    async fn looking_reports_as_a_check_does_and_lets_nobody_in(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben) = (world.user(), world.user());
        world.check(ann).await;
        world.check(ben).await;
        assert_eq!(world.poll(ann).await, world.check(ann).await);
        assert_eq!(world.poll(ben).await, world.check(ben).await);
        world.leave(ann).await;
        assert_eq!(world.position(ben).await, 1, "there is room, and still only a turn lets in");
    }

    async fn positions_count_from_the_front(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(30).await;
        for (user, number) in users.iter().zip(1_u32..) {
            let snapshot = shut.poll(*user).await;
            let place = LinePosition { number: i64::from(number), position: number };
            assert_eq!(waiting(snapshot), place);
            assert_eq!((snapshot.waiting, snapshot.active), (30, 0));
        }
    }

    /// Neither who they are nor what their process takes for the time: the room counts.
    async fn d_4_nothing_about_who_asks_decides_the_place(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = shut.users(6);
        users.reverse();
        for (user, number) in users.iter().zip(1_u32..) {
            let now = shut.now() - number * Duration::from_millis(300);
            let request = RoomRequest { now, ..shut.request(*user) };
            let place = waiting(shut.rooms.check(request, &shut.rules).await.unwrap());
            assert_eq!(place, LinePosition { number: i64::from(number), position: number });
        }
        assert_eq!(shut.entrants(6).await, users);
    }

    async fn rooms_know_nothing_of_each_other(world: World) {
        let one = world.with(|rules| rules.threshold = 1);
        let two = one.another_event();
        let (ann, ben) = (world.user(), world.user());
        let ann_in_one = one.enter(ann).await;
        let ann_in_two = two.enter(ann).await;
        assert_ne!(ann_in_one.id, ann_in_two.id);
        assert!(!two.holds(ann, ann_in_one.id).await);
        assert_eq!(one.line_up(ben).await.number, 1);
        assert_eq!(two.line_up(ben).await.number, 1);
        assert!(one.leave(ann).await);
        assert_eq!(one.admit().await, [ben]);
        assert_eq!((one.counts().await, two.counts().await), ((0, 1), (1, 1)));
    }

    async fn the_rooms_with_anybody_in_them_are_known(world: World) {
        let (shut, ann) = (world.with(|rules| rules.admission = AdmissionState::Closed), world.user());
        assert!(!world.is_listed().await);
        world.poll(ann).await;
        assert!(!world.is_listed().await, "looking in is not being there");
        world.enter(ann).await;
        assert!(world.is_listed().await, "someone is in");
        world.leave(ann).await;
        assert!(!world.is_listed().await);
        shut.line_up(ann).await;
        assert!(world.is_listed().await, "someone waits");
        world.clear().await;
        assert!(!world.is_listed().await);
    }

    /// A room that is not known is not looked after: nobody would be let in.
    async fn who_comes_while_the_last_one_goes_is_in_a_room_that_is_known(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        for _ in 0..10 {
            let (last, next) = (shut.user(), shut.user());
            shut.line_up(last).await;
            let mut tasks = JoinSet::new();
            let (leaver, comer) = (shut.clone(), shut.clone());
            tasks.spawn(async move { leaver.leave(last).await; });
            tasks.spawn(async move { comer.line_up(next).await; });
            for watcher in [shut.clone(), shut.clone()] {
                tasks.spawn(async move { watcher.is_listed().await; });
            }
            tasks.join_all().await;
            assert!(shut.is_listed().await);
            assert!(shut.leave(next).await);
            assert!(!shut.is_listed().await);
        }
    }
}
