//! Accounts, as whoever runs the installation deals with them.

use anyhow::{Result, ensure};
use axum::http::HeaderMap;

use crate::http::request;
use crate::program::Installation;

const FIRST_KEY: &str = "the first key for personal data, long enough";
const SECOND_KEY: &str = "the second key for personal data, long enough";
const REGISTRATION: &str = r#"{"email":"fan@example.com","password":"a long enough secret",
    "name":"Fan","terms":[{"type":"SERVICE","agreed":true,"version":"1"},
                          {"type":"PRIVACY","agreed":true,"version":"1"}]}"#;
const LOGIN: &str = r#"{"email":"fan@example.com","password":"a long enough secret"}"#;

fn post(port: u16, path: &str, body: &str) -> Result<u16> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    Ok(request(port, "POST", path, &headers, body)?.status)
}

#[test]
fn the_key_of_personal_data_is_changed_while_everything_goes_on() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_AUTH_DATA_KEY", FIRST_KEY);
    let running = installation.up(&[])?;
    assert_eq!(post(running.port, "/api/auth/register", REGISTRATION)?, 201);
    running.stop("TERM")?.succeeded()?;

    installation.set("URR_AUTH_DATA_KEY", SECOND_KEY);
    installation.set("URR_AUTH_DATA_KEY_VERSION", "2");
    installation.set("URR_AUTH_OTHER_DATA_KEY", FIRST_KEY);
    installation.set("URR_AUTH_OTHER_DATA_KEY_VERSION", "1");
    let running = installation.up(&[])?;
    assert_eq!(post(running.port, "/api/auth/login", LOGIN)?, 200, "by the other key");
    let rotated = installation.run(&["admin", "rotate-keys"])?.succeeded()?.stdout;
    assert_eq!(rotated, "1 accounts sealed anew, 0 to go\n");
    assert_eq!(post(running.port, "/api/auth/login", LOGIN)?, 200, "beside the running system");
    running.stop("TERM")?.succeeded()?;

    installation.set("URR_AUTH_OTHER_DATA_KEY", "");
    let running = installation.up(&[])?;
    assert_eq!(post(running.port, "/api/auth/login", LOGIN)?, 200, "by the new key alone");
    running.stop("TERM")?.succeeded()?;

    // Control: with the old key alone nothing can be found any more.
    installation.set("URR_AUTH_DATA_KEY", FIRST_KEY);
    installation.set("URR_AUTH_DATA_KEY_VERSION", "1");
    let running = installation.up(&[])?;
    ensure!(post(running.port, "/api/auth/login", LOGIN)? != 200, "the data were sealed anew");
    Ok(())
}
