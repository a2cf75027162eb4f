//! Fan memberships: years that are bought one after the other, and points that make a tier.
//!
//! Whoever asks loaded the membership under its lock and writes what is decided here. Every step of
//! a payment can be asked for again: [`Step::Done`] says that it was taken before.

use std::time::Duration;

use jiff::tz::Offset;
use urr_kernel::{Timestamp, Uuid, Won, define_id};

use crate::inventory::rules::{Tier, presale_fee};
use crate::memberships::points::{DIAMOND_FROM, GOLD_FROM};
use crate::reservations::rules::{PaymentClaim, Step};

define_id!(
    /// Which membership.
    MembershipId
);

/// Years are those of Korea's calendar, which knows no summer time.
const KOREA: Offset = Offset::constant(9);

/// How long before its end a membership can be renewed.
const RENEWABLE_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// An artist as the catalogue announced them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artist {
    pub name: String,
    /// What a year costs now.
    pub price: Won,
}

/// A fan's membership with one of its terms: the last one, or the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    pub id: MembershipId,
    pub user_id: Uuid,
    pub artist_id: Uuid,
    /// None: nothing was heard of the artist.
    pub artist: Option<Artist>,
    /// By its points, whether it counts at the moment or not.
    pub tier: Tier,
    pub points: i64,
    /// None: it was never paid.
    pub joined_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    /// Whether its beginning was announced and its end was not yet.
    pub is_live: bool,
    /// The number of the last term.
    pub last_term: i64,
    pub term: Option<Term>,
}

/// A year that can be bought, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub number: i64,
    pub payment_status: TermPayment,
    /// What is charged: fixed when a payment begins.
    pub amount: Option<Won>,
    pub pinned_by: Option<Uuid>,
    pub payment_id: Option<Uuid>,
    /// None: it is not paid.
    pub span: Option<Span>,
}

/// When a term begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermPayment {
    Unpaid,
    Paid,
    Refunded,
}

/// A membership as fans see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipStatus {
    /// It was never paid.
    Pending,
    Active,
    Expired,
}

/// Why a membership cannot take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipRefused {
    #[error("there is no such membership")]
    NotFound,
    #[error("there is no such artist")]
    ArtistNotFound,
    #[error("the membership lasts for longer than a month")]
    AlreadyMember,
    #[error("nothing of the membership is to be paid")]
    NotForSale,
    #[error("a payment of the membership is under way")]
    PaymentInProgress,
    #[error("the membership is not pinned by this payment")]
    NotPinned,
    #[error("the term is paid")]
    Paid,
    #[error("the term was refunded")]
    Refunded,
    #[error("the payment has not paid for a term that can be refunded")]
    NotRefunding,
    #[error("the fencing token is not that of the term for sale")]
    StaleToken,
    #[error("the amount is not that of the membership")]
    WrongAmount,
}

impl TermPayment {
    /// As it is stored and sent.
    pub fn name(self) -> &'static str {
        match self {
            TermPayment::Unpaid => "unpaid",
            TermPayment::Paid => "paid",
            TermPayment::Refunded => "refunded",
        }
    }

    pub fn parse(name: &str) -> Option<TermPayment> {
        let all = [TermPayment::Unpaid, TermPayment::Paid, TermPayment::Refunded];
        all.into_iter().find(|status| status.name() == name)
    }
}

impl MembershipStatus {
    pub fn name(self) -> &'static str {
        match self {
            MembershipStatus::Pending => "pending",
            MembershipStatus::Active => "active",
            MembershipStatus::Expired => "expired",
        }
    }
}

impl Membership {
    /// Expired is expired, told or not (F-12).
    pub fn status(&self, now: Timestamp) -> MembershipStatus {
        match self.joined_at {
            None => MembershipStatus::Pending,
            Some(_) if now < self.expires_at => MembershipStatus::Active,
            Some(_) => MembershipStatus::Expired,
        }
    }

    /// What it is worth now. None is the general public.
    pub fn effective_tier(&self, now: Timestamp) -> Option<Tier> {
        (self.status(now) == MembershipStatus::Active).then_some(self.tier)
    }

