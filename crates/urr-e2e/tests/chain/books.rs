//! The books over random histories: purchases, tickets that are cancelled one by one, whole
//! cancellations, gifts of administrators, events that are moved, and days that pass. After each
//! history tickets, payments, provider, ledger and statistics agree, and every buyer got exactly what
//! the preview promised.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::Method;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::{Value, json};
use urr_e2e::{Deployment, TestApp};
use urr_test::eventually;

use crate::fixture::{HeldSeats, Order, Shop, run, text};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Days from the opening until the event.
const EVENT_IN_DAYS: u32 = 40;

#[derive(Clone, Debug)]
enum Step {
    Buy {
        seats: u32,
    },
    CancelTickets {
        at: usize,
        count: usize,
    },
    Cancel {
        at: usize,
    },
    /// In per cent of the price.
    Gift {
        at: usize,
        percent: i64,
    },
    Move {
        days: u32,
    },
    Wait {
        days: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..6_usize;
    prop_oneof![
        4 => (1..=4_u32).prop_map(|seats| Step::Buy { seats }),
        5 => (at.clone(), 1..=3_usize).prop_map(|(at, count)| Step::CancelTickets { at, count }),
        2 => at.clone().prop_map(|at| Step::Cancel { at }),
        1 => (at, 1..=60_i64).prop_map(|(at, percent)| Step::Gift { at, percent }),
        2 => (30..=50_u32).prop_map(|days| Step::Move { days }),
        2 => (1..=9_u32).prop_map(|days| Step::Wait { days }),
    ]
}

struct Purchase {
    held: HeldSeats,
    order: Order,
    /// What the previews promised, as far as it was cancelled.
    promised: i64,
    has_gift: bool,
    is_over: bool,
}

struct History<'a> {
    shop: Shop<'a>,
    /// How many days have passed since the opening, and when the event is.
    day: u32,
    event_day: u32,
    next_seat: u32,
    purchases: Vec<Purchase>,
}

