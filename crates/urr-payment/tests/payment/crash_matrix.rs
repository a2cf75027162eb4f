//! The crash matrix: a process ends at every commit and every call of both sagas, with every fault
//! of the provider and the ticket service; another one goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{pending, ready};
use tokio::sync::Notify;
use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::Won;
use urr_payment::provider::{ProviderLookup, ProviderState, TestCard};
use urr_payment::{
    ApproveError, ApproveOrder, FaultPoint, FaultPoints, OrderRequest, Payment, PaymentService,
};

use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::World;

/// Longer than a claim, and than any pause between two looks.
const LONG: Duration = Duration::from_secs(301);
/// Far more than any purchase takes.
const ROUNDS_MAX: usize = 30;

/// What happens to a purchase, crashes aside.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    card: TestCard,
    /// At which step of the ticket service, and what.
    fault: Option<(&'static str, Fault)>,
    /// It is cancelled when it is paid, and this much is kept.
    cancel_fee: Option<i64>,
    /// The order is made and paid at once.
    is_at_once: bool,
}

const fn pays(card: TestCard) -> Scenario {
    Scenario { card, fault: None, cancel_fee: None, is_at_once: false }
}

const fn pays_at_once(card: TestCard) -> Scenario {
    Scenario { is_at_once: true, ..pays(card) }
}

const fn cancels(card: TestCard, fee: i64) -> Scenario {
    Scenario { cancel_fee: Some(fee), ..pays(card) }
}

const fn stumbles(card: TestCard, step: &'static str, fault: Fault) -> Scenario {
    Scenario { fault: Some((step, fault)), ..pays(card) }
}

/// A process that ends when it comes to its nth point.
struct Crash {
    seen: Arc<Mutex<Vec<FaultPoint>>>,
    reached: Arc<Notify>,
}

impl Crash {
    fn at(number: usize) -> (Crash, FaultPoints) {
        let crash = Crash { seen: Arc::default(), reached: Arc::default() };
        let (seen, reached) = (Arc::clone(&crash.seen), Arc::clone(&crash.reached));
        let faults = FaultPoints::listening(move |point| {
            let mut seen = seen.lock().unwrap();
            seen.push(point);
            match seen.len() == number {
                true => {
                    reached.notify_one();
                    pending().boxed()
                }
                false => ready(()).boxed(),
            }
        });
        (crash, faults)
    }

    /// Where it ended, or nowhere: then it has come to its end.
    async fn run(self, work: impl Future<Output = ()>) -> Option<FaultPoint> {
        tokio::select! {
            biased;
            () = self.reached.notified() => self.seen.lock().unwrap().last().copied(),
            () = work => None,
        }
    }
}

/// Everything that one process does about a purchase until nothing is left to do.
async fn live(
    world: &World,
    payments: &PaymentService,
    order: Option<&ApproveOrder>,
    held: &FakePayable,
    scenario: Scenario,
) {
    let approved = match order {
        Some(order) => payments.approve(order.clone(), &world.context()).await,
        None => pay_at_once(world, payments, held, scenario.card).await,
    };
    assert!(approved.is_ok(), "{approved:?}");
    come_to_rest(world, payments).await;
    let confirmed = world.tickets.get(held.id).status == "confirmed";
    if confirmed && scenario.cancel_fee.is_some() {
        world.tickets.cancel(held.id);
        let event = world.cancelled_event(&world.tickets.get(held.id));
        world.consume(&event).await.unwrap();
        come_to_rest(world, payments).await;
    }
}

async fn pay_at_once(
    world: &World,
    payments: &PaymentService,
    held: &FakePayable,
    card: TestCard,
) -> Result<Payment, ApproveError> {
    let payable = PayableRef { kind: PayableKind::Reservation, id: held.id };
    let request = OrderRequest { user_id: held.user_id, payable, amount: None, key: None };
    let order = payments.new_order(request, &world.context()).await.unwrap();
    let (order_id, amount) = (&order.fresh.order_id, order.fresh.amount);
    let key = world.sandbox.issue_key(card, order_id, amount).await.unwrap();
    payments.pay_new_order(order, key, world.context()).await
}

async fn come_to_rest(world: &World, payments: &PaymentService) {
    for _ in 0..ROUNDS_MAX {
        payments.resolve_due().await.unwrap();
        let open = "select count(*) as number from payments where step is not null";
        if world.number(open).await == 0 {
            return;
        }
        world.clock.advance(LONG);
    }
    panic!("it never comes to rest");
}

