//! Messages of providers: hints, and only if they may be.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use urr_kernel::{Clock, Timestamp};
use urr_payment::provider::{ProviderClient, WebhookNotice, WebhookRejection};

use crate::fixture::{Kind, ORDER, PATIENCE, WEBHOOK_SECRETS, connect};

type Read = Result<Option<WebhookNotice>, WebhookRejection>;

fn provider(kind: Kind) -> ProviderClient {
    connect(kind, "http://127.0.0.1:9", &Clock::System, PATIENCE)
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    let mut headers = HeaderMap::new();
    for (name, value) in pairs.iter().map(header) {
        headers.append(name, value);
    }
    headers
}

fn hint(message_id: &str) -> Read {
    Ok(Some(WebhookNotice { message_id: message_id.to_owned(), order_id: ORDER.to_owned() }))
}

fn read_toss(pairs: &[(&'static str, &str)], body: &str) -> Read {
    provider(Kind::Toss).read_webhook(&headers(pairs), body.as_bytes(), Timestamp::UNIX_EPOCH)
}

fn toss_message() -> String {
    let data = json!({ "orderId": ORDER, "paymentKey": "k", "status": "DONE", "new": [1] });
    json!({ "eventType": "PAYMENT_STATUS_CHANGED", "createdAt": "2026-12-01", "data": data })
        .to_string()
}

#[tokio::test]
async fn a_message_of_toss_names_the_order_and_its_transmission() {
    let id = [("tosspayments-webhook-transmission-id", "tr-1")];
    assert_eq!(read_toss(&id, &toss_message()), hint("tr-1"));
}

#[tokio::test]
async fn without_a_transmission_equal_bodies_are_one_message() {
    let first = read_toss(&[], &toss_message()).unwrap().unwrap();
    assert_eq!(read_toss(&[], &toss_message()).unwrap().unwrap(), first);
    let other = toss_message().replace("DONE", "CANCELED");
    assert_ne!(read_toss(&[], &other).unwrap().unwrap().message_id, first.message_id);
}

/// Somebody has paid into an account that they were given.
#[tokio::test]
async fn a_message_about_an_account_is_a_hint_as_well() {
    let id = [("tosspayments-webhook-transmission-id", "tr-1")];
    for kind in [json!({ "eventType": "DEPOSIT_CALLBACK" }), json!({})] {
        let mut message = kind;
        message["orderId"] = json!(ORDER);
        message["secret"] = json!("ps_1");
        message["status"] = json!("DONE");
        assert_eq!(read_toss(&id, &message.to_string()), hint("tr-1"));
    }
}

#[tokio::test]
async fn other_messages_of_toss_concern_nobody_and_broken_ones_are_refused() {
    for other in ["{}", r#"{"eventType":"payout.changed","data":{}}"#, r#"{"eventType":null}"#] {
        assert_eq!(read_toss(&[], other), Ok(None), "{other}");
    }
    let long = toss_message().replace(ORDER, &"x".repeat(65));
    let odd = toss_message().replace(ORDER, "../admin");
    let none = toss_message().replace("orderId", "order_id");
    for broken in ["", "[]", "{", "\u{0}", &long, &odd, &none] {
        assert_eq!(read_toss(&[], broken), Err(WebhookRejection::Unreadable), "{broken}");
    }
    let id = "x".repeat(129);
    let id = [("tosspayments-webhook-transmission-id", id.as_str())];
    assert_eq!(read_toss(&id, &toss_message()), Err(WebhookRejection::Unreadable));
}

const SENT_AT: i64 = 1_796_126_400;

fn portone_message() -> String {
    let data = json!({ "storeId": "s", "paymentId": ORDER, "transactionId": "t" });
    json!({ "type": "Transaction.Paid", "timestamp": "2026-12-01T12:00:00Z", "data": data })
        .to_string()
}

fn sign(secret: &str, id: &str, sent_at: i64, body: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{sent_at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn read_portone(signature: &str, body: &str, late_s: i64) -> Read {
    let sent_at = SENT_AT.to_string();
    let headers = headers(&[
        ("webhook-id", "msg-1"),
        ("webhook-timestamp", &sent_at),
        ("webhook-signature", signature),
    ]);
    let now = Timestamp::from_second(SENT_AT + late_s).unwrap();
    provider(Kind::PortOne).read_webhook(&headers, body.as_bytes(), now)
}

/// The example that the authors of Standard Webhooks publish.
#[tokio::test]
async fn the_known_answer_of_standard_webhooks_is_accepted() {
    let body = r#"{"test": 2432232314}"#;
    let known = |signature| {
        let headers = headers(&[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
        ]);
        let now = Timestamp::from_second(1_614_265_330).unwrap();
        provider(Kind::PortOne).read_webhook(&headers, body.as_bytes(), now)
    };
    assert_eq!(known("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="), Ok(None));
    let forged = known("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=");
    assert_eq!(forged, Err(WebhookRejection::Forged));
}

#[tokio::test]
async fn either_secret_of_portone_is_good_while_one_is_replaced() {
    let body = portone_message();
    for secret in WEBHOOK_SECRETS {
        assert_eq!(read_portone(&sign(secret, "msg-1", SENT_AT, &body), &body, 0), hint("msg-1"));
    }
    let [first, second] = WEBHOOK_SECRETS.map(|secret| sign(secret, "msg-1", SENT_AT, &body));
    for both in [format!("{first} {second}"), format!("v1a,x v2,{second} v1,? {second}")] {
        assert_eq!(read_portone(&both, &body, 0), hint("msg-1"), "{both}");
    }
}

#[tokio::test]
async fn a_forged_or_altered_message_of_portone_is_refused() {
    let body = portone_message();
    let right = sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, &body);
    let stranger = "whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==";
    let cut = right.replace('=', "");
    for signature in [
        sign(stranger, "msg-1", SENT_AT, &body),
        sign(WEBHOOK_SECRETS[0], "msg-2", SENT_AT, &body),
        sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT + 1, &body),
        sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, &body.replace("Paid", "Failed")),
        right.replace("v1,", "v2,"),
        right.replace("v1,", ""),
        cut,
        "v1,".to_owned(),
        "x".to_owned(),
    ] {
        let read = read_portone(&signature, &body, 0);
        assert_eq!(read, Err(WebhookRejection::Forged), "{signature}");
    }
    let altered = body.replace(ORDER, "ORD_of_somebody_else");
    assert_eq!(read_portone(&right, &altered, 0), Err(WebhookRejection::Forged));
    assert_eq!(read_portone(&right, &body, 0), hint("msg-1"));
}

#[tokio::test]
async fn a_message_of_portone_is_good_for_five_minutes() {
    let body = portone_message();
    let signature = sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, &body);
    for late_s in [-300, 0, 300] {
        assert_eq!(read_portone(&signature, &body, late_s), hint("msg-1"), "{late_s}");
    }
    for late_s in [-301, 301, 1_000_000] {
        let read = read_portone(&signature, &body, late_s);
        assert_eq!(read, Err(WebhookRejection::Untimely), "{late_s}");
    }
}

