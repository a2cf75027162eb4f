//! The gateway: its router for the public listener, and its settings.

use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use tracing::warn;
use urr_gateway::{
    ConcurrencyLimits, Gateway, GatewaySettings, RateLimiter, RateLimits, RevocationFeed, Timeouts,
};
use urr_service::token::TokenKey;
use urr_service::{Caller, Health, docs_router};
use urr_web::{
    BUILT_FILES, PageApi, ProviderScripts, Site, WebPages, WebSettings, read_built_files,
};

use super::builder::Builder;
use super::queue::entry_key;
use crate::config::{Config, IdentityProviderKind, PaymentProviderKind};
use crate::openapi;
use crate::role::ProcessRole;

/// The routes of the public listener: the API, its reference, health and the pages.
pub async fn public_router(builder: &Builder<'_>) -> Result<Router> {
    let (kit, config) = (builder.kit, builder.config);
    let upstreams = ProcessRole::SERVICES.map(|role| builder.upstream(Caller::Gateway, role));
    let upstreams = upstreams.into_iter().collect::<Result<Vec<_>>>()?;
    let openapi = openapi::document()?;
    let limiter = match &builder.redis {
        Some(redis) => RateLimiter::shared(redis.clone(), kit.clock.clone()),
        None => RateLimiter::local(kit.clock.clone()),
    };
    let gateway = Gateway::new(upstreams, limiter, settings(config), kit);
    let mut health = builder.health("gateway");
    if let Some(feed) = gateway.revocation_feed() {
        health = follow_revocations(builder, feed, health).await;
    }
    // Metrics are for operators and only on the internal listener: a proxy on this machine could pass
    // them on to everybody.
    let pages = health.router().merge(docs_router(&openapi));
    let site = site(config)?;
    let web = |api| WebPages::new(site, PageApi::new(api), web_settings(config), kit.clock.clone());
    Ok(gateway.router(|api| pages.merge(web(api).router()), kit))
}

fn site(config: &Config) -> Result<Site> {
    let site = match &config.gateway.pages_dir {
        None => Site::new(BUILT_FILES, provider_scripts(config)),
        Some(folder) => {
            let files = read_built_files(folder).with_context(|| {
                format!("gateway.pages_dir: {} cannot be read", folder.display())
            })?;
            Site::new(&files, provider_scripts(config))
        }
    };
    site.context("the pages")
}

fn web_settings(config: &Config) -> WebSettings {
    WebSettings {
        public_url: config.mail.public_url.clone().or_else(|| config.auth.public_url.clone()),
        seen_ttl: Duration::from_secs(config.queue.seen_ttl_seconds),
        hold_ttl: Duration::from_secs(config.seats.hold_ttl_seconds),
        has_sandbox: config.payments.provider == PaymentProviderKind::Sandbox,
    }
}

fn provider_scripts(config: &Config) -> ProviderScripts {
    let (payments, identity) = (config.payments.provider, config.auth.identity_provider);
    ProviderScripts {
        has_toss: payments == PaymentProviderKind::Toss,
        has_portone: payments == PaymentProviderKind::PortOne
            || identity == IdentityProviderKind::PortOne,
    }
}

/// Loads the revoked tokens and keeps the list up to date. Without the list the gateway cannot
/// accept any token, so it is not ready.
async fn follow_revocations(builder: &Builder<'_>, feed: RevocationFeed, health: Health) -> Health {
    if let Err(error) = feed.refresh().await {
        warn!(%error, "the revoked tokens are not loaded yet; this is retried every second");
    }
    let list = feed.clone();
    builder.spawn("the feed of revoked tokens", feed.run(builder.stopping.clone()));
    health.check("revoked-tokens", move || {
        let is_complete = list.is_complete();
        async move { is_complete.then_some(()).ok_or_else(|| "not known yet".to_owned()) }
    })
}

fn settings(config: &Config) -> GatewaySettings {
    let gateway = &config.gateway;
    let access_key = TokenKey::new(&config.auth.jwt_key());
    let entry_key = entry_key(config);
    GatewaySettings {
        trusted_edge_secret: gateway.trusted_edge_secret.clone(),
        trusted_proxies: gateway.trusted_proxies.clone(),
        allowed_origins: gateway.cors_allowed_origins.clone(),
        rate_limits: RateLimits {
            auth: gateway.rate_limit_auth_rpm,
            queue: gateway.rate_limit_queue_rpm,
            booking: gateway.rate_limit_booking_rpm,
            pay: gateway.rate_limit_pay_rpm,
            pay_target: gateway.rate_limit_pay_target_rpm,
            general: gateway.rate_limit_general_rpm,
            webhook: gateway.rate_limit_webhook_rpm,
            users_per_address: gateway.rate_limit_users_per_address,
            login_account: gateway.rate_limit_login_account_rpm,
            login_address: gateway.rate_limit_login_address_rpm,
            refresh_address: gateway.rate_limit_refresh_address_rpm,
        },
        timeouts: Timeouts {
            general: Duration::from_secs(gateway.timeout_seconds),
            payment: Duration::from_secs(gateway.payment_timeout_seconds),
            queue: Duration::from_secs(gateway.queue_timeout_seconds),
        },
        concurrency: ConcurrencyLimits::for_threshold(config.queue.threshold),
        header_bytes_max: gateway.header_bytes_max,
        auth_body_bytes_max: gateway.auth_body_bytes_max,
        verified_email_to_buy: config.auth.verified_email_to_buy,
        is_loopback: config.server.host.is_loopback(),
        ..GatewaySettings::new(access_key, entry_key)
    }
}
