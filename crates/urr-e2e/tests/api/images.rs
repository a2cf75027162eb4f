//! Images pass the gateway although they are larger than other bodies may be.

use urr_e2e::{TestApp, TestResponse};

use crate::on_both_deployments;

const BOUNDARY: &str = "a-line-between-parts";

/// A PNG by its first and last bytes; the rest is not checked.
fn png(bytes: usize) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x03\0\x08\x02\0\0\0".to_vec();
    let end = b"\0\0\0\0IEND\xaeB\x60\x82";
    picture.resize(bytes - end.len(), 0);
    picture.extend(end);
    picture
}

async fn upload(app: &TestApp, picture: &[u8]) -> TestResponse {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"image\"; filename=\"poster.png\"\r\n\
         content-type: image/png\r\n\r\n"
    );
    let body = [head.as_bytes(), picture, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let call = app.post("/api/image/upload").as_admin().header("content-type", &content_type);
    call.body(body).send().await
}

on_both_deployments! {
    async fn f_10_a_picture_of_several_megabytes_is_taken_and_one_too_large_is_refused(app: TestApp) {
        let picture = png(3 * 1024 * 1024);
        let uploaded = upload(&app, &picture).await;
        assert!(uploaded.status.is_success(), "{}", String::from_utf8_lossy(&uploaded.bytes));
        let url = uploaded.json()["image"]["url"].as_str().unwrap().to_owned();
        let shown = app.get(&url).send().await;
        assert_eq!((shown.status.as_u16(), shown.bytes == picture), (200, true));
        assert_eq!(shown.headers["content-type"], "image/png");
        assert_eq!(upload(&app, &png(5 * 1024 * 1024 + 1)).await.status, 413);
        assert_eq!(upload(&app, &png(7 * 1024 * 1024)).await.status, 413);
        app.stop().await;
    }
}
