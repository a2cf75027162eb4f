//! What rooms in memory keep: a draw that could not be written at once, batches that are written
//! twice, rooms that nobody is in, and a journal that has ended.

use std::future::poll_fn;
use std::task::Poll;

use urr_kernel::Uuid;
use urr_room::memory::RecoverySummary;
use urr_room::{AdmissionRules, Crowd, LinePace, LinePosition, RoomError, RoomRequest};
use urr_storage::{Db, StorageError, Tx, params};
use urr_test::engines::block_on;
use urr_test::eventually;

use crate::fixture::{MINUTE, ROOMY, SECOND, slot, waiting};
use crate::memory_journal::{EVENT, Keeper, OTHER_EVENT, SHUT, id};

async fn execute(db: &Db, sql: &'static str) {
    let done = db.write(move |tx: &mut Tx<'_>| tx.execute(sql, &[]).map(drop)).await;
    done.unwrap_or_else(|error: StorageError| panic!("{error}"));
}

/// People with places in the journal, in the order of their numbers.
async fn fill(keeper: &Keeper, count: u32) {
    let fill = move |tx: &mut Tx<'_>| {
        let sql = "insert into journal_rooms (room, event_id, last_number, admitted_total, \
                   left_total) values (1, $1, $2, 0, 0)";
        tx.execute(sql, params![EVENT, count])?;
        let sql = "insert into places (room, arrival, user_id) values (1, $1, $2)";
        (1..=count).try_for_each(|n| tx.execute(sql, params![n, id(n.into())]).map(drop))
    };
    keeper.database.db.write(fill).await.unwrap_or_else(|error: StorageError| panic!("{error}"));
}

/// The numbers are written in parts. The second fails, and nobody asks for the third again: all of
/// them have their number in memory.
#[test]
fn a_draw_that_could_not_be_written_at_once_is_kept_as_a_whole() {
    block_on(async {
        let keeper = Keeper::new();
        fill(&keeper, 12_000).await;
        let (rooms, _) = keeper.open().await;
        let db = &keeper.database.db;
        execute(
            db,
            "create trigger full before update of drawn on places when new.arrival > 5000 \
             begin select raise(abort, 'no room'); end",
        )
        .await;
        let drawn: Vec<(Uuid, i64)> =
            (1..=12_000).map(|n: i64| (id(u128::try_from(n).unwrap()), -n)).collect();
        assert_eq!(rooms.renumber(EVENT, 12_000, &drawn).await, Err(RoomError::Unavailable));
        assert!(!rooms.is_working());
        let again = rooms.renumber(EVENT, 12_000, &[]).await;
        assert_eq!(again, Err(RoomError::Unavailable), "nobody is left, but nothing is written");

        execute(db, "drop trigger full").await;
        eventually("the draw is done", async || {
            let left = rooms.entrants(EVENT, 12_000).await.ok()?;
            assert!(left.is_empty(), "everybody has a number");
            rooms.renumber(EVENT, 12_000, &[]).await.ok()
        })
        .await;
        assert!(rooms.is_working());
        let (again, _) = keeper.open_as_after_a_crash().await;
        assert!(again.entrants(EVENT, 12_000).await.unwrap().is_empty());
        for (user, position) in [(12_000_u32, 1), (11_000, 1_001), (6_000, 6_001), (1, 12_000)] {
            let place = LinePosition { number: -i64::from(user), position };
            assert_eq!(keeper.place_of(&again, user.into()).await, place);
        }
    });
}

/// The page was closed, or the job stopped.
#[test]
fn a_draw_that_nobody_waits_for_any_more_is_written_as_a_whole() {
    block_on(async {
        let keeper = Keeper::new();
        fill(&keeper, 12_000).await;
        let (rooms, _) = keeper.open().await;
        let drawn: Vec<(Uuid, i64)> =
            (1..=12_000).map(|n: i64| (id(u128::try_from(n).unwrap()), -n)).collect();
        let mut draw = Box::pin(rooms.renumber(EVENT, 12_000, &drawn));
        poll_fn(|context| {
            assert!(draw.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(draw);
        rooms.renumber(EVENT, 12_000, &[]).await.unwrap();
        let (again, _) = keeper.open_as_after_a_crash().await;
        assert_eq!(again.entrants(EVENT, 12_000).await.unwrap(), [] as [Uuid; 0]);
    });
}

/// The disk said that it had failed, and it had not.
#[test]
fn a_batch_that_was_written_already_is_written_again() {
    block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let now = keeper.now;
        let insert = move |tx: &mut Tx<'_>| {
            let sql = "insert into places (room, arrival, user_id) values (1, 2, $1)";
            tx.execute(sql, params![id(2)])?;
            let sql = "insert into slots (room, user_id, slot_id, admitted_at) \
                       values (2, $1, $1, $2)";
            tx.execute(sql, params![id(3), now]).map(drop)
        };
        let inserted = keeper.database.db.write(insert).await;
        inserted.unwrap_or_else(|error: StorageError| panic!("{error}"));
        keeper.join(&rooms, 2..=2).await;
        let elsewhere = RoomRequest { event_id: OTHER_EVENT, ..keeper.request(3) };
        slot(rooms.check(elsewhere, &ROOMY).await.unwrap());
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 2, waiting: 2, active: 1 });
    });
}

