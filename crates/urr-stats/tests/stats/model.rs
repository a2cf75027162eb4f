//! Random histories against a simple model: however messages are repeated, copied and mixed up on
//! their way, the counters are those of the history, and counting again gives the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::{Value, json};
use urr_kernel::{DomainEvent, Timestamp};
use urr_test::engines::Engine;

use crate::contract;
use crate::fixture::{
    Booking, HOUR, MINUTE, World, copy_of, membership_activated, now, other_payment,
    transfer_completed, user_deleted, user_registered,
};
use crate::rebuild::{bus, publish};

const METHODS: [&str; 2] = ["card", "easy_pay"];

/// What becomes of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pending,
    Expired,
    GivenUp,
    Sold,
    /// Sold, and one ticket after the other given back for so many won, but the last one.
    PartlyGivenBack(i64),
    /// Sold and given back, so many per cent of the price.
    GivenBack(i64),
    /// Charged, but the hold was gone.
    NotConfirmable,
}

#[derive(Clone, Debug)]
struct Story {
    event: u128,
    user: u128,
    /// Before now.
    began_hours_ago: u32,
    /// Between the steps.
    step_hours: u32,
    quantity: usize,
    price: i64,
    is_changed: bool,
    method: usize,
    fate: Fate,
}

/// On its way a message is put off by so much, and comes again or as a copy.
#[derive(Clone, Copy, Debug)]
struct Journey {
    delay: u32,
    again: Option<u32>,
    copy: Option<u32>,
}

#[derive(Clone, Debug)]
struct Case {
    stories: Vec<Story>,
    others: Vec<(u8, u32)>,
    journeys: Vec<Journey>,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => Just(Fate::Pending),
        1 => Just(Fate::Expired),
        1 => Just(Fate::GivenUp),
        3 => Just(Fate::Sold),
        2 => (0..=1_000_i64).prop_map(Fate::PartlyGivenBack),
        3 => (0..=100_i64).prop_map(Fate::GivenBack),
        1 => Just(Fate::NotConfirmable),
    ]
}

