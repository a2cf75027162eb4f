//! Work that runs at an interval.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Interval, MissedTickBehavior, interval};
use urr_kernel::panic_text;

/// Runs a job now and then at an interval, for ever.
///
/// A run that fails or panics is logged with the name of the job, and the next one follows at its
/// time. A run that takes longer than the interval delays the next one; runs do not pile up.
///
/// ```no_run
/// # async fn example(stop: tokio_util::sync::CancellationToken) {
/// # use std::time::Duration;
/// # async fn expire_holds() -> Result<u64, std::io::Error> { Ok(0) }
/// let expire = urr_service::jobs::run_every("expire_holds", Duration::from_secs(1), expire_holds);
/// stop.run_until_cancelled(expire).await;
/// # }
/// ```
pub async fn run_every<W, F>(name: &'static str, period: Duration, mut run: W) -> Infallible
where
    W: FnMut() -> F,
    F: Future<Output: JobResult>,
{
    let mut ticks = ticker(period);
    loop {
        ticks.tick().await;
        match AssertUnwindSafe(run()).catch_unwind().await.map(JobResult::failure) {
            Ok(None) => {}
            Ok(Some(error)) => tracing::warn!(job = name, error, "a job failed"),
            Err(panic) => {
                let cause = panic_text(panic.as_ref());
                tracing::error!(job = name, cause, "a job panicked");
            }
        }
    }
}

/// For a job that also waits for something else than the time. The first tick comes at once; late
/// ticks do not pile up.
pub fn ticker(period: Duration) -> Interval {
    let mut ticks = interval(period.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// What a run of a job returns: nothing, or a result whose value is not needed.
pub trait JobResult {
    /// The error of a run that failed.
    fn failure(self) -> Option<String>;
}

impl JobResult for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<T, E: Display> JobResult for Result<T, E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_job_survives_failures_and_panics_and_late_runs_do_not_pile_up() {
        let runs = Cell::new(0);
        let job = run_every("test", Duration::from_secs(10), || {
            let run = runs.replace(runs.get() + 1);
            async move {
                match run {
                    0 => return Err("broken"),
                    1 => panic!("broken"),
                    2 => tokio::time::sleep(Duration::from_secs(35)).await,
                    _ => {}
                }
                Ok(())
            }
        });
        // Runs begin after 0, 10 and 20 seconds; the third ends after 55, the next begins then.
        let stopped = tokio::time::timeout(Duration::from_secs(64), job).await;
        assert!(stopped.is_err());
        assert_eq!(runs.get(), 4);
    }
}
