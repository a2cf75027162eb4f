//! Events are cancelled or deleted, and what was held or bought of them is given back.

use urr_storage::StorageError;
use urr_ticket::reservations::store::{self, EndedReservation, ReservationEnding};
use urr_ticket::{
    ReservationPaymentStatus, ReservationRecord, ReservationRejection, ReservationStatus,
    SignedTicket, SweepReport, Sweeper, TransitionError,
};

use crate::contract;
use crate::fixture::{SECOND, World, hall};
use crate::operations::PaidReservation;
use crate::stalls::Stall;

async fn empty(world: &World) -> SweepReport {
    Sweeper::new(world.ticket.clone()).empty_closed_sales().await.unwrap()
}

contract! {
    async fn m_9_a_cancelled_event_gives_everyone_their_money_back(world: World) {
        let event_id = world.open_sale(hall(2, 10)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let paid = world.hold(event_id, world.ids.next_id(), &[1, 2]).await;
        let paid = world.pay(&paid).await;
        let paying = world.hold(event_id, world.ids.next_id(), &[3]).await;
        let giving_up = world.hold(event_id, world.ids.next_id(), &[4]).await;
        let (claim, other) = (world.pin(&paying).await, world.pin(&giving_up).await);
        let elsewhere = world.open_sale(hall(1, 5)).await;
        let elsewhere = world.hold(elsewhere, world.ids.next_id(), &[0]).await;
        close(&world, event_id).await;
        assert_eq!(empty(&world).await.ended, 2);
        assert_eq!(world.find(held.reservation.id).await.reservation.status, ReservationStatus::Cancelled);
        let refunding = world.find(paid.id()).await;
        assert_eq!(refunding.reservation.payment_status, ReservationPaymentStatus::Refunding);
        assert_eq!(refunding.refund_amount, Some(refunding.reservation.total_amount));
        // What is being paid is decided first, and then cancelled as well.
        world.confirm(paying.reservation.id, claim).await.unwrap();
        world.ticket.unpin_hold(giving_up.reservation.id, other.payment_id, 1).await.unwrap();
        assert_eq!(empty(&world).await.ended, 2);
        let paying = world.find(paying.reservation.id).await;
        assert_eq!(paying.reservation.payment_status, ReservationPaymentStatus::Refunding);
        assert_eq!(empty(&world).await.ended, 0, "and nothing twice");
        let announced = world.announced("RESERVATION_CANCELLED").await;
        let refunds: i64 = announced.iter().map(|e| e["refundAmount"].as_i64().unwrap()).sum();
        assert_eq!((announced.len(), refunds), (4, 300_000));
        assert!(announced.iter().all(|event| event["reason"] == "EVENT_CANCELLED"));
        let free = world.number("select count(*) as n from seats where status = 'available'").await;
        assert_eq!(free, 24, "all seats of the event, and four of the other one");
        assert_eq!(world.find(elsewhere.reservation.id).await, elsewhere);
        let emptied = world.number("select count(*) as n from sales where emptied_at is not null");
        assert_eq!(emptied.await, 1);
        world.assert_agrees().await;
    }

    async fn m_9_nothing_can_be_paid_of_a_cancelled_event(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        close(&world, event_id).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let pinned = world.ticket.pin_hold(id, user_id, world.claim(&record), 1, None).await;
        assert_eq!(pinned, Err(TransitionError::Rejected(ReservationRejection::EventCancelled)));
        world.execute("update sales set status = 'deleted'").await;
        assert_eq!(empty(&world).await.ended, 1, "a deleted event is emptied too");
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["reason"], "EVENT_DELETED");
    }

    async fn m_9_who_paid_for_an_event_that_has_begun_keeps_their_ticket(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let held = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let paid = world.hold(event_id, world.ids.next_id(), &[1]).await;
        let paid = world.pay(&paid).await;
        let paying = world.hold(event_id, world.ids.next_id(), &[2]).await;
        let giving_up = world.hold(event_id, world.ids.next_id(), &[3]).await;
        let (claim, other) = (world.pin(&paying).await, world.pin(&giving_up).await);
        world.execute("update sales set starts_at = sale_starts_at").await;
        world.execute("update sales set status = 'deleted'").await;
        assert_eq!(empty(&world).await.ended, 1, "only the hold");
        let held = world.find(held.reservation.id).await;
        assert_eq!(held.reservation.status, ReservationStatus::Cancelled);
        assert_eq!(held.end_reason.as_deref(), Some("EVENT_DELETED"));
        assert_eq!(world.find(paid.id()).await, kept(&paid, &held));
        world.confirm(paying.reservation.id, claim).await.unwrap();
        world.ticket.unpin_hold(giving_up.reservation.id, other.payment_id, 1).await.unwrap();
        assert_eq!(empty(&world).await.ended, 1, "the hold that nobody pays any more");
        assert_eq!(empty(&world).await.ended, 0);
        let paying = world.find(paying.reservation.id).await;
        assert_eq!(paying.reservation.payment_status, ReservationPaymentStatus::Paid);
        for announced in world.announced("RESERVATION_CANCELLED").await {
            assert_eq!(announced["refundAmount"], 0, "{announced}");
        }
        let open = world.number("select count(*) as n from sales where emptied_at is null");
        assert_eq!(open.await, 0, "it is not looked at again");
        assert_eq!(enter(&world, event_id).await, 2, "both come in");
        world.assert_agrees().await;
    }

    /// The sweep saw a hold, which was paid before its turn came.
    async fn m_9_only_holds_are_withdrawn(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let paid = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let paid = world.pay(&paid).await;
        let paying = world.hold(event_id, world.ids.next_id(), &[1]).await;
        world.pin(&paying).await;
        let held = world.hold(event_id, world.ids.next_id(), &[2]).await;
        let ids = [paid.id().0, paying.reservation.id.0, held.reservation.id.0];
        let now = world.clock.now();
        let ended = world.db.write(move |tx| {
            let ending = ReservationEnding::Withdrawn { reason: "EVENT_DELETED" };
            store::reservations_end(tx, 100, &ids, ending, now)
        });
        let ended: Result<Vec<EndedReservation>, StorageError> = ended.await;
        let ended: Vec<_> = ended.unwrap().iter().map(|ended| (ended.reservation.id.0, ended.refund_amount)).collect();
        assert_eq!(ended, [(held.reservation.id.0, None)]);
        world.assert_agrees().await;
    }

    async fn closed_sales_whose_payments_never_end_hide_no_other(world: World) {
        for _ in 0..101 {
            world.open_sale(hall(1, 1)).await;
        }
        // By hand, and quickly: each has a hold with a payment that was forgotten.
        world
            .execute(
                "insert into reservations (id, number, user_id, event_id, status, \
                 payment_status, total_amount, booking_fee, quantity, fence, expires_at, \
                 cancel_policy, agreed_starts_at, announced_starts_at, pinned_by, pinned_at, \
                 created_at, updated_at) \
                 select event_id, cast(event_id as text), event_id, event_id, 'pending', 'unpaid', \
                 1, 0, 1, 1, starts_at, '{}', starts_at, starts_at, event_id, created_at, created_at, created_at \
                 from sales",
            )
            .await;
        let last = world.open_sale(hall(1, 5)).await;
        let held = world.hold(last, world.ids.next_id(), &[0]).await;
        world.execute("update sales set status = 'cancelled'").await;
        for ended in [1, 0] {
            assert_eq!(empty(&world).await.ended, ended);
            let emptied = "select count(*) as n from sales where emptied_at is not null";
            assert_eq!(world.number(emptied).await, 1);
        }
        assert_eq!(world.find(held.reservation.id).await.reservation.status, ReservationStatus::Cancelled);
        let changed = "select count(*) as n from sales where fence > 0";
        assert_eq!(world.number(changed).await, 1, "looking is not a change");
    }

    async fn a_closed_sale_that_does_not_answer_does_not_stop_the_others(world: World) {
        let (slow, other) = (world.open_sale(hall(1, 5)).await, world.open_sale(hall(1, 5)).await);
        let (stuck, held) = (
            world.hold(slow, world.ids.next_id(), &[0]).await,
            world.hold(other, world.ids.next_id(), &[0]).await,
        );
        world.execute("update sales set status = 'cancelled'").await;
        let mut sweeper = Sweeper::new(world.ticket_in_a_hurry(2 * SECOND));
        let stall = Stall::begin(&world, slow).await;
        let swept = sweeper.empty_closed_sales().await.unwrap();
        assert_eq!((swept.ended, swept.put_off, swept.failed), (1, vec![slow], vec![]));
        assert_eq!(world.find(held.reservation.id).await.reservation.status, ReservationStatus::Cancelled);
        stall.end(&world).await;
        world.clock.advance(10 * SECOND);
        assert_eq!(sweeper.empty_closed_sales().await.unwrap().ended, 1);
        assert_eq!(world.find(stuck.reservation.id).await.reservation.status, ReservationStatus::Cancelled);
        world.assert_agrees().await;
    }
}

