//! The settlement of an event says what the audit of the ledger says, and files have every row.

use serde_json::{Value, json};
use urr_bus::HandlerOutcome;
use urr_kernel::{Uuid, Won};
use urr_payment::provider::TestCard;
use urr_payment::{LedgerAccount, Payment};
use urr_service::{Caller, UserRole};

use crate::api_client::ApiClient;
use crate::contract;
use crate::fake_ticket_service::FakePayable;
use crate::fixture::World;

const MINA: (Uuid, UserRole) = (Uuid::from_u128(0xb01), UserRole::Organiser);
const JUNHO: (Uuid, UserRole) = (Uuid::from_u128(0xb02), UserRole::Organiser);
const ADMIN: (Uuid, UserRole) = (Uuid::from_u128(0xb04), UserRole::Admin);

async fn announce(world: &World, event_id: Uuid, organiser: Uuid) {
    let data = json!({
        "eventId": event_id, "revision": 1, "title": "한강의 밤", "kind": "standing",
        "status": "on_sale", "venueId": world.ids.next_id(), "venueName": "강변 홀",
        "address": "서울", "startsAt": "2026-12-24T10:00:00Z",
        "saleStartsAt": "2026-12-01T11:00:00Z", "saleEndsAt": "2026-12-23T15:00:00Z",
        "hasPresale": false, "seatsPerUserMax": 4, "organiserId": organiser,
    });
    let event = world.event("EVENT_CREATED", event_id, &data);
    assert_eq!(world.consume(&event).await, Ok(HandlerOutcome::Done));
}

/// Pays a hold of this event.
async fn pay(world: &World, event_id: Uuid) -> (FakePayable, Payment) {
    let held = FakePayable { event_id, ..world.hold() };
    world.tickets.hold(held.clone());
    let order = world.order(&held).await;
    let approval = world.approval(&order, TestCard::Approve).await;
    let payment = world.approve(&approval).await.unwrap();
    (world.tickets.get(held.id), payment)
}

/// Five purchases: one stands, one is cancelled for free, one with a fee, one in part, and of one
/// an administrator gives back a little.
async fn sell_and_give_back(world: &World, event_id: Uuid) {
    pay(world, event_id).await;
    let (free, _) = pay(world, event_id).await;
    world.tickets.cancel(free.id);
    let (with_fee, _) = pay(world, event_id).await;
    world.tickets.change(with_fee.id, |held| held.cancel_fee = Won::new(10_000));
    world.tickets.cancel(with_fee.id);
    let (part, _) = pay(world, event_id).await;
    let cancellation = world.ids.next_id();
    let event = world.partly_cancelled_event(&part, (40_000, 36_000), cancellation);
    assert_eq!(world.consume(&event).await, Ok(HandlerOutcome::Done));
    let (_, kind) = pay(world, event_id).await;
    let body = json!({ "amount": 5_000, "reason": "늦은 입장" });
    let path = format!("/api/admin/payments/{}/refund", kind.id);
    assert_eq!(ApiClient::new(world).post_as(ADMIN, &path, &body).await.0, 200);
    world.settle().await;
}

async fn settlement(api: &ApiClient, event_id: Uuid) -> Value {
    let (status, settled) =
        api.get_as(MINA, &format!("/api/admin/events/{event_id}/settlement")).await;
    assert_eq!(status, 200, "{settled}");
    settled
}

