//! The way into a running system.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use urr_kernel::{CallContext, Secret, Uuid};
use urr_service::{
    CallPolicy, Caller, HttpClient, InternalCredentials, Limits, Metrics, Remote, ServiceKit,
    Upstream, UpstreamError,
};

use crate::compose::World;
use crate::config::Config;
use crate::data_folder;

const PATIENCE: Duration = Duration::from_secs(10);
/// As many rooms as one answer has.
const PAGE_LIMIT: u32 = 100;

/// The waiting rooms, as an operator reaches them.
pub struct Desk {
    queue: Upstream,
    url: String,
    context: CallContext,
}

#[derive(Deserialize)]
struct RoomPage {
    rooms: Vec<Value>,
    pagination: Pagination,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    total_pages: u32,
}

impl Desk {
    /// What was asked for, else what the configuration names, else the system of the data folder.
    pub fn find(config: &Config, url: Option<String>) -> Result<Desk> {
        let url = match url.or_else(|| config.services.queue_url.clone()) {
            Some(url) => url,
            None => url_in_folder(config)?,
        };
        let token = &config.internal.token;
        ensure!(!token.expose().is_empty(), "{}", no_token(config));
        Desk::at(url, token)
    }

    fn at(url: String, token: &Secret) -> Result<Desk> {
        let World { clock, ids } = World::real();
        let context = CallContext::root(ids.next_id());
        let metrics = Metrics::new();
        let kit = ServiceKit { clock, ids, metrics, limits: Limits::default() };
        let remote = Remote {
            url: url.parse().with_context(|| format!("{url:?} is not an address"))?,
            credential: InternalCredentials::from_root(token).for_caller(Caller::Operator),
            client: HttpClient::new(),
        };
        Ok(Desk { queue: Upstream::remote(Caller::Operator, "queue", remote, &kit), url, context })
    }

    /// All rooms that are worth a look.
    pub async fn rooms(&self) -> Result<Vec<Value>> {
        let mut rooms = Vec::new();
        for number in 1.. {
            let path = format!("/internal/queue/admin/rooms?page={number}&limit={PAGE_LIMIT}");
            let page: RoomPage = self.get(&path).await?;
            rooms.extend(page.rooms);
            if number >= page.pagination.total_pages {
                break;
            }
        }
        Ok(rooms)
    }

    pub async fn room(&self, event: Uuid) -> Result<Value> {
        self.get(&format!("/internal/queue/admin/rooms/{event}")).await
    }

    pub async fn change(&self, event: Uuid, body: &Value) -> Result<Value> {
        self.post(&format!("/internal/queue/admin/rooms/{event}"), body).await
    }

    pub async fn clear(&self, event: Uuid) -> Result<Value> {
        let body = json!({ "confirm": event });
        self.post(&format!("/internal/queue/admin/rooms/{event}/clear"), &body).await
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T> {
        let policy = CallPolicy::idempotent(PATIENCE);
        let answer = self.queue.get_json(path, &self.context, policy).await;
        answer.map_err(|error| self.explain(error))
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let policy = CallPolicy::once(PATIENCE);
        let answer = self.queue.post_json(path, body, &self.context, policy).await;
        answer.map_err(|error| self.explain(error))
    }

    fn explain(&self, error: UpstreamError) -> anyhow::Error {
        let url = &self.url;
        if matches!(error, UpstreamError::Unreachable { .. }) {
            return anyhow!("nothing answers at {url}; is URR running there?");
        }
        let Some(refusal) = error.refusal() else {
            return anyhow::Error::new(error).context(format!("{url} could not be asked"));
        };
        match refusal.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => anyhow!(
                "{url} does not know our credential; use the INTERNAL_API_TOKEN of that \
                 installation, or its data folder with --data"
            ),
            StatusCode::NOT_FOUND if refusal.code != "EVENT_NOT_FOUND" => {
                anyhow!("there are no waiting rooms at {url}")
            }
            _ if refusal.sentence.is_empty() => anyhow!("{url} answers with {}", refusal.status),
            _ => anyhow!("{}", refusal.sentence.trim_end_matches('.')),
        }
    }
}

fn url_in_folder(config: &Config) -> Result<String> {
    let folder = config.data.dir.display();
    match data_folder::private_door(&config.data.dir).context("the data folder")? {
        Some(url) => Ok(url),
        None => bail!(
            "no `urr up` runs on the data folder {folder}; start it, choose another folder with \
             --data, or name the waiting rooms of a cluster with --url or QUEUE_SERVICE_URL"
        ),
    }
}

fn no_token(config: &Config) -> String {
    let folder = config.data.dir.display();
    format!(
        "there is no secret for calls between services; set INTERNAL_API_TOKEN as the waiting \
         rooms have it, or choose the folder of `urr up` with --data (now {folder})"
    )
}
