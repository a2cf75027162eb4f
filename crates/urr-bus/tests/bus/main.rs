//! The contract of the bus: the same cases on the embedded bus and on a real Kafka.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

mod broker;
mod consuming;
mod dead_letters;
mod delivery;
mod logs;
mod relaying;
mod world;

/// Runs each case on both forms of the bus. Kafka is skipped, with a line that says so, where it
/// cannot be started; with `CI=true` that is a failure.
macro_rules! on_both_forms {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::cases::$case(crate::world::World::embedded().await).await;
            })*
        }

        mod kafka {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(world) = crate::world::World::kafka().await {
                    super::cases::$case(world).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_forms;
