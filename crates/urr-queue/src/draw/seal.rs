//! The secret of a draw as it is stored: encrypted, so that whoever reads the database before the draw
//! cannot compute the order.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use urr_kernel::{Secret, Uuid, hex};

use crate::domain::draw::DrawSecret;

const NONCE_BYTES: usize = 12;

/// Encrypts and decrypts secrets of draws.
#[derive(Clone)]
pub struct DrawSeal(Aes256Gcm);

/// The stored secret was encrypted with another key, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of the draw cannot be decrypted: the key was changed, or the row is damaged")]
pub struct SealedWithOtherKey;

impl DrawSeal {
    /// The key follows from a secret that all processes of an installation share.
    pub fn new(root: &Secret) -> DrawSeal {
        let key = hex::decode(root.derive("urr-queue:draw-secret").expose());
        let key = key.expect("derived secrets are hexadecimal");
        DrawSeal(Aes256Gcm::new_from_slice(&key).expect("a derived key has 32 bytes"))
    }

    /// The nonce, followed by the encrypted secret with its tag.
    pub fn seal(&self, event_id: Uuid, secret: &DrawSecret) -> Vec<u8> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: secret.expose(), aad: event_id.as_bytes() };
        let cipher = self.0.encrypt(&Nonce::from(nonce), payload);
        [&nonce[..], &cipher.expect("a short text can be sealed")].concat()
    }

    pub fn open(&self, event_id: Uuid, sealed: &[u8]) -> Result<DrawSecret, SealedWithOtherKey> {
        let (nonce, cipher) = sealed.split_first_chunk().ok_or(SealedWithOtherKey)?;
        let nonce: [u8; NONCE_BYTES] = *nonce;
        let payload = Payload { msg: cipher, aad: event_id.as_bytes() };
        let secret = self.0.decrypt(&Nonce::from(nonce), payload);
        let secret = secret.ok().and_then(|secret| secret.try_into().ok());
        secret.map(DrawSecret::new).ok_or(SealedWithOtherKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_for_its_event() {
        let [seal, other] = ["one", "another"].map(|root| DrawSeal::new(&Secret::new(root)));
        let (event, secret) = (Uuid::from_u128(1), DrawSecret::new([9; 32]));
        let sealed = seal.seal(event, &secret);
        assert_eq!(seal.open(event, &sealed), Ok(secret.clone()));
        assert!(!sealed.windows(32).any(|window| window == secret.expose()));
        assert_ne!(seal.seal(event, &secret), sealed, "every sealing has its own nonce");
        assert_eq!(other.open(event, &sealed), Err(SealedWithOtherKey));
        assert_eq!(seal.open(Uuid::from_u128(2), &sealed), Err(SealedWithOtherKey));
        assert_eq!(seal.open(event, &sealed[..20]), Err(SealedWithOtherKey));
        assert_eq!(seal.open(event, b""), Err(SealedWithOtherKey));
    }
}
