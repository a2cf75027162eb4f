//! Rules of memberships: years that are bought one after the other, and points that make a tier.
//!
//! The caller loads the membership under its lock and writes the decision. Every step of a payment
//! can be repeated: [`Transition::AlreadyDone`] means that it was taken before.

use std::time::Duration;
use urr_storage::{storable_enum, storable_id};

use jiff::tz::Offset;
use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won, define_id, named_enum, presale_delay};
use utoipa::ToSchema;

use crate::inventory::rules::{Tier, presale_fee};
use crate::memberships::points::{DIAMOND_FROM, GOLD_FROM, TIERS};
use crate::payables::attempts::EndedAttempts;
use crate::reservations::rules::{PaymentClaim, Transition};

define_id!(
    /// Which membership.
    MembershipId
);
storable_id!(MembershipId);

/// Years are those of Korea's calendar, which knows no summer time.
const KOREA: Offset = Offset::constant(9);

/// How long before its end a membership can be renewed.
const RENEWABLE_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// An artist as the catalog announced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipArtist {
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
    /// None if the artist was not announced yet.
    pub artist: Option<MembershipArtist>,
    /// By its points, active or not.
    pub tier: Tier,
    /// Those that count.
    pub points: i64,
    /// Of purchases that can still be cancelled for free: they do not count yet.
    pub pending_points: i64,
    /// None: it was never paid.
    pub joined_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    /// Whether its beginning was announced and its end was not yet.
    pub is_live: bool,
    /// The number of the last term.
    pub last_term: i64,
    /// The attempts to pay that have released a term.
    pub ended_attempts: EndedAttempts,
    pub term: Option<MembershipTerm>,
}

/// A year that can be bought, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipTerm {
    pub number: i64,
    pub payment_status: TermPaymentStatus,
    /// The price, fixed when a payment begins.
    pub amount: Option<Won>,
    pub pinned_by: Option<Uuid>,
    pub payment_id: Option<Uuid>,
    /// None: it is not paid.
    pub period: Option<TermPeriod>,
}

