//! House seats, complimentary tickets and the box office: nobody gets a seat twice, whoever is first.

use axum::http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::{Secret, Uuid};
use urr_service::data_keys::SealingKeys;
use urr_service::{Caller, DataKey, DataKeys, UserRole};
use urr_storage::{DbResult, Tx, params};
use urr_test::engines::contains;
use urr_ticket::{RequestedItems, ReserveRequest};

use crate::contract;
use crate::fixture::{MINUTE, World, hall, kind_name, new_sale};
use crate::operations::CallerIdentity;
use crate::organisers::fake_peers::FakePeers;
use crate::reader::HttpReader;

const MINA: Uuid = Uuid::from_u128(0xb01);
const JUNHO: Uuid = Uuid::from_u128(0xb02);
const STAFF: Uuid = Uuid::from_u128(0xb03);

/// An event of Mina's with two rows of five seats, and Mina herself.
async fn sale(world: &World) -> (Uuid, HttpReader) {
    let event_id = world.ids.next_id();
    let mut new = new_sale(event_id, hall(2, 5), &world.clock);
    new.facts.organiser_id = Some(MINA);
    assert!(world.sale_insert(new).await);
    (event_id, HttpReader::new(world).logged_in(MINA, UserRole::Organiser))
}

fn path(event_id: Uuid, rest: &str) -> String {
    format!("/api/admin/events/{event_id}/{rest}")
}

fn seats(seat_ids: &[u32]) -> Value {
    json!({ "places": { "seatIds": seat_ids }, "reason": "기술 좌석" })
}

fn sale_of_seats(seat_ids: &[u32]) -> Value {
    json!({ "places": { "seatIds": seat_ids }, "method": "cash" })
}

fn gift(seat_ids: &[u32]) -> Value {
    json!({
        "places": { "seatIds": seat_ids }, "reason": "초대", "guestName": "김하루",
        "guestEmail": "haru@example.com",
    })
}

async fn block(by: &HttpReader, event_id: Uuid, seat_ids: &[u32]) {
    let answer = by.post(&path(event_id, "house-seats/block"), &seats(seat_ids)).await;
    assert_eq!(answer.status, 204, "{answer:?}");
}

/// Whether a fan gets the seat.
async fn holds(world: &World, event_id: Uuid, seat_id: u32) -> bool {
    let requested = RequestedItems::of_seats(vec![seat_id]).unwrap();
    let request = ReserveRequest { user_id: world.ids.next_id(), event_id, requested, key: None };
    world.ticket.reserve(request, world.context()).await.is_ok()
}

/// Seats that can be bought.
async fn available(world: &World, event_id: Uuid) -> u32 {
    let all = world.ticket.list_availability(vec![event_id]).await.unwrap();
    all[&event_id].available
}

fn refused_seats(answer: &crate::reader::Answer, code: &str) -> Value {
    answer.refused(409, code)["seatIds"].clone()
}

async fn kinds(world: &World) -> Vec<String> {
    world.ticket.audit().await.unwrap().differences.iter().map(kind_name).collect()
}

