//! Posts and their points, through the real ticket service.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;
use urr_e2e::TestApp;
use urr_kernel::DomainEvent;
use urr_test::eventually;

use crate::fixture::{FAR, Shop, text};
use crate::memberships::{join, mine, new_artist};
use crate::on_both_deployments;

const POSTS: &str = "/api/community/posts";
/// Joining gives this many.
const JOINED: i64 = 200;

on_both_deployments! {
    /// Three posts a day count, in however many posts; deleting takes the points back and makes no
    /// room for others that day.
    async fn d_11_points_of_posts_are_few_a_day_and_go_with_the_post(app: TestApp) {
        let artist_id = new_artist(&app).await;
        let shop = Shop::open_of(&app, FAR, Some(artist_id)).await;
        let fan = app.ids.next_id();
        join(&app, &shop, fan, artist_id).await;
        let points = async |expected: i64| {
            eventually(&format!("the fan has {expected} points"), async || {
                app.clock.advance(Duration::from_secs(1));
                let waiting = app.metrics().contains("urr_community_awards_waiting 0");
                (mine(&shop, fan, artist_id).await.1 == expected && waiting).then_some(())
            })
            .await;
        };
        let body = json!({ "artistId": artist_id, "title": "글", "content": "내용" });
        let mut posts = Vec::new();
        for _ in 0..5 {
            let post = shop.send(fan, Method::POST, POSTS, Some(body.clone())).await;
            assert_eq!(post.status, 201, "{post:?}");
            posts.push(text(&post.json()["post"]["id"]));
        }
        points(JOINED + 3 * 30).await;
        let path = format!("{POSTS}/{}/comments", posts[0]);
        let comment = shop.send(fan, Method::POST, &path, Some(json!({ "content": "x" }))).await;
        assert_eq!(comment.status, 201, "{comment:?}");
        points(JOINED + 3 * 30 + 10).await;
        for post in &posts {
            let deleted = shop.send(fan, Method::DELETE, &format!("{POSTS}/{post}"), None).await;
            assert_eq!(deleted.status, 204, "{deleted:?}");
        }
        // The comment on the post is not the fan's to lose.
        points(JOINED + 10).await;
        shop.send(fan, Method::POST, POSTS, Some(body)).await;
        app.clock.advance(Duration::from_secs(60));
        points(JOINED + 10).await;
        let events = app.bus().scan("community-events").await.unwrap();
        let events = events.iter().map(|delivery| DomainEvent::from_bytes(&delivery.body).unwrap());
        let created = events.filter(|event| event.event_type == "POST_CREATED").count();
        assert!(created >= 5, "{created}");
        app.stop().await;
    }
}
