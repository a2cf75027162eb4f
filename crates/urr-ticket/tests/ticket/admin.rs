//! Ticket types over HTTP: statuses, bodies, and who may call; and the log of what was done.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};

use crate::contract;
use crate::fixture::{MINUTE, World, hall};
use crate::operations::CallerIdentity;

const ADMIN: Uuid = Uuid::from_u128(99);

async fn call(
    world: &World,
    role: Option<UserRole>,
    method: Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .extension(Caller::Gateway)
        .body(Body::from(body.to_string()))
        .unwrap();
    if let Some(role) = role {
        Identity { user_id: ADMIN, email: None, role }.write(request.headers_mut());
    }
    let response = world.ticket.service(&kit).local_router().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), 1024 * 1024).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// The status and the code of an answer to an administrator.
async fn refusal(world: &World, method: Method, path: &str, body: &Value) -> (u16, String) {
    let (status, body) = call(world, Some(UserRole::Admin), method, path, body).await;
    (status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
}

fn body() -> Value {
    json!({"name": "앞줄", "description": "무대 앞", "price": 99_000, "total": 50})
}

contract! {
    async fn an_administrator_adds_and_changes_a_ticket_type(world: World) {
        let (event_id, _) = world.open_standing(10).await;
        let path = format!("/api/admin/events/{event_id}/tickets");
        let (status, made) = call(&world, Some(UserRole::Admin), Method::POST, &path, &body()).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let id = made["ticketType"]["id"].as_str().unwrap().to_owned();
        assert_eq!(made, json!({"ticketType": {"id": id, "eventId": event_id, "name": "앞줄",
            "description": "무대 앞", "price": 99_000, "total": 50, "available": 50}}));

        let mut requested = body();
        requested["total"] = json!(60);
        let path = format!("/api/admin/tickets/{id}");
        let (status, changed) =
            call(&world, Some(UserRole::Admin), Method::PUT, &path, &requested).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
        assert_eq!(changed["ticketType"]["available"], 60);
        let noted = "select count(*) as n from admin_actions";
        assert_eq!(world.number(noted).await, 2);
    }

    async fn only_administrators_touch_ticket_types(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let paths = [
            (Method::POST, format!("/api/admin/events/{event_id}/tickets")),
            (Method::PUT, format!("/api/admin/tickets/{type_id}")),
        ];
        for (method, path) in paths {
            let (status, _) = call(&world, None, method.clone(), &path, &body()).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            let (status, _) = call(&world, Some(UserRole::User), method, &path, &body()).await;
            assert_eq!(status, StatusCode::FORBIDDEN);
        }
        assert_eq!(world.number("select count(*) as n from ticket_types").await, 1);
    }

    async fn f_13_what_makes_no_sense_is_told_with_a_code(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let seated = world.open_sale(hall(1, 5)).await;
        let create = format!("/api/admin/events/{event_id}/tickets");
        let change = format!("/api/admin/tickets/{type_id}");
        for (field, value, code) in [
            ("name", json!(""), "INVALID_NAME"),
            ("name", json!("가".repeat(101)), "INVALID_NAME"),
            ("description", json!("가".repeat(501)), "INVALID_DESCRIPTION"),
            ("price", json!(-1), "INVALID_PRICE"),
            ("price", json!(10_000_001), "INVALID_PRICE"),
            ("price", json!(1.5), "INVALID_BODY"),
            ("price", json!("free"), "INVALID_BODY"),
            ("total", json!(0), "INVALID_TOTAL"),
            ("total", json!(-3), "INVALID_TOTAL"),
            ("total", json!(i64::MAX), "INVALID_TOTAL"),
            ("total", json!(u64::MAX), "INVALID_BODY"),
            ("available", json!(7), "INVALID_BODY"),
        ] {
            let mut requested = body();
            requested[field] = value;
            let expected = (400, code.to_owned());
            assert_eq!(refusal(&world, Method::POST, &create, &requested).await, expected, "{requested}");
            assert_eq!(refusal(&world, Method::PUT, &change, &requested).await, expected, "{requested}");
        }
        for (path, expected) in [
            (format!("/api/admin/events/{seated}/tickets"), (409, "EVENT_HAS_SEATS")),
            (format!("/api/admin/events/{type_id}/tickets"), (404, "EVENT_NOT_FOUND")),
            ("/api/admin/events/x/tickets".to_owned(), (400, "INVALID_PATH")),
        ] {
            let told = refusal(&world, Method::POST, &path, &body()).await;
            assert_eq!((told.0, &*told.1), expected, "{path}");
        }
        let unknown = format!("/api/admin/tickets/{seated}");
        let told = refusal(&world, Method::PUT, &unknown, &body()).await;
        assert_eq!(told, (404, "TICKET_TYPE_NOT_FOUND".to_owned()));
        assert_eq!(world.number("select count(*) as n from admin_actions").await, 0);
    }

    async fn what_administrators_did_can_be_read_the_newest_first(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let change = |total: u32| json!({"name": "스탠딩", "price": 88_000, "total": total});
        let path = format!("/api/admin/tickets/{type_id}");
        assert_eq!(call(&world, Some(UserRole::Admin), Method::PUT, &path, &change(9)).await.0, 200);
        let held = world.hold_tickets(event_id, type_id, 2).await.reservation;
        // What is refused is not noted.
        assert_eq!(call(&world, Some(UserRole::Admin), Method::PUT, &path, &change(1)).await.0, 409);
        world.clock.advance(MINUTE);
        let other = world.ids.next_id();
        let cancel = format!("/api/admin/reservations/{}/cancel", held.id);
        let reason = json!({"reason": "중복"});
        assert_eq!(world.call(CallerIdentity::Admin(other), Method::POST, &cancel, reason).await.0, 200);
        let log = async |query: &str| {
            let path = format!("/api/admin/reservations/log{query}");
            let (status, body) =
                call(&world, Some(UserRole::Admin), Method::GET, &path, &Value::Null).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            body
        };
        let all = log("").await;
        let id = |number: usize| all["entries"][number]["id"].clone();
        let newest = json!({"id": id(0), "adminId": other, "action": "RESERVATION_CANCELLED",
            "resourceType": "reservation", "resourceId": held.id.0,
            "by": "admin", "details": null,
            "summary": format!("{}: 중복", held.number), "createdAt": "2026-12-01T12:01:00Z"});
        let oldest = json!({"id": id(1), "adminId": ADMIN, "action": "TICKET_TYPE_UPDATED",
            "resourceType": "ticket_type", "resourceId": type_id, "summary": "total 10 → 9",
            "by": "admin", "details": null, "createdAt": "2026-12-01T12:00:00Z"});
        assert_eq!(all["entries"], json!([newest, oldest]));
        assert_eq!(log("?limit=1&page=2").await["entries"], json!([oldest]));
        for (query, total) in [
            (format!("?adminId={other}"), 1),
            (format!("?adminId={event_id}"), 0),
            (format!("?resourceId={type_id}"), 1),
            ("?resourceType=reservation".to_owned(), 1),
            ("?action=TICKET_TYPE_UPDATED".to_owned(), 1),
            ("?action=TICKET_TYPE_UPDATED&resourceType=reservation".to_owned(), 0),
            ("?from=2026-12-01T12:01:00Z".to_owned(), 1),
            ("?to=2026-12-01T12:01:00Z".to_owned(), 1),
            ("?from=-009000-01-02T00:00:00Z&to=9999-12-30T00:00:00Z&limit=1".to_owned(), 2),
        ] {
            assert_eq!(log(&query).await["pagination"]["total"], total, "{query}");
        }
    }

    async fn only_administrators_read_what_administrators_did(world: World) {
        let path = "/api/admin/reservations/log";
        for (role, status) in [(None, 401), (Some(UserRole::User), 403)] {
            let (answered, _) = call(&world, role, Method::GET, path, &Value::Null).await;
            assert_eq!(answered, status);
        }
        for query in ["?adminId=7", "?to=later", "?from=soon"] {
            let path = format!("{path}{query}");
            let told = refusal(&world, Method::GET, &path, &Value::Null).await;
            assert_eq!(told, (400, "INVALID_QUERY".to_owned()), "{query}");
        }
    }

    async fn what_was_sold_is_told_to_who_wants_to_change_it(world: World) {
        let (_, type_id) = world.open_standing(10).await;
        world.execute("update ticket_types set available = 4").await;
        let path = format!("/api/admin/tickets/{type_id}");
        for (price, total, code) in [(88_000, 5, "TOTAL_BELOW_SOLD"), (1, 10, "PRICE_IS_FIXED")] {
            let requested = json!({"name": "스탠딩", "price": price, "total": total});
            let (status, told) =
                call(&world, Some(UserRole::Admin), Method::PUT, &path, &requested).await;
            assert_eq!((status.as_u16(), &told["code"]), (409, &json!(code)));
            assert_eq!(told["sold"], 6);
        }
    }
}
