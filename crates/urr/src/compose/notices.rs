//! The notices of admissions on SQS, from the configuration.

use anyhow::{Context, Result};
use urr_notice::{NoticeMetrics, NoticePublisher, SqsOptions, SqsQueue};
use urr_outbound::Outbound;
use urr_queue::Notices;
use urr_tls::{ClientTls, TrustFiles, client_config};

use super::builder::Builder;
use crate::config::SqsConfig;

/// Notices that may wait to be sent: some minutes of the usual rate.
const BUFFERED_MAX: usize = 10_000;

/// Starts the sender of notices, if they are enabled.
pub fn start(builder: &Builder<'_>) -> Result<Notices> {
    if !builder.config.sqs.enabled {
        return Ok(Notices::off());
    }
    let (notices, receiver) = Notices::buffered(BUFFERED_MAX);
    let metrics = NoticeMetrics::default();
    metrics.register(&builder.kit.metrics);
    let queue = sqs_queue(&builder.config.sqs)?;
    let publisher = NoticePublisher { queue, notices: receiver, metrics };
    builder.spawn("the publisher of notices", publisher.run(builder.stopping.clone()));
    Ok(notices)
}

/// The queue that the configuration names.
pub fn sqs_queue(config: &SqsConfig) -> Result<SqsQueue> {
    let missing = "the notices need sqs.queue_url, sqs.access_key_id and sqs.secret_access_key";
    let outbound = match &config.tls_root_path {
        Some(path) => {
            let tls = ClientTls::trusting(TrustFiles::File(path.clone()));
            Outbound::to_own_processes(client_config(&tls).context("sqs.tls_root_path")?)
        }
        None => Outbound::to_own_servers(),
    };
    let options = SqsOptions {
        queue_url: config.queue_url.clone().context(missing)?,
        region: config.region.clone(),
        endpoint: config.endpoint.clone(),
        access_key_id: config.access_key_id.clone().context(missing)?,
        secret_access_key: config.secret_access_key.clone().context(missing)?,
    };
    Ok(SqsQueue::new(&options, outbound))
}
