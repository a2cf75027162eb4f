//! The ticket office: seats, stock, holds, reservations, tickets.
//!
//! It is the only writer of its schema `reservation_service`. What is sold it learns from
//! `catalog-events`, what was paid from `payment-events`; what it sells it announces on
//! `reservation-events`.
//!
//! Invariants: a seat has at most one live hold or sale; stock is never negative; a reservation is
//! pending and then exactly one of confirmed, cancelled, expired; a change and its event are
//! committed together. Every change of an event's seats, stock or reservations happens under the
//! lock of the event's row in `sales`, which numbers it: that number is the fencing token.
//!
//! Deliberately absent: any decision by a lock outside of the database. Seat locks only turn the
//! crowd away early.

mod admin_log;
mod audit;
mod batcher;
mod check_in;
pub mod consumer;
mod display_number;
pub mod events;
mod http;
mod in_list;
pub mod inventory;
mod jobs;
mod locks;
mod memberships;
mod metrics;
mod payables;
pub mod reservations;
mod reserve;
mod sales_health;
mod seat_map;
mod settings;
mod transfers;

use std::sync::Arc;

use urr_kernel::{Clock, IdSource};
use urr_service::{Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use audit::store::{Difference, DifferenceKind};
pub use audit::{Audit, Auditor};
pub use check_in::signature::{InvalidPayload, PublicKey, SignedTicket, Signer};
pub use check_in::{CheckInError, CheckedIn, ShownTicket};
use inventory::cache::Inventories;
pub use inventory::rules::{Inventory, Kind, NotOnSale, SalePolicy, SaleStatus, Tier};
pub use inventory::ticket_types::rules::{ChangeRefused, TicketType};
pub use inventory::ticket_types::{
    ChangeTicketTypeError, CreateTicketTypeError, TicketTypeChanged,
};
pub use locks::{SeatLocks, Taken};
pub use memberships::MembershipError;
pub use memberships::points::Action;
pub use memberships::points::store::{Members, PointLine};
pub use memberships::rules::{
    Benefits, Membership, MembershipId, MembershipRefused, MembershipStatus, Term, TermPayment,
};
use metrics::Figures;
pub use reservations::cancel::AdminCancel;
pub use reservations::details::{Details, ReservationFilter};
pub use reservations::expiry::{Sweeper, Swept};
pub use reservations::model::{
    Flow, Item, PaymentStatus, Reservation, ReservationId, Status, Subject,
};
pub use reservations::payment::{PaidPage, PaymentMade};
pub use reservations::refund::RefundPreview;
pub use reservations::refund::rules::{
    Band, CancelPolicy, Fee, Grace, InvalidCancelPolicy, Refund, Rule,
};
pub use reservations::rules::{Back, PaymentClaim, Record, Refused};
pub use reservations::transition::StepError;
pub use reserve::best_seats::choose::{NoneFits, Wish};
pub use reserve::best_seats::{BestError, BestRequest};
pub use reserve::change_seats::{ChangeError, ChangeSeats};
pub use reserve::rules::{HeldItem, Hold, InvalidWanted, Refusal, Wanted, WantedTickets};
pub use reserve::slots::{Purchase, Turn, TurnError, Turns};
pub use reserve::{ReserveError, ReserveRequest};
pub use sales_health::{BookingFigures, Supply};
pub use seat_map::{EventView, SeatMapSettings, SeatMaps, SeatStatus};
pub use settings::Settings;
pub use transfers::rules::{Offer, Transfer, TransferId, TransferRefused, TransferStatus};
pub use transfers::store::TransferFilter;
pub use transfers::{TransferDetails, TransferError};
pub use urr_kernel::{IdempotencyKey, InvalidIdempotencyKey, InvalidTicketType, TicketTypeDraft};

/// The tables of the ticket office.
pub const SCHEMA: Schema = Schema {
    name: "reservation_service",
    migrations: migrations![
        1 "sales" => "../migrations/0001_sales.sql",
        2 "memberships" => "../migrations/0002_memberships.sql",
        3 "transfers" => "../migrations/0003_transfers.sql",
    ],
};

/// Who we are in the envelope of events.
pub(crate) const SOURCE: &str = "urr/ticket";

/// The ticket office with one method per operation. Clones share it.
#[derive(Clone)]
pub struct Ticket {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) ids: IdSource,
    pub(crate) settings: Settings,
    pub(crate) locks: SeatLocks,
    pub(crate) desks: reserve::Desks,
    pub(crate) best: reserve::best_seats::BestDesk,
    pub(crate) inventories: Inventories,
    pub(crate) maps: SeatMaps,
    pub(crate) signer: Arc<Signer>,
    pub(crate) figures: Figures,
    pub(crate) turns: Turns,
    pub(crate) bookings: sales_health::Bookings,
    pub(crate) stock_sums: sales_health::StockSums,
}

/// What the ticket office is made of.
pub struct TicketParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub settings: Settings,
    pub locks: SeatLocks,
    /// Signs tickets. What it does not know was not issued by us.
    pub signer: Signer,
    /// Whose turn it is to book.
    pub turns: Turns,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Ticket {
    pub fn new(parts: TicketParts) -> Ticket {
        let TicketParts { db, clock, ids, settings, locks, signer, turns } = parts;
        let inventories = Inventories::new(db.clone());
        let maps = SeatMaps::new(&db, &clock, &inventories, &settings.seat_maps);
        let signer = Arc::new(signer);
        let figures = Figures::default();
        let desks = reserve::Desks::new(&db, &clock, &locks, &maps, &settings);
        let best = reserve::best_seats::desk(&db, &clock, &locks, &maps, &settings);
        Ticket {
            bookings: sales_health::Bookings::new(),
            stock_sums: sales_health::StockSums::default(),
            db,
            clock,
            ids,
            settings,
            locks,
            desks,
            best,
            inventories,
            maps,
            signer,
            figures,
            turns,
        }
    }

    /// The maps of its seats.
    pub fn seat_maps(&self) -> &SeatMaps {
        &self.maps
    }

    /// What signs its tickets.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The ticket office as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        self.figures.register(&kit.metrics);
        Service::new("ticket", http::routes().with_state(self.clone()), kit)
    }
}
