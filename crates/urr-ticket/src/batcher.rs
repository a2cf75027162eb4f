//! A batcher: requests for one event that arrive while a batch runs form the next batch.
//!
//! There is no timer. A single request is worked on at once; under load batches grow with the
//! duration of the work. A batch that has begun is finished even if its clients are gone; a client
//! that is gone before is skipped.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use urr_kernel::Uuid;

/// The limits of a batcher.
#[derive(Clone, Copy, Debug)]
pub struct BatcherLimits {
    /// The size of a batch: its first request waits for the last.
    pub batch_max: usize,
    /// More pending requests for one event are rejected.
    pub pending_max: usize,
}

impl BatcherLimits {
    pub const DEFAULT: BatcherLimits = BatcherLimits { batch_max: 128, pending_max: 8_192 };
}

type Answers<A> = Pin<Box<dyn Future<Output = Vec<A>> + Send>>;

/// Batches requests per event. Clones share it.
pub struct Batcher<Q, A> {
    inner: Arc<Inner<Q, A>>,
}

struct Inner<Q, A> {
    /// Events with a running batch, and their pending requests.
    pending: Mutex<HashMap<Uuid, VecDeque<PendingRequest<Q, A>>>>,
    /// Answers the requests of a batch, in their order.
    work: Box<dyn Fn(Uuid, Vec<Q>) -> Answers<A> + Send + Sync>,
    /// Called with answers whose clients are gone.
    on_abandoned: Box<dyn Fn(A) + Send + Sync>,
    /// Called with requests whose clients were gone before their batch began.
    on_cancelled: Box<dyn Fn(Q) + Send + Sync>,
    limits: BatcherLimits,
    /// How many requests there were.
    submitted: AtomicU64,
}

struct PendingRequest<Q, A> {
    request: Q,
    answer: oneshot::Sender<A>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatcherError {
    /// Too many pending requests. Nothing was done.
    Full,
    /// The work panicked, or the process ends.
    Failed,
}

impl<Q, A> Clone for Batcher<Q, A> {
    fn clone(&self) -> Batcher<Q, A> {
        Batcher { inner: Arc::clone(&self.inner) }
    }
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    pub fn new<F>(
        work: impl Fn(Uuid, Vec<Q>) -> F + Send + Sync + 'static,
        on_abandoned: impl Fn(A) + Send + Sync + 'static,
    ) -> Batcher<Q, A>
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        Batcher::with_limits(BatcherLimits::DEFAULT, work, on_abandoned)
    }

    pub fn with_limits<F>(
        limits: BatcherLimits,
        work: impl Fn(Uuid, Vec<Q>) -> F + Send + Sync + 'static,
        on_abandoned: impl Fn(A) + Send + Sync + 'static,
    ) -> Batcher<Q, A>
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let work = move |event_id, requests| -> Answers<A> { Box::pin(work(event_id, requests)) };
        let (work, on_abandoned, on_cancelled) =
            (Box::new(work), Box::new(on_abandoned), Box::new(drop));
        let (pending, submitted) = (Mutex::default(), AtomicU64::new(0));
        let inner = Inner { pending, work, on_abandoned, on_cancelled, limits, submitted };
        Batcher { inner: Arc::new(inner) }
    }

    /// Calls this for requests that are skipped because their clients are gone.
    pub fn on_cancelled(
        mut self,
        on_cancelled: impl Fn(Q) + Send + Sync + 'static,
    ) -> Batcher<Q, A> {
        let inner = Arc::get_mut(&mut self.inner).expect("a batcher is set up before it is shared");
        inner.on_cancelled = Box::new(on_cancelled);
        self
    }

    /// How many requests were submitted so far.
    pub fn submitted(&self) -> u64 {
        self.inner.submitted.load(Ordering::Relaxed)
    }

    /// Submits a request and waits for its answer.
    pub async fn submit(&self, event_id: Uuid, request: Q) -> Result<A, BatcherError> {
        self.inner.submitted.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let pending_request = PendingRequest { request, answer };
        match self.inner.enqueue(event_id, pending_request)? {
            Enqueued::Pending => {}
            Enqueued::First(pending_request) => {
                let inner = Arc::clone(&self.inner);
                tokio::spawn(BatchRunner { inner, event_id, is_done: false }.run(pending_request));
            }
        }
        receiver.await.map_err(|_| BatcherError::Failed)
    }
}

enum Enqueued<W> {
    /// A batch is running; the request is part of the next one.
    Pending,
    /// No batch is running for this event.
    First(W),
}

