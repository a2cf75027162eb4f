//! The gateway's settings.

use std::time::Duration;

use urr_kernel::Secret;
use urr_service::BodyPace;
use urr_service::token::TokenKey;

use crate::client_address::AddressRange;
use crate::overload::ConcurrencyLimits;
use crate::rate_limit::RateLimits;
use crate::routes::Timeout;

#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// Verifies access tokens.
    pub access_key: TokenKey,
    /// Verifies entry tokens of the waiting room.
    pub entry_key: TokenKey,
    /// The secret that our own CDN edge sends, if there is one.
    pub trusted_edge_secret: Option<Secret>,
    /// Proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<AddressRange>,
    /// Web origins besides our own whose pages may call the API, as browsers write them.
    pub allowed_origins: Vec<String>,
    pub rate_limits: RateLimits,
    pub timeouts: Timeouts,
    pub concurrency: ConcurrencyLimits,
    pub header_bytes_max: usize,
    /// How slowly a client may send its body.
    pub body_pace: BodyPace,
    /// For bodies to the auth service. For others it is the service kit's limit.
    pub auth_body_bytes_max: usize,
    /// For image uploads, with the form around them.
    pub upload_bytes_max: usize,
    /// Whether users buy only after they have verified their e-mail address.
    pub verified_email_to_buy: bool,
    /// Whether only this machine can reach the server. Then there is no HSTS header.
    pub is_loopback: bool,
}

impl GatewaySettings {
    /// The defaults with these keys.
    pub fn new(access_key: TokenKey, entry_key: TokenKey) -> GatewaySettings {
        GatewaySettings {
            access_key,
            entry_key,
            trusted_edge_secret: None,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            rate_limits: RateLimits::default(),
            timeouts: Timeouts::default(),
            concurrency: ConcurrencyLimits::default(),
            header_bytes_max: 16 * 1024,
            body_pace: BodyPace::default(),
            auth_body_bytes_max: 10 * 1024,
            upload_bytes_max: 5 * 1024 * 1024 + 64 * 1024,
            verified_email_to_buy: false,
            is_loopback: true,
        }
    }
}

/// How long services may take to respond.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub general: Duration,
    pub payment: Duration,
    pub queue: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            general: Duration::from_secs(30),
            payment: Duration::from_secs(60),
            queue: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    pub(crate) fn of(self, timeout: Timeout) -> Duration {
        match timeout {
            Timeout::General => self.general,
            Timeout::Payment => self.payment,
            Timeout::Queue => self.queue,
        }
    }
}
