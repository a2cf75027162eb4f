//! The pages' counters over HTTP: what they are, what they are when there is nothing, who may see
//! them, and what is asked for that is not there.

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{
    Booking, DAY, HOUR, MINUTE, World, event_created, now, standing_event_created, user_deleted,
    user_registered, user_role_changed,
};

const PATHS: [&str; 13] = [
    "overview",
    "daily",
    "events",
    "payments",
    "revenue",
    "users",
    "hourly-traffic",
    "conversion",
    "cancellations",
    "realtime",
    "seat-preferences",
    "user-behavior",
    "performance",
];

/// Three reservations of two events: one sold last Thursday, one sold and given back on Saturday,
/// one held at this moment.
async fn tell_a_story(world: &World) {
    world.consume(&event_created(50, "한강의 밤")).await;
    world.consume(&standing_event_created(51, "클럽 나이트")).await;
    let kept = Booking { seats: vec![0, 4], ..Booking::new(1, 50) };
    world.consume_all(&kept.sold(now() - 3 * DAY)).await;
    let back = Booking { user: 2, amount: 60_000, seats: vec![], ..Booking::new(2, 51) };
    let at = now() - DAY;
    world.consume(&back.created(at)).await;
    world.consume(&back.charged(at + 3 * MINUTE, "easy_pay")).await;
    world.consume(&back.confirmed(at + 3 * MINUTE)).await;
    world.consume(&back.cancelled(at + 6 * HOUR, 54_000)).await;
    world.consume(&back.refunded(at + 7 * HOUR, "easy_pay", 54_000, "cancelled")).await;
    world.consume(&Booking { seats: vec![1], ..Booking::new(3, 50) }.created(now() - MINUTE)).await;
}

fn find<'a>(list: &'a Value, key: &str, value: &Value) -> &'a Value {
    list.as_array().unwrap().iter().find(|item| item[key] == *value).unwrap()
}

