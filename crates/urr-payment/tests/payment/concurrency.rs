//! Many at once: one charge, one ticket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{join_all, pending, ready};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_payment::provider::TestCard;
use urr_payment::{
    ApprovalRejection, ApproveError, CommandContext, CreateOrder, CreateResult, FaultMoment,
    FaultPoints, PaymentStatus,
};

use crate::contract;

/// For what must happen, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

contract! {
    async fn a_hundred_parallel_confirms_of_one_order_are_one_charge_and_one_ticket(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let processes: Vec<_> = (0..4).map(|_| world.instance(FaultPoints::default())).collect();
        let context = world.context();
        let all = (0..100).map(|number| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        for answer in join_all(all).await {
            let payment = answer.unwrap();
            assert!(matches!(payment.status, PaymentStatus::Confirmed | PaymentStatus::Approving), "{payment:?}");
        }
        world.settle().await;
        assert_eq!(world.tickets.get(held.id).tickets, 1);
        assert_eq!(world.provider_books().await.len(), 1);
        let attempts = "select count(*) as number from provider_calls";
        assert_eq!(world.number(attempts).await, 1, "the provider was asked once");
        assert_eq!(world.announced().await.len(), 1);
        world.assert_whole().await;
    }

    /// The order, its beginning and its result; the sandbox has two of its own.
    async fn a_purchase_is_three_transactions_and_many_at_once_share_commits(world: World) {
        let before = world.db.stats();
        world.pay(TestCard::Approve).await;
        assert_eq!(world.db.stats().committed - before.committed, 3 + 2);
        let mut approvals = Vec::new();
        for _ in 0..64 {
            let order = world.order(&world.hold()).await;
            approvals.push(world.approval(&order, TestCard::Approve).await);
        }
        let before = world.db.stats();
        for paid in join_all(approvals.iter().map(|approval| world.approve(approval))).await {
            assert_eq!(paid.unwrap().status, PaymentStatus::Confirmed);
        }
        let after = world.db.stats();
        assert_eq!(after.committed - before.committed, 64 * (2 + 1));
        let commits = after.groups - before.groups;
        assert!(commits <= 64, "{commits} commits of 192 transactions");
        world.assert_whole().await;
    }

    /// In one process everybody waits for the answer of the first.
    async fn who_asks_at_the_same_time_gets_the_same_answer(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let all = join_all((0..50).map(|_| world.approve(&approval))).await;
        assert!(all.into_iter().all(|answer| answer.unwrap().status == PaymentStatus::Confirmed));
        world.assert_whole().await;
    }

    async fn a_hundred_keys_for_one_order_are_one_charge(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let mut approvals = Vec::new();
        for _ in 0..100 {
            approvals.push(world.approval(&order, TestCard::Approve).await);
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(FaultPoints::default())).collect();
        let context = world.context();
        let all = approvals.iter().enumerate().map(|(number, approval)| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        let all = join_all(all).await;
        let taken = all.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(taken, 1, "one key pays, the others are refused");
        world.settle().await;
        assert_eq!((world.tickets.get(held.id).tickets, world.provider_books().await.len()), (1, 1));
        world.assert_whole().await;
    }

    /// M-11: no unique index, two charges.
    async fn m_11_twenty_orders_for_one_hold_at_once_are_one_charge(world: World) {
        let held = world.hold();
        let mut approvals = Vec::new();
        for number in 0..20 {
            let order = CreateOrder {
                order_id: format!("ORDER_{number}"),
                user_id: held.user_id,
                payable: PayableRef { kind: PayableKind::Reservation, id: held.id },
                event_id: Some(held.event_id),
                reservation_id: None,
                fencing_token: Some(held.fence),
                order_name: "R12345".to_owned(),
                amount: held.amount,
                booking_fee: held.booking_fee,
            };
            let causation_id = Some("event".to_owned());
            let context = CommandContext { correlation_id: held.id, causation_id };
            let created = world.payments.create_order(order, context).await.unwrap();
            let CreateResult::New(order) = created else { panic!("it is new") };
            approvals.push(world.approval(&order, TestCard::Approve).await);
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(FaultPoints::default())).collect();
        let context = world.context();
        let all = approvals.iter().enumerate().map(|(number, approval)| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        let refused = join_all(all).await.into_iter().filter_map(Result::err);
        let refused: Vec<ApproveError> = refused.collect();
        for error in &refused {
            let ApproveError::Refused(refused) = error else { panic!("{error:?}") };
            assert!(matches!(refused, ApprovalRejection::InProgress | ApprovalRejection::AlreadyPaid));
        }
        world.settle().await;
        assert_eq!((world.tickets.get(held.id).tickets, world.provider_books().await.len()), (1, 1));
        assert_eq!(refused.len(), 19);
        world.assert_whole().await;
    }

    async fn many_processes_go_on_with_what_is_due_and_nothing_happens_twice(world: World) {
        for _ in 0..10 {
            world.pay(TestCard::ChargeThenTimeOut).await;
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(FaultPoints::default())).collect();
        world.clock.advance(Duration::from_secs(2));
        for resolved in join_all(processes.iter().map(|process| process.resolve_due())).await {
            resolved.unwrap();
        }
        world.settle().await;
        assert!(world.tickets.all().iter().all(|held| held.tickets == 1));
        world.assert_whole().await;
    }

    /// P-10: neither the provider nor the ticket service is asked within a transaction: more payments
    /// than there are connections wait for their answers, and others are paid as ever.
    async fn p_10_no_transaction_is_open_while_somebody_is_asked(world: World) {
        const WAITING: u32 = 12;
        for place in ["call pin", "call confirm", "call deliver"] {
            let (reached, faults) = stopped_before(place, WAITING);
            let slow = world.instance(faults);
            let mut waiting = JoinSet::new();
            for _ in 0..WAITING {
                let held = world.hold();
                let order = world.order(&held).await;
                let approval = world.approval(&order, TestCard::Approve).await;
                let (slow, context) = (slow.clone(), world.context());
                waiting.spawn(async move { slow.approve(approval, &context).await });
            }
            await_all(&reached, WAITING).await;
            let (held, payment) = world.pay(TestCard::Approve).await;
            assert_eq!(payment.status, PaymentStatus::Confirmed, "{place}");
            assert_eq!(world.tickets.get(held.id).tickets, 1, "{place}");
            waiting.shutdown().await;
        }
        world.clock.advance(Duration::from_secs(301));
        world.settle().await;
        world.assert_whole().await;
    }

    /// A payment that waits for a silent provider delays no other payment.
    async fn neither_refunds_nor_purchases_wait_for_one_that_waits(world: World) {
        let (reached, faults) = stopped_before("call find", 1);
        let (_, unclear) = world.pay(TestCard::ChargeThenTimeOut).await;
        assert_eq!(unclear.status, PaymentStatus::Unknown);
        let (process, stop) = (world.instance(faults), CancellationToken::new());
        let until = stop.clone();
        let jobs = tokio::spawn(async move { process.run_jobs(until).await });
        world.clock.advance(Duration::from_secs(2));
        await_all(&reached, 1).await;
        // Nor does another purchase.
        let (held, _) = world.pay(TestCard::ChargeThenTimeOut).await;
        world.clock.advance(Duration::from_secs(2));
        urr_test::eventually("the ticket is there", async || {
            (world.tickets.get(held.id).tickets == 1).then_some(())
        })
        .await;
        let (held, payment) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        let event = world.cancelled_event(&world.tickets.get(held.id));
        world.consume(&event).await.unwrap();
        urr_test::eventually("the money is back", async || {
            let payment = world.payments.find(payment.id).await.unwrap();
            payment.filter(|payment| payment.status == PaymentStatus::Refunded)
        })
        .await;
        stop.cancel();
        jobs.await.unwrap();
        world.clock.advance(Duration::from_secs(301));
        world.settle().await;
        world.assert_whole().await;
    }
}

/// A process of which so many stay at a place, and how many came there.
fn stopped_before(place: &'static str, stays: u32) -> (Arc<Semaphore>, FaultPoints) {
    let (reached, came) = (Arc::new(Semaphore::new(0)), AtomicU32::new(0));
    let listener = Arc::clone(&reached);
    let faults = FaultPoints::listening(move |point| {
        if (point.moment, point.name) != (FaultMoment::Before, place) {
            return ready(()).boxed();
        }
        listener.add_permits(1);
        match came.fetch_add(1, Ordering::SeqCst) < stays {
            true => pending().boxed(),
            false => ready(()).boxed(),
        }
    });
    (reached, faults)
}

async fn await_all(reached: &Semaphore, count: u32) {
    let all = tokio::time::timeout(PATIENCE, reached.acquire_many(count)).await;
    all.expect("nobody keeps what the others need").unwrap().forget();
}
