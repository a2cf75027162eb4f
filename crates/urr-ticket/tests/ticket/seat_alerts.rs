//! Returned seats: fans are told in the order of asking, with a head start each, and once.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_ticket::{
    AlertSettings, CancelTickets, ChangeSeats, Sweeper, TicketCanceller, TicketSettings,
};

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall};
use crate::operations::{CallerIdentity, PaidReservation};

/// As it is set by default.
pub const HEAD_START: Duration = Duration::from_secs(180);

impl World {
    pub async fn ask_seats(&self, user_id: Uuid, event_id: Uuid, body: Value) -> (u16, Value) {
        let path = format!("/api/alerts/events/{event_id}/seats");
        self.call(CallerIdentity::User(user_id), Method::PUT, &path, body).await
    }

    /// A fan who waits for this many seats of grade R.
    pub async fn waiting_fan(&self, event_id: Uuid, quantity: u32) -> Uuid {
        let user_id = self.ids.next_id();
        let body = json!({"grade": "R", "quantity": quantity});
        let (status, body) = self.ask_seats(user_id, event_id, body).await;
        assert_eq!(status, 200, "{body}");
        user_id
    }

    /// Looks at who is to be told, and returns all who were told so far.
    pub async fn told(&self) -> Vec<Uuid> {
        self.ticket.tell_seat_alerts().await.unwrap();
        let told = self.announced("SEAT_ALERT_DUE").await;
        told.iter().map(|event| event["userId"].as_str().unwrap().parse().unwrap()).collect()
    }

    /// An event of which everything was bought: two seats each.
    pub async fn sold_out(&self, pairs: u32) -> (Uuid, Vec<PaidReservation>) {
        let seats = u16::try_from(2 * pairs).unwrap();
        let event_id = self.open_sale(hall(1, seats)).await;
        let mut sold = Vec::new();
        for pair in 0..pairs {
            let seat_ids = [2 * pair, 2 * pair + 1];
            let held = self.hold(event_id, self.ids.next_id(), &seat_ids).await;
            sold.push(self.pay(&held).await);
        }
        (event_id, sold)
    }

    pub async fn cancel(&self, paid: &PaidReservation) {
        let owner = paid.record.reservation.user_id;
        self.ticket.cancel_reservation(paid.id(), owner, self.context()).await.unwrap();
    }
}

