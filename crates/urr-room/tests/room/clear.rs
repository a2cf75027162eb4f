//! Clearing a room ends everything in it; counting goes on.

use urr_room::{AdmissionState, LinePosition, UserStatus};
use urr_test::eventually;

use crate::fixture::{NOBODY, slot};

on_all_forms! {
    async fn clearing_ends_every_place_and_every_slot(world: World) {
        let small = world.with(|rules| rules.threshold = 2);
        let inside = [small.user(), small.user()];
        let slots = [small.enter(inside[0]).await, small.enter(inside[1]).await];
        let waiting = small.line(3).await;
        assert_eq!(small.clear().await, (3, 2));
        assert_eq!(small.clear().await, (0, 0), "once is enough");
        for user in inside.iter().chain(&waiting) {
            assert_eq!(small.status(*user).await, UserStatus::Absent);
            assert!(!small.leave(*user).await);
        }
        for (user, slot) in inside.iter().zip(slots) {
            assert!(!small.holds(*user, slot.id).await);
        }
        assert_eq!(small.counts().await, (0, 0));
        assert_eq!(small.admit().await, NOBODY);
        assert_eq!(small.entrants(i64::MAX).await, NOBODY);
    }

    async fn after_clearing_numbers_and_totals_go_on(world: World) {
        let small = world.with(|rules| rules.threshold = 1);
        let first = small.user();
        small.enter(first).await;
        let waiting = small.line(3).await;
        small.leave(waiting[1]).await;
        small.clear().await;
        let crowd = small.crowd().await;
        assert_eq!((crowd.last_number, crowd.admitted_total, crowd.left_total), (3, 1, 1));
        assert!(crowd.marks.is_empty());
        small.enter(waiting[0]).await;
        assert_eq!(small.line_up(first).await, LinePosition { number: 4, position: 1 });
        let crowd = small.crowd().await;
        assert_eq!((crowd.last_number, crowd.admitted_total, crowd.left_total), (4, 2, 1));
    }

    async fn a_large_room_is_cleared_as_a_whole(world: World) {
        let shut = world.with(|rules| (rules.admission, rules.queues_per_user_max) = (AdmissionState::Closed, 1));
        let users = shut.throng(1_700).await;
        assert_eq!(shut.clear().await, (1_700, 0));
        assert_eq!(shut.entrants(i64::MAX).await, NOBODY);
        let other = shut.another_event();
        for user in users.iter().step_by(100) {
            // Users who waited learn it soon, not at once.
            eventually("they may wait for another event", async || {
                other.try_check(*user).await.ok()
            })
            .await;
        }
    }

    /// Clearing must not be a way around the rate.
    async fn clearing_does_not_begin_the_second_anew(world: World) {
        let world = world.with(|rules| rules.admitted_per_second_max = 1);
        world.enter(world.user()).await;
        world.clear().await;
        world.line_up(world.user()).await;
    }

    async fn clearing_one_room_leaves_the_others_alone(world: World) {
        let (one, ann, ben) = (world.with(|rules| rules.threshold = 1), world.user(), world.user());
        let two = one.another_event();
        let kept = two.enter(ann).await;
        two.line_up(ben).await;
        one.enter(ann).await;
        one.line_up(ben).await;
        assert_eq!(one.clear().await, (1, 1));
        assert_eq!(two.counts().await, (1, 1));
        assert_eq!(slot(two.poll(ann).await), kept);
        assert_eq!(two.position(ben).await, 1);
        assert_eq!(two.another_event().clear().await, (0, 0));
    }
}
