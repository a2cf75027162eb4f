//! Samples the waiting room once a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::FanRequest;
use crate::fan::Rush;

/// The waiting room at a moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomSample {
    pub second: u64,
    pub waiting: u64,
    pub inside: u64,
    pub threshold: u64,
    pub admitted_total: u64,
    #[serde(default)]
    pub sold_out: bool,
}

/// The samples so far. Clones share them.
#[derive(Clone, Default)]
pub struct RoomSamples(Arc<Mutex<Vec<RoomSample>>>);

impl RoomSamples {
    pub fn all(&self) -> Vec<RoomSample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn last(&self) -> Option<RoomSample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last().copied()
    }

    /// Samples until it is dropped. A second without an answer has no sample.
    pub async fn collect(self, rush: Arc<Rush>) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let path = format!("/api/queue/crowd/{}", rush.event.id);
        loop {
            tick.tick().await;
            let Ok(response) = rush.client.send(0, FanRequest::get(path.clone())).await else {
                continue;
            };
            let body = &response.body;
            let figure = |name: &str| body[name].as_u64();
            let sample = (|| {
                Some(RoomSample {
                    second: rush.recorder.elapsed().as_secs(),
                    waiting: figure("waiting")?,
                    inside: figure("active")?,
                    threshold: figure("threshold")?,
                    admitted_total: figure("admittedTotal")?,
                    sold_out: body["soldOut"] == true,
                })
            })();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(sample);
        }
    }
}
