//! The control: the comparison that all other cases rely on finds every kind of damage.

use urr_e2e::{Deployment, TestApp};
use urr_payment::provider::TestCard;
use urr_storage::StorageError;

use crate::fixture::{FAR, Shop, run};

/// The damaged service, the damage, its repair, and the finding.
const DAMAGES: [(&str, &str, &str, &str); 9] = [
    (
        "ticket",
        "update tickets set is_valid = false",
        "update tickets set is_valid = true",
        "tickets are missing or too many",
    ),
    (
        "ticket",
        "update reservations set pinned_by = id, pinned_at = created_at where status = 'pending'",
        "update reservations set pinned_by = null, pinned_at = null",
        "a hold is stuck",
    ),
    (
        "ticket",
        "update reservations set status = 'cancelled' where status = 'confirmed'",
        "update reservations set status = 'confirmed' where status = 'cancelled'",
        "a payment without its ticket",
    ),
    (
        "payment",
        "update sandbox_payments set charged = charged + 1",
        "update sandbox_payments set charged = charged - 1",
        "the provider has other amounts",
    ),
    (
        "payment",
        "update sandbox_payments set order_id = order_id || '?'",
        "update sandbox_payments set order_id = substr(order_id, 1, length(order_id) - 1)",
        "payments at the provider without an order",
    ),
    (
        "payment",
        "update payments set step = 'deliver', next_attempt_at = 4000000000000000",
        "update payments set step = null",
        "a payment has not come to its end",
    ),
    (
        "payment",
        "update payments set status = 'failed' where charged_amount > 0",
        "update payments set status = 'confirmed' where charged_amount > 0",
        "a ticket for nothing",
    ),
    (
        "payment",
        "update ledger_lines set amount = amount + 1 where account = 'sales'",
        "update ledger_lines set amount = amount - 1 where account = 'sales'",
        "won at the provider, and the ledger",
    ),
    (
        "stats",
        "update hour_counters set charged = charged - 1",
        "update hour_counters set charged = charged + 1",
        "counted",
    ),
];

#[test]
fn every_kind_of_damage_is_seen() {
    run(Deployment::Embedded, async |app| {
        let shop = Shop::open(&app, FAR).await;
        shop.buy(&[0]).await;
        let unpaid = shop.hold(&[1]).await;
        assert_eq!(shop.pay(&unpaid, TestCard::Decline).await.status, 402);
        shop.settle().await;
        for (service, damage, repair, said) in DAMAGES {
            execute(&app, service, damage).await;
            let found = app.service_tables().differences().await;
            assert!(found.iter().any(|it| it.contains(said)), "{damage}: {said} in {found:#?}");
            execute(&app, service, repair).await;
            app.settle().await;
        }
        twice(&app).await;
        app.stop().await;
    });
}

/// Another order of the same hold that was charged as well.
async fn twice(app: &TestApp) {
    const SECOND: &str = "insert into payments (id, order_id, user_id, payable_kind, payable_id, \
        order_name, amount, booking_fee, currency, provider, status, attempts, charged_amount, \
        refunded_amount, correlation_id, created_at, updated_at) \
        select user_id, order_id || '-2', user_id, payable_kind, payable_id, order_name, amount, \
        booking_fee, currency, provider, 'refunding', 0, charged_amount, 0, correlation_id, \
        created_at, updated_at from payments where charged_amount > 0";
    const CHARGE: &str = "insert into sandbox_payments (payment_key, order_id, amount, attempts, \
        charged, refunded, created_at) select payment_key || '-2', order_id || '-2', amount, 1, \
        charged, 0, created_at from sandbox_payments where charged > 0";
    execute(app, "payment", SECOND).await;
    execute(app, "payment", CHARGE).await;
    let found = app.service_tables().differences().await;
    assert!(found.iter().any(|it| it.contains("charged twice")), "{found:#?}");
}

async fn execute(app: &TestApp, service: &str, sql: &'static str) {
    let done: Result<u64, StorageError> =
        app.database(service).write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}
