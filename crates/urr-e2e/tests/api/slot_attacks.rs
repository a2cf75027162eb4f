//! Attacks with slots that have ended, on the whole system (R-2, D-4, D-5, D-6, Q5): a token is
//! worth nothing from the moment its slot is gone, on every path that books. What the gateway can
//! refuse by itself is tried in `crates/urr-gateway`, `tests/gateway/entry/attacks.rs`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_contracts::clients::{PayableRef, TicketClient};
use urr_contracts::internal::ticket::{ConfirmPayable, GetPayable, PayableKind, PinPayable};
use urr_e2e::{Deployment, TestApp, TestResponse};
use urr_kernel::{CallContext, Uuid};
use urr_service::{Caller, UserRole};
use urr_test::eventually;

use crate::booking::{create_event, created, text};
use crate::on_both_deployments;

const INVALID: &str = "ENTRY_TOKEN_INVALID";
const SECOND: Duration = Duration::from_secs(1);
/// How long a slot lasts without activity, and in all.
const SLOT: Duration = Duration::from_mins(10);
const SLOT_MAX: Duration = Duration::from_mins(30);

/// Every way to book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BookingPath {
    Seats,
    Best,
    Standing,
}

const WAYS: [BookingPath; 3] = [BookingPath::Seats, BookingPath::Best, BookingPath::Standing];

/// A seated and a standing event on sale.
struct AttackFixture<'a> {
    app: &'a TestApp,
    seated: Uuid,
    standing: Uuid,
    ticket_type: String,
    /// The first seat that is not sold.
    seat: AtomicU32,
}

/// Someone and the token they come with.
#[derive(Clone, Debug)]
struct Visitor {
    user_id: Uuid,
    token: String,
}

