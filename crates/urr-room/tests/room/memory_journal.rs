//! The journal of rooms in memory: what is there again after a restart, what is told before it is
//! written, and what happens when it cannot be written.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinHandle;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_room::JOURNAL;
use urr_room::memory::{MemoryRooms, RecoverySummary};
use urr_room::{
    AdmissionRules, AdmissionState, LinePosition, RoomError, RoomRequest, Slot, StatusSnapshot,
    UserStatus,
};
use urr_storage::{Db, SqliteOptions, StorageError, params};
use urr_test::engines::{self, Database, Engine};
use urr_test::eventually;

use crate::fixture::{ROOMY, SECOND, SLOT_MAX, SLOT_TTL, slot, waiting};

pub const EVENT: Uuid = Uuid::from_u128(1);
pub const OTHER_EVENT: Uuid = Uuid::from_u128(2);
pub const SHUT: AdmissionRules = AdmissionRules { admission: AdmissionState::Closed, ..ROOMY };

/// A journal's file, and rooms that are opened on it again and again.
pub struct Keeper {
    pub database: Database,
    pub now: Timestamp,
}

impl Keeper {
    pub fn new() -> Keeper {
        let now = "2026-12-01T12:00:00Z".parse().unwrap();
        let database = Database::open(Engine::Sqlite, &JOURNAL, now).unwrap();
        Keeper { database, now }
    }

    pub async fn open(&self) -> (MemoryRooms, RecoverySummary) {
        open_on(self.database.db.clone(), self.now).await
    }

    /// As another process would after this one was killed: nothing is finished before.
    pub async fn open_as_after_a_crash(&self) -> (MemoryRooms, RecoverySummary) {
        open_on(self.second_db(), self.now).await
    }

    pub fn second_db(&self) -> Db {
        Db::open_sqlite(&self.database.path(), &SqliteOptions::default()).unwrap()
    }

    pub fn request(&self, user: u128) -> RoomRequest {
        RoomRequest { event_id: EVENT, user_id: id(user), now: self.now }
    }

    pub async fn place_of(&self, rooms: &MemoryRooms, user: u128) -> LinePosition {
        waiting(rooms.poll(self.request(user), &SHUT).await.unwrap())
    }

    pub async fn slot_of(&self, rooms: &MemoryRooms, user: u128) -> Slot {
        slot(rooms.poll(self.request(user), &ROOMY).await.unwrap())
    }

    pub async fn join(&self, rooms: &MemoryRooms, users: std::ops::RangeInclusive<u128>) {
        for user in users {
            waiting(rooms.check(self.request(user), &SHUT).await.unwrap());
        }
    }

    async fn journalled_places(&self) -> i64 {
        let sql = "select count(*) as count from places";
        let read = |tx: &mut urr_storage::Tx<'_>| tx.query_one(sql, &[], |row| row.get("count"));
        self.second_db().read(read).await.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }
}

async fn open_on(db: Db, now: Timestamp) -> (MemoryRooms, RecoverySummary) {
    let ids = IdSource::from_system_randomness(Clock::System);
    MemoryRooms::open(db, ids, now).await.unwrap()
}

pub fn id(number: u128) -> Uuid {
    // Ids in another order than the people come.
    Uuid::from_u128(u128::MAX - number)
}

/// Occupies the journal's writer until the returned sender is dropped.
pub async fn occupy(db: &Db) -> (Sender<()>, JoinHandle<Result<(), StorageError>>) {
    let (release, wait) = channel::<()>();
    let (started, is_started) = channel();
    let wait = Mutex::new(wait);
    let db = db.clone();
    let occupant = tokio::spawn(async move {
        db.write(move |_tx| {
            started.send(()).ok();
            wait.lock().unwrap().recv().ok();
            Ok(())
        })
        .await
    });
    tokio::task::spawn_blocking(move || is_started.recv().unwrap()).await.unwrap();
    (release, occupant)
}

/// Whether it would have to wait. What could answer at once has answered.
async fn is_waiting<T>(call: &mut Pin<Box<impl Future<Output = T>>>) -> bool {
    poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await
}

