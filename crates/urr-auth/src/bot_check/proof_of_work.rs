//! Proof of work: it costs the client processor time and us one hash.
//!
//! The proof is `<challenge>:<nonce>`, and is valid if the SHA-256 of exactly this text begins with
//! as many zero bits as the challenge requires. Each bit doubles the cost of finding a nonce.

use sha2::{Digest, Sha256};

/// The most that a challenge requires: about ten seconds on a phone.
pub const DIFFICULTY_MAX: u8 = 24;
/// How many bits load adds at most, because most clients are people.
pub const RAISED_MAX: u8 = 4;
/// The normal load.
const NORMAL_PER_MINUTE: u32 = 600;
/// Failures indicate bots more than solved proofs do.
const FAILURE_WEIGHT: u32 = 4;
/// A counter in decimal needs far less.
const NONCE_CHARS_MAX: usize = 64;

/// Solved proofs and failures within a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    pub proofs: u32,
    pub failures: u32,
}

/// The difficulty at this load: one bit more for each doubling of the normal load.
pub fn difficulty_now(base: u8, pressure: Pressure) -> u8 {
    let failures = pressure.failures.saturating_mul(FAILURE_WEIGHT);
    let load = pressure.proofs.saturating_add(failures) / NORMAL_PER_MINUTE;
    let doublings = load.checked_ilog2().unwrap_or(0);
    let raised = u8::try_from(doublings).unwrap_or(RAISED_MAX).min(RAISED_MAX);
    base.saturating_add(raised).min(DIFFICULTY_MAX)
}

/// The challenge in a proof, if the proof has the right format.
pub fn challenge_of(proof: &str) -> Option<&str> {
    let (challenge, nonce) = proof.rsplit_once(':')?;
    let is_plain = nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && (1..=NONCE_CHARS_MAX).contains(&nonce.len())).then_some(challenge)
}

/// Whether a proof has enough zero bits.
pub fn is_solved(proof: &str, difficulty: u8) -> bool {
    leading_zero_bits(&Sha256::digest(proof.as_bytes())) >= u32::from(difficulty)
}

fn leading_zero_bits(hash: &[u8]) -> u32 {
    let zero_bytes = hash.iter().take_while(|byte| **byte == 0).count();
    let rest = hash.get(zero_bytes).map_or(0, |byte| byte.leading_zeros());
    u32::try_from(zero_bytes * 8).expect("a hash is short") + rest
}

/// Solves a challenge as a client does. It takes two to the power of `difficulty` hashes on average.
pub fn solve(challenge: &str, difficulty: u8) -> String {
    assert!(difficulty <= DIFFICULTY_MAX, "{difficulty} bits would take too long");
    let prefix = Sha256::new().chain_update(challenge.as_bytes()).chain_update(b":");
    let solves = |nonce: &String| {
        let hash = prefix.clone().chain_update(nonce.as_bytes()).finalize();
        leading_zero_bits(&hash) >= u32::from(difficulty)
    };
    let nonce = (0_u64..).map(|nonce| nonce.to_string()).find(solves);
    let nonce = nonce.expect("some number solves it");
    format!("{challenge}:{nonce}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_bits_are_counted_across_bytes() {
        assert_eq!(leading_zero_bits(&[0x80]), 0);
        assert_eq!(leading_zero_bits(&[0x01, 0xff]), 7);
        assert_eq!(leading_zero_bits(&[0, 0x10]), 11);
        assert_eq!(leading_zero_bits(&[0, 0]), 16);
    }

    #[test]
    fn a_known_proof_is_recognised() {
        // The first number whose SHA-256, 007b…, begins with a zero byte, as another program found.
        let proof = "urr:15";
        assert_eq!(solve("urr", 8), proof);
        assert!(is_solved(proof, 8));
        assert!(!is_solved("urr:0", 8), "the control: hardly any nonce solves it");
    }

    #[test]
    fn one_bit_less_than_asked_is_too_easy() {
        for bits in 1..12 {
            let proof = solve("a challenge", bits);
            let found = leading_zero_bits(&Sha256::digest(proof.as_bytes()));
            let harder = u8::try_from(found).unwrap() + 1;
            assert!(is_solved(&proof, bits) && !is_solved(&proof, harder));
        }
    }

    #[test]
    fn a_proof_has_a_challenge_and_a_short_plain_nonce() {
        assert_eq!(challenge_of("a.b.c:17"), Some("a.b.c"));
        assert_eq!(challenge_of("a:b:17"), Some("a:b"));
        let long = format!("a.b.c:{}", "1".repeat(NONCE_CHARS_MAX + 1));
        for bad in ["", ":", "a.b.c", "a.b.c:", "a.b.c:1 2", "a.b.c:é", &long] {
            assert_eq!(challenge_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_doubling_beyond_an_ordinary_day_costs_one_bit() {
        let at = |proofs, failures| difficulty_now(16, Pressure { proofs, failures });
        assert_eq!([at(0, 0), at(599, 0), at(1_199, 0)], [16, 16, 16]);
        assert_eq!([at(1_200, 0), at(2_399, 0), at(2_400, 0)], [17, 17, 18]);
        assert_eq!([at(0, 300), at(0, 600)], [17, 18], "failures weigh more");
        assert_eq!([at(9_600, 0), at(u32::MAX, u32::MAX)], [20, 20], "but never more than four");
        let full = Pressure { proofs: u32::MAX, failures: 0 };
        assert_eq!(difficulty_now(22, full), DIFFICULTY_MAX);
        assert_eq!(difficulty_now(u8::MAX, Pressure::default()), DIFFICULTY_MAX);
    }
}
