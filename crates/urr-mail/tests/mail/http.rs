//! The mail service as the gateway sees it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, UserRole};

use crate::contract;
use crate::fixture::{World, kit, send};
use crate::smtp_server::{Fault, SmtpServer};

type Answer = (StatusCode, Value);

fn router(world: &World) -> Router {
    let kit = kit(&world.clock, &world.ids, world.metrics.clone());
    world.service.service(&kit).local_router()
}

async fn records(world: &World, caller: Caller, user_id: Uuid) -> Answer {
    let path = format!("/internal/mail/records/{user_id}");
    let mut request = Request::builder().uri(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(caller);
    let answer = router(world).oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn call(world: &World, method: Method, path: &str, who: Option<(Uuid, UserRole)>) -> Answer {
    let mut headers = HeaderMap::new();
    if let Some((user_id, role)) = who {
        Identity { user_id, email: None, role }.write(&mut headers);
    }
    let mut request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    *request.headers_mut() = headers;
    request.extensions_mut().insert(Caller::Gateway);
    let answer = router(world).oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn as_admin(world: &World, method: Method, path: &str) -> Answer {
    call(world, method, path, Some((Uuid::from_u128(77), UserRole::Admin))).await
}

async fn mine(world: &World, user_id: Uuid, query: &str) -> Value {
    let path = format!("/api/notifications{query}");
    let (status, body) = call(world, Method::GET, &path, Some((user_id, UserRole::User))).await;
    assert_eq!(status, StatusCode::OK);
    body
}

/// As the ticket service asks; with a body it posts.
async fn by_ticket(world: &World, path: &str, body: Option<Value>) -> Answer {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let body = Body::from(body.map(|body| body.to_string()).unwrap_or_default());
    let request = Request::builder().method(method).uri(path);
    let mut request = request.header("content-type", "application/json").body(body).unwrap();
    request.extensions_mut().insert(Caller::Ticket);
    let answer = router(world).oneshot(request).await.unwrap();
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

contract! {
    async fn the_tickets_are_sent_again_but_not_at_once_and_not_twice(world: World) {
        let bought = world.purchase().await;
        world.purchase().await;
        let (reservation_id, user_id) = (bought.subject_id, bought.user_id);
        let path = format!("/internal/mail/reservations/{reservation_id}");
        let resend = |request_id: Uuid| json!({ "userId": user_id, "requestId": request_id });
        let again = format!("{path}/resend");
        let (first, second) = (world.ids.next_id(), world.ids.next_id());
        let (status, refused) = by_ticket(&world, &again, Some(resend(first))).await;
        assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("MAIL_SENT_RECENTLY")));
        world.clock.advance(std::time::Duration::from_mins(5));
        // Ten requests at once are one mail.
        let calls = (0..10).map(|_| by_ticket(&world, &again, Some(resend(world.ids.next_id()))));
        let statuses: Vec<u16> = futures_util::future::join_all(calls).await.into_iter()
            .map(|(status, _)| status.as_u16()).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        world.clock.advance(std::time::Duration::from_mins(5));
        let (_, sent) = by_ticket(&world, &again, Some(resend(second))).await;
        let (_, repeated) = by_ticket(&world, &again, Some(resend(second))).await;
        assert_eq!(sent["mailId"], repeated["mailId"], "a repeated request finds its mail");
        let (_, list) = by_ticket(&world, &path, None).await;
        let mails = list["mails"].as_array().unwrap();
        assert_eq!(mails.len(), 3, "those of another reservation are not there: {list}");
        assert!(mails.iter().all(|mail| mail["kind"] == "purchase"), "{list}");
    }

    async fn users_see_their_own_notifications_only(world: World) {
        let bought = world.purchase().await;
        let other = world.purchase().await;
        world.clock.advance(std::time::Duration::from_secs(60));
        world.consume(&world.admission_near(bought.user_id)).await.unwrap();
        send(&world.service).await;
        let body = mine(&world, bought.user_id, "").await;
        let kinds: Vec<&str> = body["notifications"].as_array().unwrap().iter()
            .map(|told| told["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["admission_near", "purchase"], "the newest first");
        assert_eq!(body["notifications"][1], json!({
            "id": bought.id.0, "kind": "purchase",
            "subject": "예매가 완료되었습니다: 한강의 밤",
            "link": format!("https://urr.example/reservations/{}", bought.subject_id),
            "createdAt": "2026-12-01T12:00:00Z",
        }));
        assert_eq!(body["pagination"]["total"], 2);
        let theirs = mine(&world, other.user_id, "").await;
        assert_eq!(theirs["notifications"][0]["id"], json!(other.id.0));
        assert_eq!(theirs["pagination"]["total"], 1);
        let page = mine(&world, bought.user_id, "?page=2&limit=1").await;
        assert_eq!(page["notifications"][0]["kind"], "purchase");
        let sly = mine(&world, other.user_id, &format!("?userId={}", bought.user_id)).await;
        assert_eq!(sly["pagination"]["total"], 1, "nothing that is sent says whose they are");
        let (status, _) = call(&world, Method::GET, "/api/notifications", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }

    async fn the_auth_service_alone_gets_all_mails_of_a_user(world: World) {
        let bought = world.purchase().await;
        let other = world.purchase().await;
        send(&world.service).await;
        let (status, answer) = records(&world, Caller::Auth, bought.user_id).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let mails = answer["records"]["mails"].as_array().unwrap();
        assert_eq!((mails.len(), &mails[0]["kind"]), (1, &json!("purchase")), "{answer}");
        assert_eq!(mails[0]["status"], "sent");
        assert!(mails[0]["content"].is_object(), "{answer}");
        assert_eq!(answer["records"]["truncated"], json!([]));
        assert!(!answer.to_string().contains(&other.id.to_string()), "nothing of others");
        for caller in [Caller::Gateway, Caller::Ticket, Caller::Payment] {
            let (status, _) = records(&world, caller, bought.user_id).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{caller}");
        }
    }

    async fn only_administrators_see_mails_and_send_them_again(world: World) {
        let mail = world.purchase().await;
        for (method, path) in [
            (Method::GET, "/api/admin/mails".to_owned()),
            (Method::GET, format!("/api/admin/mails/{}", mail.id)),
            (Method::POST, format!("/api/admin/mails/{}/retry", mail.id)),
        ] {
            let owner = Some((mail.user_id, UserRole::User));
            let (status, _) = call(&world, method.clone(), &path, owner).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
            let (status, _) = call(&world, method, &path, None).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        }
    }

    async fn administrators_find_mails_by_state_and_kind(world: World) {
        let user_id = world.purchase().await.user_id;
        send(&world.service).await;
        world.consume(&world.admission_near(user_id)).await.unwrap();
        for (query, total) in [
            ("", 2),
            ("?status=sent", 1),
            ("?status=waiting", 1),
            ("?status=failed", 0),
            ("?kind=admission_near", 1),
            ("?kind=purchase&status=waiting", 0),
            ("?status=&kind=", 2),
        ] {
            let path = format!("/api/admin/mails{query}");
            let (status, body) = as_admin(&world, Method::GET, &path).await;
            let found = &body["pagination"]["total"];
            assert_eq!((status, found), (StatusCode::OK, &json!(total)), "{query}");
        }
        for (query, code) in [("?status=lost", "INVALID_STATUS"), ("?kind=news", "INVALID_KIND")] {
            let path = format!("/api/admin/mails{query}");
            let (status, body) = as_admin(&world, Method::GET, &path).await;
            assert_eq!((status, body["code"].as_str()), (StatusCode::BAD_REQUEST, Some(code)));
        }
        let (_, body) = as_admin(&world, Method::GET, "/api/admin/mails").await;
        assert!(!body.to_string().contains("mina"), "{body}");
    }

    async fn a_mail_can_be_read_as_it_was_sent_but_its_address_is_masked(world: World) {
        let mail = world.purchase().await;
        send(&world.service).await;
        let path = format!("/api/admin/mails/{}", mail.id);
        let (status, body) = as_admin(&world, Method::GET, &path).await;
        assert_eq!(status, StatusCode::OK);
        let seen = &body["mail"];
        assert_eq!((&seen["address"], &seen["attempts"]), (&json!("m***@example.com"), &json!(1)));
        assert_eq!((&seen["status"], &seen["language"]), (&json!("sent"), &json!("ko")));
        assert!(seen["text"].as_str().unwrap().contains("좌석: 1층 A-12-7, 1층 A-12-8"));
        assert!(seen["html"].as_str().unwrap().starts_with("<!DOCTYPE html>"));
        assert!(!body.to_string().contains("mina@"), "{body}");
        world.peers.auth_unavailable(true);
        let (status, body) = as_admin(&world, Method::GET, &path).await;
        assert_eq!((status, &body["mail"]["address"]), (StatusCode::OK, &Value::Null));
        let unknown = format!("/api/admin/mails/{}", Uuid::from_u128(5));
        let (status, body) = as_admin(&world, Method::GET, &unknown).await;
        let refusal = (status, body["code"].as_str());
        assert_eq!(refusal, (StatusCode::NOT_FOUND, Some("MAIL_NOT_FOUND")));
    }

    async fn administrators_send_again_what_has_failed(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        let path = format!("/api/admin/mails/{}/retry", mail.id);
        let (status, body) = as_admin(&world, Method::POST, &path).await;
        let refusal = (status, body["code"].as_str());
        assert_eq!(refusal, (StatusCode::CONFLICT, Some("MAIL_NOT_FAILED")));
        server.fail([Fault::Recipient("550 5.1.1 unknown")]);
        send(&world.service_over(&server)).await;
        let seen = as_admin(&world, Method::GET, &format!("/api/admin/mails/{}", mail.id)).await.1;
        assert_eq!(seen["mail"]["lastError"], "RECIPIENT 550");
        let (status, body) = as_admin(&world, Method::POST, &path).await;
        assert_eq!((status, &body["mail"]["status"]), (StatusCode::OK, &json!("waiting")));
        let (status, log) = as_admin(&world, Method::GET, "/api/admin/mails/log").await;
        assert_eq!((status, &log["pagination"]["total"]), (StatusCode::OK, &json!(1)));
        let logged = (&log["entries"][0]["action"], &log["entries"][0]["resourceId"]);
        assert_eq!(logged, (&json!("MAIL_RETRIED"), &json!(mail.id.to_string())));
        assert_eq!(send(&world.service_over(&server)).await, 1);
        assert_eq!(server.accepted().len(), 1);
    }

    async fn no_address_is_stored(world: World) {
        world.purchase().await;
        send(&world.service).await;
        let sql = "select cast(template_data as text) || coalesce(last_error, '') as words from mails";
        let stored: Result<Vec<String>, urr_storage::StorageError> =
            world.db.read(move |tx| tx.query(sql, &[], |row| row.get("words"))).await;
        let stored = stored.unwrap().join(" ");
        assert!(stored.contains("한강의 밤") && !stored.contains("mina"), "{stored}");
    }
}
