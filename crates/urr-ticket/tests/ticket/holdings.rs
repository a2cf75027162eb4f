//! What the auth service is told of a user: what they would lose, and all that is stored.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::Caller;

use crate::contract;
use crate::fixture::{World, hall};
use crate::operations::CallerIdentity;

async fn ask(world: &World, who: CallerIdentity, user_id: Uuid) -> (u16, Value) {
    let path = format!("/internal/ticket/holdings/{user_id}");
    world.call(who, Method::GET, &path, Value::Null).await
}

async fn told(world: &World, user_id: Uuid) -> Value {
    let (status, answer) = ask(world, CallerIdentity::Service(Caller::Auth), user_id).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn kinds(answer: &Value) -> Vec<&str> {
    let holdings = answer["holdings"].as_array().unwrap();
    holdings.iter().filter_map(|holding| holding["kind"].as_str()).collect()
}

contract! {
    async fn what_is_valid_is_named_and_what_is_over_is_not(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        let user_id = world.ids.next_id();
        let nothing = told(&world, user_id).await;
        assert_eq!((kinds(&nothing).len(), &nothing["hasBought"]), (0, &json!(false)));

        let held = world.hold(event_id, user_id, &[0]).await;
        let answer = told(&world, user_id).await;
        assert_eq!((kinds(&answer), &answer["hasBought"]), (vec!["hold"], &json!(true)));
        let paid = world.pay(&held).await;
        let answer = told(&world, user_id).await;
        assert_eq!(kinds(&answer), ["reservation"]);
        let holding = &answer["holdings"][0];
        assert_eq!(holding["number"], paid.record.reservation.number);
        assert_eq!(holding["time"], json!(paid.record.starts_at));
        assert_eq!(answer["records"]["reservations"][0]["status"], "confirmed");
        assert_eq!(answer["records"]["tickets"].as_array().unwrap().len(), 1);
        let stranger = told(&world, world.ids.next_id()).await;
        assert_eq!(stranger["records"]["reservations"], json!([]), "nothing of others");

        world.clock.advance(std::time::Duration::from_secs(400 * 24 * 60 * 60));
        let answer = told(&world, user_id).await;
        assert_eq!(kinds(&answer).len(), 0, "the event is over");
        assert_eq!(answer["hasBought"], true);
    }

    async fn a_cancelled_purchase_is_no_loss_and_was_a_purchase(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        let user_id = world.ids.next_id();
        let paid = world.pay(&world.hold(event_id, user_id, &[0]).await).await;
        world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        let answer = told(&world, user_id).await;
        assert_eq!((kinds(&answer).len(), &answer["hasBought"]), (0, &json!(true)));
    }

    async fn only_the_auth_service_may_ask(world: World) {
        let user_id = world.ids.next_id();
        let others = [
            CallerIdentity::Service(Caller::Mail),
            CallerIdentity::Service(Caller::Payment),
            CallerIdentity::User(user_id),
        ];
        for other in others {
            assert_eq!(ask(&world, other, user_id).await.0, 403);
        }
    }
}
