//! Every operation with every kind of sender: the route table and the services agree, and an
//! organiser reaches nothing of another's.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use urr_e2e::{TestApp, TestRequest, TestResponse};
use urr_gateway::{Policy, Route, RouteMatch, match_route};
use urr_kernel::Uuid;
use urr_service::{RoleGroup, UserRole};
use urr_test::eventually;

use crate::booking::{created, text};
use crate::on_both_deployments;

const MINUTE: Duration = Duration::from_mins(1);
/// A stream does not end; that it began is enough.
const STREAM_AWAITED: Duration = Duration::from_secs(2);

const FAN: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c01);
const STAFF: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c02);
const MINA: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c03);
const JUNHO: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c04);
const SUPPORT: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c05);
const ADMIN: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c06);

const SENDERS: [Option<(Uuid, UserRole)>; 6] = [
    None,
    Some((FAN, UserRole::User)),
    Some((STAFF, UserRole::Staff)),
    Some((MINA, UserRole::Organiser)),
    Some((SUPPORT, UserRole::Support)),
    Some((ADMIN, UserRole::Admin)),
];

/// Refusals of a role, by the gateway or by a service.
const ROLE_CODES: [&str; 2] = ["ADMIN_REQUIRED", "ROLE_REQUIRED"];

/// An organiser with a standing event of an artist, of which one ticket is sold, and what fans and
/// the organiser wrote about the artist.
#[derive(Clone, Debug)]
struct Tenant {
    organiser: Uuid,
    event: String,
    ticket_type: String,
    reservation: String,
    ticket: String,
    payment: String,
    post: String,
    comment: String,
    news: String,
    hall: String,
}

impl Tenant {
    async fn open(app: &TestApp, organiser: Uuid) -> Tenant {
        let name = format!("클럽 {organiser}");
        let venue = json!({ "name": name, "address": "서울 한강로 1" });
        let venue = created(app.post("/api/admin/venues").as_admin().json(&venue).send().await);
        let venue_id = text(&venue["venue"]["id"]);
        let mapping = json!([{ "grade": "A", "fromRow": 1, "toRow": 1 }]);
        let grid = json!({ "rows": 1, "seatsPerRow": 1, "gradeMapping": mapping });
        let call = app.post(&format!("/api/admin/venues/{venue_id}/halls"));
        let call = call.as_person(organiser, UserRole::Organiser);
        let hall = created(call.json(&json!({ "name": "연습실", "grid": grid })).send().await);
        let hall = text(&hall["hall"]["id"]);
        let artist = json!({ "name": format!("밴드 {organiser}") });
        let artist = created(app.post("/api/admin/artists").as_admin().json(&artist).send().await);
        let artist = text(&artist["artist"]["id"]);
        let body = json!({
            "title": "클럽 나이트", "venueId": venue["venue"]["id"], "artistId": artist,
            "startsAt": "2026-12-24T10:00:00Z",
            "saleStartsAt": "2026-11-14T00:00:00Z", "saleEndsAt": "2026-12-20T00:00:00Z",
            "ticketTypes": [{ "name": "A", "price": 70_000, "total": 100 }],
        });
        let call = app.post("/api/admin/events").as_person(organiser, UserRole::Organiser);
        let event = created(call.json(&body).send().await)["event"].take();
        let (event, ticket_type) = (text(&event["id"]), text(&event["ticketTypes"][0]["id"]));
        eventually("the ticket office has made the tickets", async || {
            app.clock.advance(Duration::from_secs(1));
            let event = app.get(&format!("/api/events/{event}")).send().await.json();
            (event["event"]["inventoryReady"] == true).then_some(())
        })
        .await;
        let buyer = app.ids.next_id();
        let entry = app.admit(buyer, event.parse().unwrap()).await;
        let items = json!([{ "ticketTypeId": ticket_type, "quantity": 1 }]);
        let body = json!({ "eventId": event, "items": items });
        let call = app.post("/api/reservations").as_admitted(buyer, &entry).json(&body);
        let reservation = text(&created(call.send().await)["reservation"]["id"]);
        let body = json!({ "reservationId": reservation, "paymentMethod": "approve" });
        let call = app.post("/api/payments/process").as_person(buyer, UserRole::User);
        let paid = call.json(&body).send().await.json();
        let payment = text(&paid["payment"]["id"]);
        let path = format!("/api/admin/events/{event}/check-in-list");
        let sold = app.get(&path).as_admin().send().await.json();
        let ticket = text(&sold["tickets"][0]["id"]);
        let [post, comment, news] = write_about(app, organiser, &artist).await;
        let tenant = Tenant {
            organiser,
            event,
            ticket_type,
            reservation,
            ticket,
            payment,
            post,
            comment,
            news,
            hall,
        };
        tenant.await_projections(app).await;
        tenant
    }

