//! The waiting page: what everybody gets, what a user without scripts gets, and what it weighs.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::{Value, json};

use urr_web::WebSettings;

use crate::fixture::{Answer, EVENT, FILES, TestPages, settings};

const COOKIE: (&str, &str) = ("cookie", "access_token=mine");

/// What the waiting room answers, and what it was asked.
#[derive(Clone)]
struct FakeRoom {
    /// Null: the waiting room does not answer.
    crowd: Value,
    /// What the catalogue says of the event.
    event_status: &'static str,
    status: (StatusCode, Value),
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeRoom {
    fn new() -> FakeRoom {
        let crowd = json!({
            "eventId": EVENT, "phase": "open", "gathersAt": null,
            "opensAt": "2026-11-16T11:00:00Z", "serverTime": "2026-11-16T11:30:00Z",
            "waiting": 12_345, "active": 9, "threshold": 10, "admittedTotal": 1, "leftTotal": 0,
            "ratePerMinute": 1_200, "soldOut": false, "message": null, "marks": [],
            "drawCommitment": null,
        });
        FakeRoom {
            crowd,
            event_status: "on_sale",
            status: (StatusCode::OK, queued()),
            asked: Arc::default(),
        }
    }

    fn crowd(mut self, field: &str, value: Value) -> FakeRoom {
        self.crowd[field] = value;
        self
    }

    fn status(self, status: StatusCode, body: Value) -> FakeRoom {
        FakeRoom { status: (status, body), ..self }
    }

    fn pages(&self) -> TestPages {
        self.pages_with(settings())
    }

    fn pages_with(&self, settings: WebSettings) -> TestPages {
        let FakeRoom { crowd, event_status, status: (status, body), asked } = self.clone();
        let log = move |request: &Request| {
            let cookie = request.headers().get("cookie").and_then(|cookie| cookie.to_str().ok());
            let line = format!("{} {} {}", request.method(), request.uri(), cookie.unwrap_or("-"));
            asked.lock().expect("no test panics with it").push(line);
        };
        let answers = async move |request: Request| {
            log(&request);
            let path = request.uri().path().to_owned();
            match path.as_str() {
                path if path.contains("/crowd/") && crowd.is_null() => {
                    StatusCode::SERVICE_UNAVAILABLE.into_response()
                }
                path if path.contains("/crowd/") && crowd == "forgotten" => {
                    StatusCode::NOT_FOUND.into_response()
                }
                path if path.contains("/crowd/") => axum::Json(crowd).into_response(),
                path if path.contains("/events/") => {
                    let event = json!({ "title": "밤 <b>", "kind": "standing",
                        "status": event_status, "description": "",
                        "artistName": null, "venueName": "홀", "posterImageUrl": null });
                    axum::Json(json!({ "event": event })).into_response()
                }
                _ => (status, axum::Json(body)).into_response(),
            }
        };
        let (get_answers, post_answers) = (get(answers.clone()), post(answers));
        let api = Router::new().route("/api/{*path}", get_answers.merge(post_answers));
        TestPages::with_settings(settings, FILES, api)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no test panics with it"))
    }
}

fn queued() -> Value {
    json!({
        "status": "queued", "queued": true, "phase": "open", "number": 77, "position": 4_242,
        "peopleAhead": 4_241, "peopleBehind": 8_000, "estimatedWait": 200,
        "estimatedWaitRange": { "from": 180, "to": 300 }, "queueSize": 12_242, "currentUsers": 9,
        "threshold": 10, "nextPoll": 5.7, "opensAt": null, "soldOut": false,
        "message": "무대 점검 <중>", "text": null,
    })
}

fn page_path() -> String {
    format!("/queue/{EVENT}")
}

async fn plain(room: &FakeRoom) -> Answer {
    let path = format!("/queue/{EVENT}?plain");
    room.pages().send(Method::GET, &path, &[COOKIE]).await
}

fn assets(page: &Answer) -> Vec<String> {
    let paths = page.body.match_indices("/queue/assets/");
    let path = |(at, _): (usize, &str)| page.body[at..].split('"').next().unwrap_or("").to_owned();
    paths.map(path).collect()
}

#[tokio::test]
async fn a_crowd_gets_one_page_from_memory_and_nobodys_cookie_is_in_it() {
    let room = FakeRoom::new();
    let pages = room.pages();
    let first = pages.send(Method::GET, &page_path(), &[COOKIE]).await;
    assert_eq!(first.status, 200);
    for _ in 0..100 {
        let page = pages.send(Method::GET, &page_path(), &[("cookie", "access_token=x")]).await;
        assert_eq!(page.body, first.body);
    }
    let mut asked = room.asked();
    asked.sort();
    let expected =
        [format!("GET /api/events/{EVENT} -"), format!("GET /api/queue/crowd/{EVENT} -")];
    assert_eq!(asked, expected);
    assert!(first.body.contains("data-state=\"load\"") && first.body.contains("12,345명"));
    assert!(first.body.contains(&format!("data-next=\"/events/{EVENT}/book\"")), "it is standing");
}

#[tokio::test]
async fn everything_weighs_less_than_20_kb() {
    let pages = FakeRoom::new().crowd("drawCommitment", json!("ab".repeat(32))).pages();
    for language in ["ko", "en"] {
        let headers = [("accept-encoding", "gzip"), ("accept-language", language)];
        let page = pages.send(Method::GET, &page_path(), &[("accept-language", language)]).await;
        let mut packed = pages.send(Method::GET, &page_path(), &headers).await.bytes;
        let files = assets(&page);
        assert_eq!(files.len(), 2, "a style and a script");
        for file in files {
            let answer = pages.send(Method::GET, &file, &headers).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, "gzip"), "{file}");
            assert!(answer.header("cache-control").contains("immutable"));
            packed += answer.bytes;
        }
        assert!(packed < 15_000, "{packed} bytes, and its figures have 4,000");
        // Besides its figures, which a test in the browser weighs, nothing else is loaded.
        assert_eq!(page.body.matches("src=").count() + page.body.matches("<link").count(), 4);
    }
}

