//! The visit of one fan, from the waiting room to the ticket.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use urr_kernel::{IdSource, Timestamp, Uuid};

use crate::accounts::FanAccount;
use crate::behaviour::{FanDecisions, FanKind, Interruption};
use crate::client::{FanClient, FanRequest, FanResponse, NoAnswer};
use crate::fairness::{QueueVisit, ToldWait};
use crate::histogram::whole;
use crate::recorder::{FanOutcome, Operation, Recorder, RequestEnd};
use crate::seat_map::SeatStatuses;

/// A fan who is asked to wait this often gives up.
const DEFERRALS_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
const FAST_POLL: Duration = Duration::from_millis(200);
/// A fan tries so often to get seats.
const CHOICES_MAX: u32 = 8;
/// How long a fan waits for a payment whose outcome is not known yet.
const OUTCOME_POLLS_MAX: u32 = 60;
/// And for one whose answer was lost: it may never have begun.
const LOST_POLLS_MAX: u32 = 5;
/// A fan who reads the crowd document asks for the own position at least this often, and when so many
/// or fewer are in front.
const CROWD_READS_MAX: u32 = 20;
const NEAR: i64 = 200;
/// How often a fan looks for tickets of others.
const TRANSFER_LOOKS_MAX: u32 = 5;
/// A thief waits so long for a token to steal.
const THEFT_POLLS_MAX: u32 = 120;

/// Refusals that belong to a sale.
const REFUSALS: [&str; 25] = [
    "SEAT_TAKEN",
    "SEAT_BEING_DECIDED",
    "SOLD_OUT",
    "NOT_ADJACENT",
    "NOT_ENOUGH",
    "PAYMENT_DECLINED",
    "CARD_DECLINED",
    "RESERVATION_EXPIRED",
    "SALE_ENDED",
    "ENTRY_TOKEN_REQUIRED",
    "ENTRY_TOKEN_INVALID",
    "ENTRY_TOKEN_OTHER_EVENT",
    "SLOT_ENDED",
    "HOLD_IN_PROGRESS",
    "MEMBERSHIP_REQUIRED",
    "ALREADY_PAID",
    "TRANSFER_SOLD",
    "SEAT_LIMIT",
    "OWN_TRANSFER",
    "TRANSFER_CANCELLED",
    "TRANSFER_BEING_PAID",
    "TRANSFER_LISTED",
    "RESERVATION_NOT_CONFIRMED",
    "PAYMENT_IN_PROGRESS",
    "PAYMENT_RETURNED",
];
/// Refusals that ask the fan to wait.
const DEFERRALS: [&str; 4] = ["RATE_LIMITED", "OVERLOADED", "QUEUE_FULL", "ROOM_NOT_READY"];

/// What the fans know of the event.
#[derive(Clone, Debug)]
pub struct EventFacts {
    pub id: Uuid,
    pub title: String,
    pub capacity: usize,
    /// The most expensive first.
    pub grades: Vec<String>,
    /// Only of a standing event.
    pub ticket_types: Vec<String>,
    pub seats_per_user_max: u32,
}

/// What all fans share.
pub struct Rush {
    pub client: FanClient,
    pub recorder: Recorder,
    pub event: EventFacts,
    pub ids: IdSource,
    /// The last entry token that was given to anybody: what a thief steals.
    pub stolen_token: Mutex<Option<String>>,
}

pub struct Fan {
    pub number: usize,
    pub account: FanAccount,
    pub decisions: FanDecisions,
    pub arrives_at: Instant,
    pub rush: Arc<Rush>,
}

/// A hold on seats or tickets.
struct Hold {
    id: String,
    seats: u32,
    amount: i64,
    /// The version of the hold.
    fencing_token: i64,
}

