//! The auth service: accounts, how users prove who they are, and their sessions.
//!
//! It is the only writer of its schema `user_service`. Other services learn of changes through
//! `user-events`, and ask for a user's name by internal calls.
//!
//! Invariants:
//! - An e-mail address belongs to one account at most.
//! - Personal data are stored encrypted; passwords and tokens are stored only as hashes.
//! - A session is a chain of refresh tokens with one end. A token that is used again after the
//!   grace period ends the session, and that is committed although the answer is a rejection.
//! - Whatever ends a session or changes a role revokes the live access tokens in the same
//!   transaction.
//! - A person whose identity was verified has one account.
//! - A link that is sent by mail works once, and only for the state of the account that it was sent
//!   for.
//! - A version of the terms has one text: what a user agreed to can be read later.
//! - A social identity is linked to an account by its e-mail address only if both the provider and
//!   we have verified the address.
//!
//! Deliberately absent: an account with a known password, and any way to read a password back.

mod accounts;
mod administrators;
mod bot_check;
mod http;
mod identity_check;
mod internal_error;
mod jobs;
mod key_check;
mod links;
mod own_data;
mod passwords;
mod personal_data;
mod reauthentication;
mod sessions;
mod settings;
mod social;
mod sql;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::FromRef;
use urr_contracts::events::user;
use urr_kernel::{Clock, IdSource};
use urr_outbound::Outbound;
use urr_service::token::TokenKey;
use urr_service::{DataKeys, Metrics, Service, ServiceKit};
use urr_storage::{Db, DbResult, Schema, Tx, migrations};
use utoipa::openapi::OpenApi;

pub use accounts::account::{AccountStatus, PersonalDetails, UserAccount, UserId};
pub use accounts::email::{Email, InvalidEmail};
pub use accounts::profile::{InvalidName, InvalidPhone, PersonName, PhoneNumber};
pub use accounts::{Credentials, Profile, RegisterError, Registration, UserError};
pub use administrators::accounts::{
    AccountMeasure, AccountMeasureError, AccountSearch, ActionReason,
};
pub use administrators::{ChangeRoleError, InviteError, NewAdmin, RoleChange};
pub use bot_check::{
    BotAttempt, BotCheckError, BotCheckMethod, BotCheckPurpose, BotCheckSettings, BotCheckTask,
    Challenge, LoginCheck, PROOF_DIFFICULTY_MAX, ProofRejection, RemoteVerifier,
    RemoteVerifierKind, solve_challenge,
};
pub use identity_check::{
    CompleteVerificationError, IdentityProvider, IdentityProviderError, PORTONE_ENDPOINT,
    PortOneIdentity, SandboxPerson, StartVerificationError, Verification, VerificationId,
    VerificationStatus,
};
pub use internal_error::InternalError;
pub use jobs::PurgeCounts;
pub use key_check::DataKeyError;
pub use links::LinkError;
pub use own_data::{AccountDeletion, AuthPeers, DeleteAccountError, ExportError, Losses};
pub use passwords::PasswordCost;
pub use passwords::rules::{InvalidPassword, Password};
pub use reauthentication::{PasswordChange, Reauthentication, ReauthenticationError};
pub use sessions::client_info::ClientInfo;
pub use sessions::login_history::LoginEntry;
pub use sessions::own::{EndSessionError, LiveSession};
pub use sessions::{LoginError, LogoutRequest, RefreshError, Session, VerifyTokenError};
pub use settings::{AuthSettings, CookieSecurity};
pub use social::rules::{LocalPath, SocialProvider};
pub use social::{
    ButtonStart, LinkedIdentity, ProviderEndpoints, SocialCallback, SocialError, SocialFailure,
    SocialLogin, SocialProviderSettings, SocialRedirect, SocialSettings, SocialStart,
    StartLinkError, UnlinkError,
};
pub use terms::{
    FindTermsError, InvalidTerms, InvalidTermsText, TermsAnswer, TermsAnswers, TermsDocument,
    TermsKind, TermsText, TermsTextError, TermsTexts, TermsVersion, TermsVersions,
};

