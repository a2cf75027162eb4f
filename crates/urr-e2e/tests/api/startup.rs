//! How a gateway starts whose services are not there yet.

use std::ffi::OsString;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::Value;
use tower::ServiceExt;
use urr::compose::{ClockAndIds, System};
use urr::config::{self, CommandLineOverrides, LoadMode, LoadOptions};
use urr::role::ProcessRole;

/// D-20: without the list of revoked tokens it would accept users who have logged out, so it is not
/// ready.
#[tokio::test]
async fn d_20_a_gateway_that_cannot_reach_auth_lives_but_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = Some(folder.path().join("data"));
    let overrides = CommandLineOverrides { data_dir, ..CommandLineOverrides::default() };
    let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
    // Port 1 of loopback: nothing listens there.
    let services = ProcessRole::ALL.into_iter().filter(|role| *role != ProcessRole::Gateway);
    let names = services.map(|role| format!("URR_SERVICES_{}_URL", role.name().to_uppercase()));
    let environment =
        names.map(|name| (OsString::from(name), OsString::from("http://127.0.0.1:1")));
    let config = config::load(args, environment).unwrap();
    let roles = [ProcessRole::Gateway].into_iter().collect();
    let system = System::start(&config, &roles, ClockAndIds::system(), None).await.unwrap();
    let ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let Ok(response) = system.public.clone().unwrap().oneshot(request).await;
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let (status, ready) = ask("/health/ready").await;
    assert_eq!((status, &ready["status"]), (503, &Value::from("degraded")));
    assert_eq!(ready["dependencies"]["revoked-tokens"], "error: not known yet");
    assert_eq!(ask("/health/live").await.0, 200);
    system.stop().await;
}
