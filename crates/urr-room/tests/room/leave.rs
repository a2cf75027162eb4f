//! Leaving: at once, for good, and the others move up.

use urr_room::{AdmissionState, LinePosition, UserStatus};

use crate::fixture::{NOBODY, SLOT_TTL};

on_all_forms! {
    async fn when_someone_leaves_the_line_the_others_move_up(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = shut.line(8).await;
        for leaver in [7, 3, 0, 2] {
            let user = users.remove(leaver);
            assert!(shut.leave(user).await);
            assert_eq!(shut.status(user).await, UserStatus::Absent);
            let expected: Vec<u32> = (1..).take(users.len()).collect();
            assert_eq!(shut.positions(&users).await, expected);
        }
        assert_eq!(shut.counts().await, (4, 0));
        assert_eq!(shut.crowd().await.left_total, 4);
        assert_eq!(world.admit().await, users);
    }

    async fn who_is_not_here_cannot_leave(world: World) {
        let ann = world.user();
        assert!(!world.leave(ann).await);
        world.with(|rules| rules.admission = AdmissionState::Closed).line_up(ann).await;
        assert!(world.leave(ann).await);
        assert!(!world.leave(ann).await, "once is enough");
        assert_eq!(world.crowd().await.left_total, 1);
        assert_eq!(world.counts().await, (0, 0));
    }

    async fn who_is_in_leaves_no_line(world: World) {
        let ann = world.user();
        world.enter(ann).await;
        assert!(world.leave(ann).await);
        assert!(!world.leave(ann).await);
        let crowd = world.crowd().await;
        assert_eq!((crowd.admitted_total, crowd.left_total), (1, 0));
    }

    async fn whose_slot_has_ended_has_nothing_to_leave(world: World) {
        let ann = world.user();
        world.enter(ann).await;
        world.pass(SLOT_TTL);
        assert!(!world.leave(ann).await);
    }

    async fn who_comes_back_stands_at_the_end(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(3).await;
        shut.leave(users[0]).await;
        assert_eq!(shut.line_up(users[0]).await, LinePosition { number: 4, position: 3 });
        assert_eq!(world.admit().await, [users[1], users[2], users[0]]);
    }

    async fn when_all_have_left_nobody_waits(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        for user in shut.line(5).await {
            shut.leave(user).await;
        }
        assert_eq!(world.admit().await, NOBODY);
        assert_eq!(shut.counts().await, (0, 0));
        assert_eq!(shut.line_up(shut.user()).await, LinePosition { number: 6, position: 1 });
    }
}
