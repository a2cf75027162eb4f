//! What is learnt from domain events: any number of times, in any order.

use axum::http::Method;
use serde_json::{Value, json};
use urr_contracts::events::catalog::{
    ArtistUpdated, EventCancelled, EventCreated, EventDeleted, EventUpdated,
};
use urr_contracts::events::user::UserDeleted;
use urr_contracts::internal::community::GetContributions;
use urr_kernel::{DomainEvent, Won};
use urr_service::{InternalCall, UserRole};
use urr_storage::{Row, StorageError};

use crate::contract;
use crate::fixture::{BAND, JUNHO, MINA, MINUTE, ORGANISER, World};

/// All rows of the tables that events change.
async fn tables(world: &World) -> Vec<String> {
    let read = |row: &Row<'_>| row.get::<String>("text");
    let queries = [
        "select name as text from artists order by id",
        "select (case when is_live then 'live' else 'ended' end) as text from artist_events \
         order by event_id",
        "select (case when author_id is null then '' else 'author' end) as text from posts \
         order by id",
        "select (case when author_id is null then '' else 'author' end) as text from comments \
         order by id",
        "select (case when reporter_id is null then '' else 'reporter' end) as text from reports \
         order by id",
    ];
    let rows = world.db.read(move |tx| {
        let mut rows = Vec::new();
        for query in queries {
            rows.extend(tx.query(query, &[], read)?);
        }
        Ok::<_, StorageError>(rows)
    });
    rows.await.unwrap()
}

async fn news_status(world: &World) -> u16 {
    let call = world.call(Method::POST, "/api/news").by(ORGANISER, UserRole::Organiser);
    let body = json!({ "artistId": BAND, "title": "소식", "content": "x" });
    call.json(&body).send().await.status.as_u16()
}

contract! {
    async fn every_event_twice_and_out_of_order_changes_nothing_more(world: World) {
        let post = world.post(MINA, "글").await;
        world.comment(MINA, &post, "댓글").await;
        let created = world.organise(BAND, ORGANISER).await;
        let (event_id, price) = (created.event_id, Won::new(1));
        let renamed =
            ArtistUpdated { artist_id: BAND, name: "새 이름".to_owned(), membership_price: price };
        let mut updated = created.clone();
        updated.revision = 2;
        let cancelled = EventCancelled { event_id, revision: 3, reason: None };
        let deleted = EventDeleted { event_id, revision: 4, is_over: None };
        world.clock.advance(MINUTE);
        let events: Vec<DomainEvent> = vec![
            world.event(&renamed),
            world.event(&EventUpdated(updated)),
            world.event(&cancelled),
            world.event(&deleted),
            world.event(&UserDeleted { user_id: MINA }),
        ];
        for event in &events {
            world.deliver(event.clone()).await;
        }
        let once = tables(&world).await;
        world.deliver(world.event(&EventCreated(created))).await;
        for event in events.iter().rev().chain(&events) {
            world.deliver(event.clone()).await;
        }
        assert_eq!(tables(&world).await, once);
        assert!(once.contains(&"새 이름".to_owned()) && once.contains(&"ended".to_owned()));
    }

    async fn an_organiser_speaks_for_an_artist_while_an_event_is_not_cancelled(world: World) {
        assert_eq!(news_status(&world).await, 403);
        let event = world.organise(BAND, ORGANISER).await;
        assert_eq!(news_status(&world).await, 201);
        world.handle(&EventCancelled { event_id: event.event_id, revision: 2, reason: None }).await;
        assert_eq!(news_status(&world).await, 403);
    }

    async fn what_a_user_wrote_stays_without_its_author_when_the_account_is_closed(world: World) {
        world.peers.register(MINA, "김민아");
        let post = world.post(MINA, "글").await;
        world.comment(MINA, &post, "댓글").await;
        let others = world.post(JUNHO, "남의 글").await;
        let path = format!("/api/community/posts/{others}/reports");
        world.send(MINA, Method::POST, &path, &json!({ "reason": "spam" })).await;
        let written = async || {
            let path = GetContributions::SPEC.path.replace("{userId}", &MINA.to_string());
            let mut call = world.call(Method::GET, &path);
            call = call.by_program(urr_service::Caller::Auth);
            call.send().await.body["records"].take()
        };
        let own = written().await;
        let length = |list: &str| own[list].as_array().unwrap().len();
        assert_eq!([length("posts"), length("comments"), length("reports")], [1, 1, 1]);
        assert_eq!(own["posts"][0]["title"], "글");
        world.handle(&UserDeleted { user_id: MINA }).await;
        let nothing = json!({ "posts": [], "comments": [], "reports": [], "truncated": [] });
        assert_eq!(written().await, nothing);
        let read = world.get(&format!("/api/community/posts/{post}")).await;
        assert_eq!(read.body["post"]["authorName"], Value::Null);
        assert_eq!(read.body["post"]["title"], "글");
        let refused = world.send(MINA, Method::DELETE, &format!("/api/community/posts/{post}"), &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_THE_AUTHOR"));
    }
}
