//! The draw: those who came before it get new numbers, the others stand behind them.

use urr_kernel::Uuid;
use urr_room::{AdmissionState, LinePosition, UserStatus};

use crate::fixture::{NOBODY, SECOND};

/// Numbers as a draw gives them, in the order given.
fn in_this_order(users: &[Uuid]) -> Vec<(Uuid, i64)> {
    let numbers = (-(1_i64 << 52)..).step_by(1_000);
    users.iter().copied().zip(numbers).collect()
}

on_all_forms! {
    async fn the_entrants_are_those_who_came_until_then(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        assert_eq!(shut.entrants(i64::MAX).await, NOBODY);
        let users = shut.line(6).await;
        shut.leave(users[1]).await;
        assert_eq!(shut.entrants(0).await, NOBODY);
        assert_eq!(shut.entrants(4).await, [users[0], users[2], users[3]], "in order of arrival");
        assert_eq!(shut.entrants(2).await, [users[0]]);
        assert_eq!(shut.entrants(i64::MAX).await.len(), 5);
        shut.line_up(users[1]).await;
        assert_eq!(shut.entrants(6).await, [users[0], users[2], users[3], users[4], users[5]]);
        assert_eq!(shut.entrants(7).await.last(), Some(&users[1]), "they came again, later");
    }

    async fn the_draw_decides_the_order(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(5).await;
        let order = [users[3], users[0], users[4], users[2], users[1]];
        let drawn = in_this_order(&order);
        shut.renumber(&drawn).await;
        for ((user, number), position) in drawn.iter().zip(1..) {
            let place = LinePosition { number: *number, position };
            assert_eq!(shut.status(*user).await, UserStatus::Waiting(place));
            assert_eq!(shut.line_up(*user).await, place);
        }
        assert_eq!(shut.counts().await, (5, 0), "nobody came and nobody went");
        assert_eq!(world.admit().await, order);
    }

    async fn latecomers_stand_behind(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(6).await;
        let mut order = users[..4].to_vec();
        order.reverse();
        shut.renumber(&in_this_order(&order)).await;
        let late = shut.user();
        assert_eq!(shut.line_up(late).await, LinePosition { number: 7, position: 7 });
        order.extend([users[4], users[5], late]);
        assert_eq!(shut.positions(&order).await, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(shut.entrants(i64::MAX).await, order[4..], "who was drawn enters no draw again");
        assert_eq!(world.admit().await, order);
    }

    async fn who_has_left_does_not_come_back_by_the_draw(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(4).await;
        shut.leave(users[2]).await;
        world.with(|rules| rules.threshold = 1).admit().await;
        let order = [users[2], users[3], users[0], users[1], shut.user()];
        shut.renumber(&in_this_order(&order)).await;
        assert_eq!(shut.status(users[2]).await, UserStatus::Absent);
        assert!(matches!(shut.status(users[0]).await, UserStatus::Active(_)));
        assert_eq!(shut.status(order[4]).await, UserStatus::Absent);
        assert_eq!(shut.counts().await, (2, 1));
        assert_eq!(world.admit().await, [users[3], users[1]]);
    }

    async fn drawing_twice_changes_nothing(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(4).await;
        let order = [users[2], users[0], users[3], users[1]];
        let drawn = in_this_order(&order);
        shut.renumber(&drawn).await;
        shut.line(2).await;
        let before = shut.crowd().await;
        shut.renumber(&drawn).await;
        assert_eq!(shut.crowd().await, before);
        let others = in_this_order(&users);
        shut.renumber(&others).await;
        assert_eq!(shut.crowd().await, before, "nor do other numbers: they have theirs");
        assert_eq!(shut.positions(&order).await, [1, 2, 3, 4]);
        shut.renumber(&[]).await;
        assert_eq!(shut.crowd().await, before);
    }

    /// Otherwise someone who was let in and comes again gets the number of before from a process
    /// that was stuck in the middle of the draw.
    async fn who_left_and_came_again_does_not_get_the_number_they_had_drawn(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(4).await;
        let drawn = in_this_order(&users);
        shut.renumber_until(2, &drawn).await;
        assert_eq!(shut.entrants(4).await, users[2..], "they came after the last that takes part");
        for user in [users[0], users[3]] {
            assert!(shut.leave(user).await);
            shut.line_up(user).await;
        }
        shut.renumber_until(4, &drawn).await;
        let order = [users[1], users[2], users[0], users[3]];
        assert_eq!(shut.positions(&order).await, [1, 2, 3, 4]);
        assert_eq!(shut.entrants(6).await, order[2..], "they have the numbers they came with");
    }

    /// A draw that was interrupted is finished by doing it again.
    async fn a_draw_that_was_done_by_half_can_be_finished(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(6).await;
        let mut order = users.clone();
        order.reverse();
        let drawn = in_this_order(&order);
        shut.renumber(&drawn[1..3]).await;
        shut.renumber(&drawn).await;
        assert_eq!(shut.positions(&order).await, [1, 2, 3, 4, 5, 6]);
    }

    async fn equal_numbers_are_ordered_by_the_persons_id(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = shut.users(6);
        let arrivals = [users[4], users[1], users[5], users[0], users[3], users[2]];
        for user in arrivals {
            shut.line_up(user).await;
        }
        let drawn: Vec<(Uuid, i64)> = arrivals.iter().map(|user| (*user, -7)).collect();
        shut.renumber(&drawn).await;
        users.sort_unstable();
        for (user, position) in users.iter().zip(1..) {
            let place = LinePosition { number: -7, position };
            assert_eq!(shut.status(*user).await, UserStatus::Waiting(place));
        }
        assert_eq!(world.admit().await, users);
    }

    async fn after_the_draw_people_leave_and_are_dropped_as_ever(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(6).await;
        let order = [users[5], users[4], users[3], users[2], users[1], users[0]];
        shut.renumber(&in_this_order(&order)).await;
        let begin = shut.now();
        shut.pass(SECOND);
        shut.leave(order[2]).await;
        for user in [order[0], order[3], order[5]] {
            shut.poll(user).await;
        }
        assert_eq!(shut.sweep(begin, 100).await, 2);
        assert_eq!(shut.line_up(order[2]).await, LinePosition { number: 7, position: 4 });
        assert_eq!(world.admit().await, [order[0], order[3], order[5], order[2]]);
    }

    async fn a_large_draw_is_kept_in_order(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.throng(2_500).await;
        assert_eq!(shut.entrants(i64::MAX).await, users);
        assert_eq!(shut.entrants(2_000).await, users[..2_000]);
        let mut order = users.clone();
        order.sort_unstable_by_key(|user| user.as_u128().wrapping_mul(0x9e37_79b9_7f4a_7c15));
        shut.renumber(&in_this_order(&order)).await;
        assert_eq!(world.admit().await, order);
    }
}
