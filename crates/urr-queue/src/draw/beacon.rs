//! Where draws get their public randomness from.

use std::time::Duration;

use axum::http::HeaderMap;
use serde::Deserialize;
use urr_kernel::hex;
use urr_outbound::{Outbound, OutboundError};

use crate::domain::beacon::{BeaconValue, CHAIN_HASH};

const TIMEOUT: Duration = Duration::from_secs(3);

/// The source of public randomness.
#[derive(Clone, Debug)]
pub enum BeaconSource {
    Drand(DrandClient),
    /// None: for tests, and for machines without network. Draws say so.
    Offline,
}

/// Asks servers that publish drand's rounds, one after the other. None of them is trusted: the
/// signature decides.
#[derive(Clone, Debug)]
pub struct DrandClient {
    outbound: Outbound,
    urls: Vec<String>,
}

/// Why there is no value yet.
#[derive(Debug, thiserror::Error)]
pub enum BeaconError {
    #[error("no server is configured")]
    NoServer,
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error("the server answered {0}; the round may not be published yet")]
    Status(u16),
    #[error("the answer cannot be read")]
    Unreadable,
    #[error("the answer is not signed by drand")]
    NotSigned,
}

/// A round as servers publish it.
#[derive(Deserialize)]
struct PublishedRound {
    round: i64,
    signature: String,
}

impl DrandClient {
    pub fn new(outbound: Outbound, urls: Vec<String>) -> DrandClient {
        DrandClient { outbound, urls }
    }

    /// The value of a round from the first server that has it.
    pub async fn fetch(&self, round: i64) -> Result<BeaconValue, BeaconError> {
        let mut failure = BeaconError::NoServer;
        for url in &self.urls {
            match self.fetch_from(url, round).await {
                Ok(value) => return Ok(value),
                Err(error) => {
                    tracing::debug!(round, %error, "a server did not tell a round of the beacon");
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    async fn fetch_from(&self, url: &str, round: i64) -> Result<BeaconValue, BeaconError> {
        let url = format!("{}/{CHAIN_HASH}/public/{round}", url.trim_end_matches('/'));
        let answer = self.outbound.get_json(&url, HeaderMap::new(), TIMEOUT).await?;
        if !answer.status.is_success() {
            return Err(BeaconError::Status(answer.status.as_u16()));
        }
        let published: PublishedRound = answer.json().map_err(|_| BeaconError::Unreadable)?;
        let signature = hex::decode_array(&published.signature).ok_or(BeaconError::Unreadable)?;
        let value = BeaconValue::Drand { round: published.round, signature };
        if published.round != round || !value.is_signed() {
            return Err(BeaconError::NotSigned);
        }
        Ok(value)
    }
}
