//! PortOne, second version of its interface, with manual confirmation.
//!
//! A payment is identified by our order id. The payment key that the buyer's browser sends is a token
//! for the confirmation. Answers to changes say little, so the payment is read after each. An
//! idempotency key is valid for three hours only.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use urr_kernel::{Clock, Secret, Timestamp, Won};
use urr_outbound::{Outbound, OutboundResponse, encode_form};

use super::http::{
    self, InvalidProviderCredential, METHOD_CHARS_MAX, NoAnswer, ProviderHttp, ProviderHttpOptions,
    error_code, path_segment, sensitive, trim_credential,
};
use super::webhook::{self, SECRETS_MAX, WebhookSecret};
use super::{
    CURRENCY, ChargeRequest, ListedOrder, ListedState, PaymentChannel, ProviderLookup,
    ProviderOutcome, ProviderPayment, ProviderState, RefundRequest, STORE_MISMATCH, UNREADABLE,
    WebhookNotice, WebhookRejection,
};

/// The URL of PortOne.
pub const PORTONE_ENDPOINT: &str = "https://api.portone.io";
/// A declined card is reported as a failure of the provider behind PortOne, with status 502.
const DECLINED_BEHIND: &str = "PG_PROVIDER";
/// This many events fit the longest answer that we read.
const PAGE_SIZE: usize = 100;
/// A time range with more pages is not listed.
const PAGES_MAX: usize = 500;

/// Codes by which PortOne refuses to confirm. The token may have been used by an earlier attempt that
/// succeeded, so the payment is read before any of them is believed.
const CONFIRM_REFUSED: &[&str] = &[
    "INFORMATION_MISMATCH",
    "INVALID_PAYMENT_TOKEN",
    "INVALID_REQUEST",
    "MAX_TRANSACTION_COUNT_REACHED",
    "PAYMENT_NOT_FOUND",
    DECLINED_BEHIND,
];

/// Codes by which PortOne refuses to refund, whatever happened before. Codes about amounts and counts
/// are absent: an earlier attempt that succeeded would cause them.
const CANCEL_DECLINED: &[&str] = &["INVALID_REQUEST", "PAYMENT_NOT_FOUND", "PAYMENT_NOT_PAID"];

#[derive(Clone, Debug)]
pub struct PortOneSettings {
    pub api_secret: Secret,
    /// Pages need it and the next one; both are public.
    pub store_id: String,
    pub channel_key: String,
    /// Whether a payment by a channel for tests, which moves no money, counts.
    pub accepts_test_channel: bool,
    /// One, or two while it is replaced.
    pub webhook_secrets: Vec<Secret>,
    /// [`PORTONE_ENDPOINT`], unless it is a test.
    pub endpoint: String,
    /// [`super::CALL_TIMEOUT`], unless it is a test.
    pub timeout: Duration,
}

/// PortOne as a provider. Clones share the connections and the breaker.
#[derive(Clone)]
pub struct PortOneClient(Arc<Inner>);

struct Inner {
    http: ProviderHttp,
    /// For the reconciliation: its failures do not open the breaker of buyers.
    reconciliation: ProviderHttp,
    store_id: String,
    channel_key: String,
    accepts_test_channel: bool,
    webhook_secrets: Vec<WebhookSecret>,
}

/// The fields of a PortOne payment that we read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PortOnePayment {
    id: String,
    status: String,
    store_id: String,
    /// Absent before the buyer has chosen how to pay.
    channel: Option<PortOneChannel>,
    transaction_id: Option<String>,
    method: Option<PortOneMethod>,
    amount: PortOneAmount,
    currency: String,
    paid_at: Option<Timestamp>,
    receipt_url: Option<String>,
}

/// PortOne leaves the key out for channels that were made without one.
#[derive(Deserialize)]
struct PortOneChannel {
    #[serde(rename = "type")]
    kind: String,
    key: Option<String>,
}

