//! A desk: what is asked while it is busy is taken together the next time.
//!
//! Nothing waits for a timer. A lone request is worked on at once; a crowd makes its own batches,
//! as large as the work before them is long. Work that has begun goes on when those who asked have
//! gone away; who leaves the line before is not worked for.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use urr_kernel::Uuid;

/// At most so many are taken together: the first of them waits for the last.
const BATCH_MAX: usize = 128;

/// More than this waiting for one event are refused.
const LINE_MAX: usize = 8_192;

/// How much a desk takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub batch_max: usize,
    pub line_max: usize,
}

type Answers<A> = Pin<Box<dyn Future<Output = Vec<A>> + Send>>;

/// One line for each event. Clones share it.
pub struct Desk<Q, A> {
    shared: Arc<Shared<Q, A>>,
}

struct Shared<Q, A> {
    /// Events that are being worked on, with those who wait.
    lines: Mutex<HashMap<Uuid, VecDeque<Waiting<Q, A>>>>,
    /// Answers each question of a batch, in their order.
    work: Box<dyn Fn(Uuid, Vec<Q>) -> Answers<A> + Send + Sync>,
    /// Takes the answers that nobody waits for any more.
    abandoned: Box<dyn Fn(A) + Send + Sync>,
    /// Takes the questions whose askers left the line.
    left: Box<dyn Fn(Q) + Send + Sync>,
    limits: Limits,
}

struct Waiting<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Too many wait already. Nothing was done.
    Full,
    /// The work broke down: a bug of ours, or the process ends.
    Lost,
}

impl<Q, A> Clone for Desk<Q, A> {
    fn clone(&self) -> Desk<Q, A> {
        Desk { shared: Arc::clone(&self.shared) }
    }
}

impl<Q: Send + 'static, A: Send + 'static> Desk<Q, A> {
    pub fn new<F>(
        work: impl Fn(Uuid, Vec<Q>) -> F + Send + Sync + 'static,
        abandoned: impl Fn(A) + Send + Sync + 'static,
    ) -> Desk<Q, A>
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let limits = Limits { batch_max: BATCH_MAX, line_max: LINE_MAX };
        Desk::with_limits(limits, work, abandoned)
    }

    pub fn with_limits<F>(
        limits: Limits,
        work: impl Fn(Uuid, Vec<Q>) -> F + Send + Sync + 'static,
        abandoned: impl Fn(A) + Send + Sync + 'static,
    ) -> Desk<Q, A>
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let work = move |event_id, questions| -> Answers<A> { Box::pin(work(event_id, questions)) };
        let (work, abandoned, left) = (Box::new(work), Box::new(abandoned), Box::new(drop));
        let lines = Mutex::default();
        Desk { shared: Arc::new(Shared { lines, work, abandoned, left, limits }) }
    }

    /// The same desk, but what was asked by those who left the line is not simply forgotten.
    pub fn when_left(mut self, left: impl Fn(Q) + Send + Sync + 'static) -> Desk<Q, A> {
        let shared = Arc::get_mut(&mut self.shared).expect("a desk is set up before it is shared");
        shared.left = Box::new(left);
        self
    }

    /// Stands in line and waits for the answer.
    pub async fn ask(&self, event_id: Uuid, question: Q) -> Result<A, NoAnswer> {
        let (answer, receiver) = oneshot::channel();
        let waiting = Waiting { question, answer };
        match self.shared.join(event_id, waiting)? {
            Joined::Line => {}
            Joined::First(waiting) => {
                let shared = Arc::clone(&self.shared);
                tokio::spawn(Runner { shared, event_id, is_done: false }.run(waiting));
            }
        }
        receiver.await.map_err(|_| NoAnswer::Lost)
    }
}

enum Joined<W> {
    /// Someone is at work and will come to it.
    Line,
    /// Nobody is at work on this event.
    First(W),
}

