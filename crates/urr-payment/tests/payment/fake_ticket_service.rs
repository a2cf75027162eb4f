//! A ticket service in memory that keeps to the real one's contract, and fails when it is told to.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use urr_contracts::internal::ticket::{
    Acknowledged, CancelReservation, ConfirmPayable, GetGradeSales, GetPayable, GradeSales,
    GradeSalesAnswer, ListPaidReservations, MarkPayableRefunded, PaidReservationPage,
    PayableAnswer, PayableKind, PayableRef, PayableView, PinPayable, ReleaseHold, UnpinPayable,
    ValidatePayable,
};
use urr_kernel::{CallContext, Clock, Timestamp, Uuid, Won};
use urr_service::{ApiError, InternalCalls};

/// Clones share it.
#[derive(Clone)]
pub struct FakeTicketService(Arc<Mutex<Books>>, Clock);

#[derive(Default)]
struct Books {
    reservations: HashMap<Uuid, FakePayable>,
    faults: HashMap<&'static str, Vec<Fault>>,
    /// What it would have announced.
    cancelled: Vec<Uuid>,
    handed_over: Vec<CompletedTransfer>,
    calls: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakePayable {
    pub id: Uuid,
    /// `reservation`, `membership` or `transfer`.
    pub kind: &'static str,
    /// What a transfer hands over.
    pub reservation_id: Option<Uuid>,
    /// Whether a reservation was paid by a transfer.
    pub is_taken_over: bool,
    /// Who pays: of a transfer, its seller until it is sold.
    pub user_id: Uuid,
    /// Who has pinned it.
    pub buyer_id: Option<Uuid>,
    pub event_id: Uuid,
    pub amount: Won,
    /// Of a transfer, its fee.
    pub booking_fee: Won,
    pub fence: i64,
    /// `pending`, `confirmed`, `cancelled` or `expired`.
    pub status: &'static str,
    pub payment_status: &'static str,
    pub expires_at: Timestamp,
    pub pinned_by: Option<Uuid>,
    /// The last attempt of each payment that is over.
    pub ended: BTreeMap<Uuid, i64>,
    pub payment_id: Option<Uuid>,
    pub refund_amount: Option<Won>,
    /// When it was last cancelled or made.
    pub updated_at: Timestamp,
    /// How often it was confirmed: more than once is a second set of tickets.
    pub tickets: u32,
    /// What is kept when it is cancelled.
    pub cancel_fee: Won,
}

/// A ticket that has another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedTransfer {
    pub transfer: FakePayable,
    pub seller_id: Uuid,
    pub seller_payment_id: Option<Uuid>,
    pub seller_payout: Won,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It does nothing and answers with a failure.
    Silent,
    /// It does what it is asked for and dies before it can say so.
    Dies,
    /// It says no.
    Refuses(&'static str),
}

impl FakeTicketService {
    pub fn new(clock: Clock) -> FakeTicketService {
        FakeTicketService(Arc::default(), clock)
    }

    pub fn hold(&self, held: FakePayable) {
        self.0.lock().unwrap().reservations.insert(held.id, held);
    }

    pub fn get(&self, id: Uuid) -> FakePayable {
        self.0.lock().unwrap().reservations[&id].clone()
    }

    pub fn all(&self) -> Vec<FakePayable> {
        self.0.lock().unwrap().reservations.values().cloned().collect()
    }

    pub fn change(&self, id: Uuid, change: impl FnOnce(&mut FakePayable)) {
        change(self.0.lock().unwrap().reservations.get_mut(&id).unwrap());
    }

    /// The next calls of a step fail, one after the other.
    pub fn fail(&self, step: &'static str, faults: impl IntoIterator<Item = Fault>) {
        let mut faults: Vec<Fault> = faults.into_iter().collect();
        faults.reverse();
        self.0.lock().unwrap().faults.insert(step, faults);
    }

    pub fn calls(&self, step: &str) -> usize {
        self.0.lock().unwrap().calls.iter().filter(|call| *call == step).count()
    }