#[tokio::test]
async fn headers_of_portone_are_there_once() {
    let (body, sent_at) = (portone_message(), SENT_AT.to_string());
    let signature = sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, &body);
    let all = [
        ("webhook-id", "msg-1"),
        ("webhook-timestamp", sent_at.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let read = |pairs: &[(&'static str, &str)]| {
        let now = Timestamp::from_second(SENT_AT).unwrap();
        provider(Kind::PortOne).read_webhook(&headers(pairs), body.as_bytes(), now)
    };
    assert_eq!(read(&all), hint("msg-1"));
    for missing in 0..all.len() {
        let mut fewer = all.to_vec();
        let twice = [all.to_vec(), vec![fewer.remove(missing)]].concat();
        assert_eq!(read(&fewer), Err(WebhookRejection::HeadersMissing));
        assert_eq!(read(&twice), Err(WebhookRejection::HeadersMissing));
    }
    let unknown_time = [all[0], ("webhook-timestamp", "now"), all[2]];
    assert_eq!(read(&unknown_time), Err(WebhookRejection::Untimely));
}

#[tokio::test]
async fn signed_messages_about_other_things_concern_nobody() {
    let billing = r#"{"type":"BillingKey.Issued","data":{"paymentId":"ORD_019a8c1e_0001"}}"#;
    for body in [billing, r#"{"type":"Transaction.New"}"#, r#"{"data":{}}"#, "{}"] {
        let signature = sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, body);
        assert_eq!(read_portone(&signature, body, 0), Ok(None), "{body}");
    }
    let signature = sign(WEBHOOK_SECRETS[0], "msg-1", SENT_AT, "{");
    assert_eq!(read_portone(&signature, "{", 0), Err(WebhookRejection::Unreadable));
}
