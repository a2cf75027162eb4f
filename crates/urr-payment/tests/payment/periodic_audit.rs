//! What is looked through every few minutes: from where it stopped, by one at a time.

use std::time::Duration;

use urr_kernel::{Secret, Timestamp, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{
    CALL_TIMEOUT, ChargeRequest, ProviderClient, ProviderOutcome, TestCard, TossClient,
    TossSettings,
};
use urr_payment::{
    FaultPoints, LedgerDifference, PaymentParts, PaymentService, ProviderDifference,
};
use urr_storage::{StorageError, params};

use crate::contract;
use crate::fixture::{World, settings, ticket_client};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

async fn audit_ledger_changes(world: &World) -> Vec<LedgerDifference> {
    world.payments.audit_ledger_changes().await.unwrap().expect("nobody else is at it")
}

/// Money for an order that we have never made.
async fn charge_unknown(world: &World, order_id: &str) -> ProviderDifference {
    let amount = Won::new(500);
    let payment_key = world.sandbox.issue_key(TestCard::Approve, order_id, amount).await.unwrap();
    let (order_id, key) = (order_id.to_owned(), format!("key of {order_id}"));
    let charge = ChargeRequest { order_id, payment_key, amount, idempotency_key: key };
    assert!(matches!(world.sandbox.confirm(&charge).await, ProviderOutcome::Done(_)));
    ProviderDifference::UnknownOrder { order_id: charge.order_id, amount }
}

async fn mark(world: &World, name: &'static str) -> Option<Timestamp> {
    let marks: Vec<(String, Option<Timestamp>)> = world
        .query("select name, up_to from audit_runs", |row| {
            Ok((row.get("name")?, row.get("up_to")?))
        })
        .await;
    marks.into_iter().find(|(known, _)| known == name).and_then(|(_, up_to)| up_to)
}

/// The same tables with another provider, which nobody can reach, before the sandbox.
fn beside_a_silent_one(world: &World) -> PaymentService {
    let toss = TossSettings {
        secret_key: Secret::new("test_sk_of_nobody"),
        client_key: "test_ck_of_nobody".to_owned(),
        endpoint: "http://127.0.0.1:9".to_owned(),
        timeout: CALL_TIMEOUT,
    };
    let toss = TossClient::new(toss, Outbound::new(), world.clock.clone()).unwrap();
    PaymentService::new(PaymentParts {
        db: world.db.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: settings(),
        providers: vec![ProviderClient::Toss(toss), ProviderClient::Sandbox(world.sandbox.clone())],
        tickets: ticket_client(&world.tickets, &world.clock, &world.ids),
        faults: FaultPoints::default(),
    })
}

contract! {
    async fn what_was_written_since_the_last_time_is_looked_through(world: World) {
        world.pay(TestCard::Approve).await;
        assert_eq!(audit_ledger_changes(&world).await, []);
        world.clock.advance(HOUR);
        world.pay(TestCard::Approve).await;
        run(&world, "update ledger_lines set amount = amount - 1 where account = 'sales' \
                     and entry_id in (select id from ledger_entries order by at desc limit 1)").await;
        let found = audit_ledger_changes(&world).await;
        assert!(matches!(found[..], [LedgerDifference::Entry { amount, .. }] if amount == Won::new(-1)));
        assert_eq!(mark(&world, "ledger").await, Some(world.clock.now()));
        // It is named until it is explained.
        world.clock.advance(HOUR);
        assert_eq!(audit_ledger_changes(&world).await, found);
        world.clock.advance(HOUR);
        run(&world, "update ledger_lines set amount = amount + 1 where account = 'sales' \
                     and entry_id in (select id from ledger_entries order by at desc limit 1)").await;
        assert_eq!(audit_ledger_changes(&world).await, []);
        let noted = "select count(*) as number from unexplained_payments";
        assert_eq!(world.number(noted).await, 0);
    }

    async fn what_is_old_is_gone_through_once_a_day(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        assert_eq!(world.payments.audit_whole_ledger_daily().await, Ok(true));
        world.clock.advance(HOUR);
        assert_eq!(audit_ledger_changes(&world).await, []);
        run(&world, "update payments set charged_amount = charged_amount + 5").await;
        world.clock.advance(HOUR);
        assert_eq!(world.payments.audit_whole_ledger_daily().await, Ok(false), "it was done today");
        assert_eq!(audit_ledger_changes(&world).await, [], "nothing was written to the ledger");
        world.clock.advance(24 * HOUR);
        let other = world.instance(FaultPoints::default());
        assert_eq!(other.audit_whole_ledger_daily().await, Ok(true));
        assert_eq!(world.payments.audit_whole_ledger_daily().await, Ok(false), "another has done it");
        // It is named until it is explained.
        let (id, amount) = (payment.id.0, Won::new(-5));
        assert_eq!(audit_ledger_changes(&world).await, [LedgerDifference::Payment { id, amount }]);
    }

    async fn one_process_at_a_time_looks_through_the_books(world: World) {
        world.pay(TestCard::Approve).await;
        let other = world.instance(FaultPoints::default());
        assert_eq!(audit_ledger_changes(&world).await, []);
        assert_eq!(other.audit_ledger_changes().await, Ok(None), "it was just done");
        world.clock.advance(HOUR);
        let until = world.clock.now() + MINUTE;
        let taken: Result<u64, StorageError> = world.db.write(move |tx| {
            let sql = "update audit_runs set holder = (select id from payments), held_until = $1";
            tx.execute(sql, params![until])
        }).await;
        assert_eq!(taken, Ok(1));
        assert_eq!(other.audit_ledger_changes().await, Ok(None), "somebody is at it");
        world.clock.advance(2 * MINUTE);
        assert_eq!(other.audit_ledger_changes().await, Ok(Some(vec![])), "who died keeps nobody");
    }

    async fn providers_are_compared_from_where_it_stopped(world: World) {
        // The first time: a day, up to a minute ago.
        let too_old = charge_unknown(&world, "ORD_OLD").await;
        world.clock.advance(25 * HOUR);
        let first = charge_unknown(&world, "ORD_1").await;
        world.clock.advance(HOUR);
        let late = charge_unknown(&world, "ORD_2").await;
        let found = world.payments.reconcile_providers().await.unwrap();
        assert_eq!(found, std::slice::from_ref(&first), "neither {too_old:?} nor {late:?}");
        assert_eq!(mark(&world, "provider:sandbox").await, Some(world.clock.now() - MINUTE));
        // Nobody looked for days, and nothing is left out.
        world.clock.advance(72 * HOUR);
        let found = world.payments.reconcile_providers().await.unwrap();
        assert_eq!(found, [first, late], "what differed before differs still");
        let noted = "select count(*) as number from differing_orders";
        assert_eq!(world.number(noted).await, 2);
        // Somebody has given it back.
        run(&world, "update sandbox_payments set charged = 0 where order_id = 'ORD_1'").await;
        world.clock.advance(HOUR);
        assert_eq!(world.payments.reconcile_providers().await.unwrap().len(), 1);
        assert_eq!(world.number(noted).await, 1);
    }

    async fn a_silent_provider_does_not_hide_the_others(world: World) {
        let unknown = charge_unknown(&world, "ORD_1").await;
        world.clock.advance(HOUR);
        let payments = beside_a_silent_one(&world);
        let found = payments.reconcile_providers().await.unwrap();
        assert_eq!(found, std::slice::from_ref(&unknown));
        assert_eq!(mark(&world, "provider:toss").await, None, "it is asked for the same again");
        let now = world.clock.now();
        let found = payments.reconcile(now - 24 * HOUR, now).await.unwrap();
        assert_eq!((found.silent, found.differences), (vec!["toss"], vec![unknown]));
    }
}
