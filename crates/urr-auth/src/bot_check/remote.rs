//! Verifiers of others: reCAPTCHA and Turnstile, which speak the same protocol.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use urr_kernel::Secret;
use urr_outbound::{Outbound, OutboundError};

use super::Door;

/// Longer tokens are not handed on. Theirs have up to about two thousand characters.
const TOKEN_CHARS_MAX: usize = 4_096;
/// These say that the verifier cannot judge, whatever the client did.
const NOT_THE_CLIENTS_FAULT: [&str; 3] =
    ["internal-error", "invalid-input-secret", "missing-input-secret"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    /// A box to tick.
    RecaptchaV2,
    /// No box, but a score.
    RecaptchaV3,
    Turnstile,
}

impl RemoteKind {
    pub const fn name(self) -> &'static str {
        match self {
            RemoteKind::RecaptchaV2 => "recaptcha-v2",
            RemoteKind::RecaptchaV3 => "recaptcha-v3",
            RemoteKind::Turnstile => "turnstile",
        }
    }

    /// Where its maker answers.
    pub const fn endpoint(self) -> &'static str {
        match self {
            RemoteKind::RecaptchaV2 | RemoteKind::RecaptchaV3 => {
                "https://www.google.com/recaptcha/api/siteverify"
            }
            RemoteKind::Turnstile => "https://challenges.cloudflare.com/turnstile/v0/siteverify",
        }
    }
}

/// A verifier of someone else's.
#[derive(Clone, Debug)]
pub struct RemoteCheck {
    pub kind: RemoteKind,
    /// What pages show to the verifier; it is public.
    pub site_key: String,
    pub secret: Secret,
    /// [`RemoteKind::endpoint`], unless it is a test.
    pub endpoint: String,
    /// Where the box must have been ticked. `None` takes any place.
    pub hostname: Option<String>,
    /// Scores go from 0, a program, to 1. It counts where the verifier gives one.
    pub score_min: f64,
    pub timeout: Duration,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Denied,
    /// Nobody could judge.
    Unknown,
}

#[derive(Debug, Deserialize)]
struct Answer {
    success: bool,
    hostname: Option<String>,
    action: Option<String>,
    score: Option<f64>,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

/// Why the verifier was of no help.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error("the verifier answered with the status {0}")]
    Status(StatusCode),
    #[error("the answer cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

impl RemoteCheck {
    /// Asks the verifier about a token that a client shows.
    pub(super) async fn ask(
        &self,
        outbound: &Outbound,
        door: Door,
        token: &str,
        address: &str,
    ) -> Verdict {
        if token.is_empty() || token.len() > TOKEN_CHARS_MAX {
            return Verdict::Denied;
        }
        match self.post(outbound, token, address).await {
            Ok(answer) => self.judge(&answer, door),
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, source, "the verifier of bot checks is of no help");
                Verdict::Unknown
            }
        }
    }

    async fn post(
        &self,
        outbound: &Outbound,
        token: &str,
        address: &str,
    ) -> Result<Answer, AskError> {
        let mut fields = vec![("secret", self.secret.expose()), ("response", token)];
        if !address.is_empty() {
            fields.push(("remoteip", address));
        }
        let headers = HeaderMap::new();
        let response = outbound.post_form(&self.endpoint, headers, &fields, self.timeout).await?;
        // Turnstile refuses a bad token with 400 and a body of the usual form.
        let status = response.status;
        match status.is_success() || status == StatusCode::BAD_REQUEST {
            true => Ok(response.json()?),
            false => Err(AskError::Status(status)),
        }
    }

    fn judge(&self, answer: &Answer, door: Door) -> Verdict {
        if !answer.success {
            let cannot_judge = |code: &String| NOT_THE_CLIENTS_FAULT.contains(&code.as_str());
            return match answer.error_codes.iter().any(cannot_judge) {
                true => {
                    tracing::error!(codes = ?answer.error_codes, "the verifier refuses us");
                    Verdict::Unknown
                }
                false => Verdict::Denied,
            };
        }
        let hostname_fits = match &self.hostname {
            Some(expected) => answer.hostname.as_deref() == Some(expected),
            None => true,
        };
        let action = answer.action.as_deref().filter(|action| !action.is_empty());
        let (action_fits, score_fits) = match self.kind {
            RemoteKind::RecaptchaV2 => (true, true),
            RemoteKind::RecaptchaV3 => {
                let score_fits = answer.score.is_some_and(|score| score >= self.score_min);
                (action == Some(door.name()), score_fits)
            }
            RemoteKind::Turnstile => (action.is_none_or(|action| action == door.name()), true),
        };
        match hostname_fits && action_fits && score_fits {
            true => Verdict::Passed,
            false => Verdict::Denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judge(kind: RemoteKind, answer: Value) -> Verdict {
        let check = RemoteCheck {
            kind,
            site_key: "site".to_owned(),
            secret: Secret::new("secret"),
            endpoint: kind.endpoint().to_owned(),
            hostname: Some("urr.example".to_owned()),
            score_min: 0.5,
            timeout: Duration::from_secs(1),
        };
        check.judge(&serde_json::from_value(answer).unwrap(), Door::Login)
    }

    #[test]
    fn each_kind_is_judged_by_what_it_tells() {
        use RemoteKind::{RecaptchaV2, RecaptchaV3, Turnstile};
        use Verdict::{Denied, Passed, Unknown};
        let good = json!({
            "success": true, "hostname": "urr.example", "action": "login", "score": 0.5,
        });
        let changed = |field: &str, value: Value| {
            let mut answer = good.clone();
            answer[field] = value;
            answer
        };
        let refused = |code: &str| json!({ "success": false, "error-codes": [code] });
        for (answer, expected) in [
            (good.clone(), [Passed, Passed, Passed]),
            (changed("hostname", json!("evil.example")), [Denied; 3]),
            (changed("hostname", json!(null)), [Denied; 3]),
            (changed("action", json!("register")), [Passed, Denied, Denied]),
            (changed("action", json!(null)), [Passed, Denied, Passed]),
            (changed("score", json!(0.4)), [Passed, Denied, Passed]),
            (changed("score", json!(null)), [Passed, Denied, Passed]),
            (changed("success", json!(false)), [Denied; 3]),
            (refused("timeout-or-duplicate"), [Denied; 3]),
            (refused("internal-error"), [Unknown; 3]),
            (refused("invalid-input-secret"), [Unknown; 3]),
        ] {
            let verdicts =
                [RecaptchaV2, RecaptchaV3, Turnstile].map(|kind| judge(kind, answer.clone()));
            assert_eq!(verdicts, expected, "{answer}");
        }
    }
}
