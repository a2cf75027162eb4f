//! The figures of reservations that the catalog's dashboard shows.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::Caller;

use crate::contract;
use crate::fixture::{MINUTE, World, hall, kind_name, new_sale};
use crate::operations::CallerIdentity;

async fn ask(world: &World, who: CallerIdentity, query: &str) -> (u16, Value) {
    let path = format!("/internal/ticket/reservation-figures{query}");
    world.call(who, Method::GET, &path, Value::Null).await
}

async fn told(world: &World, query: &str) -> Value {
    let (status, answer) = ask(world, CallerIdentity::Service(Caller::Catalog), query).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// How many stand, how many of them are of today, and the revenue.
fn sums(figures: &Value) -> [i64; 3] {
    ["totalReservations", "todayReservations", "totalRevenue"]
        .map(|name| figures[name].as_i64().unwrap())
}

fn recent(figures: &Value) -> Vec<(&str, &str)> {
    let recent = figures["recentReservations"].as_array().unwrap().iter();
    recent.map(|one| (one["userId"].as_str().unwrap(), one["status"].as_str().unwrap())).collect()
}

contract! {
    async fn what_stands_is_counted_and_what_is_paid_is_revenue(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        assert_eq!(sums(&told(&world, "").await), [0, 0, 0]);
        let users: [Uuid; 3] = std::array::from_fn(|_| world.ids.next_id());
        let ids = users.map(|user_id| user_id.to_string());
        world.pay(&world.hold(event_id, users[0], &[0]).await).await;
        world.hold(event_id, users[1], &[1, 2]).await;
        let gone = world.pay(&world.hold(event_id, users[2], &[3]).await).await;
        world.ticket.cancel_reservation(gone.id(), users[2], world.context()).await.unwrap();
        let figures = told(&world, "").await;
        assert_eq!(sums(&figures), [2, 2, 100_000], "neither what is held nor what goes back");
        let states = ["cancelled", "pending", "confirmed"];
        let expected: Vec<(&str, &str)> =
            ids.iter().rev().map(String::as_str).zip(states).collect();
        assert_eq!(recent(&figures), expected, "the newest first");
        let newest = &figures["recentReservations"][0];
        assert_eq!((&newest["eventTitle"], &newest["totalAmount"]), (&json!("한강의 밤"), &json!(100_000)));
        // The hold is over, although nobody has swept it.
        world.clock.advance(30 * MINUTE);
        let figures = told(&world, "").await;
        assert_eq!(sums(&figures), [1, 1, 100_000]);
        assert_eq!(recent(&figures)[1].1, "expired");
    }

    async fn sums_of_past_events_are_stored_and_used_until_something_changes(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        for seat_id in [0, 1] {
            world.pay(&world.hold(event_id, world.ids.next_id(), &[seat_id]).await).await;
        }
        world.hold(event_id, world.ids.next_id(), &[2]).await;
        assert_eq!(world.ticket.sum_past_events().await.unwrap(), 0, "it is not over");
        assert_eq!(sums(&told(&world, "").await), [3, 3, 200_000]);
        world.clock.advance(60 * 24 * 60 * MINUTE);
        world.sweep().await;
        assert_eq!(sums(&told(&world, "").await), [2, 0, 200_000]);
        assert_eq!(world.ticket.sum_past_events().await.unwrap(), 1);
        assert_eq!(world.ticket.sum_past_events().await.unwrap(), 0, "it is done");
        assert_eq!(sums(&told(&world, "").await), [2, 0, 200_000]);
        world.assert_agrees().await;
        world.execute("update event_sums set revenue = 7").await;
        assert_eq!(sums(&told(&world, "").await), [2, 0, 7], "the control: they are used");
        let found = world.ticket.audit().await.unwrap().differences;
        assert_eq!(found.iter().map(kind_name).collect::<Vec<_>>(), ["eventSums"]);
        world.execute("update sales set fence = fence + 1").await;
        assert_eq!(sums(&told(&world, "").await), [2, 0, 200_000], "they are old");
        assert_eq!(world.ticket.sum_past_events().await.unwrap(), 1);
        world.assert_agrees().await;
    }

    /// It is nine in the evening in Seoul, and noon in Greenwich.
    async fn today_ends_at_midnight_in_korea(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        world.pay(&world.hold(event_id, world.ids.next_id(), &[0]).await).await;
        world.clock.advance(179 * MINUTE);
        assert_eq!(sums(&told(&world, "").await), [1, 1, 100_000]);
        world.clock.advance(MINUTE);
        assert_eq!(sums(&told(&world, "").await), [1, 0, 100_000]);
    }

    async fn an_organisers_figures_are_those_of_their_own_events(world: World) {
        let organisers: [Uuid; 2] = std::array::from_fn(|_| world.ids.next_id());
        for (organiser_id, count) in organisers.into_iter().zip([1, 2]) {
            let event_id = world.ids.next_id();
            let mut new = new_sale(event_id, hall(1, 6), &world.clock);
            new.facts.organiser_id = Some(organiser_id);
            assert!(world.sale_insert(new).await);
            for seat in 0..count {
                world.pay(&world.hold(event_id, world.ids.next_id(), &[seat]).await).await;
            }
        }
        for (organiser_id, count) in organisers.into_iter().zip([1, 2]) {
            let figures = told(&world, &format!("?organiserId={organiser_id}")).await;
            assert_eq!(sums(&figures), [count, count, count * 100_000]);
            assert_eq!(recent(&figures).len() as i64, count);
        }
        let nobody = told(&world, &format!("?organiserId={}", world.ids.next_id())).await;
        assert_eq!((sums(&nobody), recent(&nobody)), ([0, 0, 0], vec![]));
        assert_eq!(sums(&told(&world, "").await), [3, 3, 300_000], "the control: all events");
    }

    async fn only_the_catalog_may_ask_for_figures(world: World) {
        let user_id = world.ids.next_id();
        for other in [CallerIdentity::Service(Caller::Mail), CallerIdentity::User(user_id)] {
            assert_eq!(ask(&world, other, "").await.0, 403);
        }
    }
}
