//! Files, shells, unknown paths and link previews.

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::get;

use crate::fixture::{Answer, EVENT, FILES, TestPages};

fn catalog() -> Router {
    let event = format!(
        r#"{{"event": {{"id": "{EVENT}", "title": "밤 <b>", "kind": "seated", "status": "on_sale", "description": "첫 줄\n둘째",
            "artistName": null, "venueName": "홀", "posterImageUrl": "/api/image/1"}}}}"#
    );
    let missing = r#"{"error": "No.", "code": "EVENT_NOT_FOUND", "traceId": null}"#;
    Router::new().route(
        "/api/events/{id}",
        get(async move |axum::extract::Path(id): axum::extract::Path<String>| match id == EVENT {
            true => (StatusCode::OK, event),
            false => (StatusCode::NOT_FOUND, missing.to_owned()),
        }),
    )
}

fn pages() -> TestPages {
    TestPages::new(FILES, catalog())
}

async fn get_with(pages: &TestPages, path: &str, name: &str, value: &str) -> Answer {
    pages.send(Method::GET, path, &[(name, value)]).await
}

#[tokio::test]
async fn a_file_is_sent_with_its_kind_and_the_list_of_routes_is_not() {
    let pages = pages();
    let script = get_with(&pages, "/_app/immutable/start.js", "accept-encoding", "br").await;
    assert_eq!((script.status, script.body.as_str()), (200, "br"));
    assert_eq!(script.header("content-type"), "text/javascript; charset=utf-8");
    assert_eq!(script.header("cache-control"), "public, max-age=31536000, immutable");
    let robots = pages.page("/robots.txt").await;
    assert_eq!((robots.status, robots.header("cache-control")), (200, "no-cache"));
    for hidden in ["/routes.json", "/en.html", "/index.html", "/events/_.html", "/404.html"] {
        assert_eq!(pages.page(hidden).await.status, 404, "{hidden}");
    }
}

#[tokio::test]
async fn a_shell_allows_its_own_scripts_and_is_asked_for_again_each_time() {
    let pages = pages();
    let home = pages.page("/").await;
    assert_eq!(home.status, 200);
    assert_eq!(home.header("content-type"), "text/html; charset=utf-8");
    let policy = home.header("content-security-policy");
    assert!(policy.contains("script-src 'self' 'sha256-") && !policy.contains("unsafe"));
    assert_eq!(home.header("cache-control"), "no-cache");
    let again = get_with(&pages, "/", "if-none-match", home.header("etag")).await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    assert_eq!(again.header("content-security-policy"), policy);
    let packed = get_with(&pages, "/", "accept-encoding", "gzip").await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    let head = pages.send(Method::HEAD, "/", &[]).await;
    assert_eq!((head.status, head.header("etag")), (200, home.header("etag")));
}

#[tokio::test]
async fn a_shell_names_its_language() {
    let pages = pages();
    for (name, value, expected) in [
        ("accept-language", "en-GB", "en"),
        ("cookie", "urr-language=en", "en"),
        ("accept-language", "ko", "ko"),
        ("accept", "text/html", "ko"),
    ] {
        let page = get_with(&pages, "/events", name, value).await;
        assert!(page.body.contains(&format!("<html lang=\"{expected}\"")), "{value}");
        assert_eq!(page.header("content-language"), expected);
    }
}

#[tokio::test]
async fn a_page_with_a_name_goes_before_one_with_a_parameter() {
    let page = pages().send(Method::GET, "/events/new", &[]).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("새 공연"), "{}", page.body);
}

#[tokio::test]
async fn an_unknown_path_is_a_page_for_people_and_an_error_for_programs() {
    let pages = pages();
    let page = pages.page("/nothing").await;
    assert_eq!(page.status, 404);
    assert!(page.body.contains("없음") && !page.header("etag").is_empty());
    let json = get_with(&pages, "/nothing", "accept", "*/*").await;
    assert_eq!(json.status, 404);
    assert!(json.body.contains("\"NOT_FOUND\""), "{}", json.body);
    let post = pages.send(Method::POST, "/", &[("accept", "text/html")]).await;
    assert_eq!(post.status, 404);
    assert!(post.body.contains("\"NOT_FOUND\""), "pages take no changes");
}

#[tokio::test]
async fn a_slash_at_the_end_leads_to_the_page_and_nowhere_else() {
    let pages = pages();
    let moved = pages.page("/events/?q=a%20b").await;
    assert_eq!((moved.status, moved.header("location")), (308, "/events?q=a%20b"));
    for other in ["//evil.example/", "/nothing/", "//", "/events//"] {
        let answer = pages.page(other).await;
        assert_eq!((answer.status, answer.header("location")), (404, ""), "{other}");
    }
}

#[tokio::test]
async fn a_link_to_an_event_shows_what_the_catalogue_says_and_asks_it_once() {
    let pages = pages();
    let address = format!("/events/{EVENT}");
    for _ in 0..3 {
        let page = pages.page(&address).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<title>밤 &#60;b&#62; · URR</title>"), "{}", page.body);
        assert!(page.body.contains("content=\"http://urr.kr/api/image/1\""), "{}", page.body);
        assert!(page.body.contains("content=\"홀 첫 줄 둘째\""), "{}", page.body);
        assert!(!page.body.contains("<title>URR</title>"));
    }
    assert_eq!(pages.asked(), 1);
}

#[tokio::test]
async fn a_page_about_nothing_is_not_found_and_needs_no_catalogue_for_a_bad_id() {
    let pages = pages();
    assert_eq!(pages.page("/events/7").await.status, 404);
    assert_eq!(pages.asked(), 0);
    let missing = pages.page("/events/0198b2f0-0000-7000-8000-000000000009").await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("<title>URR</title>"), "the shell itself");
}

#[tokio::test]
async fn a_catalogue_that_fails_or_is_slow_costs_the_preview_and_not_the_page() {
    let failing = get(async || StatusCode::SERVICE_UNAVAILABLE);
    let silent = get(std::future::pending::<StatusCode>);
    for answer in [failing, silent] {
        let pages = TestPages::new(FILES, Router::new().route("/api/events/{id}", answer));
        let page = pages.page(&format!("/events/{EVENT}")).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<title>URR</title>") && !page.body.contains("og:title"));
    }
}

#[tokio::test]
async fn a_program_without_pages_says_how_to_build_them() {
    let pages = TestPages::new(&[], Router::new());
    let home = pages.page("/").await;
    assert!(home.status == 200 && home.body.contains("make web"), "{home:?}");
    let other = pages.page("/events").await;
    assert!(other.status == 404 && other.body.contains("make web"), "{other:?}");
}
