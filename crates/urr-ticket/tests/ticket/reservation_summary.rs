//! What the mail service is told of a reservation.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::Caller;

use crate::contract;
use crate::fixture::hall;
use crate::operations::CallerIdentity;

contract! {
    async fn what_was_booked_is_told_to_the_mail_service_as_people_call_it(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (standing, type_id) = world.open_standing(10).await;
        let seated = world.hold(event_id, world.ids.next_id(), &[2, 3]).await;
        let tickets = world.hold_tickets(standing, type_id, 3).await;
        let ask = async |who: CallerIdentity, id: Uuid| {
            let path = format!("/internal/ticket/reservations/{id}/summary");
            world.call(who, Method::GET, &path, Value::Null).await
        };
        let (status, answer) = ask(CallerIdentity::Service(Caller::Mail), seated.reservation.id.0).await;
        let told = &answer["reservation"];
        assert_eq!((status, &told["quantity"]), (200, &json!(2)), "{answer}");
        assert_eq!(told["reservationNumber"], seated.reservation.number);
        assert_eq!(told["eventId"], json!(event_id));
        assert_eq!(told["eventStartsAt"], json!(seated.starts_at));
        let places: Vec<&str> =
            told["places"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let ends = |at: usize, end: &str| places.get(at).is_some_and(|place| place.ends_with(end));
        assert!(places.len() == 2 && ends(0, "-3") && ends(1, "-4"), "{told}");
        assert!(told["eventTitle"].is_string() && told["venueName"].is_string(), "{told}");
        let (_, answer) = ask(CallerIdentity::Service(Caller::Mail), tickets.reservation.id.0).await;
        let places = answer["reservation"]["places"].as_array().unwrap().clone();
        assert!(places.len() == 1 && places[0].as_str().unwrap().ends_with(" × 3"), "{answer}");

        let (status, answer) = ask(CallerIdentity::Service(Caller::Mail), Uuid::from_u128(5)).await;
        assert_eq!((status, &answer["code"]), (404, &json!("RESERVATION_NOT_FOUND")));
        for other in [CallerIdentity::Service(Caller::Payment), CallerIdentity::User(seated.reservation.user_id)] {
            assert_eq!(ask(other, seated.reservation.id.0).await.0, 403);
        }
    }
}
