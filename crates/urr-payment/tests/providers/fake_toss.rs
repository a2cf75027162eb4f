//! A stand-in for Toss Payments that speaks its protocol, version 2022-11-16.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fake_provider::{Account, Answer, Books, FakeProvider, Sale, send, serve};

pub const SECRET_KEY: &str = "test_sk_docs_Ovk5rk1EwkEbP0W43n07xlzm";
/// The key and a colon, in base64.
const AUTHORIZATION: &str = "Basic dGVzdF9za19kb2NzX092azVyazFFd2tFYlAwVzQzbjA3eGx6bTo=";

type Shared = State<Arc<FakeProvider>>;

pub async fn start() -> (Arc<FakeProvider>, String) {
    let fake = Arc::new(FakeProvider::new(|code| json!({ "code": code, "message": "안 됩니다." })));
    let router = Router::new()
        .route("/v1/payments/confirm", post(confirm))
        .route("/v1/payments/{payment_key}/cancel", post(cancel))
        .route("/v1/payments/orders/{order_id}", get(find))
        .route("/v1/transactions", get(list))
        .with_state(Arc::clone(&fake));
    (fake, serve(router).await)
}

async fn confirm(State(fake): Shared, headers: HeaderMap, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    fake.note("/v1/payments/confirm".to_owned(), &headers, &body);
    let key = match check(&fake, &headers) {
        Ok(key) => format!("confirm {key}"),
        Err(refusal) => return send(refusal),
    };
    let act = |books: &mut Books| {
        let off_by = books.off_by;
        let Some(sale) = books.of_key(body["paymentKey"].as_str().unwrap()) else {
            return fake.refuse(404, "NOT_FOUND_PAYMENT");
        };
        if body["orderId"] != sale.order_id || body["amount"] != sale.amount {
            return fake.refuse(400, "INVALID_REQUEST");
        }
        if !sale.charges.is_empty() {
            return fake.refuse(400, "ALREADY_PROCESSED_PAYMENT");
        }
        match sale.account {
            Account::Wanted => sale.account = Account::Waiting,
            _ => sale.charges.push(sale.amount + off_by),
        }
        (200, payment(sale))
    };
    fake.change(key, act).await
}

async fn cancel(
    State(fake): Shared,
    Path(payment_key): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    fake.note(format!("/v1/payments/{payment_key}/cancel"), &headers, &body);
    let key = match check(&fake, &headers) {
        Ok(key) => format!("cancel {payment_key} {key}"),
        Err(refusal) => return send(refusal),
    };
    let reason = body["cancelReason"].as_str().unwrap_or_default().to_owned();
    let act = |books: &mut Books| {
        let off_by = books.off_by;
        let Some(sale) = books.of_key(&payment_key) else {
            return fake.refuse(404, "NOT_FOUND_PAYMENT");
        };
        if !(1..=200).contains(&reason.chars().count()) {
            return fake.refuse(400, "INVALID_REQUEST");
        }
        if sale.account == Account::Waiting && sale.charges.is_empty() {
            if !body["cancelAmount"].is_null() {
                return fake.refuse(403, "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT");
            }
            sale.account = Account::Closed;
            return (200, payment(sale));
        }
        let left = sale.charged() - sale.refunded();
        if left == 0 {
            return fake.refuse(400, "ALREADY_CANCELED_PAYMENT");
        }
        let amount = body["cancelAmount"].as_i64().unwrap_or(left);
        if amount < 1 || amount > left {
            return fake.refuse(403, "NOT_CANCELABLE_AMOUNT");
        }
        sale.returns.push(amount + off_by);
        (200, payment(sale))
    };
    fake.change(key, act).await
}

async fn find(State(fake): Shared, Path(order_id): Path<String>, headers: HeaderMap) -> Response {
    fake.note(format!("/v1/payments/orders/{order_id}"), &headers, &Value::Null);
    if let Err(refusal) = check_credential(&fake, &headers) {
        return send(refusal);
    }
    let look = |books: &mut Books| match books.of_order(&order_id) {
        Some(sale) => (200, payment(sale)),
        None => fake.refuse(404, "NOT_FOUND_PAYMENT"),
    };
    fake.look(look).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    start_date: String,
    end_date: String,
    starting_after: Option<String>,
    limit: usize,
}

