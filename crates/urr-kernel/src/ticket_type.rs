//! The rules for ticket types, shared by the catalog service, which orders them, and the ticket
//! service, which sells them.

use crate::{Won, one_line, paragraphs};

/// The bounds of a type of tickets.
pub mod limits {
    pub const NAME_CHARS_MAX: usize = 100;
    pub const DESCRIPTION_CHARS_MAX: usize = 500;
    /// Of anything that is sold, seats too.
    pub const PRICE_MAX_WON: i64 = 10_000_000;
    pub const TOTAL_MAX: u32 = 100_000;
    pub const PER_EVENT_MAX: usize = 20;
}

use limits::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, PRICE_MAX_WON, TOTAL_MAX};

/// A ticket type as it was requested. Only [`TicketTypeDraft::parse`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketTypeDraft {
    name: String,
    description: String,
    price: Won,
    total: u32,
}

/// Why a ticket type is refused.
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

impl TicketTypeDraft {
    pub fn parse(
        name: &str,
        description: &str,
        price: i64,
        total: i64,
    ) -> Result<TicketTypeDraft, InvalidTicketType> {
        let name = one_line(name, NAME_CHARS_MAX).map_err(|_| InvalidTicketType::Name)?;
        let description = paragraphs(description, DESCRIPTION_CHARS_MAX)
            .map_err(|_| InvalidTicketType::Description)?;
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

    /// Trimmed, one line.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Trimmed; it may be empty or have several lines.
    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn price(&self) -> Won {
        self.price
    }

    pub fn total(&self) -> u32 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((draft.name(), draft.description()), ("가", "한 줄\r\n\t두 줄"));
    }
}
