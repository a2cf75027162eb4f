//! An event that is moved does not take away what its buyers were promised, and they are told.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid};
use urr_ticket::{CompletedPayment, PaymentClaim, ReservationStatus};

use crate::contract;
use crate::fixture::{World, hall};
use crate::operations::{CallerIdentity, PaidReservation};
use crate::projection::must_deliver;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    /// The catalog announces another start of an event.
    pub async fn move_event(&self, event_id: Uuid, revision: i64, starts_at: Timestamp) {
        let now = self.clock.now();
        let data = json!({
            "eventId": event_id, "revision": revision, "title": "한강의 밤", "kind": "seated",
            "status": "on_sale", "artistId": null, "venueId": Uuid::from_u128(7),
            "venueName": "강변 홀", "address": "서울", "startsAt": starts_at,
            "saleStartsAt": now - HOUR, "saleEndsAt": now + 30 * DAY, "hasPresale": false,
            "seatsPerUserMax": 4, "prices": {"R": 100_000},
        });
        must_deliver(self, "EVENT_UPDATED", data).await;
    }

    async fn refund_preview(&self, paid: &PaidReservation, user_id: Uuid) -> (i64, String) {
        let path = format!("/api/reservations/{}/refund-preview", paid.id());
        let (status, body) =
            self.call(CallerIdentity::User(user_id), Method::GET, &path, Value::Null).await;
        assert_eq!(status, 200, "{body}");
        (body["refundAmount"].as_i64().unwrap(), body["rule"].as_str().unwrap().to_owned())
    }

    async fn buy_seat(&self, event_id: Uuid, seat_id: u32) -> PaidReservation {
        let held = self.hold(event_id, self.ids.next_id(), &[seat_id]).await;
        self.pay(&held).await
    }
}

fn owner(paid: &PaidReservation) -> Uuid {
    paid.record.reservation.user_id
}

fn rule(refund: i64, rule: &str) -> (i64, String) {
    (refund, rule.to_owned())
}

