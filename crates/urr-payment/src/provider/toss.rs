//! Toss Payments, version 2022-11-16 of its interface.
//!
//! Money moves when we confirm, and only then. An idempotency key is good for fifteen days, and a
//! repeated request gets the first answer again; the body is not compared, so a key belongs to one
//! charge or one return alone.

mod codes;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;
use urr_kernel::{Clock, Secret, Timestamp, Won};
use urr_outbound::{Outbound, OutboundResponse, encode_form};

use super::line::{
    self, InvalidCredential, Line, LineOptions, METHOD_CHARS_MAX, Silence, clean_credential,
    code_of, path_segment, sensitive,
};
use super::{
    CURRENCY, Charge, Found, ListedOrder, Outcome, ProviderPayment, ProviderState, Return,
    Standing, UNREADABLE,
};

/// Where Toss answers.
pub const TOSS_ENDPOINT: &str = "https://api.tosspayments.com";
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 300;
const REASON_CHARS_MAX: usize = 200;
/// "This method of payment is not supported."
const CALLED_OFF: &str = "지원하지 않는 결제 수단입니다.";
/// So many transactions fit the longest answer that is read.
const PAGE_SIZE: usize = 1_000;
/// A span with more transactions is not listed.
const PAGES_MAX: usize = 50;

#[derive(Clone, Debug)]
pub struct TossSettings {
    pub secret_key: Secret,
    /// Pages need it; it is public.
    pub client_key: String,
    /// [`TOSS_ENDPOINT`], unless it is a test.
    pub endpoint: String,
    /// [`super::CALL_TIMEOUT`], unless it is a test.
    pub timeout: Duration,
}

/// Toss as a provider. Clones share the connections and the breaker.
#[derive(Clone)]
pub struct Toss(Arc<Inner>);

struct Inner {
    line: Line,
    /// For whoever compares the books: what fails there closes nothing to buyers.
    books: Line,
    client_key: String,
}

/// A payment as Toss writes it, as far as it matters here. It may grow fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TossPayment {
    payment_key: String,
    order_id: String,
    currency: String,
    method: Option<String>,
    total_amount: i64,
    balance_amount: i64,
    status: String,
    approved_at: Option<Timestamp>,
    receipt: Option<TossReceipt>,
}

#[derive(Deserialize)]
struct TossReceipt {
    url: Option<String>,
}

#[derive(Deserialize)]
struct TossRefusal {
    code: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TossTransaction {
    transaction_key: String,
    order_id: String,
    status: Option<String>,
    currency: Option<String>,
    amount: Option<i64>,
}

impl TossTransaction {
    fn standing(&self) -> Standing {
        let is_charge = self.status.as_deref() == Some("DONE");
        let is_won = self.currency.as_deref() == Some(CURRENCY);
        match self.amount {
            Some(amount) if is_charge && is_won => Standing::Charged(Won::new(amount)),
            _ => Standing::Unclear,
        }
    }
}

/// The orders of a list, in its order. Of one that moved more than once the list does not tell how
/// it stands.
#[derive(Default)]
struct Moves {
    orders: Vec<ListedOrder>,
    known: HashMap<String, usize>,
}

impl Moves {
    fn add(&mut self, transaction: TossTransaction) {
        match self.known.get(&transaction.order_id) {
            Some(at) => self.orders[*at].standing = Standing::Unclear,
            None => {
                self.known.insert(transaction.order_id.clone(), self.orders.len());
                let standing = transaction.standing();
                self.orders.push(ListedOrder { order_id: transaction.order_id, standing });
            }
        }
    }

    fn into_orders(self) -> Vec<ListedOrder> {
        self.orders
    }
}

impl Toss {
    pub fn new(
        settings: TossSettings,
        outbound: Outbound,
        clock: Clock,
    ) -> Result<Toss, InvalidCredential> {
        let secret = clean_credential(settings.secret_key.expose())?;
        // The colon belongs there: the key is a name without a password.
        let authorization = sensitive(&format!("Basic {}", STANDARD.encode(format!("{secret}:"))))?;
        let TossSettings { client_key, endpoint, timeout, .. } = settings;
        let is_failure = |answer: &OutboundResponse| {
            let code = refusal_code(answer);
            let is_of_one = codes::FAILED_FOR_ONE.contains(&code.as_str());
            let is_ill = answer.status.is_server_error() && !is_of_one;
            is_ill || line::is_refused(answer.status, &code)
        };
        let options = LineOptions { outbound, clock, endpoint, authorization, timeout, is_failure };
        let books = Line::new(options.clone());
        Ok(Toss(Arc::new(Inner { line: Line::new(options), books, client_key })))
    }

    pub fn client_key(&self) -> &str {
        &self.0.client_key
    }

    pub(super) fn timeout(&self) -> Duration {
        self.0.line.timeout()
    }

    pub async fn confirm(&self, charge: &Charge) -> Outcome<ProviderPayment> {
        let body = json!({
            "paymentKey": charge.payment_key,
            "orderId": charge.order_id,
            "amount": charge.amount.amount(),
        });
        let key = idempotency_key(&charge.idempotency_key);
        let answer = self.0.line.post("/v1/payments/confirm", key, &body).await;
        sort(answer, codes::CONFIRM_DECLINED)
    }

    /// The amount is always named: without one, Toss gives everything back.
    pub async fn cancel(&self, what: &Return) -> Outcome<ProviderPayment> {
        let path = format!("/v1/payments/{}/cancel", path_segment(&what.payment_key));
        let reason: String = what.reason.chars().take(REASON_CHARS_MAX).collect();
        let body = json!({ "cancelReason": reason, "cancelAmount": what.amount.amount() });
        let key = idempotency_key(&what.idempotency_key);
        sort(self.0.line.post(&path, key, &body).await, codes::CANCEL_DECLINED)
    }

