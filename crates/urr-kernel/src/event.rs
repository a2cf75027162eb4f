//! Domain events and their envelope: CloudEvents 1.0 in its JSON form.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{CallContext, TraceContext};

pub const SPEC_VERSION: &str = "1.0";

/// The data of a domain event. The type has its topic and its name.
pub trait EventData: Serialize + DeserializeOwned {
    /// The topic, for example `reservation-events`.
    const TOPIC: &'static str;
    /// The type, for example `RESERVATION_CONFIRMED`.
    const TYPE: &'static str;
    /// The aggregate the fact is about. It is the subject and the partition key: facts about one
    /// aggregate keep their order.
    fn aggregate_id(&self) -> String;
}

/// A domain event in its envelope. Unknown attributes are ignored, as CloudEvents asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainEvent {
    pub specversion: String,
    pub id: Uuid,
    pub source: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub subject: String,
    pub time: Timestamp,
    pub datacontenttype: String,
    pub data: serde_json::Value,
    #[serde(rename = "correlationid")]
    pub correlation_id: Uuid,
    #[serde(rename = "causationid", default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// Why bytes are not an event, or an event does not carry the expected data.
#[derive(Debug, thiserror::Error)]
pub enum DecodeEventError {
    #[error("the message is not a CloudEvents JSON document")]
    NotAnEvent(#[source] serde_json::Error),
    #[error("the message has CloudEvents version {0:?}; this program reads {SPEC_VERSION:?}")]
    UnknownVersion(String),
    #[error("the data of a {event_type} is not what its type promises")]
    WrongData {
        event_type: String,
        #[source]
        source: serde_json::Error,
    },
}

impl DomainEvent {
    /// Puts data into its envelope. Consumers that read only the data find the type, and the flow as
    /// `sagaId`, there as well.
    pub fn new<D: EventData>(
        id: Uuid,
        source: &str,
        time: Timestamp,
        context: &CallContext,
        data: &D,
    ) -> DomainEvent {
        let mut fields = serde_json::to_value(data).expect("event data are plain structs");
        fields["type"] = D::TYPE.into();
        fields["sagaId"] = context.correlation_id.to_string().into();
        DomainEvent {
            specversion: SPEC_VERSION.to_owned(),
            id,
            source: source.to_owned(),
            event_type: D::TYPE.to_owned(),
            subject: data.aggregate_id(),
            time,
            datacontenttype: "application/json".to_owned(),
            data: fields,
            correlation_id: context.correlation_id,
            causation_id: context.causation_id,
            traceparent: Some(context.trace.to_string()),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an envelope is a plain struct")
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<DomainEvent, DecodeEventError> {
        let event: DomainEvent =
            serde_json::from_slice(bytes).map_err(DecodeEventError::NotAnEvent)?;
        if event.specversion != SPEC_VERSION {
            return Err(DecodeEventError::UnknownVersion(event.specversion));
        }
        Ok(event)
    }

    /// The data, as the type that belongs to the event's name.
    pub fn decode<D: EventData>(&self) -> Result<D, DecodeEventError> {
        assert_eq!(self.event_type, D::TYPE, "the caller matched on the type");
        D::deserialize(&self.data).map_err(|source| DecodeEventError::WrongData {
            event_type: self.event_type.clone(),
            source,
        })
    }

    /// The context for everything that handling this event sets off: same flow, caused by it.
    pub fn context(&self) -> CallContext {
        let trace = self.traceparent.as_deref().and_then(|text| text.parse().ok());
        CallContext {
            correlation_id: self.correlation_id,
            causation_id: Some(self.id),
            trace: trace.unwrap_or_else(|| TraceContext::root(self.id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SeatPainted {
        seat_id: Uuid,
        colour: String,
    }

    impl EventData for SeatPainted {
        const TOPIC: &'static str = "paint-events";
        const TYPE: &'static str = "SEAT_PAINTED";
        fn aggregate_id(&self) -> String {
            self.seat_id.to_string()
        }
    }

    fn painted() -> (SeatPainted, DomainEvent) {
        let data = SeatPainted { seat_id: Uuid::from_u128(9), colour: "red".to_owned() };
        let context = CallContext::root(Uuid::from_u128(5));
        let event = DomainEvent::new(
            Uuid::from_u128(1),
            "urr/test",
            Timestamp::UNIX_EPOCH,
            &context,
            &data,
        );
        (data, event)
    }

    #[test]
    fn the_envelope_has_the_attributes_of_cloudevents() {
        let (_, event) = painted();
        let json: serde_json::Value = serde_json::from_slice(&event.to_bytes()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "specversion": "1.0",
                "id": "00000000-0000-0000-0000-000000000001",
                "source": "urr/test",
                "type": "SEAT_PAINTED",
                "subject": "00000000-0000-0000-0000-000000000009",
                "time": "1970-01-01T00:00:00Z",
                "datacontenttype": "application/json",
                "data": {
                    "seatId": "00000000-0000-0000-0000-000000000009",
                    "colour": "red",
                    "type": "SEAT_PAINTED",
                    "sagaId": "00000000-0000-0000-0000-000000000005",
                },
                "correlationid": "00000000-0000-0000-0000-000000000005",
                "traceparent": "00-00000000000000000000000000000005-0000000000000005-01",
            })
        );
    }

    #[test]
    fn an_event_survives_the_journey() {
        let (data, event) = painted();
        let arrived = DomainEvent::from_bytes(&event.to_bytes()).unwrap();
        assert_eq!(arrived, event);
        assert_eq!(arrived.decode::<SeatPainted>().unwrap(), data);
    }

    #[test]
    fn what_an_event_causes_names_it_as_the_cause() {
        let (_, event) = painted();
        let context = event.context();
        assert_eq!(context.causation_id, Some(event.id));
        assert_eq!(context.correlation_id, event.correlation_id);
    }

    #[test]
    fn foreign_and_future_messages_are_told_apart_from_events() {
        let not_json = DomainEvent::from_bytes(b"\xff\x00");
        assert!(matches!(not_json, Err(DecodeEventError::NotAnEvent(_))));
        let (_, mut event) = painted();
        event.specversion = "2.0".to_owned();
        let future = DomainEvent::from_bytes(&event.to_bytes());
        assert!(
            matches!(future, Err(DecodeEventError::UnknownVersion(version)) if version == "2.0")
        );
        let (_, mut event) = painted();
        event.data = serde_json::json!({"seatId": 3});
        assert!(matches!(event.decode::<SeatPainted>(), Err(DecodeEventError::WrongData { .. })));
    }
}