/// One transaction per charge and per return, a page of them.
async fn list(State(fake): Shared, headers: HeaderMap, Query(span): Query<Span>) -> Response {
    let told = json!([span.start_date, span.end_date, span.starting_after, span.limit]);
    fake.note("/v1/transactions".to_owned(), &headers, &told);
    if let Err(refusal) = check_credential(&fake, &headers) {
        return send(refusal);
    }
    let look = |books: &mut Books| {
        let all = books.sales.iter().flat_map(|sale| {
            let moves = sale.charges.iter().chain(&sale.returns).enumerate();
            moves.map(|(number, amount)| {
                let key = format!("{}-{number}", sale.payment_key);
                let status = if number < sale.charges.len() { "DONE" } else { "PARTIAL_CANCELED" };
                json!({
                    "transactionKey": key, "orderId": sale.order_id, "status": status,
                    "currency": "KRW", "amount": amount,
                })
            })
        });
        let from = |transaction: &Value| match &span.starting_after {
            Some(after) => transaction["transactionKey"] != **after,
            None => false,
        };
        let skipped = usize::from(span.starting_after.is_some());
        let page: Vec<Value> = all.skip_while(from).skip(skipped).take(span.limit).collect();
        (200, json!(page))
    };
    fake.look(look).await
}

/// The idempotency key of an allowed request.
fn check(fake: &FakeProvider, headers: &HeaderMap) -> Result<String, Answer> {
    check_credential(fake, headers)?;
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    let is_json = headers.get("content-type").is_some_and(|kind| kind == "application/json");
    match key.filter(|key| is_json && (1..=300).contains(&key.len())) {
        Some(key) => Ok(key),
        None => Err(fake.refuse(400, "INVALID_IDEMPOTENCY_KEY")),
    }
}

fn check_credential(fake: &FakeProvider, headers: &HeaderMap) -> Result<(), Answer> {
    match headers.get("authorization").is_some_and(|value| value == AUTHORIZATION) {
        true => Ok(()),
        false => Err(fake.refuse(401, "UNAUTHORIZED_KEY")),
    }
}

fn payment(sale: &Sale) -> Value {
    let total = if sale.charges.is_empty() { sale.amount } else { sale.charged() };
    let left = total - sale.refunded();
    let status = match (sale.charges.is_empty(), sale.is_dead) {
        (true, true) => "ABORTED",
        (true, false) => match sale.account {
            Account::None | Account::Wanted => "IN_PROGRESS",
            Account::Waiting => "WAITING_FOR_DEPOSIT",
            Account::Closed => "CANCELED",
        },
        (false, _) if left == 0 => "CANCELED",
        (false, _) if left < total => "PARTIAL_CANCELED",
        (false, _) => "DONE",
    };
    let approved_at = (!sale.charges.is_empty()).then_some("2026-12-01T21:00:00+09:00");
    let cancels: Vec<Value> = sale
        .returns
        .iter()
        .map(|amount| json!({ "cancelAmount": amount, "transactionKey": "t" }))
        .collect();
    json!({
        "version": "2022-11-16",
        "mId": "tosspayments",
        "lastTransactionKey": "9C62B18EEF0DE3EB7F4422EB6D14BC6E",
        "type": "NORMAL",
        "country": "KR",
        "useEscrow": false,
        "cultureExpense": false,
        "taxFreeAmount": 0,
        "suppliedAmount": total - total / 11,
        "vat": total / 11,
        "failure": null,
        "paymentKey": sale.payment_key,
        "orderId": sale.order_id,
        "orderName": "생수 외 1건",
        "currency": "KRW",
        "method": "카드",
        "totalAmount": total,
        "balanceAmount": left,
        "status": status,
        "requestedAt": "2026-12-01T20:59:00+09:00",
        "approvedAt": approved_at,
        "cancels": if cancels.is_empty() { Value::Null } else { json!(cancels) },
        "isPartialCancelable": true,
        "receipt": { "url": "https://dashboard.tosspayments.com/receipt" },
        "card": { "number": "12345678****000*", "approveNo": "00000000" },
    })
}