fn story() -> impl Strategy<Value = Story> {
    let times = (48..600_u32, 0..30_u32);
    let what = (1..=3_usize, 1..=300_i64, any::<bool>(), 0..METHODS.len());
    (50..53_u128, 1..5_u128, times, what, fate()).prop_map(
        |(event, user, (began_hours_ago, step_hours), (quantity, price, changed, method), fate)| {
            Story {
                event,
                user,
                began_hours_ago,
                step_hours: step_hours.min(began_hours_ago / 6),
                quantity,
                price: price * 1_000,
                is_changed: changed,
                method,
                fate,
            }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let journey = (any::<u32>(), proptest::option::of(any::<u32>()), any::<u32>(), any::<bool>());
    let journey = journey.prop_map(|(delay, again, copy, is_copied)| Journey {
        delay,
        again,
        copy: is_copied.then_some(copy),
    });
    (vec(story(), 1..12), vec((0..4_u8, 0..600_u32), 0..6), vec(journey, 80))
        .prop_map(|(stories, others, journeys)| Case { stories, others, journeys })
}

/// What the pages must show, counted the plain way.
#[derive(Default)]
struct Model {
    days: BTreeMap<String, BTreeMap<&'static str, i64>>,
    events: BTreeMap<u128, BTreeMap<&'static str, i64>>,
    methods: BTreeMap<&'static str, (i64, i64)>,
    funnel: BTreeMap<&'static str, i64>,
}

impl Model {
    fn add(&mut self, at: Timestamp, counter: &'static str, amount: i64) {
        let day = urr_stats::day_in_korea(at).to_string();
        *self.days.entry(day).or_default().entry(counter).or_default() += amount;
    }

    fn add_event(&mut self, event: u128, counter: &'static str, amount: i64) {
        *self.events.entry(event).or_default().entry(counter).or_default() += amount;
    }

    fn count(&mut self, at: Timestamp, event: u128, counter: &'static str, of_event: &'static str) {
        self.add(at, counter, 1);
        self.add_event(event, of_event, 1);
    }

    fn money(&mut self, at: Timestamp, event: u128, amount: i64) {
        self.add(at, "revenue", amount);
        self.add_event(event, "totalRevenue", amount);
        if amount < 0 {
            self.add(at, "refunds", -amount);
        }
    }

    fn end(&mut self, story: &Story, outcome: &'static str) {
        *self.funnel.entry(outcome).or_default() += 1;
        if outcome == "completed" {
            let seats = i64::try_from(story.quantity).unwrap();
            self.add_event(story.event, "soldSeats", seats);
        }
        if outcome == "pending" {
            self.add_event(story.event, "pendingReservations", 1);
        }
    }
}

/// The messages of a story, and what they count for.
fn play(index: usize, story: &Story, model: &mut Model) -> Vec<DomainEvent> {
    let number = u128::try_from(index).unwrap() + 1;
    let first = u32::try_from(index).unwrap() * 10;
    let held = Booking {
        id: number,
        event: story.event,
        user: story.user,
        amount: story.price + 5_000,
        seats: vec![900 + first],
    };
    let seats = (0..u32::try_from(story.quantity).unwrap()).map(|seat| first + seat).collect();
    let booking = Booking { amount: story.price, seats, ..held.clone() };
    let began = now() - story.began_hours_ago * HOUR;
    let step = |steps: u32| began + steps * (story.step_hours * HOUR + MINUTE);
    let (method, event) = (METHODS[story.method], story.event);
    model.count(began, event, "reservations", "totalReservations");
    let mut events = match story.is_changed {
        true => vec![held.created(began), booking.changed(step(1))],
        false => vec![booking.created(began)],
    };
    let is_sold = matches!(story.fate, Fate::Sold | Fate::PartlyGivenBack(_) | Fate::GivenBack(_));
    let is_charged = is_sold || story.fate == Fate::NotConfirmable;
    if is_charged {
        events.push(booking.charged(step(2), method));
        model.money(step(2), event, story.price);
        let sum = model.methods.entry(method).or_default();
        *sum = (sum.0 + 1, sum.1 + story.price);
    }
    if is_sold {
        events.push(booking.confirmed(step(3)));
        model.count(step(3), event, "confirmed", "confirmedReservations");
    }
    match story.fate {
        Fate::Pending => model.end(story, "pending"),
        Fate::Sold => model.end(story, "completed"),
        Fate::PartlyGivenBack(refund) => {
            for left in (1..story.quantity).rev() {
                let rest = Booking { seats: booking.seats[..left].to_vec(), ..booking.clone() };
                // Clocks of two processes may differ: the order follows from the tickets.
                events.push(rest.partly_cancelled(step(4), refund));
            }
            let rest = Story { quantity: 1, ..story.clone() };
            model.end(&rest, "completed");
        }
        Fate::Expired | Fate::NotConfirmable => {
            events.push(booking.expired(step(4)));
            model.count(step(4), event, "expired", "expiredReservations");
            model.end(story, "expired");
        }
        Fate::GivenUp | Fate::GivenBack(_) => {
            let refund = story.refund();
            events.push(booking.cancelled(step(4), refund));
            model.count(step(4), event, "cancelled", "cancelledReservations");
            model.end(story, "cancelled");
        }
    }
    let back = match story.fate {
        Fate::NotConfirmable => Some((story.price, "not_confirmable")),
        Fate::GivenBack(_) => Some((story.refund(), "cancelled")),
        _ => None,
    };
    if let Some((amount, cause)) = back {
        events.push(booking.refunded(step(5), method, amount, cause));
        model.money(step(5), event, -amount);
    }
    events
}

impl Story {
    fn refund(&self) -> i64 {
        match self.fate {
            Fate::GivenBack(percent) => self.price * percent / 100,
            _ => 0,
        }
    }
}

/// Accounts, memberships and tickets that are passed on.
fn play_other(index: usize, (kind, hours_ago): (u8, u32), model: &mut Model) -> Vec<DomainEvent> {
    let (number, at) = (10_000 + 10 * u128::try_from(index).unwrap(), now() - hours_ago * HOUR);
    match kind {
        0 => {
            model.add(at, "newUsers", 1);
            vec![user_registered(number, at)]
        }
        1 => {
            model.add(at, "newUsers", 1);
            vec![user_registered(number, at), user_deleted(number, at + MINUTE)]
        }
        2 => {
            model.add(at, "memberships", 1);
            model.add(at, "revenue", 30_000);
            let sum = model.methods.entry("transfer").or_default();
            *sum = (sum.0 + 1, sum.1 + 30_000);
            let paid = other_payment(number + 1, "membership", 30_000, at);
            vec![paid, membership_activated(number, number + 1, at)]
        }
        _ => {
            model.add(at, "transfers", 1);
            vec![transfer_completed(number, 44_000, at)]
        }
    }
}

/// The messages in the order in which they arrive, some more than once.
fn travel(events: &[DomainEvent], journeys: &[Journey]) -> Vec<DomainEvent> {
    let mut arrivals = Vec::new();
    for (event, journey) in events.iter().zip(journeys.iter().cycle()) {
        arrivals.push((journey.delay, event.clone()));
        arrivals.extend(journey.again.map(|delay| (delay, event.clone())));
        let copy = |delay| (delay, copy_of(event, (1 + delay % 300) * MINUTE));
        arrivals.extend(journey.copy.map(copy));
    }
    arrivals.sort_by_key(|(delay, _)| *delay);
    arrivals.into_iter().map(|(_, event)| event).collect()
}

async fn check_pages(world: &World, model: &Model) {
    let days = world.data("daily?days=365").await;
    let mut seen = BTreeSet::new();
    for day in days.as_array().unwrap() {
        let date = day["date"].as_str().unwrap();
        let expected = model.days.get(date);
        for (counter, value) in day.as_object().unwrap().iter().filter(|(key, _)| *key != "date") {
            let wanted = expected.and_then(|day| day.get(counter.as_str())).copied().unwrap_or(0);
            assert_eq!(*value, json!(wanted), "{counter} of {date}");
        }
        seen.insert(date.to_owned());
    }
    for (date, counters) in &model.days {
        let is_missed = counters.values().any(|value| *value != 0) && !seen.contains(date);
        assert!(!is_missed, "{date} is missing: {counters:?}");
    }
    for (event, counters) in &model.events {
        let shown = world.event(*event).await;
        for (counter, wanted) in counters {
            assert_eq!(shown[*counter], json!(wanted), "{counter} of {event}");
        }
    }
    let methods = world.data("payments").await;
    let shown: BTreeMap<&str, (i64, i64)> =
        methods.as_array().unwrap().iter().map(method).collect();
    assert_eq!(shown, model.methods);
    let funnel = &world.data("conversion?days=365").await["funnel"];
    for outcome in ["completed", "cancelled", "expired", "pending"] {
        let wanted = model.funnel.get(outcome).copied().unwrap_or(0);
        assert_eq!(funnel[outcome], json!(wanted), "{outcome}");
    }
}

fn method(shown: &Value) -> (&str, (i64, i64)) {
    let number = |key: &str| shown[key].as_i64().unwrap();
    (shown["method"].as_str().unwrap(), (number("count"), number("totalAmount")))
}

async fn check(world: &World, case: &Case) {
    let mut model = Model::default();
    let mut events = Vec::new();
    for (index, story) in case.stories.iter().enumerate() {
        events.extend(play(index, story, &mut model));
    }
    for (index, other) in case.others.iter().enumerate() {
        events.extend(play_other(index, *other, &mut model));
    }
    let arrivals = travel(&events, &case.journeys);
    world.delete_everything().await;
    world.consume_all(&arrivals).await;
    check_pages(world, &model).await;
    let counters = world.counters().await;

    // In order of their times, each once: the same, but that copies are messages of their own.
    let (_folder, bus) = bus(world).await;
    let mut in_order = arrivals.clone();
    in_order.sort_by_key(|event| (event.time, event.id));
    in_order.dedup_by_key(|event| event.id);
    world.delete_everything().await;
    world.consume_all(&in_order).await;
    assert_eq!(world.counters().await, counters, "the order does not matter");

    publish(&bus, &arrivals).await;
    world.stats.rebuild(&bus).await.unwrap();
    assert_eq!(world.counters().await, counters, "counted again");
    world.delete_everything().await;
    world.stats.rebuild(&bus).await.unwrap();
    assert_eq!(world.counters().await, counters, "counted from nothing");
    check_pages(world, &model).await;
    bus.close().await;
}

contract! {
    /// K-8, K-10: created, confirmed, cancelled, expired, revenue and refunds of random histories.
    async fn the_counters_are_those_of_the_history_whatever_the_order_of_its_messages(world: World) {
        let cases = match world.engine() {
            Engine::Sqlite => 40,
            Engine::Postgres => 8,
        };
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, random);
        let handle = tokio::runtime::Handle::current();
        let outcome = tokio::task::block_in_place(|| {
            runner.run(&case(), |case| {
                handle.block_on(check(&world, &case));
                Ok::<(), TestCaseError>(())
            })
        });
        outcome.unwrap();
    }

    /// The control of the model: one message less, and the counters are others.
    async fn a_history_without_one_of_its_messages_has_other_counters(world: World) {
        let fate = Fate::GivenBack(50);
        let story = Story {
            event: 50, user: 1, began_hours_ago: 100, step_hours: 2, quantity: 2, price: 70_000,
            is_changed: true, method: 0, fate,
        };
        let events = play(0, &story, &mut Model::default());
        world.consume_all(&events).await;
        let whole = world.counters().await;
        for missing in 0..events.len() {
            world.delete_everything().await;
            let mut fewer = events.clone();
            let lost = fewer.remove(missing);
            world.consume_all(&fewer).await;
            assert_ne!(world.counters().await, whole, "without {}", lost.event_type);
        }
    }
}
