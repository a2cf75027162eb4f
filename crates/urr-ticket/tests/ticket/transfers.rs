//! Tickets are passed on: listed, bought by the calls of payments, taken back, ended.

mod ending;
mod rules;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use urr_bus::HandlerOutcome;
use urr_kernel::{DomainEvent, Uuid, Won};
use urr_service::Caller;
use urr_storage::{ConstraintKind, StorageError, params};
use urr_ticket::{
    AuditDifferenceKind, CheckInError, CompletedPayment, IdempotencyKey, PaymentClaim,
    RequestedItems, ReservationId, ReservationPaymentStatus, ReservationRecord,
    ReservationRejection, ReservationStatus, ReserveRequest, Sweeper, Transfer, TransferError,
    TransferId, TransferOffer, TransferRejection, TransferStatus, TransitionError,
};

use crate::contract;
use crate::fixture::{Form, MINUTE, World, hall, new_sale, run};
use crate::operations::{CallerIdentity, PaidReservation};
use crate::payables::{confirmed, event};
use crate::projection::deliver;
use crate::waiting_requests::wait_until_someone_waits;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    /// Someone's two seats for 200,000 won, paid.
    async fn bought(&self, event_id: Uuid) -> PaidReservation {
        let record = self.hold(event_id, self.ids.next_id(), &[0, 1]).await;
        self.pay(&record).await
    }

    async fn list(&self, paid: &PaidReservation) -> Transfer {
        self.ticket.list_for_transfer(paid.id(), seller(paid)).await.unwrap()
    }

    /// Paid, and listed for 220,000 won.
    async fn listed(&self) -> (PaidReservation, Transfer) {
        let event_id = self.open_sale(hall(2, 5)).await;
        let paid = self.bought(event_id).await;
        let transfer = self.list(&paid).await;
        (paid, transfer)
    }

    /// A claim of a new payment that fits the transfer.
    fn transfer_claim(&self, transfer: &Transfer) -> PaymentClaim {
        PaymentClaim {
            payment_id: self.ids.next_id(),
            fencing_token: transfer.number,
            amount: transfer.price.total(),
        }
    }

    async fn pin_transfer(&self, transfer: &Transfer, buyer_id: Uuid) -> PaymentClaim {
        let claim = self.transfer_claim(transfer);
        self.ticket.pin_transfer(transfer.id, buyer_id, claim, 1).await.unwrap();
        claim
    }

    async fn complete(
        &self,
        id: TransferId,
        claim: PaymentClaim,
    ) -> Result<TransferOffer, TransferError> {
        let made = CompletedPayment::new(claim, Some("card"));
        self.ticket.complete_transfer(id, made, self.context()).await
    }

    /// Pins and pays.
    async fn buy(&self, transfer: &Transfer, buyer_id: Uuid) -> PaymentClaim {
        let claim = self.pin_transfer(transfer, buyer_id).await;
        self.complete(transfer.id, claim).await.unwrap();
        claim
    }

    async fn transfer(&self, id: TransferId) -> Transfer {
        self.ticket.find_transfer(id).await.unwrap().transfer
    }

    /// The texts of the QR codes of someone's reservation.
    async fn codes(&self, id: ReservationId, user_id: Uuid) -> Vec<(String, String)> {
        let (status, body) =
            get(self, CallerIdentity::User(user_id), &format!("/api/reservations/{id}")).await;
        assert_eq!(status, 200, "{body}");
        let tickets = body["reservation"]["tickets"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        tickets.map(|ticket| (text(&ticket["number"]), text(&ticket["qr"]))).collect()
    }

    async fn show(&self, event_id: Uuid, payload: &str) -> Result<(), CheckInError> {
        self.ticket.check_in(self.scan(payload.to_owned(), event_id)).await.map(|_| ())
    }

    async fn release(&self, held: &ReservationRecord) {
        let (id, user_id) = (held.reservation.id, held.reservation.user_id);
        self.ticket.release_hold(id, user_id, None, self.context()).await.unwrap();
    }

    async fn empty(&self) -> u64 {
        Sweeper::new(self.ticket.clone()).empty_closed_sales().await.unwrap().ended
    }
}

