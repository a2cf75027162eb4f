//! Percent-encoding: text as one part of a URL, or as the value of a header.

/// Every byte but letters, digits and `-._~` becomes `%XX` (RFC 3986, unreserved characters).
pub fn encode(text: &str) -> String {
    encode_except(text, b"-._~")
}

/// Letters, digits and the bytes of `plain` stay as they are; every other byte becomes `%XX`.
pub fn encode_except(text: &str, plain: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The text again. Broken escapes and bytes that are not UTF-8 are refused.
pub fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit_value(rest.next()?)? * 16 + digit_value(rest.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit_value(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_and_only_visible_ascii_travels() {
        for text in ["a@b.kr", "민아@예매.kr", "a b\r\nx-user-role: admin", "100%", ""] {
            let encoded = encode(text);
            assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
            assert_eq!(decode(&encoded).as_deref(), Some(text));
        }
        assert_eq!(encode("../cancel?x#y"), "..%2Fcancel%3Fx%23y");
        assert_eq!(encode_except("a.b@c", b"@"), "a%2Eb@c");
    }

    #[test]
    fn broken_escapes_are_refused() {
        for bad in ["%", "%4", "%zz", "%+1", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