/// Runs a scenario once per point, and ends the process there; then a second process goes on, and
/// is ended as well; then a third one comes to the end. Returns the points.
async fn crash_everywhere(world: &World, scenario: Scenario) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    for number in 1.. {
        let held = world.hold();
        let fee = Won::new(scenario.cancel_fee.unwrap_or(0));
        world.tickets.change(held.id, |held| held.cancel_fee = fee);
        let mut approval = None;
        if !scenario.is_at_once {
            let order = world.order(&held).await;
            approval = Some(world.approval(&order, scenario.card).await);
        }
        if let Some((step, fault)) = scenario.fault {
            world.tickets.fail(step, [fault]);
        }
        let (crash, faults) = Crash::at(number);
        let first = world.instance(faults);
        let ended = crash.run(live(world, &first, approval.as_ref(), &held, scenario)).await;
        if let Some(point) = ended {
            points.insert(format!("{:?} {}", point.moment, point.name));
            world.clock.advance(LONG);
            let (crash, faults) = Crash::at(number % 9 + 1);
            let second = world.instance(faults);
            crash.run(come_to_rest(world, &second)).await;
            world.clock.advance(LONG);
        }
        world.settle().await;
        world.assert_held_whole(&world.tickets.get(held.id)).await;
        assert_right(world, &held, scenario, ended).await;
        if ended.is_none() {
            world.assert_whole().await;
            return points;
        }
    }
    unreachable!("every purchase comes to an end")
}

/// A card that was charged has its ticket, unless the ticket service would not give it.
async fn assert_right(
    world: &World,
    held: &FakePayable,
    scenario: Scenario,
    ended: Option<FaultPoint>,
) {
    let held = world.tickets.get(held.id);
    let mut charged = Vec::new();
    for payment in world.payments.list_by_payable(held.id).await.unwrap() {
        if let ProviderLookup::Payment(paid) = world.sandbox.find(&payment.order_id, None).await
            && matches!(paid.state, ProviderState::Paid | ProviderState::Refunded)
        {
            assert_eq!((payment.charged, payment.refunded), (paid.amount, paid.refunded));
            charged.push(paid);
        }
    }
    let is_refused = matches!(scenario.fault, Some((_, Fault::Refuses(_))));
    let place = format!("{scenario:?} ended at {ended:?}: {held:?} {charged:?}");
    assert!(charged.len() <= 1, "charged twice: {place}");
    match charged.first() {
        None => assert_eq!(held.tickets, 0, "a ticket for nothing: {place}"),
        Some(_) if is_refused => {}
        Some(_) if [TestCard::WrongAmount, TestCard::TestChannel].contains(&scenario.card) => {
            assert_eq!(held.tickets, 0, "a ticket for a wrong charge: {place}");
        }
        Some(_) => assert_eq!(held.tickets, 1, "charged, and no ticket: {place}"),
    }
}

/// The same for a ticket that changes hands: the buyer pays, and the seller is paid.
async fn crash_handing_over(
    world: &World,
    fault: Option<(&'static str, Fault)>,
) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    for number in 1.. {
        let (ticket, sold) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        let order = world.order_of(&listing, world.ids.next_id()).await.unwrap();
        let approval = world.approval(&order, TestCard::Approve).await;
        if let Some((step, fault)) = fault {
            world.tickets.fail(step, [fault]);
        }
        let (crash, faults) = Crash::at(number);
        let first = world.instance(faults);
        let ended = crash.run(take_over(world, &first, &approval)).await;
        if let Some(point) = ended {
            points.insert(format!("{:?} {}", point.moment, point.name));
            world.clock.advance(LONG);
        }
        world.settle().await;
        if let Some((step, _)) = fault {
            world.tickets.fail(step, []);
        }
        let is_handed_over = world.tickets.get(ticket.id).is_taken_over;
        let (sold, bought) = (world.find(sold.id).await, world.find(order.id).await);
        let place = format!("ended at {ended:?}: {sold:?} {bought:?}");
        assert_eq!(sold.refunded == sold.charged, is_handed_over, "the seller's money: {place}");
        assert_eq!(bought.remaining() > Won::ZERO, is_handed_over, "the buyer's money: {place}");
        for id in [ticket.id, listing.id] {
            world.assert_held_whole(&world.tickets.get(id)).await;
        }
        if ended.is_none() {
            world.assert_whole().await;
            return points;
        }
    }
    unreachable!("every purchase comes to an end")
}

