//! The sandbox on both databases: every card, and books that add up.

use std::future::Future;
use std::time::Duration;

use urr_kernel::{Clock, IdSource, Timestamp, Won};
use urr_payment::provider::{
    ChargeRequest, ListedOrder, ProviderClient, ProviderListing, ProviderLookup, ProviderOutcome,
    ProviderPayment, ProviderState, RefundRequest, Sandbox, TestCard,
};
use urr_storage::{Schema, StorageError, migrations, params};
use urr_test::engines::{Database, Engine, block_on};

use crate::fixture::code;

const SCHEMA: Schema = Schema {
    name: "payment_service",
    migrations: migrations![2 "sandbox" => "../../migrations/0002_sandbox.sql"],
};
const ORDER: &str = "ORD_1";
const PRICE: Won = Won::new(132_000);

struct World {
    database: Database,
    clock: Clock,
    sandbox: Sandbox,
    provider: ProviderClient,
}

fn run<F: Future<Output = ()>>(engine: Engine, case: impl FnOnce(World) -> F) {
    let clock = Clock::manual("2026-12-01T12:00:00Z".parse().unwrap());
    let Some(database) = Database::open(engine, &SCHEMA, clock.now()) else {
        return;
    };
    let ids = IdSource::seeded(clock.clone(), 20_261_201);
    let sandbox = Sandbox::new(database.db.clone(), clock.clone(), ids).without_waiting();
    let provider = ProviderClient::Sandbox(sandbox.clone());
    block_on(async { case(World { database, clock, sandbox, provider }).await });
}

