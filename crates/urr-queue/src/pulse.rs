//! What the ticket office says once a second: what is left of each event, and how booking goes.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::CallPolicy;

use crate::Queue;

/// What was heard is believed for so long. Then nothing is known to be sold out.
const KNOWLEDGE_TTL: Duration = Duration::from_secs(10);
/// How booking goes changes fast: to the autopilot what is older is silence.
const BOOKING_TTL: Duration = Duration::from_secs(2);

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

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

/// What the ticket office said last.
#[derive(Default)]
pub struct Pulse(RwLock<Option<Arc<Heard>>>);

struct Heard {
    at: Timestamp,
    left: HashMap<Uuid, Left>,
    booking: Booking,
}

/// What is left of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
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
    events: HashMap<Uuid, Left>,
    booking: Booking,
}

impl Queue {
    /// Asks the ticket office about these events, all at once. What it said before stays known for a
    /// while if it does not answer.
    pub async fn feel_pulse(&self, event_ids: &[Uuid]) {
        let Some(office) = self.0.office.get() else { return };
        let context = CallContext::root(self.0.ids.next_id());
        let (path, body) = ("/internal/ticket/pulse", PulseBody { event_ids });
        let policy = CallPolicy::once(ANSWER_WITHIN);
        match office.post_json::<_, PulseAnswer>(path, &body, &context, policy).await {
            Ok(PulseAnswer { events, booking }) => {
                let at = self.0.clock.now();
                self.0.pulse.hear(Heard { at, left: events, booking });
            }
            Err(error) => {
                self.0.figures.count_office_silent();
                tracing::debug!(%error, "the ticket office does not say what is left");
            }
        }
    }
}

impl Pulse {
    /// Whether there is nothing left and nothing may come back soon.
    pub fn is_sold_out(&self, event_id: Uuid, now: Timestamp) -> bool {
        let left = self.heard(now).and_then(|heard| heard.left.get(&event_id).copied());
        left.is_some_and(|left| left.available == 0 && left.held == 0)
    }

    /// How booking goes; none while the ticket office is silent.
    pub fn booking(&self, now: Timestamp) -> Option<Booking> {
        let heard = self.heard(now).filter(|heard| now < heard.at + BOOKING_TTL);
        heard.map(|heard| heard.booking)
    }

    fn hear(&self, heard: Heard) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(heard));
    }

    fn heard(&self, now: Timestamp) -> Option<Arc<Heard>> {
        let heard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        heard.as_ref().filter(|heard| now < heard.at + KNOWLEDGE_TTL).cloned()
    }
}
