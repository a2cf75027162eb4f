//! Whose turn it is: nobody books without a slot that lives, and a purchase ends it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::routing::post;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt;
use urr_contracts::clients::QueueClient;
use urr_kernel::Uuid;
use urr_service::{
    ApiError, Caller, Identity, Json, Metrics, RequestLimits, Service, ServiceKit, Upstream,
    UserRole,
};
use urr_ticket::{CompletedPayment, LockResult, SlotChecker, TicketService};
use utoipa_axum::router::OpenApiRouter;

use crate::contract;
use crate::fixture::{World, hall};

/// A waiting room that answers what a test needs, and remembers what it was asked.
#[derive(Clone)]
struct Room(Arc<Inner>);

struct Inner {
    live: Mutex<HashSet<Uuid>>,
    mood: Mutex<Mood>,
    /// What was asked, a list for each call.
    asked: Mutex<Vec<Vec<Value>>>,
    told: Mutex<Vec<Value>>,
    gate: Semaphore,
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Good,
    /// It answers for some other number of people.
    Confused,
    Broken,
}

impl Room {
    fn new() -> Room {
        Room(Arc::new(Inner {
            live: Mutex::default(),
            mood: Mutex::new(Mood::Good),
            asked: Mutex::default(),
            told: Mutex::default(),
            gate: Semaphore::new(1_000),
        }))
    }

    fn admit(&self, world: &World) -> Uuid {
        let slot_id = world.ids.next_id();
        self.0.live.lock().unwrap().insert(slot_id);
        slot_id
    }

    fn set(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = mood;
    }

    fn mood(&self) -> Mood {
        *self.0.mood.lock().unwrap()
    }

    fn asked(&self) -> Vec<Vec<Value>> {
        std::mem::take(&mut self.0.asked.lock().unwrap())
    }

    fn told(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.told.lock().unwrap())
    }

    fn ticket(&self, world: &World) -> TicketService {
        let routes = Router::new()
            .route("/internal/queue/slots", post(answer_slots))
            .route("/internal/queue/finish", post(hear_of_purchase))
            .with_state(self.clone());
        let kit = kit(world);
        let service = Service::new("queue", OpenApiRouter::from(routes), &kit);
        let router = service.local_router();
        world.ticket_with_slots(SlotChecker::new(QueueClient::new(Upstream::local(
            Caller::Ticket,
            "queue",
            router,
            &kit,
        ))))
    }
}

async fn answer_slots(
    State(room): State<Room>,
    Json(body): Json<Value>,
) -> Result<Json<Value>, ApiError> {
    let checks = body["checks"].as_array().unwrap().clone();
    room.0.asked.lock().unwrap().push(checks.clone());
    room.0.gate.acquire().await.unwrap().forget();
    let is_live = |ask: &Value| {
        let slot_id: Uuid = ask["slotId"].as_str().unwrap().parse().unwrap();
        room.0.live.lock().unwrap().contains(&slot_id)
    };
    match room.mood() {
        Mood::Good => Ok(Json(json!({ "live": checks.iter().map(is_live).collect::<Vec<_>>() }))),
        Mood::Confused => Ok(Json(json!({ "live": vec![true; checks.len() + 1] }))),
        Mood::Broken => Err(ApiError::internal("it is broken")),
    }
}

async fn hear_of_purchase(
    State(room): State<Room>,
    Json(body): Json<Value>,
) -> Result<Json<Value>, ApiError> {
    room.0.told.lock().unwrap().push(body);
    match room.mood() {
        Mood::Good | Mood::Confused => Ok(Json(json!({ "ended": true }))),
        Mood::Broken => Err(ApiError::internal("it is broken")),
    }
}

fn kit(world: &World) -> ServiceKit {
    ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    }
}

/// A request as the gateway passes it on.
struct RefundBasis {
    path: &'static str,
    body: Value,
    event_id: Uuid,
}

