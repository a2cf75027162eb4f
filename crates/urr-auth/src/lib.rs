//! Accounts: who someone is, how they prove it, and for how long that counts.
//!
//! It is the only writer of its schema `user_service`. Other services learn of changes through
//! `user-events`, and ask for a user's name by internal calls.
//!
//! Invariants:
//! - An address belongs to one account at most.
//! - What names a person is stored encrypted; passwords and tokens are stored as hashes only.
//! - A session is a chain of refresh tokens with one end. A token used again after the grace ends
//!   it, and that is committed although the answer is a refusal.
//! - Whatever ends a session or changes a role revokes the live access tokens in the same
//!   transaction.
//! - A person who was verified has one account.
//! - An identity at another service joins an account by its address only if both sides proved it.
//!
//! Deliberately absent: an account with a known password, and any way to read a password back.

mod accounts;
mod admin;
mod bot_check;
mod confirmed;
mod domain;
mod events;
mod fault;
mod http;
mod identity_check;
mod jobs;
mod passwords;
mod personal_data;
mod sessions;
mod settings;
mod social;
mod store;
mod terms;

use std::sync::Arc;

use urr_kernel::{Clock, EventData, IdSource};
use urr_outbound::Outbound;
use urr_service::token::TokenKey;
use urr_service::{Metrics, Service, ServiceKit};
use urr_storage::{Db, Schema, migrations};
use utoipa::openapi::OpenApi;

pub use accounts::{Credentials, Profile, RegisterError, Registration, UserError};
pub use admin::{ChangeRoleError, InviteError, NewAdmin};
pub use bot_check::{
    BotAttempt, BotCheck, BotCheckError, BotCheckMethod, Challenge, Door, LoginCheck,
    PROOF_DIFFICULTY_MAX, Refusal, RemoteCheck, RemoteKind, Task, solve_challenge,
};
pub use confirmed::{Confirmation, ConfirmedError, PasswordChange};
pub use domain::account::{AccountStatus, Person, User, UserId};
pub use domain::email::{Email, InvalidEmail};
pub use domain::language::{InvalidLanguage, Language};
pub use domain::password::{InvalidPassword, Password};
pub use domain::profile::{InvalidName, InvalidPhone, Name, Phone};
pub use domain::social::{LocalPath, Provider};
pub use domain::terms::{Agreement, InvalidTerms, Terms, TermsKind, TermsVersion, TermsVersions};
pub use events::{UserDeleted, UserRegistered};
pub use fault::Fault;
pub use identity_check::{
    CompleteVerificationError, IdentityProvider, PORTONE_ENDPOINT, PortOne, ProviderError,
    SandboxPerson, StartVerificationError, Verification, VerificationId, VerificationStatus,
};
pub use jobs::{Purged, Rotation};
pub use passwords::PasswordCost;
pub use personal_data::{DataKey, DataKeys, DuplicateKeyVersion, UnsealError};
pub use sessions::{LoginError, Logout, RefreshError, Session, VerifyTokenError};
pub use settings::{CookieSecurity, Settings};
pub use social::{
    ButtonWay, Endpoints, LinkedIdentity, ProviderSettings, SocialArrival, SocialError,
    SocialFailure, SocialReturn, SocialSettings, SocialStart, SocialWay, StartLinkError,
    UnlinkError,
};
pub use store::records::Origin;
pub use store::sessions::RevokedToken;

/// The tables of accounts.
pub const SCHEMA: Schema = Schema {
    name: "user_service",
    migrations: migrations![
        1 "accounts" => "../migrations/0001_accounts.sql",
        2 "social" => "../migrations/0002_social.sql",
        3 "identity" => "../migrations/0003_identity.sql",
        4 "proofs" => "../migrations/0004_proofs.sql",
    ],
};

/// Where accounts announce what happened.
pub const TOPICS: [&str; 1] = [UserRegistered::TOPIC];

/// The login on PostgreSQL, unless the configuration names another.
pub const DATABASE_USER: &str = "user_svc_user";

const SOURCE: &str = "urr/auth";

/// What accounts are made of.
#[derive(Clone)]
pub struct AuthParts {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    /// Signs access and refresh tokens. The gateway has the same.
    pub token_key: TokenKey,
    /// Seal personal data. `DataKeys::single` if the key was never changed.
    pub data_keys: DataKeys,
    pub settings: Settings,
}

/// Accounts with one method per operation. Clones share them.
#[derive(Clone)]
pub struct Auth {
    db: Db,
    clock: Clock,
    ids: IdSource,
    token_key: TokenKey,
    data_keys: DataKeys,
    settings: Arc<Settings>,
    passwords: passwords::Passwords,
    bot_counter: Arc<bot_check::Counter>,
    outbound: Outbound,
    social: social::SocialClient,
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Auth {
    pub fn new(parts: AuthParts) -> Auth {
        let AuthParts { db, clock, ids, token_key, data_keys, settings } = parts;
        let passwords = passwords::Passwords::new(
            settings.password_cost,
            settings.hashing_parallel_max,
            settings.hashing_waiting_max,
        );
        let (settings, outbound) = (Arc::new(settings), Outbound::new());
        let (bot_counter, social) = (Arc::default(), social::SocialClient::new(outbound.clone()));
        Auth {
            db,
            clock,
            ids,
            token_key,
            data_keys,
            settings,
            passwords,
            bot_counter,
            outbound,
            social,
        }
    }

    /// Accounts as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        Service::new("auth", http::routes().with_state(self.clone()), kit)
    }

    /// Shows how busy the hashing of passwords is. To be called once per process.
    pub fn show_figures(&self, metrics: &Metrics) {
        let pools = [(); 3].map(|()| self.passwords.clone());
        let [running, waiting, refused] = pools;
        let size = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
        let help = "Passwords that are being hashed.";
        let read = Box::new(move || size(running.running()));
        metrics.observe_gauge("urr_auth_passwords_hashing", help, read);
        let help = "Passwords that wait to be hashed.";
        let read = Box::new(move || size(waiting.waiting()));
        metrics.observe_gauge("urr_auth_passwords_waiting", help, read);
        let help = "Passwords sent away because too many waited.";
        let read = Box::new(move || refused.refused());
        metrics.observe_counter("urr_auth_passwords_refused", help, read);
    }

    /// How many passwords were compared since the start.
    pub fn passwords_compared(&self) -> u64 {
        self.passwords.compared()
    }
}