    /// Cancels what is paid, as its owner does there.
    pub fn cancel(&self, id: Uuid) {
        let mut books = self.0.lock().unwrap();
        let held = books.reservations.get_mut(&id).unwrap();
        assert_eq!(held.status, "confirmed");
        held.status = "cancelled";
        held.payment_status = "refunding";
        held.refund_amount = Some(held.amount.minus(held.cancel_fee).unwrap());
        held.updated_at = self.1.now();
        books.cancelled.push(id);
    }

    /// The reservations whose cancellation is to be announced.
    pub fn take_cancelled(&self) -> Vec<FakePayable> {
        let mut books = self.0.lock().unwrap();
        let ids = std::mem::take(&mut books.cancelled);
        ids.iter().map(|id| books.reservations[id].clone()).collect()
    }

    /// The transfers whose completion is to be announced.
    pub fn take_completed_transfers(&self) -> Vec<CompletedTransfer> {
        std::mem::take(&mut self.0.lock().unwrap().handed_over)
    }

    /// Whether something is still to be announced.
    pub fn has_announcements(&self) -> bool {
        let books = self.0.lock().unwrap();
        !books.cancelled.is_empty() || !books.handed_over.is_empty()
    }

    pub fn internal_calls(&self) -> InternalCalls<FakeTicketService> {
        InternalCalls::new(self.clone())
            .serve(list_paid)
            .serve(get_payable)
            .serve(validate)
            .serve(pin)
            .serve(unpin)
            .serve(confirm)
            .serve(mark_refunded)
            .serve(cancel)
            .serve(release)
            .serve(grade_sales)
    }

    fn answer(
        &self,
        step: &str,
        PayableRef { kind, id }: PayableRef,
        work: impl FnOnce(&mut FakePayable, Timestamp) -> Result<(), &'static str>,
    ) -> Result<PayableAnswer, ApiError> {
        let mut books = self.0.lock().unwrap();
        books.calls.push(step.to_owned());
        let fault = books.faults.get_mut(step).and_then(Vec::pop);
        let now = self.1.now();
        match fault {
            Some(Fault::Silent) => return Err(failed()),
            Some(Fault::Refuses(code)) => return Err(refused(code)),
            Some(Fault::Dies) | None => {}
        }
        let found = books.reservations.get_mut(&id).filter(|held| held.kind == kind.as_str());
        let Some(held) = found else {
            return Err(refused("RESERVATION_NOT_FOUND"));
        };
        let was_confirmed = held.status == "confirmed";
        let worked = work(held, now);
        let answer = match worked {
            Ok(()) => Ok(PayableAnswer { payable: view(held) }),
            Err(code) => Err(refused(code)),
        };
        let transfer = held.clone();
        if transfer.kind == "transfer" && !was_confirmed && transfer.status == "confirmed" {
            books.hand_over(transfer);
            return if fault == Some(Fault::Dies) { Err(failed()) } else { answer };
        }
        let held = books.reservations.get_mut(&id).unwrap();
        if was_confirmed && held.status == "cancelled" && held.kind == "reservation" {
            books.cancelled.push(id);
        }
        if fault == Some(Fault::Dies) { Err(failed()) } else { answer }
    }
}

impl Books {
    /// The ticket is the buyer's, and so is the payment that pays for it.
    fn hand_over(&mut self, transfer: FakePayable) {
        let reservation = self.reservations.get_mut(&transfer.reservation_id.unwrap()).unwrap();
        let (seller_id, seller_payment_id) = (reservation.user_id, reservation.payment_id);
        let seller_payout = reservation.amount;
        reservation.user_id = transfer.user_id;
        reservation.payment_id = transfer.payment_id;
        reservation.amount = transfer.amount;
        reservation.is_taken_over = true;
        self.handed_over.push(CompletedTransfer {
            transfer,
            seller_id,
            seller_payment_id,
            seller_payout,
        });
    }
}

impl FakePayable {
    fn is_over(&self, now: Timestamp) -> bool {
        self.status == "expired"
            || (self.status == "pending" && self.pinned_by.is_none() && now >= self.expires_at)
    }

