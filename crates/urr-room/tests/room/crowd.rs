//! A room as a whole: figures, how the line moved, and marks from which everybody's place follows.

use urr_kernel::Uuid;
use urr_room::{AdmissionState, Crowd, LinePace, LinePosition, MARKS_MAX};

use crate::fixture::{SECOND, World, waiting};

/// The last seconds, the newest first; those that are not told are zero.
fn newest_first(pace: &[u32], count: usize) -> Vec<u32> {
    assert!(pace.len() <= LinePace::SECONDS, "{} seconds", pace.len());
    pace.iter().rev().copied().chain(std::iter::repeat(0)).take(count).collect()
}

/// Between which positions someone with this number stands, by the marks alone.
fn bounds_of(number: i64, marks: &[LinePosition]) -> (u32, u32) {
    let before = marks.iter().rev().find(|mark| mark.number <= number);
    let after = marks.iter().find(|mark| mark.number >= number);
    (before.map_or(0, |mark| mark.position), after.map_or(u32::MAX, |mark| mark.position))
}

/// Everybody whose true position is not within what the marks say.
fn find_misled(places: &[LinePosition], marks: &[LinePosition]) -> Vec<LinePosition> {
    let is_misled = |place: &&LinePosition| {
        let (first, last) = bounds_of(place.number, marks);
        !(first..=last).contains(&place.position)
    };
    places.iter().filter(is_misled).copied().collect()
}

async fn places_of(world: &World, users: &[Uuid]) -> Vec<LinePosition> {
    let mut places = Vec::new();
    for user in users {
        places.push(waiting(world.poll(*user).await));
    }
    places
}

/// Checks what every list of marks must be; returns them.
fn check_marks(crowd: &Crowd, places: &[LinePosition]) {
    let (marks, last) = (&crowd.marks, places.last().unwrap());
    assert!(marks.len() <= MARKS_MAX, "{}", marks.len());
    assert_eq!(marks.first(), places.first());
    assert_eq!(marks.last(), Some(last));
    assert!(marks.is_sorted_by(|a, b| a.position < b.position && a.number <= b.number));
    for mark in marks {
        assert!(places.contains(mark), "{mark:?} is a real place");
    }
    let misled = find_misled(places, marks);
    assert!(misled.is_empty(), "{misled:?}");
}

#[test]
fn misleading_marks_are_noticed() {
    let place = |number, position| LinePosition { number, position };
    let places = [place(1, 1), place(4, 2), place(5, 3), place(9, 4)];
    assert!(find_misled(&places, &[place(1, 1), place(9, 4)]).is_empty());
    let wrong = [place(1, 1), place(4, 3), place(9, 4)];
    assert_eq!(find_misled(&places, &wrong), [place(4, 2)]);
    let old = [place(1, 2), place(5, 4), place(9, 5)];
    assert_eq!(find_misled(&places, &old), [place(1, 1), place(5, 3), place(9, 4)]);
}

