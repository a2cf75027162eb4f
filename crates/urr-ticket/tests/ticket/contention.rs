//! The crowd: every seat is sold exactly once, whatever the locks do.
//!
//! Each case runs on SQLite and on PostgreSQL, with two offices as two processes would have them.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use urr_kernel::{Secret, Uuid};
use urr_redis::{NO_ARGUMENTS, Redis, RedisTopology, Script};
use urr_storage::{Db, StorageError};
use urr_test::servers;
use urr_ticket::{SeatLocks, TicketSettings};

use crate::contract;
use crate::fixture::{World, hall};
use crate::gateway::{Fan, GatewayClient};

/// Two offices before the same tables, and with the same locks.
fn two_offices(world: &World, settings: &TicketSettings, locks: &SeatLocks) -> [GatewayClient; 2] {
    [(); 2].map(|()| GatewayClient::to(&world.ticket_with_locks(settings.clone(), locks), world))
}

async fn connect(url: &str) -> Redis {
    Redis::connect(&RedisTopology::Single(Secret::new(url))).await.unwrap()
}

async fn redis_locks(redis: &servers::RedisServer) -> SeatLocks {
    SeatLocks::redis(connect(redis.url()).await)
}

async fn flush(url: &str) {
    let script = Script::new("return redis.call('FLUSHALL')");
    connect(url).await.run::<String>(&script, &["any"], NO_ARGUMENTS).await.unwrap();
}

/// A Redis of its own, or none where it is not installed.
fn own_redis() -> Option<servers::RedisServer> {
    let is_there = servers::available(servers::Server::Redis).unwrap();
    is_there.then(|| servers::RedisServer::start().unwrap())
}

/// How many of a thousand get the same seat at the same moment. The others get a clear 409.
async fn rush_one_seat(world: &World, doors: &[GatewayClient; 2], event_id: Uuid) -> usize {
    let mut asking = JoinSet::new();
    for number in 0..1_000 {
        let (gateway, fan) = (doors[number % 2].clone(), Fan::new(world));
        asking.spawn(async move { gateway.reserve(&fan, event_id, &[7]).await });
    }
    let mut sold = 0;
    for (status, body) in asking.join_all().await {
        if status == StatusCode::CREATED {
            sold += 1;
            continue;
        }
        must_name_taken(&[7], status, &body);
    }
    sold
}

async fn must_sell_one_seat_once(world: World, locks: SeatLocks) {
    let event_id = world.open_sale(hall(2, 10)).await;
    let doors = two_offices(&world, &TicketSettings::default(), &locks);
    assert_eq!(rush_one_seat(&world, &doors, event_id).await, 1);
    assert_eq!(world.number("select count(*) as n from reservations").await, 1);
    let left = doors[0].reserve(&Fan::new(&world), event_id, &[8]).await;
    assert_eq!(left.0, StatusCode::CREATED, "the seats beside it are free");
}

/// A small generator of our own: the same run for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).unwrap()
    }
}

const SEATS: u32 = 500;
const FANS: u64 = 200;

/// 200 people who look what is free and take 1 to 4 of it at random, again and again, until nothing
/// is left.
async fn sell_out(
    world: &World,
    doors: &[GatewayClient; 2],
    event_id: Uuid,
    sold: &Arc<watch::Sender<u32>>,
) {
    let mut crowd = JoinSet::new();
    for number in 0..FANS {
        let gateway = doors[usize::try_from(number % 2).unwrap()].clone();
        let (db, ids, sold) = (world.db.clone(), world.ids.clone(), Arc::clone(sold));
        crowd.spawn(async move {
            let mut dice = Dice(number);
            loop {
                let free = free_seats(&db).await;
                if free.is_empty() {
                    return;
                }
                let requested = pick(&mut dice, &free);
                // One hold at a time: who comes again is someone new.
                let fan = Fan { user_id: ids.next_id() };
                let (status, body) = gateway.reserve(&fan, event_id, &requested).await;
                match status {
                    StatusCode::CREATED => {
                        let count = u32::try_from(requested.len()).unwrap();
                        sold.send_modify(|sold| *sold += count);
                    }
                    _ => must_name_taken(&requested, status, &body),
                }
            }
        });
    }
    crowd.join_all().await;
}