impl Fan {
    pub async fn run(self) {
        sleep_until(self.arrives_at).await;
        self.rush.recorder.arrived();
        let outcome = match self.decisions.kind {
            FanKind::Person | FanKind::FastPoller | FanKind::TokenSharer => self.visit().await,
            FanKind::QueueSkipper => self.reserve_as_program(None).await,
            FanKind::TokenThief => self.steal().await,
        };
        let mut outcome = outcome.unwrap_or_else(|early| early);
        if outcome == FanOutcome::SoldOut && self.decisions.trades {
            let _acting = self.rush.recorder.act();
            outcome = self.buy_from_other().await.unwrap_or(outcome);
        }
        self.rush.recorder.finished(outcome);
    }

    async fn visit(&self) -> Result<FanOutcome, FanOutcome> {
        let entry_token = self.wait_for_turn().await?;
        let _acting = self.rush.recorder.act();
        let wanted = pause(self.decisions.choosing).await;
        let hold = self.choose_seats(&entry_token, wanted).await;
        let mut hold = match hold {
            Ok(hold) => hold,
            Err(outcome) => {
                self.leave().await;
                return Err(outcome);
            }
        };
        if self.decisions.changes_seats && self.rush.event.ticket_types.is_empty() {
            hold = self.change_seats(hold, &entry_token).await;
        }
        let wanted = pause(self.decisions.paying).await;
        if self.decisions.changes_mind {
            self.cancel(&hold, wanted).await;
            self.leave().await;
            return Ok(FanOutcome::ChangedMind);
        }
        self.pay(&hold, wanted).await?;
        self.rush.recorder.sold(&hold.id, hold.seats, hold.amount);
        if self.decisions.trades {
            self.list_for_sale(&hold).await;
            return Ok(FanOutcome::Bought);
        }
        if !self.decisions.cancels {
            return Ok(FanOutcome::Bought);
        }
        let wanted = pause(self.decisions.choosing).await;
        self.rush.recorder.cancels(&hold.id);
        let refund = self.cancel(&hold, wanted).await.ok_or(FanOutcome::Bought)?;
        self.rush.recorder.paid(-refund);
        Ok(FanOutcome::BoughtAndCancelled)
    }

    /// Waits in the room as the page does. Returns the entry token.
    async fn wait_for_turn(&self) -> Result<String, FanOutcome> {
        let event_id = self.rush.event.id;
        let check = FanRequest::post(format!("/api/queue/check/{event_id}"));
        let poll = FanRequest::get(format!("/api/queue/status/{event_id}"));
        let asked_at = self.rush.recorder.elapsed();
        let mut status = self.ask(Operation::Check, self.arrives_at, check.clone()).await?;
        let mut visit = first_visit(asked_at, self.rush.recorder.elapsed(), &status);
        let mut polls = 0;
        loop {
            if let Some(token) = status["entryToken"].as_str() {
                visit.admitted_at = Some(self.rush.recorder.elapsed());
                visit.slot_end_ms = time_ms(&status["slotLastEnd"]);
                self.rush.recorder.visited(visit);
                self.rush.recorder.admitted();
                *self.rush.stolen_token.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(token.to_owned());
                return Ok(token.to_owned());
            }
            if status["soldOut"] == true || status["status"] == "ended" {
                self.rush.recorder.visited(visit);
                self.leave().await;
                return Err(FanOutcome::SoldOut);
            }
            polls += 1;
            let mut wanted = pause(self.pause_until_poll(&status, polls)).await;
            if let Some(number) = status["number"].as_i64().filter(|_| self.decisions.reads_crowd) {
                wanted = self.watch_crowd(number, wanted).await;
            }
            let reloads = polls == 3 && self.decisions.interruption == Some(Interruption::Reload)
                || status["status"] == "not_in_queue";
            let (operation, request) = match reloads {
                true => (Operation::Check, &check),
                false => (Operation::Poll, &poll),
            };
            status = self.ask(operation, wanted, request.clone()).await?;
            visit.estimate =
                visit.estimate.or_else(|| told_wait(self.rush.recorder.elapsed(), &status));
        }
    }

