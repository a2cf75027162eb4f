//! Which events become mails.

use serde_json::{Value, json};
use urr_bus::{HandleError, HandlerOutcome};
use urr_kernel::{Uuid, Won};
use urr_mail::{MailKind, MailStatus};

use crate::contract;
use crate::fixture::World;

fn cancelled(world: &World, reason: &str, payment_id: Option<Uuid>) -> Value {
    json!({
        "reservationId": world.ids.next_id(), "reservationNumber": "R-1", "quantity": 2,
        "userId": world.ids.next_id(), "eventId": world.ids.next_id(), "totalAmount": 100_000,
        "seatIds": [], "reason": reason, "refundAmount": 90_000, "cancellationFee": 10_000,
        "paymentId": payment_id, "timestamp": world.clock.now(),
    })
}

fn refunded(world: &World, amount: i64, cause: &str) -> Value {
    json!({
        "paymentId": world.ids.next_id(), "orderId": "O-1", "userId": world.ids.next_id(),
        "paymentType": "reservation", "referenceId": world.ids.next_id(),
        "reservationId": world.ids.next_id(), "paymentMethod": "card",
        "timestamp": world.clock.now(), "refundId": world.ids.next_id(), "amount": amount,
        "fee": 10_000, "cause": cause, "reason": "a friendly gesture", "isWhole": false,
    })
}