#[test]
fn a_restart_keeps_places_in_order_with_their_numbers() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, recovered) = keeper.open().await;
        assert_eq!(recovered, RecoverySummary::default());
        keeper.join(&rooms, 1..=600).await;
        for user in (1..=600).filter(|user| user % 3 == 0) {
            assert!(rooms.leave(keeper.request(user)).await.unwrap());
        }
        let two = AdmissionRules { threshold: 2, ..ROOMY };
        assert_eq!(rooms.admit(EVENT, &two, keeper.now).await.unwrap().len(), 2);
        let before = rooms.crowd(EVENT, keeper.now).await.unwrap();
        let inside = [keeper.slot_of(&rooms, 1).await, keeper.slot_of(&rooms, 2).await];

        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 398, active: 2 });
        let after = again.crowd(EVENT, keeper.now).await.unwrap();
        assert_eq!(after.marks, before.marks);
        assert_eq!(after.last_number, 600);
        assert_eq!((after.admitted_total, after.left_total), (2, 200));
        for user in (3..=600).filter(|user| user % 3 != 0) {
            let place = keeper.place_of(&again, user).await;
            assert_eq!(place, keeper.place_of(&rooms, user).await, "{user}");
        }
        assert_eq!([keeper.slot_of(&again, 1).await, keeper.slot_of(&again, 2).await], inside);
        let late = waiting(again.check(keeper.request(3), &SHUT).await.unwrap());
        assert_eq!(late, LinePosition { number: 601, position: 399 }, "numbers are not used again");
    });
}

#[test]
fn after_a_restart_the_last_number_is_known_even_if_its_owner_has_left() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=5).await;
        for user in 1..=5 {
            assert!(rooms.leave(keeper.request(user)).await.unwrap());
        }
        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 0, active: 0 });
        assert!(again.occupied_events().await.unwrap().is_empty());
        let place = waiting(again.check(keeper.request(6), &SHUT).await.unwrap());
        assert_eq!(place, LinePosition { number: 6, position: 1 });
    });
}

#[test]
fn a_restart_keeps_the_order_that_was_drawn() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=5).await;
        let drawn = [(id(4), -900), (id(2), -700), (id(3), -700), (id(1), -500)];
        rooms.renumber(EVENT, 5, &drawn).await.unwrap();
        keeper.join(&rooms, 6..=6).await;
        let (again, _) = keeper.open_as_after_a_crash().await;
        // Equal numbers are ordered by id, and a larger number has a smaller id here.
        let order = [(4, -900), (3, -700), (2, -700), (1, -500), (5, 5), (6, 6)];
        for ((user, number), position) in order.into_iter().zip(1..) {
            let place = LinePosition { number, position };
            assert_eq!(keeper.place_of(&rooms, user).await, place);
            assert_eq!(keeper.place_of(&again, user).await, place, "after the restart");
        }
        assert_eq!(again.entrants(EVENT, i64::MAX).await.unwrap(), [id(5), id(6)]);
    });
}

#[test]
fn a_restart_counts_as_being_seen() {
    engines::block_on(async {
        let mut keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        slot(rooms.check(keeper.request(1), &ROOMY).await.unwrap());
        keeper.join(&rooms, 2..=3).await;
        let begin = keeper.now;
        keeper.now = begin + SLOT_MAX - SECOND;
        let (again, _) = keeper.open_as_after_a_crash().await;
        let kept = keeper.slot_of(&again, 1).await;
        assert_eq!((kept.admitted_at, kept.last_end), (begin, begin + SLOT_MAX));
        assert_eq!(kept.ends_at, begin + SLOT_MAX, "not later than the last end");
        assert_eq!(again.sweep(EVENT, begin, 10, keeper.now).await.unwrap(), 0);
        keeper.now += SECOND;
        let status = again.poll(keeper.request(1), &ROOMY).await.unwrap().status;
        assert_eq!(status, UserStatus::Absent);
        assert_eq!(again.sweep(EVENT, keeper.now - SECOND, 10, keeper.now).await.unwrap(), 2);
    });
}