/// When a term begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermPeriod {
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermPaymentStatus {
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
pub enum MembershipRejection {
    #[error("There is no such membership.")]
    NotFound,
    #[error("There is no such artist.")]
    ArtistNotFound,
    #[error("You are a member, and for longer than a month.")]
    AlreadyMember,
    #[error("Nothing of this membership is to be paid.")]
    NotForSale,
    #[error("A payment of this membership is under way.")]
    PaymentInProgress,
    #[error("This payment has not pinned the membership.")]
    NotPinned,
    #[error("This attempt to pay is over.")]
    AttemptOver,
    #[error("This year is paid.")]
    Paid,
    #[error("This year was refunded.")]
    Refunded,
    #[error("This payment has not paid for the membership.")]
    NotRefunding,
    #[error("The membership has changed in the meantime.")]
    StaleToken,
    #[error("This is not the amount of the membership.")]
    WrongAmount,
}

storable_enum!(TermPaymentStatus { Unpaid => "unpaid", Paid => "paid", Refunded => "refunded" });

named_enum!(MembershipStatus { Pending => "pending", Active => "active", Expired => "expired" });

impl Membership {
    /// A membership ends at its time, whether that was announced or not (F-12).
    pub fn status(&self, now: Timestamp) -> MembershipStatus {
        match self.joined_at {
            None => MembershipStatus::Pending,
            Some(_) if now < self.expires_at => MembershipStatus::Active,
            Some(_) => MembershipStatus::Expired,
        }
    }

    /// The tier that counts now. None is the general public.
    pub fn effective_tier(&self, now: Timestamp) -> Option<Tier> {
        (self.status(now) == MembershipStatus::Active).then_some(self.tier)
    }

    /// From when on the next year can be bought.
    pub fn renewable_from(&self) -> Option<Timestamp> {
        self.joined_at.map(|_| self.expires_at - RENEWABLE_FOR)
    }

    fn unpaid_term(&self) -> Option<&MembershipTerm> {
        self.term.as_ref().filter(|term| term.payment_status == TermPaymentStatus::Unpaid)
    }

    /// Whether a year is waiting to be paid.
    pub fn is_for_sale(&self) -> bool {
        self.unpaid_term().is_some()
    }

    /// What the term costs, or has cost.
    pub fn amount(&self) -> Won {
        let fixed = self.term.as_ref().filter(|term| {
            term.pinned_by.is_some() || term.payment_status != TermPaymentStatus::Unpaid
        });
        let price = self.artist.as_ref().map(|artist| artist.price);
        fixed.and_then(|term| term.amount).or(price).unwrap_or(Won::ZERO)
    }
}

/// Whether a fan may begin to buy a year: [`Transition::Done`] is one that waits to be paid already.
pub fn decide_subscribe(
    membership: Option<&Membership>,
    now: Timestamp,
) -> Result<Transition, MembershipRejection> {
    let Some(membership) = membership else { return Ok(Transition::Apply) };
    if membership.is_for_sale() {
        return Ok(Transition::AlreadyDone);
    }
    match membership.renewable_from() {
        Some(from) if now < from => Err(MembershipRejection::AlreadyMember),
        _ => Ok(Transition::Apply),
    }
}

/// Whether the last term can be paid now, and for how much.
pub fn decide_pay(membership: &Membership) -> Result<Won, MembershipRejection> {
    let term = membership.term.as_ref().ok_or(MembershipRejection::NotForSale)?;
    match term.payment_status {
        TermPaymentStatus::Unpaid if term.pinned_by.is_some() => {
            Err(MembershipRejection::PaymentInProgress)
        }
        TermPaymentStatus::Unpaid => {
            let artist = membership.artist.as_ref().ok_or(MembershipRejection::ArtistNotFound)?;
            Ok(artist.price)
        }
        TermPaymentStatus::Paid => Err(MembershipRejection::Paid),
        TermPaymentStatus::Refunded => Err(MembershipRejection::NotForSale),
    }
}

/// A payment is about to charge and fixes the price. The term is the one that it names.
pub fn decide_pin(
    membership: &Membership,
    claim: &PaymentClaim,
    attempt: i64,
) -> Result<Transition, MembershipRejection> {
    if membership.ended_attempts.contains(claim.payment_id, attempt) {
        return Err(MembershipRejection::AttemptOver);
    }
    let term = membership.term.as_ref().ok_or(MembershipRejection::StaleToken)?;
    if term.number != membership.last_term {
        return Err(MembershipRejection::StaleToken);
    }
    if term.pinned_by == Some(claim.payment_id) {
        return check_amount(claim, term.amount).map(|()| Transition::AlreadyDone);
    }
    let price = decide_pay(membership)?;
    check_amount(claim, Some(price)).map(|()| Transition::Apply)
}

/// An attempt to pay has failed. The term is the one that the payment has pinned or paid. Without
/// one the attempt is recorded all the same, because the pin may still be on its way.
pub fn decide_unpin(
    membership: &Membership,
    payment_id: Uuid,
    attempt: i64,
) -> Result<Transition, MembershipRejection> {
    if membership.ended_attempts.contains(payment_id, attempt) {
        return Ok(Transition::AlreadyDone);
    }
    match membership.term.as_ref().map(|term| term.payment_status) {
        None | Some(TermPaymentStatus::Unpaid) => Ok(Transition::Apply),
        Some(TermPaymentStatus::Paid) => Err(MembershipRejection::Paid),
        Some(TermPaymentStatus::Refunded) => Ok(Transition::AlreadyDone),
    }
}

/// A payment was made. Only the one that pinned the term buys it. The term is the one it names.
pub fn decide_confirm(
    membership: &Membership,
    claim: &PaymentClaim,
) -> Result<Transition, MembershipRejection> {
    let term = membership.term.as_ref().ok_or(MembershipRejection::StaleToken)?;
    let is_its_own = term.payment_id == Some(claim.payment_id);
    let step = match (term.payment_status, term.pinned_by) {
        (TermPaymentStatus::Unpaid, Some(by)) if by == claim.payment_id => Transition::Apply,
        (TermPaymentStatus::Unpaid, Some(_)) => return Err(MembershipRejection::PaymentInProgress),
        (TermPaymentStatus::Unpaid, None) => return Err(MembershipRejection::NotPinned),
        (TermPaymentStatus::Paid, _) if is_its_own => Transition::AlreadyDone,
        (TermPaymentStatus::Paid, _) => return Err(MembershipRejection::Paid),
        (TermPaymentStatus::Refunded, _) => return Err(MembershipRejection::Refunded),
    };
    check_amount(claim, term.amount).map(|()| step)
}

fn check_amount(claim: &PaymentClaim, amount: Option<Won>) -> Result<(), MembershipRejection> {
    match amount == Some(claim.amount) {
        true => Ok(()),
        false => Err(MembershipRejection::WrongAmount),
    }
}

/// The money of a term is back; none: all of it. The term is the one that the payment has paid.
pub fn decide_refunded(
    membership: &Membership,
    amount: Option<Won>,
) -> Result<Transition, MembershipRejection> {
    let term = membership.term.as_ref().ok_or(MembershipRejection::NotRefunding)?;
    let step = match term.payment_status {
        TermPaymentStatus::Unpaid => return Err(MembershipRejection::NotRefunding),
        TermPaymentStatus::Paid => Transition::Apply,
        TermPaymentStatus::Refunded => Transition::AlreadyDone,
    };
    match amount.is_none_or(|amount| term.amount == Some(amount)) {
        true => Ok(step),
        false => Err(MembershipRejection::WrongAmount),
    }
}

/// The year that is bought now: after the current one if that has not ended.
pub fn next_period(membership: &Membership, now: Timestamp) -> TermPeriod {
    let starts_at = match membership.status(now) {
        MembershipStatus::Active => membership.expires_at,
        MembershipStatus::Pending | MembershipStatus::Expired => now,
    };
    let year = jiff::Span::new().years(1);
    let end = KOREA.to_datetime(starts_at).checked_add(year);
    let ends_at = end.and_then(|end| KOREA.to_timestamp(end));
    TermPeriod { starts_at, ends_at: ends_at.expect("the calendar goes on for thousands of years") }
}

/// Removes a term: the rest of it is cut, and later terms move forward. `paid` are the other paid
/// terms with their numbers. Returns the terms that move.
pub fn cut_period(
    gone: TermPeriod,
    paid: &[(i64, TermPeriod)],
    now: Timestamp,
) -> (Duration, Vec<(i64, TermPeriod)>) {
    let from = gone.starts_at.max(now);
    let cut = Duration::try_from(gone.ends_at.duration_since(from)).unwrap_or(Duration::ZERO);
    let is_behind = |(_, period): &&(i64, TermPeriod)| period.starts_at >= gone.ends_at;
    let moved = paid.iter().filter(is_behind).map(|(number, period)| {
        (*number, TermPeriod { starts_at: period.starts_at - cut, ends_at: period.ends_at - cut })
    });
    (cut, moved.collect())
}

/// What a tier takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Benefits {
    /// `bronze` (no membership that counts), `silver`, `gold` or `diamond`.
    #[schema(example = "gold")]
    pub tier: &'static str,
    /// The points from which on it is reached. None: without a membership.
    #[schema(example = 500)]
    pub points_from: Option<i64>,
    /// In which wave of a pre-sale one may buy. None: when everybody may.
    #[schema(example = 2)]
    pub pre_sale_phase: Option<u8>,
    #[schema(example = "선예매 2")]
    pub pre_sale_label: &'static str,
    /// How long after the start of a pre-sale one may buy.
    #[schema(example = 3_600)]
    pub pre_sale_delay_seconds: u64,
    /// The booking fee of a purchase in a pre-sale. The general sale has none (B-7).
    #[schema(value_type = i64, example = 2_000)]
    pub booking_fee_surcharge: Won,
    /// Whether one may pass tickets of the artist on.
    pub transfer_access: bool,
    #[schema(example = 5)]
    pub transfer_fee_percent: Option<u8>,
    /// The points from which on the next tier is reached.
    #[schema(example = 1_500)]
    pub next_tier_threshold: Option<i64>,
}

