//! The waiting room with the whole system behind it: what is sold, what is not open yet, and for
//! whom.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::{Deployment, TestApp, TestResponse};
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_test::eventually;

use crate::fixture::run;

async fn check(app: &TestApp, event_id: &str, user_id: Uuid) -> TestResponse {
    let path = format!("/api/queue/check/{event_id}");
    app.post(&path).as_person(user_id, UserRole::User).send().await
}

/// Of the demo data, by a word of its title.
async fn find_event(app: &TestApp, word: &str) -> String {
    let events = app.get("/api/events?limit=50").send().await.json();
    let events = events["events"].as_array().unwrap().clone();
    let title = |event: &Value| event["title"].as_str().unwrap().to_owned();
    let event = events.iter().find(|event| title(event).contains(word));
    let id = event.unwrap_or_else(|| panic!("{word} is not in {events:?}"))["id"].as_str();
    let id = id.unwrap().to_owned();
    app.await_room(id.parse().unwrap()).await;
    id
}

/// Q8, B-1: the catalog decides who may come, and in a pre-sale the ticket service knows the
/// members.
#[test]
fn b_1_the_demo_data_have_events_in_every_state_of_a_waiting_room() {
    run(Deployment::Embedded, async |app| {
        app.seed_demo().await;
        let fan = app.ids.next_id();
        let open = check(&app, &find_event(&app, "Opera Night").await, fan).await.json();
        assert_eq!((&open["status"], &open["phase"]), (&json!("active"), &json!("open")));
        let soon = check(&app, &find_event(&app, "Moonlit Live").await, fan).await.json();
        assert_eq!((&soon["status"], &soon["phase"]), (&json!("queued"), &json!("gathering")));
        let later = check(&app, &find_event(&app, "Sea of Sound").await, fan).await;
        assert_eq!(later.refusal(), (409, "SALE_NOT_OPEN".to_owned()));
        let members = check(&app, &find_event(&app, "Riverside").await, fan).await;
        assert_eq!(members.refusal(), (403, "PRESALE_MEMBERS_ONLY".to_owned()));
        app.clock.advance(Duration::from_mins(3));
        let soon = find_event(&app, "Moonlit Live").await;
        eventually("the room opens", async || {
            app.clock.advance(Duration::from_secs(1));
            (check(&app, &soon, fan).await.json()["status"] == "active").then_some(())
        })
        .await;
        app.stop().await;
    });
}

/// Q14: the ticket service reports what is left, and the waiting room shows it.
#[test]
fn q_14_sold_out_is_told_to_those_who_wait() {
    run(Deployment::Embedded, async |app| {
        let event_id = crate::booking::create_event(&app).await;
        let path = format!("/api/queue/crowd/{event_id}");
        let told = async |is_sold_out: bool| {
            eventually("the waiting room knows what is left", async || {
                app.clock.advance(Duration::from_secs(1));
                let crowd = app.get(&path).send().await.json();
                (crowd["soldOut"] == is_sold_out).then_some(())
            })
            .await;
        };
        // All ten seats, four at most for each.
        let mut held = Vec::new();
        for seats in [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]] {
            let user_id = app.ids.next_id();
            let entry = app.admit(user_id, event_id).await;
            let body = json!({"eventId": event_id, "seatIds": seats});
            let answer = app.post("/api/seats/reserve").as_admitted(user_id, &entry);
            let answer = answer.json(&body).send().await;
            assert_eq!(answer.status, 201, "{}", answer.json());
            held.push((user_id, answer.json()["reservation"]["id"].as_str().unwrap().to_owned()));
        }
        told(false).await;
        let late = app.ids.next_id();
        let active = check(&app, &event_id.to_string(), late).await.json();
        assert_eq!(active["status"], "active", "what is held may come back");
        for (user_id, id) in &held {
            crate::slot_attacks::pay(&app, *user_id, id).await;
        }
        told(true).await;
        let last = check(&app, &event_id.to_string(), app.ids.next_id()).await.json();
        assert_eq!((&last["status"], &last["soldOut"]), (&json!("queued"), &json!(true)));
        let (user_id, id) = &held[0];
        let cancel = format!("/api/reservations/{id}/cancel");
        let cancelled = app.request(Method::POST, &cancel).as_person(*user_id, UserRole::User);
        assert_eq!(cancelled.send().await.status, 200);
        told(false).await;
        app.stop().await;
    });
}
