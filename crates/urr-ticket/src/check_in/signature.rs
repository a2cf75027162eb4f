//! Signed tickets, so that a scanner without a network detects forged ones.
//!
//! A payload is `URR1.<what>.<signature>`, both parts in base64url without padding. `<what>` is 40
//! bytes: the ticket's id (16), the event's id (16), the seat's number (4) and the issue (4), the
//! numbers with the highest byte first; the seat of a standing ticket is `ffffffff`. The signature
//! is Ed25519 over the text `URR1.<what>`.
//!
//! An offline scanner knows that we issued the ticket, and for which event and seat. It does not
//! know whether the ticket was cancelled, transferred or used since; check-in does.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::Serialize;
use sha2::{Digest, Sha256};
use urr_kernel::{Secret, Uuid};
use urr_layout::SeatId;
use utoipa::ToSchema;

const PREFIX: &str = "URR1.";
const WHAT_BYTES: usize = 40;
const STANDING: u32 = u32::MAX;
const PURPOSE: &str = "ticket signature";

/// The content of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedTicket {
    pub ticket_id: Uuid,
    pub event_id: Uuid,
    /// None: a standing ticket.
    pub seat_id: Option<SeatId>,
    /// How often the ticket was issued; only the last issue is valid.
    pub issue: u32,
}

/// Why a text is not one of our tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    #[error("This is not a ticket of ours.")]
    Malformed,
    #[error("The signature is wrong: we did not issue this ticket.")]
    Forged,
}

/// The key that signs tickets, and those that did before.
pub struct Signer {
    key: Ed25519KeyPair,
    public_keys: Vec<PublicKey>,
}

/// A public key for scanners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PublicKey {
    /// Names the key.
    pub id: String,
    #[schema(example = "Ed25519")]
    algorithm: &'static str,
    /// 32 bytes in base64url without padding.
    #[serde(rename = "publicKey")]
    pub text: String,
    #[serde(skip)]
    bytes: Vec<u8>,
}

impl Signer {
    /// The first secret signs; tickets signed with any of the `previous` ones stay good.
    pub fn new(secret: &Secret, previous: &[Secret]) -> Signer {
        let key = key_pair(secret);
        let earlier = previous.iter().map(key_pair);
        let mut public_keys = vec![PublicKey::of(&key)];
        public_keys.extend(earlier.map(|key| PublicKey::of(&key)));
        Signer { key, public_keys }
    }

    /// The text of a ticket's QR code.
    pub fn payload(&self, ticket: &SignedTicket) -> String {
        let mut text = format!("{PREFIX}{}", BASE64.encode(ticket.to_bytes()));
        let signature = self.key.sign(text.as_bytes());
        text.push('.');
        text.push_str(&BASE64.encode(signature.as_ref()));
        text
    }

    pub fn verify(&self, payload: &str) -> Result<SignedTicket, InvalidPayload> {
        verify(&self.public_keys, payload)
    }

    /// The present one first.
    pub fn public_keys(&self) -> &[PublicKey] {
        &self.public_keys
    }
}

/// The check that any scanner can make.
fn verify(keys: &[PublicKey], payload: &str) -> Result<SignedTicket, InvalidPayload> {
    let (signed, signature) = payload.rsplit_once('.').ok_or(InvalidPayload::Malformed)?;
    let what = signed.strip_prefix(PREFIX).ok_or(InvalidPayload::Malformed)?;
    let what = BASE64.decode(what).map_err(|_| InvalidPayload::Malformed)?;
    let what: [u8; WHAT_BYTES] = what.try_into().map_err(|_| InvalidPayload::Malformed)?;
    let signature = BASE64.decode(signature).map_err(|_| InvalidPayload::Malformed)?;
    let is_signed_by = |key: &PublicKey| {
        let key = UnparsedPublicKey::new(&ED25519, &key.bytes);
        key.verify(signed.as_bytes(), &signature).is_ok()
    };
    match keys.iter().any(is_signed_by) {
        true => Ok(SignedTicket::from_bytes(&what)),
        false => Err(InvalidPayload::Forged),
    }
}

impl SignedTicket {
    fn to_bytes(self) -> [u8; WHAT_BYTES] {
        let mut bytes = [0; WHAT_BYTES];
        bytes[..16].copy_from_slice(self.ticket_id.as_bytes());
        bytes[16..32].copy_from_slice(self.event_id.as_bytes());
        bytes[32..36].copy_from_slice(&self.seat_id.unwrap_or(STANDING).to_be_bytes());
        bytes[36..].copy_from_slice(&self.issue.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; WHAT_BYTES]) -> SignedTicket {
        let id = |from: usize| Uuid::from_slice(&bytes[from..from + 16]).expect("16 bytes");
        let number = |from: usize| {
            let bytes = bytes[from..from + 4].try_into().expect("4 bytes");
            u32::from_be_bytes(bytes)
        };
        let seat_id = Some(number(32)).filter(|seat| *seat != STANDING);
        SignedTicket { ticket_id: id(0), event_id: id(16), seat_id, issue: number(36) }
    }
}

