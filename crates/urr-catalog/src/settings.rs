//! What can be set about the catalogue.

use std::time::Duration;

/// How the catalogue behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSettings {
    /// Between two looks at which events go on sale or end.
    pub status_interval: Duration,
    /// How many seats a person may buy of an event that says nothing about it: 1 to 10.
    pub seats_per_user_max_default: u32,
    /// An artist or venue with more events to come than this cannot be renamed: each is announced,
    /// in one transaction.
    pub renamed_events_max: usize,
    pub cache: CacheSettings,
}

/// How long answers are kept in the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    pub ttl: Duration,
    /// While a sale is about to open, or has just opened.
    pub opening_ttl: Duration,
    /// How far from its opening that is.
    pub opening_distance: Duration,
    /// How long a change by another process may stay unseen.
    pub revision_check_interval: Duration,
    pub entries_max: usize,
    pub bytes_max: usize,
    /// Lets every reader ask the database at once when an answer is missing. It breaks the
    /// database when a sale opens: for the control of the test that shows it.
    pub dangerous_without_single_flight: bool,
}

impl Default for CatalogSettings {
    fn default() -> CatalogSettings {
        CatalogSettings {
            status_interval: Duration::from_secs(60),
            seats_per_user_max_default: 4,
            renamed_events_max: 1_000,
            cache: CacheSettings::default(),
        }
    }
}

impl Default for CacheSettings {
    fn default() -> CacheSettings {
        CacheSettings {
            ttl: Duration::from_secs(5 * 60),
            opening_ttl: Duration::from_secs(60),
            opening_distance: Duration::from_secs(10 * 60),
            revision_check_interval: Duration::from_secs(1),
            entries_max: 4_000,
            bytes_max: 64 * 1024 * 1024,
            dangerous_without_single_flight: false,
        }
    }
}
