//! The providers of identity verification: PortOne, and a sandbox for tests.

use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use urr_kernel::{Secret, hex};
use urr_outbound::{Outbound, OutboundError, encode_form};
use utoipa::ToSchema;

use super::VerificationId;

pub const PORTONE_ENDPOINT: &str = "https://api.portone.io";
/// Real identifiers have 88 characters.
const KEY_CHARS_MAX: usize = 512;

#[derive(Clone, Debug)]
pub enum IdentityProvider {
    Off,
    /// Accepts every person; for development.
    Sandbox,
    PortOne(PortOneIdentity),
}

impl IdentityProvider {
    pub const fn name(&self) -> &'static str {
        match self {
            IdentityProvider::Off => "off",
            IdentityProvider::Sandbox => "sandbox",
            IdentityProvider::PortOne(_) => "portone",
        }
    }

    /// Whether a verification by this provider counts. Those of the sandbox count in the sandbox only.
    pub(super) fn trusts(&self, provider: &str) -> bool {
        provider != IdentityProvider::Sandbox.name() || matches!(self, IdentityProvider::Sandbox)
    }
}

/// The settings of PortOne's API version 2.
#[derive(Clone, Debug)]
pub struct PortOneIdentity {
    pub secret: Secret,
    /// Pages need it and the channel key; both are public.
    pub store_id: String,
    pub channel_key: String,
    /// Whether a verification by a channel for tests, which verifies nobody, counts.
    pub accepts_test_channel: bool,
    /// [`PORTONE_ENDPOINT`], unless it is a test.
    pub endpoint: String,
    pub timeout: Duration,
}

/// A person for the sandbox. The names `FAILED`, `PENDING`, `SLOW`, `WRONG-ID` and `NO-CI` cause
/// errors.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SandboxPersonBody)]
pub struct SandboxPerson {
    #[schema(max_length = 100, example = "김민아")]
    pub name: String,
    #[schema(max_length = 10, example = "1999-01-31")]
    pub birth_date: String,
}

/// The answer of a provider about a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerificationReport {
    /// Which verification the answer is about.
    pub verification_id: String,
    pub outcome: VerificationOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerificationOutcome {
    /// The user has not completed their part.
    Pending,
    Failed,
    /// It went through another channel than the configured one, or through one for tests: the
    /// user's browser chooses the channel.
    OtherChannel,
    /// The identifiers of the person, as far as the provider returns them.
    Verified {
        ci: Option<PersonKey>,
        di: Option<PersonKey>,
    },
}

/// An identifier of a person. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonKey(String);

impl PersonKey {
    fn parse(text: Option<String>) -> Result<Option<PersonKey>, IdentityProviderError> {
        let text = text.filter(|text| !text.trim().is_empty());
        match &text {
            Some(text) if text.len() > KEY_CHARS_MAX => Err(IdentityProviderError::Unreadable),
            _ => Ok(text.map(PersonKey)),
        }
    }