impl PublicKey {
    fn of(key: &Ed25519KeyPair) -> PublicKey {
        let bytes = key.public_key().as_ref().to_vec();
        let text = BASE64.encode(&bytes);
        let id = BASE64.encode(&Sha256::digest(&bytes)[..6]);
        PublicKey { id, algorithm: "Ed25519", text, bytes }
    }
}

fn key_pair(secret: &Secret) -> Ed25519KeyPair {
    let seed = Sha256::digest(secret.derive(PURPOSE).expose().as_bytes());
    Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed is 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        Signer::new(&Secret::new("of this test"), &[])
    }

    fn ticket() -> SignedTicket {
        SignedTicket {
            ticket_id: Uuid::from_u128(0x0123_4567_89ab_cdef),
            event_id: Uuid::from_u128(7 << 100),
            seat_id: Some(49_999),
            issue: 2,
        }
    }

    /// Follows the description at the head of this file, with nothing but the published key.
    #[test]
    fn a_scanner_verifies_a_ticket_with_the_public_key_alone() {
        let payload = signer().payload(&ticket());
        let published = signer().public_keys()[0].text.clone();

        let parts: Vec<&str> = payload.split('.').collect();
        let [version, what, signature] = parts[..] else { panic!("{payload}") };
        let key = UnparsedPublicKey::new(&ED25519, BASE64.decode(published).expect("base64url"));
        let signature = BASE64.decode(signature).expect("base64url");
        assert!(key.verify(format!("{version}.{what}").as_bytes(), &signature).is_ok());
        let what = BASE64.decode(what).expect("base64url");
        assert_eq!(what[..16], *ticket().ticket_id.as_bytes());
        assert_eq!(what[16..32], *ticket().event_id.as_bytes());
        assert_eq!(what[32..], [0, 0, 0xc3, 0x4f, 0, 0, 0, 2]);
        assert!(payload.len() < 150, "it must fit a QR code that a cheap scanner reads");
    }

    #[test]
    fn a_payload_says_what_was_signed() {
        let standing = SignedTicket { seat_id: None, ..ticket() };
        for ticket in [ticket(), standing] {
            assert_eq!(signer().verify(&signer().payload(&ticket)), Ok(ticket));
        }
    }

    #[test]
    fn changing_any_character_of_a_ticket_is_noticed() {
        let payload = signer().payload(&ticket());
        for position in 0..payload.len() {
            for other in ['A', 'B', 'z', '0', '_', '.', ' '] {
                let mut changed: Vec<char> = payload.chars().collect();
                if changed[position] == other {
                    continue;
                }
                changed[position] = other;
                let changed: String = changed.into_iter().collect();
                assert!(signer().verify(&changed).is_err(), "{position} {other}");
            }
            let shortened = format!("{}{}", &payload[..position], &payload[position + 1..]);
            assert!(signer().verify(&shortened).is_err(), "without {position}");
        }
        for longer in [format!("{payload}A"), format!("{payload}="), format!("{payload}.A")] {
            assert!(signer().verify(&longer).is_err(), "{longer}");
        }
    }

    #[test]
    fn a_ticket_signed_by_somebody_else_is_forged() {
        let other = Signer::new(&Secret::new("of somebody else"), &[]);
        let payload = other.payload(&ticket());
        assert_eq!(signer().verify(&payload), Err(InvalidPayload::Forged));
        for text in ["", ".", "URR1..", "URR2.a.b", "hello", "URR1.가.나"] {
            assert_eq!(signer().verify(text), Err(InvalidPayload::Malformed), "{text}");
        }
    }

    #[test]
    fn tickets_outlive_a_change_of_the_key() {
        let payload = signer().payload(&ticket());
        let (new, old) = (Secret::new("new"), Secret::new("of this test"));
        let after = Signer::new(&new, &[old]);
        assert_eq!(after.verify(&payload), Ok(ticket()));
        assert_eq!(after.public_keys().len(), 2);
        assert_eq!(Signer::new(&new, &[]).verify(&payload), Err(InvalidPayload::Forged));
        assert_ne!(after.payload(&ticket()), payload);
    }
}
