//! Rate limits (G4).
//!
//! Each rate class has a limit per user, or per address for requests without a user. All users of one
//! address together have a multiple of it, so that many accounts are no way around the limits; it is
//! large, because a campus or a phone network shares one address. Logins and
//! registrations also count per address and per account, against guessing many accounts from one
//! address or one account from many addresses (D-15).
//!
//! The access token has usually expired when a client refreshes, and a campus shares one address, so
//! refreshes count per refresh token, and per address only against a much higher limit.

mod gcra;
mod limiter;
mod local_buckets;
mod redis_buckets;

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::Semaphore;
use urr_kernel::{Secret, Uuid};
use urr_service::ApiError;

pub use self::gcra::{Quota, RateDecision};
pub use self::limiter::{RateLimiter, RateLimiterStats};
use crate::Gateway;
use crate::authenticate::Requester;
use crate::browsers::REFRESH_COOKIE;
use crate::client_address::ClientAddress;
use crate::headers::cookies;
use crate::pipeline::EarlyResponse;
use crate::request_limits::read_whole;
use crate::routes::RateClass;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Requests per minute, by class.
#[derive(Clone, Copy, Debug)]
pub struct RateLimits {
    pub auth: u32,
    pub queue: u32,
    pub booking: u32,
    /// Preparing, confirming and cancelling payments.
    pub pay: u32,
    /// The same, by one user about one payable or order.
    pub pay_target: u32,
    pub general: u32,
    /// Notices of payment providers, from one address.
    pub webhook: u32,
    /// How many times the limit of one user all users of one address have together.
    pub users_per_address: u32,
    /// Logins and registrations from one address.
    pub login_address: u32,
    /// Logins and registrations with one e-mail address.
    pub login_account: u32,
    /// Refreshes from one address. Those with one token have the limit of `auth`.
    pub refresh_address: u32,
}

impl Default for RateLimits {
    fn default() -> RateLimits {
        RateLimits {
            auth: 60,
            queue: 120,
            booking: 30,
            pay: 60,
            pay_target: 20,
            general: 3_000,
            webhook: 3_000,
            users_per_address: 50,
            login_address: 30,
            login_account: 10,
            refresh_address: 3_000,
        }
    }
}

/// The requests of a whole minute may come at once.
fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, burst: per_minute }
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug)]
pub struct RateLimitSubject {
    pub requester: Requester,
    pub address: ClientAddress,
}

/// Counts the request, or refuses it. The decision is for [`write_headers`].
pub async fn check(
    gateway: &Gateway,
    class: RateClass,
    subject: RateLimitSubject,
    request: &mut Request,
) -> Result<RateDecision, EarlyResponse> {
    // Those that read bodies are boxed, so that the others have a small future.
    let decision = match class {
        RateClass::Login => Box::pin(check_login(gateway, subject, request)).await?,
        RateClass::Refresh => Box::pin(check_refresh(gateway, subject, request)).await?,
        RateClass::Pay => Box::pin(check_pay(gateway, subject, request)).await?,
        RateClass::Auth
        | RateClass::Queue
        | RateClass::Booking
        | RateClass::General
        | RateClass::Webhook => check_class(gateway, class, subject).await,
    };
    if decision.allowed {
        return Ok(decision);
    }
    gateway.metrics.count_rate_limited(class);
    let sentence = "Too many requests. Please wait a moment.";
    let refused = ApiError::too_many("RATE_LIMITED", sentence, decision.retry_after);
    let mut response = refused.into_response();
    write_headers(&decision, &mut response);
    Err(response.into())
}

/// Counts a user's request for the user and for the address. A user who is refused takes nothing from
/// the neighbours.
async fn check_class(
    gateway: &Gateway,
    class: RateClass,
    subject: RateLimitSubject,
) -> RateDecision {
    let limits = &gateway.settings.rate_limits;
    let (own, shared) = (subject.bucket(class), subject.shared_bucket(class));
    let mut checks = Vec::with_capacity(2);
    checks.push((own.as_str(), class_quota(class, limits)));
    checks.extend(shared.as_deref().map(|name| (name, shared_quota(class, limits))));
    gateway.limiter.check_all(&checks).await
}

/// What all users of one address share.
fn shared_quota(class: RateClass, limits: &RateLimits) -> Quota {
    let own = class_quota(class, limits);
    per_minute(own.per_minute.saturating_mul(limits.users_per_address))
}

