//! Changing, cancelling and deleting events, and the log of who did it.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_catalog::{AdminActor, CatalogParts, CatalogService, CatalogSettings, NewArtist};
use urr_kernel::{CallContext, IdSource, Timestamp};
use urr_service::EventScope;
use urr_storage::{StorageError, params};

use crate::contract;
use crate::fixture::{DAY, MINUTE, admin_id, all};

contract! {
    async fn an_edit_is_announced_and_shown_at_once(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/events/{id}");
        assert_eq!(world.get(&path).await.body["event"]["title"], "한강의 밤");
        let change = json!({
            "revision": 1, "title": " 한강의 낮 ", "seatsPerUserMax": 2,
            "posterImageUrl": "https://example.com/a.png",
        });
        let edited = world.put(&format!("/api/admin{}", &path[4..]), &change).await;
        assert_eq!(edited.status, StatusCode::OK, "{}", edited.body);
        assert_eq!(edited.body["event"]["revision"], 2);
        let event = world.get(&path).await.body["event"].clone();
        assert_eq!((&event["title"], &event["seatsPerUserMax"]), (&json!("한강의 낮"), &json!(2)));
        assert_eq!(event["posterImageUrl"], "https://example.com/a.png");
        let announced = world.announced().await;
        let updated = announced.last().unwrap();
        assert_eq!((updated.event_type.as_str(), &updated.subject), ("EVENT_UPDATED", &id));
        assert_eq!((&updated.data["revision"], &updated.data["title"]), (&json!(2), &json!("한강의 낮")));
        assert_eq!(updated.data["layout"], Value::Null, "its seats were made already");
    }

    async fn of_two_editors_the_second_is_told_that_it_looks_at_old_news(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        let edits = (0..10).map(|number| {
            let body = json!({ "revision": 1, "title": format!("제목 {number}") });
            world.call(Method::PUT, &path).by_admin().json(&body).send()
        });
        let answers = all(edits).await;
        let won = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
        assert_eq!(won, 1);
        for refused in answers.iter().filter(|answer| answer.status != StatusCode::OK) {
            assert_eq!(refused.refusal(), (409, "STALE_REVISION"));
            assert_eq!(refused.body["revision"], 2);
        }
        // The control: who looks again may change it.
        let again = world.put(&path, &json!({ "revision": 2, "title": "그다음" })).await;
        assert_eq!(again.status, StatusCode::OK);
    }

    async fn what_tickets_were_made_of_cannot_be_changed(world: World) {
        let id = world.some_event().await;
        let other_venue = world.venue("다른 극장").await;
        let other_hall = world.hall(&other_venue).await;
        let path = format!("/api/admin/events/{id}");
        for change in [
            json!({ "hallId": other_hall }),
            json!({ "venueId": other_venue }),
            json!({ "prices": { "VIP": 1, "R": 1 } }),
        ] {
            let mut body = change.clone();
            body["revision"] = json!(1);
            let refused = world.put(&path, &body).await;
            assert_eq!(refused.refusal(), (409, "INVENTORY_FIXED"), "{change}");
        }
        for unknown in [json!({ "kind": "standing" }), json!({ "ticketTypes": [] })] {
            let mut body = unknown.clone();
            body["revision"] = json!(1);
            assert_eq!(world.put(&path, &body).await.refusal(), (400, "INVALID_BODY"), "{unknown}");
        }
        let same = json!({ "revision": 1, "prices": { "VIP": 150_000, "R": 90_000 } });
        assert_eq!(world.put(&path, &same).await.status, StatusCode::OK);
    }

    async fn once_the_sale_has_started_its_beginning_stays(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        let later = json!({ "revision": 1, "saleStartsAt": world.after(2 * DAY) });
        assert_eq!(world.put(&path, &later).await.status, StatusCode::OK, "not started yet");
        world.clock.advance(3 * DAY);
        let later = json!({ "revision": 2, "saleStartsAt": world.after(DAY) });
        assert_eq!(world.put(&path, &later).await.refusal(), (409, "SALE_STARTED"));
        let title = json!({ "revision": 2, "title": "새 제목" });
        let edited = world.put(&path, &title).await;
        assert_eq!(edited.body["event"]["status"], "on_sale", "computed again");
        let wrong = json!({ "revision": 3, "saleEndsAt": world.after(300 * DAY) });
        assert_eq!(world.put(&path, &wrong).await.refusal(), (400, "INVALID_SCHEDULE"));
    }

    async fn a_cancelled_event_stays_cancelled_and_is_announced_once(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}/cancel");
        let reason = json!({ "reason": "태풍. A typhoon." });
        let calls = (0..5)
            .map(|_| world.call(Method::POST, &path).by_admin().json(&reason).send());
        for answer in all(calls).await {
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
            assert_eq!(answer.body["event"]["status"], "cancelled");
            assert_eq!(answer.body["event"]["revision"], 2);
        }
        let shown = world.get(&format!("/api/events/{id}")).await;
        assert_eq!(shown.body["event"]["status"], "cancelled");
        assert_eq!(shown.body["event"]["cancelReason"], "태풍. A typhoon.");
        let announced = world.announced().await;
        let cancelled: Vec<_> =
            announced.iter().filter(|event| event.event_type == "EVENT_CANCELLED").collect();
        assert_eq!(cancelled.len(), 1);
        let saga_id = cancelled[0].correlation_id;
        let expected = json!({ "eventId": id, "revision": 2, "reason": "태풍. A typhoon.",
            "type": "EVENT_CANCELLED", "sagaId": saga_id });
        assert_eq!(cancelled[0].data, expected);
        let edit = json!({ "revision": 2, "title": "다시" });
        let refused = world.put(&format!("/api/admin/events/{id}"), &edit).await;
        assert_eq!(refused.refusal(), (409, "EVENT_CANCELLED"));
        world.clock.advance(5 * DAY);
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 0, "the job leaves it alone");
    }

    /// F-3: one transaction here; what follows elsewhere follows from its event.
    async fn f_3_deleting_is_one_step_that_can_be_repeated(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        for _ in 0..2 {
            assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
        }
        let public = world.get(&format!("/api/events/{id}")).await;
        assert_eq!(public.refusal(), (404, "EVENT_NOT_FOUND"));
        assert_eq!(world.titles("").await, [""; 0]);
        let kept = world.call(Method::GET, &path).by_admin().send().await;
        assert_eq!(kept.body["event"]["deletedAt"], "2026-11-15T00:30:00Z");
        let announced = world.announced().await;
        let deleted: Vec<_> =
            announced.iter().filter(|event| event.event_type == "EVENT_DELETED").collect();
        assert_eq!(deleted.len(), 1);
        let expected = json!({ "eventId": id, "revision": 2, "isOver": false,
            "type": "EVENT_DELETED", "sagaId": deleted[0].correlation_id });
        assert_eq!(deleted[0].data, expected);
        let edit = world.put(&path, &json!({ "revision": 2, "title": "x" })).await;
        assert_eq!(edit.refusal(), (404, "EVENT_NOT_FOUND"));
        let cancel = world.post(&format!("{path}/cancel"), &json!({})).await;
        assert_eq!(cancel.refusal(), (404, "EVENT_NOT_FOUND"));
        let unknown = world.delete("/api/admin/events/0198b7a0-0000-7000-8000-000000000000").await;
        assert_eq!(unknown.refusal(), (404, "EVENT_NOT_FOUND"));
    }

    async fn f_3_what_may_have_been_sold_is_not_deleted(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        world.clock.advance(DAY - MINUTE / 2);
        assert_eq!(world.delete(&path).await.refusal(), (409, "EVENT_NOT_DELETABLE"), "opening");
        world.clock.advance(DAY);
        assert_eq!(world.delete(&path).await.refusal(), (409, "EVENT_NOT_DELETABLE"), "on sale");
        world.clock.advance(20 * DAY);
        assert_eq!(world.delete(&path).await.refusal(), (409, "EVENT_NOT_DELETABLE"), "sold");
        assert_eq!(world.get(&format!("/api/events/{id}")).await.status, StatusCode::OK);
        let cancelled = world.post(&format!("{path}/cancel"), &json!({})).await;
        assert_eq!(cancelled.status, StatusCode::OK);
        assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    }

    /// Visitors keep their tickets: the event is hidden, and nobody is refunded.
    async fn an_event_that_has_taken_place_is_not_cancelled_and_deleting_it_says_so(world: World) {
        let (seen, off) = (world.some_event().await, world.some_other_event().await);
        let path = |id: &str| format!("/api/admin/events/{id}");
        world.clock.advance(30 * DAY - MINUTE);
        let cancelled = world.post(&format!("{}/cancel", path(&off)), &json!({})).await;
        assert_eq!(cancelled.status, StatusCode::OK);
        world.clock.advance(MINUTE);
        let refused = world.post(&format!("{}/cancel", path(&seen)), &json!({})).await;
        assert_eq!(refused.refusal(), (409, "EVENT_OVER"));
        let again = world.post(&format!("{}/cancel", path(&off)), &json!({})).await;
        assert_eq!(again.status, StatusCode::OK, "it was cancelled in time");
        for (id, is_over) in [(&seen, true), (&off, false)] {
            assert_eq!(world.delete(&path(id)).await.status, StatusCode::NO_CONTENT);
            let announced = world.announced().await;
            let deleted = announced.last().unwrap();
            assert_eq!((deleted.event_type.as_str(), &deleted.subject), ("EVENT_DELETED", id));
            assert_eq!(deleted.data["isOver"], json!(is_over));
        }
    }

    async fn a_minute_before_the_sale_opens_its_beginning_stays(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        let later = |revision: i64| {
            json!({ "revision": revision, "saleStartsAt": world.after(2 * DAY) })
        };
        world.clock.advance(DAY - MINUTE / 2);
        assert_eq!(world.put(&path, &later(1)).await.refusal(), (409, "SALE_STARTED"));
        // The control: what buyers do not rely on can be changed, and the rest a moment earlier.
        let title = json!({ "revision": 1, "title": "새 제목" });
        assert_eq!(world.put(&path, &title).await.status, StatusCode::OK);
        let other = world.some_other_event().await;
        world.clock.advance(DAY - MINUTE);
        let other = format!("/api/admin/events/{other}");
        assert_eq!(world.put(&other, &later(1)).await.status, StatusCode::OK);
    }

    /// The log is no afterthought: a change that is refused has no line, and each that is not has
    /// one.
    async fn every_change_has_a_line_in_the_log_and_no_refusal_has(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        world.put(&path, &json!({ "revision": 1, "title": "새 제목" })).await;
        world.put(&path, &json!({ "revision": 1, "title": "낡은 제목" })).await;
        world.clock.advance(MINUTE);
        world.post(&format!("{path}/cancel"), &json!({ "reason": "태풍" })).await;
        let log = |query: &str| {
            let path = format!("/api/admin/catalog/log{query}");
            world.call(Method::GET, &path).by_admin().send()
        };
        let all = log("").await;
        let actions: Vec<&str> = all.body["entries"].as_array().unwrap().iter()
            .map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(
            actions,
            ["EVENT_CANCELLED", "EVENT_UPDATED", "EVENT_CREATED", "HALL_CREATED", "VENUE_CREATED"]
        );
        let newest = &all.body["entries"][0];
        assert_eq!(newest["adminId"], json!(admin_id()));
        assert_eq!((&newest["resourceType"], &newest["resourceId"]), (&json!("event"), &json!(id)));
        assert_eq!(newest["summary"], "태풍");
        let total = async |query: &str| log(query).await.body["pagination"]["total"].clone();
        assert_eq!(total(&format!("?resourceId={id}")).await, 3);
        assert_eq!(total("?resourceType=hall").await, 1);
        assert_eq!(total("?action=EVENT_CANCELLED").await, 1);
        assert_eq!(total(&format!("?adminId={}", admin_id())).await, 5);
        assert_eq!(total("?adminId=0198b7a0-0000-7000-8000-000000000000").await, 0);
        assert_eq!(total("?from=2026-11-15T00:31:00Z").await, 1);
        assert_eq!(total("?to=2026-11-15T00:31:00Z&limit=1").await, 4);
        assert_eq!(total("?from=-009000-01-02T00:00:00Z").await, 5, "no database knows that year");
        assert_eq!(log("?limit=2&page=3").await.body["entries"].as_array().unwrap().len(), 1);
    }

    /// The log is in the transaction: if its line cannot be written, nothing happened.
    async fn a_change_whose_line_cannot_be_written_does_not_happen(world: World) {
        // Two sources of the same ids: the second tells what the first will say.
        let source = || IdSource::seeded(world.clock.clone(), 7);
        let catalog = CatalogService::new(CatalogParts { db: world.db.clone(), clock: world.clock.clone(), ids: source(), settings: CatalogSettings::default(), peers: None });
        let foreseen = source();
        let (_artist, _event, line) = (foreseen.next_id(), foreseen.next_id(), foreseen.next_id());
        let context = CallContext::root(world.ids.next_id());
        let scope = EventScope::All;
        let actor = AdminActor { admin_id: admin_id(), scope, context };
        let taken = world.db.write(move |tx| {
            tx.execute(
                "insert into admin_actions (id, admin_id, action, resource_type, resource_id, \
                 summary, created_at) values ($1, $1, '', '', '', '', $2)",
                params![line, Timestamp::UNIX_EPOCH],
            )
        });
        assert_eq!(taken.await, Ok::<_, StorageError>(1));
        let new = |name: &str| NewArtist { name: name.to_owned(), ..NewArtist::default() };
        let failed = catalog.create_artist(new("한강 밴드"), actor).await.unwrap_err();
        assert!(failed.to_string().contains("admin_actions_pkey"), "{failed}");
        assert_eq!(world.number("select count(*) as n from artists").await, 0);
        assert_eq!(world.announced_types().await, [""; 0]);
        // The control: it is the line alone that was in the way.
        catalog.create_artist(new("한강 밴드"), actor).await.unwrap();
        assert_eq!(world.number("select count(*) as n from artists").await, 1);
        assert_eq!(world.announced_types().await, ["ARTIST_CREATED"]);
    }
}
