//! Toss Payments, version 2022-11-16 of its interface.
//!
//! Money moves only when we confirm. An idempotency key is valid for fifteen days, and a repeated
//! request gets the first answer again. Toss does not compare the bodies, so a key must belong to
//! one charge or one refund only.

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

use super::http::{
    self, InvalidProviderCredential, METHOD_CHARS_MAX, NoAnswer, ProviderHttp, ProviderHttpOptions,
    error_code, path_segment, sensitive, trim_credential,
};
use super::{
    CURRENCY, ChargeRequest, ListedOrder, ListedState, PaymentChannel, ProviderLookup,
    ProviderOutcome, ProviderPayment, ProviderState, RefundRequest, UNREADABLE,
};

/// The URL of Toss.
pub const TOSS_ENDPOINT: &str = "https://api.tosspayments.com";
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 300;
const REASON_CHARS_MAX: usize = 200;
/// "This method of payment is not supported."
const DEPOSIT_CLOSED_REASON: &str = "지원하지 않는 결제 수단입니다.";
/// This many transactions fit the longest answer that we read.
const PAGE_SIZE: usize = 1_000;
/// A time range with more pages is not listed.
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
pub struct TossClient(Arc<Inner>);

struct Inner {
    http: ProviderHttp,
    /// For the reconciliation: its failures do not open the breaker of buyers.
    reconciliation: ProviderHttp,
    client_key: String,
}

/// The fields of a Toss payment that we read.
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
    fn state(&self) -> ListedState {
        let is_charge = self.status.as_deref() == Some("DONE");
        let is_won = self.currency.as_deref() == Some(CURRENCY);
        match self.amount {
            Some(amount) if is_charge && is_won => ListedState::Charged(Won::new(amount)),
            _ => ListedState::Unclear,
        }
    }
}

/// The orders of a list. For an order with several transactions, the list does not tell the state.
#[derive(Default)]
struct TossOrders {
    orders: Vec<ListedOrder>,
    known: HashMap<String, usize>,
}

impl TossOrders {
    fn add(&mut self, transaction: TossTransaction) {
        match self.known.get(&transaction.order_id) {
            Some(at) => self.orders[*at].state = ListedState::Unclear,
            None => {
                self.known.insert(transaction.order_id.clone(), self.orders.len());
                let state = transaction.state();
                self.orders.push(ListedOrder { order_id: transaction.order_id, state });
            }
        }
    }

    fn into_orders(self) -> Vec<ListedOrder> {
        self.orders
    }
}

impl TossClient {
    pub fn new(
        settings: TossSettings,
        outbound: Outbound,
        clock: Clock,
    ) -> Result<TossClient, InvalidProviderCredential> {
        let secret = trim_credential(settings.secret_key.expose())?;
        // The key is a user name without a password, hence the colon.
        let authorization = sensitive(&format!("Basic {}", STANDARD.encode(format!("{secret}:"))))?;
        let TossSettings { client_key, endpoint, timeout, .. } = settings;
        let is_failure = |answer: &OutboundResponse| {
            let code = refusal_code(answer);
            let is_of_one = codes::FAILED_FOR_ONE.contains(&code.as_str());
            let is_ill = answer.status.is_server_error() && !is_of_one;
            is_ill || http::is_refused(answer.status, &code)
        };
        let options =
            ProviderHttpOptions { outbound, clock, endpoint, authorization, timeout, is_failure };
        let reconciliation = ProviderHttp::new(options.clone());
        Ok(TossClient(Arc::new(Inner {
            http: ProviderHttp::new(options),
            reconciliation,
            client_key,
        })))
    }

    pub fn client_key(&self) -> &str {
        &self.0.client_key
    }

    pub(super) fn timeout(&self) -> Duration {
        self.0.http.timeout()
    }

    pub async fn confirm(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        let body = json!({
            "paymentKey": charge.payment_key,
            "orderId": charge.order_id,
            "amount": charge.amount.amount(),
        });
        let key = idempotency_key(&charge.idempotency_key);
        let answer = self.0.http.post("/v1/payments/confirm", key, &body).await;
        sort(answer, codes::CONFIRM_DECLINED)
    }

    /// The amount is always sent: without one, Toss refunds everything.
    pub async fn cancel(&self, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
        let path = format!("/v1/payments/{}/cancel", path_segment(&what.payment_key));
        let reason: String = what.reason.chars().take(REASON_CHARS_MAX).collect();
        let body = json!({ "cancelReason": reason, "cancelAmount": what.amount.amount() });
        let key = idempotency_key(&what.idempotency_key);
        sort(self.0.http.post(&path, key, &body).await, codes::CANCEL_DECLINED)
    }

    /// No amount is sent, because nothing was paid: Toss refuses one for a waiting account.
    pub(super) async fn close_deposit(
        &self,
        charge: &ChargeRequest,
    ) -> ProviderOutcome<ProviderPayment> {
        let path = format!("/v1/payments/{}/cancel", path_segment(&charge.payment_key));
        let body = json!({ "cancelReason": DEPOSIT_CLOSED_REASON });
        let key = idempotency_key(&charge.idempotency_key);
        sort(self.0.http.post(&path, key, &body).await, codes::CANCEL_DECLINED)
    }

