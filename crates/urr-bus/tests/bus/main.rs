//! The contract of the bus: the same cases on the embedded bus and on a real Kafka.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

mod broker;
mod consumer;
mod dead_letters;
mod delivery;
mod fixture;
mod logs;
mod relay;
mod relocation;
mod tls;

/// Runs each case on both forms of the bus. Kafka is skipped, with a line that says so, where it
/// cannot be started; with `CI=true` that is a failure.
macro_rules! on_both_engines {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::cases::$case(crate::fixture::Fixture::embedded().await).await;
            })*
        }

        mod kafka {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(fixture) = crate::fixture::Fixture::kafka().await {
                    super::cases::$case(fixture).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_engines;