#[derive(Deserialize)]
struct PortOneMethod {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct PortOneAmount {
    total: i64,
    cancelled: i64,
}

#[derive(Deserialize)]
struct PortOneRefusal {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct PortOneCancelled {
    cancellation: PortOneCancellation,
}

#[derive(Deserialize)]
struct PortOneCancellation {
    status: String,
}

#[derive(Deserialize)]
struct PortOnePage {
    items: Vec<PortOneItem>,
}

#[derive(Deserialize)]
struct PortOneItem {
    #[serde(rename = "paymentEvent")]
    event: PortOneEvent,
    cursor: String,
}

#[derive(Deserialize)]
struct PortOneEvent {
    #[serde(rename = "paymentId")]
    payment_id: String,
}

impl PortOneClient {
    pub fn new(
        settings: PortOneSettings,
        outbound: Outbound,
        clock: Clock,
    ) -> Result<PortOneClient, InvalidProviderCredential> {
        let secret = trim_credential(settings.api_secret.expose())?;
        let authorization = sensitive(&format!("PortOne {secret}"))?;
        let PortOneSettings { store_id, channel_key, accepts_test_channel, .. } = settings;
        let PortOneSettings { webhook_secrets, endpoint, timeout, .. } = settings;
        let secrets: Option<Vec<WebhookSecret>> =
            webhook_secrets.iter().map(WebhookSecret::parse).collect();
        let webhook_secrets = secrets
            .filter(|secrets| secrets.len() <= SECRETS_MAX)
            .ok_or(InvalidProviderCredential)?;
        let options = ProviderHttpOptions {
            outbound,
            clock,
            endpoint,
            authorization,
            timeout,
            // If declined cards counted, a few of them would open the breaker for everybody (M-12).
            is_failure: |answer| {
                let code = refusal_code(answer);
                let is_ill = answer.status.is_server_error() && code != DECLINED_BEHIND;
                is_ill || http::is_refused(answer.status, &code)
            },
        };
        let (reconciliation, http) =
            (ProviderHttp::new(options.clone()), ProviderHttp::new(options));
        Ok(PortOneClient(Arc::new(Inner {
            http,
            reconciliation,
            store_id,
            channel_key,
            accepts_test_channel,
            webhook_secrets,
        })))
    }

    pub fn store_id(&self) -> &str {
        &self.0.store_id
    }

    pub fn channel_key(&self) -> &str {
        &self.0.channel_key
    }

    pub(super) fn timeout(&self) -> Duration {
        self.0.http.timeout()
    }

    pub async fn confirm(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        let path = format!("/payments/{}/confirm", path_segment(&charge.order_id));
        let body = json!({
            "storeId": self.0.store_id,
            "paymentToken": charge.payment_key,
            "totalAmount": charge.amount.amount(),
            "currency": CURRENCY,
        });
        let key = idempotency_key(&charge.idempotency_key);
        let answer = match self.0.http.post(&path, key, &body).await {
            Ok(answer) => answer,
            Err(silence) => return silence.outcome(),
        };
        if answer.status.is_success() {
            return self.read_back(&charge.order_id, &charge.payment_key).await;
        }
        let code = refusal_code(&answer);
        match CONFIRM_REFUSED.contains(&code.as_str()) && self.is_unpaid(charge, &code).await {
            true => ProviderOutcome::Declined { code },
            false => ProviderOutcome::Unknown { code },
        }
    }

    pub async fn cancel(&self, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
        let path = format!("/payments/{}/cancel", path_segment(&what.order_id));
        let body = json!({
            "storeId": self.0.store_id,
            "amount": what.amount.amount(),
            "currentCancellableAmount": what.remaining.amount(),
            "reason": what.reason,
        });
        let key = idempotency_key(&what.idempotency_key);
        let answer = match self.0.http.post(&path, key, &body).await {
            Ok(answer) => answer,
            Err(silence) => return silence.outcome(),
        };
        if !answer.status.is_success() {
            let code = refusal_code(&answer);
            let is_refusal = answer.status.is_client_error();
            return match is_refusal && CANCEL_DECLINED.contains(&code.as_str()) {
                true => ProviderOutcome::Declined { code },
                false => ProviderOutcome::Unknown { code },
            };
        }
        match answer.json::<PortOneCancelled>().map(|cancelled| cancelled.cancellation.status) {
            Ok(status) if status == "SUCCEEDED" => {
                self.read_back(&what.order_id, &what.payment_key).await
            }
            Ok(status) if status == "FAILED" => ProviderOutcome::declined("CANCELLATION_FAILED"),
            // Requested, and not done yet.
            Ok(status) if status == "REQUESTED" => {
                ProviderOutcome::unknown("CANCELLATION_REQUESTED")
            }
            _ => ProviderOutcome::unknown(UNREADABLE),
        }
    }

