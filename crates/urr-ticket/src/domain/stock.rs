//! Ticket types: tickets without a seat.

use urr_kernel::{Uuid, Won};

use crate::store::sales::NewTicketType;

pub const NAME_CHARS_MAX: usize = 100;
pub const DESCRIPTION_CHARS_MAX: usize = 500;
pub const PRICE_MAX_WON: i64 = 10_000_000;
pub const TOTAL_MAX: u32 = 100_000;
pub const PER_EVENT_MAX: usize = 20;

/// A ticket type as someone wants it. Only [`TicketTypeDraft::parse`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketTypeDraft {
    name: String,
    description: String,
    price: Won,
    total: u32,
}

/// A ticket type as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketType {
    pub id: Uuid,
    pub event_id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
    pub available: u32,
}

/// Why a ticket type cannot be as wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTicketType {
    #[error("A name has 1 to {NAME_CHARS_MAX} characters.")]
    Name,
    #[error("A description has at most {DESCRIPTION_CHARS_MAX} characters.")]
    Description,
    #[error("A price is from 0 to {PRICE_MAX_WON} won.")]
    Price,
    #[error("There are from 1 to {TOTAL_MAX} tickets of a type.")]
    Total,
}

/// Why a ticket type cannot become what is wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    #[error("more are held or sold")]
    BelowSold { sold: u32 },
    #[error("some are held or sold at the price that it has")]
    PriceIsFixed { sold: u32 },
}

impl TicketTypeDraft {
    pub fn parse(
        name: &str,
        description: &str,
        price: i64,
        total: i64,
    ) -> Result<TicketTypeDraft, InvalidTicketType> {
        let (name, description) = (name.trim(), description.trim());
        let is_unfit = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if name.is_empty()
            || name.chars().count() > NAME_CHARS_MAX
            || name.contains(char::is_control)
        {
            return Err(InvalidTicketType::Name);
        }
        if description.chars().count() > DESCRIPTION_CHARS_MAX || description.contains(is_unfit) {
            return Err(InvalidTicketType::Description);
        }
        let price = Some(Won::new(price)).filter(|price| TicketTypeDraft::is_price(*price));
        let price = price.ok_or(InvalidTicketType::Price)?;
        let total = u32::try_from(total).ok().filter(|total| (1..=TOTAL_MAX).contains(total));
        let total = total.ok_or(InvalidTicketType::Total)?;
        let (name, description) = (name.to_owned(), description.to_owned());
        Ok(TicketTypeDraft { name, description, price, total })
    }

    /// Whether something can cost this.
    pub fn is_price(price: Won) -> bool {
        (0..=PRICE_MAX_WON).contains(&price.amount())
    }

    pub fn into_new(self, id: Uuid) -> NewTicketType {
        let TicketTypeDraft { name, description, price, total } = self;
        NewTicketType { id, name, description, price, total }
    }
}

impl TicketType {
    /// How many are held or sold.
    pub fn sold(&self) -> u32 {
        self.total.checked_sub(self.available).expect("no more are available than there are")
    }

    /// The ticket type as wanted, with what was sold still sold. The caller has the event's lock.
    pub fn change(&self, to: &TicketTypeDraft) -> Result<TicketType, ChangeRefused> {
        let sold = self.sold();
        if sold > 0 && to.price != self.price {
            return Err(ChangeRefused::PriceIsFixed { sold });
        }
        let available = to.total.checked_sub(sold).ok_or(ChangeRefused::BelowSold { sold })?;
        Ok(TicketType {
            id: self.id,
            event_id: self.event_id,
            name: to.name.clone(),
            description: to.description.clone(),
            price: to.price,
            total: to.total,
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

    fn ticket_type(total: u32, available: u32) -> TicketType {
        TicketType {
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
    fn f_13_prices_and_stock_are_never_negative_nor_huge() {
        let parse = |price, total| TicketTypeDraft::parse("A", "", price, total);
        for price in [-1, i64::MIN, PRICE_MAX_WON + 1, i64::MAX] {
            assert_eq!(parse(price, 1), Err(InvalidTicketType::Price), "{price}");
        }
        for total in [0, -1, i64::MIN, i64::from(TOTAL_MAX) + 1, (1 << 32) + 1, i64::MAX] {
            assert_eq!(parse(0, total), Err(InvalidTicketType::Total), "{total}");
        }
        assert!(parse(0, 1).is_ok() && parse(PRICE_MAX_WON, i64::from(TOTAL_MAX)).is_ok());
    }

    #[test]
    fn names_and_descriptions_are_trimmed_and_bounded() {
        let parse = |name: &str, text: &str| TicketTypeDraft::parse(name, text, 0, 1);
        for name in ["", "  ", "a\nb", &"가".repeat(101)] {
            assert_eq!(parse(name, ""), Err(InvalidTicketType::Name), "{name}");
        }
        for text in ["\u{7}", &"가".repeat(501)] {
            assert_eq!(parse("A", text), Err(InvalidTicketType::Description));
        }
        let draft = parse("  가 ", " 한 줄\r\n\t두 줄 ").unwrap();
        assert_eq!((draft.name.as_str(), draft.description.as_str()), ("가", "한 줄\r\n\t두 줄"));
    }

    #[test]
    fn what_was_sold_stays_sold() {
        let changed = ticket_type(100, 70).change(&draft(50_000, 40)).unwrap();
        assert_eq!((changed.total, changed.available, changed.sold()), (40, 10, 30));
        let sold_out = ticket_type(100, 70).change(&draft(50_000, 30)).unwrap();
        assert_eq!(sold_out.available, 0);
        let below = ticket_type(100, 70).change(&draft(50_000, 29));
        assert_eq!(below, Err(ChangeRefused::BelowSold { sold: 30 }));
    }

    #[test]
    fn a_price_changes_only_before_the_first_sale() {
        assert_eq!(ticket_type(5, 5).change(&draft(1, 5)).unwrap().price, Won::new(1));
        let refused = ticket_type(5, 4).change(&draft(1, 5));
        assert_eq!(refused, Err(ChangeRefused::PriceIsFixed { sold: 1 }));
    }
}