#[test]
fn who_was_in_and_is_not_seen_after_a_restart_makes_room_in_time() {
    engines::block_on(async {
        let mut keeper = Keeper::new();
        let one = AdmissionRules { threshold: 1, ..ROOMY };
        let (rooms, _) = keeper.open().await;
        slot(rooms.check(keeper.request(1), &one).await.unwrap());
        waiting(rooms.check(keeper.request(2), &one).await.unwrap());
        let (again, _) = keeper.open_as_after_a_crash().await;
        keeper.now += SLOT_TTL - Duration::from_micros(1);
        assert_eq!(again.admit(EVENT, &one, keeper.now).await.unwrap(), []);
        keeper.now += Duration::from_micros(1);
        let admitted = again.admit(EVENT, &one, keeper.now).await.unwrap();
        assert_eq!(admitted.len(), 1);
        assert_eq!(admitted[0].user_id, id(2));
    });
}

#[test]
fn a_restart_does_not_begin_the_second_anew() {
    engines::block_on(async {
        let mut keeper = Keeper::new();
        let slow = AdmissionRules { admitted_per_second_max: 3, ..ROOMY };
        let (rooms, _) = keeper.open().await;
        slot(rooms.check(keeper.request(1), &slow).await.unwrap());
        slot(rooms.check(keeper.request(2), &slow).await.unwrap());
        keeper.now += SECOND / 2;
        let (again, _) = keeper.open_as_after_a_crash().await;
        slot(again.check(keeper.request(3), &slow).await.unwrap());
        waiting(again.check(keeper.request(4), &slow).await.unwrap());
        keeper.now += SECOND / 2;
        assert_eq!(again.admit(EVENT, &slow, keeper.now).await.unwrap().len(), 1);
    });
}

#[test]
fn after_a_restart_the_lines_one_waits_in_are_counted() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let (again, _) = keeper.open_as_after_a_crash().await;
        let few = AdmissionRules { queues_per_user_max: 1, ..SHUT };
        let elsewhere = RoomRequest { event_id: OTHER_EVENT, ..keeper.request(1) };
        assert_eq!(again.check(elsewhere, &few).await, Err(RoomError::TooManyQueues));
        assert!(again.leave(keeper.request(1)).await.unwrap());
        waiting(again.check(elsewhere, &few).await.unwrap());
    });
}

#[test]
fn what_was_cleared_does_not_come_back_and_is_removed_from_the_file() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        slot(rooms.check(keeper.request(9_999), &ROOMY).await.unwrap());
        keeper.join(&rooms, 1..=2_500).await;
        let cleared = rooms.clear(EVENT, keeper.now).await.unwrap();
        assert_eq!((cleared.waiting, cleared.active), (2_500, 1));
        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 0, active: 0 });
        let place = waiting(again.check(keeper.request(3), &SHUT).await.unwrap());
        assert_eq!(place, LinePosition { number: 2_501, position: 1 }, "numbers go on");
        let removed = async || (keeper.journalled_places().await == 1).then_some(());
        eventually("the places of the cleared room are gone", removed).await;
    });
}

/// The room was cleared, and the process was killed before their places were removed.
#[test]
fn places_of_a_cleared_room_that_were_left_behind_are_nobodys() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=3).await;
        let sql = "insert into places (room, arrival, user_id) values (77, $1, $2)";
        let left_behind = |tx: &mut urr_storage::Tx<'_>| {
            (1..=2_500_i64).try_for_each(|n| tx.execute(sql, params![n, id(1)]).map(drop))
        };
        keeper.database.db.write(left_behind).await.unwrap();
        assert_eq!(keeper.journalled_places().await, 2_503);
        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 3, active: 0 });
        let removed = async || (keeper.journalled_places().await == 3).then_some(());
        eventually("what was left behind is gone", removed).await;
        let elsewhere = RoomRequest { event_id: OTHER_EVENT, ..keeper.request(1) };
        waiting(again.check(elsewhere, &SHUT).await.unwrap());
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(
            recovered,
            RecoverySummary { rooms: 2, waiting: 4, active: 0 },
            "a number of its own"
        );
    });
}