    /// Reads the crowd document from `wanted` on until this number is near the front. Returns when
    /// the fan wants to ask for the own position.
    async fn watch_crowd(&self, number: i64, mut wanted: Instant) -> Instant {
        let crowd = FanRequest::get(format!("/api/queue/crowd/{}", self.rush.event.id));
        for _ in 0..CROWD_READS_MAX {
            let asked = self.ask(Operation::Crowd, wanted, crowd.clone()).await;
            let Ok(answer) = asked else { break };
            let first = answer["marks"][0][0].as_i64();
            // Without a line the fan may have been admitted.
            let Some(first) = first.filter(|_| answer["soldOut"] != true) else { break };
            if number - first < NEAR {
                break;
            }
            wanted = pause(3 * PAUSE).await;
        }
        Instant::now()
    }

    /// Offers the tickets to others.
    async fn list_for_sale(&self, hold: &Hold) {
        let request = FanRequest::post("/api/transfers").body(json!({ "reservationId": hold.id }));
        // From now on somebody else may have paid for it.
        self.rush.recorder.cancels(&hold.id);
        drop(self.request(Operation::Transfer, Instant::now(), request).await);
    }

    /// Looks for tickets of others and buys the first that can be had.
    async fn buy_from_other(&self) -> Option<FanOutcome> {
        let event_id = self.rush.event.id;
        for _ in 0..TRANSFER_LOOKS_MAX {
            let list = FanRequest::get(format!("/api/transfers?eventId={event_id}&limit=20"));
            let list = self.ask(Operation::Transfer, Instant::now(), list).await.ok()?;
            let offers = list["transfers"].as_array().into_iter().flatten();
            let mut free = offers.filter(|it| it["isBeingPaid"] != true && it["isMine"] != true);
            if let Some(offer) = free.nth(self.number % 3) {
                let body = json!({
                    "paymentType": "transfer", "referenceId": offer["id"],
                    "paymentMethod": "approve",
                });
                let request = FanRequest::post("/api/payments/process").body(body);
                let paid = self.request(Operation::Pay, Instant::now(), request).await.ok()?;
                if paid.status == StatusCode::OK && paid.body["success"] == true {
                    let won = |name: &str| offer[name].as_i64().unwrap_or(0);
                    self.rush.recorder.paid(won("totalPrice") - won("originalPrice"));
                    return Some(FanOutcome::BoughtTransfer);
                }
            }
            sleep(2 * PAUSE).await;
        }
        None
    }

    fn pause_until_poll(&self, status: &Value, polls: u32) -> Duration {
        if self.decisions.kind == FanKind::FastPoller {
            return FAST_POLL;
        }
        let seconds = status["nextPoll"].as_f64().unwrap_or(1.0).clamp(0.2, 120.0);
        let offline = match self.decisions.interruption {
            Some(Interruption::Offline(time)) if polls == 3 => time,
            _ => Duration::ZERO,
        };
        Duration::from_secs_f64(seconds) + offline
    }

    /// Tries until it has a hold, with other seats each time.
    async fn choose_seats(
        &self,
        entry_token: &str,
        mut wanted: Instant,
    ) -> Result<Hold, FanOutcome> {
        let mut count = self.decisions.seats.min(self.rush.event.seats_per_user_max).max(1);
        for choice in 0..CHOICES_MAX {
            let (request, wanted_at) =
                self.seat_request(entry_token, count, choice, wanted).await?;
            let response = self.reserve(request, wanted_at).await?;
            match response.code() {
                "" => return read_hold(&response.body, count).ok_or(FanOutcome::Failed),
                "SOLD_OUT" if self.rush.event.grades.len() <= 1 => return Err(FanOutcome::SoldOut),
                "SALE_ENDED" => return Err(FanOutcome::SoldOut),
                "NOT_ADJACENT" | "NOT_ENOUGH" => count = (count - 1).max(1),
                code if code.starts_with("ENTRY_TOKEN") || code == "SLOT_ENDED" => {
                    return Err(FanOutcome::NotPaid);
                }
                _ => {}
            }
            wanted = pause(PAUSE).await;
        }
        Err(FanOutcome::SoldOut)
    }