async fn check_login(
    gateway: &Gateway,
    subject: RateLimitSubject,
    request: &mut Request,
) -> Result<RateDecision, ApiError> {
    let limits = &gateway.settings.rate_limits;
    let by_client = subject.bucket(RateClass::Login);
    let by_address = format!("login:address:{}", subject.address.bucket());
    let by_account =
        read_email(&gateway.large_bodies, request).await?.map(|email| account_bucket(&email));
    // The client's own buckets come first: their refusal takes nothing from the account's bucket.
    let mut checks = vec![
        (by_client.as_str(), class_quota(RateClass::Login, limits)),
        (&by_address, per_minute(limits.login_address)),
    ];
    checks.extend(by_account.as_deref().map(|name| (name, per_minute(limits.login_account))));
    Ok(gateway.limiter.check_all(&checks).await)
}

/// Per user, and per user and what is paid. The second bucket has the user in its name, so that
/// nobody can use up another's.
async fn check_pay(
    gateway: &Gateway,
    subject: RateLimitSubject,
    request: &mut Request,
) -> Result<RateDecision, ApiError> {
    let limits = &gateway.settings.rate_limits;
    let by_user = subject.bucket(RateClass::Pay);
    let target = match subject.requester {
        Requester::User { .. } => read_pay_target(&gateway.large_bodies, request).await?,
        Requester::Anonymous | Requester::InvalidToken(_) => None,
    };
    let by_target = target.map(|target| format!("{by_user}:{target}"));
    let shared = subject.shared_bucket(RateClass::Pay);
    let mut checks = vec![(by_user.as_str(), class_quota(RateClass::Pay, limits))];
    checks.extend(shared.as_deref().map(|name| (name, shared_quota(RateClass::Pay, limits))));
    checks.extend(by_target.as_deref().map(|name| (name, per_minute(limits.pay_target))));
    Ok(gateway.limiter.check_all(&checks).await)
}

/// Without a refresh token the request counts per user or address.
async fn check_refresh(
    gateway: &Gateway,
    subject: RateLimitSubject,
    request: &mut Request,
) -> Result<RateDecision, ApiError> {
    let limits = &gateway.settings.rate_limits;
    let quota = class_quota(RateClass::Refresh, limits);
    let token = match refresh_cookie(request.headers()) {
        Some(token) => Some(token.to_owned()),
        None => read_refresh_token(&gateway.large_bodies, request).await?,
    };
    let Some(token) = token else {
        return Ok(gateway.limiter.check(&subject.bucket(RateClass::Refresh), quota).await);
    };
    let by_address = format!("refresh:address:{}", subject.address.bucket());
    let by_token = token_bucket(&token);
    let checks =
        [(by_address.as_str(), per_minute(limits.refresh_address)), (by_token.as_str(), quota)];
    Ok(gateway.limiter.check_all(&checks).await)
}

fn class_quota(class: RateClass, limits: &RateLimits) -> Quota {
    per_minute(match class {
        RateClass::Auth | RateClass::Login | RateClass::Refresh => limits.auth,
        RateClass::Queue => limits.queue,
        RateClass::Booking => limits.booking,
        RateClass::Pay => limits.pay,
        RateClass::General => limits.general,
        RateClass::Webhook => limits.webhook,
    })
}

/// Logins and refreshes share the buckets of other requests to the auth service.
fn class_name(class: RateClass) -> &'static str {
    match class {
        RateClass::Auth | RateClass::Login | RateClass::Refresh => "auth",
        RateClass::Queue => "queue",
        RateClass::Booking => "booking",
        RateClass::Pay => "pay",
        RateClass::General => "general",
        RateClass::Webhook => "webhook",
    }
}

impl RateLimitSubject {
    /// The bucket of all users of the address; none for requests without a user or an address.
    fn shared_bucket(self, class: RateClass) -> Option<String> {
        let is_user = matches!(self.requester, Requester::User { .. });
        let has_address = self.address.0.is_some();
        (is_user && has_address)
            .then(|| [class_name(class), ":users:", &self.address.bucket()].concat())
    }

    /// Not by `format!`, which would cost more than counting the request.
    fn bucket(self, class: RateClass) -> String {
        let class = class_name(class);
        match self.requester {
            Requester::User { id, .. } => {
                let mut text = Uuid::encode_buffer();
                [class, ":user:", id.hyphenated().encode_lower(&mut text)].concat()
            }
            Requester::Anonymous | Requester::InvalidToken(_) => {
                [class, ":address:", &self.address.bucket()].concat()
            }
        }
    }
}

/// The e-mail address in the body, if it has one; if not, the service refuses the body.
async fn read_email(large: &Semaphore, request: &mut Request) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    struct LoginEmail {
        email: String,
    }
    let bytes = read_whole(large, request).await?;
    Ok(serde_json::from_slice::<LoginEmail>(&bytes).ok().map(|body| body.email))
}

