//! What can be chosen about accounts, as values that were checked where they were read.

use std::time::Duration;

use crate::bot_check::BotCheckSettings;
use crate::identity_check::IdentityProvider;
use crate::passwords::PasswordCost;
use crate::social::SocialSettings;
use crate::terms::{TermsVersion, TermsVersions};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When cookies travel over HTTPS only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieSecurity {
    Always,
    Never,
    /// Always, unless the client calls this very machine: `localhost` or a loopback address.
    Auto,
}

#[derive(Clone, Debug)]
pub struct AuthSettings {
    pub access_lifetime: Duration,
    pub refresh_lifetime: Duration,
    /// How long a replaced refresh token still leads to its successor.
    pub refresh_grace: Duration,
    pub cookie_security: CookieSecurity,
    pub password_cost: PasswordCost,
    /// So many passwords are hashed at once.
    pub hashing_parallel_max: usize,
    /// So many more may wait.
    pub hashing_waiting_max: usize,
    /// A login beyond this ends the oldest session.
    pub sessions_per_user_max: u32,
    /// An account that nobody used for so long is put aside.
    pub dormant_after: Duration,
    pub login_history_kept: Duration,
    pub admin_invite_lifetime: Duration,
    /// Which versions of the terms people agree to.
    pub terms: TermsVersions,
    /// How programs are kept out.
    pub bot_check: BotCheckSettings,
    /// Who tells who someone is. Nobody unless someone names one.
    pub identity: IdentityProvider,
    /// For so long after an account was deleted its person cannot be verified for another one.
    pub departure_kept: Duration,
    /// By whom else one can log in. Nobody unless someone is named.
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
            // The other half is for those who do not log in.
            hashing_parallel_max: std::thread::available_parallelism()
                .map_or(1, |n| n.get().div_ceil(2)),
            hashing_waiting_max: 64,
            sessions_per_user_max: 20,
            dormant_after: 365 * DAY,
            login_history_kept: 365 * DAY,
            admin_invite_lifetime: DAY,
            terms: TermsVersions::all(&TermsVersion::parse("2026-11").expect("it is plain")),
            bot_check: BotCheckSettings::default(),
            identity: IdentityProvider::Off,
            departure_kept: 30 * DAY,
            social: SocialSettings::default(),
        }
    }
}
