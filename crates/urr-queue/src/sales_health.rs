//! What the ticket office says once a second: what is left of each event, and how booking goes.
//!
//! It is asked for the events with people in their rooms, for those that someone looked at within
//! the last minute, and now and then for those that were sold out: an empty room must not forget
//! that there is nothing to be had.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::CallPolicy;

use crate::{EventRoom, RoomPhase, QueueService};

/// That all is sold is believed until it is denied, and at most for so long in silence: nobody must
/// be kept out for ever because nobody answers.
const SOLD_OUT_TTL: Duration = Duration::from_mins(5);
/// What was sold out and nobody asks for is looked at again so often.
const SOLD_OUT_AGAIN: Duration = Duration::from_secs(30);
/// How booking goes changes fast: to the autopilot what is older is silence.
const BOOKING_TTL: Duration = Duration::from_secs(2);
/// What someone has looked at is asked for at least so long.
const INTEREST_TTL: Duration = Duration::from_mins(1);
const INTERESTS_MAX: usize = 10_000;

const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The ticket office answers to no more at once.
const EVENTS_AT_ONCE: usize = 1_000;

/// How booking went lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Booking {
    /// Requests that were answered, refusals by a rule among them.
    pub answered: u64,
    /// Requests that failed or took too long.
    pub failed: u64,
    pub p95_micros: u64,
}

/// What the ticket office said last, and what it is asked for.
#[derive(Default)]
pub struct SalesHealth {
    heard: RwLock<TicketReport>,
    interests: RwLock<RecentInterest>,
}

#[derive(Default)]
struct TicketReport {
    /// The events of which nothing is left, and when that was said last.
    sold_out: HashMap<Uuid, Timestamp>,
    booking: Option<(Booking, Timestamp)>,
}

/// The events that someone looked at: since a moment, and within the minute before it.
#[derive(Default)]
struct RecentInterest {
    young: HashSet<Uuid>,
    old: HashSet<Uuid>,
    young_since: Option<Timestamp>,
}

/// What is left of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemainingSeats {
    pub available: u64,
    /// Held by someone who may still give it back.
    pub held: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PulseBody<'a> {
    event_ids: &'a [Uuid],
}

#[derive(Deserialize)]
struct PulseAnswer {
    events: HashMap<Uuid, RemainingSeats>,
    booking: Booking,
}

impl QueueService {
    /// Asks the ticket office about these events, in as few calls as it takes. What it said before
    /// stays known for a while if it does not answer.
    pub async fn refresh_sales_health(&self, event_ids: &[Uuid]) {
        let Some(ticket) = self.0.ticket.get() else { return };
        for event_ids in event_ids.chunks(EVENTS_AT_ONCE) {
            let context = CallContext::root(self.0.ids.next_id());
            let (path, body) = ("/internal/ticket/pulse", PulseBody { event_ids });
            let policy = CallPolicy::once(ANSWER_WITHIN);
            match ticket.post_json::<_, PulseAnswer>(path, &body, &context, policy).await {
                Ok(answer) => self.0.sales_health.hear(event_ids, &answer, self.0.clock.now()),
                Err(error) => {
                    self.0.metrics.count_ticket_unavailable();
                    tracing::debug!(%error, "the ticket office does not say what is left");
                    return;
                }
            }
        }
    }

    /// What the ticket office is to be asked for now, beside the events with people.
    pub(crate) fn events_of_interest(&self, with_people: &[Uuid], now: Timestamp) -> Vec<Uuid> {
        let is_on_sale = |event: &EventRoom| {
            let phase = event.phase(&self.0.settings, now);
            matches!(phase, RoomPhase::Drawing | RoomPhase::Open | RoomPhase::Paused)
        };
        let mut asked: BTreeSet<Uuid> = self.0.sales_health.wanted(now).into_iter().collect();
        asked.retain(|id| self.0.event_index.get(*id).is_some_and(|event| is_on_sale(&event)));
        asked.extend(with_people);
        asked.into_iter().collect()
    }
}

impl SalesHealth {
    /// Whether there is nothing left and nothing may come back soon.
    pub fn is_sold_out(&self, event_id: Uuid, now: Timestamp) -> bool {
        let heard = self.heard.read().unwrap_or_else(PoisonError::into_inner);
        heard.sold_out.get(&event_id).is_some_and(|at| now < *at + SOLD_OUT_TTL)
    }

    /// How booking goes; none while the ticket office is silent.
    pub fn booking(&self, now: Timestamp) -> Option<Booking> {
        let heard = self.heard.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = heard.booking.filter(|(_, at)| now < *at + BOOKING_TTL);
        fresh.map(|(booking, _)| booking)
    }

    /// Someone looks at an event: for a while the ticket office is asked for it.
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

    /// The events that someone looked at lately.
    pub fn interests(&self, now: Timestamp) -> Vec<Uuid> {
        let mut interests = self.interests.write().unwrap_or_else(PoisonError::into_inner);
        interests.age(now);
        interests.young.union(&interests.old).copied().collect()
    }

    /// The events that someone looked at lately, and those of which it should be known whether
    /// there is still nothing left.
    fn wanted(&self, now: Timestamp) -> Vec<Uuid> {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        heard.sold_out.retain(|_, at| now < *at + SOLD_OUT_TTL);
        let due = heard.sold_out.iter().filter(|(_, at)| **at + SOLD_OUT_AGAIN <= now);
        let mut wanted: Vec<Uuid> = due.map(|(event_id, _)| *event_id).collect();
        drop(heard);
        wanted.extend(self.interests(now));
        wanted
    }

    fn hear(&self, asked: &[Uuid], answer: &PulseAnswer, now: Timestamp) {
        let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
        heard.booking = Some((answer.booking, now));
        for event_id in asked {
            let left = answer.events.get(event_id);
            // What the ticket office does not know it has not sold.
            if left.is_some_and(|left| left.available == 0 && left.held == 0) {
                heard.sold_out.insert(*event_id, now);
            } else {
                heard.sold_out.remove(event_id);
            }
        }
    }
}

impl RecentInterest {
    /// If the clock was set back the time begins anew.
    fn is_young(&self, now: Timestamp) -> bool {
        self.young_since.is_some_and(|since| since <= now && now < since + INTEREST_TTL)
    }

    /// Forgets what nobody has looked at for longer than a minute.
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