impl Benefits {
    /// Of every tier, the highest first and the general public last.
    pub fn of_all_tiers() -> Vec<Benefits> {
        let members = TIERS.map(|(tier, _)| Some(tier));
        members.into_iter().chain([None]).map(Benefits::of).collect()
    }

    /// `None` is the general public, which is called bronze.
    pub fn of(tier: Option<Tier>) -> Benefits {
        let (pre_sale_phase, pre_sale_label, transfer_fee_percent, next_tier_threshold) = match tier
        {
            Some(Tier::Diamond) => (Some(1), "선예매 1", Some(5), None),
            Some(Tier::Gold) => (Some(2), "선예매 2", Some(5), Some(DIAMOND_FROM)),
            Some(Tier::Silver) => (Some(3), "선예매 3", Some(10), Some(GOLD_FROM)),
            None => (None, "일반예매", None, None),
        };
        let reached = TIERS.into_iter().find(|(one, _)| Some(*one) == tier);
        Benefits {
            tier: tier_name(tier),
            points_from: reached.map(|(_, points)| points),
            pre_sale_phase,
            pre_sale_label,
            pre_sale_delay_seconds: presale_delay(tier).as_secs(),
            booking_fee_surcharge: tier.map_or(Won::ZERO, presale_fee),
            transfer_access: transfer_fee_percent.is_some(),
            transfer_fee_percent,
            next_tier_threshold,
        }
    }
}

/// A tier as it is sent.
pub fn tier_name(tier: Option<Tier>) -> &'static str {
    tier.map_or("bronze", Tier::as_str)
}

#[cfg(test)]
mod tests;
