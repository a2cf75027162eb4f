//! Alerts: fans are told before a sale opens, and when seats of a sold-out event return.
//!
//! Both are rows. The transaction that marks a fan as told also announces it, so that several
//! processes can do this at once and crash at any moment; the announcement becomes a mail.
//!
//! Returned seats go to fans in the order of asking. The first are told, as many as there are seats
//! for, and after a head start the next. Until then a gate is in force ([`gates`]): only fans who
//! were told may take such seats. So a program that polls gets nothing before them. A gate opens for
//! everybody when nobody who waits can use what is free, and after a bounded time in any case.
//!
//! Deliberately absent: a seat that is set aside for one fan, and a way past the waiting room.

pub(crate) mod gates;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod offers;
pub(crate) mod rules;
pub(crate) mod sale_alerts;
pub(crate) mod seat_alerts;
pub(crate) mod store;

use std::time::Duration;

/// When fans are told, and how many alerts one may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertSettings {
    /// How long before the opening of a sale.
    pub sale_lead: Duration,
    /// How long a fan has returned seats before the next one is told.
    pub head_start: Duration,
    /// How long returned seats are for told fans only, at most. Zero: never.
    pub exclusive_max: Duration,
    pub sale_alerts_per_user_max: u32,
    pub seat_alerts_per_user_max: u32,
}

impl Default for AlertSettings {
    fn default() -> AlertSettings {
        AlertSettings {
            sale_lead: Duration::from_mins(10),
            head_start: Duration::from_mins(3),
            exclusive_max: Duration::from_mins(30),
            sale_alerts_per_user_max: 100,
            seat_alerts_per_user_max: 20,
        }
    }
}
