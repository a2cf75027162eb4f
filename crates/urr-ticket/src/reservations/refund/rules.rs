//! Rules of refunds: the refund of a cancelled reservation follows the policy under which it was
//! made. An event that was moved to another day can be cancelled for free until it begins.
//!
//! Two clocks matter: the time since the booking, and the days until the event. Days are those of
//! Korea's calendar, which has no summer time.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use urr_kernel::{CancelPolicy, FeeBand, Timestamp, Won};

use crate::reservations::model::ReservationItem;

const KOREA: Offset = Offset::constant(9);

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
    /// The start of the event when it was booked.
    pub agreed_starts_at: Timestamp,
    /// The present start.
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
    /// The event was moved to another day: everything goes back.
    Moved,
    Grace,
    FreeDays,
    Percent {
        percent: u8,
        is_capped: bool,
    },
    EventStarted,
}

/// The fee of each ticket at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketFee {
    pub rule: RefundRule,
    kept: KeptPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptPart {
    Nothing,
    Band(FeeBand),
    Everything,
}

impl TicketFee {
    /// The fee of a ticket with this price.
    pub fn of(&self, price: Won) -> Won {
        match self.kept {
            KeptPart::Nothing => Won::ZERO,
            KeptPart::Everything => price,
            KeptPart::Band(band) => {
                let fee = price.percent(band.percent).expect("prices are bounded");
                band.ticket_fee_max.map_or(fee, |max| fee.min(max))
            }
        }
    }
}

/// What is kept of each ticket that is cancelled now.
pub fn ticket_fee(policy: &CancelPolicy, booking: &RefundBasis<'_>, now: Timestamp) -> TicketFee {
    let free = |rule| TicketFee { rule, kept: KeptPart::Nothing };
    if booking.fee == FeeMode::Waived {
        return free(RefundRule::Full);
    }
    if now >= booking.starts_at {
        return TicketFee { rule: RefundRule::EventStarted, kept: KeptPart::Everything };
    }
    if booking.is_moved() {
        return free(RefundRule::Moved);
    }
    let days_before = days(now, booking.starts_at);
    let is_far_enough = days_before >= i32::from(policy.grace().days_before_min);
    if now < grace_end(policy, booking) && is_far_enough {
        return free(RefundRule::Grace);
    }
    let band = policy.band(days_before);
    let since = days(booking.booked_at, now);
    if band.free_days.is_some_and(|free_days| since <= i32::from(free_days)) {
        return free(RefundRule::FreeDays);
    }
    let FeeBand { percent, ticket_fee_max, .. } = band;
    let rule = RefundRule::Percent { percent, is_capped: ticket_fee_max.is_some() };
    TicketFee { rule, kept: KeptPart::Band(band) }
}

fn grace_end(policy: &CancelPolicy, booking: &RefundBasis<'_>) -> Timestamp {
    booking.booked_at + Duration::from_hours(u64::from(policy.grace().hours))
}

impl RefundBasis<'_> {
    /// Whether the event takes place on another day than the owner has agreed to. Another hour of
    /// the same day is no reason for everybody to cancel.
    pub fn is_moved(&self) -> bool {
        date(self.agreed_starts_at) != date(self.starts_at)
    }

    fn ticket_fees(&self, fee: &TicketFee) -> Won {
        let of_item = |item: &ReservationItem| {
            fee.of(item.unit_price).times(i64::from(item.quantity)).expect("prices are bounded")
        };
        self.sum(of_item)
    }

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
    let of_ticket = ticket_fee(policy, booking, now);
    let of_tickets = booking.ticket_fees(&of_ticket);
    // The booking fee is kept after the day of the booking, however much of the tickets is
    // refunded.
    let of_booking = match of_ticket.rule {
        RefundRule::Full | RefundRule::Moved => Won::ZERO,
        RefundRule::EventStarted => booking.booking_fee,
        _ if days(booking.booked_at, now) <= 0 => Won::ZERO,
        _ => booking.booking_fee,
    };
    let fee = of_tickets.plus(of_booking).expect("it is less than the total");
    let refund = total.minus(fee).expect("it is less than the total");
    RefundQuote { refund, fee, rule: of_ticket.rule }
}

/// The refund if only tickets with these prices are cancelled now. The booking fee belongs to the
/// tickets that stay.
pub fn refund_of_tickets(
    policy: &CancelPolicy,
    booking: &RefundBasis<'_>,
    prices: &[Won],
    now: Timestamp,
) -> RefundQuote {
    let of_ticket = ticket_fee(policy, booking, now);
    let sum = |amount: &dyn Fn(Won) -> Won| {
        let sum = prices.iter().try_fold(Won::ZERO, |sum, price| sum.plus(amount(*price)));
        sum.expect("prices are bounded")
    };
    let (price, fee) = (sum(&|price| price), sum(&|price| of_ticket.of(price)));
    let refund = price.minus(fee).expect("a fee is a part of the price");
    RefundQuote { refund, fee, rule: of_ticket.rule }
}

/// A period in which a cancellation costs the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefundPeriod {
    pub from: Timestamp,
    pub until: Timestamp,
    pub quote: RefundQuote,
}

/// What a cancellation of the whole reservation costs from its booking to the event, by date.
pub fn refund_schedule(policy: &CancelPolicy, booking: &RefundBasis<'_>) -> Vec<RefundPeriod> {
    let (mut from, mut periods) = (booking.booked_at, Vec::new());
    while from < booking.starts_at {
        let until = refund_changes_at(policy, booking, from);
        periods.push(RefundPeriod { from, until, quote: refund_of(policy, booking, from) });
        from = until;
    }
    periods
}

/// From when on cancelling the tickets costs something for good, or the event has begun.
pub fn free_until(policy: &CancelPolicy, booking: &RefundBasis<'_>, now: Timestamp) -> Timestamp {
    let (mut at, mut free_until) = (now, now);
    while at < booking.starts_at {
        let next = refund_changes_at(policy, booking, at);
        if booking.ticket_fees(&ticket_fee(policy, booking, at)) == Won::ZERO {
            free_until = next;
        }
        at = next;
    }
    free_until
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
        grace_end(policy, booking),
        nearer(policy.grace().days_before_min),
        midnight(booked_on, 1),
        booking.starts_at,
    ];
    for band in policy.bands() {
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
            RefundRule::Moved => "EVENT_MOVED".to_owned(),
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