async fn send(
    world: &World,
    ticket: &TicketService,
    user_id: Uuid,
    slot: Option<&str>,
    operations: &RefundBasis,
) -> Response<Body> {
    let mut request = Request::post(operations.path)
        .header("content-type", "application/json")
        .header("x-urr-entry-event", operations.event_id.to_string())
        .extension(Caller::Gateway)
        .body(Body::from(operations.body.to_string()))
        .unwrap();
    if let Some(slot) = slot {
        request.headers_mut().insert("x-urr-entry-slot", slot.parse().unwrap());
    }
    Identity { user_id, email: None, role: UserRole::User }.write(request.headers_mut());
    ticket.service(&kit(world)).local_router().oneshot(request).await.unwrap()
}

async fn outcome(response: Response<Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    (status, body)
}

/// Every way to book.
async fn bookings(world: &World) -> [RefundBasis; 3] {
    let event_id = world.open_sale(hall(2, 5)).await;
    let (standing, type_id) = world.open_standing(50).await;
    let items = json!([{"ticketTypeId": type_id, "quantity": 1}]);
    [
        RefundBasis {
            path: "/api/seats/reserve",
            body: json!({"eventId": event_id, "seatIds": [0]}),
            event_id,
        },
        RefundBasis {
            path: "/api/seats/best",
            body: json!({"eventId": event_id, "count": 1, "grade": "R"}),
            event_id,
        },
        RefundBasis {
            path: "/api/reservations",
            body: json!({"eventId": standing, "items": items}),
            event_id: standing,
        },
    ]
}

