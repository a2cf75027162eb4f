//! A provider with its stand-in, and a buyer who has agreed to pay.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Secret, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{
    ChargeRequest, PortOneClient, PortOneSettings, ProviderClient, ProviderLookup, ProviderOutcome,
    ProviderPayment, ProviderState, RefundRequest, TossClient, TossSettings,
};
use urr_test::engines::block_on;

use crate::fake_provider::{Account, FakeProvider, Fault, LIVE_CHANNEL, Sale};
use crate::{fake_portone, fake_toss};

pub const ORDER: &str = "ORD_019a8c1e_0001";
pub const KEY: &str = "tviva20261201token0001";
pub const PRICE: i64 = 132_000;
/// How PortOne's stand-in and its messages are signed: one is old, one is new.
pub const WEBHOOK_SECRETS: [&str; 2] =
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_bmV3IHNlY3JldCBvZiB0aGUgc2hvcA=="];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Toss,
    PortOne,
}

pub struct World {
    pub kind: Kind,
    pub fake: Arc<FakeProvider>,
    pub provider: ProviderClient,
    /// The same with little time, for when nobody answers.
    hasty: ProviderClient,
    pub clock: Clock,
    pub endpoint: String,
}

/// Runs a case against one of the two.
pub fn run<F: Future<Output = ()>>(kind: Kind, case: impl FnOnce(World) -> F) {
    block_on(async { case(World::new(kind).await).await });
}

/// Cases that hold for Toss and for PortOne alike.
macro_rules! both_providers {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            toss = $crate::fixture::Kind::Toss,
            portone = $crate::fixture::Kind::PortOne;
            $($(#[$meta])* async fn $name($world: $crate::fixture::World) $body)*
        }
    };
}

impl World {
    /// One buyer has agreed to pay the price of one order.
    pub async fn new(kind: Kind) -> World {
        let (fake, endpoint) = match kind {
            Kind::Toss => fake_toss::start().await,
            Kind::PortOne => fake_portone::start().await,
        };
        let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
        let provider = connect(kind, &endpoint, &clock, PATIENCE);
        let hasty = connect(kind, &endpoint, &clock, HASTE);
        let world = World { kind, fake, provider, hasty, clock, endpoint };
        world.agree(ORDER, KEY);
        world
    }

    pub fn agree(&self, order_id: &str, payment_key: &str) {
        self.fake.books().sales.push(Sale {
            order_id: order_id.to_owned(),
            payment_key: payment_key.to_owned(),
            amount: PRICE,
            charges: Vec::new(),
            returns: Vec::new(),
            is_dead: false,
            account: Account::None,
            channel: LIVE_CHANNEL,
        });
    }

    pub async fn confirm(&self) -> ProviderOutcome<ProviderPayment> {
        self.provider.confirm(&charge()).await
    }

    pub async fn confirm_with(&self, fault: Fault) -> ProviderOutcome<ProviderPayment> {
        self.fake.fail_next_change(fault);
        self.caller(fault).confirm(&charge()).await
    }

    pub async fn give_back_with(
        &self,
        fault: Fault,
        what: &RefundRequest,
    ) -> ProviderOutcome<ProviderPayment> {
        self.fake.fail_next_change(fault);
        self.caller(fault).cancel(what).await
    }

    pub async fn find_with(&self, fault: Fault) -> ProviderLookup {
        self.fake.fail_next_look(fault);
        self.caller(fault).find(ORDER, Some(KEY)).await
    }

    fn caller(&self, fault: Fault) -> &ProviderClient {
        match fault {
            Fault::Silence | Fault::ActThenSilence => &self.hasty,
            _ => &self.provider,
        }
    }

    pub async fn find(&self) -> ProviderLookup {
        self.provider.find(ORDER, Some(KEY)).await
    }

    /// The payment of the order, which the provider must know.
    pub async fn payment(&self) -> ProviderPayment {
        match self.find().await {
            ProviderLookup::Payment(payment) => payment,
            found => panic!("the provider knows the order: {found:?}"),
        }
    }

    pub async fn state(&self) -> ProviderState {
        self.payment().await.state
    }

    /// What the provider took of the buyer, charge by charge.
    pub fn charges(&self) -> Vec<i64> {
        self.fake.books().of_order(ORDER).unwrap().charges.clone()
    }

    pub fn returns(&self) -> Vec<i64> {
        self.fake.books().of_order(ORDER).unwrap().returns.clone()
    }
}

pub use crate::fake_provider::PATIENCE;
/// Long enough for a request to arrive, and short enough to wait for in vain.
const HASTE: Duration = Duration::from_secs(2);

pub fn connect(kind: Kind, endpoint: &str, clock: &Clock, timeout: Duration) -> ProviderClient {
    let endpoint = endpoint.to_owned();
    let (outbound, clock) = (Outbound::new(), clock.clone());
    match kind {
        Kind::Toss => {
            let settings = TossSettings {
                secret_key: Secret::new(fake_toss::SECRET_KEY),
                client_key: "test_ck_docs".to_owned(),
                endpoint,
                timeout,
            };
            ProviderClient::Toss(TossClient::new(settings, outbound, clock).unwrap())
        }
        Kind::PortOne => {
            let settings = PortOneSettings { timeout, ..portone_settings(endpoint) };
            ProviderClient::PortOne(PortOneClient::new(settings, outbound, clock).unwrap())
        }
    }
}

fn portone_settings(endpoint: String) -> PortOneSettings {
    PortOneSettings {
        api_secret: Secret::new(fake_portone::API_SECRET),
        store_id: fake_portone::STORE_ID.to_owned(),
        channel_key: fake_portone::CHANNEL_KEY.to_owned(),
        accepts_test_channel: false,
        webhook_secrets: WEBHOOK_SECRETS.map(Secret::new).to_vec(),
        endpoint,
        timeout: PATIENCE,
    }
}

pub fn connect_portone(
    endpoint: &str,
    clock: &Clock,
    accepts_test_channel: bool,
) -> ProviderClient {
    let settings =
        PortOneSettings { accepts_test_channel, ..portone_settings(endpoint.to_owned()) };
    let client = PortOneClient::new(settings, Outbound::new(), clock.clone());
    ProviderClient::PortOne(client.unwrap())
}

pub fn charge() -> ChargeRequest {
    ChargeRequest {
        order_id: ORDER.to_owned(),
        payment_key: KEY.to_owned(),
        amount: Won::new(PRICE),
        idempotency_key: "019a8c1e-0000-7000-8000-000000000001:confirm".to_owned(),
    }
}

/// The first return of a charge of the whole price.
pub fn giving_back(amount: i64) -> RefundRequest {
    RefundRequest {
        order_id: ORDER.to_owned(),
        payment_key: KEY.to_owned(),
        amount: Won::new(amount),
        remaining: Won::new(PRICE),
        reason: "공연 취소".to_owned(),
        idempotency_key: "019a8c1e-0000-7000-8000-000000000002".to_owned(),
    }
}

pub fn code<T: std::fmt::Debug>(outcome: &ProviderOutcome<T>) -> &str {
    match outcome {
        ProviderOutcome::Unknown { code } | ProviderOutcome::Unsent { code } => code,
        outcome => panic!("nobody knows what came of it: {outcome:?}"),
    }
}
