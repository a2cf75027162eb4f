//! Who may sell and buy, how much, and what it looks like from outside.

use super::*;
use crate::operations::assert_fields;

contract! {
    async fn nobody_lists_or_takes_back_what_is_someone_elses(world: World) {
        let (paid, transfer) = world.listed().await;
        let stranger = world.ids.next_id();
        let listed = world.ticket.list_for_transfer(paid.id(), stranger).await;
        assert_eq!(listed, refused(TransferRejection::ReservationNotFound));
        let taken = world.ticket.cancel_transfer(transfer.id, stranger, world.context()).await;
        assert_eq!(taken, refused(TransferRejection::NotFound));
        let own = world.ticket.validate_transfer(transfer.id, seller(&paid)).await;
        assert_eq!(own, refused(TransferRejection::OwnTransfer));
        let pinned =
            world.ticket.pin_transfer(transfer.id, seller(&paid), world.transfer_claim(&transfer), 1);
        assert_eq!(pinned.await, refused(TransferRejection::OwnTransfer));
        let nothing = TransferId(world.ids.next_id());
        let found = world.ticket.find_transfer(nothing).await;
        assert_eq!(found, refused(TransferRejection::NotFound));
        assert_eq!(world.transfer(transfer.id).await, transfer);
    }

    async fn the_audit_finds_what_was_handed_over_by_halves_and_pins_that_were_forgotten(
        world: World
    ) {
        let (_, free) = world.listed().await;
        let (sold_from, sold) = world.listed().await;
        world.buy(&sold, world.ids.next_id()).await;
        world.assert_agrees().await;
        let kinds = async || {
            let audit = world.ticket.audit().await.unwrap();
            audit.differences.iter().map(|d| (d.kind, d.reservation_id)).collect::<Vec<_>>()
        };
        world.execute("update transfers set seller_id = id where status = 'listed'").await;
        assert_eq!(kinds().await, [(AuditDifferenceKind::Transfer, Some(free.reservation_id.0))]);
        let mend = "update transfers set seller_id = (select user_id from reservations as r \
                    where r.id = transfers.reservation_id) where status = 'listed'";
        world.execute(mend).await;
        world.assert_agrees().await;
        world.execute("update transfers set buyer_id = id where status = 'completed'").await;
        assert_eq!(kinds().await, [(AuditDifferenceKind::Transfer, Some(sold_from.id().0))]);
        world.execute("update transfers set buyer_id = (select user_id from reservations as r \
            where r.id = transfers.reservation_id) where status = 'completed'").await;
        let claim = world.pin_transfer(&free, world.ids.next_id()).await;
        world.clock.advance(15 * MINUTE);
        world.assert_agrees().await;
        world.clock.advance(MINUTE);
        assert_eq!(kinds().await, [(AuditDifferenceKind::OldPin, Some(free.reservation_id.0))]);
        world.ticket.unpin_transfer(free.id, claim.payment_id, 1).await.unwrap();
        world.assert_agrees().await;
    }

    async fn of_an_artists_event_only_members_sell_and_buy(world: World) {
        let (artist_id, event_id) = (world.artist().await, world.ids.next_id());
        let mut sale = new_sale(event_id, hall(2, 5), &world.clock);
        sale.facts.artist_id = Some(artist_id);
        assert!(world.sale_insert(sale).await);
        let paid = world.bought(event_id).await;
        let path = "/api/transfers";
        let (who, body) = (CallerIdentity::User(seller(&paid)), json!({"reservationId": paid.id().0}));
        let bronze = post(&world, who, path, body.clone()).await;
        assert_eq!(code(&bronze), (403, "MEMBERSHIP_REQUIRED"));
        world.join(seller(&paid), artist_id).await;
        let (status, listed) = post(&world, who, path, body).await;
        assert_eq!(status, 201, "{listed}");
        assert_eq!(listed["transfer"]["transferFeePercent"], 10, "silver");
        let transfer = listed["transfer"]["id"].as_str().unwrap().parse().unwrap();
        let transfer = world.transfer(TransferId(transfer)).await;
        let buyer_id = world.ids.next_id();
        let validate =
            format!("/internal/ticket/payables/transfer/{}/validate?userId={buyer_id}", transfer.id);
        let payments = CallerIdentity::Service(Caller::Payment);
        assert_eq!(code(&get(&world, payments, &validate).await), (403, "MEMBERSHIP_REQUIRED"));
        let claim = world.transfer_claim(&transfer);
        let pinned = world.ticket.pin_transfer(transfer.id, buyer_id, claim, 1).await;
        assert_eq!(pinned, refused(TransferRejection::BuyerNotMember));
        world.join(buyer_id, artist_id).await;
        world.buy(&transfer, buyer_id).await;

        // Gold pays five per cent; who was a member a year ago is none.
        world.execute("update memberships set tier = 'gold', points = 500").await;
        let second = world.ticket.list_for_transfer(paid.id(), buyer_id).await.unwrap();
        assert_eq!((second.price.fee_percent, second.price.fee), (5, Won::new(11_000)));
        world.ticket.cancel_transfer(second.id, buyer_id, world.context()).await.unwrap();
        world.execute("update memberships set expires_at = joined_at").await;
        let expired = world.ticket.list_for_transfer(paid.id(), buyer_id).await;
        assert_eq!(expired, refused(TransferRejection::SellerNotMember));
    }

    /// A seller has bought nothing: transfers earn no points.
    async fn the_points_of_a_sold_ticket_go_back_with_the_money(world: World) {
        let (artist_id, event_id) = (world.artist().await, world.ids.next_id());
        let mut sale = new_sale(event_id, hall(2, 5), &world.clock);
        sale.facts.artist_id = Some(artist_id);
        assert!(world.sale_insert(sale).await);
        let (seller_id, buyer_id) = (world.ids.next_id(), world.ids.next_id());
        let (member, _) = world.join(seller_id, artist_id).await;
        let (other, _) = world.join(buyer_id, artist_id).await;
        let record = world.hold(event_id, seller_id, &[0]).await;
        let paid = world.pay(&record).await;
        assert_eq!(world.all_points(member.id).await, 300);
        let transfer = world.list(&paid).await;
        world.buy(&transfer, buyer_id).await;
        assert_eq!(world.membership(member.id).await.points, 200);
        assert_eq!(world.membership(other.id).await.points, 200);
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    async fn nobody_gets_more_of_an_event_by_buying_from_others(world: World) {
        let (paid, transfer) = world.listed().await;
        let event_id = transfer.event_id;
        let buyer_id = world.ids.next_id();
        let mine = world.hold(event_id, buyer_id, &[2, 3, 4]).await;
        let claim = world.transfer_claim(&transfer);
        let pinned = world.ticket.pin_transfer(transfer.id, buyer_id, claim, 1).await;
        assert_eq!(pinned, refused(TransferRejection::SeatLimit));
        world.release(&mine).await;
        let claim = world.pin_transfer(&transfer, buyer_id).await;
        // A buyer who exceeds the limit while paying gets the money back.
        let mine = world.hold(event_id, buyer_id, &[2, 3, 4]).await;
        assert_eq!(world.complete(transfer.id, claim).await, refused(TransferRejection::SeatLimit));
        assert_eq!(world.find(paid.id()).await.reservation.user_id, seller(&paid));
        world.release(&mine).await;
        world.complete(transfer.id, claim).await.unwrap();
    }

    /// The key by which the seller reserved is the seller's; the buyer may have used the same.
    async fn the_same_key_of_seller_and_buyer_does_no_harm(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let (seller_id, buyer_id) = (world.ids.next_id(), world.ids.next_id());
        let key = || Some(IdempotencyKey::parse("one-and-the-same").unwrap());
        let reserve = |user_id, seat_id| {
            let requested = RequestedItems::of_seats(vec![seat_id]).unwrap();
            world.ticket.reserve(
                ReserveRequest { user_id, event_id, requested, key: key() }, world.context())
        };
        let hold = reserve(seller_id, 0).await.unwrap();
        let record = world.find(hold.reservation.id).await;
        let paid = world.pay(&record).await;
        let own = reserve(buyer_id, 1).await.unwrap();
        let transfer = world.list(&paid).await;
        world.buy(&transfer, buyer_id).await;
        let again = reserve(buyer_id, 1).await.unwrap();
        assert_eq!(again.reservation.id, own.reservation.id);
        // The seller's request neither shows the buyer's reservation nor reserves once more.
        let retried = format!("{:?}", reserve(seller_id, 0).await);
        assert!(retried.contains("KeyReused"), "{retried}");
    }

    async fn a_ticket_is_passed_on_over_the_calls_of_people_and_payments(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let paid = world.bought(event_id).await;
        let (owner, buyer_id) = (CallerIdentity::User(seller(&paid)), world.ids.next_id());
        let body = json!({"reservationId": paid.id().0});
        let (status, made) = post(&world, owner, "/api/transfers", body.clone()).await;
        assert_eq!(status, 201, "{made}");
        let id = made["transfer"]["id"].as_str().unwrap().to_owned();
        assert_eq!(made["transfer"]["seats"][1]["label"], "R-1-2");
        assert_eq!(made["transfer"]["reservationId"], paid.id().to_string());
        let again = post(&world, owner, "/api/transfers", body).await;
        assert_eq!(code(&again), (409, "TRANSFER_LISTED"));
        let buyer = CallerIdentity::User(buyer_id);
        let (_, seen) = get(&world, buyer, &format!("/api/transfers?eventId={event_id}")).await;
        assert_eq!(seen["pagination"]["total"], 1);
        let seen = &seen["transfers"][0];
        assert_eq!(seen["totalPrice"], 220_000);
        assert_eq!((&seen["isMine"], &seen["isBeingPaid"]), (&json!(false), &json!(false)));
        assert_eq!(seen["reservationId"], Value::Null, "that is nobody else's business");
        for filter in ["eventId", "artistId"] {
            let path = format!("/api/transfers?{filter}={}", world.ids.next_id());
            assert_eq!(get(&world, buyer, &path).await.1["transfers"], json!([]));
        }
        let path = format!("/internal/ticket/payables/transfer/{id}");
        let payments = CallerIdentity::Service(Caller::Payment);
        let validate = format!("{path}/validate?userId={buyer_id}");
        let (_, payable) = get(&world, payments, &validate).await;
        assert_fields(&payable["payable"], &json!({
            "kind": "transfer", "id": id, "orderName": "[양도] 한강의 밤 · R 2매", "userId": buyer_id,
            "reservationId": paid.id().0, "eventId": event_id, "sellerId": seller(&paid),
            "status": "listed", "paymentStatus": "unpaid", "transferFee": 20_000,
            "totalAmount": 220_000, "bookingFee": 0, "fencingToken": 1,
            "pinnedBy": null, "paymentId": null, "refundAmount": null,
        }));
        let payment_id = world.ids.next_id();
        let pin = json!({"paymentId": payment_id, "userId": buyer_id, "fencingToken": 1,
            "attempt": 1, "amount": 220_000});
        let confirm = json!({"paymentId": payment_id, "fencingToken": 1, "amount": 220_000,
            "paymentMethod": "card"});
        for caller in [CallerIdentity::Service(Caller::Catalog), owner] {
            for (step, body) in [("pin", &pin), ("confirm", &confirm)] {
                let answer = post(&world, caller, &format!("{path}/{step}"), body.clone()).await;
                assert_eq!(answer.0, 403, "{step}");
            }
        }
        let done = post(&world, payments, &format!("{path}/pin"), pin).await;
        assert_eq!(done, (200, json!({})));
        let (_, pinned) = get(&world, payments, &path).await;
        assert_eq!(pinned["payable"]["pinnedBy"], json!(payment_id));
        let taken = post(&world, owner, &format!("/api/transfers/{id}/cancel"), Value::Null).await;
        assert_eq!(code(&taken), (409, "TRANSFER_BEING_PAID"));
        let other = format!("{path}/validate?userId={}", world.ids.next_id());
        assert_eq!(code(&get(&world, payments, &other).await), (409, "TRANSFER_BEING_PAID"));
        let done = post(&world, payments, &format!("{path}/confirm"), confirm).await;
        assert_eq!(done, (200, json!({})));
        let (_, sold) = get(&world, payments, &path).await;
        assert_eq!(sold["payable"]["status"], "completed");
        assert_eq!(sold["payable"]["paymentStatus"], "paid");
        assert_eq!(get(&world, buyer, "/api/transfers").await.1["transfers"], json!([]));
        let (_, shown) = get(&world, buyer, &format!("/api/transfers/{id}")).await;
        assert_eq!(shown["transfer"]["reservationId"], paid.id().to_string());
        let (_, mine) = get(&world, buyer, "/api/reservations/my").await;
        assert_eq!(mine["reservations"][0]["totalAmount"], 220_000);
        assert_eq!(mine["reservations"][0]["status"], ReservationStatus::Confirmed.as_str());
        let (status, _) = get(&world, CallerIdentity::Nobody, "/api/transfers").await;
        assert_eq!(status, 401);
    }
}