/// What a request about payments is about, in a form of limited length; none if its body does not
/// say.
async fn read_pay_target(
    large: &Semaphore,
    request: &mut Request,
) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PayTarget {
        order_id: Option<String>,
        reservation_id: Option<String>,
        reference_id: Option<String>,
    }
    let bytes = read_whole(large, request).await?;
    let target = serde_json::from_slice::<PayTarget>(&bytes).ok();
    let target =
        target.and_then(|body| body.order_id.or(body.reservation_id).or(body.reference_id));
    Ok(target.map(|target| Secret::new("urr-pay-target").derive(&target).expose().to_owned()))
}

/// The refresh token in the body, where clients without cookies send it.
async fn read_refresh_token(
    large: &Semaphore,
    request: &mut Request,
) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RefreshToken {
        refresh_token: String,
    }
    let bytes = read_whole(large, request).await?;
    let token = serde_json::from_slice::<RefreshToken>(&bytes).ok().map(|body| body.refresh_token);
    Ok(token.filter(|token| !token.is_empty()))
}

/// The first refresh cookie that is not empty, which is the one that the auth service uses.
fn refresh_cookie(headers: &HeaderMap) -> Option<&str> {
    let mut found = cookies(headers).filter(|(name, _)| *name == REFRESH_COOKIE);
    found.find_map(|(_, value)| value.filter(|value| !value.is_empty()))
}

/// A bucket name per session that does not reveal the token.
fn token_bucket(token: &str) -> String {
    let digest = Secret::new("urr-refresh-token").derive(token);
    format!("refresh:token:{}", digest.expose())
}

/// A bucket name per account, in any spelling, that does not reveal the e-mail address.
fn account_bucket(email: &str) -> String {
    let digest = Secret::new("urr-login-account").derive(&email.trim().to_lowercase());
    format!("login:account:{}", digest.expose())
}

/// Writes the limit and the remaining requests into the response.
pub fn write_headers(decision: &RateDecision, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(LIMIT, number(decision.limit.into()));
    headers.insert(REMAINING, number(decision.remaining.into()));
    headers.insert(RESET, number(whole_seconds(decision.reset_after)));
}

/// `HeaderValue::from` a number allocates twice, because its buffer is larger than the number.
fn number(number: u64) -> HeaderValue {
    HeaderValue::try_from(number.to_string()).expect("digits are ASCII")
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use urr_kernel::Timestamp;
    use urr_service::UserRole;

    use super::*;
    use crate::authenticate::{LiveToken, TokenFault};

    #[test]
    fn users_are_counted_by_id_and_others_by_address() {
        let address = ClientAddress(Some("1.2.3.4".parse().unwrap()));
        let (id, role) = (Uuid::from_u128(1), UserRole::User);
        let token = LiveToken { id, expires_at: Timestamp::MAX };
        let user = Requester::User { id, role, email_verified: true, token };
        let name = |class, requester| RateLimitSubject { requester, address }.bucket(class);
        let id = Uuid::from_u128(1);
        assert_eq!(name(RateClass::Booking, user), format!("booking:user:{id}"));
        assert_eq!(name(RateClass::Login, Requester::Anonymous), "auth:address:1.2.3.4");
        let invalid = Requester::InvalidToken(TokenFault::Expired);
        assert_eq!(name(RateClass::General, invalid), "general:address:1.2.3.4");
    }

    #[tokio::test]
    async fn d_15_the_account_is_found_however_it_is_typed() {
        let email = async |body: &'static str| {
            let mut request = Request::new(Body::from(body));
            let email = read_email(&Semaphore::new(1), &mut request).await.unwrap();
            let again = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(again, body, "the service reads the same body");
            email.map(|email| account_bucket(&email))
        };
        let mina = email(r#"{"email":"mina@urr.kr","password":"x"}"#).await;
        assert!(mina.is_some());
        assert_eq!(email(r#"{"password":"y", "email":" Mina@URR.kr "}"#).await, mina);
        assert_eq!(email(r#"{"\u0065mail":"mina\u0040urr.kr"}"#).await, mina);
        assert_ne!(email(r#"{"email":"jun@urr.kr"}"#).await, mina);
        for none in ["", "{}", "[]", r#"{"email":1}"#, r#"{"email":"a","email":"b"}"#] {
            assert_eq!(email(none).await, None, "{none}");
        }
        assert!(!mina.unwrap().contains("mina"));
    }
}
