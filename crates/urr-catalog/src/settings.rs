//! The settings of the catalogue.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogSettings {
    /// How often the job looks for sales that have opened or ended.
    pub status_interval: Duration,
    /// How many seats a person may buy, from 1 to 10, unless the event has its own limit.
    pub seats_per_user_max_default: u32,
    /// An artist or venue with more coming events than this cannot be renamed, because all of
    /// them are announced in one transaction.
    pub renamed_events_max: usize,
    pub cache: CacheSettings,
}

/// The settings of the response cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    pub ttl: Duration,
    /// The lifetime near the opening of a sale.
    pub opening_ttl: Duration,
    /// How far before and after the opening that is.
    pub opening_distance: Duration,
    /// How long a change by another process may stay unnoticed.
    pub revision_check_interval: Duration,
    pub entries_max: usize,
    pub bytes_max: usize,
    /// Lets every request read the database when a response is missing, which overloads it when
    /// a sale opens. Only the control of the stampede test sets it.
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