async fn free_seats(db: &Db) -> Vec<u32> {
    let sql = "select seat_id from seats where status = 'available' order by seat_id";
    let free = db.read(move |tx| tx.query(sql, &[], |row| row.get("seat_id"))).await;
    free.unwrap_or_else(|error: StorageError| panic!("{error}"))
}

fn pick(dice: &mut Dice, from: &[u32]) -> Vec<u32> {
    let length = u32::try_from(from.len()).unwrap();
    let mut requested: Vec<u32> =
        (0..=dice.below(4)).map(|_| from[usize::try_from(dice.below(length)).unwrap()]).collect();
    requested.sort_unstable();
    requested.dedup();
    requested
}

/// Taken, or still being decided after a moment: a database under load may take longer.
fn must_name_taken(requested: &[u32], status: StatusCode, body: &Value) {
    assert_eq!(status.as_u16(), 409, "{body}");
    match body["code"].as_str() {
        Some("SEAT_TAKEN") => assert_eq!(body["retryAfter"], Value::Null),
        Some("SEAT_BEING_DECIDED") => assert_eq!(body["retryAfter"], 1),
        _ => panic!("{body}"),
    }
    let taken: Vec<u32> = serde_json::from_value(body["seatIds"].clone()).unwrap();
    assert!(!taken.is_empty() && taken.iter().all(|seat_id| requested.contains(seat_id)), "{body}");
}

/// Every seat is held, once, by a reservation that knows it, announced once.
async fn must_be_sold_out(world: &World) {
    for (sql, expected) in [
        ("select count(*) as n from seats where status = 'held'", SEATS),
        ("select count(*) as n from reservation_items where is_live", SEATS),
        ("select count(distinct seat_id) as n from reservation_items where is_live", SEATS),
        (
            "select count(*) as n from seats join reservation_items \
             on reservation_items.reservation_id = seats.reservation_id \
             and reservation_items.seat_id = seats.seat_id join reservations \
             on reservations.id = seats.reservation_id and reservations.fence = seats.fence",
            SEATS,
        ),
        ("select sum(quantity)::bigint as n from reservations", SEATS),
        ("select count(*) - (select count(*) from outbox) as n from reservations", 0),
        ("select count(*) - count(distinct fence) as n from reservations", 0),
    ] {
        assert_eq!(world.number(sql).await, i64::from(expected), "{sql}");
    }
}

async fn must_sell_out(world: &World, doors: &[GatewayClient; 2], event_id: Uuid) {
    let sold = Arc::new(watch::Sender::new(0));
    must_sell_out_counting(world, doors, event_id, &sold).await;
}

async fn must_sell_out_counting(
    world: &World,
    doors: &[GatewayClient; 2],
    event_id: Uuid,
    sold: &Arc<watch::Sender<u32>>,
) {
    sell_out(world, doors, event_id, sold).await;
    assert_eq!(*sold.borrow(), SEATS, "what was sold is what the buyers were told");
    must_be_sold_out(world).await;
}

/// Forgets, dies and comes back while the sale goes on. Everything happens before it is over.
async fn break_redis(mut redis: servers::RedisServer, mut sold: watch::Receiver<u32>) {
    let mut reached = async |count: u32| drop(sold.wait_for(|sold| *sold >= count).await.unwrap());
    reached(50).await;
    flush(redis.url()).await;
    reached(150).await;
    redis = blocking(redis, |redis| redis.kill().unwrap()).await;
    reached(300).await;
    redis = blocking(redis, |redis| redis.start_again().unwrap()).await;
    reached(SEATS).await;
    drop(redis);
}

async fn blocking(
    mut redis: servers::RedisServer,
    work: fn(&mut servers::RedisServer),
) -> servers::RedisServer {
    let done = tokio::task::spawn_blocking(move || {
        work(&mut redis);
        redis
    });
    done.await.unwrap()
}