    /// Nothing was paid, so no amount is named: Toss takes none of an account that waits.
    pub(super) async fn call_off(&self, charge: &Charge) -> Outcome<ProviderPayment> {
        let path = format!("/v1/payments/{}/cancel", path_segment(&charge.payment_key));
        let body = json!({ "cancelReason": CALLED_OFF });
        let key = idempotency_key(&charge.idempotency_key);
        sort(self.0.line.post(&path, key, &body).await, codes::CANCEL_DECLINED)
    }

    pub async fn find(&self, order_id: &str, _payment_key: Option<&str>) -> Found {
        find_on(&self.0.line, order_id).await
    }

    pub(super) async fn find_for_books(&self, order_id: &str) -> Found {
        find_on(&self.0.books, order_id).await
    }

    /// The orders with transactions, which are charges and returns, in the span: each once. Or a
    /// code, if there is no whole list.
    pub(super) async fn list_orders(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ListedOrder>, String> {
        let mut moves = Moves::default();
        let mut after: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let (start, end) = (local(from), local(to));
            let limit = PAGE_SIZE.to_string();
            let mut fields =
                vec![("startDate", start.as_str()), ("endDate", &end), ("limit", &limit)];
            if let Some(after) = &after {
                fields.push(("startingAfter", after));
            }
            let path = format!("/v1/transactions?{}", encode_form(&fields));
            let answer = self.0.books.get(&path).await.map_err(|Silence(code)| code.to_owned())?;
            if !answer.status.is_success() {
                return Err(refusal_code(&answer));
            }
            let page: Vec<TossTransaction> = answer.json().map_err(|_| UNREADABLE.to_owned())?;
            let is_last = page.len() < PAGE_SIZE;
            after = page.last().map(|transaction| transaction.transaction_key.clone());
            page.into_iter().for_each(|transaction| moves.add(transaction));
            if is_last {
                return Ok(moves.into_orders());
            }
        }
        Err("TOO_MANY_TRANSACTIONS".to_owned())
    }
}

async fn find_on(line: &Line, order_id: &str) -> Found {
    let path = format!("/v1/payments/orders/{}", path_segment(order_id));
    let answer = match line.get(&path).await {
        Ok(answer) => answer,
        Err(Silence(code)) => return Found::unknown(code),
    };
    if answer.status.is_success() {
        return match read_payment(&answer) {
            Some(payment) => Found::Payment(payment),
            None => Found::unknown(UNREADABLE),
        };
    }
    match refusal_code(&answer) {
        // Only this code in this place says so. A 404 of anybody on the way does not.
        code if answer.status == StatusCode::NOT_FOUND && code == "NOT_FOUND_PAYMENT" => {
            Found::Nothing
        }
        code => Found::unknown(code),
    }
}

/// One of three: done, declined by a code that is known to mean so, and everything else.
fn sort(answer: Result<OutboundResponse, Silence>, declined: &[&str]) -> Outcome<ProviderPayment> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(silence) => return silence.outcome(),
    };
    if answer.status.is_success() {
        return match read_payment(&answer) {
            Some(payment) => Outcome::Done(payment),
            None => Outcome::unknown(UNREADABLE),
        };
    }
    let code = refusal_code(&answer);
    match answer.status.is_client_error() && declined.contains(&code.as_str()) {
        true => Outcome::Declined { code },
        false => Outcome::Unknown { code },
    }
}

fn refusal_code(answer: &OutboundResponse) -> String {
    let refusal = answer.json::<TossRefusal>().ok();
    code_of(refusal.as_ref().map(|refusal| refusal.code.as_str()), answer.status)
}

/// None if it is no payment, or one in a state that is not known.
fn read_payment(answer: &OutboundResponse) -> Option<ProviderPayment> {
    let payment: TossPayment = answer.json().ok()?;
    let state = match payment.status.as_str() {
        "READY" | "IN_PROGRESS" => ProviderState::Open,
        "WAITING_FOR_DEPOSIT" => ProviderState::Deposit,
        "DONE" | "PARTIAL_CANCELED" => ProviderState::Paid,
        // An account nobody paid into is cancelled, too.
        "CANCELED" if payment.approved_at.is_none() => ProviderState::Dead,
        "CANCELED" => ProviderState::Returned,
        "ABORTED" | "EXPIRED" => ProviderState::Dead,
        _ => return None,
    };
    let returned = match state {
        ProviderState::Paid | ProviderState::Returned => {
            payment.total_amount.checked_sub(payment.balance_amount)?
        }
        ProviderState::Open | ProviderState::Deposit | ProviderState::Dead => 0,
    };
    (0..=payment.total_amount).contains(&returned).then_some(ProviderPayment {
        order_id: payment.order_id,
        payment_key: payment.payment_key,
        transaction_id: None,
        amount: Won::new(payment.total_amount),
        currency: payment.currency,
        state,
        returned: Won::new(returned),
        method: line::one_line(payment.method, METHOD_CHARS_MAX),
        approved_at: line::time(payment.approved_at),
        receipt_url: line::link(payment.receipt.and_then(|receipt| receipt.url)),
    })
}

fn idempotency_key(key: &str) -> HeaderValue {
    assert!(key.len() <= IDEMPOTENCY_KEY_CHARS_MAX, "our keys are short");
    HeaderValue::from_str(key).expect("our keys are visible ASCII")
}

/// Toss takes the time of Korea, without saying so: `2026-03-01T20:00:00`.
fn local(time: Timestamp) -> String {
    let korea = TimeZone::fixed(jiff::tz::offset(9));
    time.to_zoned(korea).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
