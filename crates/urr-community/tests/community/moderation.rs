//! Reports, hiding and pinning.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{
    ADMIN, Answer, BAND, JUNHO, MINA, ORGANISER, OTHER_BAND, OTHER_ORGANISER, World,
};

const POSTS: &str = "/api/community/posts";
const REPORTS: &str = "/api/admin/community/reports";

async fn moderate(
    world: &World,
    (who, role): (Uuid, UserRole),
    path: &str,
    body: &Value,
) -> Answer {
    world.call(Method::PUT, path).by(who, role).json(body).send().await
}

async fn reports(world: &World, who: Uuid, role: UserRole, query: &str) -> Answer {
    world.call(Method::GET, &format!("{REPORTS}{query}")).by(who, role).send().await
}

async fn report(world: &World, who: Uuid, path: &str) -> Answer {
    let body = json!({ "reason": "spam", "note": "광고" });
    world.send(who, Method::POST, &format!("{path}/reports"), &body).await
}

contract! {
    async fn a_user_reports_once_and_a_moderator_decides(world: World) {
        let post = world.post(MINA, "광고").await;
        let path = format!("{POSTS}/{post}");
        assert_eq!(report(&world, MINA, &path).await.refusal(), (409, "OWN_WRITING"));
        for _ in 0..3 {
            assert_eq!(report(&world, JUNHO, &path).await.status, 204);
        }
        assert_eq!(world.number("select count(*) as n from reports").await, 1);
        // The control: another user's report is another one.
        assert_eq!(report(&world, ORGANISER, &path).await.status, 204);
        let open = reports(&world, ADMIN, UserRole::Support, "").await;
        assert_eq!(open.texts("reports", "status"), ["visible", "visible"]);
        assert_eq!(open.body["reports"][0]["note"], "광고");
        assert!(!open.body.to_string().contains(&JUNHO.to_string()), "nobody learns who");
        assert_eq!(world.get(&path).await.status, 200, "reports alone hide nothing");

        let status = format!("/api/admin/community/posts/{post}/status");
        let hide = json!({ "status": "hidden", "note": "광고 글" });
        let admin = (ADMIN, UserRole::Support);
        for _ in 0..2 {
            assert_eq!(moderate(&world, admin, &status, &hide).await.status, 204);
        }
        assert_eq!(world.get(&path).await.refusal(), (404, "POST_NOT_FOUND"));
        assert!(world.get(POSTS).await.texts("posts", "id").is_empty());
        let edit = json!({ "title": "x", "content": "x" });
        let refused = world.send(MINA, Method::PUT, &path, &edit).await;
        assert_eq!(refused.refusal(), (404, "POST_NOT_FOUND"), "its author cannot bring it back");
        assert!(reports(&world, ADMIN, UserRole::Admin, "").await.texts("reports", "id").is_empty());
        let decided = reports(&world, ADMIN, UserRole::Admin, "?open=false").await;
        assert_eq!(decided.texts("reports", "status"), ["hidden", "hidden"]);
        let log = world.call(Method::GET, "/api/admin/community/log").by(ADMIN, UserRole::Admin);
        assert_eq!(log.send().await.texts("entries", "action"), ["HIDDEN"], "once");

        assert_eq!(moderate(&world, admin, &status, &json!({ "status": "visible" })).await.status, 204);
        assert_eq!(world.get(&path).await.status, 200);
        let types = world.announced().await.into_iter().map(|event| event.event_type);
        let changes = types.filter(|name| name == "POST_STATUS_CHANGED").count();
        assert_eq!(changes, 2);
    }

    async fn a_hundred_reports_at_once_by_one_user_are_one(world: World) {
        let post = world.post(MINA, "글").await;
        let world = std::sync::Arc::new(world);
        let reported = (0..100).map(|_| {
            let (world, path) = (std::sync::Arc::clone(&world), format!("{POSTS}/{post}"));
            tokio::spawn(async move { report(&world, JUNHO, &path).await.status.as_u16() })
        });
        for answer in reported.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap(), 204);
        }
        assert_eq!(world.number("select count(*) as n from reports").await, 1);
    }

    async fn a_hidden_comment_is_not_counted(world: World) {
        let post = world.post(MINA, "글").await;
        let comment = world.comment(JUNHO, &post, "욕설").await;
        let path = format!("{POSTS}/{post}");
        assert_eq!(report(&world, MINA, &format!("{path}/comments/{comment}")).await.status, 204);
        let open = reports(&world, ADMIN, UserRole::Admin, "").await;
        assert_eq!(open.texts("reports", "content"), ["욕설"]);
        let status = format!("/api/admin/community/comments/{comment}/status");
        for (wanted, shown) in [("hidden", 0), ("hidden", 0), ("visible", 1)] {
            let body = json!({ "status": wanted });
            let answer = moderate(&world, (ADMIN, UserRole::Admin), &status, &body).await;
            assert_eq!(answer.status, 204);
            let read = world.get(&path).await;
            assert_eq!(read.body["post"]["commentCount"], shown);
            let comments = world.get(&format!("{path}/comments")).await;
            assert_eq!(comments.texts("comments", "id").len(), usize::try_from(shown).unwrap());
        }
        let deleted = json!({ "status": "deleted" });
        let wrong = moderate(&world, (ADMIN, UserRole::Admin), &status, &deleted).await;
        assert_eq!(wrong.refusal(), (400, "INVALID_BODY"));
    }

    /// Somebody else's board: an organiser of another artist, a fan.
    async fn moderators_of_other_boards_see_and_change_nothing(world: World) {
        world.organise(BAND, ORGANISER).await;
        world.organise(OTHER_BAND, OTHER_ORGANISER).await;
        let post = world.post(MINA, "글").await;
        let path = format!("{POSTS}/{post}");
        report(&world, JUNHO, &path).await;
        let own = (ORGANISER, UserRole::Organiser);
        let other = (OTHER_ORGANISER, UserRole::Organiser);
        assert_eq!(reports(&world, own.0, own.1, "").await.texts("reports", "id").len(), 1);
        for query in ["".to_owned(), format!("?artistId={BAND}")] {
            let seen = reports(&world, other.0, other.1, &query).await;
            assert_eq!(seen.texts("reports", "id").len(), 0);
        }
        let status = format!("/api/admin/community/posts/{post}/status");
        let pin = format!("/api/admin/community/posts/{post}/pin");
        for (path, body) in [(&status, json!({ "status": "hidden" })), (&pin, json!({ "pinned": true }))] {
            let refused = moderate(&world, other, path, &body).await;
            assert_eq!(refused.refusal(), (403, "NOT_YOUR_ARTIST"));
            let fan = moderate(&world, (MINA, UserRole::User), path, &body).await;
            assert_eq!(fan.refusal(), (403, "ROLE_REQUIRED"));
            assert_eq!(moderate(&world, own, path, &body).await.status, 204, "the control");
        }
        let others = world.call(Method::DELETE, &path).by(other.0, other.1).send().await;
        assert_eq!(others.refusal(), (403, "NOT_YOUR_ARTIST"));
        let deleted = world.call(Method::DELETE, &path).by(own.0, own.1).send().await;
        assert_eq!(deleted.status, 204);
    }

    async fn pinned_posts_stand_above_the_others_and_are_few(world: World) {
        let mut posts = Vec::new();
        for number in 0..6 {
            posts.push(world.post(MINA, &number.to_string()).await);
        }
        let pin = async |post: &str, pinned: bool| {
            let path = format!("/api/admin/community/posts/{post}/pin");
            let body = json!({ "pinned": pinned });
            moderate(&world, (ADMIN, UserRole::Admin), &path, &body).await
        };
        for post in &posts[..5] {
            assert_eq!(pin(post, true).await.status, 204);
            assert_eq!(pin(post, true).await.status, 204, "twice");
        }
        assert_eq!(pin(&posts[5], true).await.refusal(), (409, "TOO_MANY_PINNED"));
        assert_eq!(pin(&posts[0], false).await.status, 204);
        assert_eq!(pin(&posts[5], true).await.status, 204);
        let board = world.get(&format!("{POSTS}?artistId={BAND}&limit=2")).await;
        assert_eq!(board.texts("pinned", "title"), ["5", "4", "3", "2", "1"]);
        assert_eq!(board.texts("posts", "title"), ["0"]);
        let all = world.get(POSTS).await;
        assert_eq!((all.texts("pinned", "id").len(), all.texts("posts", "id").len()), (0, 6));
    }
}