    pub(super) async fn close_deposit(
        &self,
        charge: &ChargeRequest,
    ) -> ProviderOutcome<ProviderPayment> {
        let store = encode_form(&[("storeId", &self.0.store_id)]);
        let order = path_segment(&charge.order_id);
        let path = format!("/payments/{order}/virtual-account/close?{store}");
        let key = idempotency_key(&charge.idempotency_key);
        let answer = match self.0.http.post(&path, key, &json!({})).await {
            Ok(answer) => answer,
            Err(silence) => return silence.outcome(),
        };
        match answer.status.is_success() {
            true => self.read_back(&charge.order_id, &charge.payment_key).await,
            false => ProviderOutcome::unknown(refusal_code(&answer)),
        }
    }

    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> ProviderLookup {
        self.find_on(&self.0.http, order_id, payment_key).await
    }

    pub(super) async fn find_for_reconciliation(
        &self,
        order_id: &str,
        payment_key: Option<&str>,
    ) -> ProviderLookup {
        self.find_on(&self.0.reconciliation, order_id, payment_key).await
    }

    async fn find_on(
        &self,
        http: &ProviderHttp,
        order_id: &str,
        payment_key: Option<&str>,
    ) -> ProviderLookup {
        // Without the shop's id, only payments of the first shop are found.
        let store = encode_form(&[("storeId", &self.0.store_id)]);
        let path = format!("/payments/{}?{store}", path_segment(order_id));
        let answer = match http.get(&path).await {
            Ok(answer) => answer,
            Err(NoAnswer(code)) => return ProviderLookup::unknown(code),
        };
        if answer.status.is_success() {
            let Ok(payment) = answer.json::<PortOnePayment>() else {
                return ProviderLookup::unknown(UNREADABLE);
            };
            if payment.store_id != self.0.store_id {
                return ProviderLookup::unknown(STORE_MISMATCH);
            }
            let channel = self.check_channel(payment.channel.as_ref());
            return match into_payment(payment, payment_key, channel) {
                Some(payment) => ProviderLookup::Payment(payment),
                None => ProviderLookup::unknown(UNREADABLE),
            };
        }
        match refusal_code(&answer) {
            // Only this code with this status says so. A 404 of a proxy does not.
            code if answer.status == StatusCode::NOT_FOUND && code == "PAYMENT_NOT_FOUND" => {
                ProviderLookup::NotFound
            }
            code => ProviderLookup::unknown(code),
        }
    }

    /// The browser names the channel when it opens the checkout, so it may name any of the store.
    fn check_channel(&self, channel: Option<&PortOneChannel>) -> PaymentChannel {
        let Some(channel) = channel else { return PaymentChannel::Other };
        match channel.kind.as_str() {
            _ if channel.key.as_deref() != Some(&self.0.channel_key) => PaymentChannel::Other,
            "LIVE" => PaymentChannel::Configured,
            "TEST" if self.0.accepts_test_channel => PaymentChannel::Configured,
            "TEST" => PaymentChannel::Test,
            _ => PaymentChannel::Other,
        }
    }

    /// The orders with events (charges and refunds) in the time range, each once; or a code if the
    /// list is incomplete.
    pub(super) async fn list_orders(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ListedOrder>, String> {
        let (mut orders, mut known) = (Vec::new(), HashSet::new());
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut asked = json!({
                "storeId": self.0.store_id,
                "from": from.to_string(),
                "until": to.to_string(),
                "size": PAGE_SIZE,
            });
            if let Some(cursor) = &cursor {
                asked["cursor"] = json!(cursor);
            }
            let query = encode_form(&[("requestBody", &asked.to_string())]);
            let path = format!("/payment-events-by-cursor?{query}");
            let answer =
                self.0.reconciliation.get(&path).await.map_err(|NoAnswer(code)| code.to_owned())?;
            if !answer.status.is_success() {
                return Err(refusal_code(&answer));
            }
            let page: PortOnePage = answer.json().map_err(|_| UNREADABLE.to_owned())?;
            let is_last = page.items.len() < PAGE_SIZE;
            cursor = page.items.last().map(|item| item.cursor.clone());
            for PortOneItem { event, .. } in page.items {
                if known.insert(event.payment_id.clone()) {
                    let state = ListedState::Unclear;
                    orders.push(ListedOrder { order_id: event.payment_id, state });
                }
            }
            if is_last {
                return Ok(orders);
            }
        }
        Err("TOO_MANY_EVENTS".to_owned())
    }