#[tokio::test]
async fn its_figures_have_the_display_face_of_the_built_pages() {
    let font = "/_app/immutable/queue.woff2";
    let pages = FakeRoom::new().pages();
    let page = pages.page(&page_path()).await;
    assert!(page.body.contains(&format!("crossorigin href=\"{font}\"")));
    let style = assets(&page).into_iter().find(|path| path.ends_with(".css")).expect("a style");
    let style = pages.page(&style).await.body;
    assert!(style.contains(&format!("src:url({font})")), "{style}");
    assert_eq!(pages.page(font).await.body, "figures");

    // A program that was built without pages has none.
    let router = Router::new().route("/api/{*path}", get(async || StatusCode::NOT_FOUND));
    let bare = TestPages::new(&[], router).page("/queue").await;
    let style = assets(&bare).into_iter().find(|path| path.ends_with(".css")).expect("a style");
    let style = TestPages::new(&[], Router::new()).page(&style).await.body;
    assert!(style.contains("h1 b{") && !style.contains("@font-face"), "{style}");
}

#[tokio::test]
async fn the_page_runs_only_its_own_scripts() {
    let page = FakeRoom::new().pages().page(&page_path()).await;
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("script-src 'self' 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(!page.body.contains("style=\"") && !page.body.contains(" onclick"));
}

