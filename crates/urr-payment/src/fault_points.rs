//! Transactions and outside calls of the service, with named points at which a test can stop a process, as a crash would.
//!
//! Every commit and every outside call has a point before and one after it. In production nothing
//! listens.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use urr_storage::{BatchKey, DbResult, SetWrite, StorageError, Tx};

use crate::PaymentService;

/// The steps of purchases.
const PURCHASES: BatchKey = BatchKey::named("purchases");

/// The listener that is called at every point. Clones share it.
#[derive(Clone, Default)]
pub struct FaultPoints(Option<Arc<FaultListener>>);

type FaultListener = dyn Fn(FaultPoint) -> BoxFuture<'static, ()> + Send + Sync;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultPoint {
    pub moment: FaultMoment,
    /// The commit or the call.
    pub name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultMoment {
    Before,
    After,
}

impl FaultPoints {
    pub fn listening(
        listener: impl Fn(FaultPoint) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> FaultPoints {
        FaultPoints(Some(Arc::new(listener)))
    }

    async fn around<T>(&self, name: &'static str, work: impl Future<Output = T>) -> T {
        self.reach(FaultMoment::Before, name).await;
        let done = work.await;
        self.reach(FaultMoment::After, name).await;
        done
    }

    async fn reach(&self, moment: FaultMoment, name: &'static str) {
        if let Some(listener) = &self.0 {
            listener(FaultPoint { moment, name }).await;
        }
    }
}

impl PaymentService {
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.0.db.read(work).await
    }

    /// Runs a transaction outside of a saga, without fault points.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.0.db.write(work).await
    }

    /// Runs a transaction of a saga, which can be stopped before and after its commit. The same
    /// step of several payments shares a commit.
    pub(crate) async fn commit<T, E>(
        &self,
        name: &'static str,
        work: impl Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StorageError> + Send + 'static,
    {
        let work = self.0.db.write_batched(BatchKey::named(name), work);
        self.0.faults.around(name, work).await
    }

    /// The same for a step that is written for several payments at once. All of these share a commit.
    pub(crate) async fn commit_in_set<W: SetWrite>(
        &self,
        name: &'static str,
        member: W,
    ) -> Result<W::Answer, W::Error> {
        let work = self.0.db.write_in_set(PURCHASES, member);
        self.0.faults.around(name, work).await
    }

    /// Makes an outside call that can be stopped before and after it.
    pub(crate) async fn call<T>(&self, name: &'static str, call: impl Future<Output = T>) -> T {
        self.0.faults.around(name, call).await
    }
}

impl fmt::Debug for FaultPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "FaultPoints(listening)" } else { "FaultPoints" })
    }
}