/// The tables of the auth service.
pub const SCHEMA: Schema = Schema {
    name: "user_service",
    migrations: migrations![
        1 "accounts" => "../migrations/0001_accounts.sql",
        2 "social" => "../migrations/0002_social.sql",
        3 "identity" => "../migrations/0003_identity.sql",
        4 "proofs" => "../migrations/0004_proofs.sql",
        5 "links" => "../migrations/0005_links.sql",
    ],
};

/// The topics that the auth service publishes on.
pub const TOPICS: [&str; 1] = [user::TOPIC];

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "user_svc_user";

const SOURCE: &str = "urr/auth";

/// What the auth service is made from.
#[derive(Clone)]
pub struct AuthParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    /// Signs access and refresh tokens. The gateway has the same key.
    pub token_key: TokenKey,
    /// Encrypt personal data. `DataKeys::single` if the key was never changed.
    pub data_keys: DataKeys,
    /// Say what a user has. `None` in commands, where no account is closed or copied.
    pub peers: Option<AuthPeers>,
    pub settings: AuthSettings,
}

/// The auth service with one method per operation. Clones share it.
#[derive(Clone)]
pub struct AuthService(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    ids: IdSource,
    token_key: TokenKey,
    data_keys: personal_data::AccountKeys,
    peers: Option<AuthPeers>,
    settings: AuthSettings,
    passwords: passwords::PasswordPool,
    bot_pressure: bot_check::PressureCounter,
    outbound: Outbound,
    social: social::SocialClient,
    /// Verifications that went through another channel than the configured one.
    identity_mismatches: Arc<AtomicU64>,
}

/// The admin log is read from it.
impl FromRef<AuthService> for Db {
    fn from_ref(auth: &AuthService) -> Db {
        auth.0.db.clone()
    }
}

/// The interface description, for a process that does not run the service.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl AuthService {
    pub fn new(parts: AuthParts) -> AuthService {
        let AuthParts { db, clock, ids, token_key, data_keys, peers, settings } = parts;
        let passwords = passwords::PasswordPool::new(
            settings.password_cost,
            settings.hashing_parallel_max,
            settings.hashing_waiting_max,
        );
        let outbound = Outbound::new();
        AuthService(Arc::new(Inner {
            db,
            clock,
            ids,
            token_key,
            data_keys: personal_data::AccountKeys::new(&data_keys),
            peers,
            settings,
            passwords,
            bot_pressure: bot_check::PressureCounter::default(),
            social: social::SocialClient::new(outbound.clone()),
            outbound,
            identity_mismatches: Arc::default(),
        }))
    }

    /// Reads what nothing but the storage can refuse.
    async fn read<T: Send + 'static>(
        &self,
        body: impl Fn(&mut Tx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.0.db.read(body).await
    }

    /// Writes what nothing but the storage can refuse.
    async fn write<T: Send + 'static>(
        &self,
        body: impl Fn(&mut Tx<'_>) -> DbResult<T> + Send + 'static,
    ) -> DbResult<T> {
        self.0.db.write(body).await
    }

    /// The HTTP service, for the network or for calls within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        Service::new("auth", http::routes().with_state(self.clone()), kit)
            .with_calls(accounts::internal_http::calls(self.clone()))
    }

    /// Exports how busy the hashing of passwords is, and alarms. Must be called once per process.
    pub fn register_metrics(&self, metrics: &Metrics) {
        let [running, waiting, rejected] = [(); 3].map(|()| self.0.passwords.clone());
        let size = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let help = "Passwords that are being hashed.";
        let read = Box::new(move || size(running.running()));
        metrics.observe_gauge("urr_auth_passwords_hashing", help, read);
        let help = "Passwords that wait to be hashed.";
        let read = Box::new(move || size(waiting.waiting()));
        metrics.observe_gauge("urr_auth_passwords_waiting", help, read);
        let help = "Passwords that were rejected because too many waited.";
        let read = Box::new(move || rejected.rejected());
        metrics.observe_counter("urr_auth_passwords_refused", help, read);
        let help = "Identity verifications by another channel than the configured one.";
        let mismatches = Arc::clone(&self.0.identity_mismatches);
        let read = Box::new(move || mismatches.load(Ordering::Relaxed));
        metrics.observe_counter("urr_auth_identity_mismatches", help, read);
    }

    /// How many passwords were compared since the start.
    pub fn passwords_compared(&self) -> u64 {
        self.0.passwords.compared()
    }
}
