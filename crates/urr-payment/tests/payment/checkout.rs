//! Paying by a provider that is really elsewhere: it fails, hangs, repeats itself, and takes its
//! time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Secret, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{ProviderClient, TestCard, TossClient, TossSettings};
use urr_payment::{
    Approval, ApproveOrder, OrderRequest, Payment, PaymentService, PaymentStatus, RefundStatus,
    SagaStep,
};
use urr_service::{Metrics, RequestLimits, ServiceKit};

use crate::api_client::ApiClient;
use crate::contract;
use crate::fake_provider::{Account, FakeProvider, Fault, LIVE_CHANNEL, PATIENCE, Sale};
use crate::fake_ticket_service::FakePayable;
use crate::fake_toss;
use crate::fixture::{PRICE, World};

/// A process that sells by Toss.
struct Shop {
    fake: Arc<FakeProvider>,
    payments: PaymentService,
    metrics: Metrics,
}

impl Shop {
    async fn open(world: &World) -> Shop {
        let (fake, endpoint) = fake_toss::start().await;
        let settings = TossSettings {
            secret_key: Secret::new(fake_toss::SECRET_KEY),
            client_key: "test_ck_docs".to_owned(),
            endpoint,
            timeout: PATIENCE,
        };
        let toss = TossClient::new(settings, Outbound::new(), world.clock.clone()).unwrap();
        let payments = world.instance_of(ProviderClient::Toss(toss));
        let metrics = Metrics::new();
        payments.service(&ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: metrics.clone(),
            limits: RequestLimits::default(),
        });
        Shop { fake, payments, metrics }
    }

    /// A buyer who has been at the checkout.
    async fn agree(&self, world: &World, held: &FakePayable) -> ApproveOrder {
        let request = OrderRequest {
            user_id: held.user_id,
            payable: PayableRef { kind: PayableKind::Reservation, id: held.id },
            amount: None,
            key: None,
        };
        let order = self.payments.prepare_order(request, &world.context()).await.unwrap();
        let payment_key = format!("tviva{}", order.id.0.simple());
        self.fake.books().sales.push(Sale {
            order_id: order.order_id.clone(),
            payment_key: payment_key.clone(),
            amount: order.amount.amount(),
            charges: Vec::new(),
            returns: Vec::new(),
            is_dead: false,
            account: Account::None,
            channel: LIVE_CHANNEL,
        });
        let approval = Approval { user_id: held.user_id, payment_key, amount: order.amount };
        ApproveOrder { order_id: order.order_id, approval, key: None, claim: None }
    }

    async fn pay(&self, world: &World) -> (FakePayable, Payment) {
        let held = world.hold();
        let order = self.agree(world, &held).await;
        let payment = self.payments.approve(order, &world.context()).await.unwrap();
        (world.tickets.get(held.id), payment)
    }

    /// The keys by which money was asked back.
    fn cancel_keys(&self) -> BTreeSet<String> {
        let seen = self.fake.seen().into_iter().filter(|seen| seen.path.ends_with("/cancel"));
        seen.map(|seen| seen.headers["idempotency-key"].to_str().unwrap().to_owned()).collect()
    }

    fn refunded(&self, payment: &Payment) -> Vec<i64> {
        self.fake.books().of_order(&payment.order_id).unwrap().returns.clone()
    }

    fn alarms(&self, code: &str) -> bool {
        self.metrics.text().contains(&format!("urr_payment_alarms_total{{code=\"{code}\"}}"))
    }

    /// Lets so many seconds pass, and everybody do their work at each.
    async fn live(&self, world: &World, seconds: u64) {
        for _ in 0..seconds {
            self.payments.resolve_due().await.unwrap();
            world.clock.advance(Duration::from_secs(1));
        }
    }
}

async fn cancel(world: &World, held: &FakePayable, fee: i64) {
    world.tickets.change(held.id, |held| held.cancel_fee = Won::new(fee));
    world.tickets.cancel(held.id);
    let cancelled = world.tickets.take_cancelled().pop().unwrap();
    world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
}