contract! {
    async fn statistics_are_for_administrators_alone(world: World) {
        let event = format!("events/{}", Uuid::from_u128(50));
        for path in PATHS.into_iter().chain([event.as_str(), "activity"]) {
            let (status, _) = world.get_as(None, path).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            let (status, _) = world.get_as(Some(UserRole::User), path).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        }
        for path in PATHS {
            world.data(path).await;
        }
    }

    /// Who asks as an organiser has the id 7.
    async fn an_organiser_sees_the_sales_of_their_own_events_only(world: World) {
        for (event, organiser) in [(50, 7), (51, 8)] {
            let mut created = event_created(event, "한강의 밤");
            created.data["organiserId"] = json!(Uuid::from_u128(organiser));
            world.consume(&created).await;
            world.consume_all(&Booking::new(event + 100, event).sold(now() - DAY)).await;
        }
        world.consume(&event_created(52, "주인 없는 밤")).await;
        let [own, other, nobodys] = [50, 51, 52].map(Uuid::from_u128);
        let organiser = Some(UserRole::Organiser);
        let (status, body) = world.get_as(organiser, "events?limit=100").await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let listed = body["data"].as_array().unwrap();
        assert_eq!((listed.len(), &listed[0]["id"]), (1, &json!(own)), "{body}");
        assert_eq!(listed[0]["revenue"], 100_000);
        let (_, seen) = world.get_as(organiser, &format!("events/{own}")).await;
        assert_eq!(seen["data"]["overview"]["totalRevenue"], 100_000, "{seen}");
        for event in [other, nobodys] {
            let (status, body) = world.get_as(organiser, &format!("events/{event}")).await;
            assert_eq!((status.as_u16(), &body["code"]), (404, &json!("EVENT_NOT_FOUND")));
        }
        // Sums over everybody's events are not theirs.
        for path in PATHS.into_iter().filter(|path| *path != "events").chain(["activity"]) {
            assert_eq!(world.get_as(organiser, path).await.0, StatusCode::FORBIDDEN, "{path}");
        }
        assert_eq!(world.data("events").await.as_array().unwrap().len(), 3, "the control");
    }

    async fn lists_are_files_with_the_same_rows(world: World) {
        tell_a_story(&world).await;
        for (path, list, header) in [
            ("daily.csv?language=en", "daily", "Day,Reservations,"),
            ("events.csv?language=en", "events", "Event,Title,"),
            ("payments.csv?language=en", "payments", "Method,Payments,"),
            ("revenue.csv?language=en", "revenue", "Period,Payments,"),
            ("revenue.csv?period=monthly&language=ko", "revenue?period=monthly", "기간,결제 건수,"),
        ] {
            let text = world.file(UserRole::Admin, path).await;
            let lines: Vec<&str> = text.trim_end().split("\r\n").collect();
            assert!(lines[0].starts_with(&format!("\u{feff}{header}")), "{text}");
            let rows = world.data(list).await.as_array().unwrap().len();
            assert_eq!(lines.len() - 1, rows, "{path}: {text}");
        }
        let hours = world.file(UserRole::Admin, "hourly-traffic.csv").await;
        assert_eq!(hours.trim_end().split("\r\n").count(), 25);
        let revenue = world.file(UserRole::Admin, "daily.csv?days=3&language=en").await;
        assert!(revenue.contains("2026-11-14,1,1,1,0,6000,54000,0,0,0"), "{revenue}");
        // Who asks as an organiser has no event here, and no other list.
        assert_eq!(world.file(UserRole::Organiser, "events.csv").await.lines().count(), 1);
        let (status, _) = world.get_as(Some(UserRole::Organiser), "daily.csv").await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }

    async fn without_any_event_every_page_is_empty_and_none_fails(world: World) {
        for path in ["daily", "events", "payments", "revenue", "revenue?period=monthly"] {
            assert_eq!(world.data(path).await, json!([]), "{path}");
        }
        assert_eq!(world.data("overview").await["totalRevenue"], 0);
        let users = world.data("users").await;
        assert_eq!(users, json!({ "daily": [], "byRole": [] }));
        let traffic = world.data("hourly-traffic").await;
        assert_eq!(traffic["hourly"].as_array().unwrap().len(), 24);
        assert_eq!(traffic["peakHour"], json!({ "hour": 0, "reservations": 0 }));
        assert_eq!(world.data("conversion").await["rates"]["conversionRate"], 0.0);
        assert_eq!(world.data("cancellations").await["overview"]["avgHoursBeforeCancel"], 0.0);
        assert_eq!(world.data("realtime").await["recentActivity"], json!([]));
        let seats = world.data("seat-preferences").await;
        assert_eq!(seats, json!({ "bySection": [], "byPriceTier": [], "topRows": [] }));
        assert_eq!(world.data("user-behavior").await["avgTimeToPayment"], "0.00");
        assert_eq!(world.data("performance").await["metrics"]["avgSeatLockSeconds"], "0.00");
    }

    async fn the_overview_and_the_days_add_up(world: World) {
        tell_a_story(&world).await;
        let expected = json!({
            "totalUsers": 0, "activeEvents": 2, "totalReservations": 3,
            "confirmedReservations": 2, "cancelledReservations": 1, "expiredReservations": 0,
            "totalRevenue": 106_000, "completedPayments": 2, "paymentRevenue": 160_000,
            "refunds": 54_000, "transfers": 0, "memberships": 0,
        });
        assert_eq!(world.data("overview").await, expected);
        let days = world.data("daily?days=3").await;
        let dates: Vec<&Value> =
            days.as_array().unwrap().iter().map(|day| &day["date"]).collect();
        assert_eq!(dates, ["2026-11-15", "2026-11-14"], "newest first, three days with today");
        assert_eq!(days[1], json!({
            "date": "2026-11-14", "reservations": 1, "confirmed": 1, "cancelled": 1,
            "expired": 0, "revenue": 6_000, "refunds": 54_000, "transfers": 0,
            "memberships": 0, "newUsers": 0,
        }));
    }

    async fn events_are_listed_by_what_is_asked_for(world: World) {
        tell_a_story(&world).await;
        let titles = async |query: &str| -> Vec<String> {
            let events = world.data(&format!("events{query}")).await;
            let title = |event: &Value| event["title"].as_str().unwrap().to_owned();
            events.as_array().unwrap().iter().map(title).collect()
        };
        for order in ["", "?sortBy=revenue", "?sortBy=reservations", "?sortBy=occupancy"] {
            assert_eq!(titles(order).await, ["한강의 밤", "클럽 나이트"], "{order}");
        }
        assert_eq!(titles("?limit=1").await, ["한강의 밤"]);
        assert_eq!(titles("?limit=-3").await.len(), 2);
        let events = world.data("events").await;
        assert_eq!(events[0], json!({
            "id": Uuid::from_u128(50), "title": "한강의 밤", "venue": "강변 극장",
            "eventDate": "2026-12-15T03:00:00Z", "status": "on_sale", "reservations": 2,
            "confirmedReservations": 1, "revenue": 100_000, "totalSeats": 8, "soldSeats": 2,
            "occupancyRate": 25.0,
        }));
        // Another order: more reservations of the one that brought less.
        for id in 10..15 {
            world.consume(&Booking::new(id, 51).created(now())).await;
        }
        assert_eq!(titles("?sortBy=reservations&limit=1").await, ["클럽 나이트"]);
        assert_eq!(titles("?sortBy=revenue&limit=1").await, ["한강의 밤"]);
    }

    async fn an_event_has_its_own_counters_and_an_unknown_one_has_none(world: World) {
        tell_a_story(&world).await;
        assert_eq!(world.event(50).await, json!({
            "id": Uuid::from_u128(50), "title": "한강의 밤", "venue": "강변 극장",
            "eventDate": "2026-12-15T03:00:00Z", "status": "on_sale", "totalReservations": 2,
            "confirmedReservations": 1, "pendingReservations": 1, "cancelledReservations": 0,
            "expiredReservations": 0, "totalRevenue": 100_000, "totalSeats": 8, "soldSeats": 2,
            "availableSeats": 6, "occupancyRate": 25.0,
        }));
        for path in ["events/", "seat-preferences?eventId="] {
            let path = format!("{path}{}", Uuid::from_u128(99));
            let (status, body) = world.get_as(Some(UserRole::Admin), &path).await;
            assert_eq!((status, &body["code"]), (StatusCode::NOT_FOUND, &json!("EVENT_NOT_FOUND")));
        }
    }

    async fn payments_are_listed_by_method_and_revenue_by_period(world: World) {
        tell_a_story(&world).await;
        assert_eq!(world.data("payments").await, json!([
            { "method": "card", "count": 1, "totalAmount": 100_000, "averageAmount": 100_000,
              "refundCount": 0, "refundAmount": 0 },
            { "method": "easy_pay", "count": 1, "totalAmount": 60_000, "averageAmount": 60_000,
              "refundCount": 1, "refundAmount": 54_000 },
        ]));
        assert_eq!(world.data("revenue").await, json!([
            { "period": "2026-11-14", "paymentCount": 1, "totalRevenue": 6_000,
              "averageAmount": 60_000, "refunds": 54_000 },
            { "period": "2026-11-12", "paymentCount": 1, "totalRevenue": 100_000,
              "averageAmount": 100_000, "refunds": 0 },
        ]));
        let sum = json!([{ "period": "2026-11-09", "paymentCount": 2, "totalRevenue": 106_000,
            "averageAmount": 80_000, "refunds": 54_000 }]);
        assert_eq!(world.data("revenue?period=weekly").await, sum);
        assert_eq!(world.data("revenue?period=monthly").await[0]["period"], "2026-11");
    }

    async fn users_are_counted_by_day_and_in_total(world: World) {
        world.consume(&user_registered(1, now() - 40 * DAY)).await;
        world.consume(&user_registered(2, now() - 2 * DAY)).await;
        world.consume(&user_registered(3, now() - 2 * DAY)).await;
        world.consume(&user_deleted(1, now())).await;
        assert_eq!(world.data("users").await, json!({
            "daily": [
                { "date": "2026-11-15", "newUsers": 0, "cumulativeUsers": 2 },
                { "date": "2026-11-13", "newUsers": 2, "cumulativeUsers": 3 },
            ],
            "byRole": [{ "role": "user", "count": 2 }],
        }));
    }

    /// Of two announcements the later one counts, whichever comes first.
    async fn accounts_are_counted_by_the_role_that_they_have_now(world: World) {
        for user in 1..=3 {
            world.consume(&user_registered(user, now() - 2 * DAY)).await;
        }
        world.consume(&user_role_changed(2, "user", now())).await;
        world.consume(&user_role_changed(2, "admin", now() - DAY)).await;
        world.consume(&user_role_changed(3, "admin", now() - DAY)).await;
        // The change of a role may come before the account itself.
        world.consume(&user_role_changed(4, "admin", now() - DAY)).await;
        let by_role = |admins, users| json!([
            { "role": "admin", "count": admins }, { "role": "user", "count": users },
        ]);
        assert_eq!(world.data("users").await["byRole"], by_role(1, 2));
        world.consume(&user_registered(4, now() - 2 * DAY)).await;
        assert_eq!(world.data("users").await["byRole"], by_role(2, 2));
        world.consume(&user_deleted(3, now())).await;
        assert_eq!(world.data("users").await["byRole"], by_role(1, 2));
    }

    async fn traffic_is_counted_by_hour_and_kind_of_day(world: World) {
        tell_a_story(&world).await;
        let traffic = world.data("hourly-traffic").await;
        let noon = json!({ "hour": 12, "totalReservations": 2, "confirmed": 2, "cancelled": 0,
            "revenue": 160_000 });
        assert_eq!(traffic["hourly"][12], noon);
        assert_eq!(traffic["hourly"][11]["totalReservations"], 1);
        assert_eq!(traffic["hourly"][18]["cancelled"], 1);
        assert_eq!(traffic["hourly"][19]["revenue"], -54_000);
        assert_eq!(traffic["peakHour"], json!({ "hour": 12, "reservations": 2 }));
        assert_eq!(traffic["weekdayComparison"], json!([
            { "dayType": "weekday", "reservations": 1, "avgAmount": 100_000 },
            { "dayType": "weekend", "reservations": 2, "avgAmount": 60_000 },
        ]));
        let today = world.data("hourly-traffic?days=1").await;
        assert_eq!(today["hourly"][12]["totalReservations"], 0);
    }

    async fn cancellations_are_listed_with_their_refunds(world: World) {
        tell_a_story(&world).await;
        let found = world.data("cancellations").await;
        assert_eq!(found["overview"], json!({
            "totalCancelled": 1, "avgHoursBeforeCancel": 6.0, "totalRefundAmount": 54_000,
        }));
        assert_eq!(found["hourlyPattern"][18], json!({ "hour": 18, "cancellations": 1 }));
        assert_eq!(found["byEvent"], json!([{
            "id": Uuid::from_u128(51), "title": "클럽 나이트", "totalReservations": 1,
            "cancelled": 1, "cancellationRate": 100.0,
        }]));
        let trend = json!([{ "date": "2026-11-14", "cancellations": 1 }]);
        assert_eq!(found["dailyTrend"], trend);
        let today = world.data("cancellations?days=1").await;
        assert_eq!(today["overview"]["totalCancelled"], 0);
        assert_eq!(today["byEvent"], json!([]));
    }

    async fn what_happens_now_is_what_is_held_and_the_last_hour(world: World) {
        tell_a_story(&world).await;
        let found = world.data("realtime").await;
        let current = json!({ "lockedSeats": 1, "activePayments": 0, "activeUsers": 1 });
        assert_eq!(found["current"], current);
        assert_eq!(found["lastHour"], json!({ "reservations": 1, "revenue": 0 }));
        assert_eq!(found["trendingEvents"], json!([
            { "id": Uuid::from_u128(50), "title": "한강의 밤", "recentReservations": 1 },
        ]));
        let recent = found["recentActivity"].as_array().unwrap();
        let states: Vec<&Value> = recent.iter().map(|item| &item["status"]).collect();
        assert_eq!(states, ["pending", "cancelled", "confirmed"]);
        // Ten minutes later the hold's time is over, whether or not somebody said so.
        world.clock.advance(10 * MINUTE);
        assert_eq!(world.data("realtime").await["current"]["lockedSeats"], 0);
    }

    async fn seats_are_counted_by_section_price_and_row(world: World) {
        tell_a_story(&world).await;
        let found = world.data(&format!("seat-preferences?eventId={}", Uuid::from_u128(50))).await;
        let section = |section, total: i64, rate: f64| json!({
            "section": section, "totalSeats": total, "reservedSeats": 1, "reservationRate": rate,
        });
        let sections = json!([section("A", 4, 25.0), section("B", 4, 25.0)]);
        assert_eq!(found["bySection"], sections);
        let tier = |tier, price: i64| json!({
            "priceTier": tier, "totalSeats": 4, "reservedSeats": 1, "reservationRate": 25.0,
            "avgPrice": price,
        });
        assert_eq!(found["byPriceTier"], json!([tier("budget", 40_000), tier("vip", 160_000)]));
        let rows = found["topRows"].as_array().unwrap();
        let names: Vec<_> = rows.iter().map(|row| (&row["section"], &row["rowNumber"])).collect();
        assert_eq!(names, [(&json!("A"), &json!("1")), (&json!("B"), &json!("1"))]);
        let all = world.data("seat-preferences").await;
        let standing = find(&all["bySection"], "section", &json!("standing"));
        assert_eq!(standing["totalSeats"], 30);
        let standard = find(&all["byPriceTier"], "priceTier", &json!("standard"));
        assert_eq!(standard["avgPrice"], 70_000);
    }

    async fn behaviour_is_that_of_users_who_came_within_the_days(world: World) {
        tell_a_story(&world).await;
        world.consume(&Booking::new(9, 50).created(now() - 60 * DAY)).await;
        let found = world.data("user-behavior").await;
        assert_eq!(found["userTypes"], json!([
            { "type": "new", "userCount": 1 },
            { "type": "returning", "userCount": 1 },
            { "type": "loyal", "userCount": 0 },
        ]));
        assert_eq!(found["averageMetrics"], json!({
            "avgReservations": 1.5, "maxReservations": 2, "medianReservations": 1,
        }));
        assert_eq!(found["spendingDistribution"], json!([
            { "spendingTier": "under_50000", "userCount": 1 },
            { "spendingTier": "under_150000", "userCount": 1 },
            { "spendingTier": "under_300000", "userCount": 0 },
            { "spendingTier": "300000_and_more", "userCount": 0 },
        ]));
        assert_eq!(found["avgTimeToPayment"], "2.50");
        assert_eq!(found["weekdayActivity"][6]["weekday"], 7);
        assert_eq!(found["weekdayActivity"][6]["reservations"], 1);
    }

    async fn performance_is_of_what_happened_in_a_week(world: World) {
        tell_a_story(&world).await;
        let undelivered = Booking::new(30, 50);
        world.consume(&undelivered.charged(now(), "card")).await;
        world.consume(&undelivered.refunded(now(), "card", 100_000, "not_confirmable")).await;
        let found = world.data("performance").await;
        let recent = json!({ "successRate": 100.0, "totalRequests": 3 });
        assert_eq!(found["recentPerformance"], recent);
        let metrics = json!({ "avgSeatLockSeconds": "150.00", "paymentFailureRate": 33.33 });
        assert_eq!(found["metrics"], metrics);
        let load = json!({ "hour": 12, "requestCount": 2, "avgPerDay": 0.29 });
        assert_eq!(found["loadPattern"][12], load);
        assert!(found["database"]["sizeBytes"].as_i64().unwrap() > 0);
        assert!(found["database"]["size"].as_str().unwrap().ends_with(" MB"));
    }

    async fn numbers_out_of_range_are_moved_into_it(world: World) {
        tell_a_story(&world).await;
        let default = world.data("daily").await;
        for days in ["0", "-5", "30"] {
            assert_eq!(world.data(&format!("daily?days={days}")).await, default, "{days}");
        }
        world.consume(&Booking::new(8, 50).created(now() - 364 * DAY)).await;
        world.consume(&Booking::new(9, 50).created(now() - 365 * DAY)).await;
        let days = world.data("daily?days=9223372036854775807").await;
        assert_eq!(days.as_array().unwrap().last().unwrap()["date"], "2025-11-16");
        assert_eq!(world.data("events?limit=5000").await.as_array().unwrap().len(), 2);
        let week = world.data("hourly-traffic?days=0").await;
        assert_eq!(week, world.data("hourly-traffic?days=7").await);
    }

    async fn what_cannot_be_asked_is_refused_and_is_no_failure_of_ours(world: World) {
        for path in [
            "daily?days=many", "events?limit=1.5", "events?sortBy=title", "revenue?period=yearly",
            "events/not-an-id", "seat-preferences?eventId=1", "users?days=99999999999999999999",
        ] {
            let (status, body) = world.get_as(Some(UserRole::Admin), path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {body}");
        }
    }
}