#[test]
fn nobody_is_told_of_a_place_before_it_is_written() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let (release, occupant) = occupy(&keeper.database.db).await;
        let mut joining = Box::pin(rooms.check(keeper.request(2), &SHUT));
        assert!(is_waiting(&mut joining).await);
        let mut looking = Box::pin(rooms.poll(keeper.request(2), &SHUT));
        assert!(is_waiting(&mut looking).await, "a poll would promise it as well");
        assert_eq!(keeper.place_of(&rooms, 1).await.position, 1, "what is written is told");
        assert_eq!(rooms.crowd(EVENT, keeper.now).await.unwrap().last_number, 1);

        // The control: telling now would have been wrong.
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 1, active: 0 });

        drop(release);
        occupant.await.unwrap().unwrap();
        let place = LinePosition { number: 2, position: 2 };
        assert_eq!(waiting(joining.await.unwrap()), place);
        assert_eq!(waiting(looking.await.unwrap()), place);
        let (again, _) = keeper.open_as_after_a_crash().await;
        assert_eq!(keeper.place_of(&again, 2).await, place);
    });
}

#[test]
fn nobody_is_told_of_a_slot_before_it_is_written() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let (release, occupant) = occupy(&keeper.database.db).await;
        let mut admit = Box::pin(rooms.admit(EVENT, &ROOMY, keeper.now));
        assert!(is_waiting(&mut admit).await);
        let mut looking = Box::pin(rooms.poll(keeper.request(1), &ROOMY));
        assert!(is_waiting(&mut looking).await);
        let mut entering = Box::pin(rooms.check(keeper.request(2), &ROOMY));
        assert!(is_waiting(&mut entering).await);
        let mut holding = Box::pin(rooms.holds_slot(keeper.request(2), Uuid::nil(), &ROOMY));
        assert!(is_waiting(&mut holding).await);
        drop(release);
        occupant.await.unwrap().unwrap();
        let admitted = admit.await.unwrap();
        assert_eq!(slot(looking.await.unwrap()).id, admitted[0].slot_id);
        assert!(entering.await.unwrap().is_just_admitted);
        assert!(!holding.await.unwrap());
    });
}

/// They closed the page while the disk was busy.
#[test]
fn who_stops_waiting_for_the_answer_has_the_place_once() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        let (release, occupant) = occupy(&keeper.database.db).await;
        let mut joining = Box::pin(rooms.check(keeper.request(1), &SHUT));
        assert!(is_waiting(&mut joining).await);
        drop(joining);
        drop(release);
        occupant.await.unwrap().unwrap();
        let place = waiting(rooms.check(keeper.request(1), &SHUT).await.unwrap());
        assert_eq!(place, LinePosition { number: 1, position: 1 });
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 1, active: 0 });
    });
}

#[test]
fn closing_writes_the_last_changes_and_then_nothing_more() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let (release, occupant) = occupy(&keeper.database.db).await;
        let mut joining = Box::pin(rooms.check(keeper.request(2), &SHUT));
        assert!(is_waiting(&mut joining).await);
        let mut closing = Box::pin(rooms.close());
        assert!(is_waiting(&mut closing).await);
        drop(release);
        occupant.await.unwrap().unwrap();
        closing.await;
        waiting(joining.await.unwrap());
        assert_eq!(rooms.check(keeper.request(3), &SHUT).await, Err(RoomError::Unavailable));
        assert_eq!(rooms.leave(keeper.request(2)).await, Err(RoomError::Unavailable));
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(recovered, RecoverySummary { rooms: 1, waiting: 2, active: 0 });
    });
}

/// How many pages the file may have.
async fn limit_pages(db: &Db, pages: u32) {
    let sql = format!("pragma max_page_count = {pages}");
    let limited = db.write(move |tx| tx.query(&sql, &[], |_| Ok(())).map(drop)).await;
    limited.unwrap_or_else(|error: StorageError| panic!("{error}"));
}

