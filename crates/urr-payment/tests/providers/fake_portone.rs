//! A stand-in for PortOne that speaks the second version of its protocol.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fake_provider::{Account, Answer, Books, FakeProvider, LIVE_CHANNEL, Sale, send, serve};

pub const API_SECRET: &str = "f0VCMTI3OUZBMEVGNEZDRDlBNDE0RjhCQzQ2NDcx";
pub const STORE_ID: &str = "store-4ff4af41-85e3-4559-8eb8-0d08a2c6ceec";

pub const CHANNEL_KEY: &str = LIVE_CHANNEL.1;

type Shared = State<Arc<FakeProvider>>;

pub async fn start() -> (Arc<FakeProvider>, String) {
    let fake = Arc::new(FakeProvider::new(|code| json!({ "type": code, "message": "안 됩니다." })));
    let router = Router::new()
        .route("/payments/{payment_id}/confirm", post(confirm))
        .route("/payments/{payment_id}/cancel", post(cancel))
        .route("/payments/{payment_id}/virtual-account/close", post(close_account))
        .route("/payments/{payment_id}", get(find))
        .route("/payment-events-by-cursor", get(list))
        .with_state(Arc::clone(&fake));
    (fake, serve(router).await)
}

async fn confirm(
    State(fake): Shared,
    Path(payment_id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    fake.note(format!("/payments/{payment_id}/confirm"), &headers, &body);
    let key = match check(&fake, &headers) {
        Ok(key) => format!("confirm {payment_id} {key}"),
        Err(refusal) => return send(refusal),
    };
    let act = |books: &mut Books| {
        let off_by = books.off_by;
        let sale = books.of_order(&payment_id).filter(|_| body["storeId"] == STORE_ID);
        let Some(sale) = sale else {
            return fake.refuse(404, "PAYMENT_NOT_FOUND");
        };
        if !sale.charges.is_empty() {
            return fake.refuse(409, "ALREADY_PAID");
        }
        if body["paymentToken"] != sale.payment_key {
            return fake.refuse(400, "INVALID_PAYMENT_TOKEN");
        }
        if body["totalAmount"] != sale.amount || body["currency"] != "KRW" {
            return fake.refuse(409, "INFORMATION_MISMATCH");
        }
        match sale.account {
            Account::Wanted => sale.account = Account::Waiting,
            _ => sale.charges.push(sale.amount + off_by),
        }
        (200, json!({ "payment": { "pgTxId": "pg-1", "paidAt": "2026-12-01T12:00:00Z" } }))
    };
    fake.change(key, act).await
}

async fn cancel(
    State(fake): Shared,
    Path(payment_id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    fake.note(format!("/payments/{payment_id}/cancel"), &headers, &body);
    let key = match check(&fake, &headers) {
        Ok(key) => format!("cancel {payment_id} {key}"),
        Err(refusal) => return send(refusal),
    };
    let act = |books: &mut Books| {
        let off_by = books.off_by;
        let sale = books.of_order(&payment_id).filter(|_| body["storeId"] == STORE_ID);
        let Some(sale) = sale else {
            return fake.refuse(404, "PAYMENT_NOT_FOUND");
        };
        if body["reason"].as_str().is_none_or(str::is_empty) {
            return fake.refuse(400, "INVALID_REQUEST");
        }
        let left = sale.charged() - sale.refunded();
        if sale.charges.is_empty() {
            return fake.refuse(409, "PAYMENT_NOT_PAID");
        }
        if left == 0 {
            return fake.refuse(409, "PAYMENT_ALREADY_CANCELLED");
        }
        if body["currentCancellableAmount"].as_i64().is_some_and(|current| current != left) {
            return fake.refuse(409, "CANCELLABLE_AMOUNT_CONSISTENCY_BROKEN");
        }
        let amount = body["amount"].as_i64().unwrap_or(left);
        if amount < 1 || amount > left {
            return fake.refuse(409, "CANCEL_AMOUNT_EXCEEDS_CANCELLABLE_AMOUNT");
        }
        sale.returns.push(amount + off_by);
        let cancellation = json!({
            "status": "SUCCEEDED", "id": "cancel-1", "totalAmount": amount,
            "taxFreeAmount": 0, "vatAmount": 0, "reason": body["reason"],
            "requestedAt": "2026-12-01T12:00:00Z",
        });
        (200, json!({ "cancellation": cancellation }))
    };
    fake.change(key, act).await
}

async fn close_account(
    State(fake): Shared,
    Path(payment_id): Path<String>,
    Query(shop): Query<Shop>,
    headers: HeaderMap,
) -> Response {
    fake.note(format!("/payments/{payment_id}/virtual-account/close"), &headers, &Value::Null);
    let key = match check(&fake, &headers) {
        Ok(key) => format!("close {payment_id} {key}"),
        Err(refusal) => return send(refusal),
    };
    let is_ours = shop.store_id.is_some_and(|id| id == STORE_ID);
    let act = |books: &mut Books| match books.of_order(&payment_id).filter(|_| is_ours) {
        Some(sale) if sale.account == Account::Waiting => {
            sale.account = Account::Closed;
            (200, json!({ "closedAt": "2026-12-01T12:00:00Z" }))
        }
        Some(_) => fake.refuse(409, "PAYMENT_NOT_WAITING_FOR_DEPOSIT"),
        None => fake.refuse(404, "PAYMENT_NOT_FOUND"),
    };
    fake.change(key, act).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shop {
    store_id: Option<String>,
}

async fn find(
    State(fake): Shared,
    Path(payment_id): Path<String>,
    Query(shop): Query<Shop>,
    headers: HeaderMap,
) -> Response {
    fake.note(format!("/payments/{payment_id}"), &headers, &Value::Null);
    if let Err(refusal) = check_credential(&fake, &headers) {
        return send(refusal);
    }
    // Without an id of a shop, another one is meant.
    let is_ours = shop.store_id.is_some_and(|id| id == STORE_ID);
    let look = |books: &mut Books| match books.of_order(&payment_id) {
        Some(sale) if is_ours => (200, payment(sale)),
        _ => fake.refuse(404, "PAYMENT_NOT_FOUND"),
    };
    fake.look(look).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    request_body: String,
}

async fn list(State(fake): Shared, headers: HeaderMap, Query(asked): Query<Asked>) -> Response {
    let asked: Value = serde_json::from_str(&asked.request_body).unwrap();
    fake.note("/payment-events-by-cursor".to_owned(), &headers, &asked);
    if let Err(refusal) = check_credential(&fake, &headers) {
        return send(refusal);
    }
    let begin: usize = asked["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let size = usize::try_from(asked["size"].as_u64().unwrap()).unwrap();
    let look = |books: &mut Books| {
        let all = books.sales.iter().flat_map(|sale| {
            let returns = sale.returns.iter().map(|amount| -amount);
            let moves = sale.charges.iter().copied().chain(returns);
            moves.map(|amount| json!({ "paymentId": sale.order_id, "eventAmount": amount }))
        });
        let page = all.enumerate().skip(begin).take(size);
        let items: Vec<Value> = page
            .map(|(number, event)| {
                json!({ "paymentEvent": event, "cursor": (number + 1).to_string() })
            })
            .collect();
        (200, json!({ "items": items }))
    };
    fake.look(look).await
}

/// The idempotency key of an allowed request: a quoted string of 16 to 256 characters.
fn check(fake: &FakeProvider, headers: &HeaderMap) -> Result<String, Answer> {
    check_credential(fake, headers)?;
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap());
    let key = key.and_then(|key| key.strip_prefix('"')?.strip_suffix('"'));
    match key.filter(|key| (16..=256).contains(&key.len())) {
        Some(key) => Ok(key.to_owned()),
        None => Err(fake.refuse(400, "INVALID_REQUEST")),
    }
}

fn check_credential(fake: &FakeProvider, headers: &HeaderMap) -> Result<(), Answer> {
    let expected = format!("PortOne {API_SECRET}");
    match headers.get("authorization").is_some_and(|value| *value == expected) {
        true => Ok(()),
        false => Err(fake.refuse(401, "UNAUTHORIZED")),
    }
}

fn payment(sale: &Sale) -> Value {
    let is_charged = !sale.charges.is_empty();
    let total = if is_charged { sale.charged() } else { sale.amount };
    let status = match (is_charged, sale.is_dead) {
        (false, true) => "FAILED",
        (false, false) => match sale.account {
            Account::None | Account::Wanted => "READY",
            Account::Waiting => "VIRTUAL_ACCOUNT_ISSUED",
            Account::Closed => "CANCELLED",
        },
        (true, _) if sale.refunded() == total => "CANCELLED",
        (true, _) if sale.refunded() > 0 => "PARTIAL_CANCELLED",
        (true, _) => "PAID",
    };
    let mut payment = json!({
        "status": status,
        "id": sale.order_id,
        "transactionId": format!("tx-{}", sale.order_id),
        "merchantId": "merchant-1",
        "storeId": STORE_ID,
        "channel": {
            "type": sale.channel.0,
            "id": "channel-id-7d0a1b7e-3c1f-4d0e-9e1f-2f0b9f5d0c11",
            "key": sale.channel.1,
            "name": "카드 결제",
            "pgProvider": "TOSSPAYMENTS",
            "pgMerchantId": "tvivarepublica",
        },
        "version": "V2",
        "requestedAt": "2026-12-01T11:59:00Z",
        "orderName": "생수 외 1건",
        "amount": {
            "total": total, "taxFree": 0, "discount": 0,
            "paid": if is_charged { total } else { 0 },
            "cancelled": sale.refunded(), "cancelledTaxFree": 0,
        },
        "currency": "KRW",
        "customer": {},
    });
    if is_charged {
        payment["method"] = json!({ "type": "PaymentMethodCard" });
        payment["paidAt"] = json!("2026-12-01T12:00:00Z");
        payment["receiptUrl"] = json!("https://receipt.example/1");
    }
    payment
}