impl AttackFixture<'_> {
    async fn open(app: &TestApp) -> AttackFixture<'_> {
        let seated = create_event(app).await;
        let name = format!("클럽 {}", app.ids.next_id());
        let venue = json!({"name": name, "address": "서울 홍대로 1"});
        let venue = created(app.post("/api/admin/venues").as_admin().json(&venue).send().await);
        let event = json!({
            "title": "클럽 나이트", "venueId": venue["venue"]["id"],
            "startsAt": "2026-12-24T10:00:00Z",
            "saleStartsAt": "2026-11-14T00:00:00Z", "saleEndsAt": "2026-12-20T00:00:00Z",
            "ticketTypes": [{"name": "A", "price": 70_000, "total": 100}],
        });
        let event = created(app.post("/api/admin/events").as_admin().json(&event).send().await);
        let standing: Uuid = text(&event["event"]["id"]).parse().unwrap();
        let path = format!("/api/tickets/event/{standing}");
        let ticket_type = eventually("the ticket office sells it", async || {
            app.clock.advance(SECOND);
            let stock = app.get(&path).send().await.json();
            stock["ticketTypes"][0]["id"].as_str().map(str::to_owned)
        });
        let ticket_type = ticket_type.await;
        for event_id in [seated, standing] {
            app.await_room(event_id).await;
        }
        AttackFixture { app, seated, standing, ticket_type, seat: AtomicU32::new(0) }
    }

    fn event(&self, way: BookingPath) -> Uuid {
        match way {
            BookingPath::Seats | BookingPath::Best => self.seated,
            BookingPath::Standing => self.standing,
        }
    }

    /// A new user with a slot.
    async fn admit(&self, way: BookingPath) -> Visitor {
        let user_id = self.app.ids.next_id();
        Visitor { user_id, token: self.app.admit(user_id, self.event(way)).await }
    }

    async fn book(&self, way: BookingPath, visitor: &Visitor) -> TestResponse {
        let event_id = self.event(way);
        let (path, body) = match way {
            BookingPath::Seats => {
                let seat = self.seat.load(Ordering::SeqCst);
                ("/api/seats/reserve", json!({"eventId": event_id, "seatIds": [seat]}))
            }
            BookingPath::Best => {
                ("/api/seats/best", json!({"eventId": event_id, "count": 1, "grade": "R"}))
            }
            BookingPath::Standing => {
                let items = json!([{"ticketTypeId": self.ticket_type, "quantity": 1}]);
                ("/api/reservations", json!({"eventId": event_id, "items": items}))
            }
        };
        let call = self.app.post(path).as_admitted(visitor.user_id, &visitor.token);
        call.json(&body).send().await
    }

    /// The control of every attack: a booking that succeeds, and is given back.
    async fn must_book(&self, way: BookingPath, visitor: &Visitor) {
        let held = self.must_hold(way, visitor).await;
        let path = format!("/api/reservations/{}", text(&held["id"]));
        let released =
            self.app.request(Method::DELETE, &path).as_person(visitor.user_id, UserRole::User);
        let released = released.send().await;
        assert_eq!(released.status, 200, "{way:?} {released:?}");
    }

    async fn must_hold(&self, way: BookingPath, visitor: &Visitor) -> Value {
        let held = self.book(way, visitor).await;
        assert_eq!(held.status, 201, "{way:?} {}", held.json());
        held.json()["reservation"].take()
    }

    async fn must_refuse(&self, way: BookingPath, visitor: &Visitor, name: &str) {
        let refused = self.book(way, visitor).await;
        assert_eq!(refused.refusal(), (403, INVALID.to_owned()), "{name}, {way:?}");
        assert_eq!(refused.json()["redirectTo"], "/queue", "{name}, {way:?}");
        assert_eq!(self.pending(visitor.user_id).await, 0, "{name}, {way:?}: nothing is held");
    }

    async fn pending(&self, user_id: Uuid) -> usize {
        let path = "/api/reservations/my?status=pending";
        let mine = self.app.get(path).as_person(user_id, UserRole::User).send().await.json();
        mine["reservations"].as_array().unwrap().len()
    }

    async fn ask_queue(
        &self,
        method: Method,
        verb: &str,
        way: BookingPath,
        user_id: Uuid,
    ) -> Value {
        let path = format!("/api/queue/{verb}/{}", self.event(way));
        let answer =
            self.app.request(method, &path).as_person(user_id, UserRole::User).send().await;
        assert_eq!(answer.status, 200, "{verb} {answer:?}");
        answer.json()
    }

    /// Buys what someone can get.
    async fn buy(&self, way: BookingPath, visitor: &Visitor) {
        let held = self.must_hold(way, visitor).await;
        pay(self.app, visitor.user_id, &text(&held["id"])).await;
        if way == BookingPath::Seats {
            self.seat.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The same slot in a token that does not expire for hours, as only the waiting room could sign
    /// it: what is refused then, is refused because of the slot.
    fn long_lived(&self, way: BookingPath, visitor: &Visitor) -> Visitor {
        let slot_id = self.app.slot_of(&visitor.token);
        let token = self.app.forge_entry(visitor.user_id, self.event(way), slot_id);
        Visitor { user_id: visitor.user_id, token }
    }
}

/// Pays for a hold, as the payment service does it.
pub async fn pay(app: &TestApp, user_id: Uuid, reservation_id: &str) {
    let tickets = TicketClient::new(app.internal(Caller::Payment, "ticket"));
    let (context, payment_id) = (CallContext::root(app.ids.next_id()), app.ids.next_id());
    let (kind, id) = (PayableKind::Reservation, reservation_id.parse().unwrap());
    let payable = PayableRef { kind, id };
    let held = tickets.call(GetPayable { payable }, &context).await.unwrap().payable;
    let (fencing_token, amount) = (held.fencing_token, held.total_amount);
    let event_id = held.event_id;
    let attempt = 1;
    let pin = PinPayable { payable, payment_id, user_id, fencing_token, amount, attempt, event_id };
    tickets.call(pin, &context).await.unwrap();
    let payment_method = Some("card".to_owned());
    let confirm =
        ConfirmPayable { payable, payment_id, fencing_token, amount, payment_method, event_id };
    tickets.call(confirm, &context).await.unwrap();
}

/// Declares cases. Embedded each has a system of its own; on servers, which take long to start, all
/// of them share one.
macro_rules! cases {
    ($($(#[$meta:meta])* async fn $name:ident($app:ident: &TestApp) $body:block)*) => {
        $($(#[$meta])* async fn $name($app: &TestApp) $body)*

        mod embedded {
            use super::*;

            $(#[test]
            fn $name() {
                crate::fixture::run(Deployment::Embedded, async |app| {
                    super::$name(&app).await;
                    app.stop().await;
                });
            })*

        }

        #[test]
        fn r_2_d_4_d_5_d_6_on_servers_turns_are_the_same() {
            crate::fixture::run(Deployment::Distributed, async |app| {
                $($name(&app).await;)*
                app.stop().await;
            });
        }
    };
}

cases! {
    async fn r_2_leaving_ends_the_slot_at_once(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let visitor = shop.admit(way).await;
            let kept = shop.long_lived(way, &visitor);
            shop.must_book(way, &visitor).await;
            shop.must_book(way, &kept).await;
            let left = shop.ask_queue(Method::POST, "leave", way, visitor.user_id).await;
            assert_eq!(left["left"], true);
            shop.must_refuse(way, &visitor, "after leaving").await;
            shop.must_refuse(way, &kept, "after leaving, kept").await;
            let again = shop.ask_queue(Method::POST, "check", way, visitor.user_id).await;
            let again =
                Visitor { user_id: visitor.user_id, token: text(&again["entryToken"]) };
            shop.must_refuse(way, &visitor, "an older one, after queueing again").await;
            shop.must_refuse(way, &kept, "an older one, kept").await;
            shop.must_book(way, &again).await;
        }
    }

    /// A user who left keeps the hold, and may pay or release it, but holds no other seats.
    async fn r_2_e_3_other_seats_are_taken_only_with_a_slot(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        let visitor = shop.admit(BookingPath::Seats).await;
        let held = shop.must_hold(BookingPath::Seats, &visitor).await;
        let path = format!("/api/reservations/{}", text(&held["id"]));
        let change = async |seats: Value| {
            let call = app.request(Method::PUT, &format!("{path}/seats"));
            let call = call.as_admitted(visitor.user_id, &visitor.token);
            call.json(&json!({"seatIds": seats, "overwrite": true})).send().await
        };
        let seat = shop.seat.load(Ordering::SeqCst);
        assert_eq!(change(json!([seat, seat + 1])).await.status, 200, "the control");
        shop.ask_queue(Method::POST, "leave", BookingPath::Seats, visitor.user_id).await;
        let refused = change(json!([seat, seat + 1, seat + 2])).await;
        assert_eq!(refused.refusal(), (403, INVALID.to_owned()));
        let without = app.request(Method::PUT, &format!("{path}/seats"));
        let without = without.as_person(visitor.user_id, UserRole::User);
        let without = without.json(&json!({"seatIds": [seat]})).send().await;
        assert_eq!(without.refusal(), (403, "ENTRY_TOKEN_REQUIRED".to_owned()));
        let mine = app.get(&path).as_person(visitor.user_id, UserRole::User).send().await;
        assert_eq!(mine.json()["reservation"]["seats"].as_array().map(Vec::len), Some(2));
        let released = app.request(Method::DELETE, &path).as_person(visitor.user_id, UserRole::User);
        assert_eq!(released.send().await.status, 200, "giving back needs no slot");
    }

    async fn r_2_clearing_a_room_ends_every_slot_at_once(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        let mut visitors = Vec::new();
        for way in WAYS {
            for _ in 0..2 {
                let visitor = shop.admit(way).await;
                shop.must_book(way, &visitor).await;
                visitors.push((way, visitor));
            }
        }
        for event_id in [shop.seated, shop.standing] {
            let path = format!("/api/admin/queue/{event_id}/clear");
            let cleared = app.post(&path).as_admin().json(&json!({"confirm": event_id}));
            let cleared = cleared.send().await;
            assert_eq!(cleared.status, 200, "{cleared:?}");
        }
        for (way, visitor) in visitors {
            shop.must_refuse(way, &visitor, "after the room was cleared").await;
            let again = shop.ask_queue(Method::POST, "check", way, visitor.user_id).await;
            shop.must_refuse(way, &visitor, "an older one").await;
            let again =
                Visitor { user_id: visitor.user_id, token: text(&again["entryToken"]) };
            shop.must_book(way, &again).await;
        }
    }

    /// Each purchase needs a slot of its own.
    async fn r_2_a_purchase_ends_the_slot_at_once(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let visitor = shop.admit(way).await;
            let kept = shop.long_lived(way, &visitor);
            shop.buy(way, &visitor).await;
            let status = shop.ask_queue(Method::GET, "status", way, visitor.user_id).await;
            assert_eq!(status["status"], "not_in_queue", "{status}");
            shop.must_refuse(way, &visitor, "after the purchase").await;
            shop.must_refuse(way, &kept, "after the purchase, kept").await;
            app.clock.advance(SECOND);
            let token = app.admit(visitor.user_id, shop.event(way)).await;
            let again = Visitor { user_id: visitor.user_id, token };
            shop.must_book(way, &again).await;
            shop.must_refuse(way, &visitor, "the one that bought").await;
        }
    }

    /// R-2, Q2: it ends ten minutes after its owner was last seen, and after half an hour anyway.
    async fn r_2_a_slot_ends_by_itself(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let visitor = shop.admit(way).await;
            let kept = shop.long_lived(way, &visitor);
            app.clock.advance(SLOT - SECOND);
            shop.must_book(way, &visitor).await;
            app.clock.advance(SLOT - SECOND);
            shop.must_refuse(way, &visitor, "it has expired").await;
            shop.must_book(way, &kept).await;
            app.clock.advance(SLOT);
            shop.must_refuse(way, &kept, "unseen for ten minutes").await;
            let status = shop.ask_queue(Method::GET, "status", way, visitor.user_id).await;
            assert_eq!(status["status"], "not_in_queue", "{status}");
            shop.must_refuse(way, &kept, "and it stays over").await;
        }
    }

    async fn r_2_nobody_stays_longer_than_the_longest_slot(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let visitor = shop.admit(way).await;
            let kept = shop.long_lived(way, &visitor);
            let (mut newest, step) = (visitor.clone(), SLOT_MAX / 6);
            for _ in 0..5 {
                app.clock.advance(step);
                let status = shop.ask_queue(Method::GET, "status", way, visitor.user_id).await;
                newest.token = text(&status["entryToken"]);
                shop.must_book(way, &newest).await;
            }
            app.clock.advance(step - SECOND);
            shop.must_book(way, &newest).await;
            shop.must_book(way, &kept).await;
            app.clock.advance(SECOND);
            for (name, token) in [("first", &visitor), ("newest", &newest), ("kept", &kept)] {
                shop.must_refuse(way, token, &format!("after the longest slot: {name}")).await;
            }
        }
    }

    /// D-4, D-5, D-6: nothing that a token says makes somebody else's slot one's own.
    async fn d_6_a_slot_is_its_owners_and_of_its_event(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let owner = shop.admit(way).await;
            let slot_id = app.slot_of(&owner.token);
            let elsewhere = match way {
                BookingPath::Seats | BookingPath::Best => BookingPath::Standing,
                BookingPath::Standing => BookingPath::Seats,
            };
            let other = shop.admit(elsewhere).await;
            let (stranger, event_id) = (app.ids.next_id(), shop.event(way));
            let forge = |user_id, slot_id| {
                Visitor { user_id, token: app.forge_entry(user_id, event_id, slot_id) }
            };
            let borrowed = Visitor { user_id: stranger, token: owner.token.clone() };
            let other_slot = app.slot_of(&other.token);
            for (name, visitor) in [
                ("another user's token", borrowed),
                ("another user's slot", forge(stranger, slot_id)),
                ("one's own slot of another event", forge(other.user_id, other_slot)),
                ("another user's slot of another event", forge(stranger, other_slot)),
                ("no slot", forge(stranger, Uuid::nil())),
                ("an invented slot", forge(stranger, app.ids.next_id())),
                ("an invented slot beside one's own", forge(owner.user_id, app.ids.next_id())),
                ("the event as the slot", forge(owner.user_id, event_id)),
                ("oneself as the slot", forge(owner.user_id, owner.user_id)),
            ] {
                shop.must_refuse(way, &visitor, name).await;
            }
            let refused = shop.book(way, &other).await;
            let code = "ENTRY_TOKEN_OTHER_EVENT".to_owned();
            assert_eq!(refused.refusal(), (403, code), "{way:?}");
            shop.must_book(way, &owner).await;
        }
    }

    /// Someone with two windows has one slot, and both may use it.
    async fn two_sessions_of_one_person_share_the_slot(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let first = shop.admit(way).await;
            let second = Visitor {
                user_id: first.user_id,
                token: app.admit(first.user_id, shop.event(way)).await,
            };
            assert_eq!(app.slot_of(&first.token), app.slot_of(&second.token));
            shop.must_book(way, &first).await;
            shop.must_book(way, &second).await;
            shop.ask_queue(Method::POST, "leave", way, first.user_id).await;
            shop.must_refuse(way, &first, "the window that left").await;
            shop.must_refuse(way, &second, "the other window").await;
        }
    }

    /// A user who waits holds no token, and cannot forge one (D-4).
    async fn d_4_who_waits_does_not_book(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let event_id = shop.event(way);
            let path = format!("/api/admin/queue/{event_id}/pause");
            assert_eq!(app.post(&path).as_admin().send().await.status, 200);
            let user_id = app.ids.next_id();
            let body = json!({"position": 1, "vwrPosition": 1, "status": "active"});
            let check = format!("/api/queue/check/{event_id}");
            let told = app.post(&check).as_person(user_id, UserRole::User).json(&body).send().await;
            let told = told.json();
            assert_eq!((&told["status"], &told["entryToken"]), (&json!("queued"), &Value::Null));
            for slot_id in [Uuid::nil(), user_id, app.ids.next_id()] {
                let token = app.forge_entry(user_id, event_id, slot_id);
                shop.must_refuse(way, &Visitor { user_id, token }, "who waits").await;
            }
            let path = format!("/api/admin/queue/{event_id}/resume");
            assert_eq!(app.post(&path).as_admin().send().await.status, 200);
            let token = eventually("they are let in", async || {
                app.clock.advance(SECOND);
                let told = shop.ask_queue(Method::GET, "status", way, user_id).await;
                told["entryToken"].as_str().map(str::to_owned)
            });
            let token = token.await;
            shop.must_book(way, &Visitor { user_id, token }).await;
        }
    }

    async fn a_slot_of_an_event_that_was_called_off_is_worth_nothing(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        let mut visitors = Vec::new();
        for way in WAYS {
            let visitor = shop.admit(way).await;
            shop.must_book(way, &visitor).await;
            visitors.push((way, visitor));
        }
        for event_id in [shop.seated, shop.standing] {
            let path = format!("/api/admin/events/{event_id}/cancel");
            let cancelled = app.post(&path).as_admin().json(&json!({"reason": "태풍"})).send().await;
            assert_eq!(cancelled.status, 200, "{cancelled:?}");
        }
        for (way, visitor) in visitors {
            eventually("the news arrive", async || {
                // Whichever of the two has heard of it first refuses.
                let refused = shop.book(way, &visitor).await;
                let path = "/api/reservations/my?status=pending";
                let mine = app.get(path).as_person(visitor.user_id, UserRole::User).send().await;
                app.clock.advance(SECOND);
                let is_over = matches!(refused.status.as_u16(), 403 | 409)
                    && ["EVENT_CANCELLED", INVALID].contains(&refused.refusal().1.as_str());
                (is_over && mine.json()["reservations"] == json!([])).then_some(())
            })
            .await;
        }
    }

    /// E-3: the owner of a hold sees and releases it without a slot.
    async fn e_3_what_is_ones_own_outlives_the_slot(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        for way in WAYS {
            let visitor = shop.admit(way).await;
            let held = shop.must_hold(way, &visitor).await;
            shop.ask_queue(Method::POST, "leave", way, visitor.user_id).await;
            let path = format!("/api/reservations/{}", text(&held["id"]));
            let mine = |method: Method, path: &str| {
                app.request(method, path).as_person(visitor.user_id, UserRole::User)
            };
            assert_eq!(mine(Method::GET, &path).send().await.status, 200);
            let cancelled = mine(Method::POST, &format!("{path}/cancel")).send().await;
            assert_eq!(cancelled.status, 200, "{cancelled:?}");
        }
    }

    /// The last: it goes far into the future.
    async fn a_slot_of_a_sale_that_is_over_is_worth_nothing(app: &TestApp) {
        let shop = AttackFixture::open(app).await;
        let end = "2026-12-20T00:00:00Z".parse::<urr_kernel::Timestamp>().unwrap();
        let rest = Duration::try_from(end.duration_since(app.clock.now())).unwrap();
        app.clock.advance(rest - SECOND);
        let mut visitors = Vec::new();
        for way in WAYS {
            let visitor = shop.admit(way).await;
            shop.must_book(way, &visitor).await;
            visitors.push((way, visitor));
        }
        app.clock.advance(SECOND);
        for (way, visitor) in visitors {
            shop.must_refuse(way, &visitor, "the sale is over").await;
        }
    }
}

mod restarting {
    use super::*;

    on_both_deployments! {
        /// Q10, R-2: after a restart who was in is in, and who was out is out.
        async fn r_2_a_restart_ends_no_slot_and_brings_none_back(app: TestApp) {
            let mut shop = AttackFixture::open(&app).await;
            let mut visitors = Vec::new();
            for way in WAYS {
                let (stays, leaves) = (shop.admit(way).await, shop.admit(way).await);
                shop.must_book(way, &leaves).await;
                shop.ask_queue(Method::POST, "leave", way, leaves.user_id).await;
                visitors.push((way, stays, leaves));
            }
            let AttackFixture { seated, standing, ticket_type, .. } = shop;
            let app = app.restart().await;
            let seat = AtomicU32::new(0);
            shop = AttackFixture { app: &app, seated, standing, ticket_type, seat };
            for (way, stays, leaves) in visitors {
                shop.must_book(way, &stays).await;
                shop.must_refuse(way, &leaves, "after the restart").await;
                shop.ask_queue(Method::POST, "leave", way, stays.user_id).await;
                shop.must_refuse(way, &stays, "left after the restart").await;
            }
            app.stop().await;
        }
    }
}
