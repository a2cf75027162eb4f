//! Watching over what runs in the background: none of it may end unseen.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// Notices parts that end by themselves, and then has the whole process stopped: a shop that sells
/// without sending its events is worse than one that restarts. Clones share what was noticed.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Cancelled to stop the process.
    stop: CancellationToken,
    has_failed: Arc<AtomicBool>,
}

impl Watch {
    pub fn new(stop: CancellationToken) -> Watch {
        Watch { stop, has_failed: Arc::default() }
    }

    /// Runs a part that may end only after `told` is cancelled.
    pub fn guard<F>(
        &self,
        name: &'static str,
        told: CancellationToken,
        part: F,
    ) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send,
    {
        let watch = self.clone();
        async move {
            let ended = AssertUnwindSafe(part).catch_unwind().await;
            if !told.is_cancelled() {
                let how = if ended.is_err() { "panicked" } else { "ended" };
                error!(part = name, "{how} by itself; everything is stopped");
                watch.has_failed.store(true, Ordering::SeqCst);
                watch.stop.cancel();
            }
        }
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_ends_when_told_is_fine() {
        let (stop, told) = (CancellationToken::new(), CancellationToken::new());
        let watch = Watch::new(stop.clone());
        told.cancel();
        watch.guard("a part", told, async {}).await;
        assert!(!watch.has_failed() && !stop.is_cancelled());
    }

    #[tokio::test]
    async fn a_part_that_ends_or_panics_by_itself_stops_everything() {
        let returns = async {};
        let panics = async { panic!("a bug") };
        let parts: [futures_util::future::BoxFuture<'static, ()>; 2] =
            [returns.boxed(), panics.boxed()];
        for part in parts {
            let stop = CancellationToken::new();
            let watch = Watch::new(stop.clone());
            watch.guard("a part", CancellationToken::new(), part).await;
            assert!(watch.has_failed() && stop.is_cancelled());
        }
    }
}