contract! {
    async fn blocked_seats_are_not_for_sale_until_they_are_released(world: World) {
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &[1, 2]).await;
        // Twice is once.
        block(&mina, event_id, &[2]).await;
        assert_eq!(available(&world, event_id).await, 8);
        assert!(!holds(&world, event_id, 1).await);
        assert!(holds(&world, event_id, 0).await, "control: the seat beside it is free");
        world.clock.advance(10 * MINUTE);
        world.sweep().await;
        assert_eq!(available(&world, event_id).await, 8, "no sweep releases them");
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        let blocked = &listed["blocked"];
        assert_eq!(blocked[0]["seats"][0]["id"], 1);
        assert_eq!(blocked[0]["reason"], "기술 좌석");
        world.assert_agrees().await;
        let release = path(event_id, "house-seats/release");
        let refused = mina.post(&release, &seats(&[1, 3])).await;
        assert_eq!(refused_seats(&refused, "SEAT_NOT_BLOCKED"), json!([3]));
        assert_eq!(available(&world, event_id).await, 8, "all or nothing");
        assert_eq!(mina.post(&release, &seats(&[1, 2])).await.status, 204);
        assert_eq!(available(&world, event_id).await, 10);
        assert!(holds(&world, event_id, 1).await);
        let told = world.announced("HOUSE_SEATS_CHANGED").await;
        let counts: Vec<&Value> = told.iter().map(|event| &event["blocked"]).collect();
        assert_eq!(counts, [2, 2, 0]);
        let log = "select count(*) as n from admin_actions where action like 'HOUSE_SEATS_%'";
        assert_eq!(world.number(log).await, 3);
        world.assert_agrees().await;
    }

    async fn a_seat_that_is_held_or_sold_keeps_the_others_from_being_blocked(world: World) {
        let (event_id, mina) = sale(&world).await;
        world.hold(event_id, world.ids.next_id(), &[2]).await;
        let held = world.hold(event_id, world.ids.next_id(), &[4]).await;
        world.pay(&held).await;
        let refused = mina.post(&path(event_id, "house-seats/block"), &seats(&[1, 2, 3, 4])).await;
        assert_eq!(refused_seats(&refused, "SEAT_TAKEN"), json!([2, 4]));
        assert_eq!(available(&world, event_id).await, 8);
        // A whole row, and what of a grade is left.
        let row = json!({ "places": { "row": "2", "grade": "R" }, "reason": "무대" });
        assert_eq!(mina.post(&path(event_id, "house-seats/block"), &row).await.status, 204);
        assert_eq!(available(&world, event_id).await, 3);
        for body in [
            json!({ "places": {}, "reason": "x" }),
            json!({ "places": { "seatIds": [10] }, "reason": "x" }),
            json!({ "places": { "row": "9" }, "reason": "x" }),
        ] {
            let refused = mina.post(&path(event_id, "house-seats/block"), &body).await;
            refused.refused(400, "INVALID_HOUSE_SEATS");
        }
        let silent = json!({ "places": { "seatIds": [0] }, "reason": " " });
        let refused = mina.post(&path(event_id, "house-seats/block"), &silent).await;
        refused.refused(400, "INVALID_REASON");
        world.assert_agrees().await;
    }

    async fn standing_tickets_are_blocked_by_number(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let admin = HttpReader::new(&world).logged_in(MINA, UserRole::Admin);
        let of = |quantity: u32, from_blocked: bool| {
            json!([{ "ticketTypeId": type_id, "quantity": quantity, "fromBlocked": from_blocked }])
        };
        let body = |quantity| json!({ "places": { "items": of(quantity, false) }, "reason": "협찬" });
        let block = path(event_id, "house-seats/block");
        for _ in 0..2 {
            let answer = admin.post_once(&block, &body(4), "one").await;
            assert_eq!(answer.status, 204, "{answer:?}");
        }
        assert_eq!(available(&world, event_id).await, 6, "a retry is not a second block");
        admin.post(&block, &body(7)).await.refused(409, "NOT_ENOUGH");
        world.hold_tickets(event_id, type_id, 4).await;
        let sold = json!({ "places": { "items": of(3, true) }, "method": "card", "receiptNumber": "7" });
        let answer = admin.post(&path(event_id, "box-office"), &sold).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(answer.json()["totalAmount"], 3 * 88_000);
        assert_eq!(answer.json()["tickets"].as_array().unwrap().len(), 3);
        let refused = admin.post(&path(event_id, "box-office"), &sold).await;
        refused.refused(409, "NOT_ENOUGH_BLOCKED");
        let release = path(event_id, "house-seats/release");
        admin.post(&release, &body(2)).await.refused(409, "NOT_ENOUGH_BLOCKED");
        assert_eq!(admin.post(&release, &body(1)).await.status, 204);
        assert_eq!(available(&world, event_id).await, 3);
        world.assert_agrees().await;
    }

    async fn fans_who_wait_for_seats_are_told_of_a_release(world: World) {
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &(0..10).collect::<Vec<_>>()).await;
        let fan = world.waiting_fan(event_id, 2).await;
        assert!(world.told().await.is_empty());
        let answer = mina.post(&path(event_id, "house-seats/release"), &seats(&[3, 4])).await;
        assert_eq!(answer.status, 204);
        assert_eq!(world.told().await, [fan]);
    }

    async fn of_a_block_and_a_hold_at_the_same_moment_one_is_first(world: World) {
        let (mut blocked, mut held) = (0, 0);
        for round in 0..5 {
            let (event_id, mina) = sale(&world).await;
            let mut racing = JoinSet::new();
            for seat_id in 0..10 {
                let (mina, body) = (mina.clone(), seats(&[seat_id]));
                let block = path(event_id, "house-seats/block");
                racing.spawn(async move { mina.post(&block, &body).await.status == 204 });
            }
            let fans: Vec<bool> = futures_util::future::join_all(
                (0..10).map(|seat_id| holds(&world, event_id, (seat_id + round) % 10)),
            )
            .await;
            let won = racing.join_all().await.into_iter().filter(|is_won| *is_won).count();
            let fans = fans.into_iter().filter(|is_won| *is_won).count();
            assert_eq!(won + fans, 10, "each seat has one of them");
            (blocked, held) = (blocked + won, held + fans);
        }
        assert_eq!(blocked + held, 50);
        world.assert_agrees().await;
    }

    async fn of_gifts_and_fans_who_want_one_seat_one_gets_it(world: World) {
        for _ in 0..5 {
            let (event_id, mina) = sale(&world).await;
            let mut racing = JoinSet::new();
            for number in 0..20 {
                let (mina, issue) = (mina.clone(), path(event_id, "complimentary-tickets"));
                racing.spawn(async move {
                    mina.post(&issue, &gift(&[number % 10])).await.status == 201
                });
            }
            let fans =
                futures_util::future::join_all((0..10).map(|id| holds(&world, event_id, id))).await;
            let given = racing.join_all().await.into_iter().filter(|is_won| *is_won).count();
            let held = fans.into_iter().filter(|is_won| *is_won).count();
            assert_eq!(given + held, 10);
        }
        let valid = "select count(*) as n from tickets where is_valid";
        let gifts = "select count(*) as n from reservations where kind = 'complimentary'";
        assert_eq!(world.number(valid).await, world.number(gifts).await);
        world.assert_agrees().await;
    }

    async fn of_two_releases_at_the_same_moment_one_is_first(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let admin = HttpReader::new(&world).logged_in(MINA, UserRole::Admin);
        let body = |quantity: u32| {
            let items = json!([{ "ticketTypeId": type_id, "quantity": quantity }]);
            json!({ "places": { "items": items }, "reason": "협찬" })
        };
        let answer = admin.post(&path(event_id, "house-seats/block"), &body(4)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        let mut racing = JoinSet::new();
        for _ in 0..10 {
            let (admin, body) = (admin.clone(), body(3));
            let release = path(event_id, "house-seats/release");
            racing.spawn(async move { admin.post(&release, &body).await.status == 204 });
        }
        let released = racing.join_all().await.into_iter().filter(|is_won| *is_won).count();
        assert_eq!((released, available(&world, event_id).await), (1, 9));
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &[0]).await;
        let mut racing = JoinSet::new();
        for _ in 0..10 {
            let (mina, release) = (mina.clone(), path(event_id, "house-seats/release"));
            racing.spawn(async move { mina.post(&release, &seats(&[0])).await.status == 204 });
        }
        let released = racing.join_all().await.into_iter().filter(|is_won| *is_won).count();
        assert_eq!((released, available(&world, event_id).await), (1, 10));
        world.assert_agrees().await;
    }

    async fn of_sellers_and_fans_who_want_one_seat_one_gets_it(world: World) {
        for _ in 0..5 {
            let (event_id, mina) = sale(&world).await;
            let mut racing = JoinSet::new();
            for number in 0..20 {
                let seat_id = number % 10;
                let (mina, sale) = (mina.clone(), path(event_id, "box-office"));
                racing.spawn(async move {
                    mina.post(&sale, &sale_of_seats(&[seat_id])).await.status == 201
                });
            }
            let fans =
                futures_util::future::join_all((0..10).map(|id| holds(&world, event_id, id))).await;
            let sold = racing.join_all().await.into_iter().filter(|is_won| *is_won).count();
            let held = fans.into_iter().filter(|is_won| *is_won).count();
            assert_eq!(sold + held, 10);
        }
        let sold = "select count(*) as n from tickets where is_valid";
        let reservations = "select count(*) as n from reservations where kind = 'box_office'";
        assert_eq!(world.number(sold).await, world.number(reservations).await);
        world.assert_agrees().await;
    }

    async fn a_sale_at_the_box_office_is_paid_at_once_also_when_the_sale_is_over(world: World) {
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &[0]).await;
        world.clock.advance(300 * 60 * MINUTE);
        assert!(!holds(&world, event_id, 1).await, "control: the sale is over");
        let body = json!({ "places": { "seatIds": [0, 1] }, "method": "card", "receiptNumber": "0071" });
        let sold = mina.post_once(&path(event_id, "box-office"), &body, "sale-1").await;
        assert_eq!(sold.status, 201, "{sold:?}");
        let (sold, again) =
            (sold.json(), mina.post_once(&path(event_id, "box-office"), &body, "sale-1").await);
        assert_eq!(again.json(), sold, "a retry gets the first answer");
        let other = mina.post_once(&path(event_id, "box-office"), &sale_of_seats(&[2]), "sale-1").await;
        other.refused(422, "IDEMPOTENCY_KEY_REUSED");
        let refused = mina.post(&path(event_id, "box-office"), &sale_of_seats(&[1, 2])).await;
        assert_eq!(refused_seats(&refused, "SEAT_TAKEN"), json!([1]));
        let announced = world.announced("BOX_OFFICE_SOLD").await;
        assert_eq!(announced.len(), 1);
        let event = &announced[0];
        assert_eq!(event["totalAmount"], 200_000);
        assert_eq!(event["paymentMethod"], "box_office_card");
        assert_eq!(event["receiptNumber"], "0071");
        // The tickets are valid at the door.
        let payload = sold["tickets"][0]["qr"].as_str().unwrap().to_owned();
        world.ticket.check_in(world.scan(payload, event_id)).await.unwrap();
        // One of them is taken back.
        let id = sold["reservationId"].as_str().unwrap();
        let refund = path(event_id, &format!("box-office/{id}/refund"));
        let second = json!({ "ticketNumbers": [sold["tickets"][1]["number"]] });
        for _ in 0..2 {
            let answer = mina.post(&refund, &second).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.json()["totalAmount"], 100_000);
        }
        let back = world.announced("RESERVATION_PARTLY_CANCELLED").await;
        assert_eq!(back.len(), 1);
        assert_eq!(back[0]["refundAmount"], 100_000);
        assert_eq!(back[0]["reason"], "REFUNDED_AT_BOX_OFFICE");
        assert_eq!(available(&world, event_id).await, 9);
        let history = mina.get(&format!("/api/admin/reservations/{id}/history")).await.json();
        assert_eq!(history["entries"][0]["kind"], "box_office");
        world.assert_agrees().await;
    }

    async fn complimentary_tickets_cost_nothing_and_are_valid_at_the_door(world: World) {
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &[0]).await;
        let issue = path(event_id, "complimentary-tickets");
        let issued = mina.post_once(&issue, &gift(&[0, 1, 2, 3, 4, 5]), "gift").await;
        assert_eq!(issued.status, 201, "more than a buyer may have: {issued:?}");
        let issued = issued.json();
        assert_eq!((&issued["totalAmount"], available(&world, event_id).await), (&json!(0), 4));
        let again = mina.post_once(&issue, &gift(&[0, 1, 2, 3, 4, 5]), "gift").await;
        assert_eq!(again.json(), issued);
        assert_eq!(world.announced("COMPLIMENTARY_ISSUED").await.len(), 1);
        assert!(world.announced("BOX_OFFICE_SOLD").await.is_empty());
        let id = issued["reservationId"].as_str().unwrap();
        let shown = mina.get(&format!("/api/admin/reservations/{id}")).await.json();
        assert_eq!(shown["reservation"]["kind"], "complimentary");
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        assert_eq!(listed["reservations"][0]["guestName"], "김하루");
        // It is revoked together, and only while nobody is inside.
        let one = json!({ "reason": "x", "ticketNumbers": [issued["tickets"][0]["number"]] });
        let refused = mina.post(&format!("/api/admin/reservations/{id}/cancel"), &one).await;
        refused.refused(409, "TICKETS_COMPLIMENTARY");
        let payload = issued["tickets"][0]["qr"].as_str().unwrap().to_owned();
        let revoke = path(event_id, &format!("complimentary-tickets/{id}/revoke"));
        world.assert_agrees().await;
        world.ticket.check_in(world.scan(payload, event_id)).await.unwrap();
        mina.post(&revoke, &json!({ "reason": "x" })).await.refused(409, "ALREADY_CHECKED_IN");
        for body in [
            json!({ "places": { "seatIds": [9] }, "reason": "x" }),
            json!({ "places": { "seatIds": [9] }, "reason": "x", "guestName": "a", "guestEmail": "b" }),
        ] {
            mina.post(&issue, &body).await.refused(400, "INVALID_GUEST");
        }
    }

    async fn names_and_addresses_of_guests_cannot_be_read_in_what_is_stored(world: World) {
        let (event_id, mina) = sale(&world).await;
        let issue = path(event_id, "complimentary-tickets");
        let body = json!({
            "places": { "seatIds": [0] }, "reason": "협찬사 초대",
            "guestName": "새장 속의 카나리아", "guestEmail": "Canary.Bird@Example.com",
        });
        let issued = mina.post_once(&issue, &body, "gift-1").await;
        assert_eq!(issued.status, 201, "{issued:?}");
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        let guest = &listed["reservations"][0];
        assert_eq!(guest["guestName"], "새장 속의 카나리아");
        assert_eq!(guest["guestEmail"], "Canary.Bird@Example.com");
        let stored = world.stored_bytes();
        for personal in ["카나리아", "anary", "Canary.Bird@Example.com"] {
            assert!(!contains(&stored, personal), "{personal}");
        }
        // The control: what is stored in clear is found.
        assert!(contains(&stored, "협찬사 초대") && contains(&stored, "COMPLIMENTARY_ISSUED"));
    }

    async fn guests_are_found_by_their_whole_name_or_address(world: World) {
        let (event_id, _) = sale(&world).await;
        let peers = FakePeers::default();
        let ticket = world.ticket_with_peers(peers.clients(&world));
        let http = HttpReader::of(&ticket, &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let issued = mina.post(&path(event_id, "complimentary-tickets"), &gift(&[0])).await.json();
        let search = async |reader: &HttpReader, text: &str| {
            let found = reader.get(&format!("/api/admin/reservations?q={text}")).await.json();
            found["reservations"].clone()
        };
        let haru = "%EA%B9%80%ED%95%98%EB%A3%A8";
        for (text, count) in
            [(haru, 1), ("HARU@example.com", 1), ("haru", 0), ("%EA%B9%80", 0), ("@example.com", 0)]
        {
            let found = search(&mina, text).await;
            assert_eq!(found.as_array().unwrap().len(), count, "{text}");
        }
        let found = search(&mina, haru).await;
        assert_eq!(found[0]["reservationNumber"], issued["reservationNumber"]);
        let masked = json!({ "name": "김하루", "email": "h***@example.com" });
        assert_eq!(found[0]["buyer"], masked);
        let support = http.logged_in(STAFF, UserRole::Support);
        assert_eq!(search(&support, haru).await[0]["buyer"]["email"], "haru@example.com");
        // Another organiser does not find them.
        let junho = http.logged_in(JUNHO, UserRole::Organiser);
        assert_eq!(search(&junho, haru).await, json!([]));
        // A guest with an account is known by the account alone.
        let account = world.ids.next_id();
        peers.register(account, "이소라", "sora@example.com");
        let body = json!({
            "places": { "seatIds": [1] }, "reason": "초대", "guestName": "소라",
            "guestEmail": "sora@example.com",
        });
        assert_eq!(mina.post(&path(event_id, "complimentary-tickets"), &body).await.status, 201);
        assert_eq!(world.number("select count(*) as n from house_guests").await, 1);
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        assert_eq!(listed["reservations"][0]["guestName"], "이소라");
        assert_eq!(listed["reservations"][0]["guestEmail"], "s***@example.com");
        peers.set_away(true);
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        assert_eq!(listed["reservations"][0]["guestName"], Value::Null);
        assert_eq!(listed["reservations"][1]["guestName"], "김하루");
    }

    async fn only_the_mail_service_learns_the_address_of_a_guest(world: World) {
        let (event_id, mina) = sale(&world).await;
        let issued = mina.post(&path(event_id, "complimentary-tickets"), &gift(&[0])).await.json();
        let id = issued["reservationId"].as_str().unwrap();
        let summary = format!("/internal/ticket/reservations/{id}/summary");
        let ask = async |who| {
            let who = CallerIdentity::Service(who);
            world.call(who, Method::GET, &summary, Value::Null).await
        };
        assert_eq!(ask(Caller::Mail).await.1["guestEmail"], "haru@example.com");
        assert_eq!(ask(Caller::Queue).await.0, 403);
        let told = world.announced("COMPLIMENTARY_ISSUED").await;
        assert!(!json!(told).to_string().contains("haru"), "{told:?}");
    }

    async fn guests_are_erased_some_time_after_their_event_or_their_tickets(world: World) {
        let (event_id, mina) = sale(&world).await;
        let issue = path(event_id, "complimentary-tickets");
        mina.post(&issue, &gift(&[0])).await.json();
        let revoked = mina.post(&issue, &gift(&[1])).await.json();
        let id = revoked["reservationId"].as_str().unwrap();
        let revoke = path(event_id, &format!("complimentary-tickets/{id}/revoke"));
        assert_eq!(mina.post(&revoke, &json!({ "reason": "불참" })).await.status, 200);
        let guests = "select count(*) as n from house_guests";
        let day = 24 * 60 * MINUTE;
        // The event begins in 20 days.
        for (days, left) in [(29, 2), (2, 1), (18, 1), (2, 0)] {
            world.clock.advance(days * day);
            world.ticket.erase_guests(500).await.unwrap();
            assert_eq!(world.number(guests).await, left, "after {days} more days");
        }
        let listed = mina.get(&path(event_id, "house-seats")).await.json();
        assert_eq!(listed["reservations"].as_array().unwrap().len(), 2, "the tickets stay");
        assert_eq!(listed["reservations"][0]["guestName"], Value::Null);
    }

    async fn the_key_of_guests_is_changed_while_everything_goes_on(world: World) {
        let key = |version| DataKey { version, secret: Secret::new(format!("key {version}")) };
        let (event_id, _) = sale(&world).await;
        let with = |keys| world.ticket_with_data_keys(keys);
        let old = with(DataKeys::new(key(1), &[]).unwrap());
        let both = with(DataKeys::new(key(2), &[key(1)]).unwrap());
        let new = with(DataKeys::new(key(2), &[]).unwrap());
        let organiser = |ticket| HttpReader::of(ticket, &world).logged_in(MINA, UserRole::Organiser);
        for seat_id in 0..3 {
            let issue = path(event_id, "complimentary-tickets");
            assert_eq!(organiser(&old).post(&issue, &gift(&[seat_id])).await.status, 201);
        }
        let name = async |ticket| {
            let listed = organiser(ticket).get(&path(event_id, "house-seats")).await.json();
            listed["reservations"][2]["guestName"].clone()
        };
        assert_eq!(name(&both).await, "김하루");
        assert_eq!(name(&new).await, Value::Null, "control: the new key alone does not open it");
        let first = both.rotate_guest_keys(2).await.unwrap();
        assert_eq!((first.rotated, first.remaining), (2, 1));
        let second = both.rotate_guest_keys(2).await.unwrap();
        assert_eq!((second.rotated, second.remaining), (1, 0));
        assert_eq!(name(&new).await, "김하루");
        assert_eq!(name(&old).await, Value::Null, "control: the old key opens nothing");
    }

    /// Version 0.1.0 in processes of their own. The control is the list before.
    async fn guests_that_were_sealed_with_an_empty_key_are_sealed_anew(world: World) {
        let (event_id, mina) = sale(&world).await;
        for seat_id in 0..3 {
            let issue = path(event_id, "complimentary-tickets");
            assert_eq!(mina.post(&issue, &gift(&[seat_id])).await.status, 201);
        }
        let seal_with_the_empty_key = |tx: &mut Tx<'_>| {
            let sql = "select reservation_id from house_guests order by reservation_id limit 1";
            let id: Uuid = tx.query_one(sql, &[], |row| row.get("reservation_id"))?;
            let keys = SealingKeys::of_empty_key("urr-ticket", 1);
            let name = keys.seal(&format!("house_guests/name/{id}"), "김하루");
            let sql = "update house_guests set name_cipher = $2, email_cipher = null \
                       where reservation_id = $1";
            tx.execute(sql, params![id, name])
        };
        let changed: DbResult<u64> = world.db.write(seal_with_the_empty_key).await;
        assert_eq!(changed, Ok(1));
        let unknown = async || {
            let listed = mina.get(&path(event_id, "house-seats")).await.json();
            let listed = listed["reservations"].as_array().unwrap().clone();
            listed.iter().filter(|one| one["guestName"].is_null()).count()
        };
        assert_eq!(unknown().await, 1);
        assert_eq!(world.ticket.reseal_guests_of_empty_key(2).await, Ok(1));
        assert_eq!(unknown().await, 0);
        assert_eq!(world.ticket.reseal_guests_of_empty_key(2).await, Ok(0));
    }

    async fn revoked_tickets_are_void_and_their_seats_blocked_or_free(world: World) {
        let (event_id, mina) = sale(&world).await;
        for (seat_id, is_blocked) in [(0, true), (1, false)] {
            let issued =
                mina.post(&path(event_id, "complimentary-tickets"), &gift(&[seat_id])).await.json();
            let id = issued["reservationId"].as_str().unwrap();
            let revoke = path(event_id, &format!("complimentary-tickets/{id}/revoke"));
            let body = json!({ "reason": "불참", "blockAgain": is_blocked });
            for _ in 0..2 {
                let answer = mina.post(&revoke, &body).await;
                assert_eq!((answer.status.as_u16(), &answer.json()["status"]), (200, &json!("cancelled")));
            }
            assert_eq!(holds(&world, event_id, seat_id).await, !is_blocked);
            let payload = issued["tickets"][0]["qr"].as_str().unwrap().to_owned();
            assert!(world.ticket.check_in(world.scan(payload, event_id)).await.is_err());
        }
        let refunding = "select count(*) as n from reservations where payment_status = 'refunding'";
        assert_eq!(world.number(refunding).await, 0, "there is nothing to refund");
        world.assert_agrees().await;
    }

    async fn complimentary_tickets_of_an_account_are_no_purchase(world: World) {
        let (event_id, mina) = sale(&world).await;
        let fan = world.ids.next_id();
        let body = json!({ "places": { "seatIds": [0, 1, 2, 3] }, "reason": "당첨", "userId": fan });
        let issued = mina.post(&path(event_id, "complimentary-tickets"), &body).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        let id = issued.json()["reservationId"].as_str().unwrap().to_owned();
        // They do not count towards the limit of four.
        world.hold(event_id, fan, &[5, 6, 7, 8]).await;
        let theirs = HttpReader::new(&world).logged_in(fan, UserRole::User);
        let listed = theirs.post("/api/transfers", &json!({ "reservationId": id })).await;
        listed.refused(409, "TICKET_NOT_FOR_SALE");
        let cancelled = theirs.request(Method::POST, &format!("/api/reservations/{id}/cancel")).await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        world.assert_agrees().await;
    }

    async fn only_those_who_may_act_on_an_event_have_its_house_seats(world: World) {
        let (event_id, mina) = sale(&world).await;
        let junho = HttpReader::new(&world).logged_in(JUNHO, UserRole::Organiser);
        let staff = HttpReader::new(&world).logged_in(STAFF, UserRole::Staff);
        for (rest, body) in [
            ("house-seats/block", seats(&[0])),
            ("house-seats/release", seats(&[0])),
            ("complimentary-tickets", gift(&[0])),
            ("box-office", sale_of_seats(&[0])),
        ] {
            junho.post(&path(event_id, rest), &body).await.refused(403, "NOT_YOUR_EVENT");
        }
        junho.get(&path(event_id, "house-seats")).await.refused(403, "NOT_YOUR_EVENT");
        staff.post(&path(event_id, "house-seats/block"), &seats(&[0])).await.refused(403, "ROLE_REQUIRED");
        let sell = path(event_id, "box-office");
        staff.post(&sell, &sale_of_seats(&[0])).await.refused(403, "NOT_YOUR_EVENT");
        let assign = path(event_id, &format!("staff/{STAFF}"));
        assert_eq!(mina.request(Method::PUT, &assign).await.status, 204);
        staff.post(&sell, &sale_of_seats(&[0])).await.refused(403, "NOT_YOUR_EVENT");
        let map = path(event_id, "box-office/seat-map");
        let may_sell = async |who: &HttpReader| {
            let events = who.get("/api/admin/check-ins/events").await.json();
            events["events"][0]["maySell"].clone()
        };
        for shown in [&sell, &map] {
            staff.get(shown).await.refused(403, "NOT_YOUR_EVENT");
            junho.get(shown).await.refused(403, "NOT_YOUR_EVENT");
        }
        assert_eq!((may_sell(&staff).await, may_sell(&mina).await), (json!(false), json!(true)));
        assert_eq!(mina.request(Method::PUT, &format!("{assign}?maySell=true")).await.status, 204);
        assert_eq!(staff.post(&sell, &sale_of_seats(&[0])).await.status, 201);
        assert_eq!(may_sell(&staff).await, true);
        assert_eq!(staff.get(&map).await.status, 200);
        mina.post(&path(event_id, "complimentary-tickets"), &gift(&[3])).await.json();
        let sales = staff.get(&sell).await.json();
        let sales = sales["sales"].as_array().unwrap();
        assert_eq!((sales.len(), &sales[0]["kind"]), (1, &json!("box_office")), "no guests");
        // A sale of one event is not refunded at another.
        let (other, _) = sale(&world).await;
        let id = world.announced("BOX_OFFICE_SOLD").await[0]["reservationId"].clone();
        let refund = path(other, &format!("box-office/{}/refund", id.as_str().unwrap()));
        mina.post(&refund, &json!({})).await.refused(404, "RESERVATION_NOT_FOUND");
        let held = world.hold(event_id, world.ids.next_id(), &[5]).await;
        let bought = world.pay(&held).await.id();
        let refund = path(event_id, &format!("box-office/{}/refund", bought.0));
        mina.post(&refund, &json!({})).await.refused(409, "NOT_SOLD_HERE");
    }

    async fn the_audit_finds_a_blocked_seat_with_a_ticket(world: World) {
        let (event_id, mina) = sale(&world).await;
        block(&mina, event_id, &[0, 1]).await;
        let held = world.hold(event_id, world.ids.next_id(), &[2]).await;
        world.pay(&held).await;
        world.assert_agrees().await;
        world.execute("update tickets set seat_id = 0 where seat_id = 2").await;
        assert_eq!(kinds(&world).await, ["houseSeat"]);
        world.execute("update tickets set seat_id = 2 where seat_id = 0").await;
        world.execute("delete from house_seats where seat_id = 1").await;
        assert_eq!(kinds(&world).await, ["houseSeat"]);
    }

    async fn the_audit_finds_a_complimentary_ticket_with_money(world: World) {
        let (event_id, mina) = sale(&world).await;
        mina.post(&path(event_id, "complimentary-tickets"), &gift(&[0])).await.json();
        world.assert_agrees().await;
        world.execute("update reservations set payment_id = id where kind = 'complimentary'").await;
        assert_eq!(kinds(&world).await, ["complimentary", "payment"]);
    }

    async fn the_audit_finds_a_sale_without_a_payment(world: World) {
        let (event_id, mina) = sale(&world).await;
        mina.post(&path(event_id, "box-office"), &sale_of_seats(&[0])).await.json();
        world.assert_agrees().await;
        world.execute("update reservations set payment_id = null where kind = 'box_office'").await;
        assert_eq!(kinds(&world).await, ["payment"]);
    }
}
