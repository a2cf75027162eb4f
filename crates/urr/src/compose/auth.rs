//! The auth service, from the configuration.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use urr_auth::{
    AuthParts, AuthPeers, AuthService, BotCheckMethod, BotCheckSettings, IdentityProvider,
    PORTONE_ENDPOINT, PortOneIdentity, ProviderEndpoints, RemoteVerifier, RemoteVerifierKind,
    SocialProvider, SocialProviderSettings, SocialSettings, TermsKind, TermsText, TermsTexts,
    TermsVersions,
};
use urr_contracts::clients::{CommunityClient, MailClient, PaymentClient, TicketClient};
use urr_kernel::Secret;
use urr_service::token::TokenKey;
use urr_service::{Caller, DataKey, DataKeys, Service};
use urr_storage::Db;

use super::ClockAndIds;
use super::builder::Builder;
use crate::config::{BotCheckKind, Config, IdentityProviderKind};
use crate::role::ProcessRole;

/// Starts the auth service.
pub async fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    // Without them no account could be closed or copied, and nobody would notice before a user asks.
    let upstream = |role| builder.upstream(Caller::Auth, role);
    let peers = AuthPeers {
        ticket: TicketClient::new(upstream(ProcessRole::Ticket)?),
        payment: PaymentClient::new(upstream(ProcessRole::Payment)?),
        mail: MailClient::new(upstream(ProcessRole::Mail)?),
        community: CommunityClient::new(upstream(ProcessRole::Community)?),
    };
    let parts = auth_parts(builder.config, db, &builder.sources())?;
    let auth = AuthService::new(AuthParts { peers: Some(peers), ..parts });
    auth.check_data_keys().await?;
    auth.record_terms().await?;
    auth.register_metrics(&builder.kit.metrics);
    let (jobs, stopping) = (auth.clone(), builder.stopping.clone());
    builder.add_jobs("the auth jobs", async move { jobs.run_jobs(stopping).await });
    let service = auth.service(builder.kit);
    builder.auth = Some(auth);
    Ok(service)
}

/// The parts of the auth service, here and in commands.
pub fn auth_parts(config: &Config, db: Db, sources: &ClockAndIds) -> Result<AuthParts> {
    let auth = &config.auth;
    Ok(AuthParts {
        db,
        clock: sources.clock.clone(),
        ids: sources.ids.clone(),
        token_key: TokenKey::new(&auth.jwt_key()),
        data_keys: data_keys(config)?,
        peers: None,
        settings: urr_auth::AuthSettings {
            access_lifetime: Duration::from_secs(auth.jwt_expiration_seconds),
            refresh_lifetime: Duration::from_secs(auth.jwt_refresh_expiration_seconds),
            cookie_security: auth.cookie_secure,
            terms: TermsVersions {
                service: auth.service_terms_version.clone(),
                privacy: auth.privacy_terms_version.clone(),
                marketing: auth.marketing_terms_version.clone(),
            },
            terms_texts: terms_texts(config)?,
            social: social_settings(config),
            bot_check: bot_check(config),
            identity: identity_provider(config),
            departure_kept: Duration::from_secs(u64::from(auth.identity_kept_days) * DAY_SECONDS),
            ..urr_auth::AuthSettings::default()
        },
    })
}

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// The deadline of calls to bot checks and identity providers.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(3);
/// Below this score a visitor counts as a program.
const BOT_SCORE_MIN: f64 = 0.5;

/// The operator's texts, or the program's examples.
pub fn terms_texts(config: &Config) -> Result<TermsTexts> {
    let Some(folder) = &config.auth.terms_dir else { return Ok(TermsTexts::examples()) };
    Ok(TermsTexts {
        service: read_terms(folder, TermsKind::Service)?,
        privacy: read_terms(folder, TermsKind::Privacy)?,
        marketing: read_terms(folder, TermsKind::Marketing)?,
    })
}

fn read_terms(folder: &Path, kind: TermsKind) -> Result<TermsText> {
    let kind = kind.as_str().to_ascii_lowercase();
    let read = |language: &str| {
        let path = folder.join(format!("{kind}.{language}.txt"));
        let text = fs::read_to_string(&path);
        text.map_err(|error| anyhow!("auth.terms_dir: {} cannot be read: {error}", path.display()))
    };
    let (korean, english) = (read("ko")?, read("en")?);
    TermsText::parse(&korean, &english).map_err(|error| {
        anyhow!("auth.terms_dir: a text of {kind} in {} is not usable: {error}", folder.display())
    })
}

fn social_settings(config: &Config) -> SocialSettings {
    let auth = &config.auth;
    let settings = |provider: SocialProvider, id: &Option<String>, secret: &Option<Secret>| {
        id.clone().map(|client_id| SocialProviderSettings {
            client_id,
            client_secret: secret.clone(),
            endpoints: ProviderEndpoints::of(provider),
        })
    };
    SocialSettings {
        public_url: auth.public_url.clone().unwrap_or_default(),
        google: settings(
            SocialProvider::Google,
            &auth.google_client_id,
            &auth.google_client_secret,
        ),
        kakao: settings(SocialProvider::Kakao, &auth.kakao_client_id, &auth.kakao_client_secret),
        naver: settings(SocialProvider::Naver, &auth.naver_client_id, &auth.naver_client_secret),
        ..SocialSettings::default()
    }
}

fn bot_check(config: &Config) -> BotCheckSettings {
    let auth = &config.auth;
    let remote = |kind: RemoteVerifierKind| {
        BotCheckMethod::Remote(RemoteVerifier {
            kind,
            site_key: auth.bot_check_site_key.clone().unwrap_or_default(),
            secret: auth.bot_check_secret.clone().expect("the configuration demands it"),
            endpoint: kind.endpoint().to_owned(),
            hostname: None,
            score_min: BOT_SCORE_MIN,
            timeout: REMOTE_TIMEOUT,
        })
    };
    let method = match auth.bot_check {
        BotCheckKind::Off => BotCheckMethod::Off,
        BotCheckKind::ProofOfWork => BotCheckMethod::ProofOfWork,
        BotCheckKind::Remote(kind) => remote(kind),
    };
    BotCheckSettings {
        method,
        register: true,
        login: auth.bot_check_login,
        base_difficulty: auth.bot_check_bits,
    }
}

fn identity_provider(config: &Config) -> IdentityProvider {
    let (auth, payments) = (&config.auth, &config.payments);
    match auth.identity_provider {
        IdentityProviderKind::Off => IdentityProvider::Off,
        IdentityProviderKind::Sandbox => IdentityProvider::Sandbox,
        IdentityProviderKind::PortOne => IdentityProvider::PortOne(PortOneIdentity {
            secret: payments.portone_api_secret.clone().expect("the configuration demands it"),
            store_id: payments.portone_store_id.clone().unwrap_or_default(),
            channel_key: auth.portone_channel_key.clone().unwrap_or_default(),
            accepts_test_channel: auth.dangerous_test_identities,
            endpoint: PORTONE_ENDPOINT.to_owned(),
            timeout: REMOTE_TIMEOUT,
        }),
    }
}

/// The keys of personal data. Each service derives its own from them.
pub fn data_keys(config: &Config) -> Result<DataKeys> {
    let auth = &config.auth;
    let current = DataKey { version: auth.data_key_version, secret: auth.data_key.clone() };
    let other = auth.other_data_key.clone();
    let other = other.map(|secret| DataKey { version: auth.other_data_key_version, secret });
    DataKeys::new(current, other.as_slice()).context("auth.data_key and auth.other_data_key")
}
