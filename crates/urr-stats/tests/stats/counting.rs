//! What is counted, where, and how often.

use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid};
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{
    Booking, DAY, HOUR, MINUTE, copy_of, event_cancelled, event_created, event_updated,
    house_seats_changed, membership_activated, message, now, other_payment, standing_event_created,
    ticket_type_changed, transfer_completed, user_deleted, user_registered,
};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

contract! {
    async fn events_of_one_transaction_are_counted_like_single_ones(world: World) {
        let (kept, cancelled, at) = (Booking::new(1, 50), Booking::new(2, 50), now() - DAY);
        let mut events = vec![event_created(50, "First"), user_registered(1, at)];
        events.extend(kept.sold(at));
        events.push(kept.partly_cancelled(at + HOUR, 40_000));
        events.extend(cancelled.sold(at));
        events.push(cancelled.cancelled(at + MINUTE, 90_000));
        events.push(cancelled.refunded(at + HOUR, "card", 90_000, "cancelled"));
        events.push(user_deleted(1, at + HOUR));
        world.consume_all(&events).await;
        let expected = world.counters().await;
        assert!(expected.len() > 5, "{expected:?}");
        // In another order, and each of them twice.
        let twice: Vec<_> = events.iter().rev().chain(&events).cloned().collect();
        for size in [1, 3, twice.len()] {
            world.delete_everything().await;
            for part in twice.chunks(size) {
                world.consume_together(part).await;
            }
            assert_eq!(world.counters().await, expected, "{size} at once");
        }
    }

    /// K-8: made, paid, given back: each on its day, and a refund is no second cancellation.
    async fn k_8_each_step_of_a_reservation_counts_once_on_its_own_day(world: World) {
        let booking = Booking::new(1, 50);
        world.consume_all(&booking.sold(now() - 3 * DAY)).await;
        let later = now() - DAY;
        world.consume(&booking.cancelled(later, 90_000)).await;
        world.consume(&booking.refunded(later + MINUTE, "card", 90_000, "cancelled")).await;

        let sold = world.day("2026-11-12").await;
        assert_eq!(sold["reservations"], 1);
        assert_eq!(sold["confirmed"], 1);
        assert_eq!(sold["cancelled"], 0);
        assert_eq!(sold["revenue"], 100_000);
        let back = world.day("2026-11-14").await;
        assert_eq!(back["reservations"], 0);
        assert_eq!(back["cancelled"], 1, "the refund is not another cancellation");
        assert_eq!(back["refunds"], 90_000);
        assert_eq!(back["revenue"], -90_000, "the first refund of a day keeps its amount");
        assert_eq!(world.data("overview").await["totalRevenue"], 10_000);
    }

    /// A cancellation takes its seats from the event and its reservation from the day it was made.
    async fn a_later_cancellation_corrects_the_event_and_the_day_of_the_reservation(world: World) {
        world.consume(&event_created(50, "한강의 밤")).await;
        let (kept, given_back) = (Booking::new(1, 50), Booking {
            seats: vec![4, 5],
            ..Booking::new(2, 50)
        });
        world.consume_all(&kept.sold(now() - 5 * DAY)).await;
        world.consume_all(&given_back.sold(now() - 3 * DAY)).await;
        let before = world.event(50).await;
        assert_eq!((&before["soldSeats"], &before["availableSeats"]), (&json!(4), &json!(4)));
        assert_eq!(world.data("conversion").await["funnel"]["completed"], 2);

        world.consume(&given_back.cancelled(now(), 100_000)).await;
        world.consume(&given_back.refunded(now(), "card", 100_000, "cancelled")).await;
        let after = world.event(50).await;
        assert_eq!((&after["soldSeats"], &after["availableSeats"]), (&json!(2), &json!(6)));
        assert_eq!(after["totalRevenue"], 100_000);
        assert_eq!(after["confirmedReservations"], 2, "it was confirmed");
        assert_eq!(after["cancelledReservations"], 1);
        assert_eq!(after["pendingReservations"], 0);
        let trend = &world.data("conversion").await["dailyTrend"];
        let expected = json!([
            { "date": "2026-11-12", "total": 1, "completed": 0, "conversionRate": 0.0 },
            { "date": "2026-11-10", "total": 1, "completed": 1, "conversionRate": 100.0 },
        ]);
        assert_eq!(*trend, expected);
    }

    /// Sales at the box office are revenue, complimentary tickets are not; both take seats, and so do
    /// blocked ones.
    async fn house_seats_are_counted_in_any_order(world: World) {
        world.consume(&event_created(50, "한강의 밤")).await;
        let sold = Booking::new(1, 50);
        let given = Booking { seats: vec![2], amount: 0, ..Booking::new(2, 50) };
        let events = [
            sold.charged(now(), "box_office_cash"),
            sold.sold_at_box_office(now()),
            given.given_away(now()),
            house_seats_changed(50, 3, 9),
            // An older one is no news.
            house_seats_changed(50, 1, 8),
        ];
        world.consume_all(&events).await;
        world.consume_all(&events).await;
        let event = world.event(50).await;
        assert_eq!((&event["soldSeats"], &event["availableSeats"]), (&json!(3), &json!(2)));
        assert_eq!((&event["confirmedReservations"], &event["totalRevenue"]), (&json!(2), &json!(100_000)));
        world.consume(&house_seats_changed(50, 0, 10)).await;
        assert_eq!(world.event(50).await["availableSeats"], 5);
    }

    /// K-8: payments of all types are revenue; users, events and seats are counted.
    async fn k_8_memberships_transfers_users_events_and_seats_are_counted(world: World) {
        world.consume(&event_created(50, "한강의 밤")).await;
        world.consume(&standing_event_created(51, "클럽 나이트")).await;
        for user in 1..=3 {
            world.consume(&user_registered(user, now())).await;
        }
        world.consume(&user_deleted(3, now())).await;
        world.consume(&other_payment(601, "membership", 30_000, now())).await;
        world.consume(&membership_activated(600, 601, now())).await;
        world.consume(&other_payment(701, "transfer", 110_000, now())).await;
        world.consume(&transfer_completed(700, 110_000, now())).await;
        world.consume_all(&Booking::new(1, 50).sold(now())).await;

        let overview = world.data("overview").await;
        assert_eq!(overview["totalUsers"], 2);
        assert_eq!(overview["activeEvents"], 2);
        assert_eq!(overview["completedPayments"], 3);
        assert_eq!(overview["totalRevenue"], 240_000);
        assert_eq!(overview["memberships"], 1);
        let counts = &world.data("performance").await["database"]["tableCounts"];
        assert_eq!(*counts, json!({
            "users": 2, "events": 2, "reservations": 1, "seats": 38, "payments": 3,
        }));
    }

    /// K-5: transfers have their own counters; one that was called off disturbs nothing.
    async fn k_5_transfers_are_counted_and_one_that_was_called_off_disturbs_nothing(world: World) {
        world.consume(&transfer_completed(700, 110_000, now())).await;
        world.consume(&message("TRANSFER_CANCELLED", now(), json!({ "transferId": "x" }))).await;
        assert_eq!(world.day("2026-11-15").await["transfers"], 1);
        let (_, page) = world.get_as(Some(UserRole::Admin), "activity?days=1").await;
        let activity = page["activity"].as_array().unwrap();
        let types: Vec<&str> = activity.iter().filter_map(|row| row["eventType"].as_str()).collect();
        assert_eq!(types, ["TRANSFER_CANCELLED", "TRANSFER_COMPLETED"]);
    }

    /// K-10: neither the id nor the time of a message makes a second fact of a copy.
    async fn k_10_a_copy_under_another_id_and_time_counts_once(world: World) {
        let booking = Booking::new(1, 50);
        let mut all = booking.sold(now() - 2 * DAY);
        all.push(booking.cancelled(now() - DAY, 60_000));
        all.push(booking.refunded(now() - DAY, "card", 60_000, "cancelled"));
        all.push(user_registered(1, now() - DAY));
        all.push(transfer_completed(700, 9, now() - DAY));
        all.push(membership_activated(600, 601, now() - DAY));
        world.consume_all(&all).await;
        let without_activity = |rows: Vec<String>| -> Vec<String> {
            rows.into_iter().filter(|row| !row.starts_with("activity")).collect()
        };
        let before = without_activity(world.counters().await);
        for event in &all {
            world.consume(&copy_of(event, 26 * HOUR)).await;
        }
        assert_eq!(without_activity(world.counters().await), before);
        // The control: another reservation is not a copy.
        world.consume(&Booking::new(2, 50).created(now())).await;
        assert_ne!(without_activity(world.counters().await), before);
    }

    /// K-10: each alone, and twice in one transaction. The statistics have no inbox.
    async fn k_10_a_message_that_comes_again_counts_once(world: World) {
        let booking = Booking::new(1, 50);
        let mut events = booking.sold(now() - DAY);
        events.push(booking.cancelled(now(), 60_000));
        events.push(booking.refunded(now(), "card", 60_000, "cancelled"));
        world.consume_all(&events).await;
        let before = world.counters().await;
        for event in &events {
            world.consume(event).await;
            assert_eq!(world.counters().await, before, "{}", event.event_type);
        }
        world.consume_together(&[events.clone(), events].concat()).await;
        assert_eq!(world.counters().await, before);
    }

    async fn a_membership_that_is_renewed_counts_again(world: World) {
        world.consume(&membership_activated(600, 601, now() - 2 * DAY)).await;
        world.consume(&membership_activated(600, 602, now())).await;
        assert_eq!(world.data("overview").await["memberships"], 2);
    }

    async fn money_needs_more_than_32_bits(world: World) {
        let rich = Booking { amount: 9_000_000_000, ..Booking::new(1, 50) };
        world.consume(&rich.charged(now(), "card")).await;
        let other = Booking { amount: 9_000_000_000, ..Booking::new(2, 50) };
        world.consume(&other.charged(now(), "card")).await;
        assert_eq!(world.day("2026-11-15").await["revenue"], 18_000_000_000_i64);
        assert_eq!(world.event(50).await["totalRevenue"], 18_000_000_000_i64);
        let methods = world.data("payments").await;
        assert_eq!(methods[0]["totalAmount"], 18_000_000_000_i64);
    }

    async fn a_day_and_an_hour_end_at_korean_midnight(world: World) {
        world.consume(&Booking::new(1, 50).created(time("2026-11-13T14:59:59Z"))).await;
        world.consume(&Booking::new(2, 50).created(time("2026-11-13T15:00:00Z"))).await;
        assert_eq!(world.day("2026-11-13").await["reservations"], 1);
        assert_eq!(world.day("2026-11-14").await["reservations"], 1);
        let hourly = &world.data("hourly-traffic").await["hourly"];
        let of = |hour: usize| hourly[hour]["totalReservations"].as_i64().unwrap();
        assert_eq!((of(23), of(0), of(15)), (1, 1, 0));
    }

    async fn the_day_is_when_it_happened_and_not_when_its_message_came(world: World) {
        world.consume(&Booking::new(1, 50).created(now() - 6 * DAY)).await;
        assert_eq!(world.day("2026-11-09").await["reservations"], 1);
        assert_eq!(world.day("2026-11-15").await, Value::Null);
    }

    async fn a_hold_that_changed_its_seats_sells_the_last_ones(world: World) {
        world.consume(&event_created(50, "한강의 밤")).await;
        let first = Booking::new(1, 50);
        let then = Booking { seats: vec![4], amount: 40_000, ..first.clone() };
        world.consume(&first.created(now())).await;
        world.consume(&then.changed(now() + MINUTE)).await;
        world.consume(&then.confirmed(now() + 2 * MINUTE)).await;
        world.consume(&copy_of(&first.created(now()), HOUR)).await;
        assert_eq!(world.event(50).await["soldSeats"], 1);
        let seats = world.data(&format!("seat-preferences?eventId={}", Uuid::from_u128(50))).await;
        assert_eq!(seats["topRows"][0]["section"], "B");
        assert_eq!(seats["topRows"].as_array().unwrap().len(), 1);
    }

    async fn holds_are_counted_by_how_they_ended(world: World) {
        for (id, at) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
            world.consume(&Booking::new(id, 50).created(now() - 2 * HOUR + at * MINUTE)).await;
        }
        world.consume(&Booking::new(1, 50).expired(now())).await;
        world.consume(&Booking::new(2, 50).cancelled(now(), 0)).await;
        world.consume(&Booking::new(3, 50).confirmed(now())).await;
        let conversion = world.data("conversion").await;
        let expected = json!({
            "totalStarted": 4, "completed": 1, "cancelled": 1, "expired": 1, "pending": 1,
        });
        assert_eq!(conversion["funnel"], expected);
        assert_eq!(conversion["rates"], json!({
            "conversionRate": 25.0, "cancellationRate": 25.0, "pendingRate": 25.0,
        }));
    }

    /// The control of the one above: nothing goes back, so nothing is counted as given back.
    async fn a_cancellation_that_keeps_everything_is_no_refund(world: World) {
        let booking = Booking::new(1, 50);
        world.consume_all(&booking.sold(now())).await;
        world.consume(&booking.refunded(now(), "card", 0, "cancelled")).await;
        let day = world.day("2026-11-15").await;
        assert_eq!((&day["refunds"], &day["revenue"]), (&json!(0), &json!(100_000)));
        assert_eq!(world.data("payments").await[0]["refundCount"], 0);
    }

    async fn an_older_revision_does_not_overwrite_a_newer_one(world: World) {
        world.consume(&event_updated(50, "새 이름", 3)).await;
        world.consume(&event_cancelled(50, 4)).await;
        world.consume(&event_created(50, "옛 이름")).await;
        world.consume(&event_updated(50, "둘째 이름", 2)).await;
        let event = world.event(50).await;
        assert_eq!(event["title"], "새 이름");
        assert_eq!(event["status"], "cancelled");
        assert_eq!(event["totalSeats"], 8, "the seats come with the first message, however late");
    }

    async fn the_tickets_of_a_standing_event_follow_the_ticket_office(world: World) {
        world.consume(&ticket_type_changed(51, 50, 7)).await;
        world.consume(&ticket_type_changed(51, 40, 6)).await;
        world.consume(&standing_event_created(51, "클럽 나이트")).await;
        assert_eq!(world.event(51).await["totalSeats"], 60);
        world.consume(&ticket_type_changed(51, 20, 8)).await;
        assert_eq!(world.event(51).await["totalSeats"], 30);
    }

    async fn an_event_that_is_not_known_yet_is_called_after_its_id(world: World) {
        world.consume(&Booking::new(1, 50).created(now())).await;
        assert_eq!(world.event(50).await["title"], "Event 00000000");
        assert_eq!(world.data("overview").await["activeEvents"], 0);
        world.consume(&event_created(50, "한강의 밤")).await;
        assert_eq!(world.event(50).await["title"], "한강의 밤");
        assert_eq!(world.event(50).await["venue"], "강변 극장");
    }
}