on_all_forms! {
    async fn an_empty_room_has_empty_figures(world: World) {
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 60), [0; 60]);
        assert_eq!(newest_first(&crowd.pace.left, 60), [0; 60]);
        assert_eq!(crowd, Crowd { pace: crowd.pace.clone(), ..Crowd::default() });
    }

    async fn everybody_who_came_in_or_left_the_line_is_counted(world: World) {
        let world = world.with(|rules| rules.threshold = 2);
        world.enter(world.user()).await;
        world.enter(world.user()).await;
        let users = world.line(6).await;
        world.leave(users[0]).await;
        world.with(|rules| rules.threshold = 4).admit().await;
        world.leave(users[1]).await;
        world.pass(SECOND);
        world.poll(users[5]).await;
        world.sweep(world.now() - SECOND, 100).await;
        let crowd = world.crowd().await;
        assert_eq!((crowd.waiting, crowd.active, crowd.last_number), (1, 3, 6));
        assert_eq!(crowd.admitted_total, 4, "two at once and two from the line");
        assert_eq!(crowd.left_total, 3, "one went and two were dropped; who is in leaves no line");
    }

    async fn ends_of_slots_are_counted_by_second(world: World) {
        let users = world.users(6);
        for user in &users {
            world.enter(*user).await;
        }
        let crowd = world.crowd().await;
        assert_eq!((crowd.active, crowd.pace.in_use), (6, 0), "this second is not whole");
        world.pass(SECOND);
        world.leave(users[0]).await;
        world.finish(users[1], world.now()).await;
        let crowd = world.crowd().await;
        assert_eq!((crowd.active, crowd.pace.in_use), (4, 6));
        assert_eq!(newest_first(&crowd.pace.ended, 2), [0, 0]);
        world.pass(SECOND);
        world.leave(users[2]).await;
        assert!(!world.leave(users[2]).await, "it has ended");
        world.pass(2 * SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.ended, 4), [0, 1, 2, 0]);
        assert_eq!((crowd.active, crowd.pace.in_use), (3, 3));
        // The others do nothing, and their slots expire.
        world.pass(world.rules.slot_ttl);
        world.crowd().await;
        world.pass(SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.ended, 2), [3, 0]);
        assert_eq!((crowd.active, crowd.pace.in_use), (0, 0));
    }

    async fn the_pace_is_that_of_the_last_whole_seconds(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(20).await;
        let room_for = |threshold| world.with(|rules| rules.threshold = threshold);
        room_for(3).admit().await;
        shut.leave(users[19]).await;
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 3), [0, 0, 0], "this second is not whole");
        shut.pass(SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 3), [3, 0, 0]);
        assert_eq!(newest_first(&crowd.pace.left, 3), [1, 0, 0]);
        room_for(5).admit().await;
        shut.pass(SECOND / 2);
        room_for(6).admit().await;
        shut.pass(SECOND / 2);
        shut.leave(users[18]).await;
        shut.pass(2 * SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 5), [0, 0, 3, 3, 0]);
        assert_eq!(newest_first(&crowd.pace.left, 5), [0, 1, 0, 1, 0]);
        shut.pass(56 * SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 60)[58..], [3, 3]);
        shut.pass(SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 60)[58..], [0, 3], "older are forgotten");
        shut.pass(60 * SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 60), [0; 60]);
        assert_eq!(newest_first(&crowd.pace.left, 60), [0; 60]);
    }

    /// It tells those in line how fast the line moves, so it is about the line.
    async fn who_never_waited_is_not_in_the_pace_of_the_line(world: World) {
        let ann = world.user();
        world.enter(ann).await;
        world.leave(ann).await;
        world.with(|rules| rules.admission = AdmissionState::Closed).line(3).await;
        world.clear().await;
        world.pass(SECOND);
        let crowd = world.crowd().await;
        assert_eq!(newest_first(&crowd.pace.admitted, 2), [0, 0]);
        assert_eq!(newest_first(&crowd.pace.let_in, 2), [1, 0], "but among all admissions");
        assert_eq!(newest_first(&crowd.pace.left, 2), [0, 0], "nobody went by themselves");
    }

    async fn a_short_line_is_marked_from_end_to_end(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = Vec::new();
        for _ in 0..12 {
            users.extend(shut.line(1).await);
            check_marks(&shut.crowd().await, &places_of(&shut, &users).await);
        }
    }

    async fn the_marks_tell_everybody_where_they_stand(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let mut users = shut.throng(2_000).await;
        check_marks(&shut.crowd().await, &places_of(&shut, &users).await);
        // Holes of all sizes, and a front that has moved.
        world.with(|rules| rules.threshold = 100).admit().await;
        users.drain(..100);
        for gone in users.extract_if(100..900, |user| user.as_u128() % 3 != 0) {
            shut.leave(gone).await;
        }
        check_marks(&shut.crowd().await, &places_of(&shut, &users).await);
    }

    async fn the_marks_hold_after_a_draw(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let users = shut.line(300).await;
        let entrants = users[..200].iter().zip(0_i64..);
        let drawn: Vec<(Uuid, i64)> =
            entrants.map(|(user, at)| (*user, at * 7 % 200 - 900)).collect();
        shut.renumber(&drawn).await;
        let mut in_order = drawn.clone();
        in_order.sort_unstable_by_key(|(_, number)| *number);
        let late = users[200..].iter().copied();
        let order: Vec<Uuid> = in_order.into_iter().map(|(user, _)| user).chain(late).collect();
        let crowd = shut.crowd().await;
        check_marks(&crowd, &places_of(&shut, &order).await);
        assert_eq!(crowd.last_number, 300, "the draw makes no arrivals");
    }
}
