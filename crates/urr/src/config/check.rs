//! What must hold between settings, each with the reason.

use std::net::IpAddr;

use urr_mail::SmtpSecurity;
use urr_storage::postgres_protection;

use super::reader::SettingReader;
use super::{BotCheckKind, Config, IdentityProviderKind, MailSenderKind};
use crate::role::ProcessRole;

const SEEN_TTL_SECONDS_MIN: u64 = 180;
const SWEEP_INTERVAL_MS_MAX: u64 = 60_000;
const ACTIVE_TTL_SECONDS_MIN: u64 = 30;
const QUEUE_TIMEOUT_SECONDS_MIN: u64 = 6;

pub fn check(config: &Config, read: &mut SettingReader) {
    check_times(config, read);
    check_engines(config, read);
    check_encryption(config, read);
    check_payments(config, read);
    check_mails(config, read);
    check_accounts(config, read);
    read.require_distinct_secrets();
}

fn check_times(config: &Config, read: &mut SettingReader) {
    let (seats, queue, auth) = (&config.seats, &config.queue, &config.auth);
    read.require(
        &["seats.lock_ttl_seconds", "seats.hold_ttl_seconds"],
        seats.lock_ttl_seconds > seats.hold_ttl_seconds,
        "a lock that ends before its hold lets other requests compete for a seat that is being \
         paid; make the first larger than the second",
    );
    let alerts = &config.alerts;
    read.require(
        &["alerts.exclusive_seconds", "alerts.head_start_seconds"],
        alerts.exclusive_seconds == 0 || alerts.exclusive_seconds >= alerts.head_start_seconds,
        "a head start has an end that others must not reach before; make the first 0, or at least \
         the second",
    );
    read.require(
        &["queue.active_seconds_max", "queue.active_ttl_seconds"],
        queue.active_seconds_max >= queue.active_ttl_seconds,
        "a slot cannot last longer without activity than it lasts at all; make the first at least \
         the second",
    );
    read.require(
        &["queue.seen_ttl_seconds"],
        queue.seen_ttl_seconds >= SEEN_TTL_SECONDS_MIN,
        "users far back in the line poll once a minute or less; make it 180 at least, so that they \
         keep their position",
    );
    read.require(
        &["queue.stale_cleanup_interval_ms"],
        queue.stale_cleanup_interval_ms <= SWEEP_INTERVAL_MS_MAX,
        "after a longer pause the waiting room assumes that it was down itself and removes nobody; \
         make it 60000 at most",
    );
    read.require(
        &["queue.active_ttl_seconds"],
        queue.active_ttl_seconds >= ACTIVE_TTL_SECONDS_MIN,
        "users who choose seats send nothing for some seconds; make it 30 at least, so that they \
         keep their slot",
    );
    read.require(
        &["gateway.queue_timeout_seconds"],
        config.gateway.queue_timeout_seconds >= QUEUE_TIMEOUT_SECONDS_MIN,
        "a stream of the waiting room sends a heartbeat every five seconds; make it 6 at least",
    );
    read.require(
        &["auth.jwt_refresh_expiration_seconds", "auth.jwt_expiration_seconds"],
        auth.jwt_refresh_expiration_seconds > auth.jwt_expiration_seconds,
        "a refresh token renews access tokens, so it must live longer; make the first larger than \
         the second",
    );
}

fn check_engines(config: &Config, read: &mut SettingReader) {
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
        "there is no queue to announce admissions on; set its address or switch it off",
    );
    read.require(
        &["sqs.enabled", "sqs.access_key_id", "sqs.secret_access_key"],
        !sqs.enabled || (sqs.access_key_id.is_some() && sqs.secret_access_key.is_some()),
        "a queue is written to with a key; set both of its parts, or switch the notices off",
    );
}

