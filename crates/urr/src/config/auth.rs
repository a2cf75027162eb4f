//! Accounts: log-ins, terms, bot check, identity verification, keys of personal data.

use std::path::PathBuf;

use urr_auth::{
    CookieSecurity, LoginCheck, PROOF_DIFFICULTY_MAX, RemoteVerifierKind, TermsVersion,
};
use urr_kernel::Secret;

use super::rule::{
    OWN_SECRET_BYTES_MIN, choice, flag, jwt_secret, number, optional, password, path, seconds,
    secret, signing_key, terms_version, text, web_origin,
};
use super::section::section;

const COOKIE_SECURITY: &[(&str, CookieSecurity)] = &[
    ("auto", CookieSecurity::Auto),
    ("true", CookieSecurity::Always),
    ("false", CookieSecurity::Never),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotCheckKind {
    Off,
    ProofOfWork,
    Remote(RemoteVerifierKind),
}

const BOT_CHECK: &[(&str, BotCheckKind)] = &[
    ("off", BotCheckKind::Off),
    ("proof-of-work", BotCheckKind::ProofOfWork),
    ("recaptcha-v2", BotCheckKind::Remote(RemoteVerifierKind::RecaptchaV2)),
    ("recaptcha-v3", BotCheckKind::Remote(RemoteVerifierKind::RecaptchaV3)),
    ("turnstile", BotCheckKind::Remote(RemoteVerifierKind::Turnstile)),
];

/// The number of failed log-ins from an address after which the next one is checked.
const LOGIN_FAILURES_MAX: u32 = 3;

const BOT_CHECK_LOGIN: &[(&str, LoginCheck)] = &[
    ("never", LoginCheck::Never),
    ("after-failures", LoginCheck::AfterFailures(LOGIN_FAILURES_MAX)),
    ("always", LoginCheck::Always),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityProviderKind {
    Off,
    Sandbox,
    PortOne,
}

const IDENTITY_PROVIDER: &[(&str, IdentityProviderKind)] = &[
    ("off", IdentityProviderKind::Off),
    ("sandbox", IdentityProviderKind::Sandbox),
    ("portone", IdentityProviderKind::PortOne),
];

section! {
    AuthConfig = "auth" {
        jwt_secret: Secret = own_secret(jwt_secret()), "JWT_SECRET";
        jwt_expiration_seconds: u64 = value(seconds()), "JWT_EXPIRATION_SECONDS";
        jwt_refresh_expiration_seconds: u64 =
            value(seconds()), "JWT_REFRESH_EXPIRATION_SECONDS";
        cookie_secure: CookieSecurity = value(choice(COOKIE_SECURITY)), "COOKIE_SECURE";
        verified_email_to_buy: bool = value(flag());
        service_terms_version: TermsVersion = value(terms_version());
        privacy_terms_version: TermsVersion = value(terms_version());
        marketing_terms_version: TermsVersion = value(terms_version());
        /// The folder of the operator's texts. Without it, the program's examples are shown.
        terms_dir: Option<PathBuf> = value(optional(path()));
        /// Where browsers find this site.
        public_url: Option<String> = value(optional(web_origin()));
        google_client_id: Option<String> = value(optional(text())), "GOOGLE_CLIENT_ID";
        google_client_secret: Option<Secret> = secret(password());
        kakao_client_id: Option<String> = value(optional(text()));
        kakao_client_secret: Option<Secret> = secret(password());
        naver_client_id: Option<String> = value(optional(text()));
        naver_client_secret: Option<Secret> = secret(password());
        bot_check: BotCheckKind = value(choice(BOT_CHECK));
        bot_check_login: LoginCheck = value(choice(BOT_CHECK_LOGIN));
        bot_check_bits: u8 = value(number(1..=PROOF_DIFFICULTY_MAX));
        bot_check_site_key: Option<String> = value(optional(text()));
        bot_check_secret: Option<Secret> = secret(password());
        identity_provider: IdentityProviderKind = value(choice(IDENTITY_PROVIDER));
        identity_kept_days: u16 = value(number(0..=365));
        portone_channel_key: Option<String> = value(optional(text()));
        dangerous_test_identities: bool = value(flag());
        data_key: Secret = own_secret(secret(OWN_SECRET_BYTES_MIN));
        data_key_version: u16 = value(number(1..=u16::MAX));
        /// Another key that stored data may need, and its version.
        other_data_key: Option<Secret> = secret(secret(OWN_SECRET_BYTES_MIN));
        other_data_key_version: u16 = value(number(1..=u16::MAX));
    }
}

impl AuthConfig {
    /// The bytes that sign and verify log-ins, the same for every service that does either.
    pub fn jwt_key(&self) -> Vec<u8> {
        signing_key(self.jwt_secret.expose())
    }
}