fn seller(paid: &PaidReservation) -> Uuid {
    paid.record.reservation.user_id
}

fn refused<T>(refused: TransferRejection) -> Result<T, TransferError> {
    Err(TransferError::Rejected(refused))
}

/// What a payment says of a transfer.
fn paid_for(world: &World, transfer: &Transfer, claim: PaymentClaim) -> DomainEvent {
    let data = json!({
        "paymentId": claim.payment_id, "orderId": "ord_1", "userId": world.ids.next_id(),
        "referenceId": transfer.id.0, "reservationId": transfer.reservation_id.0,
        "paymentType": "transfer", "amount": claim.amount, "paymentMethod": "card",
        "fencingToken": claim.fencing_token, "bookingFee": 0, "transferFee": 20_000,
    });
    event(world, "PAYMENT_CONFIRMED", data)
}

fn returned(
    world: &World,
    payment_type: &str,
    payment_id: Uuid,
    (reference_id, reservation_id): (Uuid, Uuid),
    (amount, cause): (i64, &str),
) -> DomainEvent {
    let data = json!({
        "paymentId": payment_id, "orderId": "ord_1", "userId": world.ids.next_id(),
        "referenceId": reference_id, "reservationId": reservation_id,
        "paymentType": payment_type, "amount": amount, "fee": 0, "cause": cause,
    });
    event(world, "PAYMENT_REFUNDED", data)
}

async fn get(world: &World, who: CallerIdentity, path: &str) -> (u16, Value) {
    world.call(who, Method::GET, path, Value::Null).await
}

async fn post(world: &World, who: CallerIdentity, path: &str, body: Value) -> (u16, Value) {
    world.call(who, Method::POST, path, body).await
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().or(answer.1["error"]["code"].as_str()).unwrap_or("?"))
}

/// Whose the reservation is, and which of its tickets are good.
async fn owners(world: &World) -> Vec<(Uuid, i64)> {
    let sql = "select r.user_id, count(*) as n from reservations as r \
               join tickets as t on t.reservation_id = r.id and t.is_valid group by r.user_id";
    world.rows(sql, |row| Ok((row.get("user_id")?, row.get("n")?))).await
}

