//! The crash matrix: a process ends at every commit and every call of both sagas, with every fault
//! of the provider and the ticket office; another one goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{pending, ready};
use tokio::sync::Notify;
use urr_kernel::Won;
use urr_payment::provider::{Card, Found, ProviderState};
use urr_payment::{ApproveOrder, Faults, Payments, Point};

use crate::contract;
use crate::fixture::World;
use crate::office::{Fault, Held};

/// Longer than a claim, and than any pause between two looks.
const LONG: Duration = Duration::from_secs(301);
/// Far more than any purchase takes.
const ROUNDS_MAX: usize = 30;

/// What happens to a purchase, crashes aside.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    card: Card,
    /// At which step of the ticket office, and what.
    fault: Option<(&'static str, Fault)>,
    /// It is cancelled when it is paid, and this much is kept.
    cancel_fee: Option<i64>,
}

const fn pays(card: Card) -> Scenario {
    Scenario { card, fault: None, cancel_fee: None }
}

const fn cancels(card: Card, fee: i64) -> Scenario {
    Scenario { card, fault: None, cancel_fee: Some(fee) }
}

const fn stumbles(card: Card, step: &'static str, fault: Fault) -> Scenario {
    Scenario { card, fault: Some((step, fault)), cancel_fee: None }
}

/// A process that ends when it comes to its nth point.
struct Crash {
    seen: Arc<Mutex<Vec<Point>>>,
    reached: Arc<Notify>,
}

