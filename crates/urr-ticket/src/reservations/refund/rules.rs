//! Rules of refunds: the refund of a cancelled reservation follows the policy under which it was
//! made.
//!
//! Two clocks matter: the time since the booking, and the days until the event. Days are those of
//! Korea's calendar, which has no summer time.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Won};

use crate::reservations::model::ReservationItem;

const KOREA: Offset = Offset::constant(9);

/// The cancellation fees. Stored as JSON with every reservation: later policies do not change what
/// was agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelPolicy {
    grace: GracePeriod,
    bands: Vec<FeeBand>,
}

/// The period after the booking in which tickets are refunded in full, if the event is far enough
/// away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GracePeriod {
    pub hours: u16,
    pub days_before_min: u16,
}

/// The fee of a ticket while the event is at least this many days away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeBand {
    pub days_before_min: u16,
    /// No fee within this many days after the booking.
    pub free_days: Option<u16>,
    /// Of the price, rounded down.
    pub percent: u8,
    pub ticket_fee_max: Option<Won>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCancelPolicy {
    #[error("the bands do not come nearer to the event one by one, down to its day")]
    Bands,
    #[error("more is kept than was paid, or less than nothing")]
    Fee,
}

/// Whether the cancellation fee applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeeMode {
    /// The owner changed their mind.
    ByPolicy,
    /// The event is cancelled, or an administrator gives everything back.
    Waived,
}

/// The input of a refund beside the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefundBasis<'a> {
    /// When the reservation was made.
    pub booked_at: Timestamp,
    pub starts_at: Timestamp,
    pub booking_fee: Won,
    pub items: &'a [ReservationItem],
    pub fee: FeeMode,
}

/// A refund and the fee; together they are the paid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefundQuote {
    pub refund: Won,
    /// Of the tickets and of the booking fee.
    pub fee: Won,
    pub rule: RefundRule,
}

/// The rule that decided the fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundRule {
    /// Nothing was paid.
    Unpaid,
    /// Everything goes back, the booking fee too.
    Full,
    Grace,
    FreeDays,
    Percent {
        percent: u8,
        is_capped: bool,
    },
    EventStarted,
}

impl CancelPolicy {
    pub fn new(
        grace: GracePeriod,
        bands: Vec<FeeBand>,
    ) -> Result<CancelPolicy, InvalidCancelPolicy> {
        let is_falling = bands.is_sorted_by(|a, b| a.days_before_min > b.days_before_min);
        if !is_falling || bands.last().is_none_or(|last| last.days_before_min != 0) {
            return Err(InvalidCancelPolicy::Bands);
        }
        let is_possible = |band: &FeeBand| {
            band.percent <= 100 && band.ticket_fee_max.is_none_or(|max| max >= Won::ZERO)
        };
        match bands.iter().all(is_possible) {
            true => Ok(CancelPolicy { grace, bands }),
            false => Err(InvalidCancelPolicy::Fee),
        }
    }

    /// The usual schedule of Korean ticket sellers, within consumers' law.
    pub fn korean() -> CancelPolicy {
        let band = |days_before_min, percent| FeeBand {
            days_before_min,
            free_days: None,
            percent,
            ticket_fee_max: None,
        };
        let far =
            FeeBand { free_days: Some(7), ticket_fee_max: Some(Won::new(4_000)), ..band(10, 10) };
        let bands = vec![far, band(7, 10), band(3, 20), band(1, 30), band(0, 90)];
        let grace = GracePeriod { hours: 24, days_before_min: 3 };
        CancelPolicy::new(grace, bands).expect("it is a policy")
    }

    /// The rule and the band that apply. `None`: the event has begun, and nothing is refunded.
    fn rule(
        &self,
        booking: &RefundBasis<'_>,
        now: Timestamp,
    ) -> Option<(RefundRule, Option<FeeBand>)> {
        if now >= booking.starts_at {
            return None;
        }
        let days_before = days(now, booking.starts_at);
        if now < self.grace_end(booking) && days_before >= i32::from(self.grace.days_before_min) {
            return Some((RefundRule::Grace, None));
        }
        let is_reached = |band: &&FeeBand| days_before >= i32::from(band.days_before_min);
        let band = *self.bands.iter().find(is_reached).expect("the last one is the event's day");
        let since = days(booking.booked_at, now);
        if band.free_days.is_some_and(|free_days| since <= i32::from(free_days)) {
            return Some((RefundRule::FreeDays, None));
        }
        let FeeBand { percent, ticket_fee_max, .. } = band;
        Some((RefundRule::Percent { percent, is_capped: ticket_fee_max.is_some() }, Some(band)))
    }

