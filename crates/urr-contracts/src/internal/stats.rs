//! Internal calls to the statistics: the money of one sale for its live board.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::Caller;

const QUEUE: &[Caller] = &[Caller::Queue];

internal_calls! {
    /// The calls to the statistics.
    pub enum StatsCalls {
        // Asked for every second while somebody watches, so it is answered quickly or not at all.
        GetSaleTotals -> SaleTotals:
            Get "/internal/stats/sales/{eventId}", QUEUE, Duration::from_secs(1);
        GetSaleHistory -> SaleHistory:
            Get "/internal/stats/sales/{eventId}/history", QUEUE, Duration::from_secs(3);
    }
}

/// Asks what an event has earned so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSaleTotals {
    pub event_id: Uuid,
}

/// The answer of [`GetSaleTotals`]: what was counted since the event exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleTotals {
    pub charges: i64,
    pub charged: Won,
    pub refunds: i64,
    pub refunded: Won,
}

/// Asks how a sale went lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSaleHistory {
    pub event_id: Uuid,
    /// From when on seconds are listed.
    pub seconds_since: Timestamp,
    /// From when on minutes are listed.
    pub minutes_since: Timestamp,
}

/// The answer of [`GetSaleHistory`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleHistory {
    pub totals: SaleTotals,
    /// In order; seconds in which no money moved are left out.
    pub seconds: Vec<SaleSpan>,
    /// In order; minutes in which nothing is known are left out.
    pub minutes: Vec<SaleMinute>,
}

/// The money that moved within a second or a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleSpan {
    /// When it begins, in seconds since 1970.
    pub at: i64,
    #[serde(flatten)]
    pub moved: SaleTotals,
}

/// The money that moved within a minute, and the waiting room at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleMinute {
    #[serde(flatten)]
    pub span: SaleSpan,
    /// Null if the room was not occupied.
    #[serde(default)]
    pub room: Option<RoomFigures>,
}

/// The numbers of a waiting room at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoomFigures {
    pub waiting: u32,
    pub inside: u32,
    /// Since the opening of the room.
    pub joined_total: u64,
    pub admitted_total: u64,
    pub left_total: u64,
}
