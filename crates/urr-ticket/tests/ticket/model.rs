//! The life of reservations against a simple model: whatever people, payments and sweeps do, in
//! whatever order, the ticket service says yes exactly where the model does, and both are in the
//! same state.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, params};
use urr_ticket::{
    CancelTickets, ChangeSeats, PaymentClaim, RequestedItems, RequestedTickets, ReservationId,
    ReservationPaymentStatus, ReservationStatus, ReserveRequest, ReturnedMoney, Sweeper,
    TicketCanceller,
};

use crate::fixture::{Form, SECOND, World, hall, kind_name};

const SEATS: u32 = 6;
const STOCK: u32 = 6;
const USERS: usize = 3;
const PAYMENTS: usize = 2;
const ATTEMPTS: i64 = 3;
const PER_USER_MAX: u32 = 4;
const HOLD_TTL: Duration = Duration::from_secs(300);
const HOLD_EXTENSION: Duration = Duration::from_secs(180);

/// Something that happens. Reservations are named by their number among those that were made.
#[derive(Clone, Debug)]
enum Op {
    Hold { user: usize, seats: BTreeSet<u32> },
    HoldTickets { user: usize, quantity: u32 },
    Pin { at: usize, payment: usize, attempt: i64, stale: bool },
    Unpin { at: usize, payment: usize, attempt: i64 },
    Confirm { at: usize, payment: usize, stale: bool },
    Cancel { at: usize },
    CancelTickets { at: usize, count: usize },
    Move { days: u32 },
    Release { at: usize, stale: bool },
    Change { at: usize, seats: BTreeSet<u32>, stale: bool },
    Extend { at: usize, stale: bool },
    Refund { at: usize, payment: usize },
    Advance { seconds: u32 },
    Sweep,
    Close,
    Empty,
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0..8_usize;
    let payment = 0..PAYMENTS;
    let attempt = 1..=ATTEMPTS;
    let stale = proptest::bool::weighted(0.1);
    let seats = btree_set(0..SEATS, 1..=3);
    prop_oneof![
        8 => (0..USERS, seats.clone()).prop_map(|(user, seats)| Op::Hold { user, seats }),
        4 => (0..USERS, 1..=3_u32)
            .prop_map(|(user, quantity)| Op::HoldTickets { user, quantity }),
        8 => (at.clone(), payment.clone(), attempt.clone(), stale)
            .prop_map(|(at, payment, attempt, stale)| Op::Pin { at, payment, attempt, stale }),
        2 => (at.clone(), payment.clone(), attempt)
            .prop_map(|(at, payment, attempt)| Op::Unpin { at, payment, attempt }),
        6 => (at.clone(), payment.clone(), stale)
            .prop_map(|(at, payment, stale)| Op::Confirm { at, payment, stale }),
        4 => at.clone().prop_map(|at| Op::Cancel { at }),
        4 => (at.clone(), 1..=3_usize)
            .prop_map(|(at, count)| Op::CancelTickets { at, count }),
        2 => (0..=3_u32).prop_map(|days| Op::Move { days }),
        2 => (at.clone(), stale).prop_map(|(at, stale)| Op::Release { at, stale }),
        4 => (at.clone(), seats, stale)
            .prop_map(|(at, seats, stale)| Op::Change { at, seats, stale }),
        3 => (at.clone(), stale).prop_map(|(at, stale)| Op::Extend { at, stale }),
        2 => (at, payment).prop_map(|(at, payment)| Op::Refund { at, payment }),
        4 => (30..=200_u32).prop_map(|seconds| Op::Advance { seconds }),
        4 => Just(Op::Sweep),
        1 => Just(Op::Close),
        2 => Just(Op::Empty),
    ]
}

/// A reservation in the model, and what is compared with the ticket service.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RefundBasis {
    user: usize,
    seats: BTreeSet<u32>,
    tickets: u32,
    /// Tickets that were cancelled one by one.
    cancelled: u32,
    status: ReservationStatus,
    payment: ReservationPaymentStatus,
    pinned: Option<usize>,
    /// The last attempt of each payment that is over.
    ended: [i64; PAYMENTS],
    paid_by: Option<usize>,
    token: i64,
    expires_at: Timestamp,
    is_extended: bool,
}

#[derive(Clone, Debug, Default)]
struct Model {
    bookings: Vec<RefundBasis>,
    is_closed: bool,
}

impl RefundBasis {
    fn is_live(&self) -> bool {
        matches!(self.status, ReservationStatus::Pending | ReservationStatus::Confirmed)
    }

    fn is_seated(&self) -> bool {
        self.tickets == 0
    }

