//! Texts that people write and others see.

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::TestApp;

/// It turns what follows around: "Refund REGANAM" is shown as "Refund MANAGER".
const TURNED: &str = "Refund \u{202e}REGANAM";
const ID: &str = "0198b2f0-0000-7000-8000-000000000001";

fn registration(name: &str) -> Value {
    let agreed = |kind: &str| json!({ "type": kind, "agreed": true, "version": "2026-11" });
    json!({
        "email": format!("{}@example.com", name.len()), "password": "a long enough secret",
        "name": name, "terms": [agreed("SERVICE"), agreed("PRIVACY")],
    })
}

/// Every operation that takes such a text, with one field to fill.
fn bodies(text: &str) -> Vec<(&'static str, String, Value)> {
    let event = json!({
        "title": text, "hallId": ID, "startsAt": "2027-01-01T10:00:00Z",
        "saleStartsAt": "2026-12-01T10:00:00Z", "saleEndsAt": "2026-12-30T10:00:00Z",
        "prices": { "S": 1_000 },
    });
    let section = json!({ "name": text, "grade": "S", "rows": [{ "label": "1", "seats": 1 }] });
    vec![
        ("POST", "/api/auth/register".to_owned(), registration(text)),
        ("POST", "/api/admin/artists".to_owned(), json!({ "name": text })),
        ("POST", "/api/admin/artists".to_owned(), json!({ "name": "A", "description": text })),
        ("POST", "/api/admin/venues".to_owned(), json!({ "name": text, "address": "1" })),
        ("POST", "/api/admin/venues".to_owned(), json!({ "name": "A", "address": text })),
        (
            "POST",
            format!("/api/admin/venues/{ID}/halls"),
            json!({ "name": "H", "layout": { "sections": [section] } }),
        ),
        ("POST", "/api/admin/events".to_owned(), event),
        ("POST", "/api/news".to_owned(), json!({ "title": text, "content": "x" })),
        (
            "POST",
            "/api/community/posts".to_owned(),
            json!({ "artistId": ID, "title": "x", "content": text }),
        ),
        ("POST", format!("/api/community/posts/{ID}/comments"), json!({ "content": text })),
        (
            "POST",
            format!("/api/community/posts/{ID}/reports"),
            json!({ "reason": "spam", "note": text }),
        ),
        ("POST", format!("/api/admin/events/{ID}/cancel"), json!({ "reason": text })),
        ("PUT", format!("/api/admin/queue/{ID}/message"), json!({ "message": text })),
        (
            "POST",
            format!("/api/admin/reservations/{ID}/cancel"),
            json!({ "reason": text, "refund": "full" }),
        ),
        (
            "POST",
            format!("/api/admin/payments/{ID}/refund"),
            json!({ "reason": text, "amount": 1 }),
        ),
    ]
}

/// The control sends the same without that character: then none is refused for its text.
#[tokio::test]
async fn characters_that_turn_text_around_are_refused_everywhere() {
    let app = TestApp::embedded().await;
    for ((method, path, turned), (_, _, plain)) in bodies(TURNED).into_iter().zip(bodies("Refund"))
    {
        let method: Method = method.parse().unwrap();
        let mut outcomes = Vec::new();
        for body in [turned, plain] {
            let request = app.request(method.clone(), &path).json(&body).as_admin();
            let request = request.header("x-proof-of-work", "");
            let request = request.header("idempotency-key", "texts");
            outcomes.push(request.send().await);
        }
        let [turned, plain] = outcomes.try_into().expect("two were sent");
        assert_eq!(turned.status, 400, "{path} {}", turned.json());
        assert_ne!(plain.refusal(), turned.refusal(), "{path}");
    }
    app.stop().await;
}
