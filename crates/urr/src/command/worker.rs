//! `urr worker`: reads the notices of admissions from SQS until it is stopped.

use std::time::Duration;

use anyhow::{Result, bail};
use axum::Router;
use tracing::info;
use urr_notice::NoticeWorker;
use urr_service::{Health, Metrics, Readiness, ServerStop, serve_until};

use super::block_on;
use super::run::{StopSignals, listen_internally};
use crate::compose;
use crate::config::Config;
use crate::logging;

pub fn run(config: &Config) -> Result<()> {
    if !config.sqs.enabled {
        bail!("the notices are switched off; set sqs.enabled (SQS_ENABLED) to true");
    }
    let _log = logging::start(&config.log, None)?;
    block_on(async {
        let mut signals = StopSignals::listen()?;
        let worker = NoticeWorker::new(compose::sqs_queue(&config.sqs)?);
        let stop = ServerStop::default();
        if let Some(listener) = listen_internally(config).await? {
            let router = router(&worker, stop.readiness.clone());
            tokio::spawn(serve_until(listener, router, stop.clone(), Duration::ZERO));
        }
        info!("reading notices");
        tokio::select! {
            // A message that was not finished is still in the queue and is delivered again.
            () = worker.run(stop.shutdown.clone()) => {}
            () = signals.next() => info!("stopped"),
        }
        Ok(())
    })
}

/// Health and metrics, for probes and Prometheus.
fn router(worker: &NoticeWorker, readiness: Readiness) -> Router {
    let metrics = Metrics::new();
    worker.register(&metrics);
    let worker = worker.clone();
    let health = Health::new("worker", readiness).check("sqs", move || {
        let is_reading = worker.is_reading();
        async move { if is_reading { Ok(()) } else { Err("the queue cannot be read".to_owned()) } }
    });
    health.router().merge(metrics.router())
}
