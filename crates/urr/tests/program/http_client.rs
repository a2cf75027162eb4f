//! As little HTTP as the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result};
use axum::http::HeaderMap;
use serde_json::Value;
use urr_kernel::{Secret, Uuid};
use urr_service::{Caller, Identity, InternalCredentials, UserRole};

use crate::process::{INTERNAL_TOKEN, PATIENCE};

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// With names in lower case.
    head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("{self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub fn get(port: u16, path: &str) -> Result<Reply> {
    request(port, "GET", path, &HeaderMap::new(), "")
}

/// HTTP/1.0: the answer ends with the connection, and is never in chunks.
pub fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: &str,
) -> Result<Reply> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = format!("{method} {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str()?));
    }
    let length = body.len();
    request.push_str(&format!("content-length: {length}\r\n\r\n{body}"));
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").context("a head and a body")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok(Reply { status, head: head.to_lowercase(), body: body.to_owned() })
}

/// Creates an artist as the gateway would for an administrator, on an internal listener.
pub fn create_artist(private_port: u16, name: &str) -> Result<Reply> {
    let mut headers = admin_headers("catalog");
    headers.insert("content-type", "application/json".parse()?);
    let body = serde_json::json!({ "name": name }).to_string();
    request(private_port, "POST", "/api/admin/artists", &headers, &body)
}

/// The credential of the gateway for a service, and an administrator for whom it speaks.
pub fn admin_headers(service: &str) -> HeaderMap {
    let credentials = InternalCredentials::from_root(&Secret::new(INTERNAL_TOKEN));
    let credential = credentials.for_call(Caller::Gateway, service);
    let mut headers = identity_headers();
    let header = |text: &str| text.parse().expect("it is printable ASCII");
    headers.insert("x-urr-caller", header(Caller::Gateway.as_str()));
    headers.insert("x-urr-credential", header(credential.expose()));
    headers
}

/// The identity of an administrator without a credential.
pub fn identity_headers() -> HeaderMap {
    let admin = Identity { user_id: Uuid::from_u128(7), email: None, role: UserRole::Admin };
    let mut headers = HeaderMap::new();
    admin.write(&mut headers);
    headers
}

/// The names of the first hundred artists that a listener shows.
pub fn artist_names(port: u16) -> Result<Vec<String>> {
    let artists = get(port, "/api/artists?limit=100")?.json()?;
    let artists = artists["artists"].as_array().context("a list")?.clone();
    let name = |artist: &Value| artist["name"].as_str().map(str::to_owned).context("a name");
    artists.iter().map(name).collect()
}

/// How many events of a type the statistics have counted.
pub fn activity(private_port: u16, event_type: &str) -> Result<i64> {
    let reply = request(private_port, "GET", "/api/stats/activity", &admin_headers("stats"), "")?;
    let activity = reply.json()?["activity"].as_array().context("a list")?.clone();
    let of_type = activity.iter().filter(|entry| entry["eventType"] == event_type);
    Ok(of_type.filter_map(|entry| entry["total"].as_i64()).sum())
}
