//! Lower-case hexadecimal: how digests, tags and random ids are written.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two digits per byte.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Reads what [`encode`] writes. Capital letters and an odd number of digits are refused, so that
/// a value has one spelling.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit_value(*high)? << 4 | digit_value(*low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Like [`decode`], for a value whose length is known.
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_spelling() {
        assert_eq!(encode([0x00, 0x1f, 0xa0]), "001fa0");
        assert_eq!(decode("001fa0"), Some(vec![0x00, 0x1f, 0xa0]));
        assert_eq!(decode_array("001fa0"), Some([0x00, 0x1f, 0xa0]));
        assert_eq!(decode(""), Some(Vec::new()));
        for bad in ["001FA0", "001fa", "001fa00", "001fg0", "+01fa0", "가나"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
        assert_eq!(decode_array::<2>("001fa0"), None);
    }
}
