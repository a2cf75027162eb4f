//! Rules of alerts: when a fan is told of an opening, and who is told of returned seats.

use std::collections::BTreeMap;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};

use crate::{SalePolicy, SaleStatus, Tier};

/// An opening that is longer ago is no news.
pub const LATE_MAX: Duration = Duration::from_mins(30);

/// The most seats that an alert can be about.
pub const QUANTITY_MAX: u32 = 10;

const TIERS: [Option<Tier>; 4] = [Some(Tier::Diamond), Some(Tier::Gold), Some(Tier::Silver), None];

/// What a seat alert is about: a grade, a ticket type or the whole event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertSubject(String);

impl AlertSubject {
    pub fn whole_event() -> AlertSubject {
        AlertSubject(String::new())
    }

    /// `grade` is not empty.
    pub fn grade(grade: &str) -> AlertSubject {
        AlertSubject(grade.to_owned())
    }

    pub fn ticket_type(id: Uuid) -> AlertSubject {
        AlertSubject(id.to_string())
    }

    pub(crate) fn stored(text: String) -> AlertSubject {
        AlertSubject(text)
    }

    /// As it is stored; empty for the whole event.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_whole_event(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a seat of this grade, or a ticket of this type, is what it is about.
    pub fn covers(&self, grade: &str) -> bool {
        self.is_whole_event() || self.0 == grade
    }

    /// Whether some seat can be what both are about.
    pub fn overlaps(&self, other: &AlertSubject) -> bool {
        self.is_whole_event() || other.is_whole_event() || self == other
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An alert is about 1 to {QUANTITY_MAX} seats.")]
pub struct InvalidAlertQuantity;

pub fn parse_quantity(quantity: u32) -> Result<u32, InvalidAlertQuantity> {
    match (1..=QUANTITY_MAX).contains(&quantity) {
        true => Ok(quantity),
        false => Err(InvalidAlertQuantity),
    }
}

/// What becomes of a sale alert that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleAlertStep {
    Tell { opens_at: Timestamp },
    Wait { until: Timestamp },
    End,
}

/// Decides about a sale alert. `told_opens_at` is the opening that the fan was told.
///
/// A tier may change until the general sale opens, so the alert is looked at before the opening of
/// every tier.
pub fn decide_sale_alert(
    policy: &SalePolicy,
    tier: Option<Tier>,
    told_opens_at: Option<Timestamp>,
    lead: Duration,
    now: Timestamp,
) -> SaleAlertStep {
    let opens_at = policy.opens_at(tier);
    let is_over = now >= opens_at + LATE_MAX || now >= policy.sale_ends_at;
    if policy.status != SaleStatus::Open || is_over {
        return SaleAlertStep::End;
    }
    if told_opens_at == Some(opens_at) {
        return SaleAlertStep::Wait { until: opens_at + LATE_MAX };
    }
    if now >= opens_at - lead {
        return SaleAlertStep::Tell { opens_at };
    }
    let looks = TIERS.iter().map(|tier| policy.opens_at(*tier) - lead);
    let until = looks.filter(|look| *look > now).min();
    SaleAlertStep::Wait { until: until.expect("the opening of this tier is one of them") }
}

/// A fan who waits for returned seats, as far as the choice goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatWish {
    pub subject: AlertSubject,
    pub quantity: u32,
}

/// What is free, less what fans in their head start were told of.
#[derive(Clone, Debug)]
pub struct OfferBudget {
    by_grade: BTreeMap<String, i64>,
    total: i64,
}

impl OfferBudget {
    /// `free` has every grade or ticket type; `claims` are the wishes of fans in their head start.
    pub fn new(free: &BTreeMap<String, u32>, claims: &[SeatWish]) -> OfferBudget {
        let by_grade: BTreeMap<String, i64> =
            free.iter().map(|(grade, count)| (grade.clone(), i64::from(*count))).collect();
        let total = by_grade.values().sum();
        let mut budget = OfferBudget { by_grade, total };
        claims.iter().for_each(|claim| budget.take(claim));
        budget
    }

    /// Takes what the wish needs, if it is there.
    pub fn try_take(&mut self, wish: &SeatWish) -> bool {
        let quantity = i64::from(wish.quantity);
        let of_grade = match wish.subject.is_whole_event() {
            true => self.total,
            false => self.by_grade.get(wish.subject.as_str()).copied().unwrap_or(0),
        };
        let fits = quantity <= of_grade && quantity <= self.total;
        if fits {
            self.take(wish);
        }
        fits
    }

    fn take(&mut self, wish: &SeatWish) {
        let quantity = i64::from(wish.quantity);
        self.total -= quantity;
        if let Some(left) = self.by_grade.get_mut(wish.subject.as_str()) {
            *left -= quantity;
        }
    }
}

