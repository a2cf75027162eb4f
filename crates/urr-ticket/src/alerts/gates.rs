//! Gates: while one is in force, only fans who were told may take what has returned.
//!
//! A request for seats reads them under the lock of the sale, and only if fans wait for the event.

use std::ops::Range;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_layout::{Layout, SeatId};

use crate::Inventory;
use crate::alerts::rules::{AlertSubject, SeatWish};
use crate::reserve::rules::{HoldRejection, RequestedTickets};

/// A gate as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertGate {
    pub subject: AlertSubject,
    /// None while nothing is free.
    pub returned_at: Option<Timestamp>,
    /// Nobody who waits can use what is free.
    pub is_open: bool,
    /// When the waiting fans are looked at next; none while nothing is free.
    pub next_at: Option<Timestamp>,
    /// The number of the last change before it was closed.
    pub closed_fence: i64,
}

/// A time in which a gate was closed and something was free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatePeriod {
    pub subject: AlertSubject,
    pub closed_fence: i64,
    /// The number of the last change before it was opened.
    pub opened_fence: i64,
    /// When it opens by itself.
    pub exclusive_until: Timestamp,
}

/// How many a user may take while a gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimit {
    /// Zero, or what the fan was told of.
    pub quantity_max: u32,
    /// When everybody may take them, at the latest; none while nothing has returned.
    pub opens_at: Option<Timestamp>,
}

impl AlertGate {
    /// When everybody may take what has returned, at the latest; none while nothing has.
    pub fn opens_at(&self, exclusive_max: Duration) -> Option<Timestamp> {
        self.returned_at.map(|returned_at| returned_at + exclusive_max)
    }

    /// The period that ends if the gate is opened after the change with this number. None: it is
    /// open already, or nothing could be taken.
    pub fn period_until(&self, fence: i64, exclusive_max: Duration) -> Option<GatePeriod> {
        if self.is_open || exclusive_max.is_zero() {
            return None;
        }
        let (subject, closed_fence) = (self.subject.clone(), self.closed_fence);
        let exclusive_until = self.opens_at(exclusive_max)?;
        Some(GatePeriod { subject, closed_fence, opened_fence: fence, exclusive_until })
    }

    pub fn is_in_force(&self, exclusive_max: Duration, now: Timestamp) -> bool {
        !self.is_open && self.opens_at(exclusive_max).is_none_or(|opens_at| now < opens_at)
    }
}

/// The gates of an event that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertGates {
    closed: Vec<(AlertSubject, Option<Timestamp>)>,
    told: Vec<ToldFan>,
}

/// A fan who was told recently, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldFan {
    pub user_id: Uuid,
    pub wish: SeatWish,
}

/// Seats that a user may not take now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedSeats {
    pub ranges: Vec<Range<SeatId>>,
    /// When everybody may take them, at the latest.
    pub opens_at: Option<Timestamp>,
}

impl AlertGates {
    pub fn new(
        gates: &[AlertGate],
        told: Vec<ToldFan>,
        exclusive_max: Duration,
        now: Timestamp,
    ) -> AlertGates {
        let closed = gates.iter().filter(|gate| gate.is_in_force(exclusive_max, now));
        let closed = closed.map(|gate| (gate.subject.clone(), gate.opens_at(exclusive_max)));
        AlertGates { closed: closed.collect(), told }
    }

    pub fn was_told(&self, user_id: Uuid) -> bool {
        self.told.iter().any(|told| told.user_id == user_id)
    }

    /// Refuses what is for others, and more than the fan asked for. The seats are free.
    pub fn check_seats(
        &self,
        user_id: Uuid,
        inventory: &Inventory,
        free: &[SeatId],
    ) -> Result<(), HoldRejection> {
        if self.closed.is_empty() {
            return Ok(());
        }
        let quantity = u32::try_from(free.len()).unwrap_or(u32::MAX);
        for seat_id in free {
            let place = inventory.layout.place(*seat_id).expect("the caller knows the seats");
            self.check(user_id, &place.section.grade, quantity)?;
        }
        Ok(())
    }

