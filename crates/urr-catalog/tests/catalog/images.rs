//! Posters: checked by content, stored once, served for ever.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode};

use serde_json::json;
use urr_contracts::events::community::PostPicturesChanged;
use urr_kernel::{CallContext, DomainEvent, Uuid};
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{Answer, World, all};
use crate::inventory::deliver;

const FORM: &str = "multipart/form-data; boundary=edge";

/// A picture of so many bytes.
fn png(length: usize) -> Vec<u8> {
    let mut bytes =
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0".to_vec();
    bytes.resize(length - 12, 7);
    bytes.extend(b"\0\0\0\0IEND\xaeB`\x82");
    bytes
}

fn form(content_type: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.svg\"\r\n\
         Content-Type: {content_type}\r\n\r\n"
    );
    let mut body = head.into_bytes();
    body.extend(content);
    body.extend(b"\r\n--edge--\r\n");
    body
}

async fn upload(world: &World, content: &[u8]) -> Answer {
    let call = world.call(Method::POST, "/api/image/upload").by_admin();
    call.bytes(FORM, form("text/html", content)).send().await
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn upload_as(world: &World, fan: Uuid, content: &[u8]) -> Answer {
    let call = world.call(Method::POST, "/api/image/upload").by_person(fan, UserRole::User);
    call.bytes(FORM, form("image/png", content)).send().await
}

/// A fan uploads a picture; returns its id.
async fn picture(world: &World, fan: Uuid, bytes: usize) -> String {
    let uploaded = upload_as(world, fan, &png(bytes)).await;
    assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.body);
    uploaded.body["image"]["id"].as_str().unwrap().to_owned()
}

fn announced(world: &World, data: PostPicturesChanged) -> DomainEvent {
    let context = CallContext::root(world.ids.next_id());
    DomainEvent::new(world.ids.next_id(), "urr/community", world.clock.now(), &context, &data)
}

/// A post shows these pictures from now on.
async fn show(world: &World, post_id: Uuid, image_ids: &[&String]) {
    let image_ids = image_ids.iter().map(|id| (*id).clone()).collect();
    let event = announced(world, PostPicturesChanged { post_id, image_ids });
    deliver(world, event).await;
}

async fn stored(world: &World) -> Vec<String> {
    world.rows("select id from images order by created_at, id", |row| row.get("id")).await
}