contract! {
    async fn fans_are_told_in_the_order_of_asking_with_a_head_start_each(world: World) {
        let (event_id, sold) = world.sold_out(2).await;
        let [first, second, third] = [
            world.waiting_fan(event_id, 2).await,
            world.waiting_fan(event_id, 1).await,
            world.waiting_fan(event_id, 2).await,
        ];
        assert!(world.told().await.is_empty(), "nothing has returned");
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [first]);
        let told = &world.announced("SEAT_ALERT_DUE").await[0];
        assert_eq!((&told["grade"], &told["quantity"]), (&json!("R"), &json!(2)));
        assert_eq!(told["headStartUntil"], json!(world.clock.now() + HEAD_START));
        world.clock.advance(HEAD_START - SECOND);
        assert_eq!(world.told().await, [first]);
        world.clock.advance(SECOND);
        // One of the two seats is left for nobody: the third wants two.
        assert_eq!(world.told().await, [first, second]);
        world.clock.advance(HEAD_START);
        assert_eq!(world.told().await, [first, second, third]);
        for _ in 0..20 {
            world.clock.advance(MINUTE);
            assert_eq!(world.told().await.len(), 3, "everybody is told once");
        }
        let alerts = world.alerts_of(first).await;
        assert_eq!(alerts["seatAlerts"][0]["status"], "told");
    }

    /// However a seat comes back, who waits for it is told.
    async fn every_way_in_which_seats_return_is_noticed(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let paid = world.pay(&world.hold(event_id, mina, &[0, 1]).await).await;
        let held = world.hold(event_id, world.ids.next_id(), &[2]).await;
        let released = world.hold(event_id, world.ids.next_id(), &[3]).await;
        let last = world.hold(event_id, world.ids.next_id(), &[4]).await;
        let fans = [
            world.waiting_fan(event_id, 1).await,
            world.waiting_fan(event_id, 1).await,
            world.waiting_fan(event_id, 1).await,
            world.waiting_fan(event_id, 1).await,
        ];
        assert!(world.told().await.is_empty());
        let details = world.ticket.my_reservation(paid.id(), mina).await.unwrap();
        let request = CancelTickets {
            ticket_numbers: vec![details.tickets[0].number.clone()],
            by: TicketCanceller::Owner(mina),
        };
        world.ticket.cancel_tickets(paid.id(), request, world.context()).await.unwrap();
        assert_eq!(world.told().await, fans[..1], "a ticket was cancelled");
        let (id, owner) = (released.reservation.id, released.reservation.user_id);
        world.ticket.release_hold(id, owner, None, world.context()).await.unwrap();
        assert_eq!(world.told().await, fans[..2], "a hold was released");
        // The fan who was told takes the seat and then another one instead.
        let taken = world.hold(event_id, fans[0], &[0]).await;
        let change =
            ChangeSeats { user_id: fans[0], seat_ids: vec![3], fencing_token: None };
        world.ticket.change_seats(taken.reservation.id, change, world.context()).await.unwrap();
        world.clock.advance(300 * SECOND);
        Sweeper::new(world.ticket.clone()).expire_overdue().await.unwrap();
        assert_eq!(world.told().await, fans, "holds expired, and a seat was given up");
        assert_eq!(held.reservation.event_id, last.reservation.event_id);
        world.assert_agrees().await;
    }

    async fn several_processes_tell_a_fan_once(world: World) {
        let (event_id, sold) = world.sold_out(4).await;
        for _ in 0..8 {
            world.waiting_fan(event_id, 1).await;
        }
        for paid in &sold {
            world.cancel(paid).await;
        }
        let mut processes = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let ticket = world.ticket_with(TicketSettings::default());
            processes.spawn(async move { ticket.tell_seat_alerts().await });
        }
        for told in processes.join_all().await {
            told.unwrap();
        }
        let told = world.told().await;
        let distinct: std::collections::BTreeSet<_> = told.iter().collect();
        assert_eq!((told.len(), distinct.len()), (8, 8));
    }

    async fn a_hundred_who_ask_at_once_are_in_one_order(world: World) {
        let (event_id, _sold) = world.sold_out(1).await;
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let (ticket, user_id) = (world.ticket.clone(), world.ids.next_id());
            asking.spawn(async move {
                let subject = urr_ticket::AlertSubject::grade("R");
                let ask = urr_ticket::AskSeatAlert { event_id, user_id, subject, quantity: 1 };
                ticket.ask_seat_alert(ask).await
            });
        }
        for asked in asking.join_all().await {
            asked.unwrap();
        }
        let sql = "select count(distinct number) as n from seat_alerts";
        assert_eq!(world.number(sql).await, 100);
    }

    async fn who_has_bought_since_does_not_wait_any_more(world: World) {
        let (event_id, sold) = world.sold_out(2).await;
        let buyer = world.waiting_fan(event_id, 1).await;
        let second = world.waiting_fan(event_id, 1).await;
        let (status, body) = world.ask_seats(buyer, event_id, json!({"quantity": 1})).await;
        assert_eq!(status, 200, "{body}");
        let third = world.waiting_fan(event_id, 1).await;
        world.clock.advance(SECOND);
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [buyer, second]);
        let held = world.hold(event_id, buyer, &[0]).await;
        let waiting = async |fan| {
            let alerts = world.alerts_of(fan).await["seatAlerts"].clone();
            alerts.as_array().unwrap().iter().filter(|one| one["status"] == "waiting").count()
        };
        world.ticket.end_seat_alerts().await.unwrap();
        assert_eq!(waiting(buyer).await, 1, "the control: it is not paid");
        world.pay(&held).await;
        world.cancel(&sold[1]).await;
        assert_eq!(world.told().await, [buyer, second, third]);
        world.ticket.end_seat_alerts().await.unwrap();
        assert_eq!(waiting(buyer).await, 0);
    }

    async fn an_alert_ends_with_its_event(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        world.waiting_fan(event_id, 1).await;
        world.ticket.end_seat_alerts().await.unwrap();
        assert_eq!(world.number("select count(*) as n from seat_alerts").await, 1, "the control");
        world.cancel(&sold[0]).await;
        world.execute("update sales set starts_at = sale_starts_at").await;
        assert!(world.told().await.is_empty());
        world.ticket.end_seat_alerts().await.unwrap();
        for table in ["seat_alerts", "alert_gates"] {
            let sql: &'static str = match table {
                "seat_alerts" => "select count(*) as n from seat_alerts",
                _ => "select count(*) as n from alert_gates",
            };
            assert_eq!(world.number(sql).await, 0, "{table}");
        }
        let sql = "select count(*) as n from sales where has_seat_alerts";
        assert_eq!(world.number(sql).await, 0);
    }

    async fn who_is_told_and_does_not_want_them_lets_the_next_one_have_them(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        let [first, second] =
            [world.waiting_fan(event_id, 2).await, world.waiting_fan(event_id, 2).await];
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [first]);
        let alerts = world.alerts_of(first).await;
        let path = format!("/api/alerts/seats/{}", alerts["seatAlerts"][0]["id"].as_str().unwrap());
        // Somebody else's withdrawal changes nothing.
        for (who, told) in [(second, 1), (first, 2)] {
            let who = CallerIdentity::User(who);
            assert_eq!(world.call(who, Method::DELETE, &path, Value::Null).await.0, 204);
            assert_eq!(world.told().await.len(), told);
        }
    }

    async fn asking_again_keeps_the_place_and_there_are_limits(world: World) {
        let (event_id, sold) = world.sold_out(2).await;
        let first = world.waiting_fan(event_id, 4).await;
        let second = world.waiting_fan(event_id, 1).await;
        let (_, body) = world.ask_seats(first, event_id, json!({"grade": "R", "quantity": 2})).await;
        assert_eq!((&body["quantity"], &body["ahead"]), (&json!(2), &json!(0)), "{body}");
        let (_, body) = world.ask_seats(second, event_id, json!({"grade": "R", "quantity": 1})).await;
        assert_eq!(body["ahead"], 1);
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [first]);
        let owner = sold[1].record.reservation.user_id;
        for (who, body, status, code) in [
            (owner, json!({"grade": "R", "quantity": 3}), 409, "SEAT_LIMIT"),
            (second, json!({"grade": "S", "quantity": 1}), 404, "GRADE_NOT_FOUND"),
            (second, json!({"grade": "R", "quantity": 0}), 400, "INVALID_ALERT"),
            (second, json!({"grade": "R", "quantity": 11}), 400, "INVALID_ALERT"),
            (second, json!({"grade": "", "quantity": 1}), 400, "INVALID_ALERT"),
            (second, json!({"quantity": 1}), 409, "SEATS_LEFT"),
        ] {
            let (found, answer) = world.ask_seats(who, event_id, body.clone()).await;
            assert_eq!((found, &answer["code"]), (status, &json!(code)), "{body}: {answer}");
        }
        let alerts = AlertSettings { seat_alerts_per_user_max: 1, ..AlertSettings::default() };
        let strict = world.ticket_with(TicketSettings { alerts, ..TicketSettings::default() });
        let (other, _sold) = world.sold_out(1).await;
        let subject = urr_ticket::AlertSubject::whole_event();
        let ask = urr_ticket::AskSeatAlert { event_id: other, user_id: second, subject, quantity: 1 };
        let refused = strict.ask_seat_alert(ask.clone()).await.unwrap_err();
        assert!(refused.to_string().contains("1 alerts already"), "{refused}");
        // The control: with the usual limit there is room.
        world.ticket.ask_seat_alert(ask).await.unwrap();
    }

    /// Alerts that are asked for at the same time count each other, also for different events.
    async fn the_limit_of_a_user_holds_when_all_are_asked_for_at_once(world: World) {
        let alerts = AlertSettings {
            sale_alerts_per_user_max: 3,
            seat_alerts_per_user_max: 3,
            ..AlertSettings::default()
        };
        let strict = world.ticket_with(TicketSettings { alerts, ..TicketSettings::default() });
        let (user_id, subject) = (world.ids.next_id(), urr_ticket::AlertSubject::whole_event());
        let mut events = Vec::new();
        for _ in 0..12 {
            events.push((world.sold_out(1).await.0, world.upcoming(10 * MINUTE, None).await));
        }
        let mut asking = tokio::task::JoinSet::new();
        for (event_id, upcoming) in events {
            let subject = subject.clone();
            let ask = urr_ticket::AskSeatAlert { event_id, user_id, subject, quantity: 1 };
            let (seats, sales) = (strict.clone(), strict.clone());
            asking.spawn(async move { seats.ask_seat_alert(ask).await.is_ok() });
            asking.spawn(async move { sales.ask_sale_alert(upcoming, user_id).await.is_ok() });
        }
        let asked = asking.join_all().await;
        assert_eq!(asked.iter().filter(|is_there| **is_there).count(), 6, "three of each");
        let list = world.alerts_of(user_id).await;
        for kind in ["saleAlerts", "seatAlerts"] {
            assert_eq!(list[kind].as_array().unwrap().len(), 3, "{list}");
        }
    }

    async fn fans_of_the_whole_event_and_of_standing_tickets_are_told_too(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        let any = world.ids.next_id();
        let (status, body) = world.ask_seats(any, event_id, json!({"quantity": 1})).await;
        assert_eq!((status, &body["grade"]), (200, &Value::Null), "{body}");
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [any]);

        let (standing, type_id) = world.open_standing(1).await;
        let held = world.hold_tickets(standing, type_id, 1).await;
        let fan = world.ids.next_id();
        let wish = json!({"ticketTypeId": type_id, "quantity": 1});
        let (status, body) = world.ask_seats(fan, standing, wish).await;
        assert_eq!((status, &body["grade"]), (200, &json!("스탠딩")), "{body}");
        let (id, owner) = (held.reservation.id, held.reservation.user_id);
        world.ticket.release_hold(id, owner, None, world.context()).await.unwrap();
        assert_eq!(world.told().await, [any, fan]);
    }
}
