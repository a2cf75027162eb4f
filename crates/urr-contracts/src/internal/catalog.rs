//! Internal calls to the catalog.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

use crate::events::catalog::{CatalogEventStatus, EventKind};

internal_calls! {
    /// The calls to the catalog.
    pub enum CatalogCalls {
        GetEvent -> GetEventAnswer:
            Get "/internal/catalog/events/{id}", &Caller::ALL, Duration::from_secs(2);
    }
}

/// Asks for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetEvent {
    pub id: Uuid,
}

/// The answer of [`GetEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetEventAnswer {
    pub event: EventInfo,
}

/// An event as it is at the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventInfo {
    pub id: Uuid,
    pub revision: i64,
    pub title: String,
    pub kind: EventKind,
    pub status: CatalogEventStatus,
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    #[serde(default)]
    pub artist_name: Option<String>,
    pub starts_at: Timestamp,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub inventory_ready: bool,
}
