//! What else can be paid: memberships, and tickets that change hands.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use urr_bus::{HandleError, HandlerOutcome};
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{
    AdminRefundRequest, ApprovalRejection, LedgerAccount, OwnerCancelRequest, Payment,
    PaymentStatus, PrepareError, RefundError, RefundOrigin,
};

use crate::api_client::ApiClient;
use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::{PRICE, World};

async fn pay_for(world: &World, held: &FakePayable, user_id: urr_kernel::Uuid) -> Payment {
    let order = world.order_of(held, user_id).await.unwrap();
    let approval = world.approval(&order, TestCard::Approve).await;
    world.approve(&approval).await.unwrap()
}

/// A ticket, its owner's payment, and the payment by which somebody else has taken it over.
async fn hand_over(world: &World) -> (FakePayable, Payment, Payment) {
    let (ticket, sold) = world.pay(TestCard::Approve).await;
    let listing = world.listing(&ticket);
    let bought = pay_for(world, &listing, world.ids.next_id()).await;
    assert_eq!((bought.status, bought.step), (PaymentStatus::Confirmed, None));
    world.settle().await;
    (world.tickets.get(ticket.id), world.find(sold.id).await, bought)
}

fn owner(payment: &Payment) -> OwnerCancelRequest {
    OwnerCancelRequest { user_id: payment.user_id, reason: None }
}

async fn balances(world: &World) -> [i64; 11] {
    let proof = world.payments.prove_ledger().await.unwrap();
    assert!(proof.is_balanced(), "{proof}");
    LedgerAccount::ALL.map(|account| proof.balance(account).amount())
}