contract! {
    async fn a_sold_ticket_is_the_buyers_with_their_payment_and_new_numbers(world: World) {
        let (paid, transfer) = world.listed().await;
        assert_eq!(transfer.price.total(), Won::new(220_000));
        let (buyer_id, event_id) = (world.ids.next_id(), transfer.event_id);
        let old = world.codes(paid.id(), seller(&paid)).await;
        let claim = world.buy(&transfer, buyer_id).await;
        let record = world.find(paid.id()).await;
        assert_eq!(record.reservation.user_id, buyer_id);
        assert_eq!(record.payment_id, Some(claim.payment_id));
        assert_eq!(record.reservation.total_amount, Won::new(220_000));
        assert_eq!(record.reservation.number, paid.record.reservation.number);
        assert_eq!(owners(&world).await, [(buyer_id, 2)]);
        let sold = world.transfer(transfer.id).await;
        assert_eq!(sold.status, TransferStatus::Completed);
        assert_eq!((sold.buyer_id, sold.payment_id), (Some(buyer_id), Some(claim.payment_id)));
        // The old ones open no door, whatever their number was; the new ones do.
        let new = world.codes(paid.id(), buyer_id).await;
        for ((old_number, old_code), (number, _)) in old.iter().zip(&new) {
            assert_ne!(old_number, number);
            let shown = world.show(event_id, old_code).await;
            assert!(matches!(shown, Err(CheckInError::Reissued)), "{shown:?}");
        }
        for (_, code) in &new {
            world.show(event_id, code).await.unwrap();
        }
        let announced = world.announced("TRANSFER_COMPLETED").await;
        assert_eq!(announced, [json!({
            "transferId": transfer.id.0, "reservationId": paid.id().0, "eventId": event_id,
            "sellerId": seller(&paid), "buyerId": buyer_id, "originalPrice": 200_000,
            "fee": 20_000, "totalPrice": 220_000, "paymentId": claim.payment_id,
            "sellerPaymentId": paid.payment_id, "sellerPayout": 200_000,
            "timestamp": world.clock.now(),
        })]);
        world.assert_agrees().await;
    }

    async fn what_came_second_finds_that_all_is_done(world: World) {
        let (paid, transfer) = world.listed().await;
        let claim = world.buy(&transfer, world.ids.next_id()).await;
        let first = world.ticket.find_transfer(transfer.id).await.unwrap();
        world.clock.advance(MINUTE);
        assert_eq!(world.complete(transfer.id, claim).await, Ok(first.clone()));
        // K-1: the event of the same payment, twice, as a new event each time.
        for _ in 0..2 {
            let news = paid_for(&world, &transfer, claim);
            assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Done));
        }
        assert_eq!(world.ticket.find_transfer(transfer.id).await, Ok(first));
        assert_eq!(world.announced("TRANSFER_COMPLETED").await.len(), 1);
        assert_eq!(world.number("select max(issue) as n from tickets").await, 2);
        let unpinned = world.ticket.unpin_transfer(transfer.id, claim.payment_id, 1).await;
        assert_eq!(unpinned, refused(TransferRejection::Sold));
        assert_eq!(world.find(paid.id()).await.payment_id, Some(claim.payment_id));
    }

    async fn k_1_the_event_completes_alone_if_no_call_comes_through(world: World) {
        let (paid, transfer) = world.listed().await;
        let buyer_id = world.ids.next_id();
        let claim = world.pin_transfer(&transfer, buyer_id).await;
        let news = paid_for(&world, &transfer, claim);
        assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Done));
        assert_eq!(world.find(paid.id()).await.reservation.user_id, buyer_id);
        world.complete(transfer.id, claim).await.unwrap();
        assert_eq!(world.announced("TRANSFER_COMPLETED").await.len(), 1);
        // One that nobody has pinned has no effect, and is no failure.
        let (_, other) = world.listed().await;
        let news = paid_for(&world, &other, world.transfer_claim(&other));
        assert!(matches!(deliver(&world, &news).await, Ok(HandlerOutcome::Rejected { .. })));
        let mut unknown = other.clone();
        unknown.id = TransferId(world.ids.next_id());
        let news = paid_for(&world, &unknown, claim);
        assert!(matches!(deliver(&world, &news).await, Ok(HandlerOutcome::Rejected { .. })));
        world.assert_agrees().await;
    }

    async fn k_1_a_call_and_its_event_at_once_hand_over_once(world: World) {
        let world = Arc::new(world);
        for sold in 1..=10 {
            let (_, transfer) = world.listed().await;
            let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
            let (news, here) = (paid_for(&world, &transfer, claim), Arc::clone(&world));
            let call = tokio::spawn(async move { here.complete(transfer.id, claim).await });
            let here = Arc::clone(&world);
            let news = tokio::spawn(async move { deliver(&here, &news).await });
            assert!(call.await.unwrap().is_ok());
            assert_eq!(news.await.unwrap(), Ok(HandlerOutcome::Done));
            assert_eq!(world.announced("TRANSFER_COMPLETED").await.len(), sold);
        }
        assert_eq!(world.number("select max(issue) as n from tickets").await, 2);
        world.assert_agrees().await;
    }

    /// M-7a, M-11: one buyer pays; the others are told before anything is charged, and whoever
    /// gives up leaves it to the next one.
    async fn m_11_of_many_buyers_at_once_one_pays(world: World) {
        let (paid, transfer) = world.listed().await;
        let world = Arc::new(world);
        let mut buying = JoinSet::new();
        for _ in 0..10 {
            let (world, transfer) = (Arc::clone(&world), transfer.clone());
            buying.spawn(async move {
                let (buyer_id, claim) = (world.ids.next_id(), world.transfer_claim(&transfer));
                let pinned = world.ticket.pin_transfer(transfer.id, buyer_id, claim, 1).await;
                (buyer_id, claim, pinned)
            });
        }
        let all = buying.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(|(.., done)| done.is_ok());
        assert_eq!((won.len(), lost.len()), (1, 9));
        for (_, claim, pinned) in lost {
            assert_eq!(pinned, refused(TransferRejection::BeingPaid));
            let completed = world.complete(transfer.id, claim).await;
            assert_eq!(completed, refused(TransferRejection::BeingPaid));
            world.ticket.unpin_transfer(transfer.id, claim.payment_id, 1).await.unwrap();
        }
        let (first, claim, _) = &won[0];
        let again = world.ticket.pin_transfer(transfer.id, *first, *claim, 1).await.unwrap();
        assert_eq!(again.transfer.pinned_by, Some(claim.payment_id), "its own pin is kept");
        world.ticket.unpin_transfer(transfer.id, claim.payment_id, 1).await.unwrap();
        let completed = world.complete(transfer.id, *claim).await;
        assert_eq!(completed, refused(TransferRejection::NotPinned));
        let next = world.ids.next_id();
        world.buy(&transfer, next).await;
        assert_eq!(world.find(paid.id()).await.reservation.user_id, next);
        assert_eq!(world.announced("TRANSFER_COMPLETED").await.len(), 1);
    }

    async fn a_pin_that_comes_after_its_unpin_leaves_the_listing_free(world: World) {
        let (_, transfer) = world.listed().await;
        let (buyer_id, claim) = (world.ids.next_id(), world.transfer_claim(&transfer));
        let pin = async |attempt| world.ticket.pin_transfer(transfer.id, buyer_id, claim, attempt).await;
        let unpin = async |attempt| {
            world.ticket.unpin_transfer(transfer.id, claim.payment_id, attempt).await.unwrap().transfer
        };
        assert_eq!(unpin(1).await.pinned_by, None);
        assert_eq!(pin(1).await, refused(TransferRejection::AttemptOver));
        let rival = world.pin_transfer(&transfer, world.ids.next_id()).await;
        assert_eq!(unpin(2).await.pinned_by, Some(rival.payment_id), "the rival's pin stays");
        world.ticket.unpin_transfer(transfer.id, rival.payment_id, 1).await.unwrap();
        for attempt in [1, 2] {
            assert_eq!(pin(attempt).await, refused(TransferRejection::AttemptOver));
        }
        for _ in 0..2 {
            let pinned = pin(3).await.unwrap().transfer;
            assert_eq!(pinned.pinned_by, Some(claim.payment_id));
            assert_eq!(unpin(2).await.pinned_by, Some(claim.payment_id), "a late unpin");
        }
        world.complete(transfer.id, claim).await.unwrap();
    }

    async fn r_3_taking_back_and_buying_at_once_have_one_outcome(world: World) {
        let world = Arc::new(world);
        for _ in 0..15 {
            let (paid, transfer) = world.listed().await;
            let (buyer_id, seller_id) = (world.ids.next_id(), seller(&paid));
            let (here, id) = (Arc::clone(&world), transfer.id);
            let taking = tokio::spawn(async move {
                here.ticket.cancel_transfer(id, seller_id, here.context()).await
            });
            let (here, offered) = (Arc::clone(&world), transfer.clone());
            let buying = tokio::spawn(async move {
                let claim = here.transfer_claim(&offered);
                here.ticket.pin_transfer(id, buyer_id, claim, 1).await?;
                here.complete(id, claim).await
            });
            let (taken, bought) = (taking.await.unwrap(), buying.await.unwrap());
            let owner = world.find(paid.id()).await.reservation.user_id;
            let status = world.transfer(id).await.status;
            match (taken, bought) {
                (Ok(_), Err(error)) => {
                    assert_eq!(error, TransferError::Rejected(TransferRejection::Cancelled));
                    assert_eq!((owner, status), (seller_id, TransferStatus::Cancelled));
                }
                (Err(error), Ok(_)) => {
                    let TransferError::Rejected(why) = error else { panic!("{error}") };
                    let lost = [TransferRejection::BeingPaid, TransferRejection::Sold];
                    assert!(lost.contains(&why), "{why}");
                    assert_eq!((owner, status), (buyer_id, TransferStatus::Completed));
                }
                other => panic!("{other:?}"),
            }
        }
        let ends = world.announced("TRANSFER_COMPLETED").await.len()
            + world.announced("TRANSFER_CANCELLED").await.len();
        assert_eq!(ends, 15, "each has one end");
        world.assert_agrees().await;
    }

    async fn r_3_what_is_sold_cannot_be_taken_back(world: World) {
        let (paid, transfer) = world.listed().await;
        let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
        let cancel = || world.ticket.cancel_transfer(transfer.id, seller(&paid), world.context());
        assert_eq!(cancel().await, refused(TransferRejection::BeingPaid));
        world.complete(transfer.id, claim).await.unwrap();
        assert_eq!(cancel().await, refused(TransferRejection::Sold));
        assert_eq!(world.announced("TRANSFER_CANCELLED").await, [] as [Value; 0]);
        // The control: what is free can be, once.
        let (paid, transfer) = world.listed().await;
        for _ in 0..2 {
            let taken = world.ticket.cancel_transfer(transfer.id, seller(&paid), world.context());
            assert_eq!(taken.await.unwrap().status, TransferStatus::Cancelled);
        }
        let announced = world.announced("TRANSFER_CANCELLED").await;
        assert_eq!(announced, [json!({
            "transferId": transfer.id.0, "reservationId": paid.id().0,
            "eventId": transfer.event_id, "sellerId": seller(&paid),
            "reason": "CANCELLED_BY_SELLER", "timestamp": world.clock.now(),
        })]);
        let pinned = world.ticket.pin_transfer(
            transfer.id, world.ids.next_id(), world.transfer_claim(&transfer), 1).await;
        assert_eq!(pinned, refused(TransferRejection::Cancelled));
    }

    async fn r_3_of_many_listings_of_a_reservation_one_is_live(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let paid = world.bought(event_id).await;
        let (world, id, seller_id) = (Arc::new(world), paid.id(), seller(&paid));
        let mut listing = JoinSet::new();
        for _ in 0..10 {
            let world = Arc::clone(&world);
            listing.spawn(async move { world.ticket.list_for_transfer(id, seller_id).await });
        }
        let (listed, lost): (Vec<_>, Vec<_>) =
            listing.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!((listed.len(), lost.len()), (1, 9));
        assert!(lost.into_iter().all(|lost| lost == refused(TransferRejection::AlreadyListed)));
        // The control: the index refuses it whoever asks.
        let now = world.clock.now();
        let (another, user_id) = (world.ids.next_id(), world.ids.next_id());
        let forced: Result<u64, StorageError> = world.db.write(move |tx| {
            tx.execute(
                "insert into transfers (id, reservation_id, number, event_id, seller_id, \
                 seller_payment_id, original_price, fee_percent, fee, status, created_at, \
                 updated_at) values ($1, $2, 99, $3, $4, $4, 1, 1, 1, 'listed', $5, $5)",
                params![another, id.0, event_id, user_id, now],
            )
        }).await;
        let name = "transfers_one_listed".to_owned();
        let kind = ConstraintKind::Unique;
        assert_eq!(forced, Err(StorageError::Constraint { kind, name }));
        // The next attempt has another number, and the payment of the one before does not fit it.
        let first = listed[0].as_ref().unwrap();
        world.ticket.cancel_transfer(first.id, seller_id, world.context()).await.unwrap();
        let second = world.list(&paid).await;
        assert_eq!((first.number, second.number), (1, 2));
        let stale = world.transfer_claim(first);
        let pinned = world.ticket.pin_transfer(second.id, world.ids.next_id(), stale, 1).await;
        assert_eq!(pinned, refused(TransferRejection::StaleToken));
    }

    /// M-8: what is for sale must be there when it is bought.
    async fn m_8_a_listed_reservation_cannot_be_cancelled_by_its_owner(world: World) {
        let (paid, transfer) = world.listed().await;
        let (id, owner) = (paid.id(), CallerIdentity::User(seller(&paid)));
        let cancelled = world.ticket.cancel_reservation(id, seller(&paid), world.context()).await;
        assert_eq!(cancelled, Err(TransitionError::Rejected(ReservationRejection::Listed)));
        let preview = get(&world, owner, &format!("/api/reservations/{id}/refund-preview")).await;
        assert_eq!(code(&preview), (409, "RESERVATION_LISTED"));
        let body = json!({"userId": seller(&paid)});
        let path = format!("/internal/ticket/reservations/{id}/cancel");
        let by_payment = post(&world, CallerIdentity::Service(Caller::Payment), &path, body).await;
        assert_eq!(code(&by_payment), (409, "RESERVATION_LISTED"));
        assert_eq!(world.find(id).await, paid.record);
        // The control: once it is taken back it can be.
        world.ticket.cancel_transfer(transfer.id, seller(&paid), world.context()).await.unwrap();
        let cancelled = world.ticket.cancel_reservation(id, seller(&paid), world.context()).await;
        assert_eq!(cancelled.unwrap().reservation.payment_status, ReservationPaymentStatus::Refunding);
        let listed = world.ticket.list_for_transfer(id, seller(&paid)).await;
        assert_eq!(listed, refused(TransferRejection::NotConfirmed));
        world.assert_agrees().await;
    }

    async fn m_8_listing_and_cancelling_at_once_never_both_happen(world: World) {
        let event_id = world.open_sale(hall(10, 10)).await;
        let world = Arc::new(world);
        for seat_id in 0..15 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            let paid = world.pay(&record).await;
            let (id, user_id) = (paid.id(), seller(&paid));
            let here = Arc::clone(&world);
            let listing =
                tokio::spawn(async move { here.ticket.list_for_transfer(id, user_id).await });
            let here = Arc::clone(&world);
            let cancelling = tokio::spawn(async move {
                here.ticket.cancel_reservation(id, user_id, here.context()).await
            });
            let (listed, cancelled) = (listing.await.unwrap(), cancelling.await.unwrap());
            assert_ne!(listed.is_ok(), cancelled.is_ok(), "{listed:?} {cancelled:?}");
        }
    }

    /// M-8: the seller's payment has nothing to do with the reservation any more.
    async fn m_8_who_has_sold_cannot_cancel_what_is_the_buyers(world: World) {
        let (paid, transfer) = world.listed().await;
        let buyer_id = world.ids.next_id();
        let claim = world.buy(&transfer, buyer_id).await;
        let after = world.find(paid.id()).await;
        let cancelled =
            world.ticket.cancel_reservation(paid.id(), seller(&paid), world.context()).await;
        assert_eq!(cancelled, Err(TransitionError::Rejected(ReservationRejection::NotFound)));
        let path = format!("/internal/ticket/reservations/{}/cancel", paid.id());
        let body = json!({"userId": seller(&paid)});
        let by_payment = post(&world, CallerIdentity::Service(Caller::Payment), &path, body).await;
        assert_eq!(code(&by_payment), (404, "RESERVATION_NOT_FOUND"));
        // An administrator gives the seller's payment back, and has not heard of the sale.
        let body = json!({
            "adminId": world.ids.next_id(), "reason": "환불 요청", "paymentId": paid.payment_id,
        });
        let by_admin = post(&world, CallerIdentity::Service(Caller::Payment), &path, body).await;
        assert_eq!(code(&by_admin), (409, "TICKET_TRANSFERRED"));
        let told = world.refund(&paid, 200_000).await;
        assert_eq!(told, Err(TransitionError::Rejected(ReservationRejection::NotRefunding)));
        // K-1: their payment says once more that it has paid, which it had.
        let (fence, amount) = (paid.record.reservation.fence, Won::new(200_000));
        let sellers =
            PaymentClaim { payment_id: paid.payment_id, fencing_token: fence, amount };
        assert_eq!(world.confirm(paid.id(), sellers).await, Ok(after.clone()));
        let news = confirmed(&world, &paid.record, sellers);
        assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Done));
        let strangers = PaymentClaim { payment_id: world.ids.next_id(), ..sellers };
        let confirmed_by_another = world.confirm(paid.id(), strangers).await;
        assert_eq!(confirmed_by_another, Err(TransitionError::Rejected(ReservationRejection::Confirmed)));
        // The seller's money is back, as it should be: that is no refund of the reservation.
        let ids = (paid.id().0, paid.id().0);
        let news =
            returned(&world, "reservation", paid.payment_id, ids, (200_000, "transferred"));
        assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Ignored));
        let news = returned(&world, "reservation", paid.payment_id, ids, (200_000, "cancelled"));
        assert!(matches!(deliver(&world, &news).await, Ok(HandlerOutcome::Rejected { .. })));
        assert_eq!(world.find(paid.id()).await, after);
        let (_, mine) = get(&world, CallerIdentity::User(seller(&paid)), "/api/reservations/my").await;
        assert_eq!(mine["reservations"], json!([]), "the seller sees it no more");
        let (_, mine) = get(&world, CallerIdentity::User(seller(&paid)), "/api/transfers/my").await;
        assert_eq!(mine["transfers"][0]["status"], "completed");

        // P9: the buyer cancels, and gets back what they paid, by their own payment.
        let cancelled = world.ticket.cancel_reservation(paid.id(), buyer_id, world.context()).await;
        assert_eq!(cancelled.unwrap().refund_amount, Some(Won::new(220_000)));
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["paymentId"], claim.payment_id.to_string());
        assert_eq!(announced[0]["refundAmount"], 220_000);
        let state = world.ticket.find_transfer(transfer.id).await.unwrap();
        assert_eq!(state.payment_status(), ReservationPaymentStatus::Refunding);
        let ids = (transfer.id.0, paid.id().0);
        let wrong = returned(&world, "transfer", claim.payment_id, ids, (1, "cancelled"));
        assert!(matches!(deliver(&world, &wrong).await, Ok(HandlerOutcome::Rejected { .. })));
        for _ in 0..2 {
            let news = returned(&world, "transfer", claim.payment_id, ids, (220_000, "cancelled"));
            assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Done));
        }
        let back = world.find(paid.id()).await;
        assert_eq!(back.reservation.payment_status, ReservationPaymentStatus::Refunded);
        world.assert_agrees().await;
    }

    /// The fee of the transfer is the booking's: kept when its day is over, given back if the event
    /// is cancelled.
    async fn what_a_buyer_gets_back_goes_by_the_policy_of_the_reservation(world: World) {
        for (is_event_cancelled, back) in [(false, 200_000 - 8_000), (true, 220_000)] {
            let (paid, transfer) = world.listed().await;
            let buyer_id = world.ids.next_id();
            world.clock.advance(8 * DAY);
            world.buy(&transfer, buyer_id).await;
            if is_event_cancelled {
                world.execute("update sales set status = 'cancelled'").await;
                world.empty().await;
            } else {
                let cancelled =
                    world.ticket.cancel_reservation(paid.id(), buyer_id, world.context()).await;
                cancelled.unwrap();
            }
            let cancelled = world.find(paid.id()).await;
            assert_eq!(cancelled.refund_amount, Some(Won::new(back)));
        }
    }

    async fn a_buyer_sells_it_on_and_everyone_has_their_own_money(world: World) {
        let (paid, first) = world.listed().await;
        let (second_id, third_id) = (world.ids.next_id(), world.ids.next_id());
        let one = world.buy(&first, second_id).await;
        let second = world.ticket.list_for_transfer(paid.id(), second_id).await.unwrap();
        assert_eq!(second.price.original, Won::new(220_000));
        assert_eq!(second.price.total(), Won::new(242_000));
        let seller_again = world.ticket.list_for_transfer(paid.id(), seller(&paid)).await;
        assert_eq!(seller_again, refused(TransferRejection::ReservationNotFound));
        let two = world.buy(&second, third_id).await;
        let announced = world.announced("TRANSFER_COMPLETED").await;
        let payouts: Vec<(&Value, &Value)> =
            announced.iter().map(|e| (&e["sellerPaymentId"], &e["sellerPayout"])).collect();
        let first_payout = (json!(paid.payment_id), json!(200_000));
        let expected = [first_payout, (json!(one.payment_id), json!(220_000))];
        assert_eq!(payouts, expected.iter().map(|(id, won)| (id, won)).collect::<Vec<_>>());
        let record = world.find(paid.id()).await;
        assert_eq!(record.reservation.user_id, third_id);
        assert_eq!(record.payment_id, Some(two.payment_id));
        assert_eq!(record.reservation.total_amount, Won::new(242_000));
        assert_eq!(world.number("select max(issue) as n from tickets").await, 3);
        // The one in the middle gets theirs back; the reservation is not concerned.
        let middle = world.ticket.find_transfer(first.id).await.unwrap();
        assert_eq!(middle.payment_status(), ReservationPaymentStatus::Refunding);
        let ids = (first.id.0, paid.id().0);
        let news = returned(&world, "transfer", one.payment_id, ids, (220_000, "transferred"));
        assert_eq!(deliver(&world, &news).await, Ok(HandlerOutcome::Done));
        let middle = world.ticket.find_transfer(first.id).await.unwrap();
        assert_eq!(middle.payment_status(), ReservationPaymentStatus::Refunded);
        assert_eq!(world.find(paid.id()).await, record);
        // Nor does its payment complete anything again.
        world.complete(first.id, one).await.unwrap();
        assert_eq!(world.find(paid.id()).await, record);
        world.assert_agrees().await;
    }
}

/// The sweep does not lock the sale, so the listing itself is locked by who takes it back. On
/// SQLite there is one writer.
#[test]
fn r_3_a_listing_that_is_just_being_ended_is_looked_at_again() {
    run(Form::Postgres, async |world: World| {
        let (paid, transfer) = world.listed().await;
        let (begun, has_begun) = oneshot::channel();
        let begun = Mutex::new(Some(begun));
        let db = world.db.clone();
        let sweep = tokio::spawn(async move {
            let swept = db.write(move |tx| {
                tx.execute(
                    "update transfers set status = 'cancelled', end_reason = 'EVENT_STARTED'",
                    &[],
                )?;
                begun.lock().unwrap().take().map(|begun| begun.send(()));
                wait_until_someone_waits(tx)
            });
            swept.await
        });
        has_begun.await.unwrap();
        let taken = world.ticket.cancel_transfer(transfer.id, seller(&paid), world.context()).await;
        assert_eq!(sweep.await.unwrap(), Ok(()));
        assert_eq!(taken.unwrap().end_reason.as_deref(), Some("EVENT_STARTED"));
        assert_eq!(world.announced("TRANSFER_CANCELLED").await.len(), 0, "the sweep's own");
    });
}
