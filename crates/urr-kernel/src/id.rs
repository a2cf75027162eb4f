//! Time-ordered ids (UUIDv7) from a given clock and a seedable generator.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::Clock;

/// Makes ids. Clones share one sequence: within a process a later id is never smaller.
#[derive(Clone, Debug)]
pub struct IdSource {
    clock: Clock,
    state: Arc<Mutex<IdState>>,
}

#[derive(Debug)]
struct IdState {
    random: StdRng,
    last: Uuid,
}

impl IdSource {
    /// Ids nobody can predict.
    pub fn from_system_randomness(clock: Clock) -> IdSource {
        let mut seed = [0_u8; 32];
        getrandom::fill(&mut seed).expect("the operating system has randomness");
        IdSource::with_generator(clock, StdRng::from_seed(seed))
    }

    /// The same ids in every run: for tests and simulations.
    pub fn seeded(clock: Clock, seed: u64) -> IdSource {
        IdSource::with_generator(clock, StdRng::seed_from_u64(seed))
    }

    fn with_generator(clock: Clock, random: StdRng) -> IdSource {
        IdSource { clock, state: Arc::new(Mutex::new(IdState { random, last: Uuid::nil() })) }
    }

    /// A new id, larger than every id this source made before, even if the clock went back.
    pub fn next_id(&self) -> Uuid {
        let millis = u64::try_from(self.clock.now().as_millisecond()).unwrap_or(0);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0_u8; 10];
        state.random.fill_bytes(&mut bytes);
        let fresh = uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid();
        let id = if fresh > state.last { fresh } else { successor(state.last) };
        state.last = id;
        id
    }
}

/// The smallest id of a time: ids that are made then or later are not below it, as far as clocks agree.
pub fn first_id_at(time: Timestamp) -> Uuid {
    let millis = u128::try_from(time.as_millisecond()).unwrap_or(0);
    Uuid::from_u128((millis & MILLIS_MAX) << 80)
}

/// An id has 48 bits of time.
const MILLIS_MAX: u128 = (1 << 48) - 1;

/// The next id in order that still has the version and variant bits of a UUIDv7.
fn successor(id: Uuid) -> Uuid {
    let number = id.as_u128();
    // The lowest 62 bits are free random bits; a carry out of them would touch the variant.
    const LOW_BITS: u128 = (1 << 62) - 1;
    assert!(number & LOW_BITS != LOW_BITS, "2^62 ids within one millisecond");
    Uuid::from_u128(number + 1)
}

/// Declares an id type of its own around a UUID, so that ids of two things cannot be mixed up. In
/// paths and JSON it is the UUID.
#[macro_export]
macro_rules! define_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $crate::Uuid);

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(to)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::serde::Deserialize::deserialize(from).map($name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    define_id!(
        /// A thing for this test.
        ThingId
    );

    #[test]
    fn ids_grow_even_within_one_millisecond_and_when_the_clock_stands_still() {
        let ids = IdSource::seeded(Clock::manual(Timestamp::UNIX_EPOCH), 1);
        let made: Vec<Uuid> = (0..1_000).map(|_| ids.next_id()).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH + Duration::from_secs(5));
        let (a, b) = (IdSource::seeded(clock.clone(), 7), IdSource::seeded(clock, 7));
        assert_eq!(a.next_id(), b.next_id());
    }

    #[test]
    fn an_id_type_names_itself_when_debugged() {
        assert_eq!(format!("{:?}", ThingId(Uuid::nil())), format!("ThingId({})", Uuid::nil()));
    }
}