    /// An identifier from the database.
    pub fn stored(text: String) -> PersonKey {
        PersonKey(text)
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PersonKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

/// Why the provider gave no result. The verification stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityProviderError {
    #[error("the identity provider cannot be reached")]
    Unreachable,
    #[error("the identity provider did not answer in time")]
    Timeout,
    #[error("the identity provider answered with the status {0}")]
    Status(u16),
    #[error("the answer of the identity provider cannot be read")]
    Unreadable,
    #[error("the identity provider answered about another verification")]
    OtherVerification,
}

impl From<OutboundError> for IdentityProviderError {
    fn from(error: OutboundError) -> IdentityProviderError {
        match error {
            OutboundError::Timeout => IdentityProviderError::Timeout,
            OutboundError::TooLarge => IdentityProviderError::Unreadable,
            OutboundError::RefusedAddress(_)
            | OutboundError::Unreachable(_)
            | OutboundError::Interrupted(_) => IdentityProviderError::Unreachable,
        }
    }
}

/// The answer of the sandbox.
pub fn ask_sandbox(
    id: VerificationId,
    person: Option<&SandboxPerson>,
) -> Result<VerificationReport, IdentityProviderError> {
    let outcome = match person {
        None => VerificationOutcome::Pending,
        Some(person) => match person.name.as_str() {
            "FAILED" => VerificationOutcome::Failed,
            "PENDING" => VerificationOutcome::Pending,
            "SLOW" => return Err(IdentityProviderError::Timeout),
            "NO-CI" => {
                VerificationOutcome::Verified { ci: None, di: Some(sandbox_key("di", person)) }
            }
            _ => VerificationOutcome::Verified {
                ci: Some(sandbox_key("ci", person)),
                di: Some(sandbox_key("di", person)),
            },
        },
    };
    let is_wrong = person.is_some_and(|person| person.name == "WRONG-ID");
    let verification_id = match is_wrong {
        true => "somebody-elses-attempt".to_owned(),
        false => id.to_string(),
    };
    Ok(VerificationReport { verification_id, outcome })
}

/// The same person always has the same identifier.
fn sandbox_key(kind: &str, person: &SandboxPerson) -> PersonKey {
    let text = format!("{kind}\n{}\n{}", person.name, person.birth_date);
    let hex = hex::encode(Sha256::digest(text.as_bytes()));
    PersonKey(format!("SANDBOX-{kind}-{hex}"))
}

/// The fields of PortOne's answer that we use.
#[derive(Deserialize)]
struct PortOneAnswer {
    id: String,
    status: String,
    channel: Option<VerificationChannel>,
    #[serde(rename = "verifiedCustomer")]
    customer: Option<PortOneCustomer>,
}

#[derive(Deserialize)]
struct VerificationChannel {
    #[serde(rename = "type")]
    kind: String,
    key: Option<String>,
}

#[derive(Deserialize)]
struct PortOneCustomer {
    ci: Option<String>,
    di: Option<String>,
}

impl PortOneIdentity {
    /// Asks for the result of a verification. Name, birth date and phone are ignored.
    pub(super) async fn ask(
        &self,
        outbound: &Outbound,
        id: VerificationId,
    ) -> Result<VerificationReport, IdentityProviderError> {
        // Without the store's id, another store of the same owner may be meant.
        let store = encode_form(&[("storeId", &self.store_id)]);
        let endpoint = self.endpoint.trim_end_matches('/');
        let url = format!("{endpoint}/identity-verifications/{id}?{store}");
        let credential = HeaderValue::from_str(&format!("PortOne {}", self.secret.expose()));
        let mut credential = credential.map_err(|_| IdentityProviderError::Unreachable)?;
        credential.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, credential)]);
        let response = outbound.get_json(&url, headers, self.timeout).await?;
        match response.status {
            // PortOne knows the verification only when the page has opened its window.
            StatusCode::NOT_FOUND => {
                let verification_id = id.to_string();
                return Ok(VerificationReport {
                    verification_id,
                    outcome: VerificationOutcome::Pending,
                });
            }
            status if !status.is_success() => {
                return Err(IdentityProviderError::Status(status.as_u16()));
            }
            _ => {}
        }
        let answer: PortOneAnswer =
            response.json().map_err(|_| IdentityProviderError::Unreadable)?;
        let outcome = match (answer.status.as_str(), answer.customer) {
            ("READY", _) => VerificationOutcome::Pending,
            ("FAILED", _) => VerificationOutcome::Failed,
            ("VERIFIED", Some(_)) if !self.is_own_channel(answer.channel.as_ref()) => {
                VerificationOutcome::OtherChannel
            }
            ("VERIFIED", Some(PortOneCustomer { ci, di })) => VerificationOutcome::Verified {
                ci: PersonKey::parse(ci)?,
                di: PersonKey::parse(di)?,
            },
            _ => return Err(IdentityProviderError::Unreadable),
        };
        Ok(VerificationReport { verification_id: answer.id, outcome })
    }

    fn is_own_channel(&self, channel: Option<&VerificationChannel>) -> bool {
        channel.is_some_and(|channel| {
            let is_live =
                channel.kind == "LIVE" || channel.kind == "TEST" && self.accepts_test_channel;
            is_live && channel.key.as_deref() == Some(&self.channel_key)
        })
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    fn ask(name: &str, birth_date: &str) -> Result<VerificationReport, IdentityProviderError> {
        let (name, birth_date) = (name.to_owned(), birth_date.to_owned());
        let person = SandboxPerson { name, birth_date };
        ask_sandbox(VerificationId(Uuid::from_u128(7)), Some(&person))
    }

    #[test]
    fn the_sandbox_gives_a_person_the_same_key_each_time_and_others_another() {
        let mina = ask("김민아", "1999-01-31").unwrap();
        assert_eq!(ask("김민아", "1999-01-31").unwrap(), mina);
        assert_ne!(ask("김민아", "1999-02-01").unwrap(), mina);
        assert_ne!(ask("박준", "1999-01-31").unwrap(), mina);
        assert!(!format!("{mina:?}").contains("SANDBOX"), "keys are not printed");
    }

    #[test]
    fn some_names_stand_for_what_can_go_wrong() {
        assert_eq!(ask("FAILED", "").unwrap().outcome, VerificationOutcome::Failed);
        assert_eq!(ask("PENDING", "").unwrap().outcome, VerificationOutcome::Pending);
        assert_eq!(ask("SLOW", ""), Err(IdentityProviderError::Timeout));
        let own_id = Uuid::from_u128(7).to_string();
        assert_ne!(ask("WRONG-ID", "").unwrap().verification_id, own_id);
        let nobody = ask_sandbox(VerificationId(Uuid::from_u128(7)), None).unwrap();
        assert_eq!(
            nobody,
            VerificationReport { verification_id: own_id, outcome: VerificationOutcome::Pending }
        );
    }
}
