//! A draw as a file: a header, then one line for each entrant in drawn order. `docs/DRAW.md` specifies it; [`super::verify`] reads it.

use std::fmt::{self, Write as _};

use urr_kernel::{Timestamp, Uuid, hex};

use super::seal::DrawSeal;
use crate::domain::beacon::BeaconValue;
use crate::domain::draw::{Digest, DrawSecret, Entrant};
use crate::store::draws::StoredDraw;

/// The first line.
pub const FORMAT: &str = "urr-draw-v2";

/// The lines before the entrants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawFileHeader {
    pub event_id: Uuid,
    pub commitment: Digest,
    pub committed_at: Timestamp,
    pub closed_at: Timestamp,
    pub secret: DrawSecret,
    pub digest: Digest,
    pub arrivals: Digest,
    pub fixed_at: Timestamp,
    pub beacon: BeaconValue,
    pub seed: Digest,
    pub count: u32,
}

impl DrawFileHeader {
    /// None until the draw is done: before that its secret is not published.
    pub fn of(draw: &StoredDraw, seal: &DrawSeal) -> Option<DrawFileHeader> {
        let (closing, entrants, _) = (draw.closing?, draw.entrants?, draw.done_at?);
        let (beacon, secret) = (draw.beacon.clone()?, draw.secret(seal).ok()?);
        Some(DrawFileHeader {
            event_id: draw.event_id,
            commitment: draw.commitment,
            committed_at: draw.committed_at,
            closed_at: closing.closed_at,
            digest: entrants.digest,
            arrivals: entrants.arrivals,
            fixed_at: entrants.fixed_at,
            seed: secret.seed(&entrants.digest, &beacon),
            secret,
            beacon,
            count: entrants.count,
        })
    }
}

impl fmt::Display for DrawFileHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FORMAT}")?;
        writeln!(f, "event {}", self.event_id)?;
        writeln!(f, "commitment {}", hex::encode(self.commitment))?;
        writeln!(f, "committedAt {}", self.committed_at)?;
        writeln!(f, "closedAt {}", self.closed_at)?;
        writeln!(f, "secret {}", hex::encode(self.secret.expose()))?;
        writeln!(f, "digest {}", hex::encode(self.digest))?;
        writeln!(f, "arrivals {}", hex::encode(self.arrivals))?;
        writeln!(f, "fixedAt {}", self.fixed_at)?;
        writeln!(f, "beacon {}", self.beacon)?;
        writeln!(f, "seed {}", hex::encode(self.seed))?;
        writeln!(f, "count {}", self.count)
    }
}

/// The lines of some entrants.
pub fn lines(entrants: &[Entrant]) -> String {
    let mut text = String::with_capacity(entrants.len() * 42);
    for Entrant { tag, arrival } in entrants {
        writeln!(text, "{tag} {arrival}").expect("a text takes what is written");
    }
    text
}