/// How many seats a subject has among the free ones.
pub fn free_of(free: &BTreeMap<String, u32>, subject: &AlertSubject) -> u32 {
    free.iter().filter(|(grade, _)| subject.covers(grade)).map(|(_, count)| *count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: Duration = Duration::from_mins(10);

    fn at(text: &str) -> Timestamp {
        format!("2026-12-{text}:00Z").parse().expect("a time")
    }

    fn policy() -> SalePolicy {
        SalePolicy {
            status: SaleStatus::Open,
            is_complete: true,
            artist_id: Some(Uuid::from_u128(1)),
            starts_at: at("24T10:00"),
            sale_starts_at: at("05T11:00"),
            sale_ends_at: at("20T00:00"),
            has_presale: false,
            seats_per_user_max: 4,
            requires_identity: false,
            cancel_policy: None,
        }
    }

    fn decide(policy: &SalePolicy, tier: Option<Tier>, told: Option<&str>, now: &str) -> String {
        let told = told.map(at);
        let step = decide_sale_alert(policy, tier, told, LEAD, at(now));
        let short = |time: Timestamp| time.strftime("%dT%H:%M").to_string();
        match step {
            SaleAlertStep::Tell { opens_at } => format!("tell {}", short(opens_at)),
            SaleAlertStep::Wait { until } => format!("wait {}", short(until)),
            SaleAlertStep::End => "end".to_owned(),
        }
    }

    #[test]
    fn a_fan_is_told_shortly_before_the_opening_and_once() {
        let open = policy();
        for (told, now, expected) in [
            (None, "04T00:00", "wait 05T10:50"),
            (None, "05T10:50", "tell 05T11:00"),
            (None, "05T11:20", "tell 05T11:00"),
            (None, "05T11:30", "end"),
            (Some("05T11:00"), "05T10:50", "wait 05T11:30"),
            (Some("05T11:00"), "05T11:30", "end"),
            // It was moved after the fan was told.
            (Some("05T09:00"), "05T10:00", "wait 05T10:50"),
            (Some("05T09:00"), "05T10:55", "tell 05T11:00"),
        ] {
            assert_eq!(decide(&open, None, told, now), expected, "{told:?} {now}");
        }
        let closed = SalePolicy { status: SaleStatus::Cancelled, ..policy() };
        assert_eq!(decide(&closed, None, None, "05T10:55"), "end");
    }

    #[test]
    fn in_a_presale_the_tier_of_the_moment_decides() {
        let presale = SalePolicy { has_presale: true, ..policy() };
        for (tier, now, expected) in [
            (None, "05T10:55", "wait 05T11:50"),
            (None, "05T11:50", "wait 06T10:50"),
            (None, "07T10:50", "tell 07T11:00"),
            (Some(Tier::Gold), "05T11:50", "tell 05T12:00"),
            (Some(Tier::Diamond), "05T10:50", "tell 05T11:00"),
            // A fan who becomes a member when members can buy already.
            (Some(Tier::Gold), "06T10:50", "end"),
        ] {
            assert_eq!(decide(&presale, tier, None, now), expected, "{tier:?} {now}");
        }
    }

    fn wish(text: &str) -> SeatWish {
        let (subject, quantity) = text.split_once(' ').expect("a subject and a number");
        let subject = AlertSubject(subject.trim_start_matches('*').to_owned());
        SeatWish { subject, quantity: quantity.parse().expect("a number") }
    }

    fn check_budget(free: &[(&str, u32)], claims: &[&str], wishes: &[&str], told: &[bool]) {
        let free = free.iter().map(|(grade, count)| ((*grade).to_owned(), *count)).collect();
        let claims: Vec<SeatWish> = claims.iter().map(|text| wish(text)).collect();
        let mut budget = OfferBudget::new(&free, &claims);
        let found: Vec<bool> = wishes.iter().map(|text| budget.try_take(&wish(text))).collect();
        assert_eq!(found, told, "{free:?} {claims:?} {wishes:?}");
    }

    #[test]
    fn as_many_are_told_as_there_are_seats_for_in_the_order_of_asking() {
        let free = [("VIP", 2), ("R", 1)];
        check_budget(&free, &[], &["VIP 1", "VIP 1", "VIP 1"], &[true, true, false]);
        check_budget(&free, &[], &["VIP 4", "VIP 2", "R 1"], &[false, true, true]);
        check_budget(&free, &["VIP 1"], &["VIP 2", "VIP 1", "R 1"], &[false, true, true]);
        check_budget(&free, &[], &["* 3", "VIP 1", "R 1"], &[true, false, false]);
        check_budget(&free, &["R 1", "VIP 2"], &["* 1", "R 1"], &[false, false]);
        check_budget(&free, &[], &["S 1", "* 4"], &[false, false]);
        // More was told of than is there: somebody else was faster.
        check_budget(&[("VIP", 0)], &["VIP 2"], &["VIP 1"], &[false]);
    }
}
