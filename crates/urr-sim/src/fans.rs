//! Fans and the organiser: what they know, and how they use the services.
//!
//! A fan knows only what was answered. What a service says is compared with its tables at that
//! moment: whatever is told must be there (invariant 14).

mod attacks;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use urr_contracts::clients::PayableRef;
use urr_contracts::events::catalog::EventCancelled;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{CallContext, Clock, IdSource, IdempotencyKey, Timestamp, Uuid, Won};
use urr_payment::provider::TestCard;
use urr_payment::{Approval, ApproveOrder, OrderRequest, Payment, PaymentStatus};
use urr_queue::{RoomActor, RoomChange};
use urr_room::UserStatus;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{StorageError, Tx, params};
use urr_ticket::{
    CancelTickets, ChangeSeats, Hold, RequestedItems, RequestedTickets, ReservationId,
    ReserveRequest, SlotClaim, TicketCanceller,
};

use crate::databases::{ARTIST, DatabaseName, SEATED_EVENT, STANDING_EVENT, TICKET_TYPE};
use crate::faults::CLOCK_SKEW_MS;
use crate::network::MessageFate;
use crate::oracle::Violation;
use crate::plan::{Action, CardChoice, FanAction};
use crate::services::{Instance, Role, Surroundings};

/// Those who want something, and what they were told. Clones share it.
#[derive(Clone)]
pub struct Fans {
    pub surroundings: Surroundings,
    pub ids: IdSource,
    pub clock: Clock,
    state: Arc<Mutex<FansState>>,
}

#[derive(Default)]
struct FansState {
    fans: Vec<SimulatedFan>,
    /// Which reservation a key has made.
    keys: HashMap<String, ReservationId>,
    /// Until when a hold lives, as its owner was told.
    told_ends: HashMap<Uuid, Timestamp>,
    violation: Option<Violation>,
}

#[derive(Clone, Default)]
struct SimulatedFan {
    user_id: Uuid,
    slot: Option<Uuid>,
    has_bought: bool,
    /// What can be paid next: a hold, a membership or what somebody sells.
    payable: Option<PayableRef>,
    reservation: Option<ReservationId>,
    fence: i64,
    /// The token that the hold had before it was changed.
    old_fence: Option<i64>,
    ended_slot: Option<Uuid>,
    listing: Option<Uuid>,
    /// The last request.
    request: Option<(Uuid, RequestedItems, String)>,
    requests: u32,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionResult {
    Done,
    /// The fan has to wait for something.
    NotYet,
}

use ActionResult::{Done, NotYet};

/// Cards with which a payment still comes to an end by itself.
const ODD_CARDS: [TestCard; 12] = [
    TestCard::Decline,
    TestCard::Insufficient,
    TestCard::Slow,
    TestCard::TimeOut,
    TestCard::Stumble,
    TestCard::ChargeThenTimeOut,
    TestCard::ChargeThenFail,
    TestCard::Duplicate,
    TestCard::WrongAmount,
    TestCard::TestChannel,
    TestCard::UnknownCode,
    TestCard::RefundTimesOut,
];

impl Fans {
    pub fn new(surroundings: &Surroundings, clock: Clock, count: usize) -> Fans {
        let ids = IdSource::seeded(clock.clone(), surroundings.seed.wrapping_mul(104_729));
        let fan = |_| SimulatedFan { user_id: ids.next_id(), ..SimulatedFan::default() };
        let state = FansState { fans: (0..count).map(fan).collect(), ..FansState::default() };
        let surroundings = surroundings.clone();
        Fans { surroundings, ids, clock, state: Arc::new(Mutex::new(state)) }
    }

    pub fn violation(&self) -> Option<Violation> {
        self.state().violation.take()
    }

    /// Until when the owner was told that a hold lives.
    pub fn told_end(&self, reservation: Uuid) -> Option<Timestamp> {
        self.state().told_ends.get(&reservation).copied()
    }

    pub async fn act(&self, action: Action) -> ActionResult {
        match action {
            Action::Fan(fan, action) => self.fan_act(fan, action).await,
            Action::PauseRoom => {
                self.change_room(RoomChange { is_paused: Some(true), ..unchanged() }).await
            }
            Action::ResumeRoom => {
                self.change_room(RoomChange { is_paused: Some(false), ..unchanged() }).await
            }
            Action::SetThreshold(threshold) => {
                self.change_room(RoomChange { threshold: Some(Some(threshold)), ..unchanged() })
                    .await
            }
            Action::CancelEvent => self.cancel_event().await,
        }
    }