contract! {
    async fn a_settlement_equals_the_audit_of_the_ledger(world: World) {
        let event_id = world.ids.next_id();
        announce(&world, event_id, MINA.0).await;
        sell_and_give_back(&world, event_id).await;
        let api = ApiClient::new(&world);
        let settled = settlement(&api, event_id).await;
        let proof = world.payments.prove_ledger().await.unwrap();
        assert!(proof.is_balanced(), "{proof}");
        let earned = |account| -proof.balance(account).amount();
        for (field, audited) in [
            ("grossSales", proof.sold.amount()),
            ("refunds", proof.cancelled.amount()),
            ("ticketSales", earned(LedgerAccount::Sales)),
            ("bookingFees", earned(LedgerAccount::BookingFees)),
            ("cancellationFees", earned(LedgerAccount::CancellationFees)),
            ("transferFees", earned(LedgerAccount::TransferFees)),
            ("paidOtherwise", earned(LedgerAccount::PaidOtherwise)),
            ("refundsDue", proof.owed().amount()),
            ("undelivered", proof.undelivered().amount()),
            ("atProvider", proof.balance(LedgerAccount::Provider).amount()),
        ] {
            assert_eq!(settled[field], json!(audited), "{field} of {settled}");
        }
        assert_eq!(settled["grossSales"], 5 * 102_000);
        assert_eq!(settled["refunds"], 102_000 + 92_000 + 36_000 + 5_000);
        let number = |field: &str| settled[field].as_i64().unwrap();
        assert_eq!(number("kept"), number("grossSales") - number("refunds"));
        assert_eq!(settled["explained"], true);
        let methods = settled["methods"].as_array().unwrap();
        let net: i64 = methods.iter().map(|method| method["net"].as_i64().unwrap()).sum();
        assert_eq!((net, methods[0]["payments"].as_u64()), (number("atProvider"), Some(5)));
        assert_eq!(settled["grades"][0]["sold"], 3);
        // The control: another event's purchases are in the audit and not here.
        world.pay(TestCard::Approve).await;
        let proof = world.payments.prove_ledger().await.unwrap();
        assert_eq!(settlement(&api, event_id).await["grossSales"], 5 * 102_000);
        assert_eq!(proof.sold, Won::new(6 * 102_000));
    }

    /// The control of `explained`: money is changed by hand.
    async fn a_settlement_that_the_payments_do_not_explain_says_so(world: World) {
        let event_id = world.ids.next_id();
        announce(&world, event_id, MINA.0).await;
        pay(&world, event_id).await;
        let api = ApiClient::new(&world);
        assert_eq!(settlement(&api, event_id).await["explained"], true);
        let changed = world.db.write(|tx| {
            tx.execute("update payments set charged_amount = charged_amount + 1", &[])
        });
        assert_eq!(changed.await, Ok::<_, urr_storage::StorageError>(1));
        assert_eq!(settlement(&api, event_id).await["explained"], false);
    }

    async fn money_of_an_event_is_for_its_organiser(world: World) {
        let event_id = world.ids.next_id();
        announce(&world, event_id, MINA.0).await;
        pay(&world, event_id).await;
        let api = ApiClient::new(&world);
        for path in ["settlement", "settlement.csv", "payments.csv"] {
            let path = format!("/api/admin/events/{event_id}/{path}");
            assert_eq!(api.file_as(MINA, &path).await.0, 200, "{path}");
            let (status, refused) = api.get_as(JUNHO, &path).await;
            assert_eq!((status.as_u16(), &refused["code"]), (403, &json!("NOT_YOUR_EVENT")));
            let fan = (JUNHO.0, UserRole::User);
            assert_eq!(api.get_as(fan, &path).await.0, 403, "{path}");
        }
        let unknown = format!("/api/admin/events/{}/settlement", world.ids.next_id());
        let (status, refused) = api.get_as(ADMIN, &unknown).await;
        assert_eq!((status.as_u16(), &refused["code"]), (404, &json!("EVENT_NOT_FOUND")));
        let (status, refused) = api.get_as(MINA, "/api/admin/payments/ledger.csv").await;
        assert_eq!((status.as_u16(), &refused["code"]), (403, &json!("ADMIN_REQUIRED")));
    }

    async fn files_have_every_payment_and_every_line_of_the_ledger(world: World) {
        let event_id = world.ids.next_id();
        announce(&world, event_id, MINA.0).await;
        sell_and_give_back(&world, event_id).await;
        world.pay(TestCard::Approve).await;
        let api = ApiClient::new(&world);
        let rows = |text: &str| text.trim_end().split("\r\n").count() - 1;
        let path = format!("/api/admin/events/{event_id}/payments.csv?language=en");
        let (_, payments) = api.file_as(MINA, &path).await;
        assert!(payments.starts_with("\u{feff}Payment,Order,"), "{payments}");
        assert_eq!(rows(&payments), 5);
        let (_, ledger) = api.file_as(ADMIN, "/api/admin/payments/ledger.csv").await;
        let lines = world.number("select count(*) as number from ledger_lines").await;
        assert_eq!(i64::try_from(rows(&ledger)).unwrap(), lines);
        let (_, none) = api.file_as(ADMIN, "/api/admin/payments/ledger.csv?to=2020-01-01T00:00:00Z").await;
        assert_eq!(rows(&none), 0);
        // The amounts of the file add up to zero, as the ledger does.
        let amounts = ledger.trim_end().split("\r\n").skip(1).map(|line| {
            line.split(',').nth(4).unwrap().parse::<i64>().unwrap()
        });
        assert_eq!(amounts.sum::<i64>(), 0);
        let path = format!("/api/admin/events/{event_id}/settlement.csv?language=ko");
        let (_, settled) = api.file_as(MINA, &path).await;
        assert!(settled.contains("합계,총매출,,510000,,"), "{settled}");
        assert!(settled.contains("등급·권종,R,3,"), "{settled}");
    }

    async fn other_services_are_told_payments_and_unclear_ones(world: World) {
        let event_id = world.ids.next_id();
        let (held, payment) = pay(&world, event_id).await;
        let stuck = FakePayable { event_id, ..world.hold() };
        world.tickets.hold(stuck.clone());
        let order = world.order(&stuck).await;
        let approval = world.approval(&order, TestCard::TimeOut).await;
        drop(world.approve(&approval).await);
        let client = ApiClient::new(&world);
        let body = json!({ "payableIds": [held.id] });
        let answer = client.internal(Caller::Ticket, "/internal/payment/payables", Some(&body)).await;
        assert_eq!(answer["payments"][0]["id"], json!(payment.id.0), "{answer}");
        assert_eq!(answer["payments"].as_array().map(Vec::len), Some(1));
        let path = format!("/internal/payment/events/{event_id}/unclear");
        let answer = client.internal(Caller::Ticket, &path, None).await;
        assert_eq!(answer, json!({ "payments": 1, "amount": 102_000 }));
        let refused = client.internal(Caller::Mail, &path, None).await;
        assert_eq!(refused["code"], "CALLER_NOT_ALLOWED");
    }
}
