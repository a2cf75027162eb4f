//! Dead letters: messages that no handler can take, kept with the reason until someone looks.
//!
//! A dead letter is the original message on the topic `<topic>-dlq`, with headers that tell what
//! happened. Its id is its place there. Replaying it publishes the original bytes again, for the
//! group that had failed, and appends a mark to the dead-letter topic, so that both forms of the
//! bus can tell what is still open.

mod walk;

use std::sync::Arc;

use tracing::warn;
use urr_kernel::{DomainEvent, Timestamp, Uuid};

use self::walk::{DeadLetterWalk, SURVEY_LETTERS_MAX};
use crate::bus::{dead_letter_topic, topic_of_dead_letters};
use crate::{Bus, BusError, BusMessage, Delivery, MessageHeaders, MessagePosition};

const REASON: &str = "urr-reason";
const GROUP: &str = "urr-group";
const ORIGINAL: &str = "urr-original";
const FAILED_AT: &str = "urr-failed-at";
const EVENT_ID: &str = "urr-event-id";
const EVENT_TYPE: &str = "urr-event-type";
/// On a mark: the id of the dead letter that was replayed.
pub(crate) const REPLAYED: &str = "urr-replayed";
const REPLAYED_AT: &str = "urr-replayed-at";
/// On a replayed message: the group it is for. Others dealt with it long ago, perhaps longer than
/// their inboxes remember.
const REPLAY_FOR: &str = "urr-replay-for";

/// A header is for people; a reason that quotes a document is cut.
const REASON_CHARS_MAX: usize = 2_000;

/// A message that was set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub id: MessagePosition,
    pub reason: String,
    /// The group whose handler could not take it. Empty if the letter is not of our making.
    pub group: String,
    /// Where the message was.
    pub original: Option<MessagePosition>,
    pub failed_at: Option<Timestamp>,
    pub event_id: Option<Uuid>,
    pub event_type: Option<String>,
    pub key: Vec<u8>,
    /// The message as it was.
    pub body: Vec<u8>,
    pub is_replayed: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    #[error("there is no dead letter {0}")]
    NotFound(MessagePosition),
    #[error("dead letter {0} was replayed before; say so if it shall be replayed again")]
    AlreadyReplayed(MessagePosition),
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Whether a dead letter that was replayed before may be replayed once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedReplay {
    Refuse,
    Allow,
}

/// Which dead letters to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterScope {
    Open,
    OpenAndReplayed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterList {
    /// Oldest first in each partition.
    pub letters: Vec<DeadLetter>,
    /// Whether there are more than were asked for.
    pub is_cut: bool,
}

/// The first dead letters of one topic (or of all).
pub async fn list(
    bus: &Bus,
    topic: Option<&str>,
    which: DeadLetterScope,
    limit: usize,
) -> Result<DeadLetterList, BusError> {
    let mut letters = Vec::new();
    let mut walk = walk(bus, topic).await?;
    while let Some(letter) = walk.next().await? {
        if letter.is_replayed && which == DeadLetterScope::Open {
            continue;
        }
        if letters.len() == limit {
            return Ok(DeadLetterList { letters, is_cut: true });
        }
        letters.push(letter);
    }
    Ok(DeadLetterList { letters, is_cut: false })
}

/// Reads at the place of the letter, and on from there: its mark is in the same partition.
pub async fn show(bus: &Bus, id: &MessagePosition) -> Result<DeadLetter, DeadLetterError> {
    let not_found = || DeadLetterError::NotFound(id.clone());
    topic_of_dead_letters(&id.topic).ok_or_else(not_found)?;
    let mut extents = bus.extents(&id.topic).await?;
    extents.retain(|extent| extent.partition == id.partition && extent.start <= id.offset);
    extents.iter_mut().for_each(|extent| extent.start = id.offset);
    let found = DeadLetterWalk::new(bus, extents, 1).next().await?;
    found.filter(|letter| letter.id == *id).ok_or_else(not_found)
}

/// Sends one dead letter to its topic again. Returns where it is now.
pub async fn replay(
    bus: &Bus,
    id: &MessagePosition,
    again: RepeatedReplay,
    now: Timestamp,
) -> Result<MessagePosition, DeadLetterError> {
    let letter = show(bus, id).await?;
    if letter.is_replayed && again == RepeatedReplay::Refuse {
        return Err(DeadLetterError::AlreadyReplayed(letter.id));
    }
    Ok(replay_letter(bus, &letter, now).await?)
}

