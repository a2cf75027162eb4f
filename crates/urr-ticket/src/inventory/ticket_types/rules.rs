//! Rules of ticket types. `TicketTypeDraft` has the limits of their values.

use serde::Serialize;
use urr_kernel::{TicketTypeDraft, Uuid, Won};
use utoipa::ToSchema;

use crate::inventory::store::NewTicketType;

/// A ticket type with its stock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TicketTypeStock {
    pub id: Uuid,
    pub event_id: Uuid,
    pub name: String,
    pub description: String,
    /// In won.
    #[schema(value_type = i64, example = 88_000)]
    pub price: Won,
    pub total: u32,
    /// Neither held nor sold.
    pub available: u32,
}

/// Why a ticket type cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketTypeRejection {
    #[error("The total cannot be below the {sold} held or sold.")]
    BelowSold { sold: u32 },
    #[error("The price cannot change any more: {sold} are held or sold.")]
    PriceIsFixed { sold: u32 },
}

impl NewTicketType {
    pub fn new(id: Uuid, draft: &TicketTypeDraft) -> NewTicketType {
        NewTicketType {
            id,
            name: draft.name().to_owned(),
            description: draft.description().to_owned(),
            price: draft.price(),
            total: draft.total(),
        }
    }
}

impl TicketTypeStock {
    /// How many are held or sold.
    pub fn sold(&self) -> u32 {
        self.total.checked_sub(self.available).expect("no more are available than there are")
    }

    /// The changed ticket type; sold tickets stay sold. The caller has the event's lock.
    pub fn change(&self, to: &TicketTypeDraft) -> Result<TicketTypeStock, TicketTypeRejection> {
        let sold = self.sold();
        if sold > 0 && to.price() != self.price {
            return Err(TicketTypeRejection::PriceIsFixed { sold });
        }
        let available =
            to.total().checked_sub(sold).ok_or(TicketTypeRejection::BelowSold { sold })?;
        Ok(TicketTypeStock {
            id: self.id,
            event_id: self.event_id,
            name: to.name().to_owned(),
            description: to.description().to_owned(),
            price: to.price(),
            total: to.total(),
            available,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(price: i64, total: i64) -> TicketTypeDraft {
        TicketTypeDraft::parse("스탠딩 A", "", price, total).unwrap()
    }

    fn ticket_type(total: u32, available: u32) -> TicketTypeStock {
        TicketTypeStock {
            id: Uuid::from_u128(1),
            event_id: Uuid::from_u128(2),
            name: "스탠딩".to_owned(),
            description: String::new(),
            price: Won::new(50_000),
            total,
            available,
        }
    }

    #[test]
    fn what_was_sold_stays_sold() {
        let changed = ticket_type(100, 70).change(&draft(50_000, 40)).unwrap();
        assert_eq!((changed.total, changed.available, changed.sold()), (40, 10, 30));
        let sold_out = ticket_type(100, 70).change(&draft(50_000, 30)).unwrap();
        assert_eq!(sold_out.available, 0);
        let below = ticket_type(100, 70).change(&draft(50_000, 29));
        assert_eq!(below, Err(TicketTypeRejection::BelowSold { sold: 30 }));
    }

    #[test]
    fn a_price_changes_only_before_the_first_sale() {
        assert_eq!(ticket_type(5, 5).change(&draft(1, 5)).unwrap().price, Won::new(1));
        let refused = ticket_type(5, 4).change(&draft(1, 5));
        assert_eq!(refused, Err(TicketTypeRejection::PriceIsFixed { sold: 1 }));
    }
}
