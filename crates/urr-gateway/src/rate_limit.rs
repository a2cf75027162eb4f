//! How often a client may ask (G4).
//!
//! Each class of routes has an allowance per client: per user, or per address where nobody is
//! logged in. Log-ins and registrations count twice more, by address and by account, so that
//! neither many accounts from one place nor one account from many places can be tried (D-15).
//!
//! Whoever refreshes is most often not logged in any more, and a campus shares one address: there
//! the session is counted, by its token, and the address only against a much wider bound.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde::Deserialize;
use urr_kernel::Secret;
use urr_limit::{Decision, Quota};
use urr_service::ApiError;

use crate::Gateway;
use crate::client_address::ClientAddress;
use crate::credential::cookies;
use crate::refused::Refused;
use crate::routes::RateClass;
use crate::sizes::body_too_large;
use crate::visitor::Visitor;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const REFRESH_COOKIE: &str = "refresh_token";

/// Requests per minute, by class.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub auth: u32,
    pub queue: u32,
    pub booking: u32,
    pub general: u32,
    /// Log-ins and registrations from one address.
    pub login_address: u32,
    /// Log-ins and registrations with one e-mail address.
    pub login_account: u32,
    /// Refreshes from one address. Those with one token have the allowance of `auth`.
    pub refresh_address: u32,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            auth: 60,
            queue: 120,
            booking: 30,
            general: 3_000,
            login_address: 30,
            login_account: 10,
            refresh_address: 3_000,
        }
    }
}

/// A minute's worth may come at once.
fn whole(per_minute: u32) -> Quota {
    Quota { per_minute, burst: per_minute }
}

/// Who is counted.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub visitor: Visitor,
    pub address: ClientAddress,
}

/// Counts the request, or refuses one too many. The decision is for [`write_decision`].
pub async fn count(
    gateway: &Gateway,
    class: RateClass,
    client: Client,
    request: &mut Request,
) -> Result<Decision, Refused> {
    let decision = match class {
        RateClass::Login => count_login(gateway, client, request).await?,
        RateClass::Refresh => count_refresh(gateway, client, request).await?,
        RateClass::Auth | RateClass::Queue | RateClass::Booking | RateClass::General => {
            let quota = class_quota(class, &gateway.settings.rates);
            gateway.limiter.check(&client.bucket(class), quota).await
        }
    };
    if decision.allowed {
        return Ok(decision);
    }
    gateway.figures.limited(class);
    let sentence = "Too many requests. Please wait a moment.";
    let refused = ApiError::too_many("RATE_LIMITED", sentence, decision.retry_after);
    let mut response = refused.into_response();
    write_decision(&decision, &mut response);
    Err(response.into())
}

async fn count_login(
    gateway: &Gateway,
    client: Client,
    request: &mut Request,
) -> Result<Decision, ApiError> {
    let rates = &gateway.settings.rates;
    let by_client = client.bucket(RateClass::Login);
    let by_address = format!("login:address:{}", client.address.bucket());
    let by_account = read_email(request).await?.map(|email| account_bucket(&email));
    // The client's own buckets first: a refusal there takes nothing from the account's.
    let mut checks = vec![
        (by_client.as_str(), class_quota(RateClass::Login, rates)),
        (&by_address, whole(rates.login_address)),
    ];
    checks.extend(by_account.as_deref().map(|name| (name, whole(rates.login_account))));
    Ok(gateway.limiter.check_all(&checks).await)
}

/// Without a token there is no session to count: the client is counted as ever.
async fn count_refresh(
    gateway: &Gateway,
    client: Client,
    request: &mut Request,
) -> Result<Decision, ApiError> {
    let rates = &gateway.settings.rates;
    let quota = class_quota(RateClass::Refresh, rates);
    let token = match refresh_cookie(request.headers()) {
        Some(token) => Some(token.to_owned()),
        None => read_refresh_token(request).await?,
    };
    let Some(token) = token else {
        return Ok(gateway.limiter.check(&client.bucket(RateClass::Refresh), quota).await);
    };
    let by_address = format!("refresh:address:{}", client.address.bucket());
    let by_token = token_bucket(&token);
    let checks = [(by_address.as_str(), whole(rates.refresh_address)), (by_token.as_str(), quota)];
    Ok(gateway.limiter.check_all(&checks).await)
}

