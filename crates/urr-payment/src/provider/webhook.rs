//! Parsing of webhooks. Their content is not trusted: they only cause a query of the provider.
//!
//! Toss does not sign webhooks about payments. PortOne signs them by Standard Webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::HeaderMap;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use urr_kernel::{Secret, Timestamp, hex};

/// How far the sender's clock may differ from ours.
const TOLERANCE_S: i64 = 300;
const MESSAGE_ID_CHARS_MAX: usize = 128;
const ORDER_ID_CHARS_MAX: usize = 64;
/// Two while a secret is being replaced.
pub(super) const SECRETS_MAX: usize = 2;

/// Something may have happened to this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookNotice {
    /// The same for every delivery of one message.
    pub message_id: String,
    pub order_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRejection {
    #[error("this provider sends no messages")]
    Unexpected,
    #[error("the message cannot be read")]
    Unreadable,
    #[error("the message lacks its headers")]
    HeadersMissing,
    #[error("the message was signed too long ago, or in the future")]
    Untimely,
    #[error("the signature is not the provider's")]
    Forged,
}

#[derive(Deserialize)]
struct TossMessage {
    #[serde(rename = "eventType")]
    event_type: Option<String>,
    data: Option<TossData>,
    /// Of a message about a deposit account, which has no data.
    #[serde(rename = "orderId")]
    order_id: Option<String>,
}

#[derive(Deserialize)]
struct TossData {
    #[serde(rename = "orderId")]
    order_id: Option<String>,
}

/// Anybody can send this. Without a transmission id, equal bodies are one message.
pub(super) fn read_toss(
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Option<WebhookNotice>, WebhookRejection> {
    let message: TossMessage =
        serde_json::from_slice(body).map_err(|_| WebhookRejection::Unreadable)?;
    let order_id = match message.event_type.as_deref() {
        Some("PAYMENT_STATUS_CHANGED") => message.data.and_then(|data| data.order_id),
        // The kind of this message follows from its fields.
        Some("DEPOSIT_CALLBACK") | None if message.order_id.is_some() => message.order_id,
        _ => return Ok(None),
    };
    let order_id = parse_order_id(order_id.ok_or(WebhookRejection::Unreadable)?)?;
    let message_id = match only_header(headers, "tosspayments-webhook-transmission-id") {
        Some(id) => parse_message_id(id)?,
        None => format!("sha256:{}", hex::encode(Sha256::digest(body))),
    };
    Ok(Some(WebhookNotice { message_id, order_id }))
}

#[derive(Deserialize)]
struct PortOneMessage {
    #[serde(rename = "type")]
    kind: Option<String>,
    data: Option<PortOneData>,
}

#[derive(Deserialize)]
struct PortOneData {
    #[serde(rename = "paymentId")]
    payment_id: Option<String>,
}

/// `secrets` are those of the shop, at most two.
pub(super) fn read_portone(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[WebhookSecret],
    now: Timestamp,
) -> Result<Option<WebhookNotice>, WebhookRejection> {
    let header = |name| only_header(headers, name).ok_or(WebhookRejection::HeadersMissing);
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let signatures = header("webhook-signature")?;
    let sent_at: i64 = timestamp.parse().map_err(|_| WebhookRejection::Untimely)?;
    if now.as_second().abs_diff(sent_at) > TOLERANCE_S.unsigned_abs() {
        return Err(WebhookRejection::Untimely);
    }
    let given: Vec<Vec<u8>> = signatures
        .split(' ')
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .collect();
    let is_signed = |secret: &WebhookSecret| {
        given.iter().any(|signature| secret.has_signed(id, timestamp, body, signature))
    };
    if !secrets.iter().any(is_signed) {
        return Err(WebhookRejection::Forged);
    }
    let message: PortOneMessage =
        serde_json::from_slice(body).map_err(|_| WebhookRejection::Unreadable)?;
    // PortOne asks to ignore unknown types.
    let is_of_payment = message.kind.is_some_and(|kind| kind.starts_with("Transaction."));
    let order_id = message.data.and_then(|data| data.payment_id);
    match order_id.filter(|_| is_of_payment) {
        Some(order_id) => {
            let (message_id, order_id) = (parse_message_id(id)?, parse_order_id(order_id)?);
            Ok(Some(WebhookNotice { message_id, order_id }))
        }
        None => Ok(None),
    }
}

/// PortOne's signing secret: `whsec_` and base64.
#[derive(Clone, Debug)]
pub(super) struct WebhookSecret(Secret);

impl WebhookSecret {
    /// None if it is no such secret.
    pub fn parse(secret: &Secret) -> Option<WebhookSecret> {
        let kept = WebhookSecret(secret.clone());
        kept.key().filter(|key| !key.is_empty()).map(|_| kept)
    }

    fn key(&self) -> Option<Vec<u8>> {
        let text = self.0.expose();
        STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()
    }

    /// The comparison takes constant time.
    fn has_signed(&self, id: &str, timestamp: &str, body: &[u8], signature: &[u8]) -> bool {
        let key = self.key().expect("it was read when it was made");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes a key of any length");
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        mac.verify_slice(signature).is_ok()
    }
}

/// The text of a header that occurs exactly once.
fn only_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let only = values.next()?;
    match values.next() {
        None => only.to_str().ok().filter(|text| !text.is_empty()),
        Some(_) => None,
    }
}

fn parse_message_id(id: &str) -> Result<String, WebhookRejection> {
    match id.len() <= MESSAGE_ID_CHARS_MAX && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(id.to_owned()),
        false => Err(WebhookRejection::Unreadable),
    }
}

fn parse_order_id(id: String) -> Result<String, WebhookRejection> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match (1..=ORDER_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(is_plain) {
        true => Ok(id),
        false => Err(WebhookRejection::Unreadable),
    }
}