/// Sends all dead letters of one topic (or of all) again that are open now. Returns how many.
pub async fn replay_open(bus: &Bus, topic: Option<&str>, now: Timestamp) -> Result<u64, BusError> {
    let mut replayed = 0;
    let mut walk = walk(bus, topic).await?;
    while let Some(letter) = walk.next().await? {
        if !letter.is_replayed {
            replay_letter(bus, &letter, now).await?;
            replayed += 1;
        }
    }
    Ok(replayed)
}

/// All dead letters of one topic (or of all).
async fn walk<'a>(bus: &'a Bus, topic: Option<&str>) -> Result<DeadLetterWalk<'a>, BusError> {
    let topics = match topic {
        Some(topic) if topic_of_dead_letters(topic).is_some() => vec![topic.to_owned()],
        Some(topic) => vec![dead_letter_topic(topic)],
        None => {
            let mut topics = bus.topics().await?;
            topics.retain(|topic| topic_of_dead_letters(topic).is_some());
            topics
        }
    };
    let mut extents = Vec::new();
    for topic in topics {
        extents.extend(bus.extents(&topic).await?);
    }
    Ok(DeadLetterWalk::new(bus, extents, SURVEY_LETTERS_MAX))
}

/// Publishes first and marks then: a crash in between repeats the message, which the inbox notices.
async fn replay_letter(
    bus: &Bus,
    letter: &DeadLetter,
    now: Timestamp,
) -> Result<MessagePosition, BusError> {
    let topic = topic_of_dead_letters(&letter.id.topic).expect("a letter is on such a topic");
    let mut message = BusMessage::new(topic, letter.key.clone(), letter.body.clone());
    message.partition = letter.original.as_ref().map(|original| original.partition);
    if !letter.group.is_empty() {
        message.headers.insert(REPLAY_FOR.to_owned(), letter.group.clone());
    }
    let position = publish(bus, message).await?;
    let mut mark = BusMessage::new(letter.id.topic.clone(), letter.key.clone(), Vec::new());
    mark.partition = Some(letter.id.partition);
    mark.headers.insert(REPLAYED.to_owned(), letter.id.to_string());
    mark.headers.insert(REPLAYED_AT.to_owned(), now.to_string());
    bus.publish_one(mark).await?;
    Ok(position)
}

fn read(delivery: Delivery) -> DeadLetter {
    let header = |name: &str| delivery.headers.get(name);
    DeadLetter {
        reason: header(REASON).cloned().unwrap_or_default(),
        group: header(GROUP).cloned().unwrap_or_default(),
        original: header(ORIGINAL).and_then(|text| text.parse().ok()),
        failed_at: header(FAILED_AT).and_then(|text| text.parse().ok()),
        event_id: header(EVENT_ID).and_then(|text| text.parse().ok()),
        event_type: header(EVENT_TYPE).cloned(),
        id: delivery.position,
        key: delivery.key,
        body: delivery.body,
        is_replayed: false,
    }
}

/// Why a message is set aside, and the event it carried if it carried one.
pub(crate) struct HandlingFailure {
    pub(crate) reason: String,
    pub(crate) event: Option<Arc<DomainEvent>>,
}

/// The dead letter of a message, in the partition of the same number.
pub(crate) fn letter(
    group: &str,
    delivery: &Delivery,
    failure: &HandlingFailure,
    now: Timestamp,
) -> BusMessage {
    let original = &delivery.position;
    let mut headers = MessageHeaders::new();
    let mut set = |name: &str, value: String| headers.insert(name.to_owned(), value);
    set(REASON, failure.reason.chars().take(REASON_CHARS_MAX).collect());
    set(GROUP, group.to_owned());
    set(ORIGINAL, original.to_string());
    set(FAILED_AT, now.to_string());
    if let Some(event) = &failure.event {
        set(EVENT_ID, event.id.to_string());
        set(EVENT_TYPE, event.event_type.clone());
    }
    BusMessage {
        topic: dead_letter_topic(&original.topic),
        key: delivery.key.clone(),
        body: delivery.body.clone(),
        headers,
        partition: Some(original.partition),
    }
}

/// Publishes to the partition that is asked for. If there is none of that number (someone made one of
/// the two topics with fewer partitions), the key decides: elsewhere is better than nowhere.
pub(crate) async fn publish(bus: &Bus, message: BusMessage) -> Result<MessagePosition, BusError> {
    match bus.publish_one(message.clone()).await {
        Err(BusError::UnknownTopic(place)) if message.partition.is_some() => {
            warn!(place, partition = message.partition, "there is no such partition");
            bus.publish_one(BusMessage { partition: None, ..message }).await
        }
        result => result,
    }
}

/// Whether a message is the replay of a dead letter of another group.
pub(crate) fn is_replay_for_another(headers: &MessageHeaders, group: &str) -> bool {
    headers.get(REPLAY_FOR).is_some_and(|wanted| wanted != group)
}
