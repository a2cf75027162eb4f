//! The ticket service learns from the payment service's events what was paid and what was given back.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_bus::{
    Bus, BusMessage, BusMetrics, Consumer, HandleError, HandlerContext, HandlerOutcome, TopicSpec,
    consumer, dead_letters,
};
use urr_kernel::{CallContext, DomainEvent, Uuid};
use urr_service::{Caller, Metrics, RequestLimits, ServiceKit};
use urr_storage::inbox;
use urr_test::eventually;
use urr_ticket::{
    PaymentClaim, ReservationPaymentStatus, ReservationRecord, ReservationStatus, Sweeper,
    consumer as ticket_consumer,
};

use crate::contract;
use crate::fixture::{MINUTE, World, hall};
use crate::operations::{CallerIdentity, PaidReservation};
use crate::projection::deliver;

/// An event of the payment service, in its envelope. Fields that the ticket service does not use
/// are filled in.
pub fn event(world: &World, event_type: &str, mut data: Value) -> DomainEvent {
    let id = world.ids.next_id();
    for (field, value) in [
        ("timestamp", json!(world.clock.now())),
        ("refundId", json!(Uuid::nil())),
        ("cause", json!("cancelled")),
    ] {
        data.as_object_mut().unwrap().entry(field).or_insert(value);
    }
    DomainEvent {
        specversion: "1.0".to_owned(),
        id,
        source: "urr/payment".to_owned(),
        event_type: event_type.to_owned(),
        subject: data["paymentId"].as_str().unwrap_or_default().to_owned(),
        time: world.clock.now(),
        datacontenttype: "application/json".to_owned(),
        data,
        correlation_id: id,
        causation_id: None,
        traceparent: Some(CallContext::root(id).trace.to_string()),
    }
}

/// What a payment says when it was made; also what we have no use for.
fn made(record: &ReservationRecord, claim: PaymentClaim) -> Value {
    let reservation = &record.reservation;
    json!({
        "paymentId": claim.payment_id, "orderId": "ord_1", "userId": reservation.user_id,
        "reservationId": reservation.id.0, "referenceId": reservation.id.0,
        "paymentType": "reservation", "amount": claim.amount, "paymentMethod": "card",
        "fencingToken": claim.fencing_token, "bookingFee": 0, "somethingNew": {"a": [1]},
    })
}

pub fn confirmed(world: &World, record: &ReservationRecord, claim: PaymentClaim) -> DomainEvent {
    event(world, "PAYMENT_CONFIRMED", made(record, claim))
}

fn refunded(world: &World, paid: &PaidReservation, amount: i64) -> DomainEvent {
    let id = paid.id().0;
    let data = json!({
        "paymentId": paid.payment_id, "orderId": "ord_1",
        "userId": paid.record.reservation.user_id, "reservationId": id, "referenceId": id,
        "paymentType": "reservation", "amount": amount, "reason": "CANCELLED_BY_OWNER",
    });
    event(world, "PAYMENT_REFUNDED", data)
}

fn with(mut event: DomainEvent, field: &str, value: Value) -> DomainEvent {
    event.data[field] = value;
    event
}

fn without(mut event: DomainEvent, field: &str) -> DomainEvent {
    event.data.as_object_mut().unwrap().remove(field);
    event
}

fn rejected(reason: &str) -> Result<HandlerOutcome, HandleError> {
    Ok(HandlerOutcome::Rejected { reason: reason.to_owned() })
}

/// All that a confirmation could write.
async fn traces(world: &World) -> (Vec<Value>, i64, i64) {
    (
        world.announced("RESERVATION_CONFIRMED").await,
        world.number("select count(*) as n from tickets").await,
        world.number("select count(*) as n from seats where status = 'sold'").await,
    )
}

async fn pinned(world: &World) -> (ReservationRecord, PaymentClaim) {
    let event_id = world.open_sale(hall(1, 5)).await;
    let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
    let claim = world.pin(&record).await;
    (record, claim)
}