    /// From when on the next year can be bought.
    pub fn renewable_from(&self) -> Option<Timestamp> {
        self.joined_at.map(|_| self.expires_at - RENEWABLE_FOR)
    }

    fn unpaid_term(&self) -> Option<&Term> {
        self.term.as_ref().filter(|term| term.payment_status == TermPayment::Unpaid)
    }

    /// Whether a year is waiting to be paid.
    pub fn is_for_sale(&self) -> bool {
        self.unpaid_term().is_some()
    }

    /// What the term costs, or has cost.
    pub fn amount(&self) -> Won {
        let fixed = self
            .term
            .as_ref()
            .filter(|term| term.pinned_by.is_some() || term.payment_status != TermPayment::Unpaid);
        let price = self.artist.as_ref().map(|artist| artist.price);
        fixed.and_then(|term| term.amount).or(price).unwrap_or(Won::ZERO)
    }
}

/// Whether a fan may begin to buy a year: [`Step::Done`] is one that waits to be paid already.
pub fn decide_subscribe(
    membership: Option<&Membership>,
    now: Timestamp,
) -> Result<Step, MembershipRefused> {
    let Some(membership) = membership else { return Ok(Step::Go) };
    if membership.is_for_sale() {
        return Ok(Step::Done);
    }
    match membership.renewable_from() {
        Some(from) if now < from => Err(MembershipRefused::AlreadyMember),
        _ => Ok(Step::Go),
    }
}

/// Whether the last term can be paid now, and for how much.
pub fn decide_pay(membership: &Membership) -> Result<Won, MembershipRefused> {
    let term = membership.term.as_ref().ok_or(MembershipRefused::NotForSale)?;
    match term.payment_status {
        TermPayment::Unpaid if term.pinned_by.is_some() => {
            Err(MembershipRefused::PaymentInProgress)
        }
        TermPayment::Unpaid => {
            let artist = membership.artist.as_ref().ok_or(MembershipRefused::ArtistNotFound)?;
            Ok(artist.price)
        }
        TermPayment::Paid => Err(MembershipRefused::Paid),
        TermPayment::Refunded => Err(MembershipRefused::NotForSale),
    }
}

/// A payment is about to charge: the price is fixed. The term is the one that it names.
pub fn decide_pin(
    membership: &Membership,
    claim: &PaymentClaim,
) -> Result<Step, MembershipRefused> {
    let term = membership.term.as_ref().ok_or(MembershipRefused::StaleToken)?;
    if term.number != membership.last_term {
        return Err(MembershipRefused::StaleToken);
    }
    if term.pinned_by == Some(claim.payment_id) {
        return check_amount(claim, term.amount).map(|()| Step::Done);
    }
    let price = decide_pay(membership)?;
    check_amount(claim, Some(price)).map(|()| Step::Go)
}

/// A payment has come to nothing. The term is the one that it has to do with, if there is any.
pub fn decide_unpin(membership: &Membership, payment_id: Uuid) -> Result<Step, MembershipRefused> {
    match &membership.term {
        Some(term) if term.pinned_by == Some(payment_id) => Ok(Step::Go),
        Some(term) if term.payment_status == TermPayment::Paid => Err(MembershipRefused::Paid),
        _ => Ok(Step::Done),
    }
}

/// A payment was made. Only the one that pinned the term buys it. The term is the one it names.
pub fn decide_confirm(
    membership: &Membership,
    claim: &PaymentClaim,
) -> Result<Step, MembershipRefused> {
    let term = membership.term.as_ref().ok_or(MembershipRefused::StaleToken)?;
    let is_its_own = term.payment_id == Some(claim.payment_id);
    let step = match (term.payment_status, term.pinned_by) {
        (TermPayment::Unpaid, Some(by)) if by == claim.payment_id => Step::Go,
        (TermPayment::Unpaid, Some(_)) => return Err(MembershipRefused::PaymentInProgress),
        (TermPayment::Unpaid, None) => return Err(MembershipRefused::NotPinned),
        (TermPayment::Paid, _) if is_its_own => Step::Done,
        (TermPayment::Paid, _) => return Err(MembershipRefused::Paid),
        (TermPayment::Refunded, _) => return Err(MembershipRefused::Refunded),
    };
    check_amount(claim, term.amount).map(|()| step)
}

