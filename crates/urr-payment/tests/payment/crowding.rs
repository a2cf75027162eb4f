//! Many at once: one charge, one ticket.

use futures_util::future::join_all;
use urr_payment::provider::Card;
use urr_payment::{
    ApproveError, CreateOrder, Created, Faults, MessageContext, NotApproved, Status, Target,
    TargetKind,
};

use crate::contract;

contract! {
    async fn a_hundred_parallel_confirms_of_one_order_are_one_charge_and_one_ticket(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, Card::Approve).await;
        let processes: Vec<_> = (0..4).map(|_| world.instance(Faults::default())).collect();
        let context = world.context();
        let all = (0..100).map(|number| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        for answer in join_all(all).await {
            let payment = answer.unwrap();
            assert!(matches!(payment.status, Status::Confirmed | Status::Approving), "{payment:?}");
        }
        world.settle().await;
        assert_eq!(world.office.get(held.id).tickets, 1);
        assert_eq!(world.provider_books().await.len(), 1);
        let attempts = "select count(*) as number from attempts";
        assert_eq!(world.number(attempts).await, 1, "the provider was asked once");
        assert_eq!(world.announced().await.len(), 1);
        world.assert_whole().await;
    }

    /// In one process everybody waits for the answer of the first.
    async fn who_asks_at_the_same_time_gets_the_same_answer(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, Card::Approve).await;
        let all = join_all((0..50).map(|_| world.approve(&approval))).await;
        assert!(all.into_iter().all(|answer| answer.unwrap().status == Status::Confirmed));
        world.assert_whole().await;
    }

    async fn a_hundred_keys_for_one_order_are_one_charge(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let mut approvals = Vec::new();
        for _ in 0..100 {
            approvals.push(world.approval(&order, Card::Approve).await);
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(Faults::default())).collect();
        let context = world.context();
        let all = approvals.iter().enumerate().map(|(number, approval)| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        let all = join_all(all).await;
        let taken = all.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(taken, 1, "one key pays, the others are refused");
        world.settle().await;
        assert_eq!((world.office.get(held.id).tickets, world.provider_books().await.len()), (1, 1));
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
                target: Target { kind: TargetKind::Reservation, id: held.id },
                event_id: Some(held.event_id),
                fencing_token: Some(held.fence),
                order_name: "R12345".to_owned(),
                amount: held.amount,
                booking_fee: held.booking_fee,
            };
            let causation_id = Some("event".to_owned());
            let context = MessageContext { correlation_id: held.id, causation_id };
            let created = world.payments.create_order(order, context).await.unwrap();
            let Created::New(order) = created else { panic!("it is new") };
            approvals.push(world.approval(&order, Card::Approve).await);
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(Faults::default())).collect();
        let context = world.context();
        let all = approvals.iter().enumerate().map(|(number, approval)| {
            processes[number % 4].approve(approval.clone(), &context)
        });
        let refused = join_all(all).await.into_iter().filter_map(Result::err);
        let refused: Vec<ApproveError> = refused.collect();
        for error in &refused {
            let ApproveError::Refused(refused) = error else { panic!("{error:?}") };
            assert!(matches!(refused, NotApproved::InProgress | NotApproved::AlreadyPaid));
        }
        world.settle().await;
        assert_eq!((world.office.get(held.id).tickets, world.provider_books().await.len()), (1, 1));
        assert_eq!(refused.len(), 19);
        world.assert_whole().await;
    }

    async fn many_processes_go_on_with_what_is_due_and_nothing_happens_twice(world: World) {
        for _ in 0..10 {
            world.pay(Card::ChargeThenTimeOut).await;
        }
        let processes: Vec<_> = (0..4).map(|_| world.instance(Faults::default())).collect();
        world.clock.advance(std::time::Duration::from_secs(2));
        for resolved in join_all(processes.iter().map(|process| process.resolve_due())).await {
            resolved.unwrap();
        }
        world.settle().await;
        assert!(world.office.all().iter().all(|held| held.tickets == 1));
        world.assert_whole().await;
    }
}