    /// Waits until every service knows whose event it is.
    async fn await_projections(&self, app: &TestApp) {
        let paths = [
            format!("/api/admin/payments/{}", self.payment),
            format!("/api/admin/reservations/{}", self.reservation),
            format!("/api/admin/queue/{}", self.event),
            format!("/api/stats/events/{}", self.event),
        ];
        for path in paths {
            eventually("the service knows the organiser", async || {
                app.clock.advance(Duration::from_secs(1));
                let call = app.get(&path).as_person(self.organiser, UserRole::Organiser);
                (call.send().await.status == 200).then_some(())
            })
            .await;
        }
    }

    fn ids(&self) -> [&str; 5] {
        [&self.event, &self.ticket_type, &self.reservation, &self.payment, &self.post]
    }

    /// The path of an operation, with the tenant's ids.
    fn fill(&self, path: &str) -> String {
        let id = match path {
            path if path.starts_with("/api/admin/reservations/") => &self.reservation,
            path if path.contains("/box-office/") => &self.reservation,
            path if path.contains("/complimentary-tickets/") => &self.reservation,
            path if path.starts_with("/api/admin/payments/") => &self.payment,
            path if path.starts_with("/api/admin/tickets/") => &self.ticket_type,
            path if path.starts_with("/api/admin/community/comments/") => &self.comment,
            path if path.starts_with("/api/admin/community/") => &self.post,
            path if path.starts_with("/api/news/") => &self.news,
            path if path.starts_with("/api/admin/halls/") => &self.hall,
            _ => &self.event,
        };
        let path = path.replace("{id}", id).replace("{eventId}", &self.event);
        let mut filled = String::new();
        for part in path.split('/').skip(1) {
            filled.push('/');
            match part {
                "{ticketId}" => filled.push_str(&self.ticket),
                "{userId}" => filled.push_str(&STAFF.to_string()),
                "{provider}" => filled.push_str("google"),
                part if part.starts_with('{') => filled.push_str(&FAN.to_string()),
                "move-preview" => filled.push_str("move-preview?startsAt=2026-12-25T10:00:00Z"),
                part => filled.push_str(part),
            }
        }
        filled
    }
}

/// A post with a comment, both reported, and news.
async fn write_about(app: &TestApp, organiser: Uuid, artist: &str) -> [String; 3] {
    let writing = json!({ "artistId": artist, "title": "글", "content": "내용" });
    let publish = async |path: &str, who: Uuid, role: UserRole, body: &Value| {
        eventually("the community knows the artist and the organiser", async || {
            app.clock.advance(Duration::from_secs(1));
            let answer = app.post(path).as_person(who, role).json(body).send().await;
            (answer.status == 201).then(|| answer.json())
        })
        .await
    };
    let fan = app.ids.next_id();
    let post = publish("/api/community/posts", fan, UserRole::User, &writing).await;
    let post = text(&post["post"]["id"]);
    let path = format!("/api/community/posts/{post}/comments");
    let comment = publish(&path, fan, UserRole::User, &json!({ "content": "댓글" })).await;
    let comment = text(&comment["comment"]["id"]);
    let path = format!("/api/community/posts/{post}/reports");
    let report = app.post(&path).as_person(FAN, UserRole::User).json(&json!({ "reason": "spam" }));
    assert_eq!(report.send().await.status, 204);
    let news = publish("/api/news", organiser, UserRole::Organiser, &writing).await;
    [post, comment, text(&news["news"]["id"])]
}