    /// The request for seats, and when the fan wants to send it: with a map at once when it is shown.
    async fn seat_request(
        &self,
        entry_token: &str,
        count: u32,
        choice: u32,
        wanted: Instant,
    ) -> Result<(FanRequest, Instant), FanOutcome> {
        let event = &self.rush.event;
        if !event.ticket_types.is_empty() {
            let id = at_share(&event.ticket_types, self.decisions.grade, choice);
            let items = json!([{ "ticketTypeId": id, "quantity": count }]);
            let body = json!({ "eventId": event.id, "items": items });
            let request = FanRequest::post("/api/reservations");
            return Ok((request.entry_token(entry_token).body(body), wanted));
        }
        if self.decisions.asks_for_best {
            let grade = at_share(&event.grades, self.decisions.grade, choice);
            let body = json!({ "eventId": event.id, "count": count, "grade": grade });
            let request = FanRequest::post("/api/seats/best");
            return Ok((request.entry_token(entry_token).body(body), wanted));
        }
        let seats = self.pick_seats(entry_token, count, choice, wanted).await?;
        let body = json!({ "eventId": event.id, "seatIds": seats });
        let request = FanRequest::post("/api/seats/reserve");
        Ok((request.entry_token(entry_token).body(body), Instant::now()))
    }

    /// Looks at the map and picks free neighbours.
    async fn pick_seats(
        &self,
        entry_token: &str,
        count: u32,
        choice: u32,
        wanted: Instant,
    ) -> Result<Vec<usize>, FanOutcome> {
        let event = &self.rush.event;
        let map = format!("/api/seats/events/{}?layout=false", event.id);
        let map = FanRequest::get(map).entry_token(entry_token);
        let map = self.ask(Operation::Map, wanted, map).await?;
        let statuses = map["statuses"].as_str().and_then(SeatStatuses::decode);
        let statuses = statuses.ok_or(FanOutcome::Failed)?;
        // Each try begins elsewhere, so that two fans do not chase each other.
        let position = (self.decisions.position + f64::from(choice) * 0.13).fract();
        let seats = statuses.pick(event.capacity, count as usize, position);
        seats.ok_or(FanOutcome::SoldOut)
    }

    /// Changes the seats of a hold for others. If they cannot be had, the fan keeps those of the hold.
    async fn change_seats(&self, hold: Hold, entry_token: &str) -> Hold {
        let picked = self.pick_seats(entry_token, hold.seats, CHOICES_MAX, Instant::now()).await;
        let Ok(seats) = picked else { return hold };
        let body = json!({ "seatIds": seats, "fencingToken": hold.fencing_token });
        let path = format!("/api/reservations/{}/seats", hold.id);
        let request = FanRequest::put(path).entry_token(entry_token).body(body);
        let changed = self.request(Operation::Reserve, Instant::now(), request).await;
        match changed.ok().filter(|response| response.status.is_success()) {
            Some(response) => read_hold(&response.body, hold.seats).unwrap_or(hold),
            None => hold,
        }
    }

    /// Reserves; some click twice, which must make one hold.
    async fn reserve(
        &self,
        request: FanRequest,
        wanted: Instant,
    ) -> Result<FanResponse, FanOutcome> {
        if self.decisions.kind == FanKind::TokenSharer {
            return self.reserve_from_two_devices(request, wanted).await;
        }
        let request = request.key(self.rush.ids.next_id());
        if !self.decisions.clicks_twice {
            return self.send_until_answered(Operation::Reserve, wanted, request).await;
        }
        let click = || self.send_until_answered(Operation::Reserve, wanted, request.clone());
        let (first, second) = tokio::join!(click(), click());
        let (first, second) = (first?, second?);
        let id = |response: &FanResponse| response.body["reservation"]["id"].clone();
        if first.code().is_empty() && second.code().is_empty() && id(&first) != id(&second) {
            let end = RequestEnd::Failed("a double click made two holds".to_owned());
            self.rush.recorder.request(Operation::Reserve, wanted, &end);
            return Err(FanOutcome::Failed);
        }
        Ok(if first.code().is_empty() { first } else { second })
    }