#[test]
fn while_the_disk_is_full_nobody_is_taken_and_nothing_told_is_lost() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        slot(
            rooms
                .check(RoomRequest { event_id: OTHER_EVENT, ..keeper.request(1) }, &ROOMY)
                .await
                .unwrap(),
        );
        limit_pages(&keeper.database.db, 1).await;
        let mut user = 1;
        let refused: Result<StatusSnapshot, RoomError> = loop {
            user += 1;
            let answer = rooms.check(keeper.request(user), &SHUT).await;
            if answer.is_err() {
                break answer;
            }
            assert!(user < 10_000, "the file does not become full");
        };
        assert_eq!(refused, Err(RoomError::Unavailable));
        // Of those who have a place in memory that is not written nothing is told.
        assert_eq!(rooms.poll(keeper.request(user), &SHUT).await, Err(RoomError::Unavailable));
        // Nothing new happens, but what is written is told as ever.
        let stranger = keeper.request(20_000);
        assert_eq!(rooms.check(stranger, &SHUT).await, Err(RoomError::Unavailable));
        assert_eq!(rooms.poll(stranger, &SHUT).await.unwrap().status, UserStatus::Absent);
        assert_eq!(rooms.leave(keeper.request(1)).await, Err(RoomError::Unavailable));
        assert_eq!(rooms.admit(EVENT, &ROOMY, keeper.now).await, Err(RoomError::Unavailable));
        assert_eq!(rooms.clear(EVENT, keeper.now).await, Err(RoomError::Unavailable));
        for answer in 1..user {
            let place = keeper.place_of(&rooms, answer).await;
            assert_eq!(u128::from(place.position), answer);
        }
        let (_, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(u128::from(recovered.waiting), user - 1, "what was told, and no more");

        limit_pages(&keeper.database.db, 100_000).await;
        let taken = async || rooms.check(stranger, &SHUT).await.ok();
        let place = waiting(eventually("the room takes people again", taken).await);
        assert_eq!(u128::from(place.position), user + 1, "those who asked in vain joined nothing");
        assert_eq!(u128::from(keeper.place_of(&rooms, user).await.position), user);
        let (again, recovered) = keeper.open_as_after_a_crash().await;
        assert_eq!(u128::from(recovered.waiting), user + 1);
        assert_eq!(keeper.place_of(&again, 20_000).await, place);
    });
}

#[test]
fn a_storage_that_was_closed_refuses_and_nobody_waits_for_ever() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let (rooms, _) = keeper.open().await;
        keeper.join(&rooms, 1..=1).await;
        let db = keeper.database.db.clone();
        tokio::task::spawn_blocking(move || db.close()).await.unwrap();
        assert_eq!(rooms.check(keeper.request(2), &SHUT).await, Err(RoomError::Unavailable));
        assert_eq!(rooms.poll(keeper.request(2), &SHUT).await, Err(RoomError::Unavailable));
        assert_eq!(keeper.place_of(&rooms, 1).await.position, 1);
        rooms.close().await;
    });
}

/// A million of them are meant to fit into 100 MB, with the count of everybody's lines.
#[test]
fn a_person_who_waits_takes_little_memory() {
    engines::block_on(async {
        let keeper = Keeper::new();
        let sql = "insert into journal_rooms (room, event_id, last_number, admitted_total, \
                   left_total) values (1, $1, 60000, 0, 0)";
        let places = "insert into places (room, arrival, user_id) values (1, $1, $2)";
        let fill = |tx: &mut urr_storage::Tx<'_>| {
            tx.execute(sql, params![EVENT])?;
            (1..=60_000_u32)
                .try_for_each(|n| tx.execute(places, params![n, id(u128::from(n))]).map(drop))
        };
        keeper.database.db.write(fill).await.unwrap();
        let (rooms, recovered) = keeper.open().await;
        assert_eq!(recovered.waiting, 60_000);
        let memory_usage = rooms.memory_usage();
        assert_eq!(memory_usage.waiting, 60_000);
        let bytes = memory_usage.bytes / 60_000;
        assert!((40..100).contains(&bytes), "{bytes} bytes for each");
    });
}