    fn check_payable(&self, now: Timestamp) -> Result<(), &'static str> {
        match self.status {
            _ if self.is_over(now) => Err("RESERVATION_EXPIRED"),
            "pending" if self.pinned_by.is_some() => match self.kind {
                "transfer" => Err("TRANSFER_BEING_PAID"),
                _ => Err("PAYMENT_IN_PROGRESS"),
            },
            "pending" => Ok(()),
            "confirmed" => Err("RESERVATION_CONFIRMED"),
            _ => Err("RESERVATION_CANCELLED"),
        }
    }

    fn check_claim(&self, fencing_token: i64, amount: Won) -> Result<(), &'static str> {
        if fencing_token != self.fence {
            return Err("STALE_FENCING_TOKEN");
        }
        if amount != self.amount {
            return Err("WRONG_AMOUNT");
        }
        Ok(())
    }

    /// A transfer is for anybody but its seller, everything else for one.
    fn is_payable_by(&self, user_id: Uuid) -> bool {
        (user_id == self.user_id) != (self.kind == "transfer")
    }

    fn pin(&mut self, body: PinPayable, now: Timestamp) -> Result<(), &'static str> {
        if !self.is_payable_by(body.user_id) {
            return Err("RESERVATION_NOT_FOUND");
        }
        if self.ended.get(&body.payment_id).is_some_and(|ended| *ended >= body.attempt) {
            return Err("PAYMENT_ATTEMPT_OVER");
        }
        if self.status == "pending" && self.pinned_by == Some(body.payment_id) {
            return self.check_claim(body.fencing_token, body.amount);
        }
        self.check_payable(now)?;
        self.check_claim(body.fencing_token, body.amount)?;
        self.pinned_by = Some(body.payment_id);
        self.buyer_id = Some(body.user_id);
        Ok(())
    }

    fn unpin(
        &mut self,
        UnpinPayable { payment_id, attempt, .. }: UnpinPayable,
    ) -> Result<(), &'static str> {
        if self.ended.get(&payment_id).is_some_and(|ended| *ended >= attempt) {
            return Ok(());
        }
        if self.status == "confirmed" && self.payment_id == Some(payment_id) {
            return Err("RESERVATION_CONFIRMED");
        }
        self.ended.insert(payment_id, attempt);
        if self.pinned_by == Some(payment_id) {
            self.pinned_by = None;
        }
        Ok(())
    }

    fn confirm(&mut self, body: &ConfirmPayable, now: Timestamp) -> Result<(), &'static str> {
        let payment_id = Some(body.payment_id);
        assert!(body.payment_method.as_ref().is_some_and(|method| !method.is_empty()));
        match self.status {
            _ if self.is_over(now) => return Err("RESERVATION_EXPIRED"),
            "pending" if self.pinned_by.is_none() => return Err("NOT_PINNED"),
            "pending" if self.pinned_by != payment_id => return Err("PAYMENT_IN_PROGRESS"),
            "pending" => {}
            "confirmed" if self.payment_id == payment_id => {
                return self.check_claim(body.fencing_token, body.amount);
            }
            "confirmed" => return Err("RESERVATION_CONFIRMED"),
            _ => return Err("RESERVATION_CANCELLED"),
        }
        self.check_claim(body.fencing_token, body.amount)?;
        if self.kind == "transfer" {
            self.user_id = self.buyer_id.expect("it is pinned by somebody");
        }
        self.status = "confirmed";
        self.payment_status = "paid";
        self.pinned_by = None;
        self.payment_id = payment_id;
        self.tickets += 1;
        Ok(())
    }

    fn refunded(&mut self, body: MarkPayableRefunded) -> Result<(), &'static str> {
        let is_its_payment = self.payment_id == Some(body.payment_id);
        if self.kind == "membership" && is_its_payment {
            assert_eq!(body.amount, self.amount, "its whole price");
            self.status = "cancelled";
            self.payment_status = "refunded";
            return Ok(());
        }
        if !matches!(self.payment_status, "refunding" | "refunded") || !is_its_payment {
            return Err("NOT_REFUNDING");
        }
        if self.payment_status == "refunded" {
            return Ok(());
        }
        let (asked, refunded) = (Some(body.amount), body.returned_amount);
        if self.refund_amount != asked || refunded > asked {
            return Err("WRONG_AMOUNT");
        }
        self.payment_status = "refunded";
        self.refund_amount = refunded.or(asked);
        Ok(())
    }

    fn release(&mut self, body: ReleaseHold, now: Timestamp) -> Result<(), &'static str> {
        if body.user_id != self.user_id {
            return Err("RESERVATION_NOT_FOUND");
        }
        match self.status {
            _ if self.is_over(now) => Err("RESERVATION_EXPIRED"),
            "cancelled" => Ok(()),
            "pending" if self.pinned_by.is_some() => Err("PAYMENT_IN_PROGRESS"),
            "pending" if body.fencing_token != self.fence => Err("STALE_FENCING_TOKEN"),
            "pending" => {
                self.status = "cancelled";
                Ok(())
            }
            _ => Err("RESERVATION_CONFIRMED"),
        }
    }

    fn cancel(&mut self, body: &CancelReservation) -> Result<(), &'static str> {
        if body.user_id != Some(self.user_id) && body.admin_id.is_none() {
            return Err("RESERVATION_NOT_FOUND");
        }
        match self.status {
            "cancelled" => Ok(()),
            "confirmed" => {
                self.status = "cancelled";
                self.payment_status = "refunding";
                self.refund_amount = Some(self.amount.minus(self.cancel_fee).unwrap());
                Ok(())
            }
            _ => Err("RESERVATION_EXPIRED"),
        }
    }
}

