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

/// A number as somebody types it: in any case, with other separators or none, with letters in place
/// of the digits they look like. `None` if it is no number of this letter. A text without a hyphen
/// and without a digit is a name.
pub fn parse_display_number(letter: char, text: &str) -> Option<String> {
    if !text.contains(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let is_separator = |c: char| c == '-' || c.is_whitespace();
    let mut signs = text.trim().chars().filter(|c| !is_separator(*c));
    if signs.next()?.to_ascii_uppercase() != letter {
        return None;
    }
    let mut number = String::from(letter);
    let mut places = 0;
    for sign in signs {
        let sign = match sign.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            sign => sign,
        };
        if !SIGNS.iter().any(|known| char::from(*known) == sign) {
            return None;
        }
        if places % 4 == 0 {
            number.push('-');
        }
        number.push(sign);
        places += 1;
    }
    (places == 12).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_however_it_is_typed_and_a_name_is_none() {
        let parse = |text| parse_display_number('R', text);
        for same in ["R-7ZQ0-M4KD-91XA", " r-7zq0-m4kd-91xa", "R7ZQ0M4KD91XA", "R 7ZQO M4KD 9LXA"] {
            assert_eq!(parse(same).as_deref(), Some("R-7ZQ0-M4KD-91XA"), "{same}");
        }
        for other in
            ["T-7ZQ0-M4KD-91XA", "R-7ZQ0-M4KD-91X", "R-7ZQ0-M4KD-91XAA", "R-7ZQ0-M4KD-91XU"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
        for name in ["", "R", "김민아", "Reza Farahmand", "Rebecca Barnes"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_number_is_made_of_the_last_sixty_bits_of_the_id() {
        assert_eq!(display_number('R', Uuid::nil()), "R-0000-0000-0000");
        assert_eq!(display_number('T', Uuid::max()), "T-ZZZZ-ZZZZ-ZZZZ");
        assert_eq!(display_number('T', Uuid::from_u128(33)), "T-0000-0000-0011");
    }
}
