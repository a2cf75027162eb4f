//! The number on a ticket: short enough to be read out, too many to be guessed.

use urr_kernel::Uuid;

/// Digits and letters that are not taken for one another.
const SYMBOLS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: u32 = 12;

/// The number of a ticket, from the random bits of its id: `T4GZ8-0QKX-M2VD`.
pub fn ticket_number(id: Uuid) -> String {
    let bits = id.as_u128();
    let mut number = String::from("T");
    for place in 0..LENGTH {
        if place == 4 || place == 8 {
            number.push('-');
        }
        let symbol = (bits >> (5 * (LENGTH - 1 - place))) & 31;
        number.push(char::from(SYMBOLS[usize::try_from(symbol).expect("five bits")]));
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_made_of_the_last_sixty_bits_of_the_id() {
        assert_eq!(ticket_number(Uuid::nil()), "T0000-0000-0000");
        assert_eq!(ticket_number(Uuid::max()), "TZZZZ-ZZZZ-ZZZZ");
        assert_eq!(ticket_number(Uuid::from_u128(33)), "T0000-0000-0011");
    }
}
