//! Remote verifiers: reCAPTCHA and Turnstile, which have the same protocol.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use urr_kernel::{Secret, named_enum};
use urr_outbound::{Outbound, OutboundError};

use super::BotCheckPurpose;

/// Real tokens have up to about 2,000 characters.
const TOKEN_CHARS_MAX: usize = 4_096;
/// Error codes that the client has not caused.
const VERIFIER_ERRORS: [&str; 3] =
    ["internal-error", "invalid-input-secret", "missing-input-secret"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteVerifierKind {
    /// A box to tick.
    RecaptchaV2,
    /// No box, but a score.
    RecaptchaV3,
    Turnstile,
}

named_enum!(RemoteVerifierKind {
    RecaptchaV2 => "recaptcha-v2",
    RecaptchaV3 => "recaptcha-v3",
    Turnstile => "turnstile",
});

impl RemoteVerifierKind {
    pub const fn endpoint(self) -> &'static str {
        match self {
            RemoteVerifierKind::RecaptchaV2 | RemoteVerifierKind::RecaptchaV3 => {
                "https://www.google.com/recaptcha/api/siteverify"
            }
            RemoteVerifierKind::Turnstile => {
                "https://challenges.cloudflare.com/turnstile/v0/siteverify"
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct RemoteVerifier {
    pub kind: RemoteVerifierKind,
    /// Pages need it; it is public.
    pub site_key: String,
    pub secret: Secret,
    /// [`RemoteVerifierKind::endpoint`], unless it is a test.
    pub endpoint: String,
    /// The host of the page with the widget. `None` accepts any.
    pub hostname: Option<String>,
    /// Scores go from 0, a bot, to 1. Used if the verifier gives one.
    pub score_min: f64,
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifierVerdict {
    Passed,
    Denied,
    /// The verifier could not decide.
    Unknown,
}

#[derive(Debug, Deserialize)]
struct VerifierAnswer {
    success: bool,
    hostname: Option<String>,
    action: Option<String>,
    score: Option<f64>,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum RemoteVerifierError {
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error("the verifier answered with the status {0}")]
    Status(StatusCode),
    #[error("the answer cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

impl RemoteVerifier {
    /// Asks the verifier about the token of a client.
    pub(super) async fn ask(
        &self,
        outbound: &Outbound,
        purpose: BotCheckPurpose,
        token: &str,
        address: &str,
    ) -> VerifierVerdict {
        if token.is_empty() || token.len() > TOKEN_CHARS_MAX {
            return VerifierVerdict::Denied;
        }
        match self.post(outbound, token, address).await {
            Ok(answer) => self.judge(&answer, purpose),
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, source, "the bot verifier gave no answer");
                VerifierVerdict::Unknown
            }
        }
    }

    async fn post(
        &self,
        outbound: &Outbound,
        token: &str,
        address: &str,
    ) -> Result<VerifierAnswer, RemoteVerifierError> {
        let mut fields = vec![("secret", self.secret.expose()), ("response", token)];
        if !address.is_empty() {
            fields.push(("remoteip", address));
        }
        let headers = HeaderMap::new();
        let response = outbound.post_form(&self.endpoint, headers, &fields, self.timeout).await?;
        // Turnstile answers a bad token with 400 and the usual body.
        let status = response.status;
        match status.is_success() || status == StatusCode::BAD_REQUEST {
            true => Ok(response.json()?),
            false => Err(RemoteVerifierError::Status(status)),
        }
    }

    fn judge(&self, answer: &VerifierAnswer, purpose: BotCheckPurpose) -> VerifierVerdict {
        if !answer.success {
            let cannot_judge = |code: &String| VERIFIER_ERRORS.contains(&code.as_str());
            return match answer.error_codes.iter().any(cannot_judge) {
                true => {
                    tracing::error!(codes = ?answer.error_codes, "the bot verifier rejects our settings");
                    VerifierVerdict::Unknown
                }
                false => VerifierVerdict::Denied,
            };
        }
        let hostname_fits = match &self.hostname {
            Some(expected) => answer.hostname.as_deref() == Some(expected),
            None => true,
        };
        let action = answer.action.as_deref().filter(|action| !action.is_empty());
        let (action_fits, score_fits) = match self.kind {
            RemoteVerifierKind::RecaptchaV2 => (true, true),
            RemoteVerifierKind::RecaptchaV3 => {
                let score_fits = answer.score.is_some_and(|score| score >= self.score_min);
                (action == Some(purpose.as_str()), score_fits)
            }
            RemoteVerifierKind::Turnstile => {
                (action.is_none_or(|action| action == purpose.as_str()), true)
            }
        };
        match hostname_fits && action_fits && score_fits {
            true => VerifierVerdict::Passed,
            false => VerifierVerdict::Denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judge(kind: RemoteVerifierKind, answer: Value) -> VerifierVerdict {
        let check = RemoteVerifier {
            kind,
            site_key: "site".to_owned(),
            secret: Secret::new("secret"),
            endpoint: kind.endpoint().to_owned(),
            hostname: Some("urr.example".to_owned()),
            score_min: 0.5,
            timeout: Duration::from_secs(1),
        };
        check.judge(&serde_json::from_value(answer).unwrap(), BotCheckPurpose::Login)
    }

    #[test]
    fn each_kind_is_judged_by_what_it_tells() {
        use RemoteVerifierKind::{RecaptchaV2, RecaptchaV3, Turnstile};
        use VerifierVerdict::{Denied, Passed, Unknown};
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
