//! `urr worker`: reads the notices of admissions from SQS until it is stopped.

use anyhow::{Result, bail};
use tokio_util::sync::CancellationToken;
use tracing::info;
use urr_notice::NoticeWorker;

use super::block_on;
use super::run::StopSignals;
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
        let stop = CancellationToken::new();
        info!("reading notices");
        tokio::select! {
            // A message that was not finished is still in the queue and is delivered again.
            () = worker.run(stop) => {}
            () = signals.next() => info!("stopped"),
        }
        Ok(())
    })
}