    pub async fn find(&self, order_id: &str, _payment_key: Option<&str>) -> ProviderLookup {
        find_on(&self.0.http, order_id).await
    }

    pub(super) async fn find_for_reconciliation(&self, order_id: &str) -> ProviderLookup {
        find_on(&self.0.reconciliation, order_id).await
    }

    /// The orders with transactions (charges and refunds) in the time range, each once; or a code if
    /// the list is incomplete.
    pub(super) async fn list_orders(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ListedOrder>, String> {
        let mut orders = TossOrders::default();
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
            let answer =
                self.0.reconciliation.get(&path).await.map_err(|NoAnswer(code)| code.to_owned())?;
            if !answer.status.is_success() {
                return Err(refusal_code(&answer));
            }
            let page: Vec<TossTransaction> = answer.json().map_err(|_| UNREADABLE.to_owned())?;
            let is_last = page.len() < PAGE_SIZE;
            after = page.last().map(|transaction| transaction.transaction_key.clone());
            page.into_iter().for_each(|transaction| orders.add(transaction));
            if is_last {
                return Ok(orders.into_orders());
            }
        }
        Err("TOO_MANY_TRANSACTIONS".to_owned())
    }
}

async fn find_on(http: &ProviderHttp, order_id: &str) -> ProviderLookup {
    let path = format!("/v1/payments/orders/{}", path_segment(order_id));
    let answer = match http.get(&path).await {
        Ok(answer) => answer,
        Err(NoAnswer(code)) => return ProviderLookup::unknown(code),
    };
    if answer.status.is_success() {
        return match read_payment(&answer) {
            Some(payment) => ProviderLookup::Payment(payment),
            None => ProviderLookup::unknown(UNREADABLE),
        };
    }
    match refusal_code(&answer) {
        // Only this code with this status says so. A 404 of a proxy does not.
        code if answer.status == StatusCode::NOT_FOUND && code == "NOT_FOUND_PAYMENT" => {
            ProviderLookup::NotFound
        }
        code => ProviderLookup::unknown(code),
    }
}

/// Done, declined by a code that is known to mean so, or unknown.
fn sort(
    answer: Result<OutboundResponse, NoAnswer>,
    declined: &[&str],
) -> ProviderOutcome<ProviderPayment> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(silence) => return silence.outcome(),
    };
    if answer.status.is_success() {
        return match read_payment(&answer) {
            Some(payment) => ProviderOutcome::Done(payment),
            None => ProviderOutcome::unknown(UNREADABLE),
        };
    }
    let code = refusal_code(&answer);
    match answer.status.is_client_error() && declined.contains(&code.as_str()) {
        true => ProviderOutcome::Declined { code },
        false => ProviderOutcome::Unknown { code },
    }
}

fn refusal_code(answer: &OutboundResponse) -> String {
    let refusal = answer.json::<TossRefusal>().ok();
    error_code(refusal.as_ref().map(|refusal| refusal.code.as_str()), answer.status)
}

/// None if it is no payment, or its status is not known.
fn read_payment(answer: &OutboundResponse) -> Option<ProviderPayment> {
    let payment: TossPayment = answer.json().ok()?;
    let state = match payment.status.as_str() {
        "READY" | "IN_PROGRESS" => ProviderState::Open,
        "WAITING_FOR_DEPOSIT" => ProviderState::Deposit,
        "DONE" | "PARTIAL_CANCELED" => ProviderState::Paid,
        // A deposit account that was never used is cancelled as well.
        "CANCELED" if payment.approved_at.is_none() => ProviderState::Dead,
        "CANCELED" => ProviderState::Refunded,
        "ABORTED" | "EXPIRED" => ProviderState::Dead,
        _ => return None,
    };
    let refunded = match state {
        ProviderState::Paid | ProviderState::Refunded => {
            payment.total_amount.checked_sub(payment.balance_amount)?
        }
        ProviderState::Open | ProviderState::Deposit | ProviderState::Dead => 0,
    };
    (0..=payment.total_amount).contains(&refunded).then_some(ProviderPayment {
        order_id: payment.order_id,
        payment_key: payment.payment_key,
        transaction_id: None,
        amount: Won::new(payment.total_amount),
        currency: payment.currency,
        state,
        refunded: Won::new(refunded),
        method: http::one_line(payment.method, METHOD_CHARS_MAX),
        approved_at: http::time(payment.approved_at),
        receipt_url: http::link(payment.receipt.and_then(|receipt| receipt.url)),
        // Toss has no channels: whether it is a test depends on our secret key alone.
        channel: PaymentChannel::Configured,
    })
}

fn idempotency_key(key: &str) -> HeaderValue {
    assert!(key.len() <= IDEMPOTENCY_KEY_CHARS_MAX, "our keys are short");
    HeaderValue::from_str(key).expect("our keys are visible ASCII")
}

/// Toss expects Korean time without an offset: `2026-03-01T20:00:00`.
fn local(time: Timestamp) -> String {
    let korea = TimeZone::fixed(jiff::tz::offset(9));
    time.to_zoned(korea).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