#[tokio::test]
async fn without_scripts_the_page_shows_the_place_and_reloads_by_itself() {
    let room = FakeRoom::new();
    let shared = room.pages().page(&page_path()).await;
    let way = "<noscript><meta http-equiv=\"refresh\" content=\"0;url=?plain\"></noscript>";
    assert!(shared.body.contains(way));
    let page = plain(&room).await;
    for part in [
        "data-state=\"wait\"",
        "<b data-f=\"position\">4,242</b>",
        "<dd data-f=\"ahead\">4,241명</dd>",
        "<dd data-f=\"wait\">3분 ~ 5분</dd>",
        "1분에 1,200명",
        "무대 점검 &#60;중&#62;",
        "밤 &#60;b&#62;",
        "<meta http-equiv=\"refresh\" content=\"6\">",
        "/leave\"><button",
    ] {
        assert!(page.body.contains(part), "{part} is not in {}", page.body);
    }
    assert_eq!(page.header("cache-control"), "no-store");
    assert!(room.asked().contains(&format!("GET /api/queue/status/{EVENT} access_token=mine")));
}

#[tokio::test]
async fn each_status_has_its_own_part_of_the_page() {
    let refusal = |code: &str| json!({ "error": "No.", "code": code, "traceId": null });
    let status = |field: &str, value: Value| {
        let mut status = queued();
        status[field] = value;
        status
    };
    for (code, body, expected) in [
        (StatusCode::OK, status("position", Value::Null), "draw"),
        (StatusCode::OK, status("status", json!("active")), "turn"),
        (StatusCode::OK, status("status", json!("not_in_queue")), "join"),
        (StatusCode::OK, status("status", json!("ended")), "end"),
        (StatusCode::UNAUTHORIZED, refusal("TOKEN_EXPIRED"), "login"),
        (StatusCode::SERVICE_UNAVAILABLE, refusal("QUEUE_UNAVAILABLE"), "load"),
    ] {
        let page = plain(&FakeRoom::new().status(code, body)).await;
        let state = format!("data-state=\"{expected}\"");
        assert!(page.status == 200 && page.body.contains(&state), "{expected}: {}", page.body);
    }
}

#[tokio::test]
async fn the_state_of_the_sale_is_said_at_once() {
    for (field, value, part) in [
        ("soldOut", json!(true), " data-sold>"),
        ("phase", json!("over"), "data-state=\"end\""),
        ("phase", json!("cancelled"), "data-state=\"off\""),
        ("phase", json!("closed"), "data-state=\"early\""),
        ("drawCommitment", json!("c0ffee"), ">c0ffee</code>"),
        ("message", json!("<b>곧</b>"), ">&#60;b&#62;곧&#60;/b&#62;</p>"),
        ("opensAt", json!("2026-11-16T12:00:00Z"), "오픈 21:00"),
    ] {
        let page = FakeRoom::new().crowd(field, value).pages().page(&page_path()).await;
        assert!(page.body.contains(part), "{part} is not in {}", page.body);
    }
    let usual = FakeRoom::new().pages().page(&page_path()).await;
    assert!(!usual.body.contains(" data-sold>") && !usual.body.contains("<code"));
}

#[tokio::test]
async fn w_3_a_room_that_does_not_answer_keeps_users_on_the_page() {
    let mut room = FakeRoom::new();
    room.crowd = Value::Null;
    let page = room.pages().page(&page_path()).await;
    assert!(page.status == 200 && page.body.contains("data-state=\"load\""), "{page:?}");
}

#[tokio::test]
async fn joining_and_leaving_are_forms_in_the_name_of_the_client() {
    let room = FakeRoom::new();
    let pages = room.pages();
    for (form, call, target) in [("join", "check", "?plain"), ("leave", "leave", "?left")] {
        let path = format!("/queue/{EVENT}/{form}");
        let answer = pages.send(Method::POST, &path, &[COOKIE]).await;
        assert_eq!((answer.status, answer.header("location")), (303, &*(page_path() + target)));
        let expected = format!("POST /api/queue/{call}/{EVENT} access_token=mine");
        assert_eq!(room.asked(), [expected]);
        assert_eq!(
            pages.send(Method::GET, &path, &[COOKIE]).await.status,
            405,
            "reading joins nothing"
        );
    }
    for (status, code, expected) in [
        (
            StatusCode::UNAUTHORIZED,
            "TOKEN_EXPIRED",
            (303, format!("/login?return=%2Fqueue%2F{EVENT}")),
        ),
        (StatusCode::FORBIDDEN, "CROSS_SITE_REQUEST", (403, String::new())),
        (StatusCode::CONFLICT, "TOO_MANY_QUEUES", (303, page_path() + "?plain")),
    ] {
        let body = json!({ "error": "No.", "code": code, "traceId": null });
        let pages = FakeRoom::new().status(status, body).pages();
        let answer = pages.send(Method::POST, &format!("/queue/{EVENT}/join"), &[COOKIE]).await;
        assert_eq!((answer.status, answer.header("location").to_owned()), expected, "{code}");
    }
}

