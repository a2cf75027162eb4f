//! Registers fans over HTTP, for a system whose secrets are not here.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};
use urr_kernel::{Clock, IdSource};

use crate::accounts::FanAccount;
use crate::client::{FanClient, FanRequest, FanResponse, Site};

const PAUSE: Duration = Duration::from_secs(1);
const TRIES: u32 = 120;
/// Nobody logs in with it again: the accounts are used as long as their first session lasts.
const PASSWORD_LENGTH: usize = 24;

/// Registers so many fans. `solve` does the work that a challenge asks for.
pub async fn register_fans(
    site: &Site,
    count: u32,
    solve: impl Fn(&Value) -> Result<String>,
) -> Result<Vec<FanAccount>> {
    let client = FanClient::new(site.clone(), 1, 1);
    let ids = IdSource::from_system_randomness(Clock::System);
    let terms = send(&client, FanRequest::get("/api/auth/terms")).await?;
    let terms = agreed(&terms.body)?;
    let mut accounts = Vec::new();
    for _ in 0..count {
        let challenge = FanRequest::get("/api/auth/challenge?for=register");
        let proof = solve(&send(&client, challenge).await?.body)?;
        let (name, secret) = (ids.next_id(), ids.next_id().simple().to_string());
        let body = json!({
            "email": format!("rush-{name}@example.com"), "name": "Rush",
            "password": &secret[..PASSWORD_LENGTH], "terms": terms,
        });
        let request = FanRequest::post("/api/auth/register").proof(proof).body(body);
        let session = send(&client, request).await?;
        let user_id = session.body["user"]["id"].as_str().context("a user has an id")?;
        let token = session.body["token"].as_str().context("a session has a token")?;
        accounts.push(FanAccount { user_id: user_id.parse()?, token: token.to_owned() });
    }
    Ok(accounts)
}

/// Agrees to what must be agreed to.
fn agreed(terms: &Value) -> Result<Vec<Value>> {
    let documents = terms["terms"].as_array().context("there are terms")?;
    let needed = documents.iter().filter(|it| it["required"] != false);
    let answer =
        |it: &Value| json!({ "type": it["type"], "version": it["version"], "agreed": true });
    Ok(needed.map(answer).collect())
}

/// Waits as often as it is asked to.
async fn send(client: &FanClient, request: FanRequest) -> Result<FanResponse> {
    for _ in 0..TRIES {
        let Ok(answer) = client.send(0, request.clone()).await else {
            bail!("the site does not answer; is URR running there?")
        };
        if answer.status.is_success() {
            return Ok(answer);
        }
        let is_deferred = ["RATE_LIMITED", "OVERLOADED", "LOGIN_BUSY"].contains(&answer.code());
        ensure!(is_deferred, "{} {}: {}", answer.status, answer.code(), request.path);
        sleep(answer.retry_after.unwrap_or(PAUSE)).await;
    }
    bail!("the site has no time for {}", request.path)
}