contract! {
    async fn a_purchase_is_written_down_with_what_its_event_says(world: World) {
        let event = world.confirmed(world.ids.next_id());
        assert_eq!(world.consume(&event).await.unwrap(), HandlerOutcome::Done);
        let mails = world.all().await;
        let [mail] = mails.as_slice() else { panic!("{mails:?}") };
        assert_eq!((mail.kind, mail.status), (MailKind::Purchase, MailStatus::Waiting));
        assert_eq!(json!(mail.subject_id), event.data["reservationId"]);
        assert_eq!(json!(mail.user_id), event.data["userId"]);
        assert_eq!(mail.template_data.amount, Some(Won::new(198_000)));
        assert_eq!(mail.template_data.method.as_deref(), Some("card"));
        assert_eq!((mail.attempts, mail.due_at), (0, world.clock.now()));
    }

    async fn a_message_that_comes_again_even_as_a_copy_writes_nothing(world: World) {
        let user_id = world.ids.next_id();
        let events = [
            world.confirmed(user_id),
            world.event("RESERVATION_CANCELLED", cancelled(&world, "EVENT_CANCELLED", None)),
            world.event("PAYMENT_REFUNDED", refunded(&world, 90_000, "cancelled")),
            world.admission_near(user_id),
        ];
        for event in &events {
            world.consume(event).await.unwrap();
            world.consume(event).await.unwrap();
        }
        assert_eq!(world.all().await.len(), 4);
        for event in &events[..3] {
            world.consume(&world.event(&event.event_type, event.data.clone())).await.unwrap();
        }
        assert_eq!(world.all().await.len(), 4, "a copy has another id and tells the same");
    }

    async fn a_buyer_who_was_charged_for_nothing_is_told_that_it_went_back(world: World) {
        let mut data = refunded(&world, 101_999, "mismatch");
        for field in ["fee", "isWhole"] {
            data.as_object_mut().unwrap().remove(field);
        }
        data["orderedAmount"] = json!(102_000);
        data["reason"] = json!("AMOUNT_MISMATCH");
        let event = world.event("CHARGE_REVERSED", data);
        for _ in 0..2 {
            world.consume(&event).await.unwrap();
        }
        let mails = world.all().await;
        let [mail] = mails.as_slice() else { panic!("{mails:?}") };
        assert_eq!((mail.kind, mail.status), (MailKind::Refund, MailStatus::Waiting));
        assert_eq!(json!(mail.user_id), event.data["userId"]);
        assert_eq!(mail.template_data.refund, Some(Won::new(101_999)));
        assert_eq!(mail.template_data.reason.as_deref(), Some("mismatch"));
    }

    async fn another_purchase_and_another_reminder_are_other_mails(world: World) {
        let user_id = world.ids.next_id();
        for event in [world.confirmed(user_id), world.confirmed(user_id)] {
            world.consume(&event).await.unwrap();
        }
        let near = world.admission_near(user_id);
        world.consume(&near).await.unwrap();
        world.consume(&world.event("ADMISSION_NEAR", near.data.clone())).await.unwrap();
        assert_eq!(world.of_kind(MailKind::Purchase).await.len(), 2);
        assert_eq!(world.of_kind(MailKind::AdmissionNear).await.len(), 2);
    }

    async fn a_user_who_releases_an_unpaid_hold_gets_no_mail(world: World) {
        let paid = Some(world.ids.next_id());
        for (reason, payment_id, is_told) in [
            ("CANCELLED_BY_OWNER", None, false),
            ("RELEASED_BY_OWNER", None, false),
            ("CANCELLED_BY_OWNER", paid, true),
            ("EVENT_CANCELLED", None, true),
            ("EVENT_CANCELLED", paid, true),
            ("잘못 배정된 좌석입니다", None, true),
        ] {
            let before = world.all().await.len();
            let data = cancelled(&world, reason, payment_id);
            world.consume(&world.event("RESERVATION_CANCELLED", data)).await.unwrap();
            let written = world.all().await.len() - before;
            assert_eq!(written == 1, is_told, "{reason} {payment_id:?}");
        }
        let expired = cancelled(&world, "", None);
        let outcome = world.consume(&world.event("RESERVATION_EXPIRED", expired)).await;
        assert_eq!(outcome.unwrap(), HandlerOutcome::Ignored);
    }

    async fn of_what_was_never_paid_no_amount_is_named(world: World) {
        for payment_id in [None, Some(world.ids.next_id())] {
            let data = cancelled(&world, "EVENT_CANCELLED", payment_id);
            world.consume(&world.event("RESERVATION_CANCELLED", data)).await.unwrap();
        }
        let told = world.of_kind(MailKind::Cancellation).await;
        let amounts: Vec<_> = told
            .iter()
            .map(|mail| (mail.template_data.amount, mail.template_data.refund, mail.template_data.fee))
            .collect();
        let paid = (Some(Won::new(100_000)), Some(Won::new(90_000)), Some(Won::new(10_000)));
        assert!(amounts.contains(&(None, None, None)) && amounts.contains(&paid), "{amounts:?}");
    }

    /// Each move and each cancellation of tickets is a mail of its own, and none comes twice.
    async fn owners_are_told_of_a_moved_event_and_of_cancelled_tickets(world: World) {
        let reservation = json!({
            "reservationId": world.ids.next_id(), "reservationNumber": "R-1", "quantity": 2,
            "userId": world.ids.next_id(), "eventId": world.ids.next_id(),
            "totalAmount": 200_000, "seatIds": [1, 2], "timestamp": world.clock.now(),
        });
        let with = |more: Value| {
            let mut data = reservation.clone();
            data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            data
        };
        for day in ["2026-12-26T10:00:00Z", "2026-12-27T10:00:00Z"] {
            let moved = with(json!({
                "previousStartsAt": "2026-12-24T10:00:00Z", "startsAt": day, "isFreeToCancel": true,
            }));
            let moved = world.event("RESERVATION_RESCHEDULED", moved);
            world.consume(&moved).await.unwrap();
            world.consume(&moved).await.unwrap();
            let part = with(json!({
                "cancellationId": world.ids.next_id(), "cancelledSeatIds": [3],
                "cancelledQuantity": 1, "cancelledAmount": 100_000, "refundAmount": 90_000,
                "cancellationFee": 10_000, "reason": "CANCELLED_BY_OWNER",
                "paymentId": world.ids.next_id(),
            }));
            for _ in 0..2 {
                let part = world.event("RESERVATION_PARTLY_CANCELLED", part.clone());
                world.consume(&part).await.unwrap();
            }
        }
        let moved = world.of_kind(MailKind::EventMoved).await;
        assert_eq!(moved.len(), 2);
        let first = &moved[0].template_data;
        assert_eq!(first.previous_starts_at, Some("2026-12-24T10:00:00Z".parse().unwrap()));
        assert_eq!(first.is_free_to_cancel, Some(true));
        let parts = world.of_kind(MailKind::PartCancellation).await;
        assert_eq!(parts.len(), 2);
        let data = &parts[0].template_data;
        assert_eq!((data.quantity, data.refund), (Some(1), Some(Won::new(90_000))));
    }

    async fn a_refund_of_nothing_is_no_mail(world: World) {
        let nothing = world.event("PAYMENT_REFUNDED", refunded(&world, 0, "cancelled"));
        assert_eq!(world.consume(&nothing).await.unwrap(), HandlerOutcome::Ignored);
        for (cause, reason) in [("cancelled", "cancelled"), ("goodwill:1", "a friendly gesture")] {
            let event = world.event("PAYMENT_REFUNDED", refunded(&world, 1_000, cause));
            world.consume(&event).await.unwrap();
            let mails = world.of_kind(MailKind::Refund).await;
            let found = mails.iter().any(|mail| mail.template_data.reason.as_deref() == Some(reason));
            assert!(found, "{mails:?}");
        }
    }

    async fn an_admission_near_with_few_values_becomes_a_mail(world: World) {
        let (event_id, user_id) = (world.ids.next_id(), world.ids.next_id());
        let little = json!({"eventId": event_id, "userId": user_id, "estimatedWaitSeconds": null});
        world.consume(&world.event("ADMISSION_NEAR", little)).await.unwrap();
        let mail = world.all().await.remove(0);
        assert_eq!((mail.template_data.event_id, mail.template_data.position), (Some(event_id), None));
        assert_eq!(mail.useful_until, Some("2026-12-01T12:30:00Z".parse().unwrap()));
        let ends = json!({
            "eventId": event_id, "userId": user_id, "saleEndsAt": "2026-12-01T12:10:00Z",
        });
        world.consume(&world.event("ADMISSION_NEAR", ends)).await.unwrap();
        let ends: Vec<_> = world.all().await.iter().map(|mail| mail.useful_until).collect();
        assert!(ends.contains(&Some("2026-12-01T12:10:00Z".parse().unwrap())), "{ends:?}");
    }

    async fn what_is_no_mail_is_ignored_and_what_cannot_be_read_is_a_dead_letter(world: World) {
        for other in ["RESERVATION_CREATED", "PAYMENT_CONFIRMED", "SOMETHING_NEW"] {
            let outcome = world.consume(&world.event(other, json!({}))).await;
            assert_eq!(outcome.unwrap(), HandlerOutcome::Ignored, "{other}");
        }
        for known in [
            "RESERVATION_CONFIRMED", "RESERVATION_CANCELLED", "PAYMENT_REFUNDED", "ADMISSION_NEAR",
        ] {
            let outcome = world.consume(&world.event(known, json!({"userId": 7}))).await;
            assert!(matches!(outcome, Err(HandleError::Poison(_))), "{known}: {outcome:?}");
        }
        assert_eq!(world.all().await, []);
    }
}
