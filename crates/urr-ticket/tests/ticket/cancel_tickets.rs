//! Single tickets of a paid reservation are cancelled: fee and refund by ticket, seats one by one.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::{Uuid, Won};
use urr_ticket::{
    CancelTickets, CompletedPayment, PaymentClaim, ReservationRecord, ReservationRejection,
    ReservationStatus, TicketCanceller, TransitionError,
};

use crate::contract;
use crate::fixture::{World, hall};
use crate::operations::{CallerIdentity, PaidReservation};
use crate::payables::confirmed;
use crate::projection::deliver;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    async fn bought_seats(&self, event_id: Uuid, seat_ids: &[u32]) -> PaidReservation {
        let held = self.hold(event_id, self.ids.next_id(), seat_ids).await;
        self.pay(&held).await
    }

    /// The reservation as its owner sees it.
    async fn seen(&self, paid: &PaidReservation) -> Value {
        let path = format!("/api/reservations/{}", paid.id());
        let who = CallerIdentity::User(owner(paid));
        self.call(who, Method::GET, &path, Value::Null).await.1["reservation"].clone()
    }

    async fn numbers(&self, paid: &PaidReservation) -> Vec<String> {
        let seen = self.seen(paid).await;
        let tickets = seen["tickets"].as_array().unwrap().iter();
        tickets.map(|ticket| ticket["number"].as_str().unwrap().to_owned()).collect()
    }

    async fn cancel_numbers(
        &self,
        paid: &PaidReservation,
        numbers: &[String],
    ) -> Result<ReservationRecord, TransitionError> {
        let by = TicketCanceller::Owner(owner(paid));
        let request = CancelTickets { ticket_numbers: numbers.to_vec(), by };
        self.ticket.cancel_tickets(paid.id(), request, self.context()).await
    }
}

fn owner(paid: &PaidReservation) -> Uuid {
    paid.record.reservation.user_id
}

