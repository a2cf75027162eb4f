//! Payments and their providers.

use urr_kernel::Secret;

use super::rule::{choice, flag, millis, number, optional, password, text};
use super::section::section;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentProviderKind {
    Sandbox,
    Toss,
    PortOne,
}

const PAYMENT_PROVIDERS: &[(&str, PaymentProviderKind)] = &[
    ("sandbox", PaymentProviderKind::Sandbox),
    ("toss", PaymentProviderKind::Toss),
    ("portone", PaymentProviderKind::PortOne),
];

section! {
    PaymentsConfig = "payments" {
        provider: PaymentProviderKind = value(choice(PAYMENT_PROVIDERS));
        timeout_seconds: u64 = value(number(1..=60));
        reconciliation_interval_ms: u64 =
            value(millis()), "RESERVATION_RECONCILIATION_INTERVAL_MS";
        dangerous_test_payments: bool = value(flag());
        support_refund_max_won: i64 = value(number(0..=100_000_000));
        /// Public: the pages carry it.
        toss_client_key: Option<String> = value(optional(text())), "TOSS_CLIENT_KEY";
        toss_secret_key: Option<Secret> = secret(password()), "TOSS_SECRET_KEY";
        portone_store_id: Option<String> = value(optional(text()));
        portone_api_secret: Option<Secret> = secret(password());
        /// Public as well.
        portone_channel_key: Option<String> = value(optional(text()));
        portone_webhook_secret: Option<Secret> = secret(password());
        /// The one before, while it is being replaced.
        other_portone_webhook_secret: Option<Secret> = secret(password());
    }
}

impl PaymentsConfig {
    /// What a provider cannot be called without, and whether it is set. The first two have no other
    /// use, while PortOne's store and secret are also set where it only checks identities.
    pub fn keys_of(&self, provider: PaymentProviderKind) -> Vec<(&'static str, bool)> {
        match provider {
            PaymentProviderKind::Sandbox => Vec::new(),
            PaymentProviderKind::Toss => vec![
                ("payments.toss_client_key", self.toss_client_key.is_some()),
                ("payments.toss_secret_key", self.toss_secret_key.is_some()),
            ],
            PaymentProviderKind::PortOne => vec![
                ("payments.portone_channel_key", self.portone_channel_key.is_some()),
                ("payments.portone_webhook_secret", self.portone_webhook_secret.is_some()),
                ("payments.portone_store_id", self.portone_store_id.is_some()),
                ("payments.portone_api_secret", self.portone_api_secret.is_some()),
            ],
        }
    }

    /// Whether the provider of new orders is Toss with a secret key for tests: no money would move.
    pub fn has_test_key(&self) -> bool {
        let key = self.toss_secret_key.as_ref().map_or("", |key| key.expose().trim());
        self.provider == PaymentProviderKind::Toss && key.starts_with("test_")
    }

    /// Providers that have some of their keys and not all, and what they lack.
    pub fn half_configured(&self) -> Vec<(&'static str, String)> {
        let all = [("Toss", PaymentProviderKind::Toss), ("PortOne", PaymentProviderKind::PortOne)];
        let half = all.into_iter().filter_map(|(name, provider)| {
            let keys = self.keys_of(provider);
            let missing = keys.iter().filter(|(_, given)| !given).map(|(key, _)| *key);
            let missing = missing.collect::<Vec<_>>().join(", ");
            let is_begun = keys[..2].iter().any(|(_, given)| *given);
            (is_begun && !missing.is_empty()).then_some((name, missing))
        });
        half.collect()
    }
}