impl<Q, A> Shared<Q, A> {
    fn join(
        &self,
        event_id: Uuid,
        waiting: Waiting<Q, A>,
    ) -> Result<Joined<Waiting<Q, A>>, NoAnswer> {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&event_id) else {
            lines.insert(event_id, VecDeque::new());
            return Ok(Joined::First(waiting));
        };
        if line.len() >= self.limits.line_max {
            return Err(NoAnswer::Full);
        }
        line.push_back(waiting);
        Ok(Joined::Line)
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Uuid, VecDeque<Waiting<Q, A>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch; none ends the work on this event.
    ///
    /// Who left is passed over: after the database stood still for a while, nothing is held for the
    /// many who have given up.
    fn next_batch(&self, event_id: Uuid) -> Option<Vec<Waiting<Q, A>>> {
        let (mut batch, mut left) = (Vec::new(), Vec::new());
        {
            let mut lines = self.lines();
            let line = lines.get_mut(&event_id)?;
            while batch.len() < self.limits.batch_max
                && let Some(waiting) = line.pop_front()
            {
                match waiting.answer.is_closed() {
                    true => left.push(waiting.question),
                    false => batch.push(waiting),
                }
            }
            if batch.is_empty() {
                lines.remove(&event_id);
            }
        }
        left.into_iter().for_each(&self.left);
        (!batch.is_empty()).then_some(batch)
    }
}

/// Works on the line of one event until it is empty.
struct Runner<Q, A> {
    shared: Arc<Shared<Q, A>>,
    event_id: Uuid,
    is_done: bool,
}

impl<Q, A> Runner<Q, A> {
    async fn run(mut self, first: Waiting<Q, A>) {
        let mut batch = Some(vec![first]);
        while let Some(waiting) = batch {
            self.work(waiting).await;
            batch = self.shared.next_batch(self.event_id);
        }
        self.is_done = true;
    }

    async fn work(&self, batch: Vec<Waiting<Q, A>>) {
        let (questions, places): (Vec<Q>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.question, waiting.answer)).unzip();
        let answers = (self.shared.work)(self.event_id, questions).await;
        assert_eq!(answers.len(), places.len(), "every question is answered");
        for (place, answer) in places.into_iter().zip(answers) {
            if let Err(answer) = place.send(answer) {
                (self.shared.abandoned)(answer);
            }
        }
    }
}