contract! {
    /// The attack: tickets are sold with free cancellation, and then the event is moved to today.
    async fn who_bought_another_day_gets_everything_back_until_the_new_one_begins(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (early, late) = (world.buy_seat(event_id, 0).await, world.buy_seat(event_id, 1).await);
        assert_eq!(world.refund_preview(&early, owner(&early)).await, rule(100_000, "GRACE"));
        // It is nine in the evening in Korea.
        let today = world.clock.now() + 2 * HOUR;
        world.move_event(event_id, 2, today).await;
        assert_eq!(world.refund_preview(&early, owner(&early)).await, rule(100_000, "EVENT_MOVED"));
        let id = early.id();
        world.ticket.cancel_reservation(id, owner(&early), world.context()).await.unwrap();
        assert_eq!(world.announced("RESERVATION_CANCELLED").await[0]["refundAmount"], 100_000);
        // The control: who buys now has agreed to today.
        let warned = world.buy_seat(event_id, 2).await;
        assert_eq!(world.refund_preview(&warned, owner(&warned)).await, rule(10_000, "PERCENT_90"));
        world.clock.advance(2 * HOUR);
        let refused = world.ticket.cancel_reservation(late.id(), owner(&late), world.context());
        assert!(refused.await.is_err(), "it has begun");
        world.assert_agrees().await;
    }

    async fn a_booking_fee_goes_back_too_and_later_days_are_free_as_well(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0]).await;
        world
            .execute("update reservations set booking_fee = 2000, total_amount = total_amount + 2000")
            .await;
        let paid = world.pay(&world.find(held.reservation.id).await).await;
        world.clock.advance(19 * DAY);
        assert_eq!(world.refund_preview(&paid, owner(&paid)).await, rule(70_000, "PERCENT_30"));
        let later = world.clock.now() + 60 * DAY;
        world.move_event(event_id, 2, later).await;
        assert_eq!(world.refund_preview(&paid, owner(&paid)).await, rule(102_000, "EVENT_MOVED"));
        // Moved back to what was agreed: the fee is what was agreed, too.
        let agreed = paid.record.agreed_starts_at;
        world.move_event(event_id, 3, agreed).await;
        assert_eq!(world.refund_preview(&paid, owner(&paid)).await, rule(70_000, "PERCENT_30"));
    }

    /// A correction of the hour is no reason for everybody to cancel at the last moment.
    async fn another_hour_of_the_same_day_changes_no_fee(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.buy_seat(event_id, 0).await;
        world.clock.advance(19 * DAY);
        let agreed = paid.record.agreed_starts_at;
        world.move_event(event_id, 2, agreed - 2 * HOUR).await;
        assert_eq!(world.refund_preview(&paid, owner(&paid)).await, rule(70_000, "PERCENT_30"));
        assert_eq!(world.ticket.announce_moved_events().await, Ok(1));
        assert_eq!(world.announced("RESERVATION_RESCHEDULED").await[0]["isFreeToCancel"], false);
    }

    async fn everyone_with_a_ticket_is_told_once_of_each_move(world: World) {
        let event_id = world.open_sale(hall(60, 5)).await;
        let mut owners = Vec::new();
        for seat_id in 0..5 {
            owners.push(owner(&world.buy_seat(event_id, seat_id).await));
        }
        let gone = world.buy_seat(event_id, 5).await;
        world.ticket.cancel_reservation(gone.id(), owner(&gone), world.context()).await.unwrap();
        assert_eq!(world.ticket.announce_moved_events().await, Ok(0), "nothing was moved");
        let before = world.find(gone.id()).await.starts_at;
        for (revision, days) in [(2, 1), (3, 2)] {
            world.move_event(event_id, revision, before + days * DAY).await;
            assert_eq!(world.ticket.announce_moved_events().await, Ok(5));
            assert_eq!(world.ticket.announce_moved_events().await, Ok(0));
        }
        // A change that moves nothing tells nobody.
        world.move_event(event_id, 4, before + 2 * DAY).await;
        assert_eq!(world.ticket.announce_moved_events().await, Ok(0));
        let told = world.announced("RESERVATION_RESCHEDULED").await;
        assert_eq!(told.len(), 10);
        for (number, event) in told.iter().enumerate() {
            let (previous, new) = if number < 5 { (before, before + DAY) } else { (before + DAY, before + 2 * DAY) };
            assert_eq!(event["previousStartsAt"], json!(previous));
            assert_eq!(event["startsAt"], json!(new));
            assert_eq!(event["isFreeToCancel"], true);
            assert!(owners.iter().any(|owner| event["userId"] == json!(owner)), "{event}");
        }
        world.assert_agrees().await;
    }

    /// The job has told all others when the payment comes.
    async fn a_hold_that_is_paid_after_the_move_is_told_with_its_payment(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let claim = world.pin(&held).await;
        let moved = held.starts_at + DAY;
        world.move_event(event_id, 2, moved).await;
        assert_eq!(world.ticket.announce_moved_events().await, Ok(0));
        for _ in 0..2 {
            let record = world.confirm(held.reservation.id, claim).await.unwrap();
            assert_eq!(record.reservation.status, ReservationStatus::Confirmed);
            let told = world.announced("RESERVATION_RESCHEDULED").await;
            assert_eq!(told.len(), 1);
            assert_eq!(told[0]["startsAt"], json!(moved));
        }
        let paid = PaidReservation { record: world.find(held.reservation.id).await, payment_id: claim.payment_id };
        assert_eq!(world.refund_preview(&paid, owner(&paid)).await, rule(100_000, "EVENT_MOVED"));
        // The control: without a move nothing is said.
        world.buy_seat(event_id, 1).await;
        assert_eq!(world.announced("RESERVATION_RESCHEDULED").await.len(), 1);
    }

    /// The buyer of a transfer agrees to the start that they saw when they paid.
    async fn a_new_owner_has_agreed_to_what_they_saw(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mut claims = Vec::new();
        let start = world.find(world.buy_seat(event_id, 4).await.id()).await.starts_at;
        for (seat_id, moves_while_paying) in [(0, false), (1, true)] {
            let paid = world.buy_seat(event_id, seat_id).await;
            let transfer = world.ticket.list_for_transfer(paid.id(), owner(&paid)).await.unwrap();
            if !moves_while_paying {
                world.move_event(event_id, 2, start + DAY).await;
            }
            let (buyer, payment_id) = (world.ids.next_id(), world.ids.next_id());
            let (fencing_token, amount) = (transfer.number, transfer.price.total());
            let claim = PaymentClaim { payment_id, fencing_token, amount };
            world.ticket.pin_transfer(transfer.id, buyer, claim, 1).await.unwrap();
            if moves_while_paying {
                world.move_event(event_id, 3, start + 2 * DAY).await;
                world.ticket.announce_moved_events().await.unwrap();
            }
            let made = CompletedPayment::new(claim, Some("card"));
            world.ticket.complete_transfer(transfer.id, made, world.context()).await.unwrap();
            claims.push((paid, buyer));
        }
        let (second, second_buyer) = &claims[1];
        assert_eq!(world.refund_preview(second, *second_buyer).await.1, "EVENT_MOVED");
        let told = world.announced("RESERVATION_RESCHEDULED").await;
        let last = told.last().unwrap();
        assert_eq!(last["userId"], json!(second_buyer));
        assert_eq!(last["previousStartsAt"], json!(start + DAY), "what they saw");
        let (first, first_buyer) = &claims[0];
        world.move_event(event_id, 4, start + DAY).await;
        let (_, rule) = world.refund_preview(first, *first_buyer).await;
        assert_ne!(rule, "EVENT_MOVED", "they bought it for this day");
        world.assert_agrees().await;
    }
}
