//! The gateway: trust, rate limits, timeouts and sizes.

use std::path::PathBuf;

use urr_gateway::AddressRange;
use urr_kernel::Secret;

use super::rule::{
    OWN_SECRET_BYTES_MIN, address_range, list, number, optional, path, secret, web_origin,
};
use super::section::section;

fn rpm() -> super::rule::ValueRule<u32> {
    number(1..=1_000_000)
}

fn bytes() -> super::rule::ValueRule<usize> {
    number(1024..=1_073_741_824)
}

section! {
    GatewayConfig = "gateway" {
        entry_token_secret: Secret =
            own_secret(secret(OWN_SECRET_BYTES_MIN)), "QUEUE_ENTRY_TOKEN_SECRET";
        trusted_edge_secret: Option<Secret> = secret(secret(16)), "CLOUDFRONT_SECRET";
        trusted_proxies: Vec<AddressRange> = value(list(address_range()));
        cors_allowed_origins: Vec<String> = value(list(web_origin())), "CORS_ALLOWED_ORIGINS";
        rate_limit_auth_rpm: u32 = value(rpm()), "RATE_LIMIT_AUTH_RPM";
        rate_limit_queue_rpm: u32 = value(rpm()), "RATE_LIMIT_QUEUE_RPM";
        rate_limit_booking_rpm: u32 = value(rpm()), "RATE_LIMIT_BOOKING_RPM";
        rate_limit_pay_rpm: u32 = value(rpm());
        rate_limit_pay_target_rpm: u32 = value(rpm());
        rate_limit_general_rpm: u32 = value(rpm()), "RATE_LIMIT_GENERAL_RPM";
        rate_limit_webhook_rpm: u32 = value(rpm());
        rate_limit_users_per_address: u32 = value(number(1..=1_000_000));
        rate_limit_login_account_rpm: u32 = value(rpm());
        rate_limit_login_address_rpm: u32 = value(rpm());
        rate_limit_refresh_address_rpm: u32 = value(rpm());
        timeout_seconds: u64 = value(number(1..=600));
        payment_timeout_seconds: u64 = value(number(1..=600));
        queue_timeout_seconds: u64 = value(number(1..=600));
        body_bytes_max: usize = value(bytes());
        auth_body_bytes_max: usize = value(bytes());
        header_bytes_max: usize = value(bytes());
        pages_dir: Option<PathBuf> = value(optional(path()));
    }
}