const BOX_OFFICE_DOCUMENT: &str = "/api/admin/events/{eventId}/box-office/{id}/tickets.pdf";
const REVOKE: &str = "/api/admin/events/{eventId}/complimentary-tickets/{id}/revoke";

/// What organisers do with seats of their own.
fn house_operations(tenant: &Tenant) -> Vec<(Method, &'static str, Value)> {
    let reason = json!({ "reason": "음향 사고" });
    let one = json!({ "items": [{ "ticketTypeId": tenant.ticket_type, "quantity": 1 }] });
    let block = json!({ "places": one, "reason": "기술" });
    let gift = json!({ "places": one, "reason": "협찬", "guestName": "김하루" });
    let sale = json!({ "places": one, "method": "cash" });
    vec![
        (Method::GET, "/api/admin/events/{eventId}/house-seats", json!({})),
        (Method::POST, "/api/admin/events/{eventId}/house-seats/block", block.clone()),
        (Method::POST, "/api/admin/events/{eventId}/house-seats/release", block),
        (Method::POST, "/api/admin/events/{eventId}/complimentary-tickets", gift),
        (Method::GET, "/api/admin/events/{eventId}/box-office", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/box-office/seat-map", json!({})),
        (Method::POST, "/api/admin/events/{eventId}/box-office", sale),
        (Method::GET, BOX_OFFICE_DOCUMENT, json!({})),
        (Method::POST, "/api/admin/events/{eventId}/box-office/{id}/refund", json!({})),
        (Method::POST, REVOKE, reason),
    ]
}

/// Every operation that concerns one event, with a body that its service accepts. The destructive
/// ones are last.
fn owned_operations(tenant: &Tenant) -> Vec<(Method, &'static str, Value)> {
    let reason = json!({ "reason": "음향 사고" });
    let check_in = json!({ "payload": "URR1.x", "eventId": tenant.event });
    let copy = json!({ "startsAt": "2027-12-24T10:00:00Z" });
    let scan = json!({ "scanId": FAN, "payload": "URR1.x", "scannedAt": "2026-11-15T09:00:00Z" });
    let sent_at = "2026-11-15T09:00:01Z";
    let report = json!({ "eventId": tenant.event, "sentAt": sent_at, "scans": [scan] });
    let ticket_type = json!({ "name": "앞줄", "price": 99_000, "total": 50 });
    let renamed = json!({ "name": "A 구역", "price": 70_000, "total": 100 });
    let others = vec![
        (Method::GET, "/api/admin/events/{id}", json!({})),
        (Method::GET, "/api/admin/events/{id}/log", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/cancel-preview", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/reservations.csv", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/payments.csv", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/settlement", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/settlement.csv", json!({})),
        (Method::GET, "/api/admin/events/{id}/move-preview", json!({})),
        (Method::GET, "/api/admin/reservations/{id}/history", json!({})),
        (Method::GET, "/api/admin/reservations/{id}/log", json!({})),
        (Method::POST, "/api/admin/reservations/{id}/resend-mail", json!({})),
        (Method::GET, "/api/admin/queue/{eventId}", json!({})),
        (Method::GET, "/api/admin/queue/{eventId}/log", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/live", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/seat-map", json!({})),
        (Method::GET, "/api/stats/events/{eventId}/days", json!({})),
        (Method::GET, "/api/stats/events/{eventId}", json!({})),
        (Method::GET, "/api/admin/reservations/{id}", json!({})),
        (Method::GET, "/api/admin/payments/{id}", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/staff", json!({})),
        (Method::POST, "/api/admin/events/{eventId}/staff", json!({ "email": "a@example.com" })),
        (Method::PUT, "/api/admin/events/{eventId}/staff/{userId}", json!({})),
        (Method::POST, "/api/admin/check-ins", check_in),
        (Method::PATCH, "/api/admin/queue/{eventId}", json!({ "threshold": 50 })),
        (Method::POST, "/api/admin/queue/{eventId}/pause", json!({})),
        (Method::PUT, "/api/admin/queue/{eventId}/message", json!({ "message": "곧 시작합니다" })),
        (Method::DELETE, "/api/admin/queue/{eventId}/message", json!({})),
        (Method::POST, "/api/admin/queue/{eventId}/resume", json!({})),
        (Method::POST, "/api/admin/queue/{eventId}/clear", json!({ "confirm": tenant.event })),
        (Method::POST, "/api/admin/check-ins/batch", report),
        (Method::POST, "/api/admin/check-ins/{ticketId}/undo", json!({ "scanId": FAN })),
        (Method::GET, "/api/admin/events/{eventId}/check-in-list", json!({})),
        (Method::GET, "/api/admin/events/{eventId}/check-in-conflicts", json!({})),
        (Method::POST, "/api/admin/events/{eventId}/tickets", ticket_type),
        (Method::PUT, "/api/admin/tickets/{id}", renamed),
        (Method::PUT, "/api/admin/events/{id}", json!({ "revision": 1, "title": "새 제목" })),
        (Method::POST, "/api/admin/events/{id}/copy", copy),
        (Method::PUT, "/api/news/{id}", json!({ "title": "새 소식", "content": "내용" })),
        (Method::PUT, "/api/admin/community/posts/{id}/pin", json!({ "pinned": true })),
        (Method::PUT, "/api/admin/community/comments/{id}/status", json!({ "status": "hidden" })),
        (Method::PUT, "/api/admin/community/posts/{id}/status", json!({ "status": "hidden" })),
        (Method::DELETE, "/api/news/{id}", json!({})),
        (Method::PUT, "/api/admin/halls/{id}", json!({ "name": "무대" })),
        (Method::DELETE, "/api/admin/halls/{id}", json!({})),
        (Method::POST, "/api/admin/payments/{id}/refund", json!({ "reason": "x", "amount": 1 })),
        (Method::POST, "/api/admin/reservations/{id}/cancel", reason.clone()),
        (Method::DELETE, "/api/admin/events/{eventId}/staff/{userId}", json!({})),
        (Method::POST, "/api/admin/events/{id}/cancel", reason),
        (Method::DELETE, "/api/admin/events/{id}", json!({})),
    ];
    house_operations(tenant).into_iter().chain(others).collect()
}

/// What organisers share: no event owns it.
const SHARED: [(&str, &str); 2] =
    [("GET", "/api/admin/halls/{id}"), ("POST", "/api/admin/venues/{id}/halls")];

/// The operations of the whole interface.
async fn operations(app: &TestApp) -> Vec<(Method, String)> {
    let document = app.get("/docs/openapi.json").send().await.json();
    let paths = document["paths"].as_object().unwrap();
    let mut operations = Vec::new();
    for (path, item) in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            if item.get(method).is_some() {
                operations.push((method.to_uppercase().parse().unwrap(), path.clone()));
            }
        }
    }
    assert!(operations.len() > 100, "{}", operations.len());
    operations
}

fn route_of(method: &Method, path: &str) -> &'static Route {
    match match_route(method, path) {
        RouteMatch::Route(_, route) => route,
        other => panic!("{method} {path}: {other:?}"),
    }
}

