//! The ticket service: seats, stock, holds, reservations, tickets, transfers, memberships.
//!
//! It is the only writer of its schema `reservation_service`. Its consumer reads `catalog-events`
//! (what is sold) and `payment-events` (what was paid); it publishes reservation, inventory,
//! membership, transfer and alert events.
//!
//! Invariants: a seat has at most one live hold or sale; stock is never negative; a reservation is
//! pending and then exactly one of confirmed, cancelled, expired; a change and its event are
//! committed together. Every change of an event's seats, stock or reservations happens under the
//! lock of the event's row in `sales`, which numbers the change: that number is the fencing token.
//!
//! Deliberately absent: any decision by a lock outside of the database. Seat locks only reject
//! requests early that would lose.

mod alerts;
mod audit;
mod batcher;
mod check_in;
pub mod consumer;
mod display_number;
mod etickets;
mod event_access;
mod event_figures;
mod holdings;
mod house_seats;
mod http;
mod in_list;
pub mod inventory;
mod jobs;
mod locks;
mod memberships;
mod metrics;
mod payables;
mod peers;
pub mod reservations;
mod reserve;
mod sales_health;
mod seat_map;
mod settings;
mod transfers;

use std::ops::Deref;
use std::sync::Arc;

use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::admin_log::AdminAction;
use urr_service::{DataKeys, InternalCalls, Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use alerts::AlertSettings;
pub use alerts::limits::ClosedSubject;
pub use alerts::rules::{AlertSubject, InvalidAlertQuantity};
pub use alerts::sale_alerts::{SaleAlert, SaleAlertError};
pub use alerts::seat_alerts::{AskSeatAlert, SeatAlert, SeatAlertError, SeatAlertId};
pub use audit::rows::{SharedRows, TicketTableAudit};
pub use audit::store::{AuditDifference, AuditDifferenceKind};
pub use audit::{AuditReport, Auditor};
pub use check_in::offline::{CheckInConflict, ReportedScan, ScanReport, ScanResult, ScanVerdict};
pub use check_in::rules::{DoorName, Scan, ScanDirection, ScanOutcome};
pub use check_in::signature::{InvalidPayload, PublicKey, SignedTicket, Signer};
pub use check_in::store::{CheckInCounts, CheckInTicket};
pub use check_in::{
    AcceptedScan, CheckInError, EntryNote, ScannedTicket, TicketCode, UndoScan, UndoScanError,
};
pub use event_access::{AssignStaffError, StaffAssignment};
pub use house_seats::box_office::{BoxOfficeMethod, BoxOfficeRequest};
pub use house_seats::complimentary::{ComplimentaryRequest, RevokeRequest};
pub use house_seats::guests::{GuestKeyError, HouseGuest};
pub use house_seats::issue::{HouseList, HouseReservation};
pub use house_seats::{BlockRequest, BlockedSeats, HouseItem, HousePlaces, HouseSeatsError};
use inventory::cache::InventoryCache;
pub use inventory::rules::{Inventory, InventoryKind, NotOnSale, SalePolicy, SaleStatus, Tier};
pub use inventory::ticket_types::TicketTypeError;
pub use inventory::ticket_types::rules::{TicketTypeRejection, TicketTypeStock};
pub use locks::{LockResult, SeatLocks};
pub use memberships::MembershipError;
pub use memberships::points::PointAction;
pub use memberships::points::store::{PointEntry, PointRecipients};
pub use memberships::rules::{
    Benefits, Membership, MembershipId, MembershipRejection, MembershipStatus, MembershipTerm,
    TermPaymentStatus,
};
use metrics::TicketMetrics;
pub use payables::PayableError;
pub use peers::TicketPeers;
pub use reservations::cancel::AdminCancel;
pub use reservations::cancel_tickets::{CancelTickets, TicketCanceller};
pub use reservations::details::{ReservationDetails, ReservationFilter};
pub use reservations::expiry::{SweepReport, Sweeper};
pub use reservations::model::{
    EventChain, ItemSubject, Reservation, ReservationId, ReservationItem, ReservationKind,
    ReservationPaymentStatus, ReservationStatus,
};
pub use reservations::payment::CompletedPayment;
pub use reservations::refund::rules::{FeeMode, RefundQuote, RefundRule};
pub use reservations::refund::{CancellationTerm, RefundPreview, TicketRefund};
pub use reservations::rules::{
    PaymentClaim, ReservationRecord, ReservationRejection, ReturnedMoney,
};
pub use reservations::transition::TransitionError;
pub use reserve::best_seats::{NoSeatsFit, SeatPreference};
pub use reserve::change_seats::ChangeSeats;
pub use reserve::persons::{PersonFinder, PersonHashes};
pub use reserve::rules::{
    Hold, HoldRejection, InvalidRequestedItems, RequestedItems, RequestedTickets,
};
pub use reserve::slots::{SlotChecker, SlotClaim, SlotError};
pub use reserve::{ReserveError, ReserveRequest};
use sales_health::booking_stats::BookingStats;
use sales_health::shared_bookings::SharedBookings;
pub use seat_map::{InventorySnapshot, SeatMapSettings, SeatMaps, SeatStatus};
pub use settings::TicketSettings;
pub use transfers::rules::{
    Transfer, TransferId, TransferOffer, TransferRejection, TransferStatus,
};
pub use transfers::store::TransferFilter;
pub use transfers::{TransferDetails, TransferError};
pub use urr_kernel::{
    CancelPolicy, FeeBand, GracePeriod, IdempotencyKey, InvalidCancelPolicy, InvalidIdempotencyKey,
    InvalidTicketType, TicketTypeDraft,
};

/// The tables of the ticket service.
pub const SCHEMA: Schema = Schema {
    name: "reservation_service",
    migrations: migrations![
        1 "sales" => "../migrations/0001_sales.sql",
        2 "memberships" => "../migrations/0002_memberships.sql",
        3 "transfers" => "../migrations/0003_transfers.sql",
        4 "alerts" => "../migrations/0004_alerts.sql",
        5 "booking_reports" => "../migrations/0005_booking_reports.sql",
        6 "event_sums" => "../migrations/0006_event_sums.sql",
        7 "reservations_of_event" => "../migrations/0007_reservations_of_event.sql",
        8 "pins_change_no_index" => "../migrations/0008_pins_change_no_index.sql",
    ],
};

/// The source in the envelope of its events.
pub(crate) const SOURCE: &str = "urr/ticket";

/// The ticket service with one method per operation. Clones share it.
#[derive(Clone)]
pub struct TicketService(Arc<Inner>);

pub struct Inner {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: IdSource,
    pub(crate) settings: TicketSettings,
    pub(crate) locks: SeatLocks,
    pub(crate) batchers: reserve::ReserveBatchers,
    pub(crate) inventories: InventoryCache,
    pub(crate) maps: SeatMaps,
    pub(crate) signer: Signer,
    pub(crate) guest_keys: house_seats::guests::GuestKeys,
    pub(crate) metrics: TicketMetrics,
    pub(crate) slots: SlotChecker,
    pub(crate) persons: PersonFinder,
    /// None in commands and in tests of the ticket service alone.
    pub(crate) peers: Option<TicketPeers>,
    pub(crate) booking_stats: BookingStats,
    pub(crate) shared_bookings: SharedBookings,
    pub(crate) standing_totals: sales_health::StandingTotals,
    pub(crate) check_in_pages: check_in::list::CheckInPages,
}

impl Deref for TicketService {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// What the ticket service is made of.
pub struct TicketParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: TicketSettings,
    pub locks: SeatLocks,
    /// Signs and verifies tickets.
    pub signer: Signer,
    /// Encrypt what is known of guests without an account.
    pub data_keys: DataKeys,
    /// Checks the slots of the waiting room.
    pub slots: SlotChecker,
    /// Finds the persons behind accounts.
    pub persons: PersonFinder,
    /// None: names, payments and mails are not shown.
    pub peers: Option<TicketPeers>,
}

/// The description of the routes, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl TicketService {
    pub fn new(parts: TicketParts) -> TicketService {
        let TicketParts {
            db,
            clock,
            ids,
            settings,
            locks,
            signer,
            data_keys,
            slots,
            persons,
            peers,
        } = parts;
        let inventories = InventoryCache::new(db.clone(), clock.clone());
        let maps = SeatMaps::new(&db, &clock, &inventories, &settings.seat_maps);
        let metrics = TicketMetrics::default();
        let batchers = reserve::ReserveBatchers::new(&db, &clock, &locks, &maps, &settings);
        TicketService(Arc::new(Inner {
            booking_stats: BookingStats::new(),
            shared_bookings: SharedBookings::new(ids.next_id()),
            standing_totals: sales_health::StandingTotals::new(
                clock.clone(),
                sales_health::STANDING_TOTALS,
            ),
            check_in_pages: check_in::list::pages(clock.clone()),
            db,
            clock,
            ids,
            settings,
            locks,
            batchers,
            inventories,
            maps,
            signer,
            guest_keys: house_seats::guests::GuestKeys::new(&data_keys),
            metrics,
            slots,
            persons,
            peers,
        }))
    }

    pub fn seat_maps(&self) -> &SeatMaps {
        &self.maps
    }

    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// An entry of the admin log. What it says to people follows in the transaction.
    pub(crate) fn admin_action(
        &self,
        admin_id: Uuid,
        action: &'static str,
        resource_type: &'static str,
        resource_id: Uuid,
    ) -> AdminAction {
        AdminAction {
            id: self.ids.next_id(),
            admin_id: Some(admin_id),
            action: action.into(),
            resource_type: resource_type.into(),
            resource_id: resource_id.to_string(),
            summary: String::new(),
            details: None,
            created_at: self.clock.now(),
        }
    }

    /// The service for the network or for other services of the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.metrics.register(&kit.metrics);
        Service::new("ticket", http::routes().with_state(self.clone()), kit)
            .with_calls(self.internal_calls())
    }

    /// What other services can ask it.
    pub fn internal_calls(&self) -> InternalCalls<TicketService> {
        http::internal_calls(self.clone())
    }
}