    pub(super) fn read_webhook(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<WebhookNotice>, WebhookRejection> {
        webhook::read_portone(headers, body, &self.0.webhook_secrets, now)
    }

    /// Reads the payment after a change that PortOne reports as done.
    async fn read_back(
        &self,
        order_id: &str,
        payment_key: &str,
    ) -> ProviderOutcome<ProviderPayment> {
        match self.find(order_id, Some(payment_key)).await {
            ProviderLookup::Payment(payment) => ProviderOutcome::Done(payment),
            ProviderLookup::NotFound => ProviderOutcome::unknown("PAYMENT_NOT_FOUND"),
            ProviderLookup::Unknown { code } => ProviderOutcome::Unknown { code },
        }
    }

    /// Whether a refused payment was not paid by an earlier attempt either. A payment that the provider
    /// behind PortOne has declined must be dead: an open one may still be under way.
    async fn is_unpaid(&self, charge: &ChargeRequest, code: &str) -> bool {
        match self.find(&charge.order_id, Some(&charge.payment_key)).await {
            ProviderLookup::Payment(payment) => match payment.state {
                ProviderState::Dead => true,
                ProviderState::Open => code != DECLINED_BEHIND,
                ProviderState::Deposit | ProviderState::Paid | ProviderState::Refunded => false,
            },
            ProviderLookup::NotFound => code != DECLINED_BEHIND,
            ProviderLookup::Unknown { .. } => false,
        }
    }
}

fn refusal_code(answer: &OutboundResponse) -> String {
    let refusal = answer.json::<PortOneRefusal>().ok();
    error_code(refusal.as_ref().map(|refusal| refusal.kind.as_str()), answer.status)
}

/// None if its status is not known or its amounts make no sense.
fn into_payment(
    payment: PortOnePayment,
    payment_key: Option<&str>,
    channel: PaymentChannel,
) -> Option<ProviderPayment> {
    let state = match payment.status.as_str() {
        "READY" | "PENDING" | "PAY_PENDING" => ProviderState::Open,
        "VIRTUAL_ACCOUNT_ISSUED" => ProviderState::Deposit,
        "PAID" | "PARTIAL_CANCELLED" => ProviderState::Paid,
        // A deposit account that was never used is cancelled as well.
        "CANCELLED" if payment.amount.cancelled == 0 => ProviderState::Dead,
        "CANCELLED" => ProviderState::Refunded,
        "FAILED" => ProviderState::Dead,
        _ => return None,
    };
    let PortOneAmount { total, cancelled } = payment.amount;
    let transaction_id = payment.transaction_id;
    let key = payment_key.map(str::to_owned).or_else(|| transaction_id.clone());
    (0..=total).contains(&cancelled).then_some(ProviderPayment {
        order_id: payment.id,
        payment_key: key.unwrap_or_default(),
        transaction_id,
        amount: Won::new(total),
        currency: payment.currency,
        state,
        refunded: Won::new(cancelled),
        method: http::one_line(payment.method.and_then(|method| method.kind), METHOD_CHARS_MAX),
        approved_at: http::time(payment.paid_at),
        receipt_url: http::link(payment.receipt_url),
        channel,
    })
}

/// A string of RFC 8941, which is quoted.
fn idempotency_key(key: &str) -> HeaderValue {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let is_fit = (16..=256).contains(&key.len()) && key.bytes().all(is_plain);
    assert!(is_fit, "our keys have 16 to 256 plain characters");
    HeaderValue::from_str(&format!("\"{key}\"")).expect("the characters were checked")
}