async fn take_over(world: &World, payments: &PaymentService, order: &ApproveOrder) {
    payments.approve(order.clone(), &world.context()).await.unwrap();
    come_to_rest(world, payments).await;
    for handed_over in world.tickets.take_completed_transfers() {
        world.consume(&world.transfer_completed_event(&handed_over)).await.unwrap();
    }
    come_to_rest(world, payments).await;
}

async fn crash_all(world: &World, scenarios: &[Scenario]) -> BTreeSet<String> {
    let mut points = BTreeSet::new();
    for scenario in scenarios {
        points.extend(crash_everywhere(world, *scenario).await);
    }
    points
}

contract! {
    async fn a_crash_anywhere_in_a_purchase_costs_nobody_anything(world: World) {
        let scenarios = [
            pays(TestCard::Approve),
            pays(TestCard::Decline),
            stumbles(TestCard::Approve, "pin", Fault::Dies),
            stumbles(TestCard::Approve, "pin", Fault::Silent),
            stumbles(TestCard::Approve, "pin", Fault::Refuses("RESERVATION_EXPIRED")),
            stumbles(TestCard::Approve, "confirm", Fault::Dies),
            stumbles(TestCard::Approve, "confirm", Fault::Silent),
            stumbles(TestCard::Approve, "confirm", Fault::Refuses("SEAT_LOST")),
            stumbles(TestCard::Decline, "unpin", Fault::Dies),
        ];
        let points = crash_all(&world, &scenarios).await;
        assert!(points.len() >= 30, "{} points: {points:#?}", points.len());
    }

    async fn a_crash_anywhere_in_an_order_that_is_paid_at_once_costs_nobody_anything(world: World) {
        let pin_dies =
            Scenario { is_at_once: true, ..stumbles(TestCard::Approve, "pin", Fault::Dies) };
        let scenarios = [
            pays_at_once(TestCard::Approve),
            pays_at_once(TestCard::Decline),
            pays_at_once(TestCard::ChargeThenTimeOut),
            pin_dies,
        ];
        let points = crash_all(&world, &scenarios).await;
        for moment in ["Before", "After"] {
            let begun = format!("{moment} prepared and begun");
            assert!(points.contains(&begun), "{begun} is not among {points:#?}");
        }
    }

    async fn a_crash_anywhere_while_nobody_knows_costs_nobody_anything(world: World) {
        let scenarios = [
            pays(TestCard::ChargeThenTimeOut),
            pays(TestCard::ChargeThenFail),
            pays(TestCard::Duplicate),
            pays(TestCard::Stumble),
            pays(TestCard::TimeOut),
            pays(TestCard::UnknownCode),
            pays(TestCard::WrongAmount),
            pays(TestCard::TestChannel),
            stumbles(TestCard::ChargeThenTimeOut, "confirm", Fault::Dies),
            stumbles(TestCard::ChargeThenTimeOut, "confirm", Fault::Refuses("SEAT_LOST")),
        ];
        let points = crash_all(&world, &scenarios).await;
        assert!(points.len() >= 30, "{} points: {points:#?}", points.len());
    }

    async fn a_crash_anywhere_while_a_ticket_changes_hands_costs_nobody_anything(world: World) {
        let mut points = BTreeSet::new();
        for fault in [None, Some(("confirm", Fault::Dies)), Some(("confirm", Fault::Silent))] {
            points.extend(crash_handing_over(&world, fault).await);
        }
        assert!(points.len() >= 20, "{} points: {points:#?}", points.len());
    }

    async fn a_crash_anywhere_in_a_refund_costs_nobody_anything(world: World) {
        let scenarios = [
            cancels(TestCard::Approve, 0),
            cancels(TestCard::Approve, 32_000),
            cancels(TestCard::Approve, 102_000),
            cancels(TestCard::RefundTimesOut, 1_000),
            cancels(TestCard::ChargeThenTimeOut, 0),
            Scenario { fault: Some(("refunded", Fault::Dies)), ..cancels(TestCard::Approve, 0) },
            Scenario { fault: Some(("refunded", Fault::Silent)), ..cancels(TestCard::Approve, 0) },
        ];
        let points = crash_all(&world, &scenarios).await;
        assert!(points.len() >= 30, "{} points: {points:#?}", points.len());
    }
}