impl<Q, A> Drop for Runner<Q, A> {
    /// After a panic nobody else would ever serve this line: those in it are told, and the next
    /// one starts anew.
    fn drop(&mut self) {
        if !self.is_done {
            drop(self.shared.lines().remove(&self.event_id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A desk that answers with the size of the batch, once it is let.
    fn sizes(gate: Arc<tokio::sync::Semaphore>) -> Desk<u32, usize> {
        let work = move |_, questions: Vec<u32>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                if questions.contains(&13) {
                    panic!("a question that breaks the desk");
                }
                vec![questions.len(); questions.len()]
            }
        };
        Desk::new(work, |_| {})
    }

    async fn line_is(desk: &Desk<u32, usize>, event_id: Uuid, length: usize) {
        while desk.shared.lines().get(&event_id).map(VecDeque::len) != Some(length) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_is_asked_while_the_desk_is_busy_is_taken_together() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (desk, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let asking: Vec<_> = (0..200)
            .map(|_| {
                let desk = desk.clone();
                tokio::spawn(async move { desk.ask(event_id, 1).await })
            })
            .collect();
        line_is(&desk, event_id, 199).await;
        gate.add_permits(3);
        let mut sizes = Vec::new();
        for answer in asking {
            sizes.push(answer.await.expect("it ends").expect("it is answered"));
        }
        sizes.sort_unstable();
        let expected = [vec![1; 1], vec![71; 71], vec![128; 128]].concat();
        assert_eq!(sizes, expected);
        assert!(desk.shared.lines().is_empty(), "an idle event costs nothing");
    }

    #[tokio::test]
    async fn a_full_line_refuses_and_other_events_are_not_touched() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (desk, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let asked = desk.clone();
        for number in 0..=LINE_MAX {
            let asking = asked.clone();
            tokio::spawn(async move { asking.ask(event_id, 1).await });
            if number == 0 {
                line_is(&asked, event_id, 0).await;
            }
        }
        line_is(&desk, event_id, LINE_MAX).await;
        assert_eq!(desk.ask(event_id, 1).await, Err(NoAnswer::Full));
        gate.add_permits(usize::from(u16::MAX));
        assert_eq!(desk.ask(Uuid::from_u128(2), 1).await, Ok(1));
    }

    #[tokio::test]
    async fn after_a_breakdown_those_in_line_are_told_and_the_desk_opens_again() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (desk, event_id) = (sizes(Arc::clone(&gate)), Uuid::from_u128(1));
        let (first, behind) = (desk.clone(), desk.clone());
        let first = tokio::spawn(async move { first.ask(event_id, 13).await });
        line_is(&desk, event_id, 0).await;
        let behind = tokio::spawn(async move { behind.ask(event_id, 1).await });
        line_is(&desk, event_id, 1).await;
        gate.add_permits(9);
        assert_eq!(first.await.expect("it ends"), Err(NoAnswer::Lost));
        assert_eq!(behind.await.expect("it ends"), Err(NoAnswer::Lost));
        assert_eq!(desk.ask(event_id, 1).await, Ok(1));
    }

    type Noted = Arc<Mutex<Vec<u32>>>;

    /// A desk that counts answers nobody took and notes the questions of those who left.
    fn counting(gate: &Arc<tokio::sync::Semaphore>) -> (Desk<u32, u32>, Arc<AtomicUsize>, Noted) {
        let (abandoned, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (waits, counts, notes) = (Arc::clone(gate), Arc::clone(&abandoned), Arc::clone(&left));
        let work = move |_, questions: Vec<u32>| {
            let gate = Arc::clone(&waits);
            async move {
                gate.acquire().await.expect("the gate stays").forget();
                questions
            }
        };
        let count = move |_: u32| {
            counts.fetch_add(1, Ordering::SeqCst);
        };
        let note = move |question: u32| notes.lock().expect("it is whole").push(question);
        (Desk::new(work, count).when_left(note), abandoned, left)
    }

    async fn leave<T: std::fmt::Debug>(leaving: tokio::task::JoinHandle<T>) {
        leaving.abort();
        assert!(leaving.await.expect_err("it was aborted").is_cancelled());
    }

    #[tokio::test]
    async fn who_goes_away_while_it_is_decided_is_decided_all_the_same() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (desk, abandoned, left) = counting(&gate);
        let (event_id, leaver) = (Uuid::from_u128(1), desk.clone());
        let leaving = tokio::spawn(async move { leaver.ask(event_id, 7).await });
        while desk.shared.lines().is_empty() {
            tokio::task::yield_now().await;
        }
        leave(leaving).await;
        gate.add_permits(2);
        assert_eq!(desk.ask(event_id, 8).await, Ok(8));
        assert_eq!(abandoned.load(Ordering::SeqCst), 1);
        assert!(left.lock().expect("it is whole").is_empty());
    }

    #[tokio::test]
    async fn who_leaves_the_line_is_not_worked_for_and_takes_no_place_in_a_batch() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (desk, abandoned, left) = counting(&gate);
        let event_id = Uuid::from_u128(1);
        let ask = |question: u32| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.ask(event_id, question).await })
        };
        let line_is = async |length: usize| {
            while desk.shared.lines().get(&event_id).map(VecDeque::len) != Some(length) {
                tokio::task::yield_now().await;
            }
        };
        let first = ask(0);
        line_is(0).await;
        let leaving: Vec<_> = (1..=300).map(ask).collect();
        line_is(300).await;
        for gone in leaving {
            leave(gone).await;
        }
        let staying = ask(301);
        line_is(301).await;
        gate.add_permits(2);
        assert_eq!(first.await.expect("it ends"), Ok(0));
        assert_eq!(staying.await.expect("it ends"), Ok(301));
        assert_eq!(abandoned.load(Ordering::SeqCst), 0);
        assert_eq!(*left.lock().expect("it is whole"), (1..=300).collect::<Vec<u32>>());
        // The last who leave end the work on the event, too.
        let busy = ask(302);
        line_is(0).await;
        let gone = ask(303);
        line_is(1).await;
        leave(gone).await;
        gate.add_permits(1);
        assert_eq!(busy.await.expect("it ends"), Ok(302));
        while !desk.shared.lines().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(left.lock().expect("it is whole").last(), Some(&303));
    }
}
