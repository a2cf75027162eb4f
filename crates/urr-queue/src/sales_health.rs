//! What the ticket service reports once a second: what is left of each event, and how booking goes.
//!
//! The service asks for the events whose rooms are occupied, for those that a user asked about in the
//! last minute, and now and then for those that were sold out: an empty room must not forget that.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use urr_contracts::internal::ticket::{
    BookingHealth, EventAvailability, GetSalesHealth, SALES_HEALTH_EVENTS_MAX, SalesHealthAnswer,
};
use urr_kernel::{CallContext, Timestamp, Uuid};

use crate::{EventRoom, QueueService, RoomPhase};

/// An event is sold out until the ticket service says otherwise. Without an answer that ends after
/// this time, so that an unreachable ticket service does not close a room for ever.
const SOLD_OUT_TTL: Duration = Duration::from_mins(5);
/// Sold-out events that nobody asks about are checked again at this interval.
const SOLD_OUT_RECHECK: Duration = Duration::from_secs(30);
/// The autopilot needs recent numbers.
const BOOKING_TTL: Duration = Duration::from_secs(2);
const INTEREST_TTL: Duration = Duration::from_mins(1);
const INTERESTS_MAX: usize = 10_000;

/// The last report of the ticket service, and the events to ask about.
#[derive(Default)]
pub struct SalesHealth {
    report: RwLock<TicketReport>,
    interests: RwLock<RecentInterest>,
}

#[derive(Default)]
struct TicketReport {
    /// When each sold-out event was last reported.
    sold_out: HashMap<Uuid, Timestamp>,
    booking: Option<(BookingHealth, Timestamp)>,
    /// What is left of the events that were asked about lately.
    left: HashMap<Uuid, (EventAvailability, Timestamp)>,
}

/// The events that users asked about, in two generations of a minute.
#[derive(Default)]
struct RecentInterest {
    young: HashSet<Uuid>,
    old: HashSet<Uuid>,
    young_since: Option<Timestamp>,
}

impl QueueService {
    /// Asks the ticket service about these events. The previous report stays in force for a while if
    /// it does not answer.
    pub async fn refresh_sales_health(&self, event_ids: &[Uuid]) {
        for event_ids in event_ids.chunks(SALES_HEALTH_EVENTS_MAX) {
            let context = CallContext::root(self.0.ids.next_id());
            let request = GetSalesHealth { event_ids: event_ids.to_vec() };
            match self.0.ticket.call(request, &context).await {
                Ok(answer) => self.0.sales_health.update(event_ids, &answer, self.0.clock.now()),
                Err(error) => {
                    self.0.metrics.ticket_unavailable.inc();
                    tracing::debug!(%error, "the ticket service did not report its sales");
                    return;
                }
            }
        }
    }

    /// The events to ask the ticket service about.
    pub(crate) fn events_of_interest(&self, occupied: &[Uuid], now: Timestamp) -> Vec<Uuid> {
        let is_on_sale = |event: &EventRoom| {
            let phase = event.phase(&self.0.settings, now);
            matches!(phase, RoomPhase::Drawing | RoomPhase::Open | RoomPhase::Paused)
        };
        let mut events: BTreeSet<Uuid> = self.0.sales_health.wanted(now).into_iter().collect();
        events.retain(|id| self.0.event_index.get(*id).is_some_and(|event| is_on_sale(&event)));
        events.extend(occupied);
        events.into_iter().collect()
    }
}

impl SalesHealth {
    /// Whether nothing is available and nothing is held.
    pub fn is_sold_out(&self, event_id: Uuid, now: Timestamp) -> bool {
        let report = self.report.read().unwrap_or_else(PoisonError::into_inner);
        report.sold_out.get(&event_id).is_some_and(|at| now < *at + SOLD_OUT_TTL)
    }

    /// How booking goes; none without a recent report.
    pub fn booking(&self, now: Timestamp) -> Option<BookingHealth> {
        let report = self.report.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = report.booking.filter(|(_, at)| now < *at + BOOKING_TTL);
        fresh.map(|(booking, _)| booking)
    }

    /// What is left of an event; none without a recent report.
    pub fn availability(&self, event_id: Uuid, now: Timestamp) -> Option<EventAvailability> {
        let report = self.report.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = report.left.get(&event_id).filter(|(_, at)| now < *at + BOOKING_TTL);
        fresh.map(|(left, _)| *left)
    }

    /// A user asks about an event: for a while the ticket service is asked about it too.
    pub fn note_interest(&self, event_id: Uuid, now: Timestamp) {
        let interests = self.interests.read().unwrap_or_else(PoisonError::into_inner);
        let is_noted = interests.is_young(now) && interests.young.contains(&event_id);
        drop(interests);
        if !is_noted {
            let mut interests = self.interests.write().unwrap_or_else(PoisonError::into_inner);
            interests.age(now);
            if interests.young.len() < INTERESTS_MAX {
                interests.young.insert(event_id);
            }
        }
    }

    /// The events that users asked about lately.
    pub fn interests(&self, now: Timestamp) -> Vec<Uuid> {
        let mut interests = self.interests.write().unwrap_or_else(PoisonError::into_inner);
        interests.age(now);
        interests.young.union(&interests.old).copied().collect()
    }

    /// The events that users asked about lately, and the sold-out events that are due for a check.
    fn wanted(&self, now: Timestamp) -> Vec<Uuid> {
        let mut report = self.report.write().unwrap_or_else(PoisonError::into_inner);
        report.sold_out.retain(|_, at| now < *at + SOLD_OUT_TTL);
        let due = report.sold_out.iter().filter(|(_, at)| **at + SOLD_OUT_RECHECK <= now);
        let mut wanted: Vec<Uuid> = due.map(|(event_id, _)| *event_id).collect();
        drop(report);
        wanted.extend(self.interests(now));
        wanted
    }

    fn update(&self, asked: &[Uuid], answer: &SalesHealthAnswer, now: Timestamp) {
        let mut report = self.report.write().unwrap_or_else(PoisonError::into_inner);
        report.booking = Some((answer.booking, now));
        report.left.retain(|_, (_, at)| now < *at + BOOKING_TTL);
        report.left.extend(answer.events.iter().map(|(event_id, left)| (*event_id, (*left, now))));
        for event_id in asked {
            let availability = answer.events.get(event_id);
            // An event that the ticket service does not know is not sold out.
            if availability.is_some_and(|event| event.available == 0 && event.held == 0) {
                report.sold_out.insert(*event_id, now);
            } else {
                report.sold_out.remove(event_id);
            }
        }
    }
}

impl RecentInterest {
    /// If the clock was set back, a new generation begins.
    fn is_young(&self, now: Timestamp) -> bool {
        self.young_since.is_some_and(|since| since <= now && now < since + INTEREST_TTL)
    }

    /// Begins a new generation if the young one is a minute old.
    fn age(&mut self, now: Timestamp) {
        if self.is_young(now) {
            return;
        }
        let is_recent = self.young_since.is_some_and(|since| now < since + 2 * INTEREST_TTL);
        self.old = std::mem::take(&mut self.young);
        if !is_recent {
            self.old.clear();
        }
        self.young_since = Some(now);
    }
}
