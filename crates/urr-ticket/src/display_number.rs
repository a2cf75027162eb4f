//! Numbers for people: on tickets, in mails, on the phone.

use urr_kernel::Uuid;

/// Digits and letters that are not taken for one another.
const SIGNS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A letter and twelve signs in groups of four. They are the low bits of the id, which are random:
/// too many to be guessed.
pub fn display_number(letter: char, id: Uuid) -> String {
    let bits = id.as_u128();
    let mut number = String::from(letter);
    for place in (0..12_u32).rev() {
        if place % 4 == 3 {
            number.push('-');
        }
        let sign = usize::try_from((bits >> (place * 5)) & 31).expect("five bits fit");
        number.push(char::from(SIGNS[sign]));
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_made_of_the_last_sixty_bits_of_the_id() {
        assert_eq!(display_number('R', Uuid::nil()), "R-0000-0000-0000");
        assert_eq!(display_number('T', Uuid::max()), "T-ZZZZ-ZZZZ-ZZZZ");
        assert_eq!(display_number('T', Uuid::from_u128(33)), "T-0000-0000-0011");
    }
}
