//! Bot checks before registration and login.
//!
//! The method is off, our own proof of work, or a remote verifier. The check comes before a password
//! is hashed, because hashing is what bots could exhaust.
//!
//! If the remote verifier is down, the client gets a proof of work instead. While it works no client
//! gets one, so none can choose the easier task.

pub mod http;
mod pressure;
mod proof_of_work;
mod remote_verifier;
mod store;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, named_enum};
use urr_service::token::{TokenError, TokenFacts, TokenPurpose};
use urr_storage::DbResult;
use utoipa::ToSchema;

use crate::accounts::email::Email;
use crate::internal_error::from_internal_errors;
use crate::{AuthService, InternalError};

pub(crate) use pressure::PressureCounter;
pub use proof_of_work::{DIFFICULTY_MAX as PROOF_DIFFICULTY_MAX, solve as solve_challenge};
use remote_verifier::VerifierVerdict;
pub use remote_verifier::{RemoteVerifier, RemoteVerifierKind};

const CHALLENGE: TokenPurpose = TokenPurpose { audience: "urr-bot-check", typ: "pow+jwt" };
const CHALLENGE_LIFETIME: Duration = Duration::from_secs(120);
/// How long failed logins count against an address.
pub(crate) const FAILURES_WINDOW: Duration = Duration::from_secs(15 * 60);
/// More failed logins per minute in one process mean that somebody tries stolen addresses and
/// passwords. Each address is tried once or twice, so counting by address does not show it.
const FAILURES_ATTACK_PER_MINUTE: u32 = 300;

#[derive(Clone, Debug)]
pub struct BotCheckSettings {
    pub method: BotCheckMethod,
    /// Whether registration is checked.
    pub register: bool,
    pub login: LoginCheck,
    /// The number of zero bits of a proof of work at normal load. A phone finds 16 in less than a
    /// second.
    pub base_difficulty: u8,
}

#[derive(Clone, Debug)]
pub enum BotCheckMethod {
    Off,
    ProofOfWork,
    Remote(RemoteVerifier),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginCheck {
    Never,
    /// After this many failed logins for an address within 15 minutes, or very many for all
    /// addresses within a minute.
    AfterFailures(u32),
    Always,
}

impl Default for BotCheckSettings {
    fn default() -> BotCheckSettings {
        BotCheckSettings {
            method: BotCheckMethod::ProofOfWork,
            register: true,
            login: LoginCheck::AfterFailures(3),
            base_difficulty: 16,
        }
    }
}

/// The operation that a proof is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BotCheckPurpose {
    Register,
    Login,
}

named_enum!(BotCheckPurpose { Register => "register", Login => "login" });

/// A registration or login to check.
#[derive(Clone, Debug)]
pub struct BotAttempt {
    pub purpose: BotCheckPurpose,
    pub email: Email,
    /// `<challenge>:<nonce>`.
    pub proof_of_work: Option<String>,
    /// The token of the remote verifier.
    pub remote_token: Option<String>,
    /// The address of the client, or empty.
    pub address: String,
}

/// A challenge for a proof of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub text: String,
    pub difficulty: u8,
    pub expires_at: Timestamp,
}