#[test]
fn rooms_that_nobody_is_in_take_little_memory_and_go_on_with_their_numbers() {
    block_on(async {
        let mut keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        let in_event = |keeper: &Keeper, event| RoomRequest {
            event_id: Uuid::from_u128(event),
            ..keeper.request(1)
        };
        for event in 10..210 {
            let request = in_event(&keeper, event);
            waiting(rooms.check(request, &SHUT).await.unwrap());
            assert!(rooms.leave(request).await.unwrap());
        }
        let before = rooms.memory_usage().bytes;
        assert!(rooms.occupied_events().await.unwrap().is_empty());
        assert_eq!(rooms.memory_usage().bytes, before, "their last seconds are remembered");
        keeper.now += 2 * MINUTE;
        keeper.join(&rooms, 7..=7).await;
        assert_eq!(rooms.occupied_events().await.unwrap(), [EVENT]);
        let after = rooms.memory_usage().bytes;
        assert!(after < before / 10, "{after} bytes of {before}");
        let event_id = Uuid::from_u128(10);
        let crowd = rooms.crowd(event_id, keeper.now).await.unwrap();
        let expected =
            Crowd { last_number: 1, left_total: 1, pace: crowd.pace.clone(), ..Crowd::default() };
        assert_eq!(crowd, expected);
        assert!(!rooms.leave(in_event(&keeper, 10)).await.unwrap());

        let place = LinePosition { number: 2, position: 1 };
        assert_eq!(waiting(rooms.check(in_event(&keeper, 10), &SHUT).await.unwrap()), place);
        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 201, waiting: 2, active: 0 });
        let place_of_next = again.check(in_event(&keeper, 11), &SHUT).await.unwrap();
        assert_eq!(waiting(place_of_next), place, "also after a restart");
    });
}

/// Otherwise who comes while their room is put to rest is in one that nobody finds.
#[test]
fn who_comes_while_the_room_is_put_to_rest_is_in_it() {
    block_on(async {
        let mut keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        for number in 1..=300_i64 {
            let (one, other) = (rooms.clone(), rooms.clone());
            let request = keeper.request(1);
            let coming = tokio::spawn(async move { one.check(request, &SHUT).await.unwrap() });
            let looking = tokio::spawn(async move { other.occupied_events().await.unwrap() });
            assert_eq!(waiting(coming.await.unwrap()), LinePosition { number, position: 1 });
            looking.await.unwrap();
            assert!(rooms.occupied_events().await.unwrap().contains(&EVENT));
            assert!(rooms.leave(request).await.unwrap());
            keeper.now += 2 * MINUTE;
            slot(
                rooms
                    .check(RoomRequest { event_id: OTHER_EVENT, ..keeper.request(2) }, &ROOMY)
                    .await
                    .unwrap(),
            );
        }
    });
}

/// A minute after a restart users were told twelve times their wait: only those who were still inside
/// had been counted.
#[test]
fn a_restart_does_not_forget_how_the_line_moved() {
    block_on(async {
        let mut keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=20).await;
        let two = AdmissionRules { threshold: 2, ..ROOMY };
        for second in 0..10_u128 {
            keeper.now += SECOND;
            rooms.admit(EVENT, &two, keeper.now).await.unwrap();
            // One goes in each second.
            assert!(rooms.leave(keeper.request(second + 1)).await.unwrap());
        }
        keeper.now += SECOND;
        let before = rooms.crowd(EVENT, keeper.now).await.unwrap();
        assert_eq!(before.pace.ended.iter().sum::<u32>(), 10);
        let (again, _) = keeper.open_as_after_a_crash().await;
        let after = again.crowd(EVENT, keeper.now).await.unwrap();
        assert_eq!(after.pace, before.pace);
        keeper.now += MINUTE;
        let (later, _) = keeper.open_as_after_a_crash().await;
        let later = later.crowd(EVENT, keeper.now).await.unwrap();
        assert_eq!(later.pace.ended, [0; LinePace::SECONDS], "that was long ago");
    });
}

#[test]
fn the_end_of_the_journal_is_told() {
    block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        assert!(rooms.is_working());
        let watched = rooms.clone();
        let watch = tokio::spawn(async move { watched.run_to_end().await });
        let db = keeper.database.db.clone();
        tokio::task::spawn_blocking(move || db.close()).await.unwrap();
        assert!(!watch.is_finished(), "nothing had to be written yet");
        assert_eq!(rooms.check(keeper.request(2), &SHUT).await, Err(RoomError::Unavailable));
        watch.await.unwrap();
        assert!(!rooms.is_working());
        rooms.run_to_end().await;
    });
}

#[test]
fn closing_is_an_end_too() {
    block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        rooms.close().await;
        rooms.run_to_end().await;
        assert!(!rooms.is_working());
        let late = rooms.sweep(EVENT, keeper.now - SECOND, 1, keeper.now).await;
        assert_eq!(late, Ok(0), "there is no room to be swept");
    });
}