impl<Q, A> Inner<Q, A> {
    fn enqueue(
        &self,
        event_id: Uuid,
        pending_request: PendingRequest<Q, A>,
    ) -> Result<Enqueued<PendingRequest<Q, A>>, BatcherError> {
        let mut pending = self.pending();
        let Some(queue) = pending.get_mut(&event_id) else {
            pending.insert(event_id, VecDeque::new());
            return Ok(Enqueued::First(pending_request));
        };
        if queue.len() >= self.limits.pending_max {
            return Err(BatcherError::Full);
        }
        queue.push_back(pending_request);
        Ok(Enqueued::Pending)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<Uuid, VecDeque<PendingRequest<Q, A>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch; none ends the work on this event.
    ///
    /// Requests whose clients are gone are skipped: after a stall of the database nothing is held
    /// for clients that have given up.
    fn next_batch(&self, event_id: Uuid) -> Option<Vec<PendingRequest<Q, A>>> {
        let (mut batch, mut cancelled) = (Vec::new(), Vec::new());
        {
            let mut pending = self.pending();
            let queue = pending.get_mut(&event_id)?;
            while batch.len() < self.limits.batch_max
                && let Some(pending_request) = queue.pop_front()
            {
                match pending_request.answer.is_closed() {
                    true => cancelled.push(pending_request.request),
                    false => batch.push(pending_request),
                }
            }
            if batch.is_empty() {
                pending.remove(&event_id);
            }
        }
        cancelled.into_iter().for_each(&self.on_cancelled);
        (!batch.is_empty()).then_some(batch)
    }
}

/// Runs the batches of one event until no request is pending.
struct BatchRunner<Q, A> {
    inner: Arc<Inner<Q, A>>,
    event_id: Uuid,
    is_done: bool,
}

impl<Q, A> BatchRunner<Q, A> {
    async fn run(mut self, first: PendingRequest<Q, A>) {
        let mut batch = Some(vec![first]);
        while let Some(requests) = batch {
            self.work(requests).await;
            batch = self.inner.next_batch(self.event_id);
        }
        self.is_done = true;
    }