contract! {
    async fn r_2_only_a_slot_that_lives_books(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        for operations in bookings(&world).await {
            let path = operations.path;
            let user_id = world.ids.next_id();
            let (dead, live) = (world.ids.next_id().to_string(), room.admit(&world).to_string());
            for slot in [None, Some(""), Some("x"), Some(dead.as_str())] {
                let refused = outcome(send(&world, &ticket, user_id, slot, &operations).await).await;
                assert_eq!(refused.0, 403, "{path} {slot:?} {refused:?}");
                assert_eq!(refused.1["code"], "ENTRY_TOKEN_INVALID");
                assert_eq!(refused.1["redirectTo"], "/queue");
            }
            assert_eq!(room.asked().len(), 1, "{path}: without a slot there is nothing to ask");
            if path == "/api/seats/reserve" {
                let (event_id, attempt) = (operations.event_id, world.ids.next_id());
                let taken = world.locks.acquire(event_id, &[0], attempt, attempt).await;
                assert_eq!(taken, LockResult::Acquired, "no seat was locked for them");
                world.locks.abandon(event_id, &[0], attempt).await;
            }
            let (status, body) =
                outcome(send(&world, &ticket, user_id, Some(&live), &operations).await).await;
            assert_eq!(status, 201, "{path} {body}");
            let expected = json!({"eventId": operations.event_id, "userId": user_id, "slotId": live});
            assert_eq!(room.asked(), [[expected]], "{path}");
        }
        assert_eq!(world.number("select count(*) as n from reservations").await, 3);
        // Control: it is the question that keeps them out.
        for operations in bookings(&world).await {
            let unchecked = send(&world, &world.ticket, world.ids.next_id(), None, &operations).await;
            assert_eq!(unchecked.status(), 201, "{}", operations.path);
        }
    }

    async fn without_an_answer_of_the_waiting_room_nobody_books(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        let bookings = bookings(&world).await;
        let live = room.admit(&world).to_string();
        for mood in [Mood::Broken, Mood::Confused] {
            room.set(mood);
            for operations in &bookings {
                let user_id = world.ids.next_id();
                let answer = send(&world, &ticket, user_id, Some(&live), operations).await;
                assert_eq!(answer.headers()["retry-after"], "2");
                let (status, body) = outcome(answer).await;
                assert_eq!((status, &body["code"]), (503, &json!("QUEUE_UNAVAILABLE")));
            }
        }
        assert_eq!(world.number("select count(*) as n from reservations").await, 0);
    }

    async fn what_costs_nothing_is_checked_before_the_waiting_room_is_asked(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        let [mut seats, mut best, mut standing] = bookings(&world).await;
        let live = room.admit(&world).to_string();
        seats.body["seatIds"] = json!([]);
        best.body["count"] = json!(0);
        standing.event_id = seats.event_id;
        for (operations, expected) in [(&seats, 400), (&best, 400), (&standing, 403)] {
            let user_id = world.ids.next_id();
            let (status, body) =
                outcome(send(&world, &ticket, user_id, Some(&live), operations).await).await;
            assert_eq!(status, expected, "{} {body}", operations.path);
        }
        assert!(room.asked().is_empty());
    }

    /// A crowd that books at once is one question after the other, not a thousand.
    async fn questions_that_come_together_are_asked_together(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        let [_, best, _] = bookings(&world).await;
        room.0.gate.forget_permits(1_000);
        let slots: Vec<Option<Uuid>> =
            (0..9).map(|number| (number % 3 == 0).then(|| room.admit(&world))).collect();
        let asking = slots.iter().map(async |slot| {
            let slot = slot.unwrap_or_else(|| world.ids.next_id()).to_string();
            let user_id = world.ids.next_id();
            outcome(send(&world, &ticket, user_id, Some(&slot), &best).await).await.0
        });
        let opened = async {
            // All of them are polled before this is: one is being answered, the others wait.
            room.0.gate.add_permits(2);
        };
        let (statuses, ()) = tokio::join!(join_all(asking), opened);
        let expected = slots.iter().map(|slot| if slot.is_some() { 201 } else { 403 });
        assert_eq!(statuses, expected.collect::<Vec<u16>>(), "each has their own answer");
        let asked: Vec<usize> = room.asked().iter().map(Vec::len).collect();
        assert_eq!(asked, [1, 8]);
    }

    async fn a_purchase_ends_the_turn_once_and_does_not_fail_with_the_waiting_room(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        let event_id = world.open_sale(hall(1, 5)).await;
        for (seat, mood) in [(0, Mood::Good), (1, Mood::Broken)] {
            room.set(mood);
            let record = world.hold(event_id, world.ids.next_id(), &[seat]).await;
            let (id, claim) = (record.reservation.id, world.pin(&record).await);
            assert!(room.told().is_empty(), "it is not paid");
            let made = CompletedPayment { claim, method: "card".to_owned() };
            for is_first in [true, false] {
                ticket.confirm_reservation(id, made.clone(), world.context(), None).await.unwrap();
                assert_eq!(world.find(id).await.payment_id, Some(claim.payment_id));
                let told = room.told();
                let purchase = json!({
                    "eventId": event_id, "userId": record.reservation.user_id,
                    "boughtAt": world.clock.now(),
                });
                // The call may be repeated, but the news are not.
                assert_eq!(told.contains(&purchase), is_first, "{told:?}");
                assert!(told.iter().all(|told| *told == purchase), "{told:?}");
            }
        }
    }

    /// E-3: what is one's own is changed and given back without a turn.
    async fn e_3_what_is_ones_own_needs_no_turn(world: World) {
        let room = Room::new();
        let ticket = room.ticket(&world);
        let event_id = world.open_sale(hall(1, 5)).await;
        let user_id = world.ids.next_id();
        let record = world.hold(event_id, user_id, &[0]).await;
        let id = record.reservation.id;
        let change = urr_ticket::ChangeSeats { user_id, seat_ids: vec![3], fencing_token: None };
        assert!(ticket.change_seats(id, change, world.context()).await.is_ok());
        assert!(ticket.cancel_reservation(id, user_id, world.context()).await.is_ok());
        assert!(room.asked().is_empty());
        assert!(room.told().is_empty());
    }
}
