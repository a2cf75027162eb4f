//! Domain events: the facts that services announce on the bus, by topic.
//!
//! The table at the end of this file gives each event its topic, its type and the aggregate that it
//! is about. The aggregate's id is the partition key: events of one aggregate keep their order.

pub mod alert;
pub mod catalog;
pub mod community;
pub mod inventory;
pub mod membership;
pub mod payment;
pub mod queue;
pub mod reservation;
pub mod transfer;
pub mod user;

use urr_kernel::EventData;

use self::alert::{SaleAlertDue, SeatAlertDue};
use self::catalog::{
    ArtistCreated, ArtistUpdated, EventCancelled, EventCreated, EventDeleted, EventUpdated,
};
use self::community::{
    CommentCreated, CommentStatusChanged, PostCreated, PostPicturesChanged, PostStatusChanged,
};
use self::inventory::{HouseSeatsChanged, InventoryReady, TicketTypeChanged};
use self::membership::{MembershipActivated, MembershipExpired};
use self::payment::{ChargeReversed, PaymentConfirmed, PaymentRefunded};
use self::queue::{AdmissionNear, QueueObserved};
use self::reservation::{
    BoxOfficeSold, ComplimentaryIssued, ReservationCancelled, ReservationChanged,
    ReservationConfirmed, ReservationCreated, ReservationExpired, ReservationPartlyCancelled,
    ReservationRescheduled,
};
use self::transfer::{TransferCancelled, TransferCompleted};
use self::user::{AccountLinkIssued, UserDeleted, UserRegistered, UserRoleChanged};

/// Every topic, in alphabetical order.
pub const TOPICS: &[&str] = &[
    alert::TOPIC,
    catalog::TOPIC,
    community::TOPIC,
    inventory::TOPIC,
    membership::TOPIC,
    payment::TOPIC,
    queue::TOPIC,
    reservation::TOPIC,
    transfer::TOPIC,
    user::TOPIC,
];

macro_rules! domain_events {
    ($($topic:expr => { $($event:ty, $type:literal, |$data:ident| $id:expr;)* })*) => {
        /// The type of every event.
        pub const TYPES: &[&str] = &[$($($type,)*)*];

        $($(impl EventData for $event {
            const TOPIC: &'static str = $topic;
            const TYPE: &'static str = $type;

            fn aggregate_id(&self) -> String {
                let $data = self;
                $id.to_string()
            }
        })*)*
    };
}

domain_events! {
    alert::TOPIC => {
        SaleAlertDue, "SALE_ALERT_DUE", |data| data.user_id;
        SeatAlertDue, "SEAT_ALERT_DUE", |data| data.user_id;
    }
    catalog::TOPIC => {
        ArtistCreated, "ARTIST_CREATED", |data| data.artist_id;
        ArtistUpdated, "ARTIST_UPDATED", |data| data.artist_id;
        EventCreated, "EVENT_CREATED", |data| data.0.event_id;
        EventUpdated, "EVENT_UPDATED", |data| data.0.event_id;
        EventCancelled, "EVENT_CANCELLED", |data| data.event_id;
        EventDeleted, "EVENT_DELETED", |data| data.event_id;
    }
    community::TOPIC => {
        PostCreated, "POST_CREATED", |data| data.post_id;
        PostStatusChanged, "POST_STATUS_CHANGED", |data| data.post_id;
        PostPicturesChanged, "POST_PICTURES_CHANGED", |data| data.post_id;
        CommentCreated, "COMMENT_CREATED", |data| data.post_id;
        CommentStatusChanged, "COMMENT_STATUS_CHANGED", |data| data.post_id;
    }
    inventory::TOPIC => {
        InventoryReady, "INVENTORY_READY", |data| data.event_id;
        TicketTypeChanged, "TICKET_TYPE_CHANGED", |data| data.event_id;
        HouseSeatsChanged, "HOUSE_SEATS_CHANGED", |data| data.event_id;
    }
    membership::TOPIC => {
        MembershipActivated, "MEMBERSHIP_ACTIVATED", |data| data.membership_id;
        MembershipExpired, "MEMBERSHIP_EXPIRED", |data| data.membership_id;
    }
    payment::TOPIC => {
        PaymentConfirmed, "PAYMENT_CONFIRMED", |data| data.payment.order_id;
        PaymentRefunded, "PAYMENT_REFUNDED", |data| data.payment.order_id;
        ChargeReversed, "CHARGE_REVERSED", |data| data.payment.order_id;
    }
    queue::TOPIC => {
        AdmissionNear, "ADMISSION_NEAR", |data| data.event_id;
        QueueObserved, "QUEUE_OBSERVED", |data| data.event_id;
    }
    reservation::TOPIC => {
        ReservationCreated, "RESERVATION_CREATED", |data| data.reservation.reservation_id;
        ReservationChanged, "RESERVATION_CHANGED", |data| data.reservation.reservation_id;
        ReservationConfirmed, "RESERVATION_CONFIRMED", |data| data.reservation.reservation_id;
        BoxOfficeSold, "BOX_OFFICE_SOLD", |data| data.reservation.reservation_id;
        ComplimentaryIssued, "COMPLIMENTARY_ISSUED", |data| data.reservation.reservation_id;
        ReservationCancelled, "RESERVATION_CANCELLED", |data| data.reservation.reservation_id;
        ReservationPartlyCancelled, "RESERVATION_PARTLY_CANCELLED",
            |data| data.reservation.reservation_id;
        ReservationRescheduled, "RESERVATION_RESCHEDULED",
            |data| data.reservation.reservation_id;
        ReservationExpired, "RESERVATION_EXPIRED", |data| data.reservation.reservation_id;
    }
    transfer::TOPIC => {
        TransferCompleted, "TRANSFER_COMPLETED", |data| data.transfer_id;
        TransferCancelled, "TRANSFER_CANCELLED", |data| data.transfer_id;
    }
    user::TOPIC => {
        UserRegistered, "USER_REGISTERED", |data| data.user_id;
        UserRoleChanged, "USER_ROLE_CHANGED", |data| data.user_id;
        UserDeleted, "USER_DELETED", |data| data.user_id;
        AccountLinkIssued, "ACCOUNT_LINK_ISSUED", |data| data.user_id;
    }
}