contract! {
    async fn a_cancelled_ticket_gives_its_seat_and_its_money_back_and_the_others_stay(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        world.execute("update sales set sale_ends_at = starts_at").await;
        let paid = world.bought_seats(event_id, &[0, 1, 2]).await;
        let numbers = world.numbers(&paid).await;
        // Ten to seven days before the event a tenth of each ticket is kept.
        world.clock.advance(11 * DAY);
        let path = format!("/api/reservations/{}/refund-preview", paid.id());
        let who = CallerIdentity::User(owner(&paid));
        let (_, preview) = world.call(who, Method::GET, &path, Value::Null).await;
        assert_eq!(preview["refundAmount"], 270_000);
        assert_eq!(preview["tickets"][1], json!({"ticketNumber": numbers[1], "seatId": 1,
            "price": 100_000, "cancellationFee": 10_000, "refundAmount": 90_000}));
        let path = format!("/api/reservations/{}/cancel-tickets", paid.id());
        let body = json!({"ticketNumbers": [numbers[1]]});
        for _ in 0..2 {
            let (status, answer) = world.call(who, Method::POST, &path, body.clone()).await;
            assert_eq!(status, 200, "{answer}");
            let reservation = &answer["reservation"];
            assert_eq!(reservation["status"], "confirmed");
            assert_eq!(reservation["quantity"], 2);
            assert_eq!(reservation["totalAmount"], 200_000);
            assert_eq!(reservation["cancelledAmount"], 100_000);
            assert_eq!(reservation["cancelledRefundAmount"], 90_000);
            assert_eq!(reservation["tickets"][1]["isValid"], false);
            assert_eq!(reservation["tickets"][1]["qr"], Value::Null);
            assert_eq!(reservation["tickets"][0]["isValid"], true);
            assert_eq!(reservation["seats"].as_array().unwrap().len(), 2);
        }
        let announced = world.announced("RESERVATION_PARTLY_CANCELLED").await;
        assert_eq!(announced.len(), 1, "a repetition has no effect");
        assert_eq!((&announced[0]["refundAmount"], &announced[0]["cancellationFee"]),
            (&json!(90_000), &json!(10_000)));
        assert_eq!((&announced[0]["seatIds"], &announced[0]["cancelledSeatIds"]),
            (&json!([0, 2]), &json!([1])));
        assert_eq!(announced[0]["paymentId"], json!(paid.payment_id));
        // The seat is another's at once, and the limit counts what is left.
        world.hold(event_id, world.ids.next_id(), &[1]).await;
        world.hold(event_id, owner(&paid), &[3, 4]).await;
        world.assert_agrees().await;
    }

    async fn the_last_ticket_cancels_the_reservation_with_its_booking_fee(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        world
            .execute("update reservations set booking_fee = 2000, total_amount = total_amount + 2000")
            .await;
        let paid = world.pay(&world.find(held.reservation.id).await).await;
        let numbers = world.numbers(&paid).await;
        let left = world.cancel_numbers(&paid, &numbers[..1]).await.unwrap();
        assert_eq!(left.reservation.total_amount, Won::new(102_000), "the booking fee stays");
        let gone = world.cancel_numbers(&paid, &numbers).await.unwrap();
        assert_eq!(gone.reservation.status, ReservationStatus::Cancelled);
        assert_eq!(gone.refund_amount, Some(Won::new(102_000)), "it is the day of the booking");
        assert_eq!(gone.cancelled_refund_amount, Won::new(100_000));
        assert_eq!(world.announced("RESERVATION_CANCELLED").await[0]["refundAmount"], 102_000);
        world.refund(&paid, 102_000).await.unwrap();
        world.assert_agrees().await;
    }

    async fn standing_tickets_go_back_to_the_stock_one_by_one(world: World) {
        let (event_id, type_id) = world.open_standing(3).await;
        let held = world.hold_tickets(event_id, type_id, 3).await;
        let paid = world.pay(&held).await;
        let numbers = world.numbers(&paid).await;
        let left = world.cancel_numbers(&paid, &numbers[1..]).await.unwrap();
        assert_eq!(left.reservation.quantity, 1);
        assert_eq!(world.number("select available as n from ticket_types").await, 2);
        let seen = world.seen(&paid).await;
        assert_eq!(seen["items"][0]["quantity"], 1);
        assert_eq!(seen["tickets"][2]["ticketTypeName"], "스탠딩");
        world.hold_tickets(event_id, type_id, 2).await;
        world.assert_agrees().await;
    }

    async fn what_cannot_be_cancelled_is_refused_and_nothing_changes(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let paid = world.bought_seats(event_id, &[0, 1]).await;
        let numbers = world.numbers(&paid).await;
        let other = world.bought_seats(event_id, &[5, 6]).await;
        let theirs = world.numbers(&other).await;
        let held = world.hold(event_id, world.ids.next_id(), &[4]).await;
        let call = async |id: String, user_id: Uuid, numbers: Value| {
            let path = format!("/api/reservations/{id}/cancel-tickets");
            let body = json!({"ticketNumbers": numbers});
            let who = CallerIdentity::User(user_id);
            let (status, body) = world.call(who, Method::POST, &path, body).await;
            (status, body["code"].as_str().unwrap_or_default().to_owned())
        };
        let (id, user_id) = (paid.id().to_string(), owner(&paid));
        let held_id = held.reservation.id.to_string();
        let refused = |status: u16, code: &str| (status, code.to_owned());
        assert_eq!(call(id.clone(), owner(&other), json!([numbers[0]])).await, refused(404, "RESERVATION_NOT_FOUND"));
        assert_eq!(call(id.clone(), user_id, json!([numbers[0], theirs[0]])).await, refused(404, "TICKET_NOT_FOUND"));
        assert_eq!(call(id.clone(), user_id, json!([])).await, refused(400, "INVALID_TICKETS"));
        assert_eq!(call(held_id, held.reservation.user_id, json!(["T-1"])).await, refused(409, "RESERVATION_UNPAID"));
        // A used ticket stays; the other one can still go.
        world.execute("update tickets set checked_in_at = created_at where seat_id = 0").await;
        assert_eq!(call(id.clone(), user_id, json!(numbers)).await, refused(409, "ALREADY_CHECKED_IN"));
        assert_eq!(world.announced("RESERVATION_PARTLY_CANCELLED").await.len(), 0);
        assert_eq!(call(id.clone(), user_id, json!([numbers[1]])).await, refused(200, ""));
        assert_eq!(world.find(paid.id()).await.reservation.status, ReservationStatus::Confirmed);
        // What is for sale is sold as it was offered.
        world.ticket.list_for_transfer(other.id(), owner(&other)).await.unwrap();
        let other_id = other.id().to_string();
        assert_eq!(call(other_id, owner(&other), json!([theirs[0]])).await, refused(409, "RESERVATION_LISTED"));
        world.clock.advance(20 * DAY);
        assert_eq!(call(id, user_id, json!([numbers[1]])).await, refused(409, "EVENT_STARTED"));
    }

    /// However often and in whatever order: each ticket goes back once.
    async fn a_hundred_cancellations_at_once_give_each_ticket_back_once(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.bought_seats(event_id, &[0, 1, 2, 3]).await;
        let numbers = world.numbers(&paid).await;
        let mut asking = JoinSet::new();
        for round in 0..100_usize {
            let (ticket, context) = (world.ticket.clone(), world.context());
            let ticket_numbers = vec![numbers[round % 3].clone()];
            let by = TicketCanceller::Owner(owner(&paid));
            let id = paid.id();
            asking.spawn(async move {
                ticket.cancel_tickets(id, CancelTickets { ticket_numbers, by }, context).await
            });
        }
        for done in asking.join_all().await {
            done.unwrap();
        }
        assert_eq!(world.announced("RESERVATION_PARTLY_CANCELLED").await.len(), 3);
        let left = world.find(paid.id()).await;
        assert_eq!((left.reservation.quantity, left.reservation.total_amount), (1, Won::new(100_000)));
        assert_eq!(left.cancelled_refund_amount, Won::new(300_000));
        assert_eq!(world.number("select count(*) as n from seats where status = 'sold'").await, 1);
        world.assert_agrees().await;
    }

    /// The announcement of the payment may come late: it names what was paid, not what is left.
    async fn a_late_confirmation_finds_its_payment_after_a_ticket_was_cancelled(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let claim = world.pin(&held).await;
        let record = world.confirm(held.reservation.id, claim).await.unwrap();
        let paid = PaidReservation { record, payment_id: claim.payment_id };
        let numbers = world.numbers(&paid).await;
        world.cancel_numbers(&paid, &numbers[..1]).await.unwrap();
        let again = world.confirm(held.reservation.id, claim).await.unwrap();
        assert_eq!(again.reservation.quantity, 1);
        let told = confirmed(&world, &held, claim);
        assert_eq!(deliver(&world, &told).await, Ok(urr_bus::HandlerOutcome::Done));
        // The control: another amount is refused.
        let less = PaymentClaim { amount: Won::new(100_000), ..claim };
        let refused = world.confirm(held.reservation.id, less).await;
        assert_eq!(refused, Err(TransitionError::Rejected(ReservationRejection::WrongAmount)));
    }

    async fn what_is_left_can_be_handed_over_for_its_own_price(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.bought_seats(event_id, &[0, 1]).await;
        let numbers = world.numbers(&paid).await;
        world.cancel_numbers(&paid, &numbers[..1]).await.unwrap();
        let transfer = world.ticket.list_for_transfer(paid.id(), owner(&paid)).await.unwrap();
        assert_eq!(transfer.price.total(), Won::new(110_000));
        let (buyer, payment_id) = (world.ids.next_id(), world.ids.next_id());
        let (fencing_token, amount) = (transfer.number, transfer.price.total());
        let claim = PaymentClaim { payment_id, fencing_token, amount };
        world.ticket.pin_transfer(transfer.id, buyer, claim, 1).await.unwrap();
        let made = CompletedPayment::new(claim, Some("card"));
        world.ticket.complete_transfer(transfer.id, made, world.context()).await.unwrap();
        assert_eq!(world.announced("TRANSFER_COMPLETED").await[0]["sellerPayout"], 100_000);
        let record = world.find(paid.id()).await;
        assert_eq!((record.cancelled_amount, record.paid_amount()), (Won::ZERO, Won::new(110_000)));
        // The cancelled ticket is not issued anew.
        let valid = "select count(*) as n from tickets where is_valid";
        assert_eq!(world.number(valid).await, 1);
        world.assert_agrees().await;
    }

    async fn an_administrator_cancels_tickets_with_or_without_a_fee(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.bought_seats(event_id, &[0, 1, 2]).await;
        let numbers = world.numbers(&paid).await;
        world.clock.advance(11 * DAY);
        let path = format!("/api/admin/reservations/{}/cancel", paid.id());
        let admin = CallerIdentity::Admin(world.ids.next_id());
        for (number, refund, sum) in [(&numbers[0], "full", 100_000), (&numbers[1], "policy", 190_000)] {
            let body = json!({"reason": "좌석 고장", "refund": refund, "ticketNumbers": [number]});
            let (status, answer) = world.call(admin, Method::POST, &path, body).await;
            assert_eq!(status, 200, "{answer}");
            assert_eq!(answer["reservation"]["cancelledRefundAmount"], sum);
        }
        assert_eq!(world.number("select count(*) as n from admin_actions").await, 2);
        world.assert_agrees().await;
    }

    /// The control of the audit: a reservation that says more than its items is found.
    async fn a_sum_that_was_changed_by_hand_is_found(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.bought_seats(event_id, &[0, 1]).await;
        let numbers = world.numbers(&paid).await;
        world.cancel_numbers(&paid, &numbers[..1]).await.unwrap();
        world.assert_agrees().await;
        world.execute("update reservations set cancelled_amount = cancelled_amount + 1").await;
        assert_eq!(world.ticket.audit().await.unwrap().differences.len(), 1);
    }
}
