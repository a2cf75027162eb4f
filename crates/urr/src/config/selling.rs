//! The settings of what is sold and how: the waiting room, seats, payments, notices.

use urr_kernel::Secret;

use super::reader::Reader;
use super::rule::{
    choice, flag, http_url, millis, number, optional, password, seconds, secret, text,
};
use super::sections::OWN_SECRET_BYTES_MIN;

#[derive(Debug, Clone)]
pub struct QueueConfig {
    pub threshold: u32,
    pub active_ttl_seconds: u64,
    pub active_seconds_max: u64,
    pub seen_ttl_seconds: u64,
    pub admission_interval_ms: u64,
    pub admission_batch_size: u32,
    pub stale_cleanup_interval_ms: u64,
    pub entry_token_ttl_seconds: u64,
    pub queues_per_user_max: u32,
    pub waiting_per_event_max: u32,
    pub gathering_seconds: u64,
    pub streams_max: usize,
}

impl QueueConfig {
    pub fn read(read: &mut Reader) -> QueueConfig {
        let people = || number(1..=100_000_000);
        QueueConfig {
            threshold: read.value("queue.threshold", &["QUEUE_THRESHOLD"], people()),
            active_ttl_seconds: read.value(
                "queue.active_ttl_seconds",
                &["QUEUE_ACTIVE_TTL_SECONDS"],
                seconds(),
            ),
            active_seconds_max: read.value("queue.active_seconds_max", &[], seconds()),
            seen_ttl_seconds: read.value(
                "queue.seen_ttl_seconds",
                &["QUEUE_SEEN_TTL_SECONDS"],
                seconds(),
            ),
            admission_interval_ms: read.value(
                "queue.admission_interval_ms",
                &["QUEUE_ADMISSION_INTERVAL_MS"],
                millis(),
            ),
            admission_batch_size: read.value(
                "queue.admission_batch_size",
                &["QUEUE_ADMISSION_BATCH_SIZE"],
                people(),
            ),
            stale_cleanup_interval_ms: read.value(
                "queue.stale_cleanup_interval_ms",
                &["QUEUE_STALE_CLEANUP_INTERVAL_MS"],
                millis(),
            ),
            entry_token_ttl_seconds: read.value(
                "queue.entry_token_ttl_seconds",
                &["QUEUE_ENTRY_TOKEN_TTL_SECONDS"],
                // The gateway takes none that lives longer.
                number(1..=86_400),
            ),
            queues_per_user_max: read.value("queue.queues_per_user_max", &[], number(1..=255)),
            waiting_per_event_max: read.value("queue.waiting_per_event_max", &[], people()),
            // A week: whoever comes earlier has nothing to wait for.
            gathering_seconds: read.value("queue.gathering_seconds", &[], number(0..=604_800)),
            streams_max: read.value("queue.streams_max", &[], number(0..=1_000_000)),
        }
    }
}

#[derive(Debug, Clone)]
pub struct SeatsConfig {
    pub lock_ttl_seconds: u64,
    pub hold_ttl_seconds: u64,
    pub seats_per_user_max: u32,
    pub ticket_signing_key: Secret,
    /// Signed tickets before. Its tickets stay good.
    pub other_ticket_signing_key: Option<Secret>,
}