    async fn work(&self, batch: Vec<PendingRequest<Q, A>>) {
        let (requests, senders): (Vec<Q>, Vec<_>) = batch
            .into_iter()
            .map(|pending_request| (pending_request.request, pending_request.answer))
            .unzip();
        let answers = (self.inner.work)(self.event_id, requests).await;
        assert_eq!(answers.len(), senders.len(), "every request is answered");
        for (sender, answer) in senders.into_iter().zip(answers) {
            if let Err(answer) = sender.send(answer) {
                (self.inner.on_abandoned)(answer);
            }
        }
    }
}

impl<Q, A> Drop for BatchRunner<Q, A> {
    /// After a panic the pending requests fail, and the next request starts anew.
    fn drop(&mut self) {
        if !self.is_done {
            drop(self.inner.pending().remove(&self.event_id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Answers with the size of the batch, once the gate lets it.
    fn sizes(gate: Arc<tokio::sync::Semaphore>) -> Batcher<u32, usize> {
        let work = move |_, requests: Vec<u32>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                if requests.contains(&13) {
                    panic!("a request that breaks the batch");
                }
                vec![requests.len(); requests.len()]
            }
        };
        Batcher::new(work, |_| {})
    }

    async fn pending_is(batcher: &Batcher<u32, usize>, event_id: Uuid, length: usize) {
        while batcher.inner.pending().get(&event_id).map(VecDeque::len) != Some(length) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn requests_during_a_batch_form_the_next_one() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (batcher, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let asking: Vec<_> = (0..200)
            .map(|_| {
                let batcher = batcher.clone();
                tokio::spawn(async move { batcher.submit(event_id, 1).await })
            })
            .collect();
        pending_is(&batcher, event_id, 199).await;
        gate.add_permits(3);
        let mut sizes = Vec::new();
        for answer in asking {
            sizes.push(answer.await.expect("it ends").expect("it is answered"));
        }
        sizes.sort_unstable();
        let expected = [vec![1; 1], vec![71; 71], vec![128; 128]].concat();
        assert_eq!(sizes, expected);
        assert!(batcher.inner.pending().is_empty(), "an idle event costs nothing");
    }

    #[tokio::test]
    async fn a_full_queue_rejects_and_other_events_are_not_affected() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (batcher, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let (asked, pending_max) = (batcher.clone(), BatcherLimits::DEFAULT.pending_max);
        for number in 0..=pending_max {
            let asking = asked.clone();
            tokio::spawn(async move { asking.submit(event_id, 1).await });
            if number == 0 {
                pending_is(&asked, event_id, 0).await;
            }
        }
        pending_is(&batcher, event_id, pending_max).await;
        assert_eq!(batcher.submit(event_id, 1).await, Err(BatcherError::Full));
        gate.add_permits(usize::from(u16::MAX));
        assert_eq!(batcher.submit(Uuid::from_u128(2), 1).await, Ok(1));
    }

    #[tokio::test]
    async fn after_a_panic_pending_requests_fail_and_the_next_one_starts_anew() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (batcher, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let (first, behind) = (batcher.clone(), batcher.clone());
        let first = tokio::spawn(async move { first.submit(event_id, 13).await });
        pending_is(&batcher, event_id, 0).await;
        let behind = tokio::spawn(async move { behind.submit(event_id, 1).await });
        pending_is(&batcher, event_id, 1).await;
        gate.add_permits(9);
        assert_eq!(first.await.expect("it ends"), Err(BatcherError::Failed));
        assert_eq!(behind.await.expect("it ends"), Err(BatcherError::Failed));
        assert_eq!(batcher.submit(event_id, 1).await, Ok(1));
    }

    type Noted = Arc<Mutex<Vec<u32>>>;

    /// Counts abandoned answers and records skipped requests.
    fn counting(
        gate: &Arc<tokio::sync::Semaphore>,
    ) -> (Batcher<u32, u32>, Arc<AtomicUsize>, Noted) {
        let (on_abandoned, on_cancelled) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (waits, counts, notes) =
            (Arc::clone(gate), Arc::clone(&on_abandoned), Arc::clone(&on_cancelled));
        let work = move |_, requests: Vec<u32>| {
            let gate = Arc::clone(&waits);
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                requests
            }
        };
        let count = move |_: u32| {
            counts.fetch_add(1, Ordering::SeqCst);
        };
        let note = move |request: u32| notes.lock().expect("it is whole").push(request);
        (Batcher::new(work, count).on_cancelled(note), on_abandoned, on_cancelled)
    }

    async fn leave<T: std::fmt::Debug>(leaving: tokio::task::JoinHandle<T>) {
        leaving.abort();
        assert!(leaving.await.expect_err("it was aborted").is_cancelled());
    }

    #[tokio::test]
    async fn a_batch_is_finished_although_its_client_is_gone() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (batcher, on_abandoned, on_cancelled) = counting(&gate);
        let (event_id, leaver) = (Uuid::from_u128(1), batcher.clone());
        let leaving = tokio::spawn(async move { leaver.submit(event_id, 7).await });
        while batcher.inner.pending().is_empty() {
            tokio::task::yield_now().await;
        }
        leave(leaving).await;
        gate.add_permits(2);
        assert_eq!(batcher.submit(event_id, 8).await, Ok(8));
        assert_eq!(on_abandoned.load(Ordering::SeqCst), 1);
        assert!(on_cancelled.lock().expect("it is whole").is_empty());
    }

    #[tokio::test]
    async fn a_pending_request_whose_client_is_gone_is_skipped() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (batcher, on_abandoned, on_cancelled) = counting(&gate);
        let event_id = Uuid::from_u128(1);
        let submit = |request: u32| {
            let batcher = batcher.clone();
            tokio::spawn(async move { batcher.submit(event_id, request).await })
        };
        let pending_is = async |length: usize| {
            while batcher.inner.pending().get(&event_id).map(VecDeque::len) != Some(length) {
                tokio::task::yield_now().await;
            }
        };
        let first = submit(0);
        pending_is(0).await;
        let leaving: Vec<_> = (1..=300).map(submit).collect();
        pending_is(300).await;
        for gone in leaving {
            leave(gone).await;
        }
        let staying = submit(301);
        pending_is(301).await;
        gate.add_permits(2);
        assert_eq!(first.await.expect("it ends"), Ok(0));
        assert_eq!(staying.await.expect("it ends"), Ok(301));
        assert_eq!(on_abandoned.load(Ordering::SeqCst), 0);
        assert_eq!(*on_cancelled.lock().expect("it is whole"), (1..=300).collect::<Vec<u32>>());
        // The last client that leaves also ends the work on the event.
        let busy = submit(302);
        pending_is(0).await;
        let gone = submit(303);
        pending_is(1).await;
        leave(gone).await;
        gate.add_permits(1);
        assert_eq!(busy.await.expect("it ends"), Ok(302));
        while !batcher.inner.pending().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(on_cancelled.lock().expect("it is whole").last(), Some(&303));
    }
}
