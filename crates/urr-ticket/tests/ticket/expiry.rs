//! Holds end with their time, each once, whatever else happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_storage::StorageError;
use urr_ticket::reservations::store::{self, EndedReservation, ReservationEnding};
use urr_ticket::{RequestedItems, ReservationStatus, ReserveRequest, Sweeper, TicketService};

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall};
use crate::stalls::Stall;

/// One seat each, by different users.
async fn hold_many(world: &World, event_id: Uuid, seats: std::ops::Range<u32>) {
    let mut holds = JoinSet::new();
    for seat_id in seats {
        let (ticket, context) = (world.ticket.clone(), world.context());
        let requested = RequestedItems::of_seats(vec![seat_id]).unwrap();
        let request =
            ReserveRequest { user_id: world.ids.next_id(), event_id, requested, key: None };
        holds.spawn(async move { ticket.reserve(request, context).await.unwrap() });
    }
    holds.join_all().await;
}

contract! {
    async fn a_hold_ends_with_its_time_and_gives_back_what_it_had(world: World) {
        let event_id = world.open_sale(hall(2, 10)).await;
        let (standing, type_id) = world.open_standing(10).await;
        let seated = world.hold(event_id, world.ids.next_id(), &[3, 4]).await;
        let standing = world.hold_tickets(standing, type_id, 3).await;
        let paid = world.hold(event_id, world.ids.next_id(), &[7]).await;
        world.pay(&paid).await;
        world.clock.advance(5 * MINUTE - SECOND);
        assert_eq!(world.sweep().await.ended, 0, "their time is not over");
        world.clock.advance(SECOND);
        assert_eq!(world.sweep().await.ended, 2);
        for record in [&seated, &standing] {
            let found = world.find(record.reservation.id).await;
            assert_eq!(found.reservation.status, ReservationStatus::Expired);
        }
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 0);
        assert_eq!(world.number("select available as n from ticket_types").await, 10);
        let announced = world.announced("RESERVATION_EXPIRED").await;
        assert_eq!(announced.len(), 2);
        let of_seats = announced.iter().find(|data| data["quantity"] == 2).unwrap();
        assert_eq!(of_seats["seatIds"], serde_json::json!([3, 4]));
        assert_eq!(of_seats["reservationNumber"], seated.reservation.number.as_str());
        assert_eq!(world.sweep().await.ended, 0, "nothing ends twice");
        world.assert_agrees().await;
        // Neither the seats nor their locks stand in anyone's way.
        world.hold(event_id, world.ids.next_id(), &[3, 4]).await;
    }

    async fn m_16_a_hold_that_is_being_paid_does_not_expire(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let claim = world.pin(&record).await;
        world.clock.advance(60 * MINUTE);
        assert_eq!(world.sweep().await.ended, 0);
        let id = record.reservation.id;
        world.ticket.unpin_hold(id, claim.payment_id, 1).await.unwrap();
        assert_eq!(world.sweep().await.ended, 1, "without the pin its time is over");
        assert_eq!(world.find(id).await.reservation.status, ReservationStatus::Expired);
    }

    async fn m_16_a_hold_that_is_pinned_after_the_sweep_has_seen_it_is_left_alone(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (paying, idle) = (
            world.hold(event_id, world.ids.next_id(), &[0]).await,
            world.hold(event_id, world.ids.next_id(), &[1]).await,
        );
        world.pin(&paying).await;
        let ids = [paying.reservation.id.0, idle.reservation.id.0];
        for (wait, expected) in [(4 * MINUTE, vec![]), (MINUTE, vec![idle.reservation.id.0])] {
            world.clock.advance(wait);
            let now = world.clock.now();
            let ended = world.db.write(move |tx| {
                store::reservations_end(tx, 100, &ids, ReservationEnding::Expired, now)
            });
            let ended: Result<Vec<EndedReservation>, StorageError> = ended.await;
            let ended: Vec<Uuid> = ended.unwrap().iter().map(|ended| ended.reservation.id.0).collect();
            assert_eq!(ended, expected);
        }
        world.assert_agrees().await;
    }

    async fn p_5_thousands_end_in_small_batches_while_the_sale_goes_on(world: World) {
        const HOLDS: u32 = 3_000;
        let event_id = world.open_sale(hall(100, 50)).await;
        hold_many(&world, event_id, 0..HOLDS).await;
        world.clock.advance(5 * MINUTE);
        let stop = Arc::new(AtomicBool::new(false));
        let (ticket, ids, context) = (world.ticket.clone(), world.ids.clone(), world.context());
        let stopped = Arc::clone(&stop);
        let (begin, begun) = tokio::sync::oneshot::channel();
        let sale = tokio::spawn(async move {
            let (mut sold, mut begin) = (0_u32, Some(begin));
            while !stopped.load(Ordering::SeqCst) && HOLDS + sold < 5_000 {
                let requested = RequestedItems::of_seats(vec![HOLDS + sold]).unwrap();
                let user_id = ids.next_id();
                let request = ReserveRequest { user_id, event_id, requested, key: None };
                ticket.reserve(request, context).await.unwrap();
                sold += 1;
                begin.take().map(|begin| begin.send(()));
            }
            sold
        });
        begun.await.unwrap();
        let swept = world.sweep().await;
        stop.store(true, Ordering::SeqCst);
        let sold = sale.await.unwrap();
        assert_eq!((swept.ended, swept.failed), (u64::from(HOLDS), Vec::new()));
        assert_eq!(world.announced("RESERVATION_EXPIRED").await.len(), HOLDS as usize);
        let largest = world.number(
            "select max(n) as n from (select count(*) as n from seats \
             where status = 'available' and fence > 0 group by fence) as batches",
        );
        assert!(largest.await <= 500, "each batch is a change of its own");
        let held = world.number("select count(*) as n from seats where status = 'held'").await;
        assert_eq!(held, i64::from(sold));
        world.assert_agrees().await;
    }

    async fn r_12_one_bad_row_does_not_stop_the_others(world: World) {
        let event_id = world.open_sale(hall(20, 20)).await;
        let (standing, type_id) = world.open_standing(10).await;
        hold_many(&world, event_id, 0..300).await;
        let bad = world.hold_tickets(standing, type_id, 2).await;
        let good = world.hold_tickets(standing, type_id, 1).await;
        world.clock.advance(5 * MINUTE);
        // By hand: the stock is full, so that giving two back breaks the constraint.
        world.execute("update ticket_types set available = 9").await;
        let mut sweeper = Sweeper::new(world.ticket.clone());
        let swept = sweeper.expire_overdue().await.unwrap();
        assert_eq!(swept.failed, [bad.reservation.id.0]);
        assert_eq!(swept.ended, 301);
        let status = world.find(good.reservation.id).await.reservation.status;
        assert_eq!(status, ReservationStatus::Expired);
        let swept = sweeper.expire_overdue().await.unwrap();
        assert_eq!((swept.ended, swept.failed), (0, vec![]), "it is set aside for a while");
        world.execute("update ticket_types set available = 8").await;
        world.clock.advance(MINUTE);
        let swept = sweeper.expire_overdue().await.unwrap();
        assert_eq!((swept.ended, swept.failed), (1, vec![]));
        world.assert_agrees().await;
    }

    async fn r_12_a_sale_that_does_not_answer_does_not_stop_the_others(world: World) {
        let (slow, other) = (world.open_sale(hall(1, 5)).await, world.open_sale(hall(20, 20)).await);
        let stuck = world.hold(slow, world.ids.next_id(), &[0]).await;
        hold_many(&world, other, 0..300).await;
        world.clock.advance(5 * MINUTE);
        let mut sweeper = Sweeper::new(world.ticket_in_a_hurry(2 * SECOND));
        let stall = Stall::begin(&world, slow).await;
        let swept = sweeper.expire_overdue().await.unwrap();
        assert_eq!((swept.ended, swept.put_off, swept.failed), (300, vec![slow], vec![]));
        assert_eq!(world.find(stuck.reservation.id).await.reservation.status, ReservationStatus::Pending);
        stall.end(&world).await;
        assert_eq!(sweeper.expire_overdue().await.unwrap().ended, 0, "it is left alone at first");
        world.clock.advance(10 * SECOND);
        let swept = sweeper.expire_overdue().await.unwrap();
        assert_eq!((swept.ended, swept.put_off), (1, vec![]));
        world.assert_agrees().await;
    }

    async fn an_overdue_hold_is_ended_for_its_owner_before_any_sweep(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (mina, jun) = (world.ids.next_id(), world.ids.next_id());
        let (own, paying) =
            (world.hold(event_id, mina, &[0, 1]).await, world.hold(event_id, jun, &[2]).await);
        world.pin(&paying).await;
        let (own, paying) = (own.reservation.id, paying.reservation.id);
        world.clock.advance(5 * MINUTE - SECOND);
        let fence = world.number("select fence as n from sales").await;
        assert_eq!(world.ticket.end_if_overdue(own).await, Ok(false), "there is time left");
        world.clock.advance(SECOND);
        assert_eq!(world.ticket.end_if_overdue(paying).await, Ok(false), "it is being paid");
        assert_eq!(world.number("select fence as n from sales").await, fence, "nothing changed");
        for _ in 0..2 {
            assert_eq!(world.ticket.end_if_overdue(own).await, Ok(true));
            assert_eq!(world.find(own).await.reservation.status, ReservationStatus::Expired);
        }
        let announced = world.announced("RESERVATION_EXPIRED").await;
        assert_eq!((announced.len(), &announced[0]["seatIds"]), (1, &serde_json::json!([0, 1])));
        assert_eq!(world.find(paying).await.reservation.status, ReservationStatus::Pending);
        // Neither the hold nor the locks of its seats stand in the way.
        world.hold(event_id, mina, &[1]).await;
        world.assert_agrees().await;
    }

    async fn two_processes_that_sweep_end_each_hold_once(world: World) {
        let events = [world.open_sale(hall(30, 20)).await, world.open_sale(hall(30, 20)).await];
        for event_id in events {
            hold_many(&world, event_id, 0..600).await;
        }
        world.clock.advance(5 * MINUTE);
        let sweep = |ticket: TicketService| async move {
            Sweeper::new(ticket).expire_overdue().await.unwrap().ended
        };
        let other = world.ticket_with(urr_ticket::TicketSettings::default());
        let (mine, theirs) = tokio::join!(sweep(world.ticket.clone()), sweep(other));
        assert_eq!(mine + theirs, 1_200);
        assert_eq!(world.announced("RESERVATION_EXPIRED").await.len(), 1_200);
        world.assert_agrees().await;
    }

    async fn r_11_a_hold_is_either_paid_or_expired_but_never_both(world: World) {
        let event_id = world.open_sale(hall(4, 10)).await;
        for seat_id in 0..20 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            let id = record.reservation.id;
            let claim = world.claim(&record);
            let mut sweeper = Sweeper::new(world.ticket.clone());
            world.clock.advance(5 * MINUTE - SECOND);
            // The pin is asked for at the last moment, and the sweep comes before it is decided.
            let pay = async {
                let user_id = record.reservation.user_id;
                world.ticket.pin_hold(id, user_id, claim, 1, None).await.is_ok()
                    && world.confirm(id, claim).await.is_ok()
            };
            let sweep = async {
                world.clock.advance(SECOND);
                sweeper.expire_overdue().await.unwrap()
            };
            let (paid, _) = tokio::join!(pay, sweep);
            world.sweep().await;
            let expected = if paid { ReservationStatus::Confirmed } else { ReservationStatus::Expired };
            assert_eq!(world.find(id).await.reservation.status, expected);
        }
        let sold = world.number("select count(*) as n from seats where status = 'sold'").await;
        assert_eq!(sold, world.number("select count(*) as n from tickets where is_valid").await);
        world.assert_agrees().await;
    }
}
