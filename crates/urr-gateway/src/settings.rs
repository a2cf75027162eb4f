//! What the gateway is told at its start.

use std::time::Duration;

use urr_kernel::Secret;
use urr_service::token::TokenKey;

use crate::client_address::AddressRange;
use crate::overload::Concurrency;
use crate::rate_limit::Rates;
use crate::routes::Timeout;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Verifies access tokens.
    pub access_key: TokenKey,
    /// Verifies entry tokens of the waiting room.
    pub entry_key: TokenKey,
    /// What our own edge proves itself with, if there is one.
    pub trusted_edge_secret: Option<Secret>,
    /// Whose word on the client's address is taken.
    pub trusted_proxies: Vec<AddressRange>,
    /// Web origins besides our own whose pages may call us, as browsers write them.
    pub allowed_origins: Vec<String>,
    pub rates: Rates,
    pub timeouts: Timeouts,
    pub concurrency: Concurrency,
    pub header_bytes_max: usize,
    /// Bodies for the auth service; the bound of most others is the service kit's.
    pub auth_body_bytes_max: usize,
    /// Pictures with the form around them.
    pub upload_bytes_max: usize,
    /// Whether only this machine can reach the door. Then browsers are not told to insist on TLS.
    pub is_loopback: bool,
}

impl Settings {
    /// The defaults, with the keys that nothing can be a default for.
    pub fn new(access_key: TokenKey, entry_key: TokenKey) -> Settings {
        Settings {
            access_key,
            entry_key,
            trusted_edge_secret: None,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            rates: Rates::default(),
            timeouts: Timeouts::default(),
            concurrency: Concurrency::default(),
            header_bytes_max: 16 * 1024,
            auth_body_bytes_max: 10 * 1024,
            upload_bytes_max: 5 * 1024 * 1024 + 64 * 1024,
            is_loopback: true,
        }
    }
}

/// How long services may take.
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
