//! The secret of a draw as it is stored: encrypted, so that whoever reads the database before the draw
//! cannot compute the order.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use urr_kernel::{Secret, Uuid, hex};

use crate::domain::draw::DrawSecret;

const NONCE_BYTES: usize = 12;

/// Encrypts and decrypts secrets of draws.
#[derive(Clone)]
pub struct DrawSeal {
    current: Aes256Gcm,
    /// Decrypts only, while the key is being changed.
    other: Option<Aes256Gcm>,
}

/// The stored secret was encrypted with another key, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret of the draw cannot be decrypted: the key was changed, or the row is damaged")]
pub struct SealedWithOtherKey;

impl DrawSeal {
    /// The key follows from a secret that all processes of an installation share.
    pub fn new(root: &Secret) -> DrawSeal {
        DrawSeal { current: cipher(root), other: None }
    }

    /// Opens also what was sealed with another secret, while it is being changed.
    pub fn or_root(self, other: Option<&Secret>) -> DrawSeal {
        DrawSeal { other: other.map(cipher), ..self }
    }

    /// The nonce, followed by the encrypted secret with its tag.
    pub fn seal(&self, event_id: Uuid, secret: &DrawSecret) -> Vec<u8> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: secret.expose(), aad: event_id.as_bytes() };
        let cipher = self.current.encrypt(&Nonce::from(nonce), payload);
        [&nonce[..], &cipher.expect("a short text can be sealed")].concat()
    }

    pub fn open(&self, event_id: Uuid, sealed: &[u8]) -> Result<DrawSecret, SealedWithOtherKey> {
        let (nonce, cipher) = sealed.split_first_chunk().ok_or(SealedWithOtherKey)?;
        let nonce: [u8; NONCE_BYTES] = *nonce;
        let open = |key: &Aes256Gcm| {
            let payload = Payload { msg: cipher, aad: event_id.as_bytes() };
            key.decrypt(&Nonce::from(nonce), payload).ok()?.try_into().ok()
        };
        let secret = open(&self.current).or_else(|| open(self.other.as_ref()?));
        secret.map(DrawSecret::new).ok_or(SealedWithOtherKey)
    }
}

fn cipher(root: &Secret) -> Aes256Gcm {
    let key = hex::decode(root.derive("urr-queue:draw-secret").expose());
    let key = key.expect("derived secrets are hexadecimal");
    Aes256Gcm::new_from_slice(&key).expect("a derived key has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_for_its_event() {
        let roots = ["one", "another"].map(Secret::new);
        let [seal, other] = [0, 1].map(|index| DrawSeal::new(&roots[index]));
        let (event, secret) = (Uuid::from_u128(1), DrawSecret::new([9; 32]));
        let sealed = seal.seal(event, &secret);
        assert_eq!(seal.open(event, &sealed), Ok(secret.clone()));
        assert!(!sealed.windows(32).any(|window| window == secret.expose()));
        assert_ne!(seal.seal(event, &secret), sealed, "every sealing has its own nonce");
        assert_eq!(other.open(event, &sealed), Err(SealedWithOtherKey));
        assert_eq!(seal.open(Uuid::from_u128(2), &sealed), Err(SealedWithOtherKey));
        assert_eq!(seal.open(event, &sealed[..20]), Err(SealedWithOtherKey));
        assert_eq!(seal.open(event, b""), Err(SealedWithOtherKey));
        let changing = DrawSeal::new(&roots[1]).or_root(Some(&roots[0]));
        assert_eq!(changing.open(event, &sealed), Ok(secret.clone()));
        assert_eq!(other.open(event, &changing.seal(event, &secret)), Ok(secret));
    }
}
