//! Composes the payment service.

use std::time::Duration;

use anyhow::{Context, Result};
use urr_contracts::clients::TicketClient;
use urr_outbound::Outbound;
use urr_payment::provider::{
    PORTONE_ENDPOINT, PortOneClient, PortOneSettings, ProviderClient, Sandbox, TOSS_ENDPOINT,
    TossClient, TossSettings,
};
use urr_payment::{FaultPoints, PaymentParts, PaymentService, PaymentSettings, consumer};
use urr_service::Service;
use urr_storage::Db;

use super::{Builder, World};
use crate::config::{Config, PaymentProviderKind, PaymentsConfig};

/// Starts the payment service with its consumer and jobs.
pub fn start(
    builder: &Builder<'_>,
    db: Db,
    world: &World,
    tickets: TicketClient,
) -> Result<Service> {
    builder.consume(&db, consumer::GROUP, consumer::TOPICS, consumer::handle);
    let payments = payments(builder.config, db, world, tickets)?;
    let jobs = payments.clone().run_jobs(builder.stopping.clone());
    builder.spawn("the payments' jobs", jobs);
    Ok(payments.service(builder.kit))
}

/// The payment service, also for commands that work on its tables.
pub fn payments(
    config: &Config,
    db: Db,
    world: &World,
    tickets: TicketClient,
) -> Result<PaymentService> {
    Ok(PaymentService::new(PaymentParts {
        providers: providers(config, &db, world)?,
        db,
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: PaymentSettings {
            audit_interval: Duration::from_millis(config.payments.reconciliation_interval_ms),
            ..PaymentSettings::default()
        },
        tickets,
        faults: FaultPoints::default(),
    }))
}

/// The provider of new orders first, then all others that are configured: their payments may still
/// be open.
fn providers(config: &Config, db: &Db, world: &World) -> Result<Vec<ProviderClient>> {
    let payments = &config.payments;
    let chosen = match payments.provider {
        PaymentProviderKind::Sandbox => "sandbox",
        PaymentProviderKind::Toss => "toss",
        PaymentProviderKind::PortOne => "portone",
    };
    let sandbox = Sandbox::new(db.clone(), world.clock.clone(), world.ids.clone());
    let sandbox = sandbox.with_time_limit(Duration::from_secs(payments.timeout_seconds));
    let mut providers = vec![ProviderClient::Sandbox(sandbox)];
    if let Some(settings) = toss(payments) {
        let toss = TossClient::new(settings, Outbound::new(), world.clock.clone());
        providers.push(ProviderClient::Toss(toss.context("payments.toss_secret_key")?));
    }
    if let Some(settings) = portone(payments) {
        let portone = PortOneClient::new(settings, Outbound::new(), world.clock.clone());
        let keys = "payments.portone_api_secret or payments.portone_webhook_secret";
        providers.push(ProviderClient::PortOne(portone.context(keys)?));
    }
    providers.sort_by_key(|provider| provider.name() != chosen);
    Ok(providers)
}

fn toss(payments: &PaymentsConfig) -> Option<TossSettings> {
    Some(TossSettings {
        secret_key: payments.toss_secret_key.clone()?,
        client_key: payments.toss_client_key.clone()?,
        endpoint: TOSS_ENDPOINT.to_owned(),
        timeout: Duration::from_secs(payments.timeout_seconds),
    })
}

fn portone(payments: &PaymentsConfig) -> Option<PortOneSettings> {
    let secrets = [&payments.portone_webhook_secret, &payments.other_portone_webhook_secret];
    Some(PortOneSettings {
        api_secret: payments.portone_api_secret.clone()?,
        store_id: payments.portone_store_id.clone()?,
        channel_key: payments.portone_channel_key.clone()?,
        webhook_secrets: secrets.into_iter().flatten().cloned().collect(),
        endpoint: PORTONE_ENDPOINT.to_owned(),
        timeout: Duration::from_secs(payments.timeout_seconds),
    })
}
