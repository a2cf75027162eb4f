//! Rules of sales: what is sold, to whom and when.

use std::collections::BTreeMap;
use std::time::Duration;
use urr_storage::storable_enum;

pub use urr_kernel::Tier;
use urr_kernel::{CancelPolicy, Timestamp, Uuid, Won, presale_delay};
use urr_layout::{Layout, SeatId};

/// The part of a sale that never changes, so that it can be cached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    pub event_id: Uuid,
    pub kind: InventoryKind,
    pub layout: Layout,
    /// By grade; every grade of the layout has one.
    pub prices: BTreeMap<String, Won>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InventoryKind {
    Seated,
    Standing,
}

/// The current rules of a sale. Read under the lock of the event's sale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalePolicy {
    pub status: SaleStatus,
    pub is_complete: bool,
    pub artist_id: Option<Uuid>,
    /// When the event begins.
    pub starts_at: Timestamp,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    /// Whether only persons with a checked identity may buy, each within the limit.
    pub requires_identity: bool,
    /// The cancellation fees of the event; none: the usual ones.
    pub cancel_policy: Option<CancelPolicy>,
}

/// In this order: a closed sale never opens again, and a cancelled one stays cancelled even if it
/// is deleted later, because everybody is owed a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SaleStatus {
    Open,
    Deleted,
    Cancelled,
}

/// Why a user cannot buy now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOnSale {
    #[error("There is no event with this id.")]
    NotFound,
    #[error("The seats of this event are not ready yet.")]
    Incomplete,
    #[error("This event was cancelled.")]
    Cancelled,
    #[error("The sale has not begun.")]
    NotOpen { opens_at: Timestamp },
    /// The sale has begun, but only for members of a higher tier.
    #[error("Only members can buy at the moment.")]
    Presale { opens_at: Timestamp },
    #[error("The sale is over.")]
    Ended,
}

storable_enum!(InventoryKind { Seated => "seated", Standing => "standing" });

storable_enum!(SaleStatus { Open => "open", Cancelled => "cancelled", Deleted => "deleted" });

/// The booking fee of a purchase in a pre-sale, once per reservation.
pub fn presale_fee(tier: Tier) -> Won {
    match tier {
        Tier::Silver => Won::new(3_000),
        Tier::Gold => Won::new(2_000),
        Tier::Diamond => Won::new(1_000),
    }
}

impl SalePolicy {
    /// When a user of this tier may buy: members of the artist earlier, if there is a pre-sale.
    pub fn opens_at(&self, tier: Option<Tier>) -> Timestamp {
        let after = if self.has_presale { presale_delay(tier) } else { Duration::ZERO };
        self.sale_starts_at + after
    }

    /// Whether the tier still decides who may buy.
    pub fn is_before_general_sale(&self, now: Timestamp) -> bool {
        self.has_presale && now < self.opens_at(None)
    }

    /// The booking fee of a reservation that a user of this tier makes now (B-3).
    pub fn booking_fee(&self, tier: Option<Tier>, now: Timestamp) -> Won {
        match tier {
            Some(tier) if self.is_before_general_sale(now) => presale_fee(tier),
            _ => Won::ZERO,
        }
    }

    /// Whether a user of this tier may buy now.
    pub fn check_open(&self, tier: Option<Tier>, now: Timestamp) -> Result<(), NotOnSale> {
        match self.status {
            SaleStatus::Open => {}
            SaleStatus::Cancelled => return Err(NotOnSale::Cancelled),
            SaleStatus::Deleted => return Err(NotOnSale::NotFound),
        }
        if !self.is_complete {
            return Err(NotOnSale::Incomplete);
        }
        if now >= self.sale_ends_at {
            return Err(NotOnSale::Ended);
        }
        let opens_at = self.opens_at(tier);
        if now >= opens_at {
            return Ok(());
        }
        match now < self.sale_starts_at {
            true => Err(NotOnSale::NotOpen { opens_at }),
            false => Err(NotOnSale::Presale { opens_at }),
        }
    }
}

