//! Creating events: what is asked for, what is stored, what is announced.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_catalog::{CatalogParts, CatalogService, CatalogSettings};
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{DAY, HOUR, MINUTE, all};

/// A change to a good body, and the code of the refusal.
type Case = (&'static str, Value, &'static str);

/// The body with one field replaced; `null` removes it.
fn with(body: &Value, field: &str, value: &Value) -> Value {
    let mut body = body.clone();
    match value {
        Value::Null => drop(body.as_object_mut().unwrap().remove(field)),
        value => body[field] = value.clone(),
    }
    body
}

contract! {
    /// F-2: creating an event with seats is one transaction here, and the order for the seats goes
    /// out with it. F-1: it is listed at once.
    async fn f_2_a_seated_event_is_stored_announced_and_shown(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let id = world.create_event(&world.seated(&hall)).await;

        let shown = world.get(&format!("/api/events/{id}")).await;
        let event = &shown.body["event"];
        assert_eq!(event["title"], "한강의 밤");
        assert_eq!((&event["kind"], &event["status"]), (&json!("seated"), &json!("upcoming")));
        assert_eq!((&event["minPrice"], &event["maxPrice"]), (&json!(90_000), &json!(150_000)));
        assert_eq!(event["prices"], json!({ "VIP": 150_000, "R": 90_000 }));
        assert_eq!((&event["venueName"], &event["hallName"]), (&json!("강변 극장"), &json!("소극장")));
        assert_eq!(event["capacity"], 20);
        assert_eq!(event["seatsPerUserMax"], 4);
        assert_eq!(event["inventoryReady"], false);
        assert_eq!(world.titles("").await, ["한강의 밤"]);

        let announced = world.announced().await;
        let created = announced.last().unwrap();
        assert_eq!((created.event_type.as_str(), &created.subject), ("EVENT_CREATED", &id));
        let data = &created.data;
        assert_eq!((&data["eventId"], &data["revision"]), (&json!(id), &json!(1)));
        assert_eq!((&data["kind"], &data["status"]), (&json!("seated"), &json!("upcoming")));
        assert_eq!(data["layout"]["sections"].as_array().map(Vec::len), Some(2));
        assert_eq!(data["prices"], json!({ "VIP": 150_000, "R": 90_000 }));
        assert_eq!(data["saleStartsAt"], world.after(DAY));
        assert_eq!(data["seatsPerUserMax"], 4);
        assert_eq!(data["hasPresale"], false);
        assert_eq!(data["ticketTypes"], json!([]));
        assert_eq!(data["artistId"], Value::Null);
    }

    async fn f_2_a_standing_event_has_ticket_types(world: World) {
        let venue = world.venue("클럽 네온").await;
        let id = world.create_event(&world.standing(&venue)).await;
        let shown = world.get(&format!("/api/events/{id}")).await;
        let event = &shown.body["event"];
        assert_eq!((&event["kind"], &event["capacity"]), (&json!("standing"), &json!(300)));
        assert_eq!((&event["minPrice"], &event["maxPrice"]), (&json!(50_000), &json!(70_000)));
        assert_eq!(event["hallId"], Value::Null);
        let types = event["ticketTypes"].as_array().unwrap();
        assert_eq!(types.len(), 2);
        assert_eq!((&types[0]["name"], &types[0]["total"]), (&json!("A"), &json!(100)));
        let announced = world.announced().await;
        let data = &announced.last().unwrap().data;
        assert_eq!(data["ticketTypes"].as_array().unwrap(), types, "the same ids and figures");
        assert_eq!(data["layout"], Value::Null);
    }

    /// F-11: without its id the artist's members would have no pre-sale and no benefits.
    async fn f_11_an_event_gets_the_id_of_its_artist(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let artist = world.artist("한강 밴드").await;
        let mut by_name = world.seated(&hall);
        by_name["artistName"] = json!("한강 밴드");
        by_name["hasPresale"] = json!(true);
        let mut by_id = world.seated(&hall);
        by_id["artistId"] = json!(artist);
        for body in [by_name, by_id] {
            let id = world.create_event(&body).await;
            let shown = world.get(&format!("/api/events/{id}")).await;
            assert_eq!(shown.body["event"]["artistId"], json!(artist));
            assert_eq!(shown.body["event"]["artistName"], "한강 밴드");
            let announced = world.announced().await;
            let data = &announced.last().unwrap().data;
            assert_eq!((&data["artistId"], &data["artistName"]), (&json!(artist), &json!("한강 밴드")));
        }
        let mut unknown = world.seated(&hall);
        unknown["artistName"] = json!("아무도");
        let refused = world.post("/api/admin/events", &unknown).await;
        assert_eq!(refused.refusal(), (400, "UNKNOWN_ARTIST"));
    }

    /// Section 8.5 of the rules: members by tier, then everybody.
    async fn a_presale_shows_when_each_tier_may_buy(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let artist = world.artist("한강 밴드").await;
        let mut body = world.seated(&hall);
        body["hasPresale"] = json!(true);
        let refused = world.post("/api/admin/events", &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_PRESALE"), "members of nobody");
        body["artistId"] = json!(artist);
        let id = world.create_event(&body).await;
        let event = world.get(&format!("/api/events/{id}")).await.body["event"].clone();
        assert_eq!(event["preSaleSchedule"], json!({
            "diamond": world.after(DAY),
            "gold": world.after(DAY + HOUR),
            "silver": world.after(2 * DAY),
            "general": world.after(3 * DAY),
        }));
        body["saleEndsAt"] = json!(world.after(3 * DAY));
        let refused = world.post("/api/admin/events", &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_PRESALE"), "nobody else could ever buy");
        body["hasPresale"] = json!(false);
        let id = world.create_event(&body).await;
        let event = world.get(&format!("/api/events/{id}")).await.body["event"].clone();
        assert_eq!(event["preSaleSchedule"], Value::Null);
    }

    async fn a_wrong_event_is_refused_with_its_reason(world: World) {
        let venue = world.venue("강변 극장").await;
        let other = world.venue("다른 극장").await;
        let hall = world.hall(&venue).await;
        let nobody = "0198b7a0-0000-7000-8000-000000000000";
        let seated: Vec<Case> = vec![
            ("title", Value::Null, "INVALID_BODY"),
            ("title", json!("  "), "INVALID_TEXT"),
            ("title", json!("가".repeat(201)), "INVALID_TEXT"),
            ("title", json!("a\u{7}b"), "INVALID_TEXT"),
            ("title", json!("a\u{0}b"), "INVALID_BODY"),
            ("description", json!("x".repeat(5_001)), "INVALID_TEXT"),
            ("hallId", json!(nobody), "UNKNOWN_HALL"),
            ("hallId", json!("x"), "INVALID_BODY"),
            ("hallId", Value::Null, "INVALID_PLACE"),
            ("venueId", json!(other), "UNKNOWN_HALL"),
            ("artistId", json!(nobody), "UNKNOWN_ARTIST"),
            ("saleEndsAt", json!(world.after(DAY)), "INVALID_SCHEDULE"),
            ("saleEndsAt", json!(world.after(31 * DAY)), "INVALID_SCHEDULE"),
            ("startsAt", json!("2101-01-01T00:00:00Z"), "INVALID_SCHEDULE"),
            ("runningMinutes", json!(0), "INVALID_RUNNING_TIME"),
            ("runningMinutes", json!(1_441), "INVALID_RUNNING_TIME"),
            ("ageRating", json!("13"), "INVALID_BODY"),
            ("notices", json!("x".repeat(5_001)), "INVALID_TEXT"),
            ("casting", json!([{ "name": " " }]), "INVALID_CASTING"),
            ("casting", json!([{ "name": "a\nb" }]), "INVALID_CASTING"),
            ("casting", json!([{ "name": "김우르", "role": "x".repeat(101) }]), "INVALID_CASTING"),
            ("casting", json!(vec![json!({ "name": "김우르" }); 101]), "INVALID_CASTING"),
            ("casting", json!("김우르"), "INVALID_BODY"),
            ("cancelPolicy", json!({ "graceHours": 0, "graceDaysBeforeMin": 0, "bands": [] }),
                "INVALID_CANCEL_POLICY"),
            ("cancelPolicy", json!({ "graceHours": 0, "graceDaysBeforeMin": 0,
                "bands": [{ "daysBeforeMin": 0, "percent": 101 }] }), "INVALID_CANCEL_POLICY"),
            ("saleStartsAt", json!("2019-12-31T00:00:00Z"), "INVALID_SCHEDULE"),
            ("startsAt", json!("tomorrow"), "INVALID_BODY"),
            ("prices", json!({}), "INVALID_PRICES"),
            ("prices", json!({ "VIP": 1 }), "INVALID_PRICES"),
            ("prices", json!({ "VIP": 1, "R": 1, "S": 1 }), "INVALID_PRICES"),
            ("prices", json!({ "VIP": -1, "R": 1 }), "INVALID_PRICES"),
            ("prices", json!({ "VIP": 10_000_001, "R": 1 }), "INVALID_PRICES"),
            ("prices", json!({ "VIP": 1e300, "R": 1 }), "INVALID_BODY"),
            ("ticketTypes", json!([{ "name": "A", "price": 1, "total": 1 }]), "INVALID_PLACE"),
            ("seatsPerUserMax", json!(0), "INVALID_SEATS_PER_USER"),
            ("seatsPerUserMax", json!(11), "INVALID_SEATS_PER_USER"),
            ("posterImageUrl", json!("http://example.com/a.png"), "INVALID_IMAGE_URL"),
            ("posterImageUrl", json!("javascript:alert(1)"), "INVALID_IMAGE_URL"),
            ("status", json!("on_sale"), "INVALID_BODY"),
        ];
        let types = |count: i64| -> Vec<Value> {
            let kind = |i| json!({ "name": format!("{i}"), "price": 1, "total": 1 });
            (0..count).map(kind).collect()
        };
        let standing: Vec<Case> = vec![
            ("venueId", json!(nobody), "UNKNOWN_VENUE"),
            ("ticketTypes", json!([]), "INVALID_TICKET_TYPES"),
            ("ticketTypes", json!(types(21)), "INVALID_TICKET_TYPES"),
            ("ticketTypes", json!([{ "name": "A", "price": 1, "total": 0 }]), "INVALID_TICKET_TYPES"),
            ("ticketTypes", json!([{ "name": "A", "price": -1, "total": 1 }]), "INVALID_TICKET_TYPES"),
            ("ticketTypes", json!([{ "name": " ", "price": 1, "total": 1 }]), "INVALID_TICKET_TYPES"),
            ("prices", json!({ "VIP": 1 }), "INVALID_PLACE"),
        ];
        for (good, cases) in [(world.seated(&hall), seated), (world.standing(&venue), standing)] {
            for (field, value, code) in cases {
                let body = with(&good, field, &value);
                let refused = world.post("/api/admin/events", &body).await;
                assert_eq!(refused.refusal(), (400, code), "{field}: {value}");
            }
        }
        assert_eq!(world.number("select count(*) as n from events").await, 0);
        assert!(!world.announced_types().await.contains(&"EVENT_CREATED".to_owned()));
        // The control: what was changed above is all that was wrong.
        world.create_event(&world.seated(&hall)).await;
        world.create_event(&with(&world.standing(&venue), "ticketTypes", &json!(types(20)))).await;
    }

    /// Nobody could come to it, and what is sold of it could not be cancelled.
    async fn an_event_that_is_over_is_not_created(world: World) {
        let venue = world.venue("강변 극장").await;
        let mut body = world.standing(&venue);
        let ago = |distance: std::time::Duration| json!((world.clock.now() - distance).to_string());
        body["saleStartsAt"] = ago(10 * DAY);
        body["saleEndsAt"] = ago(5 * DAY);
        for (starts_at, is_refused) in [
            (ago(DAY), true),
            (json!(world.clock.now()), true),
            (json!(world.after(MINUTE)), false),
        ] {
            body["startsAt"] = starts_at;
            let answer = world.post("/api/admin/events", &body).await;
            match is_refused {
                true => assert_eq!(answer.refusal(), (400, "EVENT_IN_PAST")),
                false => assert_eq!(answer.status, StatusCode::CREATED),
            }
        }
    }

    async fn the_terms_of_an_event_are_shown_announced_and_changed(world: World) {
        let venue = world.venue("강변 극장").await;
        let mut body = world.standing(&venue);
        let band = json!({ "daysBeforeMin": 0, "freeDays": null, "percent": 50, "ticketFeeMax": 1_000 });
        let policy = json!({ "graceHours": 2, "graceDaysBeforeMin": 1, "bands": [band] });
        body["cancelPolicy"] = policy.clone();
        body["ageRating"] = json!("15");
        body["runningMinutes"] = json!(150);
        body["notices"] = json!("우천 시에도 진행합니다.");
        body["casting"] = json!([{ "name": " 김우르 ", "role": "모차르트" }, { "name": "이르르" }]);
        let id = world.create_event(&body).await;
        let shown = world.get(&format!("/api/events/{id}")).await.body["event"].clone();
        assert_eq!(shown["cancelPolicy"], policy);
        assert_eq!((&shown["ageRating"], &shown["runningMinutes"]), (&json!("15"), &json!(150)));
        assert_eq!(shown["notices"], "우천 시에도 진행합니다.");
        let cast = json!([{ "name": "김우르", "role": "모차르트" }, { "name": "이르르", "role": "" }]);
        assert_eq!(shown["casting"], cast);
        let told = world.announced().await.pop().unwrap();
        assert_eq!(told.data["cancelPolicy"]["bands"][0]["percent"], 50);
        let path = format!("/api/admin/events/{id}");
        // What is not sent stays; null takes the policy away.
        let kept = world.put(&path, &json!({ "revision": 1, "runningMinutes": 90 })).await;
        assert_eq!(kept.body["event"]["cancelPolicy"], policy);
        assert_eq!(kept.body["event"]["runningMinutes"], 90);
        assert_eq!(kept.body["event"]["casting"], cast);
        let change = json!({ "revision": 2, "cancelPolicy": null, "notices": "", "ageRating": "all",
            "casting": [] });
        let changed = world.put(&path, &change).await;
        assert_eq!(changed.body["event"]["cancelPolicy"], Value::Null, "{:?}", changed.body);
        assert_eq!(changed.body["event"]["notices"], Value::Null);
        assert_eq!(changed.body["event"]["casting"], json!([]));
        assert_eq!(changed.body["event"]["ageRating"], "all");
        let wrong = json!({ "revision": 3, "cancelPolicy":
            { "graceHours": 0, "graceDaysBeforeMin": 0, "bands": [] } });
        assert_eq!(world.put(&path, &wrong).await.refusal(), (400, "INVALID_CANCEL_POLICY"));
        let past = json!({ "revision": 3, "startsAt": "2026-11-15T00:30:00Z",
            "saleEndsAt": "2026-11-15T00:00:00Z", "saleStartsAt": "2026-11-14T00:00:00Z" });
        assert_eq!(world.put(&path, &past).await.refusal(), (400, "EVENT_IN_PAST"));
    }

    async fn a_double_click_creates_one_event(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let mut body = world.seated(&hall);
        let create = |key: &str, body: &Value| {
            let call = world.call(Method::POST, "/api/admin/events").by_admin();
            call.header("idempotency-key", key).json(body).send()
        };
        let calls = (0..20).map(|_| create("form-17", &body));
        let ids: Vec<String> =
            all(calls).await.iter().map(|answer| answer.id("event")).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(world.number("select count(*) as n from events").await, 1);
        let created = world.announced_types().await;
        assert_eq!(created.iter().filter(|name| *name == "EVENT_CREATED").count(), 1);

        assert_eq!(create("a b", &body).await.refusal(), (400, "INVALID_IDEMPOTENCY_KEY"));
        assert_eq!(create(&"k".repeat(65), &body).await.refusal(), (400, "INVALID_IDEMPOTENCY_KEY"));
        let in_body = with(&body, "idempotencyKey", &json!("form-17"));
        let in_body = world.post("/api/admin/events", &in_body).await;
        assert_eq!(in_body.status, StatusCode::BAD_REQUEST, "the header alone counts");
        body["title"] = json!("다른 공연");
        let other = create("form-17", &body).await;
        assert_eq!(other.refusal(), (422, "IDEMPOTENCY_KEY_REUSED"));
        // The control: without a key every click creates one.
        world.create_event(&body).await;
        world.create_event(&body).await;
        assert_eq!(world.number("select count(*) as n from events").await, 3);
    }

    async fn how_many_a_person_may_buy_is_a_setting_unless_the_event_says_it(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let settings = CatalogSettings { seats_per_user_max_default: 2, ..CatalogSettings::default() };
        let (db, clock, ids) = (world.db.clone(), world.clock.clone(), world.ids.clone());
        let catalog = CatalogService::new(CatalogParts { db, clock, ids, settings, peers: None });
        let create = |body: &Value| {
            world.call_on(&catalog, Method::POST, "/api/admin/events").by_admin().json(body).send()
        };
        let body = world.seated(&hall);
        assert_eq!(create(&body).await.body["event"]["seatsPerUserMax"], 2);
        let own = with(&body, "seatsPerUserMax", &json!(6));
        assert_eq!(create(&own).await.body["event"]["seatsPerUserMax"], 6);
    }

    async fn only_administrators_change_the_catalogue(world: World) {
        let id = world.some_event().await;
        let paths = [
            (Method::GET, "/api/admin/events".to_owned()),
            (Method::POST, "/api/admin/events".to_owned()),
            (Method::GET, format!("/api/admin/events/{id}")),
            (Method::PUT, format!("/api/admin/events/{id}")),
            (Method::DELETE, format!("/api/admin/events/{id}")),
            (Method::POST, format!("/api/admin/events/{id}/cancel")),
            (Method::POST, "/api/admin/venues".to_owned()),
            (Method::PUT, format!("/api/admin/venues/{id}")),
            (Method::DELETE, format!("/api/admin/venues/{id}")),
            (Method::POST, format!("/api/admin/venues/{id}/halls")),
            (Method::GET, format!("/api/admin/halls/{id}")),
            (Method::PUT, format!("/api/admin/halls/{id}")),
            (Method::DELETE, format!("/api/admin/halls/{id}")),
            (Method::GET, "/api/admin/seat-layouts".to_owned()),
            (Method::PUT, format!("/api/admin/artists/{id}")),
            (Method::GET, "/api/admin/catalog/log".to_owned()),
            (Method::GET, "/api/admin/dashboard".to_owned()),
        ];
        for (method, path) in paths {
            let anonymous = world.call(method.clone(), &path).json(&json!({})).send().await;
            assert_eq!(anonymous.refusal(), (401, "AUTHENTICATION_REQUIRED"), "{method} {path}");
            let fan = world.call(method.clone(), &path).by_user(UserRole::User).json(&json!({}));
            let answer = fan.send().await;
            let (status, code) = answer.refusal();
            let is_refused = matches!(code, "ADMIN_REQUIRED" | "ROLE_REQUIRED");
            assert!(status == 403 && is_refused, "{code} {method} {path}");
        }
    }
}