impl History<'_> {
    async fn apply(&mut self, step: &Step) {
        let count = self.purchases.len();
        match *step {
            Step::Buy { seats } => self.buy(seats).await,
            Step::Wait { days } => {
                if self.day + days + 1 < self.event_day {
                    self.day += days;
                    self.shop.app.clock.advance(days * DAY);
                }
            }
            Step::Move { days } => self.move_event(days).await,
            _ if count == 0 => {}
            Step::CancelTickets { at, count: tickets } => {
                self.cancel_tickets(at % count, tickets).await;
            }
            Step::Cancel { at } => self.cancel(at % count).await,
            Step::Gift { at, percent } => self.give(at % count, percent).await,
        }
    }

    async fn buy(&mut self, seats: u32) {
        let seat_ids: Vec<u32> = (self.next_seat..self.next_seat + seats).collect();
        // The sale goes on for three weeks.
        if self.day > 20 || self.next_seat + seats > 200 {
            return;
        }
        self.next_seat += seats;
        let (held, order) = self.shop.buy(&seat_ids).await;
        let purchase = Purchase { held, order, promised: 0, has_gift: false, is_over: false };
        self.purchases.push(purchase);
    }

    async fn preview(&self, at: usize) -> Value {
        let held = &self.purchases[at].held;
        let path = format!("/api/reservations/{}/refund-preview", held.id);
        let preview = self.shop.send(held.user_id, Method::GET, &path, None).await;
        assert_eq!(preview.status, 200, "{preview:?}");
        preview.json()
    }

    async fn cancel_tickets(&mut self, at: usize, count: usize) {
        if self.purchases[at].is_over {
            return;
        }
        let preview = self.preview(at).await;
        let all = preview["tickets"].as_array().unwrap().clone();
        let chosen: Vec<&Value> = all.iter().take(count).collect();
        let is_whole = chosen.len() == all.len();
        let numbers: Vec<String> = chosen.iter().map(|one| text(&one["ticketNumber"])).collect();
        let refunds = chosen.iter().map(|one| one["refundAmount"].as_i64().unwrap());
        let promised = match is_whole {
            true => preview["refundAmount"].as_i64().unwrap(),
            false => refunds.sum(),
        };
        let held = self.purchases[at].held.clone();
        let path = format!("/api/reservations/{}/cancel-tickets", held.id);
        let body = json!({"ticketNumbers": numbers});
        for _ in 0..2 {
            let body = Some(body.clone());
            let cancelled = self.shop.send(held.user_id, Method::POST, &path, body).await;
            assert_eq!(cancelled.status, 200, "{cancelled:?}");
        }
        let purchase = &mut self.purchases[at];
        purchase.promised += promised;
        purchase.is_over = is_whole;
    }

    async fn cancel(&mut self, at: usize) {
        if self.purchases[at].is_over {
            return;
        }
        let promised = self.preview(at).await["refundAmount"].as_i64().unwrap();
        let cancelled = self.shop.cancel(&self.purchases[at].held).await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        self.purchases[at].promised += promised;
        self.purchases[at].is_over = true;
    }

    /// An administrator gives a part back. It may be refused: not more than what is left is given.
    async fn give(&mut self, at: usize, percent: i64) {
        let purchase = &mut self.purchases[at];
        let path = format!("/api/admin/payments/{}/refund", purchase.order.payment_id);
        let amount = purchase.held.amount * percent / 100;
        let key = self.shop.app.ids.next_id().to_string();
        let call = self.shop.app.post(&path).as_admin().header("idempotency-key", &key);
        let given = call.json(&json!({"amount": amount, "reason": "사과"})).send().await;
        assert!([200, 202, 400, 409].contains(&given.status.as_u16()), "{given:?}");
        purchase.has_gift = true;
    }

    async fn move_event(&mut self, days: u32) {
        if days <= self.day + 1 {
            return;
        }
        let path = format!("/api/admin/events/{}", self.shop.event_id);
        let event = self.shop.app.get(&path).as_admin().send().await.json()["event"].take();
        let start = self.shop.app.clock.now() + (days - self.day) * DAY;
        let body = json!({"revision": event["revision"], "startsAt": start});
        let call = self.shop.app.request(Method::PUT, &path).as_admin();
        let moved = call.json(&body).send().await;
        assert_eq!(moved.status, 200, "{moved:?}");
        self.event_day = days;
        let seen = format!("/api/admin/reservations?eventId={}", self.shop.event_id);
        eventually("the ticket service knows the new start", async || {
            let list = self.shop.app.get(&seen).as_admin().send().await.json();
            let first = list["reservations"].as_array().and_then(|all| all.first().cloned());
            match first {
                None => Some(()),
                Some(first) => {
                    let known: urr_kernel::Timestamp =
                        text(&first["eventStartsAt"]).parse().ok()?;
                    (known == start).then_some(())
                }
            }
        })
        .await;
    }

    async fn check(&self) {
        self.shop.settle().await;
        for purchase in self.purchases.iter().filter(|purchase| !purchase.has_gift) {
            let order = self.shop.order(&purchase.held, &purchase.order).await;
            let refunded = order["refundedAmount"].as_i64().unwrap();
            assert_eq!(refunded, purchase.promised, "{order}");
        }
    }
}

async fn run_history(app: &TestApp, steps: &[Step]) {
    let (now, day) = (app.clock.now(), |days: u32| app.clock.now() + days * DAY);
    let times = BTreeMap::from([
        ("startsAt", day(EVENT_IN_DAYS)),
        ("saleStartsAt", now - DAY),
        ("saleEndsAt", day(25)),
    ]);
    let shop = Shop::open_at(app, &times).await;
    let purchases = Vec::new();
    let mut history = History { shop, day: 0, event_day: EVENT_IN_DAYS, next_seat: 0, purchases };
    for step in steps {
        history.apply(step).await;
    }
    history.check().await;
}

fn check(form: Deployment, cases: u32) {
    run(form, async |app| {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, random);
        let handle = tokio::runtime::Handle::current();
        let outcome = tokio::task::block_in_place(|| {
            runner.run(&vec(step(), 8..24), |steps| {
                handle.block_on(run_history(&app, &steps));
                Ok::<(), TestCaseError>(())
            })
        });
        outcome.unwrap();
    });
}

#[test]
fn every_won_of_every_history_is_in_the_books_embedded() {
    check(Deployment::Embedded, 12);
}

#[test]
fn every_won_of_every_history_is_in_the_books_distributed() {
    check(Deployment::Distributed, 4);
}
