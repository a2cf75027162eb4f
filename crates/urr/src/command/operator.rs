//! The way of whoever runs the installation into one of its running services.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use urr_kernel::CallContext;
use urr_service::{
    CallPolicy, Caller, HttpClient, InternalCredentials, Limits, Metrics, Remote, ServiceKit,
    Upstream, UpstreamError,
};

use crate::compose::World;
use crate::config::Config;
use crate::data_folder;
use crate::role::ProcessRole;

/// A service, as an operator reaches it.
pub struct Operator {
    service: Upstream,
    /// Where it is, for people.
    place: String,
    /// What it is called by people.
    noun: &'static str,
    context: CallContext,
}

/// A service that an operator can ask.
#[derive(Clone, Copy)]
pub struct Asked {
    pub role: ProcessRole,
    pub noun: &'static str,
    /// The variable that says where it is.
    pub variable: &'static str,
}

/// Whatever a service of this process needs.
pub fn kit() -> ServiceKit {
    let World { clock, ids } = World::real();
    ServiceKit { clock, ids, metrics: Metrics::new(), limits: Limits::default() }
}

impl Operator {
    /// What was asked for, else what the configuration names, else the system of the data folder.
    pub fn find(config: &Config, asked: Asked, url: Option<String>) -> Result<Operator> {
        match running_url(config, asked, url)? {
            Some(url) => Operator::at(config, asked, url),
            None => bail!(
                "no `urr up` runs on the data folder {}; start it, choose another folder with \
                 --data, or name {} of a cluster with --url or {}",
                config.data.dir.display(),
                asked.noun,
                asked.variable
            ),
        }
    }

    /// A service that listens somewhere.
    pub fn at(config: &Config, asked: Asked, url: String) -> Result<Operator> {
        let token = &config.internal.token;
        ensure!(
            !token.expose().is_empty(),
            "there is no secret for calls between services; set INTERNAL_API_TOKEN as {} have it, \
             or choose the folder of `urr up` with --data (now {})",
            asked.noun,
            config.data.dir.display()
        );
        let kit = kit();
        let remote = Remote {
            url: url.parse().with_context(|| format!("{url:?} is not an address"))?,
            credential: InternalCredentials::from_root(token).for_caller(Caller::Operator),
            client: HttpClient::new(),
        };
        let service = Upstream::remote(Caller::Operator, asked.role.name(), remote, &kit);
        Ok(Operator::new(service, url, asked, &kit))
    }

    pub fn new(service: Upstream, place: String, asked: Asked, kit: &ServiceKit) -> Operator {
        let context = CallContext::root(kit.ids.next_id());
        Operator { service, place, noun: asked.noun, context }
    }

    pub fn place(&self) -> &str {
        &self.place
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, patience: Duration) -> Result<T> {
        self.ask(path, patience).await.map_err(|error| self.explain(error))
    }

    /// For one who has something to say to an error of their own.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Duration,
    ) -> Result<T, UpstreamError> {
        self.service.get_json(path, &self.context, CallPolicy::idempotent(patience)).await
    }

    pub async fn post(&self, path: &str, body: &Value, patience: Duration) -> Result<Value> {
        let policy = CallPolicy::once(patience);
        let answer = self.service.post_json(path, body, &self.context, policy).await;
        answer.map_err(|error| self.explain(error))
    }

    pub fn explain(&self, error: UpstreamError) -> anyhow::Error {
        let (place, noun) = (&self.place, self.noun);
        if matches!(error, UpstreamError::Unreachable { .. }) {
            return anyhow!("nothing answers at {place}; is URR running there?");
        }
        let Some(refusal) = error.refusal() else {
            return anyhow::Error::new(error).context(format!("{place} could not be asked"));
        };
        match refusal.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => anyhow!(
                "{place} does not know our credential; use the INTERNAL_API_TOKEN of that \
                 installation, or its data folder with --data"
            ),
            // What is missing has a code of its own; a path that is missing has none.
            StatusCode::NOT_FOUND if matches!(&*refusal.code, "" | "NOT_FOUND") => {
                anyhow!("{place} has nothing to do with {noun}")
            }
            _ if refusal.sentence.is_empty() => anyhow!("{place} answers with {}", refusal.status),
            _ => anyhow!("{}", refusal.sentence.trim_end_matches('.')),
        }
    }
}

/// Where the service runs, as far as anybody has said or the data folder knows.
pub fn running_url(config: &Config, asked: Asked, url: Option<String>) -> Result<Option<String>> {
    let named = url.or_else(|| config.services.url(asked.role).map(str::to_owned));
    match named {
        Some(url) => Ok(Some(url)),
        None => data_folder::private_door(&config.data.dir).context("the data folder"),
    }
}