    /// The same for standing tickets that are there.
    pub fn check_tickets<'a>(
        &self,
        user_id: Uuid,
        lines: impl IntoIterator<Item = &'a RequestedTickets>,
    ) -> Result<(), HoldRejection> {
        if self.closed.is_empty() {
            return Ok(());
        }
        let mut lines = lines.into_iter();
        lines.try_for_each(|line| {
            self.check(user_id, &line.ticket_type_id.to_string(), line.quantity)
        })
    }

    /// The seats of which the user may not take this many.
    pub fn closed_seats(&self, user_id: Uuid, layout: &Layout, quantity: u32) -> ClosedSeats {
        let mut closed = ClosedSeats::default();
        if self.closed.is_empty() {
            return closed;
        }
        let mut first = 0;
        for section in &layout.sections {
            let end = first + section.seat_count();
            if let Err(HoldRejection::SeatsOffered { opens_at }) =
                self.check(user_id, &section.grade, quantity)
            {
                closed.ranges.push(first..end);
                closed.opens_at = closed.opens_at.max(opens_at);
            }
            first = end;
        }
        closed
    }

    /// How many of a grade or ticket type a user may take. None: no gate closes it.
    pub fn limit(&self, user_id: Uuid, grade: &str) -> Option<GateLimit> {
        let covering = self.closed.iter().filter(|(subject, _)| subject.covers(grade));
        let opens_at = covering.map(|(_, opens_at)| *opens_at).max()?;
        let told = self.told.iter().filter(|told| told.user_id == user_id);
        let told = told.filter(|told| told.wish.subject.covers(grade));
        let quantity_max = told.map(|told| told.wish.quantity).max().unwrap_or(0);
        Some(GateLimit { quantity_max, opens_at })
    }

    fn check(&self, user_id: Uuid, grade: &str, quantity: u32) -> Result<(), HoldRejection> {
        match self.limit(user_id, grade) {
            Some(GateLimit { quantity_max, opens_at }) if quantity > quantity_max => {
                Err(HoldRejection::SeatsOffered { opens_at })
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_mins(30);

    fn at(minute: u32) -> Timestamp {
        format!("2026-12-05T11:{minute:02}:00Z").parse().expect("a time")
    }

    fn gate(subject: &str, returned_at: Option<u32>, is_open: bool) -> AlertGate {
        let returned_at = returned_at.map(at);
        let subject = AlertSubject::stored(subject.to_owned());
        AlertGate { subject, returned_at, is_open, next_at: returned_at, closed_fence: 0 }
    }

    /// What a user hears who asks for two seats. Fans were told of this many.
    fn refusal(gates: &[AlertGate], told: &[(u128, &str, u32)], grade: &str, now: u32) -> String {
        let told = told.iter().map(|(user, subject, quantity)| ToldFan {
            user_id: Uuid::from_u128(*user),
            wish: SeatWish {
                subject: AlertSubject::stored((*subject).to_owned()),
                quantity: *quantity,
            },
        });
        let gates = AlertGates::new(gates, told.collect(), MAX, at(now));
        match gates.check(Uuid::from_u128(1), grade, 2) {
            Ok(()) => "free".to_owned(),
            Err(HoldRejection::SeatsOffered { opens_at }) => {
                opens_at.map_or("closed".to_owned(), |time| time.strftime("%H:%M").to_string())
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn only_fans_who_were_told_pass_until_the_gate_opens() {
        let vip = [gate("VIP", Some(0), false)];
        assert_eq!(refusal(&vip, &[], "VIP", 29), "11:30");
        assert_eq!(refusal(&vip, &[(2, "VIP", 2)], "VIP", 0), "11:30");
        assert_eq!(refusal(&vip, &[(1, "VIP", 2)], "VIP", 0), "free");
        assert_eq!(refusal(&vip, &[(1, "VIP", 1)], "VIP", 0), "11:30", "more than asked for");
        assert_eq!(refusal(&vip, &[(1, "", 3)], "VIP", 0), "free");
        assert_eq!(refusal(&vip, &[(1, "R", 2)], "VIP", 0), "11:30");
        assert_eq!(refusal(&vip, &[], "R", 0), "free");
        assert_eq!(refusal(&vip, &[], "VIP", 30), "free", "its time is over");
    }

    #[test]
    fn a_gate_is_closed_before_anything_returns_and_open_when_nobody_can_use_it() {
        assert_eq!(refusal(&[gate("VIP", None, false)], &[], "VIP", 0), "closed");
        assert_eq!(refusal(&[gate("VIP", Some(0), true)], &[], "VIP", 0), "free");
        let both = [gate("", Some(5), false), gate("VIP", Some(0), true)];
        assert_eq!(refusal(&both, &[], "VIP", 6), "11:35");
    }
}