/// The paid reservation as it was, but for what happened to its sale, as another shows it.
fn kept(paid: &PaidReservation, other: &ReservationRecord) -> ReservationRecord {
    let (sale_status, starts_at) = (other.sale_status, other.starts_at);
    ReservationRecord { sale_status, starts_at, ..paid.record.clone() }
}

/// Shows every ticket of the event at its door. How many came in.
async fn enter(world: &World, event_id: urr_kernel::Uuid) -> usize {
    let tickets = world.rows("select id, event_id, seat_id, issue from tickets", |row| {
        let (ticket_id, event_id) = (row.get("id")?, row.get("event_id")?);
        Ok(SignedTicket {
            ticket_id,
            event_id,
            seat_id: row.get("seat_id")?,
            issue: row.get("issue")?,
        })
    });
    let mut entered = 0;
    for ticket in tickets.await.iter().filter(|ticket| ticket.event_id == event_id) {
        let payload = world.ticket.signer().payload(ticket);
        world.ticket.check_in(world.scan(payload, event_id)).await.unwrap();
        entered += 1;
    }
    entered
}

/// As the catalog's news of a cancelled event does.
async fn close(world: &World, event_id: urr_kernel::Uuid) {
    let closed = world.db.write(move |tx| {
        tx.execute(
            "update sales set status = 'cancelled' where event_id = $1",
            urr_storage::params![event_id],
        )
    });
    let rows: Result<u64, urr_storage::StorageError> = closed.await;
    assert_eq!(rows.unwrap(), 1);
}