/// What would protect less than it seems.
fn check_encryption(config: &Config, read: &mut SettingReader) {
    let own = ProcessRole::SERVICES.into_iter().filter_map(|role| {
        let url = config.service_databases.of(role)?.url.as_ref()?;
        Some((format!("database.{role}.url"), url))
    });
    let shared = config.database.url.iter().map(|url| ("database.url".to_owned(), url));
    for (key, url) in shared.chain(own) {
        if let Err(problem) = postgres_protection(url.expose()) {
            read.require(&[&key], false, &problem);
        }
    }
    let redis = &config.redis;
    read.require(
        &["redis.url", "redis.tls"],
        redis.url.is_none() || !redis.tls,
        "an address says by itself whether there is TLS; write rediss:// and leave redis.tls off",
    );
    read.require(
        &["redis.username", "redis.password"],
        redis.username.is_none() || redis.password.is_some(),
        "a user has a password; set it too",
    );
    let paths = [&redis.tls_root_path, &redis.tls_certificate_path, &redis.tls_key_path];
    read.require(
        &["redis.tls", "redis.tls_root_path", "redis.tls_certificate_path", "redis.tls_key_path"],
        redis.is_encrypted() || paths.iter().all(|path| path.is_none()),
        "certificates are given, and the connection does not use them; switch TLS on",
    );
    let bus = &config.bus;
    read.require(
        &["bus.kafka_username", "bus.kafka_password"],
        bus.kafka_username.is_some() == bus.kafka_password.is_some(),
        "a user has a password; set both or none",
    );
    let paths =
        [&bus.kafka_tls_root_path, &bus.kafka_tls_certificate_path, &bus.kafka_tls_key_path];
    read.require(
        &["bus.kafka_tls", "bus.kafka_tls_root_path", "bus.kafka_tls_certificate_path"],
        bus.kafka_tls || paths.iter().all(|path| path.is_none()),
        "certificates are given, and the connection does not use them; switch TLS on",
    );
    let (server, internal) = (&config.server, &config.internal);
    for (prefix, certificate, key) in [
        ("bus.kafka_", &bus.kafka_tls_certificate_path, &bus.kafka_tls_key_path),
        ("redis.", &redis.tls_certificate_path, &redis.tls_key_path),
        ("server.", &server.tls_certificate_path, &server.tls_key_path),
        ("internal.", &internal.tls_certificate_path, &internal.tls_key_path),
    ] {
        let keys = ["tls_certificate_path", "tls_key_path"].map(|key| format!("{prefix}{key}"));
        read.require(
            &[&keys[0], &keys[1]],
            certificate.is_some() == key.is_some(),
            "a certificate has a key; set both or none",
        );
    }
}

fn check_accounts(config: &Config, read: &mut SettingReader) {
    let auth = &config.auth;
    // With an id alone only the tokens of Google's own button are verified, without a redirect.
    let secrets =
        [&auth.google_client_secret, &auth.kakao_client_secret, &auth.naver_client_secret];
    read.require(
        &["auth.public_url"],
        auth.public_url.is_some() || secrets.iter().all(|secret| secret.is_none()),
        "Google, Kakao and Naver must know where to send people back; set it to this site's \
         address, such as https://urr.example",
    );
    read.require(
        &["auth.verified_email_to_buy", "mail.sender"],
        !auth.verified_email_to_buy || config.mail.sender == MailSenderKind::Smtp,
        "nobody can verify an address without mail, so nobody could buy; set mail.sender to smtp, or \
         let users buy without",
    );
    let is_remote = matches!(auth.bot_check, BotCheckKind::Remote(_));
    read.require(
        &["auth.bot_check", "auth.bot_check_site_key", "auth.bot_check_secret"],
        !is_remote || (auth.bot_check_site_key.is_some() && auth.bot_check_secret.is_some()),
        "a remote check needs both of its keys; set them, or use proof-of-work",
    );
    let payments = &config.payments;
    let has_portone = auth.portone_channel_key.is_some()
        && payments.portone_store_id.is_some()
        && payments.portone_api_secret.is_some();
    read.require(
        &["auth.identity_provider", "auth.portone_channel_key", "payments.portone_store_id"],
        auth.identity_provider != IdentityProviderKind::PortOne || has_portone,
        "PortOne needs its store, secret and channel; set payments.portone_store_id, \
         payments.portone_api_secret and auth.portone_channel_key",
    );
}

fn check_mails(config: &Config, read: &mut SettingReader) {
    let mail = &config.mail;
    let by_smtp = mail.sender == MailSenderKind::Smtp;
    read.require(
        &["mail.sender", "mail.smtp_host"],
        !by_smtp || mail.smtp_host.is_some(),
        "there is no SMTP server; name it, or set mail.sender to log",
    );
    read.require(
        &["mail.sender", "mail.from"],
        !by_smtp || mail.from.as_ref().is_some_and(|from| from.contains('@')),
        "mails need a sender, such as tickets@urr.example or URR <tickets@urr.example>",
    );
    read.require(
        &["mail.smtp_username", "mail.smtp_password"],
        mail.smtp_username.is_some() == mail.smtp_password.is_some(),
        "a login has a name and a password; set both or none",
    );
    let is_here = |host: &String| {
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    };
    read.require(
        &["mail.smtp_security", "mail.smtp_host"],
        mail.smtp_security != SmtpSecurity::None || mail.smtp_host.as_ref().is_none_or(is_here),
        "mails and the password could be read on the network; use starttls or tls",
    );
}

fn check_payments(config: &Config, read: &mut SettingReader) {
    for (key, given) in config.payments.keys_of(config.payments.provider) {
        let problem = "this provider cannot be called without it; set it";
        read.require(&["payments.provider", key], given, problem);
    }
    let payments = &config.payments;
    read.require(
        &["payments.toss_secret_key", "payments.dangerous_test_payments"],
        !payments.has_test_key() || payments.dangerous_test_payments,
        "a secret key for tests moves no money: whoever buys gets real tickets for nothing; set the \
         live key, or allow that by setting payments.dangerous_test_payments to true",
    );
}
