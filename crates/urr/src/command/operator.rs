//! Calls of an operator, from a command, to one of the running services.

use anyhow::{Context, Result, anyhow, bail, ensure};
use axum::http::StatusCode;
use urr_contracts::clients::ClientError;
use urr_kernel::{CallContext, Clock, IdSource};
use urr_service::{
    Caller, InternalCredentials, Metrics, RemoteService, RequestLimits, ServiceKit, Upstream,
    UpstreamError,
};

use crate::compose::own_client;
use crate::config::Config;
use crate::data_folder;
use crate::role::ProcessRole;

/// A connection to one service, with the credential of an operator.
pub struct Operator {
    upstream: Upstream,
    /// Where the service is, for people.
    location: String,
    /// What people call it.
    noun: &'static str,
    context: CallContext,
}

/// A service that has commands for operators.
#[derive(Clone, Copy)]
pub struct OperatorTarget {
    pub role: ProcessRole,
    pub noun: &'static str,
    /// The variable that names its address.
    pub variable: &'static str,
}

/// What a service that is made for one command needs.
pub fn kit() -> ServiceKit {
    let ids = IdSource::from_system_randomness(Clock::System);
    ServiceKit {
        clock: Clock::System,
        ids,
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    }
}

impl Operator {
    /// Connects to `url`, else to the address in the configuration, else to the process that has the
    /// data folder.
    pub fn find(config: &Config, target: OperatorTarget, url: Option<String>) -> Result<Operator> {
        match running_url(config, target, url)? {
            Some(url) => Operator::at(config, target, url),
            None => bail!(
                "no `urr up` runs on the data folder {}; start it, choose another folder with \
                 --data, or name {} of a cluster with --url or {}",
                config.data.dir.display(),
                target.noun,
                target.variable
            ),
        }
    }

    /// Connects to a service at this address.
    pub fn at(config: &Config, target: OperatorTarget, url: String) -> Result<Operator> {
        let token = &config.internal.token;
        ensure!(
            !token.expose().is_empty(),
            "there is no secret for calls between services; set INTERNAL_API_TOKEN to the value \
             that {} have, or choose the folder of `urr up` with --data (now {})",
            target.noun,
            config.data.dir.display()
        );
        let kit = kit();
        let remote = RemoteService {
            urls: url.parse().with_context(|| format!("{url:?} is not an address"))?,
            credential: InternalCredentials::from_root(token)
                .for_call(Caller::Operator, target.role.name()),
            client: own_client(config)?,
        };
        let upstream = Upstream::remote(Caller::Operator, target.role.name(), remote, &kit);
        Ok(Operator::new(upstream, url, target, &kit))
    }

    pub fn new(
        upstream: Upstream,
        location: String,
        target: OperatorTarget,
        kit: &ServiceKit,
    ) -> Operator {
        let context = CallContext::root(kit.ids.next_id());
        Operator { upstream, location, noun: target.noun, context }
    }

    /// For a typed client.
    pub fn upstream(&self) -> Upstream {
        self.upstream.clone()
    }

    pub fn context(&self) -> &CallContext {
        &self.context
    }

    pub fn location(&self) -> &str {
        &self.location
    }

    /// Says in one sentence why a call failed and what to do.
    pub fn explain(&self, error: ClientError) -> anyhow::Error {
        let (location, noun, error) = (&self.location, self.noun, error.into_source());
        if let UpstreamError::Unreachable { source, .. } = &error {
            return match urr_tls::is_certificate_refused(source.as_ref()) {
                true => anyhow!(
                    "the certificate of {location} is not signed by an authority that we know, or \
                     not for this name; set internal.tls_root_path"
                ),
                false => anyhow!("nothing answers at {location}; is URR running there?"),
            };
        }
        let Some(refusal) = error.refusal() else {
            return anyhow::Error::new(error).context(format!("{location} could not be reached"));
        };
        match refusal.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => anyhow!(
                "{location} does not know our credential; use the INTERNAL_API_TOKEN of that \
                 installation, or its data folder with --data"
            ),
            // A missing resource has a code of its own; a missing path has not.
            StatusCode::NOT_FOUND if matches!(&*refusal.code, "" | "NOT_FOUND") => {
                anyhow!("{location} has nothing to do with {noun}")
            }
            _ if refusal.sentence.is_empty() => {
                anyhow!("{location} answers with {}", refusal.status)
            }
            _ => anyhow!("{}", refusal.sentence.trim_end_matches('.')),
        }
    }
}

/// The address of a running service, if one is given, configured, or known to the data folder.
pub fn running_url(
    config: &Config,
    target: OperatorTarget,
    url: Option<String>,
) -> Result<Option<String>> {
    let named = url.or_else(|| config.services.joined_urls(target.role));
    match named {
        Some(url) => Ok(Some(url)),
        None => data_folder::internal_url(&config.data.dir).context("the data folder"),
    }
}