fn check_amount(claim: &PaymentClaim, amount: Option<Won>) -> Result<(), MembershipRefused> {
    match amount == Some(claim.amount) {
        true => Ok(()),
        false => Err(MembershipRefused::WrongAmount),
    }
}

/// The money of a term is back; none: all of it. The term is the one that the payment has paid.
pub fn decide_refunded(
    membership: &Membership,
    amount: Option<Won>,
) -> Result<Step, MembershipRefused> {
    let term = membership.term.as_ref().ok_or(MembershipRefused::NotRefunding)?;
    let step = match term.payment_status {
        TermPayment::Unpaid => return Err(MembershipRefused::NotRefunding),
        TermPayment::Paid => Step::Go,
        TermPayment::Refunded => Step::Done,
    };
    match amount.is_none_or(|amount| term.amount == Some(amount)) {
        true => Ok(step),
        false => Err(MembershipRefused::WrongAmount),
    }
}

/// The year that is bought now: behind the present one if that is not over.
pub fn next_span(membership: &Membership, now: Timestamp) -> Span {
    let starts_at = match membership.status(now) {
        MembershipStatus::Active => membership.expires_at,
        MembershipStatus::Pending | MembershipStatus::Expired => now,
    };
    let year = jiff::Span::new().years(1);
    let end = KOREA.to_datetime(starts_at).checked_add(year);
    let ends_at = end.and_then(|end| KOREA.to_timestamp(end));
    Span { starts_at, ends_at: ends_at.expect("the calendar goes on for thousands of years") }
}

/// Takes a term out of a membership: what is left of it is cut, what comes behind moves forward.
/// `paid` are the numbered spans of the other paid terms. Returns those that move.
pub fn cut_span(gone: Span, paid: &[(i64, Span)], now: Timestamp) -> (Duration, Vec<(i64, Span)>) {
    let from = gone.starts_at.max(now);
    let cut = Duration::try_from(gone.ends_at.duration_since(from)).unwrap_or(Duration::ZERO);
    let is_behind = |(_, span): &&(i64, Span)| span.starts_at >= gone.ends_at;
    let moved = paid.iter().filter(is_behind).map(|(number, span)| {
        (*number, Span { starts_at: span.starts_at - cut, ends_at: span.ends_at - cut })
    });
    (cut, moved.collect())
}

/// What a tier gives. `None` is the general public, which is called bronze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benefits {
    /// In which wave of a pre-sale it buys.
    pub presale_phase: Option<u8>,
    pub presale_label: &'static str,
    /// Of a purchase in a pre-sale; in the general sale nobody pays it (B-7).
    pub booking_fee: Won,
    /// None: they cannot pass tickets on.
    pub transfer_fee_percent: Option<u8>,
    /// The points of the next tier.
    pub next_tier_from: Option<i64>,
}

impl Benefits {
    pub fn of(tier: Option<Tier>) -> Benefits {
        let (presale_phase, presale_label, transfer_fee_percent, next_tier_from) = match tier {
            Some(Tier::Diamond) => (Some(1), "선예매 1", Some(5), None),
            Some(Tier::Gold) => (Some(2), "선예매 2", Some(5), Some(DIAMOND_FROM)),
            Some(Tier::Silver) => (Some(3), "선예매 3", Some(10), Some(GOLD_FROM)),
            None => (None, "일반예매", None, None),
        };
        let booking_fee = tier.map_or(Won::ZERO, presale_fee);
        Benefits { presale_phase, presale_label, booking_fee, transfer_fee_percent, next_tier_from }
    }
}

/// A tier as it is sent.
pub fn tier_name(tier: Option<Tier>) -> &'static str {
    tier.map_or("bronze", Tier::name)
}

#[cfg(test)]
mod tests;
