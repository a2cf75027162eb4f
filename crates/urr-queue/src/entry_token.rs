//! Entry tokens: the signed proof of a slot, which the gateway verifies.
//!
//! A token names its slot, and the ticket service checks that the slot is live before it books. So a
//! token is worthless once the slot has ended.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_service::token::{ENTRY, EntryClaims, TokenFacts, TokenKey};

use urr_room::Slot;

/// How long polls repeat the same token; shorter if tokens have a short lifetime.
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

    /// The token, and the seconds until it expires. It is the same for a minute (P-7), and never
    /// outlives the slot.
    pub fn token(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        slot: &Slot,
        now: Timestamp,
    ) -> (String, u64) {
        let issued = self.issued_second(slot, now);
        let lifetime = slot.last_end.as_second().saturating_sub(issued);
        let lifetime = Duration::from_secs(u64::try_from(lifetime).unwrap_or(0)).min(self.ttl);
        let issue = TokenFacts {
            subject: event_id.to_string(),
            id: slot.id,
            issued_at: Timestamp::from_second(issued).expect("it is near the present"),
            lifetime,
        };
        let age = u64::try_from(now.as_second() - issued).unwrap_or(0);
        let expires_in = lifetime.as_secs().saturating_sub(age);
        (self.key.sign(ENTRY, &issue, &EntryClaims { user_id }), expires_in)
    }

    /// When the present token was issued. The first token counts from the admission, unless the clock
    /// of the room is ahead of ours: a token from the future would be rejected.
    pub fn issued_second(&self, slot: &Slot, now: Timestamp) -> i64 {
        let step = (self.ttl.as_secs() / 4).clamp(1, STEP_SECONDS_MAX);
        let step = i64::try_from(step).expect("it is a minute at most");
        let (now, admitted) = (now.as_second(), slot.admitted_at.as_second());
        let rounded = now - now.rem_euclid(step);
        if admitted <= now { rounded.max(admitted) } else { rounded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_at_once_even_if_the_clock_of_the_room_is_ahead() {
        let second = |second: i64| Timestamp::from_second(1_800_000_000 + second).expect("a time");
        let key = || TokenKey::new(&[7; 32]);
        let tokens = EntryTokens::new(key(), Duration::from_mins(10));
        let [event_id, user_id, id] = [1, 2, 3].map(Uuid::from_u128);
        let (now, ahead) = (second(59), second(90));
        let slot = Slot { id, admitted_at: ahead, ends_at: second(690), last_end: second(400) };
        let (token, expires_in) = tokens.token(event_id, user_id, &slot, now);
        assert_eq!(expires_in, 341, "until the last end of the slot");
        let verified = key().verify::<EntryClaims>(ENTRY, &token, now).expect("it is good now");
        assert_eq!(verified.id, id);
        assert_eq!(verified.expires_at, slot.last_end, "and no longer than the slot can live");
        assert_eq!(tokens.token(event_id, user_id, &slot, second(1)).0, token, "P-7");
        assert_ne!(tokens.token(event_id, user_id, &slot, second(60)).0, token);
    }
}
