//! Entry tokens: what shows the gateway that someone is in.
//!
//! A token names its slot, and the ticket office asks whether that slot lives before it books: so a
//! token is worth nothing once the slot is gone.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_service::token::{ENTRY, EntryClaims, Issue, TokenKey};

use crate::room::Slot;

/// How long polls repeat the same token, unless tokens live only for a short time themselves.
const STEP_SECONDS_MAX: u64 = 60;

/// Issues entry tokens.
pub struct EntryTokens {
    key: TokenKey,
    ttl: Duration,
}

impl EntryTokens {
    pub fn new(key: TokenKey, ttl: Duration) -> EntryTokens {
        EntryTokens { key, ttl }
    }

    /// The same token for a minute (P-7), and never longer than the slot can live.
    pub fn token(&self, event_id: Uuid, user_id: Uuid, slot: &Slot, now: Timestamp) -> String {
        let issued = self.issued_second(slot, now);
        let lifetime = slot.last_end.as_second().saturating_sub(issued);
        let lifetime = Duration::from_secs(u64::try_from(lifetime).unwrap_or(0)).min(self.ttl);
        let issue = Issue {
            subject: event_id.to_string(),
            id: slot.id,
            issued_at: Timestamp::from_second(issued).expect("it is near the present"),
            lifetime,
        };
        self.key.sign(ENTRY, &issue, &EntryClaims { user_id })
    }

    /// Of the token that is handed out now: whoever has that one has nothing to learn.
    pub fn issued_second(&self, slot: &Slot, now: Timestamp) -> i64 {
        let step = (self.ttl.as_secs() / 4).clamp(1, STEP_SECONDS_MAX);
        let step = i64::try_from(step).expect("it is a minute at most");
        let now = now.as_second();
        (now - now.rem_euclid(step)).max(slot.admitted_at.as_second())
    }
}