    fn price(&self) -> i64 {
        if self.is_seated() { 100_000 } else { 88_000 }
    }

    fn quantity(&self) -> u32 {
        self.tickets + u32::try_from(self.seats.len()).unwrap()
    }

    /// It waits for its payment, and there is time.
    fn is_held(&self, now: Timestamp) -> bool {
        self.status == ReservationStatus::Pending && self.pinned.is_none() && now < self.expires_at
    }

    fn cancel(&mut self) {
        if self.status == ReservationStatus::Confirmed {
            self.payment = ReservationPaymentStatus::Refunding;
        }
        self.status = ReservationStatus::Cancelled;
    }
}

impl Model {
    fn may_hold(&self, user: usize, seats: &BTreeSet<u32>, tickets: u32) -> bool {
        let is_seated = tickets == 0;
        let quantity = tickets + u32::try_from(seats.len()).unwrap();
        let theirs = self.bookings.iter().filter(|b| b.is_seated() == is_seated && b.is_live());
        let own: Vec<&RefundBasis> = theirs.clone().filter(|b| b.user == user).collect();
        let owned: u32 = own.iter().map(|b| b.quantity()).sum();
        let sold: u32 = theirs.clone().map(|b| b.tickets).sum();
        let is_free = theirs.clone().all(|b| b.seats.is_disjoint(seats));
        !(is_seated && self.is_closed)
            && own.iter().all(|b| b.status != ReservationStatus::Pending)
            && owned + quantity <= PER_USER_MAX
            && is_free
            && sold + tickets <= STOCK
    }

    /// Someone's hold whose time is over and that was not swept: it is not in their way.
    fn find_overdue(&self, user: usize, is_seated: bool, now: Timestamp) -> Option<usize> {
        self.bookings.iter().position(|b| {
            let is_theirs = b.user == user && b.is_seated() == is_seated;
            let is_over = b.pinned.is_none() && now >= b.expires_at;
            is_theirs && b.status == ReservationStatus::Pending && is_over
        })
    }

    fn may_change(&self, at: usize, seats: &BTreeSet<u32>, stale: bool, now: Timestamp) -> bool {
        let operations = &self.bookings[at];
        let others = self.bookings.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<&RefundBasis> =
            others.map(|(_, b)| b).filter(|b| b.is_seated() && b.is_live()).collect();
        let own: u32 =
            others.iter().filter(|b| b.user == operations.user).map(|b| b.quantity()).sum();
        operations.is_seated()
            && operations.is_held(now)
            && !self.is_closed
            && !stale
            && (*seats == operations.seats
                || own + u32::try_from(seats.len()).unwrap() <= PER_USER_MAX
                    && others.iter().all(|b| b.seats.is_disjoint(seats)))
    }

    /// What a step does to one reservation; `false` if it is refused.
    fn step(&mut self, op: &Op, at: usize, now: Timestamp) -> bool {
        let is_closed = self.is_closed;
        let operations = &mut self.bookings[at];
        let is_on_sale = !(operations.is_seated() && is_closed);
        let is_pending = operations.status == ReservationStatus::Pending;
        match *op {
            Op::Pin { payment, attempt, stale, .. } => {
                let is_over = operations.ended[payment] >= attempt;
                let again = is_pending && operations.pinned == Some(payment);
                let is_free = again || operations.is_held(now) && is_on_sale;
                let allowed = !stale && !is_over && is_free;
                if allowed {
                    operations.pinned = Some(payment);
                }
                allowed
            }
            Op::Unpin { payment, attempt, .. } => {
                let is_over = operations.ended[payment] >= attempt;
                if is_pending && !is_over {
                    operations.ended[payment] = attempt;
                    operations.pinned.take_if(|by| *by == payment);
                }
                is_over
                    || !(operations.status == ReservationStatus::Confirmed
                        && operations.paid_by == Some(payment))
            }
            Op::Confirm { payment, stale, .. } => {
                let again = operations.status == ReservationStatus::Confirmed
                    && operations.paid_by == Some(payment);
                let first = is_pending && operations.pinned == Some(payment);
                if first && !stale {
                    operations.status = ReservationStatus::Confirmed;
                    operations.payment = ReservationPaymentStatus::Paid;
                    operations.paid_by = operations.pinned.take();
                }
                !stale && (first || again)
            }
            Op::Cancel { .. } => {
                let is_live =
                    operations.is_held(now) || operations.status == ReservationStatus::Confirmed;
                if is_live {
                    operations.cancel();
                }
                is_live || operations.status == ReservationStatus::Cancelled
            }
            Op::Release { stale, .. } => {
                let allowed =
                    operations.is_held(now) || operations.status == ReservationStatus::Cancelled;
                if allowed && !stale {
                    operations.status = ReservationStatus::Cancelled;
                }
                allowed && !stale
            }
            Op::Refund { payment, .. } => {
                let due = [ReservationPaymentStatus::Refunding, ReservationPaymentStatus::Refunded];
                let allowed =
                    due.contains(&operations.payment) && operations.paid_by == Some(payment);
                if allowed {
                    operations.payment = ReservationPaymentStatus::Refunded;
                }
                allowed
            }
            _ => unreachable!("the other operations are not about one reservation"),
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        for operations in &mut self.bookings {
            let is_over = operations.pinned.is_none() && now >= operations.expires_at;
            if operations.status == ReservationStatus::Pending && is_over {
                operations.status = ReservationStatus::Expired;
            }
        }
    }

    fn empty(&mut self) {
        let is_closed = self.is_closed;
        let closed = self.bookings.iter_mut().filter(|b| is_closed && b.is_seated());
        for operations in closed.filter(|b| b.is_live() && b.pinned.is_none()) {
            operations.cancel();
        }
    }
}

/// The ticket service with two events of this case, and the model beside it.
struct Case<'a> {
    world: &'a World,
    seated: Uuid,
    standing: (Uuid, Uuid),
    users: Vec<Uuid>,
    payments: Vec<Uuid>,
    ids: Vec<ReservationId>,
    model: Model,
}

