//! The waiting rooms, and the SQS queue on which their admissions are announced.

use std::path::PathBuf;

use urr_kernel::Secret;

use super::rule::{
    ValueRule, choice, file, flag, http_url, list, millis, number, optional, password, seconds,
    text,
};
use super::section::section;

fn people() -> ValueRule<u32> {
    number(1..=100_000_000)
}

/// Where draws get their public randomness from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawBeacon {
    Drand,
    Offline,
}

const DRAW_BEACONS: &[(&str, DrawBeacon)] =
    &[("drand", DrawBeacon::Drand), ("offline", DrawBeacon::Offline)];

section! {
    QueueConfig = "queue" {
        threshold: u32 = value(people()), "QUEUE_THRESHOLD";
        active_ttl_seconds: u64 = value(seconds()), "QUEUE_ACTIVE_TTL_SECONDS";
        active_seconds_max: u64 = value(seconds());
        seen_ttl_seconds: u64 = value(seconds()), "QUEUE_SEEN_TTL_SECONDS";
        admission_interval_ms: u64 = value(millis()), "QUEUE_ADMISSION_INTERVAL_MS";
        admission_batch_size: u32 = value(people()), "QUEUE_ADMISSION_BATCH_SIZE";
        stale_cleanup_interval_ms: u64 = value(millis()), "QUEUE_STALE_CLEANUP_INTERVAL_MS";
        /// A day at most: the gateway takes no token that lives longer.
        entry_token_ttl_seconds: u64 =
            value(number(1..=86_400)), "QUEUE_ENTRY_TOKEN_TTL_SECONDS";
        queues_per_user_max: u32 = value(number(1..=255));
        waiting_per_event_max: u32 = value(people());
        /// A week at most.
        gathering_seconds: u64 = value(number(0..=604_800));
        streams_max: usize = value(number(0..=1_000_000));
        draw_beacon: DrawBeacon = value(choice(DRAW_BEACONS));
        drand_urls: Vec<String> = value(list(http_url()));
        beacon_wait_seconds: u64 = value(number(0..=86_400));
    }
}

section! {
    SqsConfig = "sqs" {
        enabled: bool = value(flag()), "SQS_ENABLED";
        queue_url: Option<String> = value(optional(http_url())), "SQS_QUEUE_URL";
        region: String = value(text()), "AWS_REGION";
        endpoint: Option<String> = value(optional(http_url())), "AWS_SQS_ENDPOINT";
        /// None: the authorities of the web.
        tls_root_path: Option<PathBuf> = value(optional(file()));
        access_key_id: Option<String> = value(optional(text())), "AWS_ACCESS_KEY_ID";
        secret_access_key: Option<Secret> = secret(password()), "AWS_SECRET_ACCESS_KEY";
    }
}
