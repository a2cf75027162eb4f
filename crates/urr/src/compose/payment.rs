//! The payment service, from the configuration.

use std::time::Duration;

use anyhow::{Context, Result};
use urr_contracts::clients::TicketClient;
use urr_kernel::Won;
use urr_outbound::Outbound;
use urr_payment::provider::{
    PORTONE_ENDPOINT, PortOneClient, PortOneSettings, ProviderClient, Sandbox, TOSS_ENDPOINT,
    TossClient, TossSettings,
};
use urr_payment::{FaultPoints, PaymentParts, PaymentService, PaymentSettings};
use urr_service::{Caller, Service};
use urr_storage::Db;

use super::ClockAndIds;
use super::builder::Builder;
use super::consumers;
use crate::config::{Config, PaymentProviderKind, PaymentsConfig};
use crate::role::ProcessRole;

/// Starts the payment service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    builder.consume(&db, &consumers::PAYMENT);
    let tickets = TicketClient::new(builder.upstream(Caller::Payment, ProcessRole::Ticket)?);
    let payment = payment_service(builder.config, db, &builder.sources(), tickets)?;
    let jobs = payment.clone().run_jobs(builder.stopping.clone());
    builder.add_jobs("the payment jobs", jobs);
    Ok(payment.service(builder.kit))
}

/// The payment service, here and in commands.
pub fn payment_service(
    config: &Config,
    db: Db,
    sources: &ClockAndIds,
    tickets: TicketClient,
) -> Result<PaymentService> {
    Ok(PaymentService::new(PaymentParts {
        providers: providers(config, &db, sources)?,
        db,
        clock: sources.clock.clone(),
        ids: sources.ids.clone(),
        settings: PaymentSettings {
            audit_interval: Duration::from_millis(config.payments.reconciliation_interval_ms),
            support_refund_max: Won::new(config.payments.support_refund_max_won),
            ..PaymentSettings::default()
        },
        tickets,
        faults: FaultPoints::default(),
    }))
}

/// The provider of new orders first, then the others: their payments may be unfinished.
fn providers(config: &Config, db: &Db, sources: &ClockAndIds) -> Result<Vec<ProviderClient>> {
    let payments = &config.payments;
    let chosen = match payments.provider {
        PaymentProviderKind::Sandbox => "sandbox",
        PaymentProviderKind::Toss => "toss",
        PaymentProviderKind::PortOne => "portone",
    };
    let sandbox = Sandbox::new(db.clone(), sources.clock.clone(), sources.ids.clone());
    let sandbox = sandbox.with_time_limit(Duration::from_secs(payments.timeout_seconds));
    let mut providers = vec![ProviderClient::Sandbox(sandbox)];
    if let Some(settings) = toss(payments) {
        let toss = TossClient::new(settings, Outbound::new(), sources.clock.clone());
        providers.push(ProviderClient::Toss(toss.context("payments.toss_secret_key")?));
    }
    if let Some(settings) = portone(payments) {
        let portone = PortOneClient::new(settings, Outbound::new(), sources.clock.clone());
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
        accepts_test_channel: payments.dangerous_test_payments,
        webhook_secrets: secrets.into_iter().flatten().cloned().collect(),
        endpoint: PORTONE_ENDPOINT.to_owned(),
        timeout: Duration::from_secs(payments.timeout_seconds),
    })
}
