//! Idempotency keys: the client's name for a request, so that a retry has no second effect.

const CHARS_MAX: usize = 64;

/// A key is unique per user: others may use the same text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An idempotency key has 1 to {CHARS_MAX} visible characters.")]
pub struct InvalidIdempotencyKey;

impl IdempotencyKey {
    pub fn parse(text: &str) -> Result<IdempotencyKey, InvalidIdempotencyKey> {
        let length = text.chars().count();
        let is_visible = text.chars().all(|c| !c.is_control() && !c.is_whitespace());
        match (1..=CHARS_MAX).contains(&length) && is_visible {
            true => Ok(IdempotencyKey(text.to_owned())),
            false => Err(InvalidIdempotencyKey),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_short_and_visible() {
        for good in ["a", "form-17", "예매:1", &"가".repeat(64)] {
            assert_eq!(IdempotencyKey::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "a\n", "\u{0}", "\u{3000}", &"a".repeat(65)] {
            assert_eq!(IdempotencyKey::parse(bad), Err(InvalidIdempotencyKey), "{bad:?}");
        }
    }
}