    async fn fan_act(&self, fan: usize, action: FanAction) -> ActionResult {
        match action {
            FanAction::Join => self.join(fan).await,
            FanAction::LeaveRoom => self.leave_room(fan).await,
            FanAction::ReserveSeats(seats) => {
                let items = RequestedItems::Seats(seat_ids(seats));
                self.reserve_new(fan, SEATED_EVENT, items).await
            }
            FanAction::ReserveStanding(quantity) => {
                let wanted = RequestedTickets { ticket_type_id: TICKET_TYPE, quantity };
                self.reserve_new(fan, STANDING_EVENT, RequestedItems::Tickets(vec![wanted])).await
            }
            FanAction::ReserveAgain => {
                let request = self.fan(fan).request;
                match request {
                    Some((event, items, key)) => self.reserve(fan, event, items, key).await,
                    None => Done,
                }
            }
            FanAction::ReserveWithForeignSlot(other) => self.reserve_with_slot_of(fan, other).await,
            FanAction::ChangeSeats(seats) => self.change_seats(fan, seats).await,
            FanAction::ExtendHold => self.extend_hold(fan).await,
            FanAction::ReleaseHold => self.release_hold(fan).await,
            FanAction::ReleaseWithOldToken => self.release_with_old_token(fan).await,
            FanAction::ReleaseForeign(other) => self.release_foreign(fan, other).await,
            FanAction::UnpinForeign(other) => self.unpin_foreign(fan, other).await,
            FanAction::RepeatPin => self.repeat_pin(fan).await,
            FanAction::JoinTwice => self.join_twice(fan).await,
            FanAction::UseEndedSlot => self.use_ended_slot(fan).await,
            FanAction::Pay(card) => self.pay(fan, card, false).await,
            FanAction::PayTwice => self.pay(fan, CardChoice::Good, true).await,
            FanAction::CancelAll => self.cancel_all(fan).await,
            FanAction::CancelOneTicket => self.cancel_one_ticket(fan).await,
            FanAction::CancelForeign(other) => self.cancel_foreign(fan, other).await,
            FanAction::Sell => self.sell(fan).await,
            FanAction::Buy => self.buy(fan),
            FanAction::JoinClub => self.join_club(fan).await,
            // The schedule ends the fan's task.
            FanAction::Disconnect => Done,
        }
    }

    /// Asks a service over the network. None: there was no answer.
    async fn ask<T, W: Future<Output = T>>(
        &self,
        role: Role,
        what: &str,
        ask: impl FnOnce(Instance) -> W,
    ) -> Option<T> {
        let network = &self.surroundings.network;
        if network.send(format!("→ {}: {what}", role.name()), false).await == MessageFate::Lost {
            return None;
        }
        let target = self.surroundings.registry.find(role)?;
        let answer = tokio::select! {
            biased;
            () = target.died.cancelled() => return None,
            answer = ask(target.instance) => answer,
        };
        let back = network.send(format!("← {}: {what}", role.name()), false).await;
        (back != MessageFate::Lost).then_some(answer)
    }

    async fn join(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, has_bought, .. } = self.fan(fan);
        let context = self.context();
        let told = self.clone();
        let answer = self.ask(Role::Queue, "join", async move |instance: Instance| {
            let checked = instance.queue().check(SEATED_EVENT, user_id, &context).await;
            let status = checked.ok()?.snapshot.status;
            if !has_bought {
                told.check_told_status(user_id, status);
            }
            Some(status)
        });
        match answer.await.flatten() {
            Some(UserStatus::Active(slot)) => {
                self.state().fans[fan].slot = Some(slot.id);
                Done
            }
            Some(UserStatus::Waiting(_)) => NotYet,
            Some(UserStatus::Absent) | None => NotYet,
        }
    }

