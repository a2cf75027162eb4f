//! A purchase: the hold is pinned, the money is taken, the ticket is given.

use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{TraceContext, Won};
use urr_payment::provider::TestCard;
use urr_payment::{
    AdminRefundRequest, ApprovalRejection, ApproveError, LedgerAccount, OrderRequest,
    PaymentStatus, PrepareError, SagaStep,
};

use crate::contract;
use crate::fake_ticket_service::Fault;
use crate::fixture::{BOOKING_FEE, PRICE};

contract! {
    /// M-4, M-17, K-3.
    async fn a_purchase_ends_in_a_charge_a_ticket_and_one_announcement(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Confirmed, None));
        assert_eq!((held.status, held.tickets), ("confirmed", 1));
        assert_eq!(held.payment_id, Some(payment.id.0));
        let announced = world.announced().await;
        assert_eq!(announced.len(), 1);
        let event = &announced[0];
        assert_eq!(event.event_type, "PAYMENT_CONFIRMED");
        assert_eq!(event.subject, payment.order_id, "the key keeps its facts in order");
        assert_eq!(event.correlation_id, payment.correlation_id);
        assert_eq!(Some(event.id), payment.confirmed_event_id);
        let expected = serde_json::json!({
            "paymentId": payment.id.0, "orderId": payment.order_id, "userId": held.user_id,
            "paymentType": "reservation", "referenceId": held.id, "reservationId": held.id,
            "eventId": held.event_id, "paymentMethod": payment.method, "amount": PRICE,
            "bookingFee": BOOKING_FEE, "transferFee": null, "fencingToken": 7,
            "timestamp": "2026-12-01T12:00:00Z", "type": "PAYMENT_CONFIRMED",
            "sagaId": event.correlation_id,
        });
        assert_eq!(event.data, expected);
        let proof = world.payments.prove_ledger().await.unwrap();
        assert_eq!(proof.balance(LedgerAccount::Provider), PRICE);
        assert_eq!(proof.balance(LedgerAccount::Sales), Won::new(-100_000));
        assert_eq!(proof.balance(LedgerAccount::BookingFees), Won::new(-2_000));
        world.assert_whole().await;
    }

    /// A trace shows what a request led to, also behind the bus.
    async fn events_belong_to_the_trace_of_the_request_that_caused_them(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let context = world.context();
        assert_ne!(context.trace, TraceContext::root(order.correlation_id), "the control");
        world.payments.approve(approval, &context).await.unwrap();
        let admin = world.context();
        let refund = AdminRefundRequest {
            admin_id: world.ids.next_id(),
            amount: Some(Won::new(5_000)),
            reason: "a kindness".to_owned(),
            key: "k".to_owned(),
            refund_max: None,
        };
        world.payments.refund_as_admin(order.id, refund, &admin).await.unwrap();
        world.settle().await;
        world.tickets.cancel(held.id);
        let cancelled = world.tickets.take_cancelled().pop().unwrap();
        let cancelled = world.cancelled_event(&cancelled);
        world.consume(&cancelled).await.unwrap();
        world.settle().await;
        let traces = world.announced().await.into_iter().map(|event| event.context().trace);
        let expected = [context.trace, admin.trace, cancelled.context().trace];
        assert_eq!(traces.collect::<Vec<_>>(), expected);
        world.assert_whole().await;
    }

    async fn a_declined_card_lets_the_hold_go_and_it_can_be_paid_otherwise(world: World) {
        for card in [TestCard::Decline, TestCard::Insufficient] {
            let (held, payment) = world.pay(card).await;
            assert_eq!((payment.status, payment.step), (PaymentStatus::Failed, None));
            assert!(payment.failure_code.is_some());
            assert_eq!((held.status, held.pinned_by), ("pending", None));
            let order = world.order(&held).await;
            assert_ne!(order.id, payment.id, "a failed order is over");
            let approval = world.approval(&order, TestCard::Approve).await;
            assert_eq!(world.approve(&approval).await.unwrap().status, PaymentStatus::Confirmed);
        }
        world.assert_whole().await;
    }

    /// P6, M-16: nothing is charged for a hold that is not pinned.
    async fn what_cannot_be_pinned_is_not_charged(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        world.clock.advance(std::time::Duration::from_secs(300));
        let payment = world.approve(&approval).await.unwrap();
        assert_eq!(payment.failure_code.as_deref(), Some("RESERVATION_EXPIRED"));
        assert_eq!((payment.status, payment.charge_sent_at), (PaymentStatus::Failed, None));
        assert!(world.provider_books().await.is_empty());
        world.assert_whole().await;
    }

    /// M-7: the order of somebody else, or of another hold, is not handed out.
    async fn m_7_an_order_is_found_again_by_its_own_user_for_the_same_hold_only(world: World) {
        let held = world.hold();
        let first = world.order(&held).await;
        assert_eq!(world.order(&held).await.id, first.id);
        world.tickets.change(held.id, |held| held.fence = 8);
        let changed = world.order(&held).await;
        assert_ne!(changed.id, first.id, "another hold is another purchase");
        // The old order pays for a hold that is not there any more.
        let approval = world.approval(&first, TestCard::Approve).await;
        let payment = world.approve(&approval).await.unwrap();
        assert_eq!(payment.failure_code.as_deref(), Some("STALE_FENCING_TOKEN"));
        let other = OrderRequest {
            user_id: world.ids.next_id(),
            payable: PayableRef { kind: PayableKind::Reservation, id: held.id },
            amount: None,
            key: None,
        };
        let refused = world.payments.prepare_order(other, &world.context()).await;
        assert!(matches!(refused, Err(PrepareError::Tickets(_))));
        world.assert_whole().await;
    }

    /// P3: the amount is the ticket service's.
    async fn an_amount_that_is_not_the_ticket_services_makes_no_order(world: World) {
        let held = world.hold();
        for amount in [0, 1, -102_000, 101_999, 102_001] {
            let request = OrderRequest {
                user_id: held.user_id,
                payable: PayableRef { kind: PayableKind::Reservation, id: held.id },
                amount: Some(Won::new(amount)),
                key: None,
            };
            let refused = world.payments.prepare_order(request, &world.context()).await;
            assert!(matches!(refused, Err(PrepareError::AmountMismatch(PRICE))), "{amount}");
        }
        assert_eq!(world.number("select count(*) as number from payments").await, 0);
    }

    /// M-11: two orders of one hold.
    async fn m_11_of_two_orders_for_one_hold_one_is_charged(world: World) {
        let held = world.hold();
        let first = world.order(&held).await;
        world.tickets.change(held.id, |held| held.fence = 8);
        let second = world.order(&held).await;
        let first = world.approval(&first, TestCard::Approve).await;
        let second = world.approval(&second, TestCard::Approve).await;
        assert_eq!(world.approve(&second).await.unwrap().status, PaymentStatus::Confirmed);
        let refused = world.approve(&first).await;
        assert_eq!(refused, Err(ApproveError::Refused(ApprovalRejection::AlreadyPaid)));
        assert_eq!(world.provider_books().await.len(), 1);
        world.assert_whole().await;
    }

    /// M-3: the ticket service is down after the charge.
    async fn m_3_a_silent_ticket_service_is_asked_until_it_gives_the_ticket(world: World) {
        world.tickets.fail("confirm", [Fault::Silent; 4]);
        let (held, payment) = world.pay(TestCard::Approve).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Confirmed, Some(SagaStep::Deliver)));
        assert_eq!(held.status, "pending");
        world.settle().await;
        assert_eq!(world.tickets.get(held.id).status, "confirmed");
        world.assert_whole().await;
    }

    async fn a_ticket_service_that_dies_after_each_step_gives_one_ticket(world: World) {
        world.tickets.fail("pin", [Fault::Dies, Fault::Dies]);
        world.tickets.fail("confirm", [Fault::Dies, Fault::Dies]);
        let (held, _) = world.pay(TestCard::Approve).await;
        // Within the ten minutes for which the key of the payment is good.
        world.settle_now().await;
        let held = world.tickets.get(held.id);
        assert_eq!((held.status, held.tickets), ("confirmed", 1));
        assert_eq!(world.provider_books().await.len(), 1);
        world.assert_whole().await;
    }

    async fn a_ticket_service_that_never_pins_ends_the_purchase_without_a_charge(world: World) {
        world.tickets.fail("pin", [Fault::Silent; 40]);
        let (held, payment) = world.pay(TestCard::Approve).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Approving, Some(SagaStep::Pin)));
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!(payment.failure_code.as_deref(), Some("TICKET_SERVICE_UNAVAILABLE"));
        assert_eq!((payment.status, world.tickets.get(held.id).status), (PaymentStatus::Failed, "pending"));
        assert!(world.provider_books().await.is_empty());
        world.assert_whole().await;
    }

    /// P7, M-3: the seat was lost between the charge and the ticket.
    async fn what_is_paid_and_not_to_be_had_goes_back_and_the_buyer_sees_it(world: World) {
        world.tickets.fail("confirm", [Fault::Refuses("SEAT_LOST")]);
        let (held, payment) = world.pay(TestCard::Approve).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Refunded, None));
        assert_eq!((payment.charged, payment.refunded), (PRICE, PRICE));
        assert_eq!(payment.failure_code.as_deref(), Some("SEAT_LOST"));
        assert_eq!((held.status, held.pinned_by), ("pending", None));
        let types: Vec<String> =
            world.announced().await.into_iter().map(|event| event.event_type).collect();
        assert_eq!(types, ["PAYMENT_CONFIRMED", "PAYMENT_REFUNDED"]);
        world.assert_whole().await;
    }

    async fn nothing_to_pay_needs_no_provider(world: World) {
        let held = world.hold();
        let free = |held: &mut crate::fake_ticket_service::FakePayable| {
            (held.amount, held.booking_fee) = (Won::ZERO, Won::ZERO);
        };
        world.tickets.change(held.id, free);
        let held = world.tickets.get(held.id);
        let order = world.order(&held).await;
        let approval = urr_payment::Approval {
            user_id: held.user_id,
            payment_key: "none".to_owned(),
            amount: Won::ZERO,
        };
        let approval =
            urr_payment::ApproveOrder { order_id: order.order_id, approval, key: None, claim: None };
        assert_eq!(world.approve(&approval).await.unwrap().status, PaymentStatus::Confirmed);
        assert_eq!(world.tickets.get(held.id).status, "confirmed");
        world.assert_whole().await;
    }
}