impl SeatsConfig {
    pub fn read(read: &mut Reader) -> SeatsConfig {
        let lock_alias = &["SEAT_LOCK_TTL_SECONDS"];
        SeatsConfig {
            lock_ttl_seconds: read.value("seats.lock_ttl_seconds", lock_alias, seconds()),
            hold_ttl_seconds: read.value("seats.hold_ttl_seconds", &[], seconds()),
            seats_per_user_max: read.value("seats.seats_per_user_max", &[], number(1..=10)),
            ticket_signing_key: read.own_secret(
                "seats.ticket_signing_key",
                &[],
                secret(OWN_SECRET_BYTES_MIN),
            ),
            other_ticket_signing_key: read.secret(
                "seats.other_ticket_signing_key",
                &[],
                secret(OWN_SECRET_BYTES_MIN),
            ),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ReservationsConfig {
    pub cleanup_interval_ms: u64,
    pub reconciliation_interval_ms: u64,
}

impl ReservationsConfig {
    pub fn read(read: &mut Reader) -> ReservationsConfig {
        ReservationsConfig {
            cleanup_interval_ms: read.value(
                "reservations.cleanup_interval_ms",
                &["RESERVATION_CLEANUP_INTERVAL_MS"],
                millis(),
            ),
            reconciliation_interval_ms: read.value(
                "reservations.reconciliation_interval_ms",
                &["RESERVATION_RECONCILIATION_INTERVAL_MS"],
                millis(),
            ),
        }
    }
}

#[derive(Debug, Clone)]
pub struct CatalogConfig {
    pub event_status_interval_ms: u64,
}

impl CatalogConfig {
    pub fn read(read: &mut Reader) -> CatalogConfig {
        CatalogConfig {
            event_status_interval_ms: read.value(
                "catalog.event_status_interval_ms",
                &["EVENT_STATUS_INTERVAL_MS"],
                millis(),
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentProvider {
    Sandbox,
    Toss,
    PortOne,
}

const PAYMENT_PROVIDERS: &[(&str, PaymentProvider)] = &[
    ("sandbox", PaymentProvider::Sandbox),
    ("toss", PaymentProvider::Toss),
    ("portone", PaymentProvider::PortOne),
];

#[derive(Debug, Clone)]
pub struct PaymentsConfig {
    pub provider: PaymentProvider,
    pub timeout_seconds: u64,
    pub reconciliation_interval_ms: u64,
    /// Public: the pages carry it.
    pub toss_client_key: Option<String>,
    pub toss_secret_key: Option<Secret>,
    pub portone_store_id: Option<String>,
    pub portone_api_secret: Option<Secret>,
    /// Public as well.
    pub portone_channel_key: Option<String>,
    pub portone_webhook_secret: Option<Secret>,
    /// The one before, while it is replaced.
    pub other_portone_webhook_secret: Option<Secret>,
}

impl PaymentsConfig {
    pub fn read(read: &mut Reader) -> PaymentsConfig {
        let (client_alias, secret_alias) = (&["TOSS_CLIENT_KEY"], &["TOSS_SECRET_KEY"]);
        let text = || optional(text());
        PaymentsConfig {
            provider: read.value("payments.provider", &[], choice(PAYMENT_PROVIDERS)),
            timeout_seconds: read.value("payments.timeout_seconds", &[], number(1..=60)),
            reconciliation_interval_ms: read.value(
                "payments.reconciliation_interval_ms",
                &[],
                millis(),
            ),
            toss_client_key: read.value("payments.toss_client_key", client_alias, text()),
            toss_secret_key: read.secret("payments.toss_secret_key", secret_alias, password()),
            portone_store_id: read.value("payments.portone_store_id", &[], text()),
            portone_api_secret: read.secret("payments.portone_api_secret", &[], password()),
            portone_channel_key: read.value("payments.portone_channel_key", &[], text()),
            portone_webhook_secret: read.secret("payments.portone_webhook_secret", &[], password()),
            other_portone_webhook_secret: read.secret(
                "payments.other_portone_webhook_secret",
                &[],
                password(),
            ),
        }
    }
}

impl PaymentsConfig {
    /// Providers that have some of their keys and not all, and what they lack.
    pub fn half_known(&self) -> Vec<(&'static str, String)> {
        let toss = [
            ("payments.toss_client_key", self.toss_client_key.is_some()),
            ("payments.toss_secret_key", self.toss_secret_key.is_some()),
        ];
        // Its store and secret alone are known where it only checks identities.
        let portone = [
            ("payments.portone_channel_key", self.portone_channel_key.is_some()),
            ("payments.portone_webhook_secret", self.portone_webhook_secret.is_some()),
            ("payments.portone_store_id", self.portone_store_id.is_some()),
            ("payments.portone_api_secret", self.portone_api_secret.is_some()),
        ];
        let lacking = |keys: &[(&str, bool)], own: usize| {
            let missing: Vec<&str> =
                keys.iter().filter(|(_, given)| !given).map(|(key, _)| *key).collect();
            let is_begun = keys[..own].iter().any(|(_, given)| *given);
            (is_begun && !missing.is_empty()).then(|| missing.join(", "))
        };
        let half = [("Toss", lacking(&toss, 2)), ("PortOne", lacking(&portone, 2))];
        half.into_iter().filter_map(|(name, missing)| Some((name, missing?))).collect()
    }
}

#[derive(Debug, Clone)]
pub struct SqsConfig {
    pub enabled: bool,
    pub queue_url: Option<String>,
    pub region: String,
    pub endpoint: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
}

impl SqsConfig {
    pub fn read(read: &mut Reader) -> SqsConfig {
        let (id_alias, secret_alias) = (&["AWS_ACCESS_KEY_ID"], &["AWS_SECRET_ACCESS_KEY"]);
        let url = || optional(http_url());
        SqsConfig {
            enabled: read.value("sqs.enabled", &["SQS_ENABLED"], flag()),
            queue_url: read.value("sqs.queue_url", &["SQS_QUEUE_URL"], url()),
            region: read.value("sqs.region", &["AWS_REGION"], text()),
            endpoint: read.value("sqs.endpoint", &["AWS_SQS_ENDPOINT"], url()),
            access_key_id: read.value("sqs.access_key_id", id_alias, optional(text())),
            secret_access_key: read.secret("sqs.secret_access_key", secret_alias, password()),
        }
    }
}
