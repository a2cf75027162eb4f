//! Looking for people behind their backs: nobody is seen by it.

use urr_kernel::Uuid;
use urr_room::{AdmissionState, LinePosition, UserLocation};

use crate::fixture::{MILLISECOND, MINUTE, SECOND, SLOT_TTL, slot};

fn waiting(number: i64, position: u32) -> UserLocation {
    UserLocation::Waiting(LinePosition { number, position })
}

on_all_forms! {
    async fn people_are_found_where_they_stand_in_the_order_of_the_question(world: World) {
        let inside = world.user();
        world.enter(inside).await;
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let line = shut.line(3).await;
        let stranger = world.user();
        shut.leave(line[0]).await;
        let asked = [line[2], stranger, inside, line[1], line[0], line[2]];
        let expected = [
            waiting(3, 2),
            UserLocation::Absent,
            UserLocation::Active,
            waiting(2, 1),
            UserLocation::Absent,
            waiting(3, 2),
        ];
        assert_eq!(world.locate(&asked).await, expected);
        assert_eq!(world.locate(&[]).await, []);
        let elsewhere = world.another_event();
        assert_eq!(elsewhere.locate(&line).await, [UserLocation::Absent; 3], "of this room alone");
        assert!(!elsewhere.is_listed().await, "and it makes no room");
    }

    async fn who_is_only_looked_for_loses_their_place_as_ever(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(2).await;
        for _ in 0..10 {
            shut.pass_swept(MINUTE).await;
            assert_eq!(shut.locate(&users).await, [waiting(1, 1), waiting(2, 2)]);
            // The control: who looks for themselves is seen.
            shut.poll(users[1]).await;
        }
        assert_eq!(shut.sweep(shut.now() - 10 * MINUTE, 100).await, 1);
        assert_eq!(shut.locate(&users).await, [UserLocation::Absent, waiting(2, 1)]);
    }

    async fn a_slot_does_not_slide_because_its_owner_is_looked_for(world: World) {
        let (silent, busy) = (world.user(), world.user());
        let users = [silent, busy];
        world.enter(silent).await;
        world.enter(busy).await;
        world.pass(SLOT_TTL - MILLISECOND);
        assert_eq!(world.locate(&users).await, [UserLocation::Active; 2]);
        // The control.
        slot(world.poll(busy).await);
        world.pass(MILLISECOND);
        assert_eq!(world.locate(&users).await, [UserLocation::Absent, UserLocation::Active]);
    }

    async fn who_was_drawn_is_found_by_the_new_number(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(3).await;
        shut.renumber(&[(users[0], -1), (users[1], -3), (users[2], -2)]).await;
        assert_eq!(shut.locate(&users).await, [waiting(-1, 3), waiting(-3, 1), waiting(-2, 2)]);
    }

    async fn many_are_looked_for_at_once(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = shut.throng(1_300).await;
        users.insert(700, Uuid::from_u128(404));
        world.pass(SECOND);
        let found = world.locate(&users).await;
        let positions: Vec<u32> = (1..=1_300).collect();
        let answer: Vec<u32> = found
            .iter()
            .filter_map(|one| match one {
                UserLocation::Waiting(place) => Some(place.position),
                _ => None,
            })
            .collect();
        assert_eq!(answer, positions);
        assert_eq!((found.len(), found[700]), (1_301, UserLocation::Absent));
    }
}
