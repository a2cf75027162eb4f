//! Money: whole won, checked arithmetic, no fractions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in Korean won. It may be negative: a ledger has two sides.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Won(i64);

/// A sum that does not fit 64 bits: always a mistake, never rounded or wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the amount does not fit")]
pub struct MoneyOverflow;

impl Won {
    pub const ZERO: Won = Won(0);

    pub const fn new(amount: i64) -> Won {
        Won(amount)
    }

    pub const fn amount(self) -> i64 {
        self.0
    }

    pub fn plus(self, other: Won) -> Result<Won, MoneyOverflow> {
        self.0.checked_add(other.0).map(Won).ok_or(MoneyOverflow)
    }

    pub fn minus(self, other: Won) -> Result<Won, MoneyOverflow> {
        self.0.checked_sub(other.0).map(Won).ok_or(MoneyOverflow)
    }

    pub fn times(self, count: i64) -> Result<Won, MoneyOverflow> {
        self.0.checked_mul(count).map(Won).ok_or(MoneyOverflow)
    }

    /// A percentage of the amount, rounded down to a whole won.
    pub fn percent(self, percent: u8) -> Result<Won, MoneyOverflow> {
        Ok(Won(self.times(i64::from(percent))?.0.div_euclid(100)))
    }
}

impl fmt::Display for Won {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.unsigned_abs().to_string();
        let sign = if self.0 < 0 { "-" } else { "" };
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        write!(f, "{sign}{grouped}원")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_groups_of_three() {
        assert_eq!(Won::new(0).to_string(), "0원");
        assert_eq!(Won::new(30_000).to_string(), "30,000원");
        assert_eq!(Won::new(-1_234_567).to_string(), "-1,234,567원");
        assert_eq!(Won::new(i64::MIN).to_string(), "-9,223,372,036,854,775,808원");
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        assert_eq!(Won::new(i64::MAX).plus(Won::new(1)), Err(MoneyOverflow));
        assert_eq!(Won::new(i64::MIN).minus(Won::new(1)), Err(MoneyOverflow));
        assert_eq!(Won::new(i64::MAX).times(2), Err(MoneyOverflow));
    }

    #[test]
    fn a_percentage_is_rounded_down() {
        assert_eq!(Won::new(999).percent(10), Ok(Won::new(99)));
        assert_eq!(Won::new(30_000).percent(5), Ok(Won::new(1_500)));
    }
}
