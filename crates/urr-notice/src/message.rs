//! A notice as it is written on the queue.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_queue::Notice;

/// What stands in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Message {
    /// Someone was let in.
    Admitted {
        event_id: Uuid,
        user_id: Uuid,
        slot_id: Uuid,
        /// Milliseconds since 1970.
        timestamp: i64,
    },
    /// What a newer program may write.
    #[serde(other)]
    Unknown,
}

/// A message that nobody of ours wrote.
#[derive(Debug, thiserror::Error)]
#[error("it is not a notice: {0}")]
pub struct UnreadableMessage(#[from] serde_json::Error);

impl Message {
    pub fn parse(text: &str) -> Result<Message, UnreadableMessage> {
        Ok(serde_json::from_str(text)?)
    }
}

impl From<&Notice> for Message {
    fn from(notice: &Notice) -> Message {
        Message::Admitted {
            event_id: notice.event_id,
            user_id: notice.user_id,
            slot_id: notice.slot_id,
            timestamp: notice.at.as_millisecond(),
        }
    }
}

/// Messages with the same one within five minutes are one message. Being let in again is another
/// matter than being told again, so it names the slot too (K-11).
pub(crate) fn deduplication_id(notice: &Notice) -> String {
    format!("{}:{}:{}", notice.user_id, notice.event_id, notice.slot_id)
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;

    use super::*;

    #[test]
    fn k_11_a_notice_says_who_and_what_and_holds_no_token() {
        let [event_id, user_id, slot_id] = [1, 2, 3].map(Uuid::from_u128);
        let at = Timestamp::from_millisecond(1_700_000_000_123).expect("a time");
        let notice = Notice { event_id, user_id, slot_id, at };
        let text = serde_json::to_string(&Message::from(&notice)).expect("JSON");
        assert_eq!(
            text,
            format!(
                "{{\"action\":\"admitted\",\"eventId\":\"{event_id}\",\"userId\":\"{user_id}\",\
                 \"slotId\":\"{slot_id}\",\"timestamp\":1700000000123}}"
            )
        );
        assert_eq!(Message::parse(&text).expect("our own"), Message::from(&notice));
        let again = Notice { slot_id: Uuid::from_u128(4), ..notice };
        assert_ne!(deduplication_id(&notice), deduplication_id(&again));
        assert_eq!(deduplication_id(&notice), deduplication_id(&notice.clone()));
    }

    #[test]
    fn other_actions_are_known_as_such_and_other_texts_are_refused() {
        let other = r#"{"action":"seat_reserve","eventId":"x","seatIds":[1]}"#;
        assert_eq!(Message::parse(other).expect("an action"), Message::Unknown);
        for text in ["", "null", "{}", r#"{"action":"admitted"}"#, "admitted"] {
            assert!(Message::parse(text).is_err(), "{text}");
        }
    }
}