    /// Two devices ask with one entry token, each for itself: there must be one hold.
    async fn reserve_from_two_devices(
        &self,
        request: FanRequest,
        wanted: Instant,
    ) -> Result<FanResponse, FanOutcome> {
        let device = |key| self.request(Operation::Reserve, wanted, request.clone().key(key));
        let (first, second) =
            tokio::join!(device(self.rush.ids.next_id()), device(self.rush.ids.next_id()));
        let (first, second) = (first?, second?);
        let id = |response: &FanResponse| response.body["reservation"]["id"].clone();
        let both = first.code().is_empty() && second.code().is_empty();
        if both && id(&first) != id(&second) {
            return Err(FanOutcome::ProgramSucceeded);
        }
        Ok(if first.code().is_empty() { first } else { second })
    }

    /// The same request with the same key, as a page repeats it after the network was gone.
    async fn send_until_answered(
        &self,
        operation: Operation,
        wanted: Instant,
        request: FanRequest,
    ) -> Result<FanResponse, FanOutcome> {
        for _ in 1..self.decisions.tries {
            match self.request(operation, wanted, request.clone()).await {
                Ok(response) => return Ok(response),
                Err(_) => sleep(PAUSE).await,
            }
        }
        self.request(operation, wanted, request).await
    }

    async fn pay(&self, hold: &Hold, mut wanted: Instant) -> Result<(), FanOutcome> {
        let first = if self.decisions.is_declined_first { "decline" } else { self.decisions.card };
        // Whoever could not pay takes another card.
        let cards = if first == "approve" { vec![first] } else { vec![first, "approve"] };
        for card in cards {
            let body = json!({ "reservationId": hold.id, "paymentMethod": card });
            let request = FanRequest::post("/api/payments/process").body(body);
            let sent = self.request(Operation::Pay, wanted, request.clone()).await;
            // Whether it was paid is not known: the page asks, and pays again if it was not.
            let response = match sent {
                Ok(response) => response,
                Err(_) if self.await_outcome(hold, LOST_POLLS_MAX).await.is_ok() => return Ok(()),
                Err(_) => self.send_until_answered(Operation::Pay, wanted, request).await?,
            };
            match response.status {
                StatusCode::OK if response.body["success"] == true => return Ok(()),
                StatusCode::ACCEPTED => return self.await_outcome(hold, OUTCOME_POLLS_MAX).await,
                _ if response.code() == "ALREADY_PAID" => return Ok(()),
                _ => wanted = pause(PAUSE).await,
            }
        }
        Err(FanOutcome::NotPaid)
    }

    /// The outcome of a payment is not known yet: the page asks until it is.
    async fn await_outcome(&self, hold: &Hold, polls_max: u32) -> Result<(), FanOutcome> {
        for _ in 0..polls_max {
            let wanted = pause(PAUSE).await;
            let request = FanRequest::get(format!("/api/reservations/{}", hold.id));
            let found = self.ask(Operation::Poll, wanted, request).await?;
            match found["reservation"]["status"].as_str() {
                Some("confirmed") => return Ok(()),
                Some("pending") => {}
                _ => break,
            }
        }
        Err(FanOutcome::NotPaid)
    }

    /// Returns what is paid back, if it was cancelled.
    async fn cancel(&self, hold: &Hold, wanted: Instant) -> Option<i64> {
        let request = FanRequest::post(format!("/api/reservations/{}/cancel", hold.id));
        let answer = self.ask(Operation::Cancel, wanted, request).await.ok()?;
        Some(answer["reservation"]["refundAmount"].as_i64().unwrap_or(0))
    }

    async fn leave(&self) {
        let request = FanRequest::post(format!("/api/queue/leave/{}", self.rush.event.id));
        // A fan who leaves does not care for the answer; it was recorded.
        drop(self.request(Operation::Leave, Instant::now(), request).await);
    }