async fn run_sell_out(world: World, locks: SeatLocks) {
    let event_id = world.open_sale(hall(20, 25)).await;
    let doors = two_offices(&world, &TicketSettings::default(), &locks);
    must_sell_out(&world, &doors, event_id).await;
}

contract! {
    async fn of_a_thousand_for_one_seat_one_gets_it(world: World) {
        let locks = SeatLocks::memory(world.clock.clone());
        must_sell_one_seat_once(world, locks).await;
    }

    async fn of_a_thousand_for_one_seat_one_gets_it_with_redis(world: World) {
        let Some(redis) = own_redis() else { return };
        must_sell_one_seat_once(world, redis_locks(&redis).await).await;
    }

    async fn of_a_thousand_for_one_seat_one_gets_it_without_locks(world: World) {
        must_sell_one_seat_once(world, SeatLocks::off()).await;
    }

    async fn a_crowd_buys_every_seat_once(world: World) {
        let locks = SeatLocks::memory(world.clock.clone());
        run_sell_out(world, locks).await;
    }

    async fn a_crowd_buys_every_seat_once_with_redis(world: World) {
        let Some(redis) = own_redis() else { return };
        run_sell_out(world, redis_locks(&redis).await).await;
    }

    async fn a_crowd_buys_every_seat_once_without_locks(world: World) {
        run_sell_out(world, SeatLocks::off()).await;
    }

    /// Locks of two processes that do not know each other: as bad as no locks between them.
    async fn a_crowd_buys_every_seat_once_when_each_office_has_locks_of_its_own(world: World) {
        let event_id = world.open_sale(hall(20, 25)).await;
        let office = || {
            let locks = SeatLocks::memory(world.clock.clone());
            GatewayClient::to(&world.ticket_with_locks(TicketSettings::default(), &locks), &world)
        };
        let doors = [office(), office()];
        must_sell_out(&world, &doors, event_id).await;
    }

    async fn a_redis_that_is_flushed_killed_and_restarted_costs_no_seat(world: World) {
        let Some(redis) = own_redis() else { return };
        let event_id = world.open_sale(hall(20, 25)).await;
        let doors = two_offices(&world, &TicketSettings::default(), &redis_locks(&redis).await);
        let sold = Arc::new(watch::Sender::new(0));
        let breaking = tokio::spawn(break_redis(redis, sold.subscribe()));
        must_sell_out_counting(&world, &doors, event_id, &sold).await;
        breaking.await.unwrap();
    }

    /// The control: with neither layer the seat is sold again and again.
    async fn without_locks_and_without_the_guard_a_seat_is_sold_twice(world: World) {
        let event_id = world.open_sale(hall(2, 10)).await;
        let careless = TicketSettings { dangerous_without_seat_guard: true, ..TicketSettings::default() };
        let doors = two_offices(&world, &careless, &SeatLocks::off());
        assert!(rush_one_seat(&world, &doors, event_id).await > 1);
    }

    /// The control: a lock proves nothing. It holds back a crowd, until Redis forgets it or is too
    /// slow to answer.
    async fn without_the_guard_a_forgotten_lock_sells_a_seat_twice(world: World) {
        let Some(redis) = own_redis() else { return };
        let event_id = world.open_sale(hall(2, 10)).await;
        let careless = TicketSettings { dangerous_without_seat_guard: true, ..TicketSettings::default() };
        let doors = two_offices(&world, &careless, &redis_locks(&redis).await);
        let sold = rush_one_seat(&world, &doors, event_id).await;
        flush(redis.url()).await;
        let sold_again = rush_one_seat(&world, &doors, event_id).await;
        assert!(sold >= 1 && sold_again >= 1, "{sold} and {sold_again}");
        // With the guard the same accident sells nothing.
        let careful = two_offices(&world, &TicketSettings::default(), &redis_locks(&redis).await);
        flush(redis.url()).await;
        assert_eq!(rush_one_seat(&world, &careful, event_id).await, 0);
    }
}