fn of_sender(call: TestRequest<'_>, sender: Option<(Uuid, UserRole)>) -> TestRequest<'_> {
    match sender {
        Some((user_id, role)) => call.as_person(user_id, role),
        None => call,
    }
}

/// `None`: the answer is a stream.
async fn ask(call: TestRequest<'_>) -> Option<TestResponse> {
    timeout(STREAM_AWAITED, call.send()).await.ok()
}

/// Why an answer differs from the policy; none if it does not.
fn find_difference(
    policy: Policy,
    sender: Option<(Uuid, UserRole)>,
    (status, code): (u16, &str),
) -> Option<String> {
    let is_role_refusal = ROLE_CODES.contains(&code);
    let is_login_refusal = code == "AUTHENTICATION_REQUIRED";
    let expected = match (policy, sender) {
        (Policy::Public, _) => !is_role_refusal && !is_login_refusal,
        (_, None) => (status, code) == (401, "AUTHENTICATION_REQUIRED"),
        (Policy::Admitted, Some(_)) => (status, code) == (403, "ENTRY_TOKEN_REQUIRED"),
        (Policy::User, Some(_)) => status != 401 && !is_role_refusal,
        (Policy::Role(group), Some((_, role))) if group.contains(role) => {
            status != 401 && !is_role_refusal
        }
        (Policy::Role(RoleGroup::Admin), Some(_)) => (status, code) == (403, "ADMIN_REQUIRED"),
        (Policy::Role(_), Some(_)) => (status, code) == (403, "ROLE_REQUIRED"),
    };
    (!expected).then(|| format!("{status} {code} for {sender:?} under {policy:?}"))
}

/// Operations that end the sessions or the account of the one who asks.
fn ends_the_sender(path: &str) -> bool {
    path.contains("logout") || path == "/api/auth/me" || path.ends_with("/password")
}

on_both_deployments! {
    async fn every_operation_admits_exactly_the_roles_of_its_route(app: TestApp) {
        let tenant = Tenant::open(&app, MINA).await;
        let mut differences = Vec::new();
        for (method, path) in operations(&app).await {
            if ends_the_sender(&path) {
                continue;
            }
            let (policy, filled) = (route_of(&method, &path).policy, tenant.fill(&path));
            for sender in SENDERS {
                // Rate limits are no part of this.
                app.clock.advance(MINUTE);
                let call = app.request(method.clone(), &filled);
                // A body that nobody takes: what is asked is who may ask.
                let Some(answer) = ask(of_sender(call, sender)).await else { continue };
                let code = serde_json::from_slice::<Value>(&answer.bytes).unwrap_or_default();
                let code = code["code"].as_str().unwrap_or_default().to_owned();
                let found = find_difference(policy, sender, (answer.status.as_u16(), &code));
                differences.extend(found.map(|found| format!("{method} {path}: {found}")));
            }
        }
        assert_eq!(differences, Vec::<String>::new());
    }

    async fn an_organiser_reaches_nothing_of_another(app: TestApp) {
        let (own, other) = (Tenant::open(&app, MINA).await, Tenant::open(&app, JUNHO).await);
        for Tenant { organiser, reservation, .. } in [&own, &other] {
            let call = app.get("/api/admin/dashboard").as_person(*organiser, UserRole::Organiser);
            let seen = call.send().await.json();
            assert_eq!(seen["stats"]["totalReservations"], 1, "{seen}");
            assert_eq!(seen["stats"]["totalRevenue"], 70_000, "{seen}");
            assert_eq!(seen["recentReservations"][0]["id"], json!(reservation), "{seen}");
        }
        let mut differences = Vec::new();
        for (tenant, is_own) in [(&other, false), (&own, true)] {
            for (method, path, body) in owned_operations(tenant) {
                app.clock.advance(MINUTE);
                let call = app.request(method.clone(), &tenant.fill(path)).json(&body);
                let Some(answer) = ask(call.as_person(MINA, UserRole::Organiser)).await else {
                    differences.extend((!is_own).then(|| format!("{method} {path}: a stream")));
                    continue;
                };
                let body = String::from_utf8_lossy(&answer.bytes);
                // The event is theirs, but a standing one, and nobody has that address.
                let is_refused = matches!(answer.status.as_u16(), 401 | 403 | 404)
                    && !body.contains("NO_SEAT_SELECTION")
                    && !body.contains("STAFF_NOT_FOUND");
                if is_refused == is_own {
                    differences.push(format!("{method} {path}: {} {body}", answer.status));
                }
            }
        }
        assert_eq!(differences, Vec::<String>::new());
        // Nothing of the other's has changed.
        let path = other.fill("/api/admin/events/{id}");
        let event = app.get(&path).as_admin().send().await.json();
        assert_eq!((&event["event"]["revision"], &event["event"]["title"]), (&json!(1), &json!("클럽 나이트")));
        let path = other.fill("/api/admin/reservations/{id}");
        let sold = app.get(&path).as_admin().send().await.json();
        assert_eq!(sold["reservation"]["status"], "confirmed");
        for (method, path) in operations(&app).await {
            let is_role = matches!(route_of(&method, &path).policy, Policy::Role(_));
            if method != Method::GET || path.contains('{') || !is_role {
                continue;
            }
            let path = format!("{path}?eventId={}", other.event);
            let call = app.get(&path).as_person(MINA, UserRole::Organiser);
            let answer = call.send().await;
            let body = String::from_utf8_lossy(&answer.bytes).into_owned();
            for id in other.ids() {
                let is_question = answer.status.is_client_error();
                assert!(is_question || !body.contains(id), "{path} shows {id}: {body}");
            }
        }
        // The control: an administrator sees them on these pages.
        for path in [
            "/api/admin/events", "/api/admin/reservations", "/api/admin/payments",
            "/api/stats/events", "/api/admin/dashboard", "/api/admin/community/reports",
        ] {
            let answer = app.get(path).as_admin().send().await;
            let body = String::from_utf8_lossy(&answer.bytes).into_owned();
            assert!(other.ids().iter().any(|id| body.contains(id)), "{path}: {body}");
        }
    }

    async fn door_staff_reach_the_entrance_of_their_event_only(app: TestApp) {
        let (own, other) = (Tenant::open(&app, MINA).await, Tenant::open(&app, JUNHO).await);
        let assign = own.fill("/api/admin/events/{eventId}/staff/{userId}");
        let call = app.request(Method::PUT, &assign).as_person(MINA, UserRole::Organiser);
        assert_eq!(call.send().await.status, 204);
        for (tenant, expected) in [(&own, 200), (&other, 403)] {
            let path = format!("/api/admin/check-ins?eventId={}", tenant.event);
            let counted = app.get(&path).as_person(STAFF, UserRole::Staff).send().await;
            assert_eq!(counted.status, expected, "{counted:?}");
        }
    }
}

/// A new operation about an event must be tried with somebody else's event.
#[tokio::test]
async fn every_operation_about_an_event_is_in_the_table_of_owned_ones() {
    let app = TestApp::embedded().await;
    let tenant = Tenant {
        organiser: MINA,
        event: FAN.to_string(),
        ticket_type: FAN.to_string(),
        reservation: FAN.to_string(),
        ticket: FAN.to_string(),
        payment: FAN.to_string(),
        post: FAN.to_string(),
        comment: FAN.to_string(),
        news: FAN.to_string(),
        hall: FAN.to_string(),
    };
    let owned = owned_operations(&tenant).into_iter();
    let mut known: BTreeSet<(String, String)> =
        owned.map(|(method, path, _)| (method.to_string(), path.to_owned())).collect();
    known.extend(SHARED.map(|(method, path)| (method.to_owned(), path.to_owned())));
    for (method, path) in operations(&app).await {
        let is_of_events = match route_of(&method, &path).policy {
            Policy::Role(group) => group.contains(UserRole::Organiser),
            _ => false,
        };
        if is_of_events && path.contains('{') {
            assert!(known.contains(&(method.to_string(), path.clone())), "{method} {path}");
        }
    }
    app.stop().await;
}