contract! {
    async fn k_1_what_was_confirmed_by_a_call_is_no_failure_when_the_event_comes(world: World) {
        let (record, claim) = pinned(&world).await;
        let first = world.confirm(record.reservation.id, claim).await.unwrap();
        let traces_before = traces(&world).await;
        // Once more as a new event: its id is another, and the result is the same.
        for _ in 0..2 {
            let event = confirmed(&world, &record, claim);
            assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        }
        assert_eq!(world.find(record.reservation.id).await, first);
        assert_eq!(traces(&world).await, traces_before);
        assert_eq!(traces_before.0.len(), 1, "it was announced");
        world.assert_agrees().await;
    }

    async fn k_1_the_event_confirms_alone_if_no_call_comes_through(world: World) {
        let (record, claim) = pinned(&world).await;
        let event = confirmed(&world, &record, claim);
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        let sold = world.find(record.reservation.id).await;
        assert_eq!(sold.reservation.status, ReservationStatus::Confirmed);
        assert_eq!(sold.reservation.payment_status, ReservationPaymentStatus::Paid);
        assert_eq!(sold.payment_id, Some(claim.payment_id));
        let traces_after = traces(&world).await;
        assert_eq!((traces_after.1, traces_after.2), (2, 2));
        assert_eq!(traces_after.0[0]["paymentId"], claim.payment_id.to_string());
        assert_eq!(traces_after.0[0]["paymentMethod"], "card");
        let caused = world.rows("select body from outbox order by seq", |row| row.get::<String>("body"));
        let caused: Value = serde_json::from_str(caused.await.last().unwrap()).unwrap();
        assert_eq!(caused["causationid"], event.id.to_string());
        let numbers = "select count(distinct number) as n from tickets";
        assert_eq!(world.number(numbers).await, 2);
        // The call that comes late is answered as if it had been first.
        assert_eq!(world.confirm(record.reservation.id, claim).await, Ok(sold));
        assert_eq!(traces(&world).await, traces_after);
        world.assert_agrees().await;
    }

    async fn k_1_a_call_and_its_event_at_once_sell_once(world: World) {
        let event_id = world.open_sale(hall(10, 10)).await;
        let world = Arc::new(world);
        for seat_id in 0..20 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            let claim = world.pin(&record).await;
            let event = confirmed(&world, &record, claim);
            let (here, id) = (Arc::clone(&world), record.reservation.id);
            let call = tokio::spawn(async move { here.confirm(id, claim).await.map(|_| ()) });
            let here = Arc::clone(&world);
            let news = tokio::spawn(async move { deliver(&here, &event).await });
            assert_eq!(call.await.unwrap(), Ok(()));
            assert_eq!(news.await.unwrap(), Ok(HandlerOutcome::Done));
        }
        let (announced, tickets, sold) = traces(&world).await;
        assert_eq!((announced.len(), tickets, sold), (20, 20, 20));
        world.assert_agrees().await;
    }

    /// K-4: the note that an event was handled is its effect's, or there is neither.
    async fn k_4_an_event_and_its_effect_are_one_and_no_other_is_swallowed(world: World) {
        let (record, claim) = pinned(&world).await;
        let event = confirmed(&world, &record, claim);
        let context = HandlerContext::new(ticket_consumer::GROUP, &event, world.clock.now());
        let lost = event.clone();
        // The process dies before the commit.
        let died: Result<(), HandleError> = world.db.write(move |tx| {
            assert!(inbox::record(tx, context.group(), lost.id, context.now)?);
            assert_eq!(ticket_consumer::handle(tx, &lost, &context), Ok(HandlerOutcome::Done));
            Err(HandleError::Poison("it dies".to_owned()))
        }).await;
        assert!(died.is_err());
        assert_eq!(traces(&world).await, (Vec::new(), 0, 0));
        // Another group has seen the event, which is no concern of ours.
        let (id, now) = (event.id, world.clock.now());
        let noted = world.db.write(move |tx| inbox::record(tx, "stats-service-group", id, now)).await;
        assert_eq!(noted, Ok::<_, urr_storage::StorageError>(true));
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Ignored), "the inbox knows it");
        // The same type for the same person, of another reservation, has its own effect.
        let (other, claim) = {
            let reservation = &record.reservation;
            let other = world.hold(reservation.event_id, reservation.user_id, &[2]).await;
            let claim = world.pin(&other).await;
            (other, claim)
        };
        let event = confirmed(&world, &other, claim);
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        let (announced, tickets, sold) = traces(&world).await;
        assert_eq!((announced.len(), tickets, sold), (2, 3, 3));
        world.assert_agrees().await;
    }

    async fn k_9_a_refusal_is_final_and_leaves_nothing_behind(world: World) {
        let (record, claim) = pinned(&world).await;
        let event_id = record.reservation.event_id;
        let held = world.hold(event_id, world.ids.next_id(), &[2]).await;
        let over = world.hold(event_id, world.ids.next_id(), &[3]).await;
        let (id, user_id) = (over.reservation.id, over.reservation.user_id);
        world.ticket.cancel_reservation(id, user_id, world.context()).await.unwrap();
        let before = (world.find(record.reservation.id).await, traces(&world).await);
        let good = || confirmed(&world, &record, claim);
        let nobody = json!(world.ids.next_id());
        let unknown = with(good(), "reservationId", nobody.clone());
        for (event, reason) in [
            (with(good(), "amount", json!(1)), "This is not the amount of the reservation."),
            (with(good(), "amount", json!(-200_000)), "This is not the amount of the reservation."),
            (with(good(), "fencingToken", json!(0)), "The reservation has changed in the meantime."),
            (with(good(), "paymentId", nobody.clone()),
                "A payment of this reservation is under way."),
            (with(unknown, "referenceId", nobody), "There is no such reservation."),
            (confirmed(&world, &held, world.claim(&held)),
                "This payment has not pinned the reservation."),
            (confirmed(&world, &over, world.claim(&over)), "This reservation was cancelled."),
        ] {
            assert_eq!(deliver(&world, &event).await, rejected(reason));
        }
        // What nobody pinned is over when its time is.
        world.clock.advance(5 * MINUTE);
        let late = confirmed(&world, &held, world.claim(&held));
        assert_eq!(deliver(&world, &late).await, rejected("The time to pay for this reservation is over."));
        assert_eq!((world.find(record.reservation.id).await, traces(&world).await), before);
        world.assert_agrees().await;
        // The control: what is right was not in the way.
        assert_eq!(deliver(&world, &good()).await, Ok(HandlerOutcome::Done));
        assert_eq!(traces(&world).await.1, 2);
    }

    /// By hand, as a bug would leave it: the transaction is committed, and nothing of it is a sale.
    async fn k_9_a_lost_seat_is_refused_before_anything_is_written(world: World) {
        let (record, claim) = pinned(&world).await;
        world
            .execute("update seats set status = 'available', reservation_id = null where seat_id = 1")
            .await;
        let event = confirmed(&world, &record, claim);
        let refused = deliver(&world, &event).await;
        assert_eq!(refused, rejected("A seat of this reservation was lost."));
        assert_eq!(traces(&world).await, (Vec::new(), 0, 0));
        let found = world.find(record.reservation.id).await;
        assert_eq!(found.reservation.status, ReservationStatus::Pending);
        assert_eq!(found.reservation.pinned_by, Some(claim.payment_id));
    }

    async fn m_16_what_was_pinned_in_time_is_sold_however_late_the_event_comes(world: World) {
        let (record, claim) = pinned(&world).await;
        world.clock.advance(60 * MINUTE);
        assert_eq!(world.sweep().await.ended, 0);
        let event = confirmed(&world, &record, claim);
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        let sold = world.find(record.reservation.id).await;
        assert_eq!(sold.reservation.status, ReservationStatus::Confirmed);
        world.assert_agrees().await;
    }

    async fn m_9_what_is_paid_while_the_event_is_cancelled_goes_back_whole(world: World) {
        let (record, claim) = pinned(&world).await;
        world.execute("update sales set status = 'cancelled'").await;
        let mut sweeper = Sweeper::new(world.ticket.clone());
        assert_eq!(sweeper.empty_closed_sales().await.unwrap().ended, 0, "it is being paid");
        let event = confirmed(&world, &record, claim);
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        assert_eq!(sweeper.empty_closed_sales().await.unwrap().ended, 1);
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["refundAmount"], 200_000);
        assert_eq!(announced[0]["paymentId"], claim.payment_id.to_string());
        let paid = PaidReservation { record, payment_id: claim.payment_id };
        let event = refunded(&world, &paid, 200_000);
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
        let refunded = world.find(paid.id()).await;
        assert_eq!(refunded.reservation.payment_status, ReservationPaymentStatus::Refunded);
        world.assert_agrees().await;
    }

    async fn m_13_a_refund_is_noted_as_often_as_it_is_told_and_touches_no_seat(world: World) {
        let (record, claim) = pinned(&world).await;
        let record = world.confirm(record.reservation.id, claim).await.unwrap();
        let paid = PaidReservation { record, payment_id: claim.payment_id };
        let not_refunding = "Nothing of this reservation is to be refunded.";
        let early = refunded(&world, &paid, 200_000);
        assert_eq!(deliver(&world, &early).await, rejected(not_refunding));
        let user_id = paid.record.reservation.user_id;
        world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        let event_id = paid.record.reservation.event_id;
        let resold = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let resold = world.pay(&resold).await;
        for (event, outcome) in [
            (refunded(&world, &paid, 1), rejected("This is not the amount of the reservation.")),
            (with(refunded(&world, &paid, 200_000), "paymentId", json!(resold.payment_id)),
                rejected(not_refunding)),
            // An administrator's gift, or money that never was for a ticket.
            (with(refunded(&world, &paid, 200_000), "cause", json!("admin:1")), Ok(HandlerOutcome::Ignored)),
        ] {
            assert_eq!(deliver(&world, &event).await, outcome);
            let found = world.find(paid.id()).await;
            assert_eq!(found.reservation.payment_status, ReservationPaymentStatus::Refunding);
        }
        // A part had been given back before: what we asked for counts.
        let rest = with(refunded(&world, &paid, 150_000), "requestedAmount", json!(200_000));
        let rest = with(rest, "cause", json!("cancelled"));
        for event in [rest, refunded(&world, &paid, 200_000), refunded(&world, &paid, 200_000)] {
            assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
            let found = world.find(paid.id()).await;
            assert_eq!(found.reservation.payment_status, ReservationPaymentStatus::Refunded);
            assert_eq!(found.refund_amount, Some(urr_kernel::Won::new(150_000)), "what really came");
        }
        assert_eq!(world.refund(&paid, 200_000).await.unwrap(), world.find(paid.id()).await);
        assert_eq!(world.find(resold.id()).await, resold.record);
        world.assert_agrees().await;
    }

    async fn what_is_not_about_reservations_is_ignored(world: World) {
        let (record, claim) = pinned(&world).await;
        let good = || confirmed(&world, &record, claim);
        let mut other_type = good();
        other_type.event_type = "PAYMENT_SETTLED".to_owned();
        let bare = |event_type: &str| {
            event(&world, event_type, json!({"paymentId": Uuid::nil(), "paymentType": "gift"}))
        };
        for event in [
            with(good(), "paymentType", json!("gift")),
            bare("PAYMENT_CONFIRMED"),
            bare("PAYMENT_REFUNDED"),
            other_type,
        ] {
            assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Ignored), "{event:?}");
        }
        assert_eq!(traces(&world).await, (Vec::new(), 0, 0));
        // One name of the reservation is enough.
        let event = without(good(), "reservationId");
        assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
    }

    /// A provider need not say how it was paid: a charge ends in a ticket all the same.
    async fn what_was_paid_is_sold_whatever_the_method_is_called(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let (long, short) = ("가".repeat(51), "가".repeat(50));
        let methods = [
            (json!(null), "unknown"),
            (json!(" "), "unknown"),
            (json!(long), short.as_str()),
            (json!("간편결제"), "간편결제"),
        ];
        for (seat_id, (method, stored)) in (0..).step_by(2).zip(methods) {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            let claim = world.pin(&record).await;
            let event = with(confirmed(&world, &record, claim), "paymentMethod", method.clone());
            assert_eq!(deliver(&world, &event).await, Ok(HandlerOutcome::Done));
            let sold = world.find(record.reservation.id).await;
            assert_eq!(sold.payment_method.as_deref(), Some(stored));
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id + 1]).await;
            let claim = world.pin(&record).await;
            let path = format!("/internal/ticket/payables/reservation/{}/confirm", record.reservation.id);
            let body = json!({"paymentId": claim.payment_id, "amount": claim.amount,
                "fencingToken": claim.fencing_token, "paymentMethod": method});
            let payments = CallerIdentity::Service(Caller::Payment);
            assert_eq!(world.call(payments, Method::POST, &path, body).await.0, 200);
            let sold = world.find(record.reservation.id).await;
            assert_eq!(sold.payment_method.as_deref(), Some(stored));
        }
    }

    async fn what_makes_no_sense_is_poison(world: World) {
        let (record, claim) = pinned(&world).await;
        let good = || confirmed(&world, &record, claim);
        let paid = PaidReservation { record: record.clone(), payment_id: claim.payment_id };
        let back = || refunded(&world, &paid, 200_000);
        for event in [
            without(good(), "paymentType"),
            without(good(), "paymentId"),
            without(good(), "amount"),
            without(good(), "fencingToken"),
            without(good(), "referenceId"),
            with(good(), "referenceId", json!(Uuid::nil())),
            with(good(), "amount", json!("200000")),
            with(good(), "reservationId", json!("R-1")),
            without(back(), "amount"),
            without(back(), "paymentId"),
            without(back(), "referenceId"),
        ] {
            let handled = deliver(&world, &event).await;
            assert!(matches!(handled, Err(HandleError::Poison(_))), "{handled:?} {event:?}");
        }
        assert_eq!(traces(&world).await, (Vec::new(), 0, 0));
    }

    /// Through the bus and the consumer loop: poison becomes a dead letter, a refusal does not, and
    /// neither stops what comes behind on the same key.
    async fn k_9_neither_poison_nor_a_refusal_stops_those_behind(world: World) {
        let bus = Bus::open_embedded(&world.folder().join("bus.db"), &world.clock).unwrap();
        let topics: Vec<_> = ticket_consumer::TOPICS.iter().map(|topic| TopicSpec::new(*topic)).collect();
        bus.ensure_topics(&topics).await.unwrap();
        let metrics = Metrics::new();
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: metrics.clone(),
            limits: RequestLimits::default(),
        };
        let _service = world.ticket.service(&kit);
        let (record, claim) = pinned(&world).await;
        let good = || confirmed(&world, &record, claim);
        let refusal = with(good(), "amount", json!(1));
        for event in [without(good(), "fencingToken"), refusal, good(), good()] {
            let message = BusMessage::new("payment-events", event.subject.clone(), event.to_bytes());
            bus.publish_one(message).await.unwrap();
        }
        let cancel = CancellationToken::new();
        let running = tokio::spawn(consumer::run(
            Consumer {
                bus: bus.clone(),
                db: world.db.clone(),
                group: ticket_consumer::GROUP.to_owned(),
                topics: ticket_consumer::TOPICS.iter().map(|topic| (*topic).to_owned()).collect(),
                types: Some(ticket_consumer::TYPES),
                handler: world.ticket.event_handler(),
                clock: world.clock.clone(),
                metrics: BusMetrics::default(),
            },
            cancel.clone(),
        ));
        eventually("all three that can be read are dealt with", async || {
            (world.number("select count(*) as n from inbox").await == 3).then_some(())
        })
        .await;
        cancel.cancel();
        running.await.unwrap();
        assert_eq!(world.find(record.reservation.id).await.reservation.status, ReservationStatus::Confirmed);
        assert_eq!(traces(&world).await.1, 2);
        let topic = Some("payment-events");
        let listed = dead_letters::list(&bus, topic, dead_letters::DeadLetterScope::Open, 10).await.unwrap();
        let reasons: Vec<_> = listed.letters.iter().map(|letter| &*letter.reason).collect();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].contains("fencing token"), "{reasons:?}");
        // The event confirmed it, and is counted; the event's copy and a late call are not.
        world.confirm(record.reservation.id, claim).await.unwrap();
        assert!(metrics.text().contains("urr_reservations_confirmed_total 1\n"));
    }
}