impl Crash {
    fn at(number: usize) -> (Crash, Faults) {
        let crash = Crash { seen: Arc::default(), reached: Arc::default() };
        let (seen, reached) = (Arc::clone(&crash.seen), Arc::clone(&crash.reached));
        let faults = Faults::listening(move |point| {
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
    async fn run(self, work: impl Future<Output = ()>) -> Option<Point> {
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
    payments: &Payments,
    order: &ApproveOrder,
    held: &Held,
    scenario: Scenario,
) {
    let approved = payments.approve(order.clone(), &world.context()).await;
    assert!(approved.is_ok(), "{approved:?}");
    come_to_rest(world, payments).await;
    let confirmed = world.office.get(held.id).status == "confirmed";
    if confirmed && scenario.cancel_fee.is_some() {
        world.office.cancel(held.id);
        let event = world.cancelled_event(&world.office.get(held.id));
        world.hear(&event).await.unwrap();
        come_to_rest(world, payments).await;
    }
}

async fn come_to_rest(world: &World, payments: &Payments) {
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
        world.office.change(held.id, |held| held.cancel_fee = fee);
        let order = world.order(&held).await;
        let approval = world.approval(&order, scenario.card).await;
        if let Some((step, fault)) = scenario.fault {
            world.office.fail(step, [fault]);
        }
        let (crash, faults) = Crash::at(number);
        let first = world.instance(faults);
        let ended = crash.run(live(world, &first, &approval, &held, scenario)).await;
        if let Some(point) = ended {
            points.insert(format!("{:?} {}", point.moment, point.name));
            world.clock.advance(LONG);
            let (crash, faults) = Crash::at(number % 9 + 1);
            let second = world.instance(faults);
            crash.run(come_to_rest(world, &second)).await;
            world.clock.advance(LONG);
        }
        world.settle().await;
        world.assert_held_whole(&world.office.get(held.id)).await;
        assert_right(world, &held, scenario, ended).await;
        if ended.is_none() {
            world.assert_whole().await;
            return points;
        }
    }
    unreachable!("every purchase comes to an end")
}

/// A card that was charged has its ticket, unless the ticket office would not give it.
async fn assert_right(world: &World, held: &Held, scenario: Scenario, ended: Option<Point>) {
    let held = world.office.get(held.id);
    let mut charged = Vec::new();
    for payment in world.payments.list_of_target(held.id).await.unwrap() {
        if let Found::Payment(paid) = world.sandbox.find(&payment.order_id, None).await
            && matches!(paid.state, ProviderState::Paid | ProviderState::Returned)
        {
            assert_eq!((payment.charged, payment.refunded), (paid.amount, paid.returned));
            charged.push(paid);
        }
    }
    let is_refused = matches!(scenario.fault, Some((_, Fault::Refuses(_))));
    let place = format!("{scenario:?} ended at {ended:?}: {held:?} {charged:?}");
    assert!(charged.len() <= 1, "charged twice: {place}");
    match charged.first() {
        None => assert_eq!(held.tickets, 0, "a ticket for nothing: {place}"),
        Some(_) if is_refused || scenario.card == Card::WrongAmount => {}
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
        let (ticket, sold) = world.pay(Card::Approve).await;
        let listing = world.listing(&ticket);
        let order = world.order_of(&listing, world.ids.next_id()).await.unwrap();
        let approval = world.approval(&order, Card::Approve).await;
        if let Some((step, fault)) = fault {
            world.office.fail(step, [fault]);
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
            world.office.fail(step, []);
        }
        let is_handed_over = world.office.get(ticket.id).is_taken_over;
        let (sold, bought) = (world.find(sold.id).await, world.find(order.id).await);
        let place = format!("ended at {ended:?}: {sold:?} {bought:?}");
        assert_eq!(sold.refunded == sold.charged, is_handed_over, "the seller's money: {place}");
        assert_eq!(bought.remaining() > Won::ZERO, is_handed_over, "the buyer's money: {place}");
        for id in [ticket.id, listing.id] {
            world.assert_held_whole(&world.office.get(id)).await;
        }
        if ended.is_none() {
            world.assert_whole().await;
            return points;
        }
    }
    unreachable!("every purchase comes to an end")
}

async fn take_over(world: &World, payments: &Payments, order: &ApproveOrder) {
    payments.approve(order.clone(), &world.context()).await.unwrap();
    come_to_rest(world, payments).await;
    for handed_over in world.office.take_handed_over() {
        world.hear(&world.handed_over_event(&handed_over)).await.unwrap();
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
            pays(Card::Approve),
            pays(Card::Decline),
            stumbles(Card::Approve, "pin", Fault::Dies),
            stumbles(Card::Approve, "pin", Fault::Silent),
            stumbles(Card::Approve, "pin", Fault::Refuses("RESERVATION_EXPIRED")),
            stumbles(Card::Approve, "confirm", Fault::Dies),
            stumbles(Card::Approve, "confirm", Fault::Silent),
            stumbles(Card::Approve, "confirm", Fault::Refuses("SEAT_LOST")),
            stumbles(Card::Decline, "unpin", Fault::Dies),
        ];
        let points = crash_all(&world, &scenarios).await;
        assert!(points.len() >= 30, "{} points: {points:#?}", points.len());
    }

    async fn a_crash_anywhere_while_nobody_knows_costs_nobody_anything(world: World) {
        let scenarios = [
            pays(Card::ChargeThenTimeOut),
            pays(Card::ChargeThenFail),
            pays(Card::Duplicate),
            pays(Card::Stumble),
            pays(Card::TimeOut),
            pays(Card::UnknownCode),
            pays(Card::WrongAmount),
            stumbles(Card::ChargeThenTimeOut, "confirm", Fault::Dies),
            stumbles(Card::ChargeThenTimeOut, "confirm", Fault::Refuses("SEAT_LOST")),
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
            cancels(Card::Approve, 0),
            cancels(Card::Approve, 32_000),
            cancels(Card::Approve, 102_000),
            cancels(Card::RefundTimesOut, 1_000),
            cancels(Card::ChargeThenTimeOut, 0),
            Scenario { fault: Some(("refunded", Fault::Dies)), ..cancels(Card::Approve, 0) },
            Scenario { fault: Some(("refunded", Fault::Silent)), ..cancels(Card::Approve, 0) },
        ];
        let points = crash_all(&world, &scenarios).await;
        assert!(points.len() >= 30, "{} points: {points:#?}", points.len());
    }
}