fn view(held: &FakePayable) -> PayableView {
    let of_kind = |kind: &str, amount: Won| if held.kind == kind { amount } else { Won::ZERO };
    PayableView {
        kind: held.kind.parse().unwrap(),
        id: held.id,
        order_name: Some(format!("{} {}", held.kind, held.fence)),
        user_id: Some(held.user_id),
        event_id: (held.kind != "membership").then_some(held.event_id),
        artist_id: None,
        reservation_number: Some("R12345".to_owned()),
        reservation_id: held.reservation_id,
        seller_id: None,
        status: held.status.parse().unwrap(),
        payment_status: held.payment_status.parse().unwrap(),
        total_amount: held.amount,
        booking_fee: of_kind("reservation", held.booking_fee),
        transfer_fee: of_kind("transfer", held.booking_fee),
        quantity: Some(1),
        expires_at: Some(held.expires_at),
        fencing_token: held.fence,
        pinned_by: held.pinned_by,
        payment_id: held.payment_id,
        is_box_office: false,
        refund_amount: held.refund_amount,
        cancellation_fee: None,
        cancelled_amount: Won::ZERO,
        updated_at: Some(held.updated_at),
        correlation_id: None,
        last_event_id: None,
    }
}

fn refused(code: &'static str) -> ApiError {
    let status = match code {
        "RESERVATION_NOT_FOUND" => StatusCode::NOT_FOUND,
        "INVALID_USER" => StatusCode::BAD_REQUEST,
        "SALE_NOT_OPEN" => StatusCode::FORBIDDEN,
        "RESERVATION_GONE" => StatusCode::GONE,
        "WRONG_STATE" => StatusCode::UNPROCESSABLE_ENTITY,
        "TOO_MANY_REQUESTS" => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::CONFLICT,
    };
    ApiError::new(status, code, "No.")
}

fn failed() -> ApiError {
    ApiError::internal("as it was told")
}

/// As many as the real one tells, divided by a hundred.
const PAID_PER_PAGE: usize = 2;

type PayableResult = Result<PayableAnswer, ApiError>;
type ChangeResult = Result<Acknowledged, ApiError>;

