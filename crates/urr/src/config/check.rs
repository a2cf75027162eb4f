//! What must hold between settings, each with the reason.

use super::Config;
use super::reader::Reader;
use super::sections::PaymentProvider;

pub fn check(config: &Config, read: &mut Reader) {
    check_times(config, read);
    check_engines(config, read);
    check_payments(config, read);
    read.require_distinct_secrets();
}

fn check_times(config: &Config, read: &mut Reader) {
    let (seats, queue, auth) = (&config.seats, &config.queue, &config.auth);
    read.require(
        &["seats.lock_ttl_seconds", "seats.hold_ttl_seconds"],
        seats.lock_ttl_seconds > seats.hold_ttl_seconds,
        "a lock that ends before its hold lets others crowd onto a seat that is being paid; make \
         the first larger than the second",
    );
    read.require(
        &["queue.active_seconds_max", "queue.active_ttl_seconds"],
        queue.active_seconds_max >= queue.active_ttl_seconds,
        "a slot cannot last longer without activity than it lasts at all; make the first at least \
         the second",
    );
    read.require(
        &["auth.jwt_refresh_expiration_seconds", "auth.jwt_expiration_seconds"],
        auth.jwt_refresh_expiration_seconds > auth.jwt_expiration_seconds,
        "a refresh token renews access tokens, so it must live longer; make the first larger than \
         the second",
    );
}

fn check_engines(config: &Config, read: &mut Reader) {
    let (server, redis, sqs) = (&config.server, &config.redis, &config.sqs);
    read.require(
        &["server.management_port", "server.port"],
        server.management_port != server.port,
        "one port cannot be opened twice; use 0 to have health and metrics on server.port",
    );
    read.require(
        &["redis.url", "redis.host"],
        redis.url.is_none() || redis.host.is_none(),
        "they may name different servers; keep one",
    );
    read.require(
        &["redis.url", "redis.cluster_nodes"],
        redis.url.is_none() || redis.cluster_nodes.is_empty(),
        "they may name different servers; keep one",
    );
    read.require(
        &["sqs.enabled", "sqs.queue_url"],
        !sqs.enabled || sqs.queue_url.is_some(),
        "there is no queue to announce admissions on; give its address or switch it off",
    );
}

fn check_payments(config: &Config, read: &mut Reader) {
    let payments = &config.payments;
    let needs = [
        (PaymentProvider::Toss, "payments.toss_client_key", payments.toss_client_key.is_some()),
        (PaymentProvider::Toss, "payments.toss_secret_key", payments.toss_secret_key.is_some()),
        (
            PaymentProvider::PortOne,
            "payments.portone_store_id",
            payments.portone_store_id.is_some(),
        ),
        (
            PaymentProvider::PortOne,
            "payments.portone_api_secret",
            payments.portone_api_secret.is_some(),
        ),
    ];
    for (provider, key, given) in needs {
        read.require(
            &["payments.provider", key],
            payments.provider != provider || given,
            "this provider cannot be called without it; set it",
        );
    }
}
