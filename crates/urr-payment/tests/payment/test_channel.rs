//! A buyer's browser chooses the channel at PortOne: one for tests takes no money, and must give no
//! ticket.

use std::sync::Arc;

use serde_json::json;
use urr_kernel::{Secret, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{PortOneClient, PortOneSettings, ProviderClient, TestCard};
use urr_payment::{PaymentService, PaymentStatus};
use urr_service::{Metrics, RequestLimits, ServiceKit};

use crate::api_client::{Answer, ApiClient};
use crate::contract;
use crate::fake_portone::{self, CHANNEL_KEY};
use crate::fake_provider::{Account, FakeProvider, LIVE_CHANNEL, PATIENCE, Sale};
use crate::fake_ticket_service::FakePayable;
use crate::fixture::World;

/// A process that sells by PortOne.
struct PortOneShop {
    fake: Arc<FakeProvider>,
    payments: PaymentService,
    metrics: Metrics,
}

impl PortOneShop {
    async fn open(world: &World, accepts_test_channel: bool) -> PortOneShop {
        let (fake, endpoint) = fake_portone::start().await;
        let settings = PortOneSettings {
            api_secret: Secret::new(fake_portone::API_SECRET),
            store_id: fake_portone::STORE_ID.to_owned(),
            channel_key: CHANNEL_KEY.to_owned(),
            accepts_test_channel,
            webhook_secrets: Vec::new(),
            endpoint,
            timeout: PATIENCE,
        };
        let client = PortOneClient::new(settings, Outbound::new(), world.clock.clone()).unwrap();
        let payments = world.instance_of(ProviderClient::PortOne(client));
        let metrics = Metrics::new();
        payments.service(&ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: metrics.clone(),
            limits: RequestLimits::default(),
        });
        PortOneShop { fake, payments, metrics }
    }

    /// Buys as the pages do, with a channel of the buyer's choice.
    async fn buy(
        &self,
        world: &World,
        channel: (&'static str, &'static str),
    ) -> (FakePayable, Answer) {
        let (api, held) = (ApiClient::to(&self.payments, world), world.hold());
        let body = json!({"reservationId": held.id, "amount": 102_000});
        let (_, order) = api.post(Some(held.user_id), "/api/payments/prepare", &body).await;
        assert_eq!(order["clientKey"], CHANNEL_KEY, "{order}");
        let order_id = order["orderId"].as_str().unwrap();
        let token = format!("token-{}", held.id);
        self.fake.books().sales.push(Sale {
            order_id: order_id.to_owned(),
            payment_key: token.clone(),
            amount: 102_000,
            charges: Vec::new(),
            returns: Vec::new(),
            is_dead: false,
            account: Account::None,
            channel,
        });
        let answer = api.confirm(held.user_id, &token, order_id, 102_000).await;
        (world.tickets.get(held.id), answer)
    }

    fn alarms(&self, code: &str) -> bool {
        self.metrics.text().contains(&format!("urr_payment_alarms_total{{code=\"{code}\"}}"))
    }
}

contract! {
    async fn a_payment_by_another_channel_gives_no_ticket_and_raises_an_alarm(world: World) {
        let shop = PortOneShop::open(&world, false).await;
        let attacks = [
            (("TEST", CHANNEL_KEY), "TEST_CHANNEL"),
            (("TEST", "channel-key-of-a-test"), "CHANNEL_MISMATCH"),
            (("LIVE", "channel-key-of-another"), "CHANNEL_MISMATCH"),
        ];
        for (channel, reason) in attacks {
            let (held, (status, answer)) = shop.buy(&world, channel).await;
            let returned = (409, &json!("PAYMENT_RETURNED"), &json!(reason));
            assert_eq!((status.as_u16(), &answer["code"], &answer["reason"]), returned);
            assert_eq!((held.status, held.tickets, held.pinned_by), ("pending", 0, None));
            assert!(shop.alarms(reason), "{}", shop.metrics.text());
            let payments = shop.payments.list_by_payable(held.id).await.unwrap();
            assert_eq!(payments[0].status, PaymentStatus::Refunded);
            assert_eq!(payments[0].remaining(), Won::ZERO);
            let mut books = shop.fake.books();
            let sale = books.of_order(&payments[0].order_id).unwrap();
            assert_eq!(sale.returns, [102_000], "it goes back");
        }
        let proof = shop.payments.prove_ledger().await.unwrap();
        assert!(proof.is_balanced(), "{proof}");
        // The right channel works, and so does a test channel where it is allowed: the control.
        let (held, (status, _)) = shop.buy(&world, LIVE_CHANNEL).await;
        assert_eq!((status.as_u16(), held.tickets), (200, 1));
        let lenient = PortOneShop::open(&world, true).await;
        let (held, (status, _)) = lenient.buy(&world, ("TEST", CHANNEL_KEY)).await;
        assert_eq!((status.as_u16(), held.tickets), (200, 1));
        let (held, (status, _)) = lenient.buy(&world, ("TEST", "channel-key-of-a-test")).await;
        assert_eq!((status.as_u16(), held.tickets), (409, 0), "still only our own channel");
    }

    /// The sandbox shows it too, so that everybody can try it.
    async fn the_test_channel_of_the_sandbox_is_refused_as_well(world: World) {
        let (held, payment) = world.pay(TestCard::TestChannel).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Refunded, None));
        assert_eq!(payment.failure_code.as_deref(), Some("TEST_CHANNEL"));
        assert_eq!((held.tickets, held.pinned_by), (0, None));
        let event = world.announced().await.pop().unwrap();
        assert_eq!(event.event_type, "CHARGE_REVERSED");
        assert_eq!(event.data["reason"], "TEST_CHANNEL");
        world.assert_whole().await;
    }
}
