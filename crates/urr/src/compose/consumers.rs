//! The consumers of domain events: which service handles which events.

use std::sync::Arc;

use urr_bus::{EventHandler, HandleError, HandledEvent, HandlerContext, HandlerOutcome};
use urr_kernel::DomainEvent;
use urr_storage::Tx;

/// What a service consumes.
pub struct EventConsumer {
    pub group: &'static str,
    pub topics: &'static [&'static str],
    /// Only these types; none: all.
    pub types: Option<&'static [&'static str]>,
    pub handle: ConsumerHandle,
}

/// Handles events in a transaction of the service.
#[derive(Clone, Copy)]
pub enum ConsumerHandle {
    /// One event after the other.
    Each(fn(&mut Tx<'_>, &DomainEvent, &HandlerContext) -> Result<HandlerOutcome, HandleError>),
    /// All events of the transaction at once.
    Together(HandleTogether),
    /// All at once, and repeated events change nothing.
    Repeatable(HandleTogether),
}

type HandleTogether =
    fn(&mut Tx<'_>, &[HandledEvent<'_>]) -> Result<Vec<HandlerOutcome>, HandleError>;

impl From<ConsumerHandle> for EventHandler {
    fn from(handle: ConsumerHandle) -> EventHandler {
        match handle {
            ConsumerHandle::Each(handle) => EventHandler::Each(Arc::new(handle)),
            ConsumerHandle::Together(handle) => EventHandler::Together(Arc::new(handle)),
            ConsumerHandle::Repeatable(handle) => EventHandler::Repeatable(Arc::new(handle)),
        }
    }
}

pub const CATALOG: EventConsumer = EventConsumer {
    group: urr_catalog::GROUP,
    topics: urr_catalog::CONSUMED_TOPICS,
    types: Some(urr_catalog::CONSUMED_TYPES),
    handle: ConsumerHandle::Each(urr_catalog::handle),
};

pub const COMMUNITY: EventConsumer = EventConsumer {
    group: urr_community::GROUP,
    topics: urr_community::TOPICS,
    types: Some(urr_community::TYPES),
    handle: ConsumerHandle::Each(urr_community::handle),
};

pub const MAIL: EventConsumer = EventConsumer {
    group: urr_mail::GROUP,
    topics: urr_mail::TOPICS,
    types: Some(urr_mail::TYPES),
    handle: ConsumerHandle::Each(urr_mail::handle),
};

pub const PAYMENT: EventConsumer = EventConsumer {
    group: urr_payment::consumer::GROUP,
    topics: urr_payment::consumer::TOPICS,
    types: Some(urr_payment::consumer::TYPES),
    handle: ConsumerHandle::Each(urr_payment::consumer::handle),
};

pub const QUEUE: EventConsumer = EventConsumer {
    group: urr_queue::consumer::GROUP,
    topics: urr_queue::consumer::TOPICS,
    types: Some(urr_queue::consumer::TYPES),
    handle: ConsumerHandle::Each(urr_queue::consumer::handle),
};

pub const STATS: EventConsumer = EventConsumer {
    group: urr_stats::GROUP,
    topics: urr_stats::TOPICS,
    types: None,
    handle: ConsumerHandle::Repeatable(urr_stats::handle),
};

pub const TICKET: EventConsumer = EventConsumer {
    group: urr_ticket::consumer::GROUP,
    topics: urr_ticket::consumer::TOPICS,
    types: Some(urr_ticket::consumer::TYPES),
    handle: ConsumerHandle::Together(urr_ticket::consumer::handle_together),
};

#[cfg(test)]
mod tests {
    use std::path::Path;

    use urr_kernel::{Clock, Uuid};
    use urr_storage::{Db, SqliteOptions};

    use super::*;

    /// One event of every type, from the files of the contract.
    fn events_of_every_type() -> Vec<DomainEvent> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../urr-contracts/golden/events");
        let files = std::fs::read_dir(folder).unwrap();
        let read = |file: std::io::Result<std::fs::DirEntry>| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            DomainEvent {
                specversion: "1.0".to_owned(),
                id: Uuid::from_u128(1),
                source: "urr/test".to_owned(),
                event_type: name.split_once('.').unwrap().0.to_owned(),
                subject: Uuid::from_u128(2).to_string(),
                time: Clock::System.now(),
                datacontenttype: "application/json".to_owned(),
                data: serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap(),
                correlation_id: Uuid::from_u128(3),
                causation_id: None,
                traceparent: None,
            }
        };
        files.map(read).collect()
    }

    /// An event that a consumer handles without naming its type would never reach it.
    #[tokio::test]
    async fn consumers_name_every_type_that_they_handle() {
        let folder = tempfile::tempdir().unwrap();
        // Without tables: whoever handles an event fails.
        let db = Db::open_sqlite(&folder.path().join("empty"), &SqliteOptions::default()).unwrap();
        let events = events_of_every_type();
        assert!(events.len() > 20, "{}", events.len());
        for consumer in [CATALOG, COMMUNITY, MAIL, PAYMENT, QUEUE, TICKET] {
            let types = consumer.types.unwrap();
            let handler = EventHandler::from(consumer.handle);
            for event in events.iter().filter(|event| !types.contains(&event.event_type.as_str())) {
                let (event, name) = (event.clone(), event.event_type.clone());
                let context = HandlerContext::new(consumer.group, &event, Clock::System.now());
                let handler = handler.clone();
                let handle = move |tx: &mut Tx<'_>| match &handler {
                    EventHandler::Each(handle) => Ok(vec![handle(tx, &event, &context)?]),
                    EventHandler::Together(handle) | EventHandler::Repeatable(handle) => {
                        handle(tx, &[(&event, context.clone())])
                    }
                };
                let handled: Result<_, HandleError> = db.write(handle).await;
                let expected = Ok(vec![HandlerOutcome::Ignored]);
                assert_eq!(handled, expected, "{} {name}", consumer.group);
            }
            let known = |name: &&&str| events.iter().any(|event| event.event_type == **name);
            assert!(types.iter().all(|name| known(&name)), "{} {types:?}", consumer.group);
        }
    }
}
