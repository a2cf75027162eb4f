//! Text that must not be printed, and is compared in constant time.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::hex;

/// A secret. `Debug` hides it, there is no `Display`, and it is compared in constant time.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// A new secret of 32 random bytes, in hexadecimal.
    pub fn generate() -> Secret {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).expect("the operating system has randomness");
        Secret(hex::encode(bytes))
    }

    /// Another secret that follows from this one and a purpose, and from which this one does not
    /// follow: HMAC-SHA256 in hexadecimal.
    pub fn derive(&self, purpose: &str) -> Secret {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        Secret(hex::encode(mac.finalize().into_bytes()))
    }

    /// The text itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `candidate` is this secret, in a time that does not depend on where they differ.
    pub fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "[secret]");
    }

    #[test]
    fn only_the_same_text_matches() {
        let secret = Secret::new("correct horse");
        assert!(secret.matches("correct horse"));
        assert!(!secret.matches("correct hors"));
        assert!(!secret.matches("correct horse "));
        assert!(!secret.matches(""));
    }

    #[test]
    fn derived_secrets_depend_on_root_and_purpose() {
        let root = Secret::new("root");
        assert!(root.derive("a").matches(root.derive("a").expose()));
        assert!(!root.derive("a").matches(root.derive("b").expose()));
        assert!(!root.derive("a").matches(Secret::new("toor").derive("a").expose()));
        // The known answer of HMAC-SHA256 with key "root" and message "a".
        let known = "878db70c743c23a1a3f312bd99a9959af6fd54233395dd77cfa3752e0352ea5f";
        assert_eq!(root.derive("a").expose(), known);
    }

    #[test]
    fn generated_secrets_are_long_and_differ() {
        let (a, b) = (Secret::generate(), Secret::generate());
        assert_eq!(a.expose().len(), 64);
        assert!(!a.matches(b.expose()));
    }
}
