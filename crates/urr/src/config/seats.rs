//! Events, seats, reservations, alerts and the community.

use urr_kernel::Secret;

use super::rule::{OWN_SECRET_BYTES_MIN, millis, number, seconds, secret};
use super::section::section;

section! {
    SeatsConfig = "seats" {
        lock_ttl_seconds: u64 = value(seconds()), "SEAT_LOCK_TTL_SECONDS";
        hold_ttl_seconds: u64 = value(seconds());
        hold_extension_seconds: u64 = value(number(0..=600));
        seats_per_user_max: u32 = value(number(1..=10));
        guests_kept_days: u16 = value(number(0..=365));
        ticket_signing_key: Secret = own_secret(secret(OWN_SECRET_BYTES_MIN));
        /// The key that signed tickets before. Its tickets stay valid.
        other_ticket_signing_key: Option<Secret> = secret(secret(OWN_SECRET_BYTES_MIN));
    }
}

section! {
    ReservationsConfig = "reservations" {
        cleanup_interval_ms: u64 = value(millis()), "RESERVATION_CLEANUP_INTERVAL_MS";
    }
}

section! {
    AlertsConfig = "alerts" {
        sale_lead_seconds: u64 = value(seconds());
        head_start_seconds: u64 = value(seconds());
        exclusive_seconds: u64 = value(number(0..=86_400));
    }
}

section! {
    CatalogConfig = "catalog" {
        event_status_interval_ms: u64 = value(millis()), "EVENT_STATUS_INTERVAL_MS";
    }
}

section! {
    CommunityConfig = "community" {
        posts_per_hour_max: u32 = value(number(1..=10_000));
        comments_per_hour_max: u32 = value(number(1..=10_000));
    }
}
