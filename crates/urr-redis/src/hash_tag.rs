//! Hash tags: the part of a key in braces, which alone decides where a Cluster keeps it.

/// The text as a hash tag: `{text}`, to be put into keys that one script uses together, as in
/// `format!("{}:queue", hash_tag(event_id))`.
///
/// Braces inside the text would end the tag early and send keys apart, so they are escaped; two
/// texts never give the same tag.
pub fn hash_tag(text: &str) -> String {
    let mut tag = String::with_capacity(text.len() + 2);
    tag.push('{');
    for character in text.chars() {
        match character {
            '%' => tag.push_str("%25"),
            '{' => tag.push_str("%7B"),
            '}' => tag.push_str("%7D"),
            other => tag.push(other),
        }
    }
    if text.is_empty() {
        // Empty braces are no tag. A `%` alone is the escape of nothing else.
        tag.push('%');
    }
    tag.push('}');
    tag
}

/// The slot of a key, as the Cluster specification defines it: CRC-16 (XMODEM) of the hash tag or,
/// without one, of the key.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % 16_384
}

#[cfg(test)]
mod tests {
    use redis::cluster_routing::Slot;

    use super::*;

    #[test]
    fn keys_with_one_tag_share_a_slot_whatever_is_in_the_tag() {
        for text in ["a", "", "}", "{}", "a}b{c", "50%", "%7D", "김{"] {
            let tag = hash_tag(text);
            let [one, two] = [format!("rate:{tag}"), format!("{tag}:queue")];
            assert_eq!(slot_of(&one), slot_of(&two), "{text}");
        }
        assert_ne!(slot_of("rate:{}}:a"), slot_of("rate:{}}:b"), "the control: not escaped");
    }

    #[test]
    fn different_texts_have_different_tags() {
        for (one, two) in [("", "%"), ("}", "%7D"), ("{", "%7B"), ("%", "%25")] {
            assert_ne!(hash_tag(one), hash_tag(two));
        }
    }

    #[test]
    fn slots_are_those_of_the_client_library() {
        for key in ["", "a", "123456789", "rate:{user:1}", "{}x", "{a}{b}", "x{", "가{나}다"] {
            assert_eq!(Slot::new(slot_of(key)), Some(Slot::for_key(key)), "{key}");
        }
    }
}