contract! {
    async fn a_shop_with_a_real_provider_has_no_keys_of_the_sandbox(world: World) {
        let shop = Shop::open(&world).await;
        let api = ApiClient::to(&shop.payments, &world);
        let body = json!({"orderId": "ORD_0", "card": "approve"});
        let user = Some(world.ids.next_id());
        let (status, refused) = api.post(user, "/api/payments/sandbox/keys", &body).await;
        assert_eq!((status.as_u16(), &refused["code"]), (404, &json!("NOT_FOUND")));
    }

    /// Toss repeats its first answer to a key for fifteen days.
    async fn a_return_at_which_the_provider_failed_is_asked_for_by_another_key(world: World) {
        let shop = Shop::open(&world).await;
        let (held, payment) = shop.pay(&world).await;
        assert_eq!(payment.status, PaymentStatus::Confirmed);
        shop.fake.fail_next_change(Fault::RefusalForGood(500, "FAILED_REFUND_PROCESS"));
        cancel(&world, &held, 2_000).await;
        shop.live(&world, 40).await;
        assert_eq!(shop.cancel_keys().len(), 1, "at first it may still be at it");
        assert!(shop.refunded(&payment).is_empty());
        shop.live(&world, 120).await;
        assert_eq!(shop.cancel_keys().len(), 2, "then it is another question");
        assert_eq!(shop.refunded(&payment), [100_000]);
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Refunded, None));
    }

    /// The control: without an answer nobody knows what became of it, and the key stays.
    async fn a_return_that_was_never_answered_keeps_its_key(world: World) {
        let shop = Shop::open(&world).await;
        let (held, payment) = shop.pay(&world).await;
        for _ in 0..4 {
            shop.fake.fail_next_change(Fault::Reset);
        }
        cancel(&world, &held, 2_000).await;
        shop.live(&world, 200).await;
        assert_eq!(shop.cancel_keys().len(), 1);
        assert_eq!(shop.refunded(&payment), [100_000]);
        let refunds = shop.payments.list_refunds(payment.id).await.unwrap();
        assert_eq!(refunds[0].status, RefundStatus::Done);
    }

    /// Seats do not wait for a bank transfer.
    async fn an_account_to_pay_into_is_closed_and_the_seats_are_free(world: World) {
        let shop = Shop::open(&world).await;
        for is_answer_lost in [false, true] {
            let held = world.hold();
            let order = shop.agree(&world, &held).await;
            shop.fake.books().of_order(&order.order_id).unwrap().account = Account::Wanted;
            if is_answer_lost {
                shop.fake.fail_next_change(Fault::Says("method", "가상계좌"));
                shop.fake.fail_next_change(Fault::ActThenReset);
            }
            let payment = shop.payments.approve(order.clone(), &world.context()).await.unwrap();
            let account = shop.fake.books().of_order(&order.order_id).unwrap().account;
            assert_eq!(account, Account::Closed, "at once");
            if is_answer_lost {
                assert_eq!((payment.status, payment.step), (PaymentStatus::Unknown, Some(SagaStep::Query)));
                shop.live(&world, 3).await;
            }
            let payment = world.find(payment.id).await;
            assert_eq!((payment.status, payment.step), (PaymentStatus::Failed, None));
            assert_eq!(payment.failure_code.as_deref(), Some("METHOD_NOT_SUPPORTED"));
            let held = world.tickets.get(held.id);
            assert_eq!((held.status, held.pinned_by), ("pending", None));
        }
    }

    /// The bank was told too late.
    async fn money_that_is_paid_into_a_closed_account_is_found_and_somebody_is_told(world: World) {
        let shop = Shop::open(&world).await;
        let held = world.hold();
        let order = shop.agree(&world, &held).await;
        shop.fake.books().of_order(&order.order_id).unwrap().account = Account::Wanted;
        let payment = shop.payments.approve(order.clone(), &world.context()).await.unwrap();
        assert_eq!(payment.status, PaymentStatus::Failed);
        world.tickets.change(held.id, |held| held.status = "expired");
        shop.fake.books().of_order(&order.order_id).unwrap().charges.push(PRICE.amount());
        assert!(!shop.alarms("PAID_AFTER_ALL"));
        world.clock.advance(Duration::from_secs(600));
        let now = world.clock.now();
        let day = Duration::from_secs(24 * 60 * 60);
        let found = shop.payments.reconcile(now - day, now).await.unwrap();
        assert_eq!(found.reopened, [order.order_id]);
        shop.live(&world, 3).await;
        assert!(shop.alarms("PAID_AFTER_ALL"));
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, PRICE));
        assert_eq!(shop.refunded(&payment), [PRICE.amount()]);
    }

    /// P-10: no transaction is open while somebody else is waited for.
    async fn p_10_while_a_provider_hangs_others_pay_and_get_their_money_back(world: World) {
        let shop = Shop::open(&world).await;
        let (paid, _) = shop.pay(&world).await;
        let hangs = async |work: tokio::task::JoinHandle<()>| {
            shop.fake.arrival().await;
            let others = async {
                let (held, payment) = world.pay(TestCard::Approve).await;
                assert_eq!(payment.status, PaymentStatus::Confirmed);
                cancel(&world, &held, 0).await;
                world.payments.resume(payment.id).await.unwrap();
                assert_eq!(world.find(payment.id).await.status, PaymentStatus::Refunded);
            };
            let others = tokio::time::timeout(PATIENCE / 2, others).await;
            others.expect("nobody waits for the one that hangs");
            shop.fake.release();
            work.await.unwrap();
        };
        let held = world.hold();
        let order = shop.agree(&world, &held).await;
        shop.fake.fail_next_change(Fault::Slow);
        let (payments, context) = (shop.payments.clone(), world.context());
        hangs(tokio::spawn(async move {
            let payment = payments.approve(order, &context).await.unwrap();
            assert_eq!(payment.status, PaymentStatus::Confirmed);
        }))
        .await;
        cancel(&world, &paid, 0).await;
        let returning = shop.payments.list_by_payable(paid.id).await.unwrap().pop().unwrap();
        shop.fake.fail_next_change(Fault::Slow);
        let payments = shop.payments.clone();
        hangs(tokio::spawn(async move {
            let payment = payments.resume(returning.id).await.unwrap().unwrap();
            assert_eq!(payment.status, PaymentStatus::Refunded);
        }))
        .await;
        assert_eq!(world.tickets.get(held.id).tickets, 1);
    }

    /// What does not pass by itself is not waited for in silence.
    async fn somebody_is_told_when_a_provider_says_what_it_should_not(world: World) {
        let shop = Shop::open(&world).await;
        let lost = async |fault: Fault| {
            let held = world.hold();
            let order = shop.agree(&world, &held).await;
            shop.fake.fail_next_change(fault);
            let payment = shop.payments.approve(order.clone(), &world.context()).await.unwrap();
            assert_eq!(payment.status, PaymentStatus::Unknown);
            order.order_id
        };
        lost(Fault::Refusal(401, "UNAUTHORIZED_KEY")).await;
        assert!(shop.alarms("CREDENTIAL_REFUSED"));
        lost(Fault::Refusal(400, "SOMETHING_NEW")).await;
        assert!(!shop.alarms("MISMATCH") && !shop.alarms("PARTLY_RETURNED"), "the control");
        let order_id = lost(Fault::ActThenReset).await;
        shop.fake.fail_next_look(Fault::Says("orderId", "ORD_of_somebody_else"));
        let payment = shop.payments.find_order(&order_id).await.unwrap().unwrap();
        world.clock.advance(Duration::from_secs(2));
        shop.payments.resume(payment.id).await.unwrap();
        assert!(shop.alarms("MISMATCH"));
        shop.fake.books().of_order(&order_id).unwrap().returns.push(7);
        world.clock.advance(Duration::from_secs(4));
        shop.payments.resume(payment.id).await.unwrap();
        assert!(shop.alarms("PARTLY_RETURNED"));
    }
}
