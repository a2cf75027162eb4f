//! Where a saga can be stopped, to show that it goes on.
//!
//! Before and after every commit and every call it says where it is. Nobody listens but a test,
//! which may keep it there for ever, as a crash does.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// Whoever is told. Clones share the listener.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Listener>>);

type Listener = dyn Fn(Point) -> BoxFuture<'static, ()> + Send + Sync;

/// A place in a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    pub moment: Moment,
    /// Of the commit or the call.
    pub name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    Before,
    After,
}

impl Faults {
    pub fn listening(
        listener: impl Fn(Point) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Faults {
        Faults(Some(Arc::new(listener)))
    }

    /// Does something that can be stopped before and after.
    pub(crate) async fn around<T>(&self, name: &'static str, work: impl Future<Output = T>) -> T {
        self.reach(Moment::Before, name).await;
        let done = work.await;
        self.reach(Moment::After, name).await;
        done
    }

    async fn reach(&self, moment: Moment, name: &'static str) {
        if let Some(listener) = &self.0 {
            listener(Point { moment, name }).await;
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Faults(listening)" } else { "Faults" })
    }
}