/// What a client must do to pass the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BotCheckTask {
    Nothing,
    Work(Challenge),
    Remote { kind: RemoteVerifierKind, site_key: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofRejection {
    #[error("there is no proof")]
    Missing,
    #[error("the proof has a wrong format")]
    Malformed,
    #[error("the challenge was not signed by us")]
    Forged,
    #[error("the challenge has expired")]
    Expired,
    #[error("the challenge is for another purpose")]
    OtherPurpose,
    #[error("the proof has too few zero bits")]
    TooEasy,
    #[error("the challenge was used before")]
    Spent,
    #[error("the verifier rejected the token")]
    Denied,
    #[error("the verifier is down")]
    VerifierDown,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BotCheckError {
    #[error("{rejection}")]
    ProofRequired { rejection: ProofRejection, task: Box<BotCheckTask> },
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(BotCheckError);

/// The claims of a challenge; its subject is the purpose.
#[derive(Serialize, Deserialize)]
struct ChallengeClaims {
    difficulty: u8,
}

impl AuthService {
    /// The task for a purpose.
    pub fn bot_task(&self, purpose: BotCheckPurpose) -> BotCheckTask {
        let BotCheckSettings { method, register, login, .. } = &self.0.settings.bot_check;
        let is_guarded = match purpose {
            BotCheckPurpose::Register => *register,
            BotCheckPurpose::Login => *login != LoginCheck::Never,
        };
        match method {
            BotCheckMethod::ProofOfWork if is_guarded => {
                BotCheckTask::Work(self.issue_challenge(purpose))
            }
            BotCheckMethod::Remote(RemoteVerifier { kind, site_key, .. }) if is_guarded => {
                BotCheckTask::Remote { kind: *kind, site_key: site_key.clone() }
            }
            BotCheckMethod::Off | BotCheckMethod::ProofOfWork | BotCheckMethod::Remote(_) => {
                BotCheckTask::Nothing
            }
        }
    }

    /// Checks the proof of an attempt, if one is required.
    pub async fn check_bot(&self, attempt: &BotAttempt) -> Result<(), BotCheckError> {
        if !self.is_checked(attempt).await? {
            return Ok(());
        }
        let purpose = attempt.purpose;
        let work = attempt.proof_of_work.as_deref();
        let rejection = match &self.0.settings.bot_check.method {
            BotCheckMethod::Off => None,
            BotCheckMethod::ProofOfWork => self.reject_proof_of_work(purpose, work).await?,
            // The client has a challenge of ours, because the verifier was down.
            BotCheckMethod::Remote(_) if work.is_some() => {
                self.reject_proof_of_work(purpose, work).await?
            }
            BotCheckMethod::Remote(remote) => self.reject_remote_token(remote, attempt).await,
        };
        let Some(rejection) = rejection else { return Ok(()) };
        if !matches!(rejection, ProofRejection::Missing | ProofRejection::VerifierDown) {
            self.0.bot_pressure.count_failure(self.0.clock.now());
        }
        let task = match rejection {
            ProofRejection::VerifierDown => BotCheckTask::Work(self.issue_challenge(purpose)),
            _ => self.bot_task(purpose),
        };
        Err(BotCheckError::ProofRequired { rejection, task: task.into() })
    }

    /// Counts a failed login, if the settings need that.
    pub async fn note_failed_login(&self, email: &Email) -> DbResult<()> {
        let BotCheckSettings { method, login, .. } = &self.0.settings.bot_check;
        if matches!(method, BotCheckMethod::Off) {
            return Ok(());
        }
        let now = self.0.clock.now();
        self.0.bot_pressure.count_failure(now);
        if !matches!(login, LoginCheck::AfterFailures(_)) {
            return Ok(());
        }
        let index = self.email_index(email);
        self.0.db.write(move |tx| store::failure_insert(tx, &index, now)).await
    }

    async fn is_checked(&self, attempt: &BotAttempt) -> DbResult<bool> {
        let BotCheckSettings { method, register, login, .. } = &self.0.settings.bot_check;
        if matches!(method, BotCheckMethod::Off) {
            return Ok(false);
        }
        match (attempt.purpose, *login) {
            (BotCheckPurpose::Register, _) => Ok(*register),
            (BotCheckPurpose::Login, LoginCheck::Never) => Ok(false),
            (BotCheckPurpose::Login, LoginCheck::Always) => Ok(true),
            (BotCheckPurpose::Login, LoginCheck::AfterFailures(_)) if self.is_under_attack() => {
                Ok(true)
            }
            (BotCheckPurpose::Login, LoginCheck::AfterFailures(enough)) => {
                let index = self.email_index(&attempt.email);
                let since = self.0.clock.now() - FAILURES_WINDOW;
                let count = self.read(move |tx| store::failure_count(tx, &index, since, enough));
                Ok(count.await? >= enough)
            }
        }
    }

    fn is_under_attack(&self) -> bool {
        self.0.bot_pressure.pressure(self.0.clock.now()).failures >= FAILURES_ATTACK_PER_MINUTE
    }

    fn email_index(&self, email: &Email) -> Vec<u8> {
        let indexes = self.0.data_keys.email_indexes(email);
        indexes.into_iter().next().expect("there is always a current key")
    }

    fn issue_challenge(&self, purpose: BotCheckPurpose) -> Challenge {
        let now = self.0.clock.now();
        let pressure = self.0.bot_pressure.pressure(now);
        let base = self.0.settings.bot_check.base_difficulty;
        let difficulty = proof_of_work::difficulty_now(base, pressure);
        let (subject, id) = (purpose.as_str().to_owned(), self.0.ids.next_id());
        let issue = TokenFacts { subject, id, issued_at: now, lifetime: CHALLENGE_LIFETIME };
        let text = self.0.token_key.sign(CHALLENGE, &issue, &ChallengeClaims { difficulty });
        Challenge { text, difficulty, expires_at: now + CHALLENGE_LIFETIME }
    }

    /// Why a proof of work is rejected. A valid one is spent.
    async fn reject_proof_of_work(
        &self,
        purpose: BotCheckPurpose,
        proof: Option<&str>,
    ) -> DbResult<Option<ProofRejection>> {
        let Some(proof) = proof else { return Ok(Some(ProofRejection::Missing)) };
        let Some(challenge) = proof_of_work::challenge_of(proof) else {
            return Ok(Some(ProofRejection::Malformed));
        };
        let now = self.0.clock.now();
        let verified = self.0.token_key.verify::<ChallengeClaims>(CHALLENGE, challenge, now);
        let verified = match verified {
            Ok(verified) => verified,
            Err(TokenError::Expired) => return Ok(Some(ProofRejection::Expired)),
            Err(TokenError::Malformed) => return Ok(Some(ProofRejection::Malformed)),
            Err(_) => return Ok(Some(ProofRejection::Forged)),
        };
        if verified.subject != purpose.as_str() {
            return Ok(Some(ProofRejection::OtherPurpose));
        }
        if !proof_of_work::is_solved(proof, verified.claims.difficulty) {
            return Ok(Some(ProofRejection::TooEasy));
        }
        let (id, expires_at) = (verified.id, verified.expires_at);
        let is_first = self.write(move |tx| store::challenge_spend(tx, id, expires_at)).await?;
        if is_first {
            self.0.bot_pressure.count_proof(now);
        }
        Ok((!is_first).then_some(ProofRejection::Spent))
    }

    async fn reject_remote_token(
        &self,
        remote: &RemoteVerifier,
        attempt: &BotAttempt,
    ) -> Option<ProofRejection> {
        let Some(token) = &attempt.remote_token else { return Some(ProofRejection::Missing) };
        match remote.ask(&self.0.outbound, attempt.purpose, token, &attempt.address).await {
            VerifierVerdict::Passed => None,
            VerifierVerdict::Denied => Some(ProofRejection::Denied),
            VerifierVerdict::Unknown => Some(ProofRejection::VerifierDown),
        }
    }
}