impl Inventory {
    /// The labels of seats. A seat that the layout does not have is left out.
    pub fn labels(&self, seat_ids: &[SeatId]) -> Vec<String> {
        let places = seat_ids.iter().filter_map(|seat_id| self.layout.place(*seat_id));
        places.map(|place| place.label()).collect()
    }

    /// The price of a seat; none if there is no such seat.
    pub fn price(&self, seat_id: SeatId) -> Option<Won> {
        let place = self.layout.place(seat_id)?;
        Some(*self.prices.get(&place.section.grade).expect("every grade has a price"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn policy() -> SalePolicy {
        SalePolicy {
            status: SaleStatus::Open,
            is_complete: true,
            artist_id: Some(Uuid::from_u128(1)),
            starts_at: at("2026-12-24T10:00:00Z"),
            sale_starts_at: at("2026-12-01T11:00:00Z"),
            sale_ends_at: at("2026-12-10T00:00:00Z"),
            has_presale: true,
            seats_per_user_max: 4,
            requires_identity: false,
            cancel_policy: None,
        }
    }

    #[test]
    fn b_1_members_buy_before_the_public_by_their_tier() {
        let opens = [
            (Some(Tier::Diamond), "2026-12-01T11:00:00Z"),
            (Some(Tier::Gold), "2026-12-01T12:00:00Z"),
            (Some(Tier::Silver), "2026-12-02T11:00:00Z"),
            (None, "2026-12-03T11:00:00Z"),
        ];
        for (tier, opens_at) in opens {
            let opens_at = at(opens_at);
            let just_before = opens_at - Duration::from_micros(1);
            let refused = match tier {
                Some(Tier::Diamond) => NotOnSale::NotOpen { opens_at },
                _ => NotOnSale::Presale { opens_at },
            };
            assert_eq!(policy().check_open(tier, just_before), Err(refused), "{tier:?}");
            assert_eq!(policy().check_open(tier, opens_at), Ok(()), "{tier:?}");
        }
        let without = SalePolicy { has_presale: false, ..policy() };
        assert_eq!(without.check_open(None, without.sale_starts_at), Ok(()));
    }

    #[test]
    fn b_3_a_purchase_in_a_presale_has_a_fee_by_tier_until_everybody_may_buy() {
        let general = policy().opens_at(None);
        let just_before = general - Duration::from_micros(1);
        let without = SalePolicy { has_presale: false, ..policy() };
        for (tier, fee) in [
            (Some(Tier::Diamond), 1_000),
            (Some(Tier::Gold), 2_000),
            (Some(Tier::Silver), 3_000),
            (None, 0),
        ] {
            assert_eq!(policy().booking_fee(tier, just_before), Won::new(fee), "{tier:?}");
            assert_eq!(policy().booking_fee(tier, general), Won::ZERO, "{tier:?}");
            assert_eq!(without.booking_fee(tier, without.sale_starts_at), Won::ZERO, "{tier:?}");
        }
    }

    #[test]
    fn b_2_nothing_is_sold_outside_of_the_window_or_of_what_is_not_ready() {
        let open = SalePolicy { has_presale: false, ..policy() };
        let during = at("2026-12-05T00:00:00Z");
        assert_eq!(open.check_open(None, during), Ok(()));
        assert_eq!(open.check_open(None, open.sale_ends_at), Err(NotOnSale::Ended));
        let opens_at = open.sale_starts_at;
        let early = at("2026-11-30T00:00:00Z");
        assert_eq!(open.check_open(None, early), Err(NotOnSale::NotOpen { opens_at }));
        let cancelled = SalePolicy { status: SaleStatus::Cancelled, ..open.clone() };
        assert_eq!(cancelled.check_open(None, during), Err(NotOnSale::Cancelled));
        let deleted = SalePolicy { status: SaleStatus::Deleted, ..open.clone() };
        assert_eq!(deleted.check_open(None, during), Err(NotOnSale::NotFound));
        let incomplete = SalePolicy { is_complete: false, ..open };
        assert_eq!(incomplete.check_open(None, during), Err(NotOnSale::Incomplete));
    }
}