    async fn leave_room(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, .. } = self.fan(fan);
        let leave = self.ask(Role::Queue, "leave", async move |instance: Instance| {
            instance.queue().leave(SEATED_EVENT, user_id).await.is_ok()
        });
        let left = leave.await;
        if left.is_some() {
            let mut state = self.state();
            let fan = &mut state.fans[fan];
            let slot = fan.slot.take();
            fan.ended_slot = slot.filter(|_| left == Some(true));
        }
        Done
    }

    async fn reserve_new(&self, fan: usize, event: Uuid, items: RequestedItems) -> ActionResult {
        if event == SEATED_EVENT && self.fan(fan).slot.is_none() {
            return match self.join(fan).await {
                Done => NotYet,
                other => other,
            };
        }
        let key = {
            let mut state = self.state();
            let fan_state = &mut state.fans[fan];
            fan_state.requests += 1;
            format!("fan-{fan}-request-{}", fan_state.requests)
        };
        self.reserve(fan, event, items, key).await
    }

    async fn reserve(
        &self,
        fan: usize,
        event_id: Uuid,
        requested: RequestedItems,
        key: String,
    ) -> ActionResult {
        let SimulatedFan { user_id, slot, .. } = self.fan(fan);
        self.state().fans[fan].request = Some((event_id, requested.clone(), key.clone()));
        let request = ReserveRequest {
            user_id,
            event_id,
            requested,
            key: Some(IdempotencyKey::parse(&key).expect("a short text without spaces")),
        };
        let claim = SlotClaim { event_id, user_id, slot_id: slot };
        let (context, told) = (self.context(), self.clone());
        let held = self.ask(Role::Ticket, "reserve", async move |instance: Instance| {
            let (ticket, slots) = instance.ticket();
            if event_id == SEATED_EVENT {
                slots.check(claim, context).await.ok()?;
            }
            let hold = ticket.reserve(request, context).await.ok()?;
            told.check_told_hold(&hold, &key);
            Some(hold)
        });
        if let Some(Some(hold)) = held.await {
            let mut state = self.state();
            let fan = &mut state.fans[fan];
            let id = hold.reservation.id;
            fan.reservation = Some(id);
            fan.payable = Some(PayableRef { kind: PayableKind::Reservation, id: id.0 });
            fan.fence = hold.reservation.fence;
            fan.old_fence = None;
        }
        Done
    }

    /// Nobody books with the slot of another (invariant 11).
    async fn reserve_with_slot_of(&self, fan: usize, other: usize) -> ActionResult {
        let SimulatedFan { user_id, .. } = self.fan(fan);
        let Some(slot) = self.find_fan(other).filter(|_| other != fan).and_then(|fan| fan.slot)
        else {
            return Done;
        };
        let claim = SlotClaim { event_id: SEATED_EVENT, user_id, slot_id: Some(slot) };
        let context = self.context();
        let passed =
            self.ask(Role::Ticket, "use a foreign slot", async move |instance: Instance| {
                instance.ticket().1.check(claim, context).await.is_ok()
            });
        if passed.await == Some(true) {
            self.violated("11: a slot opens the sale to its own user only", format!("{user_id}"));
        }
        Done
    }

    async fn change_seats(&self, fan: usize, seats: u8) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        let request = ChangeSeats { user_id, seat_ids: seat_ids(seats), fencing_token: None };
        let context = self.context();
        let changed = self.ask(Role::Ticket, "change seats", async move |instance: Instance| {
            instance.ticket().0.change_seats(id, request, context).await.ok()
        });
        if let Some(Some(record)) = changed.await {
            let mut state = self.state();
            let fan = &mut state.fans[fan];
            let before = std::mem::replace(&mut fan.fence, record.reservation.fence);
            fan.old_fence = (before < fan.fence).then_some(before).or(fan.old_fence);
        }
        Done
    }

    async fn extend_hold(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, fence, .. } = self.fan(fan);
        let (Some(id), told) = (reservation, self.clone()) else { return Done };
        let extend = self.ask(Role::Ticket, "extend hold", async move |instance: Instance| {
            let extended = instance.ticket().0.extend_hold(id, user_id, fence).await;
            if let Ok(record) = extended {
                let end = record.reservation.expires_at;
                told.state().told_ends.insert(id.0, end);
            }
        });
        extend.await;
        Done
    }

    async fn release_hold(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        let context = self.context();
        let release = self.ask(Role::Ticket, "release hold", async move |instance: Instance| {
            instance.ticket().0.release_hold(id, user_id, None, context).await.is_ok()
        });
        release.await;
        Done
    }

    async fn pay(&self, fan: usize, card: CardChoice, is_double: bool) -> ActionResult {
        let SimulatedFan { user_id, payable, .. } = self.fan(fan);
        let Some(payable) = payable else { return Done };
        let request = OrderRequest { user_id, payable, amount: None, key: None };
        let context = self.context();
        let order = self.ask(Role::Payment, "order", async move |instance: Instance| {
            instance.payment().prepare_order(request, &context).await.ok()
        });
        let Some(Some(order)) = order.await else { return Done };
        let card = match card {
            CardChoice::Good => TestCard::Approve,
            CardChoice::Odd(number) => ODD_CARDS[usize::from(number) % ODD_CARDS.len()],
        };
        let sandbox = &self.surroundings.provider;
        let Ok(key) = sandbox.issue_key(card, &order.order_id, order.amount).await else {
            return Done;
        };
        let approval = Approval { user_id, payment_key: key, amount: order.amount };
        let approve =
            ApproveOrder { order_id: order.order_id.clone(), approval, key: None, claim: None };
        if is_double {
            let (again, twin) = (self.clone(), approve.clone());
            tokio::spawn(async move { again.approve(fan, twin, payable).await });
        }
        self.approve(fan, approve, payable).await;
        Done
    }

    async fn approve(&self, fan: usize, approve: ApproveOrder, payable: PayableRef) {
        let (context, told) = (self.context(), self.clone());
        let paid = self.ask(Role::Payment, "confirm", async move |instance: Instance| {
            let paid = instance.payment().approve_detached(approve, context).await.ok()?;
            told.check_told_payment(&paid);
            Some(paid.status)
        });
        if paid.await == Some(Some(PaymentStatus::Confirmed)) {
            let mut state = self.state();
            let fan = &mut state.fans[fan];
            fan.has_bought |= payable.kind == PayableKind::Reservation;
            fan.payable = None;
        }
    }

    async fn cancel_all(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        self.cancel(user_id, id).await;
        Done
    }

    async fn cancel(&self, user_id: Uuid, id: ReservationId) -> bool {
        let context = self.context();
        let cancelled = self.ask(Role::Ticket, "cancel", async move |instance: Instance| {
            instance.ticket().0.cancel_reservation(id, user_id, context).await.is_ok()
        });
        cancelled.await == Some(true)
    }

    async fn cancel_one_ticket(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        let sql = "select number from tickets where reservation_id = $1 and is_valid \
                   order by number limit 1";
        let number: Option<String> = self.look(DatabaseName::Ticket, |tx| {
            tx.query_opt(sql, params![id.0], |row| row.get("number"))
        });
        let Some(number) = number else { return Done };
        let by = TicketCanceller::Owner(user_id);
        let request = CancelTickets { ticket_numbers: vec![number], by };
        let context = self.context();
        let cancel = self.ask(Role::Ticket, "cancel a ticket", async move |instance: Instance| {
            instance.ticket().0.cancel_tickets(id, request, context).await.is_ok()
        });
        cancel.await;
        Done
    }

    /// Nobody changes what is not theirs (invariant 15).
    async fn cancel_foreign(&self, fan: usize, other: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation: own, .. } = self.fan(fan);
        let foreign = self.find_fan(other).and_then(|other| other.reservation);
        let Some(id) = foreign.filter(|id| Some(*id) != own && other != fan) else { return Done };
        if self.owner(id) != Some(user_id) && self.cancel(user_id, id).await {
            self.violated("15: nobody changes what is not theirs", format!("{user_id} {id}"));
        }
        Done
    }

    fn owner(&self, id: ReservationId) -> Option<Uuid> {
        self.look(DatabaseName::Ticket, |tx| {
            let sql = "select user_id from reservations where id = $1";
            tx.query_opt(sql, params![id.0], |row| row.get("user_id"))
        })
    }

    async fn sell(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, reservation, .. } = self.fan(fan);
        let Some(id) = reservation else { return Done };
        let listed = self.ask(Role::Ticket, "sell", async move |instance: Instance| {
            instance.ticket().0.list_for_transfer(id, user_id).await.ok()
        });
        if let Some(Some(transfer)) = listed.await {
            self.state().fans[fan].listing = Some(transfer.id.0);
        }
        Done
    }

    fn buy(&self, fan: usize) -> ActionResult {
        let mut state = self.state();
        let others = state.fans.iter().enumerate().filter(|(other, _)| *other != fan);
        let Some(id) = others.filter_map(|(_, other)| other.listing).next() else { return NotYet };
        let payable = PayableRef { kind: PayableKind::Transfer, id };
        state.fans[fan].payable = Some(payable);
        Done
    }

    async fn join_club(&self, fan: usize) -> ActionResult {
        let SimulatedFan { user_id, .. } = self.fan(fan);
        let joined = self.ask(Role::Ticket, "join the club", async move |instance: Instance| {
            instance.ticket().0.subscribe(user_id, ARTIST).await.ok()
        });
        if let Some(Some(membership)) = joined.await {
            let payable = PayableRef { kind: PayableKind::Membership, id: membership.id.0 };
            self.state().fans[fan].payable = Some(payable);
        }
        Done
    }

    async fn change_room(&self, change: RoomChange) -> ActionResult {
        let changed = self.ask(Role::Queue, "change the room", async move |instance: Instance| {
            instance.queue().change_room(SEATED_EVENT, change, RoomActor::Operator).await.is_ok()
        });
        changed.await.map_or(NotYet, |_| Done)
    }

    async fn cancel_event(&self) -> ActionResult {
        let metadata = EventMetadata {
            event_id: self.ids.next_id(),
            source: "urr/catalog",
            time: self.clock.now(),
            context: self.context(),
        };
        let cancelled = EventCancelled { event_id: SEATED_EVENT, revision: 2, reason: None };
        let announced =
            self.ask(Role::Catalog, "cancel the event", async move |instance: Instance| {
                let announce = move |tx: &mut Tx<'_>| outbox::append(tx, &metadata, &cancelled);
                instance.tables().write(announce).await.is_ok_and(|(): ()| true)
            });
        announced.await;
        Done
    }

    fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    fn fan(&self, fan: usize) -> SimulatedFan {
        self.state().fans[fan].clone()
    }

    fn find_fan(&self, fan: usize) -> Option<SimulatedFan> {
        self.state().fans.get(fan).cloned()
    }

    fn state(&self) -> MutexGuard<'_, FansState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(
        &self,
        name: DatabaseName,
        read: impl FnOnce(&mut Tx<'_>) -> Result<T, StorageError>,
    ) -> T {
        self.surroundings.databases.get(name).inspect(read).expect("the tables can be read")
    }

    fn violated(&self, invariant: &'static str, what: String) {
        self.state().violation.get_or_insert(Violation { invariant, what });
    }

    fn exists(&self, name: DatabaseName, sql: &str, values: &[urr_storage::Value<'_>]) -> bool {
        self.look(name, |tx| Ok(!tx.query(sql, values, |_| Ok(()))?.is_empty()))
    }

    /// Who was told to wait may have been admitted by the time the place is written, and a slot may
    /// have ended, by a clock that is ahead of ours.
    fn check_told_status(&self, user_id: Uuid, status: UserStatus) {
        const RULE: &str = "14: a place or slot is told when it is in the journal";
        let has_slot = |slot: Option<Uuid>| {
            let sql = "select 1 as one from slots where user_id = $1 \
                       and ($2 is null or slot_id = $2)";
            self.exists(DatabaseName::Journal, sql, params![user_id, slot])
        };
        match status {
            UserStatus::Active(slot) => {
                let now_at_most = self.clock.now() + Duration::from_millis(CLOCK_SKEW_MS.into());
                if slot.ends_at > now_at_most && !has_slot(Some(slot.id)) {
                    self.violated(RULE, format!("slot {} of {user_id}", slot.id));
                }
            }
            UserStatus::Waiting(line) => {
                let sql = "select 1 as one from places where user_id = $1 and arrival = $2";
                let is_there =
                    self.exists(DatabaseName::Journal, sql, params![user_id, line.number]);
                if !is_there && !has_slot(None) {
                    self.violated(RULE, format!("place {} of {user_id}", line.number));
                }
            }
            UserStatus::Absent => {}
        }
    }

    fn check_told_hold(&self, hold: &Hold, key: &str) {
        let id = hold.reservation.id;
        let sql = "select 1 as one from reservations where id = $1";
        if !self.exists(DatabaseName::Ticket, sql, params![id.0]) {
            self.violated("14: what was answered is stored", format!("reservation {id}"));
        }
        let mut state = self.state();
        let end = hold.reservation.expires_at;
        state.told_ends.entry(id.0).and_modify(|told| *told = (*told).max(end)).or_insert(end);
        let made = *state.keys.entry(key.to_owned()).or_insert(id);
        drop(state);
        if made != id {
            self.violated(
                "5: an idempotency key makes one reservation",
                format!("{made} and {id}"),
            );
        }
    }

    fn check_told_payment(&self, payment: &Payment) {
        if payment.status != PaymentStatus::Confirmed || payment.step.is_some() {
            return;
        }
        let sql = "select 1 as one from payments where id = $1 and charged_amount > 0";
        let is_stored = self.exists(DatabaseName::Payment, sql, params![payment.id.0]);
        let sql = "select 1 as one from reservations where id = $1 and status = 'pending'";
        let is_pending = self.exists(DatabaseName::Ticket, sql, params![payment.payable.id]);
        if !is_stored || is_pending {
            self.violated("14: what was answered is stored", format!("payment {}", payment.id));
        }
    }
}

fn unchanged() -> RoomChange {
    RoomChange::default()
}

fn seat_ids(seats: u8) -> Vec<urr_layout::SeatId> {
    (0..8).filter(|seat| seats & (1 << seat) != 0).collect()
}

/// The price of everything, so that sums are easy to read.
pub const PRICE: Won = Won::new(100_000);