async fn list_paid(
    tickets: FakeTicketService,
    call: ListPaidReservations,
    _: CallContext,
) -> Result<PaidReservationPage, ApiError> {
    let mut books = tickets.0.lock().unwrap();
    books.calls.push("paid".to_owned());
    if books.faults.get_mut("paid").and_then(Vec::pop).is_some() {
        return Err(failed());
    }
    let mut paid: Vec<&FakePayable> = books.reservations.values().collect();
    paid.retain(|held| held.kind == "reservation" && held.payment_id.is_some());
    paid.retain(|held| call.after.is_none_or(|after| held.id > after));
    paid.sort_by_key(|held| held.id);
    let more = paid.len() > PAID_PER_PAGE;
    let reservations = paid.into_iter().take(PAID_PER_PAGE).map(view).collect();
    Ok(PaidReservationPage { reservations, more })
}

async fn get_payable(
    tickets: FakeTicketService,
    call: GetPayable,
    _: CallContext,
) -> PayableResult {
    tickets.answer("state", call.payable, |_, _| Ok(()))
}

async fn validate(
    tickets: FakeTicketService,
    call: ValidatePayable,
    _: CallContext,
) -> PayableResult {
    tickets.answer("validate", call.payable, |held, now| match held.is_payable_by(call.user_id) {
        true => held.check_payable(now),
        false => Err("RESERVATION_NOT_FOUND"),
    })
}

async fn pin(tickets: FakeTicketService, call: PinPayable, _: CallContext) -> ChangeResult {
    tickets.answer("pin", call.payable, |held, now| held.pin(call, now))?;
    Ok(Acknowledged {})
}

async fn unpin(tickets: FakeTicketService, call: UnpinPayable, _: CallContext) -> ChangeResult {
    tickets.answer("unpin", call.payable, |held, _| held.unpin(call))?;
    Ok(Acknowledged {})
}

async fn confirm(tickets: FakeTicketService, call: ConfirmPayable, _: CallContext) -> ChangeResult {
    tickets.answer("confirm", call.payable, |held, now| held.confirm(&call, now))?;
    Ok(Acknowledged {})
}

async fn mark_refunded(
    tickets: FakeTicketService,
    call: MarkPayableRefunded,
    _: CallContext,
) -> ChangeResult {
    let payable = match call.payable.kind {
        // It marks the reservation that was taken over.
        PayableKind::Transfer => PayableRef {
            kind: PayableKind::Reservation,
            id: tickets.get(call.payable.id).reservation_id.unwrap(),
        },
        _ => call.payable,
    };
    tickets.answer("refunded", payable, |held, _| held.refunded(call))?;
    Ok(Acknowledged {})
}

async fn cancel(
    tickets: FakeTicketService,
    call: CancelReservation,
    _: CallContext,
) -> PayableResult {
    let payable = PayableRef { kind: PayableKind::Reservation, id: call.id };
    tickets.answer("cancel", payable, |held, _| held.cancel(&call))
}

async fn release(tickets: FakeTicketService, call: ReleaseHold, _: CallContext) -> ChangeResult {
    let payable = PayableRef { kind: PayableKind::Reservation, id: call.id };
    tickets.answer("release", payable, |held, now| held.release(call, now))?;
    Ok(Acknowledged {})
}

/// What is paid of the event, as if it were of one grade. Booking fees are no part of it.
async fn grade_sales(
    tickets: FakeTicketService,
    call: GetGradeSales,
    _: CallContext,
) -> Result<GradeSalesAnswer, ApiError> {
    let mut sales = GradeSales { grade: "R".to_owned(), ..GradeSales::default() };
    let all = tickets.all();
    let paid =
        all.iter().filter(|held| held.event_id == call.event_id && held.payment_id.is_some());
    for held in paid.filter(|held| held.kind == "reservation") {
        let price = held.amount.minus(held.booking_fee).unwrap();
        match held.status {
            "confirmed" => {
                sales.sold += 1;
                sales.sold_amount = sales.sold_amount.plus(price).unwrap();
            }
            _ => {
                sales.cancelled += 1;
                sales.cancelled_amount = sales.cancelled_amount.plus(price).unwrap();
            }
        }
    }
    Ok(GradeSalesAnswer { grades: vec![sales], complimentary_tickets: 2 })
}
