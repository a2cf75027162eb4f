//! Tokens as an attacker might forge them, even with our secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use urr_kernel::Secret;

pub fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

pub fn hmac(secret: &str, text: &str) -> Vec<u8> {
    let hex = Secret::new(secret).derive(text);
    let digits = |at| u8::from_str_radix(&hex.expose()[at..at + 2], 16).unwrap();
    (0..64).step_by(2).map(digits).collect()
}

/// Signs any header and payload with any secret.
pub fn signed_with(secret: &str, header: &Value, payload: &Value) -> String {
    let signed = format!("{}.{}", encode(header), encode(payload));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac(secret, &signed)))
}

/// A valid token, to be changed in one claim.
pub struct Forge {
    pub secret: &'static str,
    pub header: Value,
    pub payload: Value,
}

impl Forge {
    pub fn with_header(&self, name: &str, value: Value) -> String {
        let mut header = self.header.clone();
        header[name] = value;
        signed_with(self.secret, &header, &self.payload)
    }

    pub fn with(&self, name: &str, value: Value) -> String {
        let mut payload = self.payload.clone();
        payload[name] = value;
        signed_with(self.secret, &self.header, &payload)
    }

    pub fn without_header(&self, name: &str) -> String {
        signed_with(self.secret, &without(&self.header, name), &self.payload)
    }

    pub fn without(&self, name: &str) -> String {
        signed_with(self.secret, &self.header, &without(&self.payload, name))
    }

    pub fn signed_by(&self, secret: &str) -> String {
        signed_with(secret, &self.header, &self.payload)
    }

    pub fn good(&self) -> String {
        self.signed_by(self.secret)
    }
}

fn without(part: &Value, name: &str) -> Value {
    let mut part = part.clone();
    let taken = part.as_object_mut().unwrap().remove(name);
    assert!(taken.is_some(), "{name} was there to be left out");
    part
}

/// 32 bytes leave two bits of the last letter unused; a decoder that ignores them takes four
/// spellings of one signature.
pub fn last_letter_changed(token: &str) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let last = *token.as_bytes().last().unwrap();
    let at = letters.iter().position(|letter| *letter == last).unwrap();
    format!("{}{}", &token[..token.len() - 1], char::from(letters[at ^ 1]))
}
