//! Live boards: everything of one sale, second by second, for those who run it.
//!
//! A sale is looked at once a second for all its boards together, whatever their number: the message
//! is rendered once and shared. While nobody watches, nothing is asked for: the rooms that the
//! service reads anyway are kept for fifteen minutes, and the statistics know the money of the past.
//!
//! Memory is bounded: so many sales, fifteen minutes of each, so many boards, and a few messages per
//! board. A board that does not read them in time is ended; its page asks again and gets what it
//! missed.

mod ring;
mod sources;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::broadcast;
use urr_contracts::internal::payment::PaymentFigures;
use urr_contracts::internal::stats::{SaleHistory, SaleTotals};
use urr_contracts::internal::ticket::GradeSeats;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_room::Crowd;

pub use self::ring::{LiveSecond, SecondRing};
use self::sources::LiveAnswers;
pub use self::sources::LiveSources;
use crate::http::live_message;
use crate::status::EventContext;
use crate::{EventRoom, QueueService};

/// How many sales are kept. A second takes about two hundred bytes, so this is 36 MB at most.
const SALES_MAX: usize = 200;
/// A board that is this many messages late is ended.
const MESSAGES_MAX: usize = 8;
/// A sale is still looked at for so long after its last board was closed: pages that reconnect.
const LINGER: Duration = Duration::from_secs(30);
const HISTORY_MAX_AGE: Duration = Duration::from_mins(1);
/// The payment service is asked once in so many seconds.
const PAYMENT_EVERY_SECONDS: i64 = 5;

/// A message to all boards of a sale.
#[derive(Clone, Debug)]
pub struct LiveMessage {
    pub second: i64,
    pub text: Arc<str>,
}

/// The sales that are kept and those that are watched.
#[derive(Default)]
pub struct LiveBoards {
    rings: Mutex<HashMap<Uuid, SecondRing>>,
    watched: Mutex<HashMap<Uuid, Arc<WatchedSale>>>,
}

/// A sale that somebody watches.
pub struct WatchedSale {
    messages: broadcast::Sender<LiveMessage>,
    /// Locked while the sale is looked at: those who come at once share the result.
    looking: tokio::sync::Mutex<()>,
    facts: Mutex<BoardFacts>,
}

/// What is known of a watched sale besides its seconds.
#[derive(Clone, Debug, Default)]
pub struct BoardFacts {
    pub history: Arc<SaleHistory>,
    history_read_at: Option<Timestamp>,
    pub grades: Arc<[GradeSeats]>,
    pub payments: Option<PaymentFigures>,
    /// The services that did not answer this second.
    pub missing: Vec<&'static str>,
    /// Moved on while somebody watches.
    watched_until: Timestamp,
}

/// A sale at a moment, as boards see it.
pub struct LiveSnapshot {
    pub context: EventContext,
    pub facts: BoardFacts,
    pub ring: SecondRing,
}

impl LiveBoards {
    fn rings(&self) -> MutexGuard<'_, HashMap<Uuid, SecondRing>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<WatchedSale>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self, event_id: Uuid, now: Timestamp) -> Arc<WatchedSale> {
        let new = || {
            let (messages, _) = broadcast::channel(MESSAGES_MAX);
            let facts = BoardFacts { watched_until: now + LINGER, ..BoardFacts::default() };
            let (looking, facts) = (tokio::sync::Mutex::default(), Mutex::new(facts));
            Arc::new(WatchedSale { messages, looking, facts })
        };
        Arc::clone(self.watched().entry(event_id).or_insert_with(new))
    }

    /// Adds a second to a sale. Of too many sales the one that was longest silent is forgotten.
    fn push(&self, event_id: Uuid, sample: LiveSecond) -> bool {
        let mut rings = self.rings();
        if !rings.contains_key(&event_id) && rings.len() >= SALES_MAX {
            let silent = rings.iter().min_by_key(|(_, ring)| ring.last_second());
            if let Some(silent) = silent.map(|(event_id, _)| *event_id) {
                rings.remove(&silent);
            }
        }
        rings.entry(event_id).or_default().push(sample)
    }

    fn ring(&self, event_id: Uuid) -> SecondRing {
        self.rings().get(&event_id).cloned().unwrap_or_default()
    }

    fn tail(&self, event_id: Uuid) -> SecondRing {
        self.rings().get(&event_id).map(SecondRing::tail).unwrap_or_default()
    }

    fn last(&self, event_id: Uuid) -> Option<LiveSecond> {
        self.rings().get(&event_id)?.last().copied()
    }

    /// The sales to look at; those that nobody has watched for a while are forgotten.
    fn sales_to_look_at(&self, now: Timestamp) -> Vec<(Uuid, Arc<WatchedSale>)> {
        let mut watched = self.watched();
        watched.retain(|_, sale| sale.is_wanted(now));
        watched.iter().map(|(event_id, sale)| (*event_id, Arc::clone(sale))).collect()
    }
}

impl WatchedSale {
    fn facts(&self) -> MutexGuard<'_, BoardFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_wanted(&self, now: Timestamp) -> bool {
        let mut facts = self.facts();
        if self.messages.receiver_count() > 0 {
            facts.watched_until = now + LINGER;
        }
        now < facts.watched_until
    }
}