impl Case<'_> {
    async fn new(world: &World) -> Case<'_> {
        Case {
            world,
            seated: world.open_sale(hall(1, 6)).await,
            standing: world.open_standing(STOCK).await,
            users: (0..USERS).map(|_| world.ids.next_id()).collect(),
            payments: (0..PAYMENTS).map(|_| world.ids.next_id()).collect(),
            ids: Vec::new(),
            model: Model::default(),
        }
    }

    async fn hold(&mut self, user: usize, seats: &BTreeSet<u32>, tickets: u32) -> (bool, bool) {
        let (world, now) = (self.world, self.world.clock.now());
        let overdue = self.model.find_overdue(user, tickets == 0, now);
        let mut without = self.model.clone();
        if let Some(at) = overdue {
            without.bookings[at].status = ReservationStatus::Expired;
        }
        let expected = without.may_hold(user, seats, tickets);
        let (event_id, requested) = match tickets {
            0 => (self.seated, RequestedItems::of_seats(seats.iter().copied().collect()).unwrap()),
            quantity => {
                let (event_id, ticket_type_id) = self.standing;
                let lines = vec![RequestedTickets { ticket_type_id, quantity }];
                (event_id, RequestedItems::of_tickets(lines).unwrap())
            }
        };
        let request = ReserveRequest { user_id: self.users[user], event_id, requested, key: None };
        let held = world.ticket.reserve(request, world.context()).await;
        // A user refused for another reason may still have the old hold, until it is swept.
        if let Some(at) = overdue {
            let is_over =
                world.find(self.ids[at]).await.reservation.status == ReservationStatus::Expired;
            if is_over || held.is_ok() {
                self.model.bookings[at].status = ReservationStatus::Expired;
            }
        }
        let Ok(hold) = held else { return (false, expected) };
        self.ids.push(hold.reservation.id);
        self.model.bookings.push(RefundBasis {
            user,
            seats: seats.clone(),
            tickets,
            cancelled: 0,
            status: ReservationStatus::Pending,
            payment: ReservationPaymentStatus::Unpaid,
            pinned: None,
            ended: [0; PAYMENTS],
            paid_by: None,
            token: hold.reservation.fence,
            expires_at: now + HOLD_TTL,
            is_extended: false,
        });
        (true, expected)
    }

    async fn change(&mut self, at: usize, seats: &BTreeSet<u32>, stale: bool) -> (bool, bool) {
        let (world, now) = (self.world, self.world.clock.now());
        let expected = self.model.may_change(at, seats, stale, now);
        let operations = &mut self.model.bookings[at];
        let request = ChangeSeats {
            user_id: self.users[operations.user],
            seat_ids: seats.iter().copied().collect(),
            fencing_token: Some(operations.token - i64::from(stale)),
        };
        let changed = world.ticket.change_seats(self.ids[at], request, world.context()).await;
        if let (Ok(record), true) = (&changed, expected) {
            let is_new = record.reservation.fence > operations.token;
            assert_eq!(is_new, *seats != operations.seats, "a change has a token of its own");
            (operations.token, operations.seats) = (record.reservation.fence, seats.clone());
        }
        (changed.is_ok(), expected)
    }

    /// A step of one reservation at the ticket service.
    async fn step(&self, op: &Op, at: usize) -> bool {
        let (ticket, world, id) = (&self.world.ticket, self.world, self.ids[at]);
        let operations = &self.model.bookings[at];
        let user_id = self.users[operations.user];
        let amount = Won::new(operations.price() * i64::from(operations.quantity()));
        let paid = operations.quantity() + operations.cancelled;
        let paid = Won::new(operations.price() * i64::from(paid));
        let token = |stale: bool| operations.token - i64::from(stale);
        let claim = |payment: usize, stale: bool| PaymentClaim {
            payment_id: self.payments[payment],
            fencing_token: token(stale),
            amount: paid,
        };
        match *op {
            Op::Pin { payment, attempt, stale, .. } => {
                let claim = claim(payment, stale);
                ticket.pin_hold(id, user_id, claim, attempt, None).await.is_ok()
            }
            Op::Unpin { payment, attempt, .. } => {
                ticket.unpin_hold(id, self.payments[payment], attempt).await.is_ok()
            }
            Op::Confirm { payment, stale, .. } => {
                world.confirm(id, claim(payment, stale)).await.is_ok()
            }
            Op::Cancel { .. } => {
                ticket.cancel_reservation(id, user_id, world.context()).await.is_ok()
            }
            Op::Release { stale, .. } => {
                let token = Some(token(stale));
                ticket.release_hold(id, user_id, token, world.context()).await.is_ok()
            }
            Op::Refund { payment, .. } => ticket
                .mark_refunded(id, self.payments[payment], ReturnedMoney::whole(amount))
                .await
                .is_ok(),
            _ => unreachable!("the other operations are not about one reservation"),
        }
    }

    /// Does one thing at the ticket service and in the model: what either says.
    async fn apply(&mut self, op: &Op) -> (bool, bool) {
        let now = self.world.clock.now();
        let count = self.ids.len();
        match op {
            Op::Hold { user, seats } => self.hold(*user, seats, 0).await,
            Op::HoldTickets { user, quantity } => {
                self.hold(*user, &BTreeSet::new(), *quantity).await
            }
            Op::Advance { seconds } => {
                self.world.clock.advance(*seconds * SECOND);
                (true, true)
            }
            Op::Sweep => {
                self.world.sweep().await;
                self.model.sweep(now);
                (true, true)
            }
            Op::Close => {
                self.close().await;
                self.model.is_closed = true;
                (true, true)
            }
            Op::Empty => {
                let mut sweeper = Sweeper::new(self.world.ticket.clone());
                sweeper.empty_closed_sales().await.unwrap();
                self.model.empty();
                (true, true)
            }
            Op::Move { days } => {
                self.move_events(*days).await;
                (true, true)
            }
            _ if count == 0 => (true, true),
            Op::Change { at, seats, stale } => self.change(at % count, seats, *stale).await,
            Op::Extend { at, stale } => self.extend(at % count, *stale).await,
            Op::CancelTickets { at, count: tickets } => {
                self.cancel_tickets(at % count, *tickets).await
            }
            Op::Pin { at, .. }
            | Op::Unpin { at, .. }
            | Op::Confirm { at, .. }
            | Op::Cancel { at }
            | Op::Release { at, .. }
            | Op::Refund { at, .. } => {
                let said = self.step(op, at % count).await;
                (said, self.model.step(op, at % count, now))
            }
        }
    }

    async fn extend(&mut self, at: usize, stale: bool) -> (bool, bool) {
        let now = self.world.clock.now();
        let held = &mut self.model.bookings[at];
        let is_on_sale = !(held.is_seated() && self.model.is_closed);
        let expected = held.is_held(now) && is_on_sale && !stale;
        if expected && !held.is_extended {
            held.is_extended = true;
            held.expires_at += HOLD_EXTENSION;
        }
        let (user_id, token) = (self.users[held.user], held.token - i64::from(stale));
        let extended = self.world.ticket.extend_hold(self.ids[at], user_id, token).await;
        (extended.is_ok(), expected)
    }

    /// Cancels the first tickets of a reservation that are still valid.
    async fn cancel_tickets(&mut self, at: usize, count: usize) -> (bool, bool) {
        let (world, id) = (self.world, self.ids[at]);
        let details = world.ticket.reservation_details(id).await.unwrap();
        let valid = details.tickets.iter().filter(|ticket| ticket.is_valid).take(count);
        let chosen: Vec<_> = valid.cloned().collect();
        let operations = &mut self.model.bookings[at];
        let is_whole = chosen.len() == operations.quantity() as usize;
        let expected = match operations.status {
            ReservationStatus::Confirmed if is_whole => {
                operations.cancel();
                true
            }
            ReservationStatus::Confirmed => {
                for ticket in &chosen {
                    match ticket.seat_id {
                        Some(seat_id) => assert!(operations.seats.remove(&seat_id)),
                        None => operations.tickets -= 1,
                    }
                    operations.cancelled += 1;
                }
                true
            }
            ReservationStatus::Cancelled => true,
            ReservationStatus::Pending | ReservationStatus::Expired => false,
        };
        let by = TicketCanceller::Owner(self.users[operations.user]);
        let ticket_numbers = chosen.into_iter().map(|ticket| ticket.number).collect();
        let request = CancelTickets { ticket_numbers, by };
        let cancelled = world.ticket.cancel_tickets(id, request, world.context()).await;
        (cancelled.is_ok(), expected)
    }

    /// Both events are moved: whatever the fee was, all steps stay what they are.
    async fn move_events(&self, days: u32) {
        let (world, seated, standing) = (self.world, self.seated, self.standing.0);
        let starts_at = world.clock.now() + Duration::from_secs(86_400 * u64::from(20 + days));
        let moved = world.db.write(move |tx| {
            let sql = "update sales set starts_at = $3, has_unannounced_start = true \
                       where event_id = $1 or event_id = $2";
            tx.execute(sql, params![seated, standing, starts_at])
        });
        moved.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        world.ticket.announce_moved_events().await.unwrap();
    }

    async fn close(&self) {
        let event_id = self.seated;
        let closed = self.world.db.write(move |tx| {
            let sql = "update sales set status = 'cancelled' where event_id = $1";
            tx.execute(sql, params![event_id])
        });
        closed.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
    }

    /// The reservations as the ticket service has them.
    async fn state(&self) -> Vec<RefundBasis> {
        let mut bookings = Vec::new();
        for (id, model) in self.ids.iter().zip(&self.model.bookings) {
            let details = self.world.ticket.reservation_details(*id).await.unwrap();
            let record = &details.record;
            let reservation = &record.reservation;
            let payment = |id: Option<Uuid>| {
                id.map(|id| self.payments.iter().position(|known| *known == id).unwrap())
            };
            let seats: BTreeSet<u32> =
                details.items.iter().filter_map(urr_ticket::ReservationItem::seat_id).collect();
            let tickets = if seats.is_empty() { record.reservation.quantity } else { 0 };
            bookings.push(RefundBasis {
                user: self.users.iter().position(|id| *id == reservation.user_id).unwrap(),
                seats,
                tickets,
                cancelled: u32::try_from(record.cancelled_amount.amount() / model.price()).unwrap(),
                status: reservation.status,
                payment: reservation.payment_status,
                pinned: payment(reservation.pinned_by),
                ended: std::array::from_fn(|payment| {
                    let id = self.payments[payment];
                    let is_over = |attempt: &i64| record.ended_attempts.contains(id, *attempt);
                    (1..=ATTEMPTS).rev().find(is_over).unwrap_or(0)
                }),
                paid_by: payment(record.payment_id),
                token: reservation.fence,
                expires_at: reservation.expires_at,
                is_extended: record.extended_at.is_some(),
            });
            assert_eq!(model.quantity(), record.reservation.quantity);
        }
        bookings
    }
}

async fn run_case(world: &World, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut case = Case::new(world).await;
    for (number, op) in ops.iter().enumerate() {
        let (said, expected) = case.apply(op).await;
        prop_assert_eq!(said, expected, "step {}: {:?} in {:?}", number, op, case.model);
        prop_assert_eq!(&case.state().await, &case.model.bookings, "step {}: {:?}", number, op);
    }
    let mut auditor = world.ticket.auditor();
    // What this case left overdue or pinned is another's; only what does not agree counts.
    let mut differences = auditor.run().await.unwrap().differences;
    differences.retain(|difference| !["overdue", "oldPin"].contains(&&*kind_name(difference)));
    prop_assert!(differences.is_empty(), "{:?}", differences);
    Ok(())
}

fn check(form: Form, cases: u32) {
    let Some(world) = World::new(form) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(&vec(op(), 1..50), |ops| runtime.block_on(run_case(&world, &ops)));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn reservations_follow_the_model_on_sqlite() {
    check(Form::Sqlite, 40);
}

#[test]
fn reservations_follow_the_model_on_postgres() {
    check(Form::Postgres, 25);
}