    fn grace_end(&self, booking: &RefundBasis<'_>) -> Timestamp {
        booking.booked_at + Duration::from_hours(u64::from(self.grace.hours))
    }
}

impl FeeBand {
    fn fee(&self, item: &ReservationItem) -> Won {
        let fee = item.unit_price.percent(self.percent).expect("prices are bounded");
        let fee = self.ticket_fee_max.map_or(fee, |max| fee.min(max));
        fee.times(i64::from(item.quantity)).expect("prices are bounded")
    }
}

impl RefundBasis<'_> {
    fn sum(&self, amount: impl Fn(&ReservationItem) -> Won) -> Won {
        let sum = self.items.iter().try_fold(Won::ZERO, |sum, item| sum.plus(amount(item)));
        sum.expect("prices are bounded where they enter")
    }

    fn price(&self) -> Won {
        self.sum(ReservationItem::amount)
    }

    fn total(&self) -> Won {
        self.price().plus(self.booking_fee).expect("prices are bounded")
    }
}

/// The refund if the reservation is cancelled now.
pub fn refund_of(policy: &CancelPolicy, booking: &RefundBasis<'_>, now: Timestamp) -> RefundQuote {
    let total = booking.total();
    if booking.fee == FeeMode::Waived {
        return RefundQuote { refund: total, fee: Won::ZERO, rule: RefundRule::Full };
    }
    let Some((rule, band)) = policy.rule(booking, now) else {
        return RefundQuote { refund: Won::ZERO, fee: total, rule: RefundRule::EventStarted };
    };
    let of_tickets = band.map_or(Won::ZERO, |band| booking.sum(|item| band.fee(item)));
    // The booking fee is kept after the day of the booking, however much of the tickets is
    // refunded.
    let is_booking_day = days(booking.booked_at, now) <= 0;
    let of_booking = if is_booking_day { Won::ZERO } else { booking.booking_fee };
    let fee = of_tickets.plus(of_booking).expect("it is less than the total");
    RefundQuote { refund: total.minus(fee).expect("it is less than the total"), fee, rule }
}

/// When the refund changes; at the latest when the event begins.
pub fn refund_changes_at(
    policy: &CancelPolicy,
    booking: &RefundBasis<'_>,
    now: Timestamp,
) -> Timestamp {
    let (booked_on, starts_on) = (date(booking.booked_at), date(booking.starts_at));
    // The first moment when the event is fewer days away.
    let nearer = |days_before: u16| midnight(starts_on, 1 - i32::from(days_before));
    let mut moments = vec![
        policy.grace_end(booking),
        nearer(policy.grace.days_before_min),
        midnight(booked_on, 1),
        booking.starts_at,
    ];
    for band in &policy.bands {
        moments.push(nearer(band.days_before_min));
        moments.extend(band.free_days.map(|free| midnight(booked_on, i32::from(free) + 1)));
    }
    let present = refund_of(policy, booking, now).refund;
    let is_change = |at: &Timestamp| {
        *at > now && (*at >= booking.starts_at || refund_of(policy, booking, *at).refund != present)
    };
    moments.into_iter().filter(is_change).min().unwrap_or(booking.starts_at)
}

fn date(at: Timestamp) -> Date {
    KOREA.to_datetime(at).date()
}

/// Midnights between two moments.
fn days(from: Timestamp, to: Timestamp) -> i32 {
    (date(to) - date(from)).get_days()
}

/// Midnight this many days later.
fn midnight(day: Date, days_later: i32) -> Timestamp {
    let day = day.saturating_add(jiff::Span::new().days(days_later));
    KOREA.to_timestamp(day.at(0, 0, 0, 0)).unwrap_or(Timestamp::MAX)
}

impl RefundRule {
    /// As it is sent.
    pub fn name(self) -> String {
        match self {
            RefundRule::Unpaid => "UNPAID".to_owned(),
            RefundRule::Full => "FULL".to_owned(),
            RefundRule::Grace => "GRACE".to_owned(),
            RefundRule::FreeDays => "FREE_DAYS".to_owned(),
            RefundRule::Percent { percent, is_capped: false } => format!("PERCENT_{percent}"),
            RefundRule::Percent { percent, is_capped: true } => format!("PERCENT_{percent}_CAPPED"),
            RefundRule::EventStarted => "EVENT_STARTED".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
