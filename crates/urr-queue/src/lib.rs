//! The waiting room: a fair line in front of every sale.
//!
//! Who waits lives in a [`room`]; how a room is run lives in the schema `queue_service`. What is sold
//! and when it learns from `catalog-events`; that someone has bought, from `reservation-events`.
//!
//! Deliberately absent: any read of another service while someone asks for their place (P-1).

mod domain;
pub mod room;
mod settings;

use urr_storage::{Schema, migrations};

pub use domain::event::{
    DrawState, EventRoom, EventStatus, NotAdmissible, Opening, Phase, Tier, Wishes,
};
pub use settings::Settings;

/// The tables of the waiting rooms' keeper.
pub const SCHEMA: Schema = Schema {
    name: "queue_service",
    migrations: migrations![1 "rooms" => "../migrations/0001_rooms.sql"],
};

/// The journal of rooms that live in a process. Always a file of SQLite beside the process.
pub const JOURNAL: Schema = Schema {
    name: "queue_room",
    migrations: migrations![1 "places" => "../migrations/journal/0001_places.sql"],
};

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "queue_svc_user";
