//! Users who wait and were not seen for long are dropped.

use urr_room::{AdmissionState, LinePosition, UserStatus};

use crate::fixture::{MINUTE, SECOND};

on_all_forms! {
    async fn who_was_not_seen_since_is_dropped_and_the_others_stay(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(5).await;
        let begin = shut.now();
        shut.pass_swept(5 * MINUTE).await;
        shut.poll(users[1]).await;
        shut.check(users[3]).await;
        let late = shut.user();
        shut.line_up(late).await;
        shut.pass_swept(5 * MINUTE).await;
        assert_eq!(shut.sweep(begin - SECOND, 100).await, 0);
        assert_eq!(shut.sweep(begin, 100).await, 3, "seen at that very moment is not since");
        let stayed = [users[1], users[3], late];
        assert_eq!(shut.positions(&stayed).await, [1, 2, 3], "they moved up");
        for gone in [0, 2, 4] {
            assert_eq!(shut.status(users[gone]).await, UserStatus::Absent);
        }
        let crowd = shut.crowd().await;
        assert_eq!((crowd.waiting, crowd.left_total), (3, 3), "dropped ones count as left");
        assert_eq!(world.admit().await, stayed);
    }

    async fn the_cut_is_exact(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.users(4);
        for user in &users {
            shut.line_up(*user).await;
            shut.pass(SECOND);
        }
        let begin = shut.now() - 4 * SECOND;
        assert_eq!(shut.sweep(begin + SECOND, 100).await, 2);
        assert_eq!(shut.entrants(4).await, users[2..]);
        assert_eq!(shut.sweep(begin + SECOND, 100).await, 0);
        assert_eq!(shut.sweep(begin + 2 * SECOND, 100).await, 1);
        assert_eq!(shut.entrants(4).await, users[3..]);
    }

    /// Otherwise a poll that is answered before it is forgotten costs a place.
    async fn every_look_counts(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let ann = shut.user();
        shut.line_up(ann).await;
        for _ in 0..30 {
            shut.pass(SECOND);
            shut.poll(ann).await;
            assert_eq!(shut.sweep(shut.now() - SECOND, 100).await, 0);
        }
        shut.pass(SECOND);
        assert_eq!(shut.sweep(shut.now() - SECOND, 100).await, 1);
    }

    async fn a_sweep_drops_no_more_than_it_may(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(25).await;
        let begin = shut.now();
        shut.pass_swept(10 * MINUTE).await;
        let snapshot = [users[0], users[13], users[24]];
        for user in snapshot {
            shut.poll(user).await;
        }
        for (expected, left) in [(10, 15), (10, 5), (2, 3), (0, 3)] {
            assert_eq!(shut.sweep(begin, 10).await, expected);
            assert_eq!(shut.counts().await, (left, 0));
        }
        assert_eq!(shut.positions(&snapshot).await, [1, 2, 3]);
        assert_eq!(shut.sweep(begin, 0).await, 0);
    }

    async fn a_large_sweep_drops_everybody_it_may(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        shut.throng(1_300).await;
        let begin = shut.now();
        shut.pass(SECOND);
        let snapshot = shut.throng(5).await;
        assert_eq!(shut.sweep(begin, 1_200).await, 1_200);
        assert_eq!(shut.sweep(begin, 1_200).await, 100);
        assert_eq!(shut.entrants(i64::MAX).await, snapshot);
        assert_eq!(shut.crowd().await.left_total, 1_300);
    }

    /// Redis or all processes were away, the machine was suspended, or the clock has jumped.
    async fn nobody_is_blamed_for_the_time_in_which_the_room_was_not_swept(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(4).await;
        let ten_minutes_ago = || shut.now() - 10 * MINUTE;
        shut.pass_swept(3 * MINUTE).await;
        shut.pass(60 * MINUTE);
        assert_eq!(shut.sweep(ten_minutes_ago(), 100).await, 0, "they could not be seen");
        shut.pass_swept(MINUTE).await;
        shut.poll(users[1]).await;
        shut.pass_swept(9 * MINUTE - SECOND).await;
        assert_eq!(shut.sweep(ten_minutes_ago(), 100).await, 0, "there is a second left");
        shut.pass(SECOND);
        assert_eq!(shut.sweep(ten_minutes_ago(), 100).await, 3, "now they had their time");
        assert_eq!(shut.entrants(i64::MAX).await, [users[1]]);
    }

    /// A room of which no sweep has been heard yet is no exception.
    async fn the_first_sweep_of_an_old_room_drops_nobody(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        shut.line(2).await;
        shut.pass(30 * MINUTE);
        assert_eq!(shut.sweep(shut.now() - 10 * MINUTE, 100).await, 0);
        shut.pass_swept(10 * MINUTE).await;
        assert_eq!(shut.sweep(shut.now() - 10 * MINUTE, 100).await, 2, "the control");
    }

    /// The control: what is slow is not away.
    async fn a_sweep_that_comes_a_little_late_drops_as_ever(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        shut.line(2).await;
        shut.pass_swept(8 * MINUTE).await;
        shut.pass(2 * MINUTE);
        assert_eq!(shut.sweep(shut.now() - 10 * MINUTE, 100).await, 2);
    }

    async fn who_is_in_is_not_swept(world: World) {
        let ann = world.user();
        let slot = world.enter(ann).await;
        let begin = world.now();
        world.pass_swept(5 * MINUTE).await;
        assert_eq!(world.sweep(begin + MINUTE, 100).await, 0);
        assert!(world.holds(ann, slot.id).await);
        let ben = world.user();
        world.with(|rules| rules.admission = AdmissionState::Closed).line_up(ben).await;
        world.admit().await;
        assert_eq!(world.sweep(world.now() + MINUTE, 100).await, 0, "they wait no more");
        assert_eq!(world.counts().await, (0, 2));
    }

    async fn who_was_dropped_may_come_again_at_the_end(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let (ann, ben) = (shut.user(), shut.user());
        shut.line_up(ann).await;
        let begin = shut.now();
        shut.pass(SECOND);
        shut.line_up(ben).await;
        assert_eq!(shut.sweep(begin, 100).await, 1);
        assert_eq!(shut.line_up(ann).await, LinePosition { number: 3, position: 2 });
        assert_eq!(shut.sweep(begin, 100).await, 0, "what was seen before is forgotten");
        assert_eq!(shut.status(ben).await, UserStatus::Waiting(LinePosition { number: 2, position: 1 }));
    }

    async fn an_empty_room_has_nobody_to_drop(world: World) {
        assert_eq!(world.sweep(world.now(), 100).await, 0);
    }
}