#[tokio::test]
async fn an_event_that_the_room_has_forgotten_is_explained_and_leads_to_its_page() {
    for (status, state) in [("ended", "end"), ("cancelled", "off")] {
        let mut room = FakeRoom::new();
        (room.crowd, room.event_status) = (json!("forgotten"), status);
        for path in [page_path(), page_path() + "?plain"] {
            let page = room.pages().page(&path).await;
            let state = format!("data-state=\"{state}\"");
            assert!(page.status == 200 && page.body.contains(&state), "{path}: {page:?}");
            assert!(page.body.contains(&format!("<a class=\"go\" href=\"/events/{EVENT}\"")));
        }
    }
}

#[tokio::test]
async fn the_page_says_how_long_chosen_seats_wait() {
    for (seconds, korean, english) in [
        (300, "5분 동안", "alone for 5 minutes"),
        (420, "7분 동안", "alone for 7 minutes"),
        (90, "1분 30초 동안", "alone for 1 min 30 s"),
        (60, "1분 동안", "alone for a minute"),
        (45, "45초 동안", "alone for 45 seconds"),
    ] {
        let hold_ttl = std::time::Duration::from_secs(seconds);
        let pages = FakeRoom::new().pages_with(WebSettings { hold_ttl, ..settings() });
        for (language, text) in [("ko", korean), ("en", english)] {
            let headers = [("accept-language", language)];
            let page = pages.send(Method::GET, &page_path(), &headers).await;
            assert!(page.body.contains(text), "{text} is not in {}", page.body);
        }
    }
}

#[tokio::test]
async fn an_unknown_event_has_no_waiting_page() {
    let missing = json!({ "error": "No.", "code": "EVENT_NOT_FOUND", "traceId": null });
    let api = get(async move || (StatusCode::NOT_FOUND, axum::Json(missing)));
    let pages = TestPages::new(FILES, Router::new().route("/api/{*path}", api));
    for path in [page_path(), page_path() + "?plain", "/queue/7".to_owned()] {
        assert_eq!(pages.page(&path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn those_who_come_without_an_event_find_their_lines() {
    let lines = json!([
        { "eventId": EVENT, "title": "밤 <b>", "status": "queued", "position": 1 },
        { "eventId": "0198b2f0-0000-7000-8000-000000000002", "title": "낮", "status": "active",
          "position": null },
    ]);
    let two = FakeRoom::new().status(StatusCode::OK, lines.clone()).pages();
    let page = two.send(Method::GET, "/queue", &[COOKIE]).await;
    assert!(page.body.contains(&format!("href=\"/queue/{EVENT}\">밤 &#60;b&#62;")), "{page:?}");
    let one = FakeRoom::new().status(StatusCode::OK, json!([lines[0]])).pages();
    let moved = one.send(Method::GET, "/queue", &[COOKIE]).await;
    assert_eq!((moved.status, moved.header("location")), (303, &*page_path()));
    let body = json!({ "error": "No.", "code": "AUTHENTICATION_REQUIRED", "traceId": null });
    let nobody = FakeRoom::new().status(StatusCode::UNAUTHORIZED, body).pages();
    assert!(nobody.page("/queue").await.body.contains("/login?return=%2Fqueue"));
}
