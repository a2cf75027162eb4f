//! Listings that end without a sale: the event begins or is cancelled, a ticket is used, a sweep comes.

use super::*;

contract! {
    async fn at_the_beginning_of_the_event_what_is_listed_ends_once(world: World) {
        let (paid, transfer) = world.listed().await;
        let (_, paying) = world.listed().await;
        let claim = world.pin_transfer(&paying, world.ids.next_id()).await;
        let (_, giving_up) = world.listed().await;
        let other = world.pin_transfer(&giving_up, world.ids.next_id()).await;
        world.clock.advance(20 * DAY - MINUTE);
        assert_eq!(world.ticket.end_started_transfers().await, Ok(0), "it is not time");
        world.clock.advance(MINUTE);
        let buyer_id = world.ids.next_id();
        let late = world.transfer_claim(&transfer);
        let pinned = world.ticket.pin_transfer(transfer.id, buyer_id, late, 1).await;
        assert_eq!(pinned, refused(TransferRejection::EventStarted), "swept or not");
        let (_, seen) = get(&world, CallerIdentity::User(buyer_id), "/api/transfers").await;
        assert_eq!(seen["transfers"], json!([]));
        assert_eq!(world.ticket.end_started_transfers().await, Ok(1));
        assert_eq!(world.ticket.end_started_transfers().await, Ok(0));
        let ended = world.transfer(transfer.id).await;
        assert_eq!(ended.status, TransferStatus::Cancelled);
        assert_eq!(ended.end_reason.as_deref(), Some("EVENT_STARTED"));
        // What was being paid is decided first.
        world.complete(paying.id, claim).await.unwrap();
        world.ticket.unpin_transfer(giving_up.id, other.payment_id, 1).await.unwrap();
        assert_eq!(world.ticket.end_started_transfers().await, Ok(1));
        let announced = world.announced("TRANSFER_CANCELLED").await;
        assert_eq!(announced.len(), 2);
        assert!(announced.iter().all(|event| event["reason"] == "EVENT_STARTED"));
        let listed = world.ticket.list_for_transfer(paid.id(), seller(&paid)).await;
        assert_eq!(listed, refused(TransferRejection::EventStarted));
        // The reservation is its owner's as before.
        assert_eq!(world.find(paid.id()).await, paid.record);
    }

    async fn a_cancelled_event_ends_what_is_listed_and_refuses_who_is_paying(world: World) {
        let (paid, transfer) = world.listed().await;
        let (_, free) = world.listed().await;
        let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
        world.execute("update sales set status = 'cancelled'").await;
        let completed = world.complete(transfer.id, claim).await;
        assert_eq!(completed, refused(TransferRejection::EventCancelled));
        let validated = world.ticket.validate_transfer(free.id, world.ids.next_id()).await;
        assert_eq!(validated, refused(TransferRejection::EventCancelled));
        assert_eq!(world.empty().await, 2);
        assert_eq!(world.empty().await, 0);
        let completed = world.complete(transfer.id, claim).await;
        assert_eq!(completed, refused(TransferRejection::Cancelled));
        let news = paid_for(&world, &transfer, claim);
        assert!(matches!(deliver(&world, &news).await, Ok(HandlerOutcome::Rejected { .. })));
        world.ticket.unpin_transfer(transfer.id, claim.payment_id, 1).await.unwrap();
        let record = world.find(paid.id()).await;
        assert_eq!(record.reservation.user_id, seller(&paid));
        assert_eq!(record.payment_id, Some(paid.payment_id), "the seller is paid back");
        let announced = world.announced("TRANSFER_CANCELLED").await;
        assert_eq!(announced.len(), 2);
        assert!(announced.iter().all(|event| event["reason"] == "EVENT_CANCELLED"));
        assert_eq!(world.announced("TRANSFER_COMPLETED").await.len(), 0);
        world.assert_agrees().await;
    }

    async fn an_administrator_cancels_what_is_listed_but_not_what_is_being_paid(world: World) {
        let (paid, transfer) = world.listed().await;
        let admin = CallerIdentity::Admin(world.ids.next_id());
        let path = format!("/internal/ticket/reservations/{}/cancel", paid.id());
        let body = json!({"adminId": world.ids.next_id(), "reason": "Fraud"});
        let payments = CallerIdentity::Service(Caller::Payment);
        let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
        let answer = post(&world, payments, &path, body.clone()).await;
        assert_eq!(code(&answer), (409, "TRANSFER_BEING_PAID"));
        world.ticket.unpin_transfer(transfer.id, claim.payment_id, 1).await.unwrap();
        let (status, answer) = post(&world, payments, &path, body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(world.transfer(transfer.id).await.status, TransferStatus::Cancelled);
        assert_eq!(world.announced("TRANSFER_CANCELLED").await[0]["reason"], "Fraud");
        let (status, _) = get(&world, admin, "/api/admin/reservations/audit").await;
        assert_eq!(status, 200);
        world.assert_agrees().await;
    }

    async fn who_enters_does_not_sell(world: World) {
        for is_pinned in [false, true] {
            let (paid, transfer) = world.listed().await;
            let codes = world.codes(paid.id(), seller(&paid)).await;
            let claim = match is_pinned {
                true => Some(world.pin_transfer(&transfer, world.ids.next_id()).await),
                false => None,
            };
            world.show(transfer.event_id, &codes[0].1).await.unwrap();
            let ended = world.transfer(transfer.id).await;
            assert_eq!(ended.status, TransferStatus::Cancelled);
            assert_eq!(ended.end_reason.as_deref(), Some("TICKET_USED"));
            if let Some(claim) = claim {
                let completed = world.complete(transfer.id, claim).await;
                assert_eq!(completed, refused(TransferRejection::Cancelled));
            }
            let listed = world.ticket.list_for_transfer(paid.id(), seller(&paid)).await;
            assert_eq!(listed, refused(TransferRejection::CheckedIn));
        }
        assert_eq!(world.announced("TRANSFER_CANCELLED").await.len(), 2);
    }

    async fn of_the_door_and_a_buyer_at_once_one_has_the_ticket(world: World) {
        let world = Arc::new(world);
        for _ in 0..15 {
            let (paid, transfer) = world.listed().await;
            let codes = world.codes(paid.id(), seller(&paid)).await;
            let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
            let (here, id) = (Arc::clone(&world), transfer.id);
            let buying = tokio::spawn(async move { here.complete(id, claim).await });
            let (here, event_id) = (Arc::clone(&world), transfer.event_id);
            let entering = tokio::spawn(async move { here.show(event_id, &codes[1].1).await });
            let (bought, entered) = (buying.await.unwrap(), entering.await.unwrap());
            assert_ne!(bought.is_ok(), entered.is_ok(), "{bought:?} {entered:?}");
        }
        world.assert_agrees().await;
    }

    /// Only a hand in the tables leaves a listing of a ticket that was used.
    async fn a_used_ticket_is_not_handed_over_whatever_is_listed(world: World) {
        let (paid, transfer) = world.listed().await;
        let (_, other) = world.listed().await;
        let claim = world.pin_transfer(&transfer, world.ids.next_id()).await;
        world.execute("update tickets set checked_in_at = created_at").await;
        assert_eq!(world.complete(transfer.id, claim).await, refused(TransferRejection::CheckedIn));
        let claim = world.transfer_claim(&other);
        let pinned = world.ticket.pin_transfer(other.id, world.ids.next_id(), claim, 1).await;
        assert_eq!(pinned, refused(TransferRejection::CheckedIn));
        assert_eq!(world.find(paid.id()).await, paid.record);
    }

    async fn of_the_sweep_and_a_seller_at_once_one_ends_it(world: World) {
        let mut all = Vec::new();
        for _ in 0..15 {
            all.push(world.listed().await);
        }
        world.clock.advance(20 * DAY);
        let world = Arc::new(world);
        let mut ending = JoinSet::new();
        for (paid, transfer) in all {
            let (here, user_id) = (Arc::clone(&world), seller(&paid));
            ending.spawn(async move {
                let taken = here.ticket.cancel_transfer(transfer.id, user_id, here.context()).await;
                assert_eq!(taken.unwrap().status, TransferStatus::Cancelled);
            });
            let here = Arc::clone(&world);
            ending.spawn(async move {
                here.ticket.end_started_transfers().await.unwrap();
            });
        }
        ending.join_all().await;
        assert_eq!(world.announced("TRANSFER_CANCELLED").await.len(), 15, "each once");
    }

    async fn of_a_hold_and_a_purchase_at_once_only_as_much_as_is_allowed(world: World) {
        let world = Arc::new(world);
        for _ in 0..15 {
            let (paid, transfer) = world.listed().await;
            let (buyer_id, event_id) = (world.ids.next_id(), transfer.event_id);
            let claim = world.pin_transfer(&transfer, buyer_id).await;
            let (here, id) = (Arc::clone(&world), transfer.id);
            let buying = tokio::spawn(async move { here.complete(id, claim).await });
            let here = Arc::clone(&world);
            let holding = tokio::spawn(async move {
                let requested = RequestedItems::of_seats(vec![2, 3, 4]).unwrap();
                let request = ReserveRequest { user_id: buyer_id, event_id, requested, key: None };
                here.ticket.reserve(request, here.context()).await
            });
            let (bought, held) = (buying.await.unwrap(), holding.await.unwrap());
            assert_ne!(bought.is_ok(), held.is_ok(), "{bought:?} {held:?}");
            let owner = world.find(paid.id()).await.reservation.user_id;
            assert_eq!(owner == buyer_id, bought.is_ok());
        }
    }
}
