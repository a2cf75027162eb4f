//! Posters: checked by content, stored once, served for ever.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, StatusCode};

use crate::contract;
use crate::fixture::{Answer, World};

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

contract! {
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
