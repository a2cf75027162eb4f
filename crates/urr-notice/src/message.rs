//! A notice as a message on the queue.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_queue::Notice;

/// The body of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum NoticeMessage {
    /// A user was admitted.
    Admitted {
        event_id: Uuid,
        user_id: Uuid,
        slot_id: Uuid,
        /// Milliseconds since 1970.
        timestamp: i64,
    },
    /// An action of a newer program.
    #[serde(other)]
    Unknown,
}

/// A message that is not a notice.
#[derive(Debug, thiserror::Error)]
#[error("the message is not a notice: {0}")]
pub struct InvalidNotice(#[from] serde_json::Error);

impl NoticeMessage {
    pub fn parse(text: &str) -> Result<NoticeMessage, InvalidNotice> {
        Ok(serde_json::from_str(text)?)
    }
}

impl From<&Notice> for NoticeMessage {
    fn from(notice: &Notice) -> NoticeMessage {
        NoticeMessage::Admitted {
            event_id: notice.event_id,
            user_id: notice.user_id,
            slot_id: notice.slot_id,
            timestamp: notice.at.as_millisecond(),
        }
    }
}

/// SQS drops a second message with the same id within five minutes. It contains the slot, because a
/// second admission is not a repeated notice (K-11).
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
        let text = serde_json::to_string(&NoticeMessage::from(&notice)).expect("JSON");
        assert_eq!(
            text,
            format!(
                "{{\"action\":\"admitted\",\"eventId\":\"{event_id}\",\"userId\":\"{user_id}\",\
                 \"slotId\":\"{slot_id}\",\"timestamp\":1700000000123}}"
            )
        );
        assert_eq!(NoticeMessage::parse(&text).expect("our own"), NoticeMessage::from(&notice));
        let again = Notice { slot_id: Uuid::from_u128(4), ..notice };
        assert_ne!(deduplication_id(&notice), deduplication_id(&again));
        assert_eq!(deduplication_id(&notice), deduplication_id(&notice.clone()));
    }

    #[test]
    fn other_actions_are_known_as_such_and_other_texts_are_refused() {
        let other = r#"{"action":"seat_reserve","eventId":"x","seatIds":[1]}"#;
        assert_eq!(NoticeMessage::parse(other).expect("an action"), NoticeMessage::Unknown);
        for text in ["", "null", "{}", r#"{"action":"admitted"}"#, "admitted"] {
            assert!(NoticeMessage::parse(text).is_err(), "{text}");
        }
    }
}
