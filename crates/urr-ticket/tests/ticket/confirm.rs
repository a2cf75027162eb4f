//! What payments do with a hold: each step once, by its own payment, with the present token.

use axum::http::Method;
use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_kernel::Won;
use urr_service::Caller;
use urr_storage::StorageError;
use urr_ticket::{
    PaymentClaim, ReservationPaymentStatus, ReservationRejection, ReservationStatus,
    TransitionError,
};

use crate::contract;
use crate::fixture::{MINUTE, hall};
use crate::operations::CallerIdentity;

fn refused<T>(refused: ReservationRejection) -> Result<T, TransitionError> {
    Err(TransitionError::Rejected(refused))
}

contract! {
    async fn a_paid_hold_is_sold_with_a_ticket_for_everyone(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (standing, type_id) = world.open_standing(10).await;
        let seated = world.hold(event_id, world.ids.next_id(), &[2, 3]).await;
        let tickets = world.hold_tickets(standing, type_id, 3).await;
        let paid = world.pay(&seated).await;
        world.pay(&tickets).await;
        assert_eq!(paid.record.reservation.status, ReservationStatus::Confirmed);
        assert_eq!(paid.record.reservation.payment_status, ReservationPaymentStatus::Paid);
        assert_eq!(paid.record.payment_id, Some(paid.payment_id));
        let rows = world.rows(
            "select number, seat_id, unit from tickets where is_valid order by seat_id, unit",
            |row| {
                let number: String = row.get("number")?;
                Ok((number, row.get::<Option<i64>>("seat_id")?, row.get::<i64>("unit")?))
            },
        );
        let mut seats: Vec<_> = rows.await.into_iter().map(|(_, seat, unit)| (seat, unit)).collect();
        seats.sort_unstable();
        let expected = [(None, 0), (None, 1), (None, 2), (Some(2), 0), (Some(3), 0)];
        assert_eq!(seats, expected);
        let announced = world.announced("RESERVATION_CONFIRMED").await;
        assert_eq!(announced.len(), 2);
        assert_eq!(announced[0]["seatIds"], json!([2, 3]));
        assert_eq!(announced[0]["paymentId"], paid.payment_id.to_string());
        assert_eq!(announced[0]["paymentMethod"], "card");
        assert_eq!(announced[0]["totalAmount"], 200_000);
        world.assert_agrees().await;
    }

    async fn every_step_of_a_payment_can_be_repeated(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let claim = world.pin(&record).await;
        world.clock.advance(10 * MINUTE);
        world.ticket.pin_hold(id, user_id, claim, 1, None).await.unwrap();
        assert_eq!(world.find(id).await.reservation.pinned_by, Some(claim.payment_id));
        let first = world.confirm(id, claim).await.unwrap();
        assert_eq!(world.confirm(id, claim).await, Ok(first.clone()));
        assert_eq!(world.announced("RESERVATION_CONFIRMED").await.len(), 1);
        assert_eq!(world.number("select count(*) as n from tickets").await, 1);
        // Too late to let it go: it is sold.
        let unpinned = world.ticket.unpin_hold(id, claim.payment_id, 1).await;
        assert_eq!(unpinned, refused(ReservationRejection::Confirmed));
        let other = world.hold(event_id, world.ids.next_id(), &[1]).await;
        let claim = world.pin(&other).await;
        for _ in 0..2 {
            world.ticket.unpin_hold(other.reservation.id, claim.payment_id, 1).await.unwrap();
            assert_eq!(world.find(other.reservation.id).await.reservation.pinned_by, None);
        }
        world.assert_agrees().await;
    }

    /// Messages can be late, and so can copies of them.
    async fn a_pin_that_comes_after_its_unpin_has_no_effect(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let (ours, theirs) = (world.claim(&record), world.claim(&record));
        let pin = async |claim, attempt| world.ticket.pin_hold(id, user_id, claim, attempt, None).await;
        let unpin = async |attempt| world.ticket.unpin_hold(id, ours.payment_id, attempt).await;
        let pinned_by = async || world.find(id).await.reservation.pinned_by;
        // The first pin is still on its way when the payment gives up.
        unpin(1).await.unwrap();
        assert_eq!(pin(ours, 1).await, refused(ReservationRejection::AttemptOver));
        // Another payment, which ends as well, does not make it be forgotten.
        pin(theirs, 1).await.unwrap();
        unpin(1).await.unwrap();
        assert_eq!(pinned_by().await, Some(theirs.payment_id), "a late unpin leaves it alone");
        world.ticket.unpin_hold(id, theirs.payment_id, 1).await.unwrap();
        assert_eq!(pin(ours, 1).await, refused(ReservationRejection::AttemptOver));
        assert_eq!(pinned_by().await, None);
        // A new attempt pins, twice without harm, and a late copy of the old unpin has no effect.
        for _ in 0..2 {
            pin(ours, 2).await.unwrap();
        }
        unpin(1).await.unwrap();
        assert_eq!(pinned_by().await, Some(ours.payment_id));
        unpin(2).await.unwrap();
        for attempt in [1, 2] {
            assert_eq!(pin(ours, attempt).await, refused(ReservationRejection::AttemptOver));
        }
        world.clock.advance(10 * MINUTE);
        world.sweep().await;
        assert_eq!(world.find(id).await.reservation.status, ReservationStatus::Expired);
        world.assert_agrees().await;
    }

    /// Whichever comes first, the hold is not pinned in the end.
    async fn a_pin_and_its_unpin_at_once_leave_no_pin(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        for _ in 0..20 {
            let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
            let (id, user_id) = (record.reservation.id, record.reservation.user_id);
            let claim = world.claim(&record);
            let pinned = world.ticket.pin_hold(id, user_id, claim, 1, Some(event_id));
            let unpinned = world.ticket.unpin_hold(id, claim.payment_id, 1);
            let (_, unpinned) = tokio::join!(pinned, unpinned);
            unpinned.unwrap();
            assert_eq!(world.find(id).await.reservation.pinned_by, None);
            world.clock.advance(10 * MINUTE);
            world.sweep().await;
        }
    }

    /// By hand, as a bug would leave it: not even one of them is let in on a guess.
    async fn items_that_are_more_than_the_quantity_confirm_nothing(world: World) {
        let (standing, type_id) = world.open_standing(10).await;
        let record = world.hold_tickets(standing, type_id, 2).await;
        let claim = world.pin(&record).await;
        let id = record.reservation.id;
        for wrong in [
            "update reservation_items set quantity = 3",
            "update reservation_items set quantity = 1",
        ] {
            world.execute(wrong).await;
            let confirmed = world.confirm(id, claim).await;
            let is_loud = matches!(confirmed, Err(TransitionError::Storage(StorageError::Panicked(_))));
            assert!(is_loud, "{wrong}: {confirmed:?}");
            assert_eq!(world.number("select count(*) as n from tickets").await, 0);
            assert_eq!(world.find(id).await.reservation.status, ReservationStatus::Pending);
        }
        world.execute("update reservation_items set quantity = 2").await;
        world.confirm(id, claim).await.unwrap();
        world.assert_agrees().await;
    }

    async fn pins_and_confirmations_at_once_share_commits_and_a_refused_one_harms_no_other(
        world: World
    ) {
        let event_id = world.open_sale(hall(1, 40)).await;
        let mut holds = Vec::new();
        for seat in 0..40 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat]).await;
            // Every fourth payment has another amount than its hold.
            let mut claim = world.claim(&record);
            if seat % 4 == 3 {
                claim.amount = Won::new(1);
            }
            holds.push((record, claim));
        }
        let before = world.db.stats().groups;
        let pins = holds.iter().map(|(record, claim)| {
            let reservation = &record.reservation;
            world.ticket.pin_hold(reservation.id, reservation.user_id, *claim, 1, Some(event_id))
        });
        let pinned = join_all(pins).await;
        let confirmations = holds.iter().map(|(record, claim)| {
            let made = urr_ticket::CompletedPayment { claim: *claim, method: "card".to_owned() };
            let id = record.reservation.id;
            world.ticket.confirm_reservation(id, made, world.context(), Some(event_id))
        });
        let confirmed = join_all(confirmations).await;
        for (seat, outcomes) in pinned.into_iter().zip(confirmed).enumerate() {
            assert_eq!(outcomes.0.is_ok(), seat % 4 != 3, "{seat}: {outcomes:?}");
            assert_eq!(outcomes.1.is_ok(), seat % 4 != 3, "{seat}: {outcomes:?}");
        }
        let commits = world.db.stats().groups - before;
        assert!(commits <= 8, "{commits} commits of 60 transactions");
        assert_eq!(world.announced("RESERVATION_CONFIRMED").await.len(), 30);
        world.assert_agrees().await;
    }

    async fn twenty_confirmations_at_once_are_one(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let claim = world.pin(&record).await;
        let mut confirmations = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (ticket, context) = (world.ticket.clone(), world.context());
            let made = urr_ticket::CompletedPayment { claim, method: "card".to_owned() };
            let id = record.reservation.id;
            confirmations.spawn(async move { ticket.confirm_reservation(id, made, context, None).await });
        }
        assert!(confirmations.join_all().await.iter().all(Result::is_ok));
        assert_eq!(world.announced("RESERVATION_CONFIRMED").await.len(), 1);
        world.assert_agrees().await;
    }

    async fn a_second_payment_of_the_same_hold_is_refused(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let mut pins = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (ticket, claim) = (world.ticket.clone(), world.claim(&record));
            pins.spawn(async move { (claim, ticket.pin_hold(id, user_id, claim, 1, None).await) });
        }
        let outcomes = pins.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, o)| o.is_ok());
        assert_eq!(won.len(), 1, "one pin, whoever it is");
        for (claim, outcome) in lost {
            assert_eq!(outcome, refused(ReservationRejection::PaymentInProgress));
            assert_eq!(world.confirm(id, claim).await, refused(ReservationRejection::PaymentInProgress));
            // It never had the pin: there is nothing to let go, and the other's stays.
            world.ticket.unpin_hold(id, claim.payment_id, 1).await.unwrap();
        }
        let (claim, _) = won[0].clone();
        world.confirm(id, claim).await.unwrap();
        let late = world.claim(&record);
        assert_eq!(world.ticket.pin_hold(id, user_id, late, 1, None).await, refused(ReservationRejection::Confirmed));
        assert_eq!(world.confirm(id, late).await, refused(ReservationRejection::Confirmed));
        world.assert_agrees().await;
    }

    async fn m_16_the_time_is_checked_again_when_a_payment_begins(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        world.ticket.validate_reservation(id, user_id).await.unwrap();
        world.clock.advance(5 * MINUTE);
        // Not swept yet: its time is over all the same.
        let claim = world.claim(&record);
        assert_eq!(world.ticket.pin_hold(id, user_id, claim, 1, None).await, refused(ReservationRejection::Expired));
        assert_eq!(world.confirm(id, claim).await, refused(ReservationRejection::Expired));
        let looked = world.ticket.validate_reservation(id, user_id).await;
        assert_eq!(looked.map(|_| ()), refused(ReservationRejection::Expired));
    }

    async fn nothing_is_confirmed_without_its_pin_its_amount_and_its_token(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let claim = world.claim(&record);
        assert_eq!(world.confirm(id, claim).await, refused(ReservationRejection::NotPinned));
        let cheap = PaymentClaim { amount: Won::new(1), ..claim };
        let stale = PaymentClaim { fencing_token: claim.fencing_token - 1, ..claim };
        for pinned in [false, true] {
            if pinned {
                world.ticket.pin_hold(id, user_id, claim, 1, None).await.unwrap();
                assert_eq!(world.confirm(id, cheap).await, refused(ReservationRejection::WrongAmount));
                assert_eq!(world.confirm(id, stale).await, refused(ReservationRejection::StaleToken));
            }
            let wrong = world.ticket.pin_hold(id, user_id, cheap, 1, None).await;
            assert_eq!(wrong, refused(ReservationRejection::WrongAmount));
            let wrong = world.ticket.pin_hold(id, user_id, stale, 1, None).await;
            assert_eq!(wrong, refused(ReservationRejection::StaleToken));
        }
        let stranger = world.ids.next_id();
        let strange = world.ticket.pin_hold(id, stranger, claim, 1, None).await;
        assert_eq!(strange, refused(ReservationRejection::NotFound));
        world.confirm(id, claim).await.unwrap();
    }

    /// A process holds a seat, is stopped past the end of its hold, and goes on as if nothing had
    /// happened, while the seat is sold to someone else.
    async fn a_stale_holder_can_neither_confirm_nor_release_nor_extend(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let stale = world.hold(event_id, mina, &[0]).await;
        let id = stale.reservation.id;
        let claim = world.claim(&stale);
        world.clock.advance(10 * MINUTE);
        world.sweep().await;
        let present = world.hold(event_id, world.ids.next_id(), &[0]).await;
        assert!(present.reservation.fence > stale.reservation.fence, "tokens only grow");
        let attempts = async || {
            assert_eq!(world.ticket.pin_hold(id, mina, claim, 1, None).await, refused(ReservationRejection::Expired));
            assert_eq!(world.confirm(id, claim).await, refused(ReservationRejection::Expired));
            for token in [None, Some(stale.reservation.fence)] {
                let released = world.ticket.release_hold(id, mina, token, world.context()).await;
                assert_eq!(released, refused(ReservationRejection::Expired));
            }
            let cancelled = world.ticket.cancel_reservation(id, mina, world.context()).await;
            assert_eq!(cancelled, refused(ReservationRejection::Expired));
            let request = urr_ticket::ChangeSeats {
                user_id: mina,
                seat_ids: vec![0],
                fencing_token: Some(stale.reservation.fence),
            };
            let extended = world.ticket.change_seats(id, request, world.context()).await;
            assert_eq!(extended, Err(ReservationRejection::Expired.into()));
            world.assert_agrees().await;
        };
        attempts().await;
        assert_eq!(world.find(present.reservation.id).await, present);
        let paid = world.pay(&present).await;
        attempts().await;
        assert_eq!(world.find(paid.id()).await.reservation.status, ReservationStatus::Confirmed);
        // Nor with the stale token at the present hold.
        let other = world.hold(event_id, world.ids.next_id(), &[1]).await;
        let reservation = &other.reservation;
        let (other_id, user_id) = (reservation.id, reservation.user_id);
        assert_eq!(
            world.ticket.pin_hold(other_id, user_id, claim, 1, None).await,
            refused(ReservationRejection::StaleToken)
        );
    }

    async fn a_seat_that_is_not_its_own_is_not_sold(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let claim = world.pin(&record).await;
        world
            .execute("update seats set status = 'available', reservation_id = null where seat_id = 1")
            .await;
        let confirmed = world.confirm(record.reservation.id, claim).await;
        assert_eq!(confirmed, refused(ReservationRejection::SeatLost));
        assert_eq!(world.number("select count(*) as n from tickets").await, 0);
        assert_eq!(world.announced("RESERVATION_CONFIRMED").await.len(), 0);
    }

    /// A bug, planted: the seats are seen to be its own and are not sold all the same.
    async fn a_seat_that_is_not_sold_after_all_confirms_nothing(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let claim = world.pin(&record).await;
        world.skip_updates("seats", "new.status = 'sold' and new.seat_id = 1").await;
        let confirmed = world.confirm(record.reservation.id, claim).await;
        let is_loud =
            matches!(confirmed, Err(TransitionError::Storage(StorageError::Statement { .. })));
        assert!(is_loud, "{confirmed:?}");
        assert_eq!(world.number("select count(*) as n from tickets").await, 0);
        assert_eq!(world.find(record.reservation.id).await.reservation.status, ReservationStatus::Pending);
        world.assert_agrees().await;
    }

    async fn what_was_ever_paid_is_told_in_pages_and_nothing_else_is(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mut paid = Vec::new();
        for seat in 0..3 {
            let held = world.hold(event_id, world.ids.next_id(), &[seat]).await;
            paid.push(world.pay(&held).await.record.reservation.id);
        }
        world.hold(event_id, world.ids.next_id(), &[3]).await;
        let owner = world.ticket.find_reservation(paid[1]).await.unwrap().reservation.user_id;
        world.ticket.cancel_reservation(paid[1], owner, world.context()).await.unwrap();
        let ids = |records: &[urr_ticket::ReservationRecord]| -> Vec<_> {
            records.iter().map(|record| record.reservation.id).collect()
        };
        let (first, more) = world.ticket.list_paid(None, 2).await.unwrap();
        assert_eq!((ids(&first), more), (paid[..2].to_vec(), true));
        let (last, more) = world.ticket.list_paid(Some(paid[1]), 2).await.unwrap();
        assert_eq!((ids(&last), more), (paid[2..].to_vec(), false));
        let (all, more) = world.ticket.list_paid(None, 3).await.unwrap();
        assert_eq!((ids(&all), more), (paid, false));
    }

    async fn only_the_payment_service_is_let_in(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let base = format!("/internal/ticket/payables/reservation/{}", record.reservation.id);
        let payment_id = world.ids.next_id();
        let user_id = record.reservation.user_id;
        let pin = json!({"paymentId": payment_id, "userId": user_id, "amount": 100_000,
            "fencingToken": record.reservation.fence, "attempt": 1});
        let unpin = json!({"paymentId": payment_id, "attempt": 1});
        let confirm = json!({"paymentId": payment_id, "amount": 100_000,
            "fencingToken": record.reservation.fence, "paymentMethod": "card"});
        let refunded = json!({"paymentId": payment_id, "amount": 100_000});
        let steps = [
            (Method::GET, format!("{base}/validate?userId={user_id}"), Value::Null, 200),
            (Method::POST, format!("{base}/pin"), pin, 200),
            (Method::POST, format!("{base}/confirm"), confirm, 200),
            (Method::POST, format!("{base}/unpin"), unpin, 409),
            (Method::POST, format!("{base}/refunded"), refunded, 409),
            (Method::GET, base.clone(), Value::Null, 200),
            (Method::GET, "/internal/ticket/paid".to_owned(), Value::Null, 200),
        ];
        for (method, path, body, expected) in steps {
            let (status, answer) =
                world.call(CallerIdentity::Service(Caller::Community), method.clone(), &path, body.clone()).await;
            assert_eq!((status, &answer["code"]), (403, &json!("CALLER_NOT_ALLOWED")), "{path}");
            let (status, _) = world.call(CallerIdentity::User(user_id), method.clone(), &path, body.clone()).await;
            assert_eq!(status, 403, "the gateway does not speak for payments");
            let (status, answer) =
                world.call(CallerIdentity::Service(Caller::Payment), method, &path, body).await;
            assert_eq!(status, expected, "{path} {answer}");
        }
        let (_, answer) =
            world.call(CallerIdentity::Service(Caller::Payment), Method::GET, &base, Value::Null).await;
        assert_eq!(answer["payable"]["status"], "confirmed");
        assert_eq!(answer["payable"]["paymentId"], payment_id.to_string());
        world.assert_agrees().await;
    }
}
