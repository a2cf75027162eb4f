//! A Redis that forgets, dies, hangs or refuses: the locks say so or start anew, and are never wrong
//! about who was told what.

use urr_redis::{NO_ARGUMENTS, Redis, RedisOptions, Script};
use urr_test::eventually;
use urr_test::servers::{self, Server};
use urr_ticket::LockResult;

use crate::world::{World, connect, deciding, kept, patient};

/// A server that the test may stop, crash and pause, and locks on it.
async fn own_server(options: RedisOptions) -> Option<(servers::RedisServer, Redis, World)> {
    if !servers::available(Server::Redis).unwrap() {
        return None;
    }
    let server = servers::RedisServer::start().unwrap();
    let redis = connect(server.url(), options).await;
    Some((server, redis.clone(), World::redis(redis)))
}

/// Waits until a stranger is answered again.
async fn answers_again(world: &World, seat_id: u32) -> LockResult {
    eventually("the locks answer again", async || {
        Some(world.look(seat_id).await).filter(|taken| *taken != LockResult::Unknown)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_flush_the_next_one_is_let_through_and_late_calls_do_no_harm() {
    let Some((_server, redis, world)) = own_server(patient()).await else { return };
    let (ann, ben) = (world.fan(), world.fan());
    let (_, of_ann) = world.take(ann, &[1]).await;
    world.keep(ann, &[1], 5).await;
    let flush = Script::new("return redis.call('FLUSHALL')");
    redis.run::<String>(&flush, &["any"], NO_ARGUMENTS).await.unwrap();

    // The lock is gone. The database refuses him, and he is told so.
    let (taken, of_ben) = world.take(ben, &[1]).await;
    assert_eq!(taken, LockResult::Acquired);
    world.give_up(&[1], of_ann).await;
    world.release(&[1], 5).await;
    assert_eq!(world.look(1).await, deciding(1), "what was before the flush undoes nothing");
    world.give_up(&[1], of_ben).await;
    assert_eq!(world.look(1).await, LockResult::Acquired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_makes_the_locks_unknown_until_it_is_back() {
    let Some((mut server, _, world)) = own_server(patient()).await else { return };
    let fan = world.fan();
    let (_, attempt) = world.take(fan, &[1]).await;
    server.kill().unwrap();
    for _ in 0..20 {
        assert_eq!(world.look(1).await, LockResult::Unknown);
    }
    // None of these can be done, and none fails.
    world.keep(fan, &[1], 4).await;
    world.give_up(&[1], attempt).await;
    world.release(&[1], 4).await;

    server.start_again().unwrap();
    answers_again(&world, 2).await;
    world.keep(fan, &[1], 4).await;
    assert_eq!(world.look(1).await, kept(1, 4));
    world.release(&[1], 4).await;
    assert_eq!(world.look(1).await, LockResult::Acquired);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_restarts_remembers_holds_and_learns_the_scripts_again() {
    let Some((mut server, _, world)) = own_server(patient()).await else { return };
    let fan = world.fan();
    world.take(fan, &[1, 2]).await;
    world.keep(fan, &[1, 2], 9).await;
    server.restart().unwrap();
    assert_eq!(answers_again(&world, 1).await, kept(1, 9));
    assert_eq!(world.take(fan, &[1, 2]).await.0, LockResult::Acquired);
    world.release(&[1, 2], 9).await;
    assert_eq!(world.look(2).await, LockResult::Acquired);
}

/// What was sent is executed when the server goes on, long after its caller was told "unknown".
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_does_late_what_it_was_told_and_the_seat_becomes_free_again() {
    let options = RedisOptions::default();
    let Some((mut server, _, world)) = own_server(options).await else { return };
    let (ann, ben) = (world.fan(), world.fan());
    // The server knows every script: one that it does not know is not sent again after a timeout.
    answers_again(&world, 1).await;
    world.keep(ann, &[2], 1).await;
    server.pause().unwrap();
    let (taken, attempt) = world.take(ann, &[1]).await;
    assert_eq!(taken, LockResult::Unknown);
    // The database refused her, too.
    world.give_up(&[1], attempt).await;
    server.resume().unwrap();
    assert_eq!(
        answers_again(&world, 1).await,
        LockResult::Acquired,
        "taken and given up, in this order"
    );

    server.pause().unwrap();
    assert_eq!(world.take(ben, &[1]).await.0, LockResult::Unknown);
    // The database gave it to him.
    world.keep(ben, &[1], 8).await;
    server.resume().unwrap();
    assert_eq!(answers_again(&world, 1).await, kept(1, 8));
}

/// For example without memory or without rights: it answers, but will not do it.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_refuses_makes_the_locks_unknown() {
    let Some((server, _, world)) = own_server(patient()).await else { return };
    let client = redis::Client::open(server.url()).unwrap();
    let mut bare = client.get_multiplexed_async_connection().await.unwrap();
    for (memory_max, expected) in [("1", LockResult::Unknown), ("0", LockResult::Acquired)] {
        let limit = redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(memory_max).to_owned();
        limit.query_async::<()>(&mut bare).await.unwrap();
        for _ in 0..20 {
            assert_eq!(world.look(1).await, expected, "with {memory_max}");
        }
    }
}