fn class_quota(class: RateClass, rates: &Rates) -> Quota {
    whole(match class {
        RateClass::Auth | RateClass::Login | RateClass::Refresh => rates.auth,
        RateClass::Queue => rates.queue,
        RateClass::Booking => rates.booking,
        RateClass::General => rates.general,
    })
}

impl Client {
    fn bucket(self, class: RateClass) -> String {
        let class = match class {
            RateClass::Auth | RateClass::Login | RateClass::Refresh => "auth",
            RateClass::Queue => "queue",
            RateClass::Booking => "booking",
            RateClass::General => "general",
        };
        match self.visitor {
            Visitor::User { id, .. } => format!("{class}:user:{id}"),
            Visitor::Anonymous | Visitor::Invalid(_) => {
                format!("{class}:address:{}", self.address.bucket())
            }
        }
    }
}

/// The e-mail address in the body, if it has one; if not, it is the service's to refuse.
async fn read_email(request: &mut Request) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    struct LoginBody {
        email: String,
    }
    let bytes = read_body(request).await?;
    Ok(serde_json::from_slice::<LoginBody>(&bytes).ok().map(|body| body.email))
}

/// The refresh token in the body, where clients without cookies have it.
async fn read_refresh_token(request: &mut Request) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RefreshBody {
        refresh_token: String,
    }
    let bytes = read_body(request).await?;
    let token = serde_json::from_slice::<RefreshBody>(&bytes).ok().map(|body| body.refresh_token);
    Ok(token.filter(|token| !token.is_empty()))
}

/// Reads the whole body, which is small here, and puts it back.
async fn read_body(request: &mut Request) -> Result<Bytes, ApiError> {
    let body = std::mem::take(request.body_mut());
    // It fails if it is larger than its bound, or if the client goes away, who will not read this.
    let bytes = body.collect().await.map_err(|_| body_too_large())?.to_bytes();
    *request.body_mut() = Body::from(bytes.clone());
    Ok(bytes)
}

/// The first cookie of the name that is not empty: the one that the service takes.
fn refresh_cookie(headers: &HeaderMap) -> Option<&str> {
    let mut found = cookies(headers).filter(|(name, _)| *name == REFRESH_COOKIE);
    found.find_map(|(_, value)| value.filter(|value| !value.is_empty()))
}

/// One name per session, which tells nothing of its token.
fn token_bucket(token: &str) -> String {
    let digest = Secret::new("urr-refresh-token").derive(token);
    format!("refresh:token:{}", digest.expose())
}

/// One name per account, however it is typed. The limiter's keys can be seen: no e-mail in them.
fn account_bucket(email: &str) -> String {
    let digest = Secret::new("urr-login-account").derive(&email.trim().to_lowercase());
    format!("login:account:{}", digest.expose())
}

/// Tells the client how much it has left.
pub fn write_decision(decision: &Decision, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(LIMIT, HeaderValue::from(decision.limit));
    headers.insert(REMAINING, HeaderValue::from(decision.remaining));
    headers.insert(RESET, HeaderValue::from(whole_seconds(decision.reset_after)));
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;
    use urr_service::Role;

    use super::*;
    use crate::visitor::TokenFault;

    #[test]
    fn a_user_is_counted_as_such_and_others_by_address() {
        let address = ClientAddress(Some("1.2.3.4".parse().unwrap()));
        let user = Visitor::User { id: Uuid::from_u128(1), role: Role::User };
        let name = |class, visitor| Client { visitor, address }.bucket(class);
        let id = Uuid::from_u128(1);
        assert_eq!(name(RateClass::Booking, user), format!("booking:user:{id}"));
        assert_eq!(name(RateClass::Login, Visitor::Anonymous), "auth:address:1.2.3.4");
        let invalid = Visitor::Invalid(TokenFault::Expired);
        assert_eq!(name(RateClass::General, invalid), "general:address:1.2.3.4");
    }

    #[tokio::test]
    async fn d_15_the_account_is_found_however_it_is_typed() {
        let email = async |body: &'static str| {
            let mut request = Request::new(Body::from(body));
            let email = read_email(&mut request).await.unwrap();
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
