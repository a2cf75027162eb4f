//! Posts, comments and news.

use axum::http::header::{ACCEPT_LANGUAGE, HeaderName};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{ADMIN, BAND, HOUR, JUNHO, MINA, MINUTE, ORGANISER, OTHER_BAND};

const POSTS: &str = "/api/community/posts";
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Texts that run when they are taken for markup.
const PAYLOADS: [&str; 8] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "[a](javascript:alert(1))",
    "{{constructor.constructor('alert(1)')()}}",
    "</title><script>alert(1)</script>",
    "'-alert(1)-'",
];

fn writing(title: &str, content: &str) -> Value {
    json!({ "artistId": BAND, "title": title, "content": content })
}

contract! {
    async fn a_post_is_published_read_changed_and_deleted(world: World) {
        world.peers.register(MINA, "김민아");
        let created = world.send(MINA, Method::POST, POSTS, &writing(" 첫 글 ", "하나\n둘")).await;
        let (id, post) = (created.id("post"), &created.body["post"]);
        assert_eq!((&post["title"], &post["content"]), (&json!("첫 글"), &json!("하나\n둘")));
        assert_eq!((&post["artistName"], &post["isMine"]), (&json!("한강 밴드"), &json!(true)));
        assert_eq!((&post["authorName"], &post["editedAt"]), (&json!("김*아"), &Value::Null));
        let path = format!("{POSTS}/{id}");
        let read = world.get(&path).await;
        assert_eq!((read.status, &read.body["post"]["isMine"]), (StatusCode::OK, &json!(false)));
        let text = read.body.to_string();
        assert!(!text.contains('@') && !text.contains("김민아") && !text.contains(&MINA.to_string()));

        world.clock.advance(MINUTE);
        let change = json!({ "title": "고친 글", "content": "셋" });
        let refused = world.send(JUNHO, Method::PUT, &path, &change).await;
        assert_eq!(refused.refusal(), (403, "NOT_THE_AUTHOR"));
        let admin = world.call(Method::PUT, &path).by(ADMIN, UserRole::Admin).json(&change);
        assert_eq!(admin.send().await.refusal(), (403, "NOT_THE_AUTHOR"), "a moderator hides");
        let changed = world.send(MINA, Method::PUT, &path, &change).await;
        assert_eq!(changed.body["post"]["title"], "고친 글");
        assert_eq!(changed.body["post"]["editedAt"], json!(world.clock.now()));

        let refused = world.send(JUNHO, Method::DELETE, &path, &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_THE_AUTHOR"));
        let gone = world.send(MINA, Method::DELETE, &path, &json!({})).await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT);
        assert_eq!(world.get(&path).await.refusal(), (404, "POST_NOT_FOUND"));
        let again = world.send(MINA, Method::DELETE, &path, &json!({})).await;
        assert_eq!(again.refusal(), (404, "POST_NOT_FOUND"));
        assert!(world.get(POSTS).await.texts("posts", "id").is_empty());
        let left = "select count(*) as n from posts where title <> '' or content <> ''";
        assert_eq!(world.number(left).await, 0, "the text is gone");
        let types: Vec<String> =
            world.announced().await.into_iter().map(|event| event.event_type).collect();
        assert_eq!(types, ["POST_CREATED", "POST_STATUS_CHANGED"]);
    }

    /// The catalogue hears which pictures a post shows, so that it can delete those of no post.
    async fn pictures_have_words_and_are_announced_when_they_change(world: World) {
        let [first, second] = ["0a", "0b"].map(|byte| byte.repeat(32));
        let image = |id: &str, alt: &str| json!({ "url": format!("/api/image/{id}"), "alt": alt });
        let body = |images: Value| {
            json!({ "artistId": BAND, "title": "글", "content": "x", "images": images })
        };
        let edit = |images: Value| json!({ "title": "글", "content": "x", "images": images });
        let both = json!([image(&first, " 무대 "), image(&second, "")]);
        let created = world.send(MINA, Method::POST, POSTS, &body(both)).await;
        let path = format!("{POSTS}/{}", created.id("post"));
        let read = world.get(&path).await.body["post"]["images"].take();
        assert_eq!(read, json!([image(&first, "무대"), image(&second, "")]));
        let one = edit(json!([image(&first, "무대")]));
        for _ in 0..2 {
            assert!(world.send(MINA, Method::PUT, &path, &one).await.status.is_success());
        }
        let words = edit(json!([image(&first, "다른 말")]));
        assert!(world.send(MINA, Method::PUT, &path, &words).await.status.is_success());
        world.send(MINA, Method::DELETE, &path, &json!({})).await;
        let plain = world.post(MINA, "그림 없는 글").await;
        world.send(MINA, Method::DELETE, &format!("{POSTS}/{plain}"), &json!({})).await;
        let announced: Vec<Value> = world
            .announced()
            .await
            .into_iter()
            .filter(|event| event.event_type == "POST_PICTURES_CHANGED")
            .map(|event| event.data["imageIds"].clone())
            .collect();
        assert_eq!(announced, [json!([first, second]), json!([first]), json!([])]);
    }

    async fn a_retry_with_the_same_key_publishes_once(world: World) {
        let send = |key: &'static str, title: &str| {
            let call = world.call(Method::POST, POSTS).by(MINA, UserRole::User);
            call.header(KEY, key).json(&writing(title, "내용")).send()
        };
        let first = send("a", "글").await.id("post");
        assert_eq!(send("a", "글").await.id("post"), first);
        assert_eq!(send("a", "다른 글").await.refusal(), (422, "IDEMPOTENCY_KEY_REUSED"));
        // The control: another key is another post.
        assert_ne!(send("b", "글").await.id("post"), first);
        let path = format!("{POSTS}/{first}/comments");
        let comment = || {
            let call = world.call(Method::POST, &path).by(MINA, UserRole::User);
            call.header(KEY, "c").json(&json!({ "content": "댓글" })).send()
        };
        assert_eq!(comment().await.id("comment"), comment().await.id("comment"));
        let read = world.get(&format!("{POSTS}/{first}")).await;
        assert_eq!(read.body["post"]["commentCount"], 1);
    }

    async fn wrong_texts_unknown_artists_and_strange_pictures_are_refused(world: World) {
        let own = format!("/api/image/{}", "0a".repeat(32));
        let picture = json!([{ "url": "https://example.com/a.png" }]);
        let turned = json!([{ "url": own, "alt": "x\u{202e}y" }]);
        for (body, refusal) in [
            (writing(" ", "x"), (400, "INVALID_TITLE")),
            (writing("x", "\n"), (400, "INVALID_CONTENT")),
            (writing("x\u{202e}y", "x"), (400, "INVALID_TITLE")),
            (
                json!({ "artistId": BAND, "title": "x", "content": "x", "images": picture }),
                (400, "INVALID_IMAGE_URL"),
            ),
            (
                json!({ "artistId": BAND, "title": "x", "content": "x", "images": turned }),
                (400, "INVALID_ALT_TEXT"),
            ),
            (
                json!({ "artistId": Uuid::from_u128(1), "title": "x", "content": "x" }),
                (404, "ARTIST_NOT_FOUND"),
            ),
        ] {
            let answer = world.send(MINA, Method::POST, POSTS, &body).await;
            assert_eq!(answer.refusal(), refusal, "{body}");
        }
        let korean = world.call(Method::POST, POSTS).by(MINA, UserRole::User);
        let korean = korean.header(ACCEPT_LANGUAGE, "ko").json(&writing("", "x")).send().await;
        assert!(korean.body["error"].as_str().unwrap().starts_with("제목"), "{}", korean.body);
        let nobody = world.call(Method::POST, POSTS).json(&writing("x", "x")).send().await;
        assert_eq!(nobody.refusal(), (401, "AUTHENTICATION_REQUIRED"));
    }

    /// What looks like markup is the same text afterwards, and it is sent as JSON.
    async fn markup_is_text(world: World) {
        for payload in PAYLOADS {
            let id = world.send(MINA, Method::POST, POSTS, &writing(payload, payload)).await.id("post");
            world.comment(JUNHO, &id, payload).await;
            let path = format!("{POSTS}/{id}");
            let read = world.get(&path).await;
            assert_eq!(read.headers["content-type"], "application/json");
            assert_eq!((&read.body["post"]["title"], &read.body["post"]["content"]), (&json!(payload), &json!(payload)));
            let comments = world.get(&format!("{path}/comments")).await;
            assert_eq!(comments.texts("comments", "content"), [payload]);
            world.clock.advance(HOUR);
        }
    }

    async fn d_11_whoever_writes_too_much_has_to_wait(world: World) {
        let strict = world.with_limits(2);
        let post = strict.post(MINA, "1").await;
        strict.clock.advance(10 * MINUTE);
        strict.post(MINA, "2").await;
        let third = strict.send(MINA, Method::POST, POSTS, &writing("3", "x")).await;
        assert_eq!(third.refusal(), (429, "TOO_MUCH_WRITTEN"));
        assert_eq!(third.headers["retry-after"], "3000");
        // Deleting makes no room, and others may write.
        strict.send(MINA, Method::DELETE, &format!("{POSTS}/{post}"), &json!({})).await;
        let again = strict.send(MINA, Method::POST, POSTS, &writing("3", "x")).await;
        assert_eq!(again.refusal(), (429, "TOO_MUCH_WRITTEN"));
        let other = strict.post(JUNHO, "3").await;
        for expected in [201, 201, 429] {
            let path = format!("{POSTS}/{other}/comments");
            let comment = strict.send(MINA, Method::POST, &path, &json!({ "content": "x" })).await;
            assert_eq!(comment.status.as_u16(), expected);
        }
        // The control: without the limit all of it is published.
        let free = world.with_limits(1_000);
        for number in 0..20 {
            free.post(MINA, &number.to_string()).await;
        }
        // A day has four times the limit of an hour.
        let mut written = 0;
        for _ in 0..24 {
            strict.clock.advance(HOUR);
            let answer = strict.send(ORGANISER, Method::POST, POSTS, &writing("x", "x")).await;
            written += u32::from(answer.status == StatusCode::CREATED);
        }
        assert_eq!(written, 8);
    }

    /// Requests at the same time are counted too.
    async fn a_hundred_posts_at_once_keep_the_limit(world: World) {
        let strict = std::sync::Arc::new(world.with_limits(5));
        let posts = (0..100).map(|number| {
            let strict = std::sync::Arc::clone(&strict);
            tokio::spawn(async move {
                let body = writing(&number.to_string(), "x");
                strict.send(MINA, Method::POST, POSTS, &body).await.status
            })
        });
        let mut published = 0;
        for post in posts.collect::<Vec<_>>() {
            published += u32::from(post.await.unwrap() == StatusCode::CREATED);
        }
        assert_eq!(published, 5);
        assert_eq!(world.number("select count(*) as n from posts").await, 5);
    }

    async fn comments_are_in_order_counted_and_deleted(world: World) {
        let post = world.post(MINA, "글").await;
        let first = world.comment(JUNHO, &post, "하나").await;
        world.comment(MINA, &post, "둘").await;
        let path = format!("{POSTS}/{post}/comments");
        assert_eq!(world.get(&path).await.texts("comments", "content"), ["하나", "둘"]);
        let other = world.post(MINA, "다른 글").await;
        let wrong = format!("{POSTS}/{other}/comments/{first}");
        let refused = world.send(JUNHO, Method::DELETE, &wrong, &json!({})).await;
        assert_eq!(refused.refusal(), (404, "COMMENT_NOT_FOUND"), "of another post");
        let own = format!("{path}/{first}");
        let refused = world.send(MINA, Method::DELETE, &own, &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_THE_AUTHOR"));
        for expected in [204, 404] {
            let deleted = world.send(JUNHO, Method::DELETE, &own, &json!({})).await;
            assert_eq!(deleted.status.as_u16(), expected);
        }
        let read = world.get(&format!("{POSTS}/{post}")).await;
        assert_eq!(read.body["post"]["commentCount"], 1);
        assert_eq!(world.get(&path).await.texts("comments", "content"), ["둘"]);
    }

    async fn a_comment_is_changed_by_its_author_alone(world: World) {
        let post = world.post(MINA, "글").await;
        let comment = world.comment(JUNHO, &post, "하나").await;
        let path = format!("{POSTS}/{post}/comments");
        let own = format!("{path}/{comment}");
        let change = json!({ "content": " 둘\r\n셋 " });
        assert_eq!(world.get(&path).await.body["comments"][0]["editedAt"], Value::Null);
        world.clock.advance(MINUTE);
        let edited = world.send(JUNHO, Method::PUT, &own, &change).await;
        assert_eq!(edited.body["comment"]["content"], "둘\n셋");
        assert_eq!(edited.body["comment"]["editedAt"], json!(world.clock.now()));
        assert_eq!(edited.body["comment"]["isMine"], true);
        assert_eq!(world.community.send_due_awards().await, Ok(2), "no points for changes");
        let listed = world.get(&path).await.body["comments"].take();
        assert_eq!(listed[0]["content"], "둘\n셋");
        assert_eq!(listed[0]["editedAt"], json!(world.clock.now()));

        let refused = world.send(MINA, Method::PUT, &own, &change).await;
        assert_eq!(refused.refusal(), (403, "NOT_THE_AUTHOR"));
        let admin = world.call(Method::PUT, &own).by(ADMIN, UserRole::Admin).json(&change);
        assert_eq!(admin.send().await.refusal(), (403, "NOT_THE_AUTHOR"), "a moderator hides");
        let nobody = world.call(Method::PUT, &own).json(&change).send().await;
        assert_eq!(nobody.refusal(), (401, "AUTHENTICATION_REQUIRED"));
        for wrong in [" ".to_owned(), "가".repeat(1_001)] {
            let body = json!({ "content": wrong });
            let refused = world.send(JUNHO, Method::PUT, &own, &body).await;
            assert_eq!(refused.refusal(), (400, "INVALID_CONTENT"));
        }
        let other = world.post(MINA, "다른 글").await;
        let elsewhere = format!("{POSTS}/{other}/comments/{comment}");
        let refused = world.send(JUNHO, Method::PUT, &elsewhere, &change).await;
        assert_eq!(refused.refusal(), (404, "COMMENT_NOT_FOUND"), "of another post");
        let status = format!("/api/admin/community/comments/{comment}/status");
        let hide = json!({ "status": "hidden" });
        let hidden = world.call(Method::PUT, &status).by(ADMIN, UserRole::Admin).json(&hide);
        assert!(hidden.send().await.status.is_success());
        let refused = world.send(JUNHO, Method::PUT, &own, &change).await;
        assert_eq!(refused.refusal(), (404, "COMMENT_NOT_FOUND"), "it is hidden");
    }

    async fn boards_are_apart_and_titles_are_found_by_any_part(world: World) {
        world.post(MINA, "한강의 밤").await;
        world.post(MINA, "새벽의 노래").await;
        let elsewhere = json!({ "artistId": OTHER_BAND, "title": "한강 소풍", "content": "x" });
        world.send(JUNHO, Method::POST, POSTS, &elsewhere).await.id("post");
        let titles = async |query: &str| {
            world.get(&format!("{POSTS}?{query}")).await.texts("posts", "title")
        };
        assert_eq!(titles("").await, ["한강 소풍", "새벽의 노래", "한강의 밤"]);
        assert_eq!(titles(&format!("artistId={BAND}")).await, ["새벽의 노래", "한강의 밤"]);
        assert_eq!(titles("q=%ED%95%9C%EA%B0%95").await, ["한강 소풍", "한강의 밤"]);
        assert_eq!(titles(&format!("q=%ED%95%9C%EA%B0%95&artistId={BAND}")).await, ["한강의 밤"]);
        assert_eq!(titles("q=%E3%85%8E%E3%84%B1").await, ["한강 소풍", "한강의 밤"], "ㅎㄱ");
        assert_eq!(titles("q=%25").await, Vec::<String>::new());
        let long = format!("{POSTS}?q={}", "a".repeat(101));
        assert_eq!(world.get(&long).await.refusal(), (400, "INVALID_QUERY"));
    }

    /// P-11: a view writes nothing, and all views are written together.
    async fn p_11_views_are_counted_without_a_write_per_view(world: World) {
        let post = world.post(MINA, "글").await;
        let path = format!("{POSTS}/{post}");
        let before = urr_test::engines::writings(&world.db).await;
        for _ in 0..50 {
            world.get(&path).await;
        }
        assert_eq!(urr_test::engines::writings(&world.db).await, before);
        assert_eq!(world.community.flush_views().await, Ok(1));
        assert_eq!(world.community.flush_views().await, Ok(0));
        assert_eq!(world.get(&path).await.body["post"]["views"], 50);
    }

    async fn without_the_auth_service_posts_are_shown_without_names(world: World) {
        world.peers.register(MINA, "김민아");
        let post = world.post(JUNHO, "글").await;
        world.peers.auth_unavailable(true);
        let post_by_mina = world.post(MINA, "글").await;
        let read = world.get(&format!("{POSTS}/{post_by_mina}")).await;
        assert_eq!((read.status, &read.body["post"]["authorName"]), (StatusCode::OK, &Value::Null));
        let read = world.get(&format!("{POSTS}/{post}")).await;
        assert_eq!(read.body["post"]["authorName"], Value::Null, "there is no such account");
    }

    async fn news_is_written_by_those_who_speak_for_the_artist(world: World) {
        let body = json!({ "artistId": BAND, "title": "소식", "content": "내용" });
        let fan = world.send(MINA, Method::POST, "/api/news", &body).await;
        assert_eq!(fan.refusal(), (403, "ROLE_REQUIRED"));
        let by_organiser = |method: Method, path: &str, body: &Value| {
            world.call(method, path).by(ORGANISER, UserRole::Organiser).json(body).send()
        };
        let stranger = by_organiser(Method::POST, "/api/news", &body).await;
        assert_eq!(stranger.refusal(), (403, "NOT_YOUR_ARTIST"));
        world.organise(BAND, ORGANISER).await;
        let news = by_organiser(Method::POST, "/api/news", &body).await.id("news");
        let path = format!("/api/news/{news}");
        let read = world.get(&path).await;
        assert_eq!(read.body["news"]["authorName"], Value::Null);
        assert_eq!(world.get(&format!("{POSTS}/{news}")).await.refusal(), (404, "POST_NOT_FOUND"));
        assert!(world.get(POSTS).await.texts("posts", "id").is_empty(), "news is not a post");
        let general = json!({ "title": "점검 안내", "content": "내용" });
        let refused = by_organiser(Method::POST, "/api/news", &general).await;
        assert_eq!(refused.refusal(), (403, "NOT_YOUR_ARTIST"));
        let admin = world.call(Method::POST, "/api/news").by(ADMIN, UserRole::Admin);
        admin.json(&general).send().await.id("news");
        assert_eq!(world.get("/api/news").await.texts("news", "title"), ["점검 안내", "소식"]);
        let of_band = world.get(&format!("/api/news?artistId={BAND}")).await;
        assert_eq!(of_band.texts("news", "title"), ["소식"]);
        let change = json!({ "title": "새 소식", "content": "내용" });
        let changed = by_organiser(Method::PUT, &path, &change).await;
        assert_eq!(changed.body["news"]["title"], "새 소식");
        let deleted = by_organiser(Method::DELETE, &path, &json!({})).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert_eq!(world.get(&path).await.refusal(), (404, "NEWS_NOT_FOUND"));
    }

    async fn what_was_deleted_is_purged_a_day_later(world: World) {
        let (post, other) = (world.post(MINA, "글").await, world.post(MINA, "남는 글").await);
        world.comment(JUNHO, &post, "댓글").await;
        let comment = world.comment(JUNHO, &other, "댓글").await;
        world.send(MINA, Method::DELETE, &format!("{POSTS}/{post}"), &json!({})).await;
        let path = format!("{POSTS}/{other}/comments/{comment}");
        world.send(JUNHO, Method::DELETE, &path, &json!({})).await;
        assert_eq!(world.community.purge_deleted().await, Ok(0), "they count for the limits");
        world.clock.advance(26 * HOUR);
        assert_eq!(world.community.purge_deleted().await, Ok(3));
        assert_eq!(world.number("select count(*) as n from comments").await, 0);
        assert_eq!(world.get(POSTS).await.texts("posts", "id"), [other]);
    }

    async fn the_demo_data_are_added_once(world: World) {
        let seed = || urr_community::seed_demo(&world.db, &world.clock, &world.ids, &[BAND]);
        assert_eq!(seed().await, Ok(5));
        assert_eq!(seed().await, Ok(0));
        let list = world.get(&format!("{POSTS}?artistId={BAND}")).await;
        assert_eq!(list.texts("posts", "authorName"), ["우르르 운영팀"; 3]);
        assert_eq!(world.get("/api/news").await.texts("news", "title").len(), 1);
    }
}
