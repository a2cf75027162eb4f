//! What nobody has handled moves from an embedded log to another bus, once.

use urr_bus::{RelocationError, TopicSpec, UnreadMessages};
use urr_storage::StorageError;

use crate::on_both_engines;

on_both_engines!(
    what_some_group_has_not_read_moves_once_and_in_order,
    messages_of_others_are_refused
);

mod cases {
    use super::*;
    use crate::fixture::Fixture;

    async fn unread(source: &Fixture) -> UnreadMessages {
        let log = source.log();
        let read: Result<UnreadMessages, StorageError> = log.read(UnreadMessages::read).await;
        log.close();
        read.unwrap()
    }

    /// The steps of the events on a topic.
    async fn bodies(target: &Fixture, topic: &str) -> Vec<Vec<u8>> {
        let all = target.bus.scan(topic).await.unwrap();
        all.into_iter().map(|delivery| delivery.body).collect()
    }

    pub async fn what_some_group_has_not_read_moves_once_and_in_order(target: Fixture) {
        let source = Fixture::embedded().await;
        let topic = source.topic.clone();
        target.bus.ensure_topics(&[TopicSpec::new(&topic)]).await.unwrap();
        // One key, so one partition and one order.
        let seat_id = source.ids.next_id();
        let events: Vec<_> = (0..6).map(|step| source.event(seat_id, step)).collect();
        source.publish_events(&events[..4]).await;
        source.read("quick", 4).await;
        source.read("slow", 4).await;
        source.publish_events(&events[4..]).await;
        source.read("quick", 2).await;
        let unread = unread(&source).await;
        assert_eq!((unread.messages.len(), unread.dead_letters.len()), (2, 0));
        for _ in 0..2 {
            unread.publish(&target.bus, &[&topic]).await.unwrap();
            let expected: Vec<Vec<u8>> =
                events[4..].iter().map(|event| event.to_bytes().to_vec()).collect();
            assert_eq!(bodies(&target, &topic).await, expected);
        }
    }

    pub async fn messages_of_others_are_refused(target: Fixture) {
        let source = Fixture::embedded().await;
        target.publish_events(&[target.event(target.ids.next_id(), 1)]).await;
        let unread = unread(&source).await;
        let refused = unread.publish(&target.bus, &[&target.topic]).await;
        assert!(matches!(refused, Err(RelocationError::ForeignMessages { .. })), "{refused:?}");
    }
}
