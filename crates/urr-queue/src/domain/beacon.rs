//! Public randomness that nobody knew when the list of entrants was fixed.
//!
//! The beacon is drand's network quicknet: every three seconds its members sign the number of the round
//! together. Nobody knows the signature before, anybody can check it afterwards, and there is only one
//! for a round. A machine without network uses a value of its own instead, which proves nothing.

use std::fmt;
use std::str::FromStr;

use drand_verify::{G2PubkeyRfc, Pubkey};
use sha2::{Digest as _, Sha256};
use urr_kernel::{Timestamp, hex};

use super::draw::Digest;

/// Names quicknet: the hash of its parameters.
pub const CHAIN_HASH: &str = "52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971";
/// The key of quicknet, to which the chain hash commits.
const PUBLIC_KEY: &str = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c\
                          8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb\
                          5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a";
const GENESIS_SECOND: i64 = 1_692_803_367;
const PERIOD_SECONDS: i64 = 3;
/// Rounds after the present one: at least one period lies between the list and its round.
const ROUNDS_AHEAD: i64 = 2;
const SIGNATURE_BYTES: usize = 48;

/// A value that was mixed into a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeaconValue {
    Drand {
        round: i64,
        signature: [u8; SIGNATURE_BYTES],
    },
    /// Random bytes of the program itself.
    Offline(Digest),
}

impl BeaconValue {
    /// What is mixed into the seed.
    pub fn randomness(&self) -> Digest {
        match self {
            BeaconValue::Drand { signature, .. } => Sha256::digest(signature).into(),
            BeaconValue::Offline(value) => *value,
        }
    }

    /// Whether the signature is that of quicknet for this round. An offline value has none.
    pub fn is_signed(&self) -> bool {
        let BeaconValue::Drand { round, signature } = self else { return false };
        let Ok(round) = u64::try_from(*round) else { return false };
        let key = hex::decode_array(PUBLIC_KEY).expect("the key is hexadecimal");
        let key = G2PubkeyRfc::from_fixed(key).expect("the key is a point");
        key.verify(round, b"", signature).unwrap_or(false)
    }
}

/// The round that is mixed into a draw whose list was fixed at this time.
pub fn round_for(fixed_at: Timestamp) -> i64 {
    let since = fixed_at.as_second() - GENESIS_SECOND;
    since.div_euclid(PERIOD_SECONDS) + 1 + ROUNDS_AHEAD
}

impl fmt::Display for BeaconValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BeaconValue::Drand { round, signature } => {
                write!(f, "drand {CHAIN_HASH} {round} {}", hex::encode(signature))
            }
            BeaconValue::Offline(value) => write!(f, "offline {}", hex::encode(value)),
        }
    }
}

/// Text that is no value of a beacon that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no value of a beacon that we know")]
pub struct UnknownBeacon;

impl FromStr for BeaconValue {
    type Err = UnknownBeacon;

    fn from_str(text: &str) -> Result<BeaconValue, UnknownBeacon> {
        let words: Vec<&str> = text.split(' ').collect();
        let value = match words.as_slice() {
            ["drand", CHAIN_HASH, round, signature] => {
                let signature = hex::decode_array(signature).ok_or(UnknownBeacon)?;
                let round = round.parse().map_err(|_| UnknownBeacon)?;
                BeaconValue::Drand { round, signature }
            }
            ["offline", value] => {
                BeaconValue::Offline(hex::decode_array(value).ok_or(UnknownBeacon)?)
            }
            _ => return Err(UnknownBeacon),
        };
        Ok(value)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A round that quicknet published.
    pub const ROUND: i64 = 657_413;
    pub const SIGNATURE: &str = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
                                 41076862b98fad56e91a6b85b89cd97b";
    const RANDOMNESS: &str = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587";

    pub fn published() -> BeaconValue {
        format!("drand {CHAIN_HASH} {ROUND} {SIGNATURE}").parse().unwrap()
    }

    #[test]
    fn a_round_that_was_published_is_signed_and_no_other() {
        let value = published();
        assert!(value.is_signed());
        assert_eq!(hex::encode(value.randomness()), RANDOMNESS);
        let BeaconValue::Drand { round, signature } = value else { panic!("{value}") };
        for other in [round + 1, round - 1, 0, -1] {
            assert!(!BeaconValue::Drand { round: other, signature }.is_signed(), "{other}");
        }
        for byte in [0, 20, 47] {
            let mut signature = signature;
            signature[byte] ^= 1;
            assert!(!BeaconValue::Drand { round, signature }.is_signed(), "{byte}");
        }
        assert!(!BeaconValue::Offline([7; 32]).is_signed());
    }

    #[test]
    fn a_value_is_read_as_it_is_written() {
        for value in [published(), BeaconValue::Offline([7; 32])] {
            assert_eq!(value.to_string().parse(), Ok(value));
        }
        let other_chain = published().to_string().replace("52db", "62db");
        for bad in ["", "drand", "offline 7", "other 7", other_chain.as_str()] {
            assert_eq!(bad.parse::<BeaconValue>(), Err(UnknownBeacon), "{bad}");
        }
    }

    /// Round 1 appeared at the genesis, and each later one three seconds after the one before.
    #[test]
    fn the_round_of_a_draw_appears_after_its_list_was_fixed() {
        for second in 0..10 {
            let fixed_at = Timestamp::from_second(1_800_000_000 + second).unwrap();
            let appears = GENESIS_SECOND + (round_for(fixed_at) - 1) * PERIOD_SECONDS;
            let ahead = appears - fixed_at.as_second();
            assert!((4..=6).contains(&ahead), "{ahead}");
        }
    }
}