macro_rules! both_databases {
    ($($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block)*) => {
        urr_test::on_both! {
            run = crate::sandbox::run,
            sqlite = urr_test::engines::Engine::Sqlite,
            postgres = urr_test::engines::Engine::Postgres;
            $($(#[$meta])* async fn $name($world: crate::sandbox::World) $body)*
        }
    };
}

impl World {
    async fn agreed(&self, card: TestCard) -> ChargeRequest {
        self.agreed_for(card, ORDER).await
    }

    async fn agreed_for(&self, card: TestCard, order_id: &str) -> ChargeRequest {
        let payment_key = self.sandbox.issue_key(card, order_id, PRICE).await.unwrap();
        let idempotency_key = format!("{order_id}:confirm");
        ChargeRequest { order_id: order_id.to_owned(), payment_key, amount: PRICE, idempotency_key }
    }

    async fn find(&self) -> ProviderPayment {
        match self.provider.find(ORDER, None).await {
            ProviderLookup::Payment(payment) => payment,
            found => panic!("the order is known: {found:?}"),
        }
    }

    /// What was taken, less what was given back.
    async fn balance(&self) -> i64 {
        let sql = "select cast(coalesce(sum(amount), 0) as bigint) as total from sandbox_movements";
        let read = self
            .database
            .db
            .read::<i64, StorageError, _>(move |tx| tx.query_one(sql, &[], |row| row.get("total")));
        read.await.unwrap()
    }

    async fn charged(&self, card: TestCard) -> ChargeRequest {
        let charge = self.agreed(card).await;
        assert!(matches!(self.provider.confirm(&charge).await, ProviderOutcome::Done(_)));
        charge
    }
}

fn giving_back(charge: &ChargeRequest, amount: i64, remaining: Won, key: &str) -> RefundRequest {
    RefundRequest {
        order_id: charge.order_id.clone(),
        payment_key: charge.payment_key.clone(),
        amount: Won::new(amount),
        remaining,
        reason: "cancelled".to_owned(),
        idempotency_key: key.to_owned(),
    }
}

both_databases! {
    async fn a_key_is_good_for_ten_minutes_and_a_begun_charge_for_longer(world: World) {
        let (good, late) =
            (world.agreed_for(TestCard::Approve, "A").await, world.agreed_for(TestCard::Approve, "B").await);
        let begun = world.agreed_for(TestCard::Stumble, "C").await;
        world.clock.advance(Duration::from_mins(9));
        assert!(matches!(world.provider.confirm(&good).await, ProviderOutcome::Done(_)));
        assert_eq!(code(&world.provider.confirm(&begun).await), "TIMEOUT");
        world.clock.advance(Duration::from_mins(2));
        let refused = world.provider.confirm(&late).await;
        let code = "NOT_FOUND_PAYMENT_SESSION".to_owned();
        assert_eq!(refused, ProviderOutcome::Declined { code });
        assert!(matches!(world.provider.confirm(&begun).await, ProviderOutcome::Done(_)));
        assert_eq!(world.balance().await, 2 * PRICE.amount());
    }

    /// All cards: what is told, and what is true afterwards.
    async fn every_card_does_what_it_promises(world: World) {
        use ProviderState::{Dead, Open, Paid};
        let (price, less) = (PRICE.amount(), PRICE.amount() - 1);
        for (number, card) in TestCard::ALL.into_iter().enumerate() {
            let (told, state, balance) = match card {
                TestCard::Approve | TestCard::Slow | TestCard::TestChannel => ("done", Paid, price),
                TestCard::RefundTimesOut | TestCard::RefundDeclined | TestCard::PartDeclined => {
                    ("done", Paid, price)
                }
                TestCard::Decline => ("declined REJECT_CARD_PAYMENT", Dead, 0),
                TestCard::Insufficient => ("declined INSUFFICIENT_FUNDS", Dead, 0),
                TestCard::TimeOut | TestCard::Stumble => ("unknown TIMEOUT", Open, 0),
                TestCard::ChargeThenTimeOut => ("unknown TIMEOUT", Paid, price),
                TestCard::ChargeThenFail => {
                    ("unknown FAILED_INTERNAL_SYSTEM_PROCESSING", Paid, price)
                }
                TestCard::Duplicate => ("unknown ALREADY_PROCESSED_PAYMENT", Paid, price),
                TestCard::WrongAmount => ("unknown MISMATCH", Paid, less),
                TestCard::UnknownCode => ("unknown SANDBOX_UNHEARD_OF", Open, 0),
            };
            let order_id = format!("ORD_{number}");
            let before = world.balance().await;
            let charge = world.agreed_for(card, &order_id).await;
            let outcome = match world.provider.confirm(&charge).await {
                ProviderOutcome::Done(_) => "done".to_owned(),
                ProviderOutcome::Declined { code } => format!("declined {code}"),
                ProviderOutcome::Unsent { code } => format!("unsent {code}"),
                ProviderOutcome::Unknown { code } => format!("unknown {code}"),
            };
            assert_eq!(outcome, told, "{card:?}");
            let ProviderLookup::Payment(payment) = world.provider.find(&order_id, None).await else {
                panic!("{card:?}: the order is known");
            };
            assert_eq!(payment.state, state, "{card:?}");
            assert_eq!(world.balance().await - before, balance, "{card:?}");
            if state == Paid {
                assert_eq!(payment.amount.amount(), balance, "{card:?}");
            }
        }
    }

    async fn the_same_key_again_tells_what_was_done_and_does_nothing(world: World) {
        let cards = [TestCard::ChargeThenTimeOut, TestCard::ChargeThenFail, TestCard::Duplicate];
        for (card, order_id) in cards.into_iter().zip(["ORD_1", "ORD_2", "ORD_3"]) {
            let charge = world.agreed_for(card, order_id).await;
            let outcome = world.provider.confirm(&charge).await;
            assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{card:?}: {outcome:?}");
            for _ in 0..2 {
                assert!(matches!(world.provider.confirm(&charge).await, ProviderOutcome::Done(_)));
            }
            let other = ChargeRequest { idempotency_key: "another".to_owned(), ..charge };
            let outcome = world.provider.confirm(&other).await;
            assert_eq!(code(&outcome), "ALREADY_PROCESSED_PAYMENT");
        }
        assert_eq!(world.balance().await, 3 * PRICE.amount());
    }

    async fn a_stumble_is_charged_the_next_time_and_a_time_out_never(world: World) {
        let charge = world.agreed(TestCard::Stumble).await;
        assert_eq!(code(&world.provider.confirm(&charge).await), "TIMEOUT");
        assert_eq!(world.balance().await, 0);
        assert!(matches!(world.provider.confirm(&charge).await, ProviderOutcome::Done(_)));
        let never = world.agreed_for(TestCard::TimeOut, "ORD_2").await;
        for _ in 0..3 {
            assert_eq!(code(&world.provider.confirm(&never).await), "TIMEOUT");
        }
        assert_eq!(world.balance().await, PRICE.amount());
    }

    async fn a_decline_stays_one(world: World) {
        let charge = world.agreed(TestCard::Decline).await;
        for _ in 0..2 {
            let outcome = world.provider.confirm(&charge).await;
            assert_eq!(outcome, ProviderOutcome::Declined { code: "REJECT_CARD_PAYMENT".to_owned() });
        }
    }

    /// M-4: no string but an issued one works as a payment key.
    async fn a_forged_altered_or_foreign_key_moves_nothing(world: World) {
        let charge = world.agreed(TestCard::Approve).await;
        let (order_id, amount) = ("ORD_2".to_owned(), Won::new(100));
        let forged = |payment_key: &str| {
            ChargeRequest { payment_key: payment_key.to_owned(), ..charge.clone() }
        };
        for altered in [
            ChargeRequest { amount, ..charge.clone() },
            ChargeRequest { order_id, ..charge.clone() },
            forged(&format!("{}0", charge.payment_key)),
            forged("sandbox_approve_00000000000000000000000000000000"),
            forged("sandbox_approve"),
            forged("toss_approve_1"),
            forged(""),
        ] {
            let outcome = world.provider.confirm(&altered).await;
            assert!(matches!(outcome, ProviderOutcome::Declined { .. }), "{altered:?}: {outcome:?}");
        }
        assert_eq!(world.balance().await, 0);
        assert_eq!(world.provider.find("ORD_2", None).await, ProviderLookup::NotFound);
        assert!(matches!(world.provider.confirm(&charge).await, ProviderOutcome::Done(_)));
    }

    async fn a_hundred_confirms_at_once_are_one_charge(world: World) {
        let charge = world.agreed(TestCard::Approve).await;
        let confirming = (0..100).map(|_| {
            let (provider, charge) = (world.provider.clone(), charge.clone());
            tokio::spawn(async move { provider.confirm(&charge).await })
        });
        for outcome in confirming.collect::<Vec<_>>() {
            assert!(matches!(outcome.await.unwrap(), ProviderOutcome::Done(_)));
        }
        assert_eq!(world.balance().await, PRICE.amount());
    }

    /// Each of ten checkouts has a key of its own; the order is charged by one of them.
    async fn an_order_is_charged_once_however_many_checkouts_it_had(world: World) {
        let mut confirming = Vec::new();
        for number in 0..10 {
            let idempotency_key = format!("p{number}:confirm");
            let charge = ChargeRequest { idempotency_key, ..world.agreed(TestCard::Approve).await };
            let provider = world.provider.clone();
            confirming.push(tokio::spawn(async move { provider.confirm(&charge).await }));
        }
        let mut done = 0;
        for outcome in confirming {
            match outcome.await.unwrap() {
                ProviderOutcome::Done(_) => done += 1,
                outcome => assert_eq!(code(&outcome), "DUPLICATED_ORDER_ID"),
            }
        }
        assert_eq!((done, world.balance().await), (1, PRICE.amount()));
        assert_eq!(world.find().await.state, ProviderState::Paid);
    }

    /// A card that would be declined is not even asked: the order is paid.
    async fn a_second_checkout_of_a_paid_order_is_told_so_whatever_its_card(world: World) {
        world.charged(TestCard::Approve).await;
        for card in [TestCard::Approve, TestCard::Decline] {
            let idempotency_key = format!("{}:confirm", card.as_str());
            let again = ChargeRequest { idempotency_key, ..world.agreed(card).await };
            assert_eq!(code(&world.provider.confirm(&again).await), "DUPLICATED_ORDER_ID");
        }
        assert_eq!(world.balance().await, PRICE.amount());
    }

    /// The last guard of the books, should everything before it fail.
    async fn the_books_refuse_a_second_charge_of_an_order(world: World) {
        let keys = [world.agreed(TestCard::Approve).await, world.agreed(TestCard::Approve).await];
        let [first, second] = keys.map(|charge| charge.payment_key);
        let charge = async |key: String| {
            let sql = "update sandbox_payments set charged = amount where payment_key = $1";
            world.database.db.write(move |tx| tx.execute(sql, params![key])).await
        };
        assert_eq!(charge(first).await, Ok(1));
        let refused: StorageError = charge(second).await.unwrap_err();
        assert!(refused.violates("sandbox_payments_charged"), "{refused}");
    }

    async fn parts_are_given_back_once_per_key_and_never_more_than_was_taken(world: World) {
        let charge = world.charged(TestCard::Approve).await;
        let part = giving_back(&charge, 32_000, PRICE, "r1");
        for _ in 0..2 {
            let ProviderOutcome::Done(payment) = world.provider.cancel(&part).await else {
                panic!("nothing stands in the way");
            };
            assert_eq!(payment.refunded, Won::new(32_000));
        }
        let left = Won::new(100_000);
        let too_much = giving_back(&charge, 100_001, left, "r2");
        let outcome = world.provider.cancel(&too_much).await;
        assert_eq!(outcome, ProviderOutcome::Declined { code: "NOT_CANCELABLE_AMOUNT".to_owned() });
        let mistaken = giving_back(&charge, 1_000, PRICE, "r2");
        let outcome = world.provider.cancel(&mistaken).await;
        assert_eq!(code(&outcome), "NOT_MATCHES_REFUNDABLE_AMOUNT");
        let rest = giving_back(&charge, 100_000, left, "r2");
        assert!(matches!(world.provider.cancel(&rest).await, ProviderOutcome::Done(_)));
        assert_eq!(world.find().await.state, ProviderState::Refunded);
        assert_eq!(world.balance().await, 0);
    }

    async fn a_return_can_be_lost_on_the_way_or_refused(world: World) {
        let charge = world.charged(TestCard::RefundTimesOut).await;
        let all = giving_back(&charge, PRICE.amount(), PRICE, "r1");
        assert_eq!(code(&world.provider.cancel(&all).await), "TIMEOUT");
        assert_eq!(world.find().await.refunded, PRICE);
        assert!(matches!(world.provider.cancel(&all).await, ProviderOutcome::Done(_)));
        assert_eq!(world.balance().await, 0);
        let stubborn = world.agreed_for(TestCard::RefundDeclined, "ORD_2").await;
        assert!(matches!(world.provider.confirm(&stubborn).await, ProviderOutcome::Done(_)));
        let all = giving_back(&stubborn, PRICE.amount(), PRICE, "r2");
        let outcome = world.provider.cancel(&all).await;
        assert_eq!(outcome, ProviderOutcome::Declined { code: "REFUND_REJECTED".to_owned() });
        assert_eq!(world.balance().await, PRICE.amount());
    }

    async fn a_key_of_another_payment_is_not_used_twice(world: World) {
        let charge = world.charged(TestCard::Approve).await;
        let idempotency_key = charge.idempotency_key.clone();
        let other = ChargeRequest { idempotency_key, ..world.agreed_for(TestCard::Approve, "ORD_2").await };
        assert_eq!(code(&world.provider.confirm(&other).await), "IDEMPOTENCY_KEY_REUSED");
        let mixed_up = giving_back(&other, 1_000, PRICE, &charge.idempotency_key);
        assert_eq!(code(&world.provider.cancel(&mixed_up).await), "IDEMPOTENCY_KEY_REUSED");
        assert_eq!(world.balance().await, PRICE.amount());
    }

    async fn a_span_lists_what_moved_in_it(world: World) {
        let start = world.clock.now();
        let hour = std::time::Duration::from_secs(3_600);
        let charge = world.charged(TestCard::Approve).await;
        world.agreed(TestCard::Approve).await;
        world.clock.advance(hour);
        let part = giving_back(&charge, 32_000, PRICE, "r1");
        assert!(matches!(world.provider.cancel(&part).await, ProviderOutcome::Done(_)));
        let payment = world.find().await;
        let list = async |from: Timestamp, to: Timestamp| world.provider.list(from, to).await;
        let one = ProviderListing::Orders(vec![ListedOrder::known(payment)]);
        assert_eq!(list(start, start + hour).await, one);
        assert_eq!(list(start + hour, start + 2 * hour).await, one);
        assert_eq!(list(start, start + 2 * hour).await, one);
        assert_eq!(list(start - hour, start).await, ProviderListing::Orders(Vec::new()));
        assert_eq!(list(start + 2 * hour, start + 3 * hour).await, ProviderListing::Orders(Vec::new()));
    }

    /// Another process finds the same books.
    async fn the_books_outlive_the_sandbox(world: World) {
        let charge = world.charged(TestCard::Approve).await;
        let ids = IdSource::seeded(world.clock.clone(), 7);
        let another = Sandbox::new(world.database.db.clone(), world.clock.clone(), ids);
        let another = ProviderClient::Sandbox(another.without_waiting());
        assert!(matches!(another.confirm(&charge).await, ProviderOutcome::Done(_)));
        assert_eq!(world.balance().await, PRICE.amount());
    }

    async fn a_sandbox_that_is_down_tells_nothing_and_moves_nothing(world: World) {
        let charge = world.agreed(TestCard::Approve).await;
        world.sandbox.set_down(true);
        let now = world.clock.now();
        assert_eq!(code(&world.provider.confirm(&charge).await), "UNREACHABLE");
        let unreachable = || "UNREACHABLE".to_owned();
        let found = world.provider.find(ORDER, None).await;
        assert_eq!(found, ProviderLookup::Unknown { code: unreachable() });
        let listed = world.provider.list(now, now).await;
        assert_eq!(listed, ProviderListing::Unknown { code: unreachable() });
        world.sandbox.set_down(false);
        assert!(matches!(world.provider.confirm(&charge).await, ProviderOutcome::Done(_)));
    }
}

#[test]
fn cards_are_known_by_their_names() {
    for card in TestCard::ALL {
        assert_eq!(card.as_str().parse(), Ok(card));
    }
    for name in ["", "Approve", "approve ", "visa"] {
        assert!(name.parse::<TestCard>().is_err(), "{name:?}");
    }
}
