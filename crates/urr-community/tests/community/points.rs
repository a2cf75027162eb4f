//! Points: never lost, never twice, back with what they were given for, and nobody waits for them.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use serde_json::json;
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::{HOUR, JUNHO, MINA, MINUTE, World};

async fn delete(world: &World, who: Uuid, path: &str) {
    let deleted = world.send(who, Method::DELETE, path, &json!({})).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
}

const WAITING: &str = "select count(*) as n from point_awards where step <> 'done'";

contract! {
    async fn a_post_and_a_comment_earn_points_once_and_lose_them_when_deleted(world: World) {
        let post = world.post(MINA, "글").await;
        let comment = world.comment(JUNHO, &post, "댓글").await;
        assert_eq!(world.peers.calls(), Vec::<String>::new(), "nobody waits for points");
        assert_eq!(world.community.send_due_awards().await, Ok(2));
        assert_eq!(world.peers.held(), ["COMMUNITY_COMMENT", "COMMUNITY_POST"]);
        assert_eq!(world.community.send_due_awards().await, Ok(0), "once");

        let path = format!("/api/community/posts/{post}");
        delete(&world, JUNHO, &format!("{path}/comments/{comment}")).await;
        world.community.send_due_awards().await.unwrap();
        assert_eq!(world.peers.held(), ["COMMUNITY_POST"]);
        delete(&world, MINA, &path).await;
        world.community.send_due_awards().await.unwrap();
        assert_eq!(world.peers.held(), Vec::<String>::new());
        assert_eq!(world.number(WAITING).await, 0);
        assert_eq!(world.peers.calls().len(), 4, "{:?}", world.peers.calls());
    }

    /// The ticket service is away for a minute. The control is the call that is made meanwhile: it
    /// fails, so without its row the award would be lost.
    async fn a_minute_without_the_ticket_service_loses_no_award(world: World) {
        world.peers.ticket_unavailable(true);
        let mut posts = Vec::new();
        for number in 0..6 {
            posts.push(world.post(MINA, &number.to_string()).await);
            world.community.send_due_awards().await.unwrap();
            world.clock.advance(MINUTE / 6);
        }
        assert_eq!((world.peers.held().len(), world.number(WAITING).await), (0, 6));
        // One is deleted before it was ever answered.
        delete(&world, MINA, &format!("/api/community/posts/{}", posts[0])).await;
        world.peers.ticket_unavailable(false);
        // Pauses grow up to five minutes, and the breaker tries again after some seconds.
        for _ in 0..20 {
            world.clock.advance(MINUTE);
            world.community.send_due_awards().await.unwrap();
        }
        assert_eq!((world.peers.held().len(), world.number(WAITING).await), (5, 0));
    }

    /// A lost answer: the award is repeated until it is answered, and only then returned.
    async fn an_award_whose_answer_was_lost_is_returned_too(world: World) {
        let post = world.post(MINA, "글").await;
        world.peers.ticket_loses_answers(true);
        world.community.send_due_awards().await.unwrap();
        assert_eq!(world.peers.held(), ["COMMUNITY_POST"]);
        delete(&world, MINA, &format!("/api/community/posts/{post}")).await;
        world.peers.ticket_loses_answers(false);
        for _ in 0..10 {
            world.clock.advance(MINUTE);
            world.community.send_due_awards().await.unwrap();
        }
        assert_eq!(world.peers.held(), Vec::<String>::new());
        assert_eq!(world.peers.calls().last().unwrap(), "return COMMUNITY_POST");
    }

    /// One that was never sent is forgotten: the ticket service hears nothing of it.
    async fn a_post_that_is_deleted_at_once_earns_nothing(world: World) {
        let post = world.post(MINA, "글").await;
        delete(&world, MINA, &format!("/api/community/posts/{post}")).await;
        assert_eq!(world.community.send_due_awards().await, Ok(0));
        assert_eq!(world.peers.calls(), Vec::<String>::new());
    }

    /// A process that dies after it took an award leaves it to the others.
    async fn an_award_that_a_dead_process_took_is_made_when_its_lease_has_ended(world: World) {
        world.post(MINA, "글").await;
        let until = world.clock.now() + MINUTE;
        let taken = world.db.write(move |tx| {
            let sql = "update point_awards set attempts = 1, leased_until = $1";
            tx.execute(sql, urr_storage::params![until])
        });
        assert_eq!(taken.await, Ok::<_, urr_storage::StorageError>(1));
        assert_eq!(world.community.send_due_awards().await, Ok(0), "it is taken");
        world.clock.advance(MINUTE);
        assert_eq!(world.community.send_due_awards().await, Ok(1));
    }

    async fn many_processes_make_each_call_once(world: World) {
        let free = world.with_limits(1_000);
        for number in 0..40 {
            free.post(MINA, &number.to_string()).await;
        }
        let world = Arc::new(world);
        let senders = (0..8).map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.community.send_due_awards().await.unwrap() })
        });
        for sender in senders.collect::<Vec<_>>() {
            sender.await.unwrap();
        }
        world.clock.advance(HOUR);
        world.community.send_due_awards().await.unwrap();
        assert_eq!((world.peers.held().len(), world.peers.calls().len()), (40, 40));
    }
}