impl QueueService {
    /// Follows a sale: its state, and the messages after it.
    pub(crate) async fn open_board(
        &self,
        event: &EventRoom,
    ) -> (LiveSnapshot, broadcast::Receiver<LiveMessage>) {
        let sale = self.0.live.watch(event.event_id, self.0.clock.now());
        // Before the state is read, so that nothing is missed between the two.
        let messages = sale.messages.subscribe();
        self.look_at_sale(event.event_id, &sale).await;
        let now = self.0.clock.now();
        let context = self.context_at(Arc::new(event.clone()), now);
        let (facts, ring) = (sale.facts().clone(), self.0.live.ring(event.event_id));
        (LiveSnapshot { context, facts, ring }, messages)
    }

    /// Looks at every watched sale and tells its boards. Without boards it does nothing.
    pub async fn tell_boards(&self) {
        let sales = self.0.live.sales_to_look_at(self.0.clock.now());
        let looks = sales.iter().map(|(event_id, sale)| self.look_at_sale(*event_id, sale));
        join_all(looks).await;
    }

    /// Records the rooms that were read anyway, so that a board begins with their past.
    pub(crate) fn record_rooms<'a>(&self, rooms: impl Iterator<Item = (&'a EventRoom, &'a Crowd)>) {
        let now = self.0.clock.now();
        for (event, crowd) in rooms {
            // A watched sale is recorded with everything else.
            if self.0.live.watched().contains_key(&event.event_id) {
                continue;
            }
            let threshold = self.rules_of(event, now).threshold;
            let stock = self.0.sales_health.availability(event.event_id, now);
            let booking = self.0.sales_health.booking(now);
            let sample = LiveSecond { stock, booking, ..second(crowd, threshold, now) };
            self.0.live.push(event.event_id, sample);
        }
    }

    /// Looks at a sale, at most once a second.
    async fn look_at_sale(&self, event_id: Uuid, sale: &WatchedSale) {
        let _looking = sale.looking.lock().await;
        let now = self.0.clock.now();
        let last = self.0.live.last(event_id);
        let has_history = sale.facts().history_read_at.is_some();
        if has_history && last.is_some_and(|last| last.second >= now.as_second()) {
            return;
        }
        let Some(event) = self.0.event_index.get(event_id) else { return };
        self.0.metrics.live_looks.inc();
        let context = CallContext::root(self.0.ids.next_id());
        let asks_payment = !has_history || now.as_second() % PAYMENT_EVERY_SECONDS == 0;
        let ask = self.0.live_sources.ask(&self.0.ticket, event_id, asks_payment, &context);
        let (crowd, answers, ()) = tokio::join!(
            self.0.crowds.get(event_id, now),
            ask,
            self.read_history(event_id, sale, now, &context),
        );
        let Ok(crowd) = self.count_errors(crowd) else {
            sale.facts().missing = vec!["rooms"];
            return;
        };
        let event_context = self.context_at(event, now);
        let threshold = event_context.rules.threshold;
        let sample = second(&crowd.crowd, threshold, now);
        self.record_sale(event_id, sale, sample, answers);
        let facts = sale.facts().clone();
        let ring = self.0.live.tail(event_id);
        let snapshot = LiveSnapshot { context: event_context, facts, ring };
        // Without boards nobody receives it.
        drop(sale.messages.send(live_message(self, &snapshot)));
    }

    /// Adds a second with the answers to the sale. What did not answer keeps its last value.
    fn record_sale(
        &self,
        event_id: Uuid,
        sale: &WatchedSale,
        sample: LiveSecond,
        answers: LiveAnswers,
    ) {
        let LiveAnswers { board, money, payments, missing } = answers;
        let last = self.0.live.last(event_id).unwrap_or_default();
        let mut facts = sale.facts();
        facts.missing = missing;
        facts.payments = payments.or(facts.payments);
        let (mut stock, mut booking) = (last.stock, None);
        if let Some(board) = board {
            (stock, booking) = (Some(board.availability), Some(board.booking));
            facts.grades = board.grades.into();
        }
        let declined_total = facts.payments.map(|payments| payments.declined);
        let money = money.or(last.money);
        drop(facts);
        self.0.live.push(event_id, LiveSecond { stock, money, declined_total, booking, ..sample });
    }

    /// Reads the past of a sale when it is opened, and its minutes now and then.
    async fn read_history(
        &self,
        event_id: Uuid,
        sale: &WatchedSale,
        now: Timestamp,
        context: &CallContext,
    ) {
        let read_at = sale.facts().history_read_at;
        if read_at.is_some_and(|at| at <= now && now < at + HISTORY_MAX_AGE) {
            return;
        }
        let history = self.0.live_sources.ask_history(event_id, now, context).await;
        let mut facts = sale.facts();
        facts.history_read_at = Some(now);
        let Some(history) = history else { return };
        let totals: SaleTotals = history.totals;
        if let Some(ring) = self.0.live.rings().get_mut(&event_id) {
            ring.fill_money(totals, &history.seconds);
        }
        facts.history = Arc::new(history);
    }
}

fn second(crowd: &Crowd, threshold: u32, now: Timestamp) -> LiveSecond {
    LiveSecond {
        second: now.as_second(),
        waiting: crowd.waiting,
        inside: crowd.active,
        threshold,
        joined_total: u64::try_from(crowd.last_number).unwrap_or(0),
        admitted_total: crowd.admitted_total,
        left_total: crowd.left_total,
        ..LiveSecond::default()
    }
}
