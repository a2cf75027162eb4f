//! Artists: adding, changing, showing.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::contract;
use crate::fixture::DAY;
use crate::inventory::{deliver, membership_event};

contract! {
    /// F-1: the list, the detail and the events of an artist come from one place.
    async fn f_1_an_artist_is_shown_with_what_comes_next(world: World) {
        let artist = world.artist("한강 밴드").await;
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        for (title, starts) in [("늦은 공연", 40), ("이른 공연", 30)] {
            let mut body = world.seated(&hall);
            body["title"] = json!(title);
            body["artistId"] = json!(artist);
            body["startsAt"] = json!(world.after(starts * DAY));
            world.create_event(&body).await;
        }
        world.create_event(&world.seated(&hall)).await;
        let shown = world.get(&format!("/api/artists/{artist}")).await;
        let titles: Vec<&Value> =
            shown.body["events"].as_array().unwrap().iter().map(|event| &event["title"]).collect();
        assert_eq!(titles, ["이른 공연", "늦은 공연"]);
        world.clock.advance(35 * DAY);
        let shown = world.get(&format!("/api/artists/{artist}")).await;
        assert_eq!(shown.body["events"].as_array().unwrap().len(), 1, "what is over is left out");
        assert_eq!(world.get("/api/artists").await.body["pagination"]["total"], 1);
    }

    /// Members are those whose membership was announced as paid and not as over.
    async fn an_artist_has_so_many_members_and_events(world: World) {
        let artist = world.artist("한강 밴드").await;
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        for artist_id in [json!(artist), Value::Null] {
            let mut body = world.seated(&hall);
            body["artistId"] = artist_id;
            world.create_event(&body).await;
        }
        let [first, second] = [(); 2].map(|()| world.ids.next_id());
        let told = |event_type: &str, id: urr_kernel::Uuid| {
            let data = json!({
                "membershipId": id, "userId": world.ids.next_id(), "artistId": artist,
                "tier": "silver", "expiresAt": world.after(365 * DAY), "amount": 30_000,
                "paymentId": world.ids.next_id(), "isRenewal": false,
                "timestamp": world.clock.now(),
            });
            membership_event(&world, event_type, data)
        };
        let old_end = told("MEMBERSHIP_EXPIRED", first);
        world.clock.advance(DAY);
        for event in [
            told("MEMBERSHIP_ACTIVATED", first),
            told("MEMBERSHIP_ACTIVATED", first),
            old_end,
            told("MEMBERSHIP_ACTIVATED", second),
        ] {
            deliver(&world, event).await;
        }
        let count = async || {
            world.clock.advance(DAY);
            let shown = world.get(&format!("/api/artists/{artist}")).await.body["artist"].clone();
            (shown["memberCount"].as_u64().unwrap(), shown["eventCount"].as_u64().unwrap())
        };
        assert_eq!(count().await, (2, 1));
        deliver(&world, told("MEMBERSHIP_EXPIRED", second)).await;
        assert_eq!(count().await, (1, 1));
        let list = world.get("/api/artists").await.body["artists"].clone();
        assert_eq!(list[0]["memberCount"], 1);
    }

    async fn an_artist_can_be_changed_and_keeps_a_name_of_their_own(world: World) {
        let id = world.artist("한강 밴드").await;
        world.artist("달무리").await;
        let path = format!("/api/admin/artists/{id}");
        let change = json!({
            "name": "두물머리 밴드", "imageUrl": "https://example.com/a.png", "membershipPrice": 0,
        });
        let changed = world.put(&path, &change).await;
        assert_eq!(changed.status, StatusCode::OK);
        let artist = world.get(&format!("/api/artists/{id}")).await.body["artist"].clone();
        assert_eq!(artist["name"], "두물머리 밴드");
        assert_eq!(artist["imageUrl"], "https://example.com/a.png");
        assert_eq!(artist["membershipPrice"], 0);
        let last = world.announced().await.pop().unwrap();
        assert_eq!((last.event_type.as_str(), &last.data["name"]), ("ARTIST_UPDATED", &json!("두물머리 밴드")));
        let taken = world.put(&path, &json!({ "name": "달무리" })).await;
        assert_eq!(taken.refusal(), (409, "ARTIST_NAME_TAKEN"));
        let same = world.put(&path, &json!({ "name": "두물머리 밴드", "imageUrl": "" })).await;
        assert_eq!(same.status, StatusCode::OK);
        assert_eq!(same.body["artist"]["imageUrl"], Value::Null);
        for (body, code) in [
            (json!({ "name": " " }), "INVALID_NAME"),
            (json!({ "imageUrl": "//example.com" }), "INVALID_IMAGE_URL"),
            (json!({ "membershipPrice": -1 }), "INVALID_MEMBERSHIP_PRICE"),
            (json!({ "description": "x".repeat(2_001) }), "INVALID_DESCRIPTION"),
        ] {
            assert_eq!(world.put(&path, &body).await.refusal(), (400, code), "{body}");
        }
        let unknown = "/api/admin/artists/0198b7a0-0000-7000-8000-000000000000";
        assert_eq!(world.put(unknown, &json!({})).await.refusal(), (404, "ARTIST_NOT_FOUND"));
    }

    async fn a_renamed_artist_is_found_by_the_new_name_only(world: World) {
        let artist = world.artist("한강 밴드").await;
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let mut body = world.seated(&hall);
        body["title"] = json!("가을 공연");
        body["artistId"] = json!(artist);
        world.create_event(&body).await;
        let encode = |text: &str| -> String {
            text.bytes().map(|byte| format!("%{byte:02X}")).collect()
        };
        let find = async |text: &str| world.titles(&format!("?q={}", encode(text))).await;
        assert_eq!(find("한강").await, ["가을 공연"]);
        world.put(&format!("/api/admin/artists/{artist}"), &json!({ "name": "두물머리" })).await;
        assert_eq!(find("두물머리").await, ["가을 공연"]);
        assert_eq!(find("한강").await, [""; 0]);
        let rename = json!({ "name": "호수 극장", "address": "부산 해운대구" });
        world.put(&format!("/api/admin/venues/{venue}"), &rename).await;
        assert_eq!(find("호수").await, ["가을 공연"]);
        assert_eq!(find("해운대").await, ["가을 공연"]);
        assert_eq!(find("강변").await, [""; 0]);
    }
}
