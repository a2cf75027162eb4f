//! The settings of the auth service, which the configuration has checked.

use std::time::Duration;

use crate::bot_check::BotCheckSettings;
use crate::identity_check::IdentityProvider;
use crate::passwords::PasswordCost;
use crate::social::SocialSettings;
use crate::terms::{TermsTexts, TermsVersion, TermsVersions};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When cookies have the attribute `Secure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieSecurity {
    Always,
    Never,
    /// Always, unless the client calls `localhost` or a loopback address.
    Auto,
}

#[derive(Clone, Debug)]
pub struct AuthSettings {
    pub access_lifetime: Duration,
    pub refresh_lifetime: Duration,
    /// How long a replaced refresh token still gets the tokens of its successor.
    pub refresh_grace: Duration,
    pub cookie_security: CookieSecurity,
    pub password_cost: PasswordCost,
    /// How many passwords are hashed at the same time.
    pub hashing_parallel_max: usize,
    /// How many more may wait to be hashed.
    pub hashing_waiting_max: usize,
    /// A login beyond this number ends the oldest session.
    pub sessions_per_user_max: u32,
    /// An account becomes dormant when it was not used for this long.
    pub dormant_after: Duration,
    pub login_history_kept: Duration,
    pub admin_invite_lifetime: Duration,
    /// How long a link that is sent by mail works.
    pub link_lifetime: Duration,
    /// How many links of a kind an address gets within an hour.
    pub link_requests_max: u32,
    /// The versions of the terms that are in force.
    pub terms: TermsVersions,
    /// What they say.
    pub terms_texts: TermsTexts,
    pub bot_check: BotCheckSettings,
    /// The provider that verifies identities; off by default.
    pub identity: IdentityProvider,
    /// How long after the deletion of an account its person cannot be verified for another one.
    pub departure_kept: Duration,
    /// The social providers; none by default.
    pub social: SocialSettings,
}

impl Default for AuthSettings {
    fn default() -> AuthSettings {
        AuthSettings {
            access_lifetime: Duration::from_secs(30 * 60),
            refresh_lifetime: 7 * DAY,
            refresh_grace: Duration::from_secs(30),
            cookie_security: CookieSecurity::Auto,
            password_cost: PasswordCost::default(),
            // The other half of the processors is for requests that are not logins.
            hashing_parallel_max: std::thread::available_parallelism()
                .map_or(1, |n| n.get().div_ceil(2)),
            hashing_waiting_max: 64,
            sessions_per_user_max: 20,
            dormant_after: 365 * DAY,
            login_history_kept: 365 * DAY,
            admin_invite_lifetime: DAY,
            link_lifetime: Duration::from_secs(30 * 60),
            link_requests_max: 3,
            terms: TermsVersions::all(&TermsVersion::parse("2026-11").expect("it is plain")),
            terms_texts: TermsTexts::examples(),
            bot_check: BotCheckSettings::default(),
            identity: IdentityProvider::Off,
            departure_kept: 30 * DAY,
            social: SocialSettings::default(),
        }
    }
}