    /// Tries to reserve with the entry token of someone else.
    async fn steal(&self) -> Result<FanOutcome, FanOutcome> {
        for _ in 0..THEFT_POLLS_MAX {
            let stolen = &self.rush.stolen_token;
            let token = stolen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(token) = token {
                return self.reserve_as_program(Some(&token)).await;
            }
            sleep(PAUSE).await;
        }
        Ok(FanOutcome::ProgramRefused)
    }

    /// Tries to reserve without a token of its own.
    async fn reserve_as_program(&self, token: Option<&str>) -> Result<FanOutcome, FanOutcome> {
        let request = self.seat_of_program();
        let request = match token {
            Some(token) => request.entry_token(token),
            None => request,
        };
        let response = self.request(Operation::Reserve, Instant::now(), request).await?;
        Ok(match response.status.is_success() {
            true => FanOutcome::ProgramSucceeded,
            false => FanOutcome::ProgramRefused,
        })
    }

    fn seat_of_program(&self) -> FanRequest {
        let event = &self.rush.event;
        if let Some(id) = event.ticket_types.first() {
            let items = json!([{ "ticketTypeId": id, "quantity": 1 }]);
            return FanRequest::post("/api/reservations")
                .body(json!({ "eventId": event.id, "items": items }));
        }
        let seat = self.number % event.capacity.max(1);
        FanRequest::post("/api/seats/reserve")
            .body(json!({ "eventId": event.id, "seatIds": [seat] }))
    }

    /// A request whose answer is needed; errors of the system are tried again.
    async fn ask(
        &self,
        operation: Operation,
        wanted: Instant,
        request: FanRequest,
    ) -> Result<Value, FanOutcome> {
        for _ in 0..self.decisions.tries {
            match self.request(operation, wanted, request.clone()).await {
                Ok(response) if response.status.is_success() => return Ok(response.body),
                Ok(response) if response.code() == "SALE_ENDED" => return Err(FanOutcome::SoldOut),
                _ => sleep(PAUSE).await,
            }
        }
        Err(FanOutcome::Failed)
    }

    /// Sends a request, again and again while it is deferred. An answer is a success or a refusal
    /// that belongs to a sale.
    async fn request(
        &self,
        operation: Operation,
        wanted: Instant,
        request: FanRequest,
    ) -> Result<FanResponse, FanOutcome> {
        let operation = counted_as(self.decisions.kind, operation);
        let request = request.token(&self.account.token);
        for _ in 0..DEFERRALS_MAX {
            let sent = self.rush.client.send(self.number, request.clone()).await;
            let end = judge(&sent);
            self.rush.recorder.request(operation, wanted, &end);
            match (end, sent) {
                (RequestEnd::Done | RequestEnd::Refused, Ok(response)) => return Ok(response),
                (RequestEnd::Deferred, Ok(response)) => {
                    sleep(response.retry_after.unwrap_or(PAUSE)).await;
                }
                _ => return Err(FanOutcome::Failed),
            }
        }
        Err(FanOutcome::Failed)
    }
}

/// Waits, and returns when the wait was to end: a fan whom this machine wakes too late wanted to act
/// earlier.
async fn pause(time: Duration) -> Instant {
    let wanted = Instant::now() + time;
    sleep_until(wanted).await;
    wanted
}

/// What programs do against the rules is counted apart: limits are there to slow it down.
fn counted_as(kind: FanKind, operation: Operation) -> Operation {
    match (kind, operation) {
        (FanKind::FastPoller, Operation::Poll | Operation::Crowd | Operation::Leave)
        | (
            FanKind::TokenThief | FanKind::QueueSkipper | FanKind::TokenSharer,
            Operation::Reserve,
        ) => Operation::Program,
        (_, operation) => operation,
    }
}

/// How a request ended.
fn judge(sent: &Result<FanResponse, NoAnswer>) -> RequestEnd {
    let response = match sent {
        Ok(response) => response,
        Err(NoAnswer::Timeout) => return RequestEnd::Failed("no answer in 30 s".to_owned()),
        Err(NoAnswer::Broken) => return RequestEnd::Failed("no connection".to_owned()),
    };
    let (status, code) = (response.status, response.code());
    match () {
        () if status.is_success() => RequestEnd::Done,
        () if DEFERRALS.contains(&code) => RequestEnd::Deferred,
        () if REFUSALS.contains(&code) || status == StatusCode::PAYMENT_REQUIRED => {
            RequestEnd::Refused
        }
        () => RequestEnd::Failed(format!("{} {code}", status.as_u16())),
    }
}