contract! {
    /// Pictures of fans live as long as posts show them, and a day until one does.
    async fn a_fans_picture_goes_with_the_last_post_that_shows_it(world: World) {
        let (fan, first, second) = (world.ids.next_id(), world.ids.next_id(), world.ids.next_id());
        let shared = picture(&world, fan, 100).await;
        let other = picture(&world, fan, 101).await;
        world.clock.advance(MINUTE);
        show(&world, first, &[&shared, &other]).await;
        show(&world, second, &[&shared]).await;
        world.clock.advance(MINUTE);
        show(&world, first, &[]).await;
        assert_eq!(stored(&world).await, std::slice::from_ref(&shared), "the second post shows it");
        world.clock.advance(3 * DAY);
        assert_eq!(world.catalog.purge_images(100).await, Ok(0));
        show(&world, second, &[]).await;
        assert_eq!(stored(&world).await, Vec::<String>::new());
        let logged = "select count(*) as n from admin_actions where action = 'IMAGE_UPLOADED'";
        assert_eq!(world.number(logged).await, 0, "only organisers' uploads are logged");
    }

    async fn announcements_of_pictures_may_come_twice_and_out_of_order(world: World) {
        let (fan, post_id) = (world.ids.next_id(), world.ids.next_id());
        let (old, new) = (picture(&world, fan, 100).await, picture(&world, fan, 101).await);
        world.clock.advance(MINUTE);
        let shown = |id: &String| PostPicturesChanged { post_id, image_ids: vec![id.clone()] };
        let first = announced(&world, shown(&old));
        world.clock.advance(MINUTE);
        let second = announced(&world, shown(&new));
        for event in [&second, &first, &second, &first] {
            deliver(&world, event.clone()).await;
        }
        let sql = "select image_id from post_pictures";
        let shown = world.rows(sql, |row| row.get::<String>("image_id"));
        assert_eq!(shown.await, std::slice::from_ref(&new));
        world.clock.advance(2 * DAY);
        assert_eq!(world.catalog.purge_images(100).await, Ok(1));
        assert_eq!(stored(&world).await, [new]);
    }

    async fn a_picture_without_a_post_has_a_day(world: World) {
        let fan = world.ids.next_id();
        let (unused, again) = (picture(&world, fan, 100).await, picture(&world, fan, 101).await);
        let poster = picture(&world, fan, 102).await;
        let artist = json!({ "name": "밴드", "imageUrl": format!("/api/image/{poster}"),
            "membershipPrice": 1_000 });
        assert_eq!(world.post("/api/admin/artists", &artist).await.status, StatusCode::CREATED);
        let organisers = upload(&world, &png(103)).await.body["image"]["id"].as_str().unwrap().to_owned();
        world.clock.advance(DAY - MINUTE);
        assert_eq!(world.catalog.purge_images(100).await, Ok(0));
        picture(&world, fan, 101).await;
        world.clock.advance(2 * MINUTE);
        assert_eq!(world.catalog.purge_images(100).await, Ok(1));
        let mut left = stored(&world).await;
        left.sort();
        let mut expected = vec![again, poster, organisers];
        expected.sort();
        assert_eq!(left, expected);
        assert!(!left.contains(&unused));
    }

    /// One that was uploaded again is for a post that is being written.
    async fn a_picture_that_is_uploaded_again_outlives_its_first_post(world: World) {
        let (fan, first, second) = (world.ids.next_id(), world.ids.next_id(), world.ids.next_id());
        let shared = picture(&world, fan, 100).await;
        world.clock.advance(MINUTE);
        show(&world, first, &[&shared]).await;
        world.clock.advance(MINUTE);
        picture(&world, fan, 100).await;
        world.clock.advance(MINUTE);
        show(&world, first, &[]).await;
        assert_eq!(stored(&world).await, std::slice::from_ref(&shared));
        show(&world, second, &[&shared]).await;
        world.clock.advance(2 * DAY);
        assert_eq!(world.catalog.purge_images(100).await, Ok(0));
        // An organiser uploads the same: now it stays.
        upload(&world, &png(100)).await;
        show(&world, second, &[]).await;
        assert_eq!(stored(&world).await, [shared]);
    }

    async fn a_fan_uploads_twenty_pictures_an_hour(world: World) {
        let (fan, other) = (world.ids.next_id(), world.ids.next_id());
        for bytes in 100..120 {
            picture(&world, fan, bytes).await;
        }
        let refused = upload_as(&world, fan, &png(120)).await;
        assert_eq!(refused.refusal(), (429, "TOO_MANY_UPLOADS"));
        assert_eq!(refused.header(RETRY_AFTER), "3600");
        assert_eq!(world.number("select count(*) as n from images").await, 20);
        // The controls: others may, organisers may, and an hour later the fan may.
        picture(&world, other, 120).await;
        assert_eq!(upload(&world, &png(121)).await.status, StatusCode::CREATED);
        world.clock.advance(60 * MINUTE);
        picture(&world, fan, 122).await;
        let nobody = world.call(Method::POST, "/api/image/upload");
        let nobody = nobody.bytes(FORM, form("image/png", &png(100))).send().await;
        assert_eq!(nobody.refusal(), (401, "AUTHENTICATION_REQUIRED"));
    }

    async fn fifty_uploads_at_once_keep_the_limit(world: World) {
        let fan = world.ids.next_id();
        let world = Arc::new(world);
        let uploads = (100..150).map(|bytes| {
            let world = Arc::clone(&world);
            async move { upload_as(&world, fan, &png(bytes)).await.status }
        });
        let answers = all(uploads).await;
        let taken = answers.iter().filter(|status| **status == StatusCode::CREATED).count();
        assert_eq!(taken, 20);
    }

    async fn d_19_a_picture_is_served_as_what_it_is(world: World) {
        let content = png(3_000);
        let uploaded = upload(&world, &content).await;
        assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.body);
        let image = &uploaded.body["image"];
        assert_eq!((&image["width"], &image["height"]), (&640.into(), &480.into()));
        assert_eq!(image["contentType"], "image/png", "whatever the form says");
        let url = image["url"].as_str().unwrap().to_owned();
        let served = world.get(&url).await;
        assert_eq!(served.bytes, content);
        assert_eq!(served.header(CONTENT_TYPE), "image/png");
        assert_eq!(served.header(X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(served.header(CACHE_CONTROL), "public, max-age=31536000, immutable");
        assert!(served.header(CONTENT_SECURITY_POLICY).contains("sandbox"));
        let known = world.call(Method::GET, &url).header(IF_NONE_MATCH, served.header(ETAG));
        assert_eq!(known.send().await.status, StatusCode::NOT_MODIFIED);
        // The same picture is stored once, and noted once.
        assert_eq!(upload(&world, &content).await.body["image"]["url"], url);
        assert_eq!(world.number("select count(*) as n from images").await, 1);
        let lines = "select count(*) as n from admin_actions where action = 'IMAGE_UPLOADED'";
        assert_eq!(world.number(lines).await, 1);
    }

    async fn d_19_what_is_no_picture_is_not_taken(world: World) {
        let script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
        assert_eq!(upload(&world, script).await.refusal(), (415, "NOT_AN_IMAGE"));
        assert_eq!(upload(&world, b"<html>").await.refusal(), (415, "NOT_AN_IMAGE"));
        assert_eq!(upload(&world, b"").await.refusal(), (400, "INVALID_IMAGE"));
        assert_eq!(upload(&world, &png(3_000)[..2_000]).await.refusal(), (400, "INVALID_IMAGE"));
        let json = world.call(Method::POST, "/api/image/upload").by_admin();
        let json = json.bytes("application/json", b"{}".to_vec()).send().await;
        assert_eq!(json.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"));
        let empty = world.call(Method::POST, "/api/image/upload").by_admin();
        assert_eq!(empty.bytes(FORM, Vec::new()).send().await.refusal(), (400, "INVALID_FORM"));
        assert_eq!(world.number("select count(*) as n from images").await, 0);
    }

    async fn the_image_is_found_among_other_fields_and_its_bytes_are_untouched(world: World) {
        let mut content = png(200);
        content[100..112].copy_from_slice(b"\r\n--other\r\n\0");
        let mut body = b"--edge\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nhi\r\n".to_vec();
        body.extend(form("text/html", &content));
        for content_type in [FORM, "multipart/form-data; charset=utf-8; boundary=\"edge\""] {
            let call = world.call(Method::POST, "/api/image/upload").by_admin();
            let uploaded = call.bytes(content_type, body.clone()).send().await;
            assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.body);
            let url = uploaded.body["image"]["url"].as_str().unwrap();
            assert_eq!(world.get(url).await.bytes, content);
        }
    }

    async fn a_broken_form_is_refused(world: World) {
        let without_image =
            b"--edge\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--edge--";
        let endless = b"--edge\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\nabc";
        let headless = b"--edge\r\nabc\r\n--edge--";
        let bodies = [&b""[..], b"--", b"--edge", b"--edge--", b"--y\r\n", without_image, endless, headless];
        for body in bodies {
            let call = world.call(Method::POST, "/api/image/upload").by_admin();
            let answer = call.bytes(FORM, body.to_vec()).send().await;
            let shown = String::from_utf8_lossy(body);
            assert_eq!(answer.refusal(), (400, "INVALID_FORM"), "{shown:?}");
        }
        for kind in ["application/json", "multipart/form-data", "multipart/mixed; boundary=edge"] {
            let call = world.call(Method::POST, "/api/image/upload").by_admin();
            let answer = call.bytes(kind, b"--edge--".to_vec()).send().await;
            assert_eq!(answer.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"), "{kind}");
        }
    }

    /// F-10: five megabytes are five megabytes, at every door of this service; other bodies keep
    /// their bound of one.
    async fn f_10_a_picture_may_have_five_megabytes(world: World) {
        let largest = upload(&world, &png(5 * 1024 * 1024)).await;
        assert_eq!(largest.status, StatusCode::CREATED, "{}", largest.body);
        let url = largest.body["image"]["url"].as_str().unwrap();
        assert_eq!(world.get(url).await.bytes.len(), 5 * 1024 * 1024);
        let larger = upload(&world, &png(5 * 1024 * 1024 + 1)).await;
        assert_eq!(larger.refusal(), (413, "IMAGE_TOO_LARGE"));
        let huge = upload(&world, &png(6 * 1024 * 1024)).await;
        assert_eq!(huge.refusal(), (413, "BODY_TOO_LARGE"));
        let artist = world.call(Method::POST, "/api/admin/artists").by_admin();
        let long = vec![b' '; 1024 * 1024 + 1];
        let long = artist.bytes("application/json", long).send().await;
        assert_eq!(long.refusal(), (413, "BODY_TOO_LARGE"));
    }
}
