//! Redis as URR uses it: the same cases on one server and on a Cluster of three nodes, and what
//! happens when a server dies, hangs or forgets.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

mod failures;
mod fixture;
mod scripts;
mod tls;

/// Runs each case on one server and on a Cluster. Where they cannot be started that is skipped, with
/// a line that says so; with `CI=true` it is a failure.
macro_rules! on_both_topologies {
    ($($case:ident),* $(,)?) => {
        mod single {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(redis) = crate::fixture::single().await {
                    super::cases::$case(redis).await;
                }
            })*
        }

        mod cluster {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(redis) = crate::fixture::cluster().await {
                    super::cases::$case(redis).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_topologies;