fn first_visit(asked_at: Duration, joined_at: Duration, status: &Value) -> QueueVisit {
    QueueVisit {
        asked_at,
        joined_at,
        number: status["number"].as_i64(),
        slot_end_ms: None,
        admitted_at: None,
        estimate: told_wait(joined_at, status),
    }
}

/// The range of the wait, if it is known yet.
fn told_wait(at: Duration, status: &Value) -> Option<ToldWait> {
    let range = &status["estimatedWaitRange"];
    Some(ToldWait { at, from: range["from"].as_f64()?, to: range["to"].as_f64()? })
}

fn time_ms(value: &Value) -> Option<i64> {
    value.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

fn read_hold(body: &Value, seats: u32) -> Option<Hold> {
    let reservation = &body["reservation"];
    let id = reservation["id"].as_str()?.to_owned();
    let fencing_token = reservation["fencingToken"].as_i64()?;
    Some(Hold { id, seats, amount: reservation["totalAmount"].as_i64()?, fencing_token })
}

/// The element at a share of the list, and the ones after it for later choices.
fn at_share(list: &[String], share: f64, choice: u32) -> Option<&String> {
    let first = whole(share * list.len() as f64);
    list.get((first + choice as usize) % list.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: &str) -> Result<FanResponse, NoAnswer> {
        let body = if code.is_empty() { Value::Null } else { json!({ "code": code }) };
        let status = StatusCode::from_u16(status).unwrap();
        Ok(FanResponse { status, body, retry_after: None })
    }

    #[test]
    fn refusals_of_a_sale_are_no_failures_and_errors_are() {
        assert_eq!(judge(&answer(201, "")), RequestEnd::Done);
        assert_eq!(judge(&answer(409, "SEAT_TAKEN")), RequestEnd::Refused);
        assert_eq!(judge(&answer(402, "INSUFFICIENT_FUNDS")), RequestEnd::Refused);
        assert_eq!(judge(&answer(429, "RATE_LIMITED")), RequestEnd::Deferred);
        assert_eq!(judge(&answer(503, "OVERLOADED")), RequestEnd::Deferred);
        assert_eq!(judge(&answer(500, "")), RequestEnd::Failed("500 ".to_owned()));
        assert_eq!(
            judge(&answer(401, "UNAUTHORIZED")),
            RequestEnd::Failed("401 UNAUTHORIZED".to_owned())
        );
        assert!(matches!(judge(&Err(NoAnswer::Timeout)), RequestEnd::Failed(_)));
    }

    /// Their polls were 7 % of all that were deferred, and made a p99 of a second for everybody.
    #[test]
    fn what_programs_do_is_not_counted_as_what_people_do() {
        let counted = |kind| [Operation::Poll, Operation::Reserve].map(|it| counted_as(kind, it));
        assert_eq!(counted(FanKind::Person), [Operation::Poll, Operation::Reserve]);
        assert_eq!(counted(FanKind::FastPoller), [Operation::Program, Operation::Reserve]);
        assert_eq!(counted(FanKind::TokenThief), [Operation::Poll, Operation::Program]);
        assert_eq!(counted(FanKind::QueueSkipper), [Operation::Poll, Operation::Program]);
        assert_eq!(counted(FanKind::TokenSharer), [Operation::Poll, Operation::Program]);
    }

    #[test]
    fn later_choices_go_on_in_the_list() {
        let list = ["VIP", "R", "S"].map(str::to_owned);
        assert_eq!(at_share(&list, 0.5, 0).unwrap(), "R");
        assert_eq!(at_share(&list, 0.5, 2).unwrap(), "VIP");
        assert_eq!(at_share(&[], 0.5, 2), None);
    }
}
