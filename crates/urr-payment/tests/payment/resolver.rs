//! Going on with what is due: nothing waits for what it has nothing to do with.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::time::Duration;

use urr_payment::provider::TestCard;
use urr_payment::{FaultMoment, FaultPoints, PaymentStatus};
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::World;

/// More than are gone on with at once.
const MANY: usize = 17;

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

contract! {
    async fn a_purchase_does_not_wait_for_money_that_goes_back(world: World) {
        for _ in 0..MANY {
            let (held, _) = world.pay(TestCard::Approve).await;
            world.tickets.cancel(held.id);
        }
        for held in world.tickets.take_cancelled() {
            world.consume(&world.cancelled_event(&held)).await.unwrap();
        }
        let (held, _) = world.pay(TestCard::ChargeThenTimeOut).await;
        world.clock.advance(Duration::from_secs(2));
        // The provider takes for ever to give anything back.
        let faults = FaultPoints::listening(|point| {
            Box::pin(async move {
                if (point.moment, point.name) == (FaultMoment::Before, "call cancel") {
                    pending::<()>().await;
                }
            })
        });
        let payments = world.instance(faults);
        let resolving = tokio::spawn(async move { payments.resolve_due().await });
        urr_test::eventually("the ticket is there", async || {
            (world.tickets.get(held.id).tickets == 1).then_some(())
        })
        .await;
        assert!(!resolving.is_finished(), "the control: the others hang");
        resolving.abort();
    }

    async fn a_step_that_panics_is_put_off_and_stops_nothing_else(world: World) {
        let (_, first) = world.pay(TestCard::ChargeThenTimeOut).await;
        let (_, second) = world.pay(TestCard::ChargeThenTimeOut).await;
        world.clock.advance(Duration::from_secs(2));
        let has_panicked = Arc::new(AtomicBool::new(false));
        let once = Arc::clone(&has_panicked);
        let faults = FaultPoints::listening(move |point| {
            let is_here = (point.moment, point.name) == (FaultMoment::Before, "call deliver");
            assert!(!is_here || once.swap(true, Ordering::SeqCst), "a bug of ours");
            Box::pin(async {})
        });
        let payments = world.instance(faults);
        assert_eq!(payments.resolve_due().await, Ok(1));
        assert!(has_panicked.load(Ordering::SeqCst), "the control");
        let both = [world.find(first.id).await, world.find(second.id).await];
        let put_off: Vec<_> = both.iter().filter(|payment| payment.step.is_some()).collect();
        assert_eq!((put_off.len(), put_off[0].attempts), (1, 1));
        assert_eq!(put_off[0].wait_code.as_deref(), Some("STEP_PANICKED"));
        assert_eq!(payments.resolve_due().await, Ok(0), "not at once again");
        world.settle().await;
        world.assert_whole().await;
    }

    async fn a_payment_that_cannot_be_written_stops_no_other_one(world: World) {
        let (_, broken) = world.pay(TestCard::ChargeThenTimeOut).await;
        // Something is in the books that does not belong there, and is in the way.
        run(&world, "insert into ledger_entries (id, at, payment_id, kind) \
                     select id, created_at, id, 'charge' from payments").await;
        let (_, sound) = world.pay(TestCard::ChargeThenTimeOut).await;
        world.clock.advance(Duration::from_secs(2));
        assert_eq!(world.payments.resolve_due().await, Ok(1));
        assert_eq!(world.find(sound.id).await.status, PaymentStatus::Confirmed);
        let broken = world.find(broken.id).await;
        assert_eq!((broken.attempts, broken.wait_code.as_deref()), (1, Some("STEP_FAILED")));
        world.clock.advance(Duration::from_secs(2));
        assert_eq!(world.payments.resolve_due().await, Ok(0));
        assert_eq!(world.find(broken.id).await.attempts, 2, "it is tried again, and more rarely");
        run(&world, "delete from ledger_entries where id = payment_id").await;
        world.settle().await;
        world.assert_whole().await;
    }
}