contract! {
    async fn a_membership_is_paid_and_is_its_own_account_in_the_books(world: World) {
        let membership = world.membership(1);
        let payment = pay_for(&world, &membership, membership.user_id).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Confirmed, None));
        assert_eq!(world.tickets.get(membership.id).status, "confirmed");
        let event = world.announced().await.pop().unwrap();
        assert_eq!(event.data["paymentType"], "membership");
        assert_eq!(event.data["referenceId"], json!(membership.id));
        assert!(event.data["reservationId"].is_null());
        assert!(event.data["eventId"].is_null());
        assert_eq!(balances(&world).await, [102_000, 0, 0, 0, 0, 0, -102_000, 0, 0, 0, 0]);
        world.assert_whole().await;
    }

    /// M-7c: the payment of the last term does not stand in the way of the next one.
    async fn m_7c_a_membership_is_paid_anew_for_another_term_and_once_per_term(world: World) {
        let (api, first) = (ApiClient::new(&world), world.membership(1));
        let user = Some(first.user_id);
        let body = json!({
            "paymentMethod": "approve", "paymentType": "membership", "referenceId": first.id,
        });
        let (status, paid) = api.post(user, "/api/payments/process", &body).await;
        assert_eq!((status.as_u16(), &paid["payment"]["paymentType"]), (200, &json!("membership")));
        let (status, again) = api.post(user, "/api/payments/process", &body).await;
        assert_eq!((status.as_u16(), again), (200, paid.clone()), "the same term is paid once");
        // A year later.
        world.clock.advance(Duration::from_secs(340 * 24 * 60 * 60));
        let now = world.clock.now();
        world.tickets.change(first.id, |held| {
            (held.status, held.payment_status, held.fence) = ("pending", "unpaid", 2);
            (held.payment_id, held.expires_at) = (None, now + Duration::from_secs(300));
        });
        let (status, renewed) = api.post(user, "/api/payments/process", &body).await;
        assert_eq!(status, 200, "{renewed}");
        assert_ne!(renewed["payment"]["id"], paid["payment"]["id"]);
        assert_eq!(world.tickets.get(first.id).tickets, 2);
        assert_eq!(world.provider_books().await.len(), 2);
        let standing = "select count(*) as number from payments where status = 'confirmed'";
        assert_eq!(world.number(standing).await, 2);
    }

    /// M-15: a refund says of what kind it is.
    async fn m_15_an_administrator_ends_a_membership_and_its_refund_names_it(world: World) {
        let membership = world.membership(1);
        let payment = pay_for(&world, &membership, membership.user_id).await;
        let key = payment.payment_key.clone().unwrap();
        let refused = world.payments.cancel_by_owner(&key, owner(&payment), &world.context()).await;
        assert!(matches!(refused, Err(RefundError::NotCancellable)), "not on request");
        let refund = async |key: &str, amount: Option<i64>| {
            let refund = AdminRefundRequest {
                admin_id: world.ids.next_id(),
                amount: amount.map(Won::new),
                reason: "wrong artist".to_owned(),
                key: key.to_owned(),
                refund_max: None,
            };
            let done = world.payments.refund_as_admin(payment.id, refund, &world.context()).await;
            done.unwrap().amount()
        };
        // A part is a gift; the rest ends it, once.
        assert_eq!(refund("part", Some(2_000)).await, 2_000);
        world.settle().await;
        assert_eq!(world.tickets.get(membership.id).status, "confirmed");
        for key in ["a", "b"] {
            assert_eq!(refund(key, None).await, 100_000);
        }
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, PRICE));
        assert_eq!(world.tickets.get(membership.id).status, "cancelled", "the ticket service ends it");
        let event = world.announced().await.pop().unwrap();
        assert_eq!(event.event_type, "PAYMENT_REFUNDED");
        assert_eq!(event.data["paymentType"], "membership");
        assert_eq!(event.data["referenceId"], json!(membership.id));
        assert_eq!(balances(&world).await, [0; 11]);
    }

    /// B-6, M-8: the seller has their money, the buyer the ticket, and the platform the fee.
    async fn m_8_a_ticket_that_changes_hands_is_paid_by_its_new_owner(world: World) {
        let (ticket, sold, bought) = hand_over(&world).await;
        assert_eq!((sold.status, sold.refunded), (PaymentStatus::Refunded, PRICE));
        assert_eq!((ticket.user_id, ticket.payment_id), (bought.user_id, Some(bought.id.0)));
        assert_eq!(balances(&world).await, [112_200, 0, -102_000, 0, 0, 0, 0, -10_200, 0, 0, 0]);
        let refunds = world.payments.list_refunds(sold.id).await.unwrap();
        let causes: Vec<&RefundOrigin> = refunds.iter().map(|refund| &refund.origin).collect();
        assert_eq!(causes, [&RefundOrigin::Transferred]);
        let announced = world.announced().await;
        let confirmed = &announced[1].data;
        assert_eq!((&confirmed["paymentType"], &confirmed["transferFee"], &confirmed["bookingFee"]),
            (&json!("transfer"), &json!(10_200), &json!(0)));
        assert_eq!(confirmed["reservationId"], json!(ticket.id), "M-15: what it hands over");
        assert_eq!((&announced[2].data["cause"], &announced[2].data["paymentType"]),
            (&json!("transferred"), &json!("reservation")));
        world.assert_whole().await;
    }

    /// M-8: the seller's own payment has gone back, and is nobody's way to the ticket.
    async fn m_8_a_seller_who_cancels_afterwards_changes_nothing(world: World) {
        let (ticket, sold, bought) = hand_over(&world).await;
        let api = ApiClient::new(&world);
        let key = sold.payment_key.clone().unwrap();
        let path = format!("/api/payments/{key}/cancel");
        let (status, refused) = api.post(Some(sold.user_id), &path, &json!({})).await;
        assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("TICKET_TRANSFERRED")));
        let path = format!("/api/admin/payments/{}/refund", sold.id);
        let (status, _) = api.post_as_admin(&path, "a", &json!({"reason": "please"})).await;
        assert_eq!(status, 409, "not even by an administrator");
        // The seller's payment did not pay for a cancelled ticket.
        let wrong = FakePayable {
            payment_id: Some(sold.id.0), refund_amount: Some(PRICE), ..ticket.clone()
        };
        let poison = world.consume(&world.cancelled_event(&wrong)).await;
        assert!(matches!(poison, Err(HandleError::Poison(_))), "{poison:?}");
        assert_eq!(world.tickets.calls("cancel"), 0);
        assert_eq!(world.tickets.get(ticket.id).status, "confirmed");
        assert_eq!(world.find(bought.id).await.status, PaymentStatus::Confirmed);
        world.assert_whole().await;
    }

    /// P9: only the present owner's payment is given back.
    async fn m_8_a_ticket_that_was_taken_over_is_refunded_to_its_present_owner(world: World) {
        let (ticket, sold, bought) = hand_over(&world).await;
        world.tickets.change(ticket.id, |held| held.cancel_fee = Won::new(12_200));
        let key = bought.payment_key.clone().unwrap();
        let amount =
            world.payments.cancel_by_owner(&key, owner(&bought), &world.context()).await.unwrap();
        assert_eq!(amount, Won::new(100_000));
        world.settle().await;
        let after = world.find(bought.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, Won::new(100_000)));
        assert_eq!(world.find(sold.id).await.refunded, PRICE, "as before");
        assert_eq!(world.tickets.get(ticket.id).payment_status, "refunded");
        assert_eq!(balances(&world).await, [12_200, 0, 0, 0, -2_000, 0, 0, -10_200, 0, 0, 0]);
        world.assert_whole().await;
    }

    async fn a_ticket_can_change_hands_twice(world: World) {
        let (ticket, _, first) = hand_over(&world).await;
        let listing = world.listing(&ticket);
        let second = pay_for(&world, &listing, world.ids.next_id()).await;
        world.settle().await;
        let first = world.find(first.id).await;
        assert_eq!((first.status, first.refunded), (PaymentStatus::Refunded, first.charged));
        assert_eq!(world.find(second.id).await.status, PaymentStatus::Confirmed);
        assert_eq!(world.tickets.get(ticket.id).payment_id, Some(second.id.0));
        world.assert_whole().await;
    }

    /// K-4: the news arrives again, and about what we have never sold.
    async fn a_seller_is_paid_once_and_only_for_their_own_ticket(world: World) {
        let (ticket, sold) = world.pay(TestCard::Approve).await;
        let (_, other) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        pay_for(&world, &listing, world.ids.next_id()).await;
        let handed_over = world.tickets.take_completed_transfers().pop().unwrap();
        let mut wrong = handed_over.clone();
        wrong.seller_payment_id = Some(other.id.0);
        let poison = world.consume(&world.transfer_completed_event(&wrong)).await;
        assert!(matches!(poison, Err(HandleError::Poison(_))), "{poison:?}");
        wrong.seller_payment_id = None;
        let ignored = world.consume(&world.transfer_completed_event(&wrong)).await;
        assert_eq!(ignored, Ok(HandlerOutcome::Ignored), "who paid nothing gets nothing");
        let (event, copy) =
            (world.transfer_completed_event(&handed_over), world.transfer_completed_event(&handed_over));
        for event in [&event, &event, &copy] {
            assert_eq!(world.consume(event).await, Ok(HandlerOutcome::Done));
        }
        world.settle().await;
        assert_eq!(world.number("select count(*) as number from refunds").await, 1);
        assert_eq!(world.find(sold.id).await.refunded, PRICE);
        world.assert_whole().await;
    }

    /// M-7a, M-11: the order of one buyer is not handed to another, and one of them pays.
    async fn m_7a_of_two_buyers_of_one_ticket_one_pays_and_the_other_is_told(world: World) {
        let (ticket, _) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        let buyers = [world.ids.next_id(), world.ids.next_id()];
        let mut approvals = Vec::new();
        for buyer in buyers {
            let order = world.order_of(&listing, buyer).await.unwrap();
            assert_eq!(order.user_id, buyer);
            approvals.push(world.approval(&order, TestCard::Approve).await);
        }
        let refused = world.order_of(&listing, listing.user_id).await;
        assert!(matches!(refused, Err(PrepareError::Tickets(_))), "nobody buys their own");
        let paid = join_all(approvals.iter().map(|approval| world.approve(approval))).await;
        let won = paid.iter().filter(|paid| {
            matches!(paid, Ok(payment) if payment.status == PaymentStatus::Confirmed)
        });
        assert_eq!(won.count(), 1, "{paid:?}");
        let lost = paid.iter().find(|paid| {
            !matches!(paid, Ok(payment) if payment.status == PaymentStatus::Confirmed)
        });
        match lost.unwrap() {
            Ok(payment) => {
                assert_eq!((payment.status, payment.charge_sent_at), (PaymentStatus::Failed, None));
            }
            Err(error) => {
                let expected = [ApprovalRejection::InProgress.into(), ApprovalRejection::AlreadyPaid.into()];
                assert!(expected.contains(error), "{error:?}");
            }
        }
        world.settle().await;
        assert_eq!(world.provider_books().await.len(), 2, "the seller once, one buyer once");
        world.assert_whole().await;
    }

    /// M-11: the second buyer comes while the first is at it, in another process.
    async fn m_11_who_comes_second_to_a_ticket_is_refused_before_the_charge(world: World) {
        let (ticket, _) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        let late = world.order_of(&listing, world.ids.next_id()).await.unwrap();
        world.tickets.change(listing.id, |held| held.pinned_by = Some(ticket.id));
        let approval = world.approval(&late, TestCard::Approve).await;
        let payment = world.approve(&approval).await.unwrap();
        assert_eq!(payment.failure_code.as_deref(), Some("TRANSFER_BEING_PAID"));
        assert_eq!((payment.status, payment.charge_sent_at), (PaymentStatus::Failed, None));
        let api = ApiClient::new(&world);
        let body = json!({
            "paymentType": "transfer", "referenceId": listing.id, "amount": listing.amount,
        });
        let (status, refused) =
            api.post(Some(late.user_id), "/api/payments/prepare", &body).await;
        assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("TRANSFER_BEING_PAID")));
    }

    /// P7: the ticket service cannot hand it over any more.
    async fn a_ticket_that_cannot_be_handed_over_is_paid_back_and_the_listing_let_go(world: World) {
        let (ticket, sold) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        world.tickets.fail("confirm", [Fault::Refuses("EVENT_CANCELLED")]);
        let payment = pay_for(&world, &listing, world.ids.next_id()).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, listing.amount));
        assert_eq!(world.tickets.get(listing.id).pinned_by, None);
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!((&refunded.data["paymentType"], &refunded.data["referenceId"]),
            (&json!("transfer"), &json!(listing.id)), "M-15");
        assert_eq!(world.find(sold.id).await.status, PaymentStatus::Confirmed, "nothing else happened");
        world.assert_whole().await;
    }

    async fn what_is_to_be_paid_is_named_by_its_kind(world: World) {
        let api = ApiClient::new(&world);
        let membership = world.membership(1);
        let prepare = async |body: serde_json::Value| {
            let (status, answer) =
                api.post(Some(membership.user_id), "/api/payments/prepare", &body).await;
            (status.as_u16(), answer["code"].as_str().unwrap_or_default().to_owned())
        };
        let (id, amount) = (membership.id, membership.amount);
        let no_reference = json!({"paymentType": "membership", "amount": amount});
        let as_reservation = json!({"reservationId": id, "amount": amount});
        let wrong_field =
            json!({"paymentType": "membership", "reservationId": id, "amount": amount});
        let as_transfer = json!({"paymentType": "transfer", "referenceId": id, "amount": amount});
        let right = json!({"paymentType": "membership", "referenceId": id, "amount": amount});
        let missing = (400, "REFERENCE_ID_REQUIRED".to_owned());
        assert_eq!(prepare(no_reference).await, missing);
        assert_eq!(prepare(wrong_field).await, missing);
        for of_another_kind in [as_reservation, as_transfer] {
            assert_eq!(prepare(of_another_kind).await.0, 404);
        }
        assert_eq!(prepare(right).await.0, 200);
    }
}
