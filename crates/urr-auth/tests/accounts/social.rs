//! Signing in by another service, against a provider that speaks the real protocol.

mod google_button;
mod identities;
mod passwordless;
mod provider;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_auth::{
    AccountMeasure, ActionReason, AuthService, AuthSettings, PurgeCounts, Reauthentication,
    Session, SocialSettings, UserId,
};
use urr_kernel::{Timestamp, Uuid};
use urr_service::token::{ACCESS, AccessClaims, TokenFacts};
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};

use urr_storage::{Db, Row, StorageError, Tx, params};

use self::provider::{Outage, PersonalDetails, TestProvider};
use crate::contract;
use crate::fixture::{
    MINUTE, PASSWORD, SECOND, World, all, change_role, cheap_settings, data_keys, token_key,
};

const PROVIDERS: [&str; 3] = ["google", "kakao", "naver"];

const MINA: PersonalDetails = PersonalDetails {
    subject: "108204",
    email: Some("mina@example.com"),
    email_verified: Some(true),
    name: "김민아",
};
const JUNO: PersonalDetails =
    PersonalDetails { subject: "220011", email: Some("juno@example.com"), name: "Juno", ..MINA };

/// Our site as a browser sees it, and a provider beside it.
struct Site {
    provider: TestProvider,
    auth: AuthService,
    router: Router,
    db: Db,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

/// A browser on its way: where the provider sends it back to, and its cookie.
#[derive(Clone)]
struct Way {
    back: String,
    cookie: String,
}

impl Answer {
    fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::FOUND, "{}", self.body);
        self.headers[LOCATION].to_str().unwrap()
    }

    fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }

    fn set_cookie(&self, name: &str) -> Option<&str> {
        let lines = self.headers.get_all(SET_COOKIE).iter().map(|line| line.to_str().unwrap());
        let mut lines = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let found = lines.next();
        assert!(lines.next().is_none(), "{name} is set twice");
        found
    }

    fn cookie(&self, name: &str) -> Option<&str> {
        self.set_cookie(name)?.split(';').next().filter(|value| !value.is_empty())
    }
}

impl Site {
    async fn new(world: &World) -> Site {
        let provider = TestProvider::start(world.clock.clone()).await;
        Site::with(world, provider, |_| {})
    }

    fn with(world: &World, provider: TestProvider, change: fn(&mut SocialSettings)) -> Site {
        let mut social = provider.settings();
        change(&mut social);
        let settings = AuthSettings { social, ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        let router = router(world, &auth);
        Site { provider, auth, router, db: world.db.clone() }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        change: impl FnOnce(&mut Request<Body>),
    ) -> Answer {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        request.headers_mut().insert(HOST, "urr.example".parse().unwrap());
        request.extensions_mut().insert(Caller::Gateway);
        change(&mut request);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn post(&self, path: &str, body: Value, user: Option<UserId>) -> Answer {
        self.call(Method::POST, path, |request| {
            *request.body_mut() = Body::from(body.to_string());
            request.headers_mut().insert(CONTENT_TYPE, "application/json".parse().unwrap());
            identify(request, user);
        })
        .await
    }

    async fn start(&self, provider: &str, query: &str) -> Answer {
        let path = format!("/api/auth/social/{provider}/start?{query}");
        self.call(Method::GET, &path, |_| {}).await
    }

    /// Sets out, and is this person at the provider.
    async fn set_out(&self, provider: &str, person: PersonalDetails) -> Way {
        let answer = self.start(provider, "redirect=/events?page=2&terms=1").await;
        let cookie = answer.cookie("urr_social").unwrap().to_owned();
        Way { back: self.provider.approve(provider, answer.location(), person), cookie }
    }

    async fn set_out_without_terms(&self, provider: &str, person: PersonalDetails) -> Way {
        let answer = self.start(provider, "redirect=/events").await;
        let cookie = answer.cookie("urr_social").unwrap().to_owned();
        Way { back: self.provider.approve(provider, answer.location(), person), cookie }
    }

    async fn come_back(&self, way: &Way, user: Option<UserId>) -> Answer {
        self.call(Method::GET, &way.back, |request| {
            let cookie = format!("theme=dark; urr_social={}", way.cookie);
            request.headers_mut().insert(COOKIE, cookie.parse().unwrap());
            identify(request, user);
        })
        .await
    }

    async fn sign_in(&self, provider: &str, person: PersonalDetails) -> Answer {
        let way = self.set_out(provider, person).await;
        self.come_back(&way, None).await
    }

    async fn signed_in(&self, provider: &str, person: PersonalDetails) -> UserId {
        let answer = self.sign_in(provider, person).await;
        assert_eq!(answer.location(), "/events?page=2");
        self.whose(&answer).await
    }

    async fn whose(&self, answer: &Answer) -> UserId {
        let token = answer.cookie("access_token").unwrap();
        self.auth.verify_token(token).await.unwrap().id
    }

    /// Adds an identity to the account of a user.
    async fn link(&self, provider: &str, user: UserId, person: PersonalDetails) -> Answer {
        let way = self.begin_link(provider, user, person).await;
        self.come_back(&way, Some(user)).await
    }

    /// An access token of the last session of a user.
    async fn token_of(&self, user: UserId) -> String {
        let sql = "select family_id, issued_at from refresh_tokens where user_id = $1 \
                   and rotated_at is null order by issued_at desc, id desc limit 1";
        let read = |row: &Row<'_>| Ok((row.get("family_id")?, row.get("issued_at")?));
        let find = move |tx: &mut Tx<'_>| tx.query_one(sql, params![user.0], read);
        let found: Result<(Uuid, Timestamp), StorageError> = self.db.read(find).await;
        let (family_id, issued_at) = found.unwrap();
        let (email, role, email_verified) = (String::new(), UserRole::User, true);
        let claims = AccessClaims { email, role, family_id, email_verified };
        let (subject, id) = (user.to_string(), Uuid::from_u128(1));
        let issue = TokenFacts { subject, id, issued_at, lifetime: 30 * MINUTE };
        token_key().sign(ACCESS, &issue, &claims)
    }

    async fn ask_link(&self, provider: &str, user: UserId, token: &str, with: Value) -> Answer {
        let mut body = json!({"redirect": "/my"});
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        self.call(Method::POST, &format!("/api/auth/social/{provider}/link"), |request| {
            *request.body_mut() = Body::from(body.to_string());
            identify(request, Some(user));
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
            headers.insert(COOKIE, format!("access_token={token}").parse().unwrap());
        })
        .await
    }

    async fn begin_link(&self, provider: &str, user: UserId, person: PersonalDetails) -> Way {
        let answer = self.ask_link(provider, user, &self.token_of(user).await, json!({})).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let url = answer.body["url"].as_str().unwrap();
        let cookie = answer.cookie("urr_social").unwrap().to_owned();
        Way { back: self.provider.approve(provider, url, person), cookie }
    }
}

fn router(world: &World, auth: &AuthService) -> Router {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    auth.service(&kit).local_router()
}

fn identify(request: &mut Request<Body>, user: Option<UserId>) {
    if let Some(user) = user {
        let identity = Identity { user_id: user.0, email: None, role: UserRole::User };
        identity.write(request.headers_mut());
    }
}

async fn users(world: &World) -> i64 {
    world.number("select count(*) as n from users where status <> 'deleted'").await
}

async fn identities(world: &World) -> i64 {
    world.number("select count(*) as n from social_identities").await
}

/// A failed login: the login page says so, and there is no session.
fn assert_turned_away(answer: &Answer, code: &str) {
    assert_eq!(answer.location(), format!("/login?error={code}"));
    assert_eq!(answer.cookie("access_token"), None);
    assert_eq!(answer.cookie("refresh_token"), None);
}

contract! {
    async fn each_provider_opens_an_account_and_the_same_person_comes_back_to_it(world: World) {
        let site = Site::new(&world).await;
        for (number, provider) in PROVIDERS.into_iter().enumerate() {
            let email = ["a@example.com", "b@example.com", "c@example.com"][number];
            let person = PersonalDetails { email: Some(email), ..MINA };
            let id = site.signed_in(provider, person).await;
            let user = site.auth.get_user(id).await.unwrap();
            assert_eq!(user.person.email.as_str(), email);
            assert_eq!(user.person.name.as_str(), "김민아");
            assert_eq!(user.role, UserRole::User);
            let moved = PersonalDetails { email: Some("new@example.com"), ..person };
            assert_eq!(site.signed_in(provider, moved).await, id, "the subject counts");
        }
        assert_eq!((users(&world).await, identities(&world).await), (3, 3));
        let agreed = "select count(*) as n from terms_agreements where agreed \
                      and kind in ('SERVICE', 'PRIVACY') and version = '2026-11'";
        assert_eq!(world.number(agreed).await, 6);
        let kakao = "select count(*) as n from login_history where method = 'kakao' and success";
        assert_eq!(world.number(kakao).await, 2);
        let verified = "select count(*) as n from users where email_verified_at is not null";
        assert_eq!(world.number(verified).await, 2, "Naver does not say it");
        let announced = "select count(*) as n from outbox";
        assert_eq!(world.number(announced).await, 4, "three accounts, and a link to verify one");
    }

    async fn the_way_is_bound_to_the_browser_by_a_cookie_that_scripts_cannot_read(world: World) {
        let site = Site::new(&world).await;
        let answer = site.start("google", "").await;
        let cookie = answer.set_cookie("urr_social").unwrap();
        let (_, attributes) = cookie.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/api; Max-Age=600; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(answer.headers["cache-control"], "no-store");
        let asked = provider::query(answer.location());
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", "urr-google"),
            ("redirect_uri", "https://urr.example/api/auth/social/google/callback"),
            ("scope", "openid email profile"),
            ("code_challenge_method", "S256"),
        ] {
            assert_eq!(asked[name], value);
        }
        let secret = answer.cookie("urr_social").unwrap();
        assert!(!answer.location().contains(secret), "the provider does not learn it");
        let way = site.set_out("google", MINA).await;
        let answer = site.come_back(&way, None).await;
        assert!(answer.set_cookie("urr_social").unwrap().contains("Max-Age=0"));
        assert!(answer.set_cookie("refresh_token").unwrap().contains("HttpOnly"));
    }

    async fn a_way_of_another_browser_or_without_one_leads_nowhere(world: World) {
        let site = Site::new(&world).await;
        let attacker = site.set_out("google", JUNO).await;
        let victim = site.set_out("google", MINA).await;
        let mixed = Way { cookie: victim.cookie.clone(), ..attacker.clone() };
        let none = Way { cookie: String::new(), ..attacker.clone() };
        let made_up = Way { cookie: "0".repeat(64), ..attacker.clone() };
        for way in [mixed, none, made_up] {
            let answer = site.come_back(&way, None).await;
            assert_turned_away(&answer, "SOCIAL_STATE_INVALID");
        }
        let path = "/api/auth/social/google/callback";
        for query in ["", "?code=x", "?state=x&code=x", "?error=access_denied"] {
            let way = Way { back: format!("{path}{query}"), cookie: victim.cookie.clone() };
            let answer = site.come_back(&way, None).await;
            assert_turned_away(&answer, "SOCIAL_STATE_INVALID");
        }
        assert_eq!(site.come_back(&victim, None).await.location(), "/events?page=2", "unharmed");
        assert_eq!(site.come_back(&attacker, None).await.location(), "/events?page=2");
    }

    async fn a_way_leads_somewhere_once(world: World) {
        let site = Site::new(&world).await;
        let way = site.set_out("google", MINA).await;
        assert_eq!(site.come_back(&way, None).await.location(), "/events?page=2");
        assert_turned_away(&site.come_back(&way, None).await, "SOCIAL_STATE_INVALID");
        let other = site.set_out("google", MINA).await;
        let elsewhere = Way { back: other.back.replace("google", "kakao"), ..other.clone() };
        assert_turned_away(&site.come_back(&elsewhere, None).await, "SOCIAL_STATE_INVALID");
        assert_turned_away(&site.come_back(&other, None).await, "SOCIAL_STATE_INVALID");
    }

    async fn a_way_that_took_too_long_leads_nowhere_and_is_forgotten(world: World) {
        let site = Site::new(&world).await;
        let in_time = site.set_out("google", MINA).await;
        let late = site.set_out("google", MINA).await;
        let never = site.set_out("google", MINA).await;
        world.clock.advance(10 * MINUTE - SECOND);
        assert_eq!(site.come_back(&in_time, None).await.location(), "/events?page=2");
        assert_eq!(world.auth.purge_expired(100).await.unwrap(), PurgeCounts::default());
        world.clock.advance(SECOND);
        assert_turned_away(&site.come_back(&late, None).await, "SOCIAL_STATE_INVALID");
        let purged = world.auth.purge_expired(100).await.unwrap();
        assert_eq!(purged, PurgeCounts { social_attempts: 1, ..PurgeCounts::default() });
        assert_turned_away(&site.come_back(&never, None).await, "SOCIAL_STATE_INVALID");
    }

    async fn who_does_not_agree_at_the_provider_is_told_so(world: World) {
        let site = Site::new(&world).await;
        let way = site.set_out("google", MINA).await;
        let (path, query) = way.back.split_once('?').unwrap();
        let state = query.split('&').find(|pair| pair.starts_with("state=")).unwrap();
        let refused = Way { back: format!("{path}?error=access_denied&{state}"), ..way };
        assert_turned_away(&site.come_back(&refused, None).await, "SOCIAL_CANCELLED");
        assert_eq!(users(&world).await, 0);
    }

    async fn an_id_token_that_does_not_count_opens_nothing(world: World) {
        let site = Site::new(&world).await;
        type Tamper = fn(&mut Value, &mut Value);
        let cases: [(&str, Tamper); 8] = [
            ("nonce", |_, claims| claims["nonce"] = json!("another")),
            ("no nonce", |_, claims| claims["nonce"] = Value::Null),
            ("audience", |_, claims| claims["aud"] = json!("another-client")),
            ("issuer", |_, claims| claims["iss"] = json!("https://evil.example")),
            ("expiry", |_, claims| claims["exp"] = json!(1_794_702_000)),
            ("alg none", |header, _| header["alg"] = json!("none")),
            ("alg HS256", |header, _| header["alg"] = json!("HS256")),
            ("alg RS256", |header, _| header["alg"] = json!("RS256")),
        ];
        for provider in ["google", "kakao"] {
            for (what, tamper) in cases {
                site.provider.tamper(Some(tamper));
                let answer = site.sign_in(provider, MINA).await;
                assert_turned_away(&answer, "SOCIAL_LOGIN_REJECTED");
                assert_eq!(users(&world).await, 0, "{provider}: {what}");
            }
        }
        site.provider.tamper(Some(|_, claims| claims["sub"] = json!("999")));
        let answer = site.sign_in("kakao", MINA).await;
        assert_turned_away(&answer, "SOCIAL_LOGIN_REJECTED");
        assert_eq!(users(&world).await, 0, "its two answers tell of two people");
        site.provider.tamper(None);
        site.provider.forge(true);
        assert_turned_away(&site.sign_in("google", MINA).await, "SOCIAL_LOGIN_REJECTED");
        site.provider.forge(false);
        site.signed_in("google", MINA).await;
    }

    async fn a_code_counts_only_with_the_secrets_of_its_way(world: World) {
        let site = Site::new(&world).await;
        // The attacker's own way, with a code that was made for the victim.
        let victim = site.set_out("google", MINA).await;
        let attacker = site.set_out("google", JUNO).await;
        let code = provider::query(&victim.back)["code"].clone();
        let state = provider::query(&attacker.back)["state"].clone();
        let path = "/api/auth/social/google/callback";
        let injected = Way { back: format!("{path}?code={code}&state={state}"), ..attacker };
        assert_turned_away(&site.come_back(&injected, None).await, "SOCIAL_LOGIN_REJECTED");
        let secret = urr_kernel::Secret::new("not the secret");
        let mut social = site.provider.settings();
        social.google.as_mut().unwrap().client_secret = Some(secret);
        let settings = AuthSettings { social, ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        let site = Site { router: router(&world, &auth), auth, ..site };
        assert_turned_away(&site.sign_in("google", MINA).await, "SOCIAL_LOGIN_REJECTED");
        assert_eq!(users(&world).await, 0);
    }

    async fn new_keys_of_a_provider_are_asked_for_once(world: World) {
        let site = Site::new(&world).await;
        let id = site.signed_in("google", MINA).await;
        site.signed_in("google", MINA).await;
        assert_eq!(site.provider.keys_asked(), 1, "keys are remembered");
        site.provider.change_key();
        let answer = site.sign_in("google", MINA).await;
        assert_turned_away(&answer, "SOCIAL_LOGIN_REJECTED");
        assert_eq!(site.provider.keys_asked(), 1, "made-up keys do not make us ask all the time");
        world.clock.advance(10 * SECOND);
        assert_eq!(site.signed_in("google", MINA).await, id);
        assert_eq!(site.provider.keys_asked(), 2);
        world.clock.advance(60 * MINUTE);
        site.signed_in("google", MINA).await;
        assert_eq!(site.provider.keys_asked(), 3, "keys grow old");
    }

    /// D-16: whoever registers somebody's address in advance must not get their login with it.
    async fn d_16_a_password_account_is_not_joined_by_its_address(world: World) {
        let site = Site::new(&world).await;
        let hijacker = world.register("mina@example.com").await;
        world.tickets.sold_long_ago(hijacker.user.id);
        for provider in PROVIDERS {
            assert_turned_away(&site.sign_in(provider, MINA).await, "EMAIL_IN_USE");
        }
        assert_eq!((users(&world).await, identities(&world).await), (1, 0));
        // Only who has the password can connect them.
        let answer = site.link("google", hijacker.user.id, MINA).await;
        assert_eq!(answer.location(), "/my");
        assert_eq!(answer.cookie("access_token"), None, "the session goes on");
        assert_eq!(site.signed_in("google", MINA).await, hijacker.user.id);
        world.login("mina@example.com", PASSWORD).await.unwrap();
    }

    /// Somebody registered the address in advance. Its owner comes by a provider that has verified
    /// it, and gets an account of their own: nothing of the stranger's remains.
    async fn an_unverified_account_that_never_bought_gives_way_to_the_owner(world: World) {
        let site = Site::new(&world).await;
        let stranger = world.register("mina@example.com").await;
        assert_turned_away(&site.sign_in("naver", MINA).await, "EMAIL_IN_USE");
        assert!(world.accepts(&stranger.access_token).await, "Naver does not vouch for it");
        let owner = site.signed_in("google", MINA).await;
        assert_ne!(owner, stranger.user.id);
        assert!(!world.accepts(&stranger.access_token).await);
        assert!(world.login("mina@example.com", PASSWORD).await.is_err());
        assert!(site.auth.get_user(stranger.user.id).await.is_err(), "it is erased");
        let user = site.auth.get_user(owner).await.unwrap();
        assert!(user.email_verified && user.person.phone.is_none());
        assert_eq!((users(&world).await, identities(&world).await), (1, 1));
        // From now on the address is verified, and nobody takes it.
        let other = PersonalDetails { subject: "999", ..MINA };
        assert_turned_away(&site.sign_in("google", other).await, "EMAIL_IN_USE");
    }

    /// The controls: who bought, who verified, who has a role, and when nobody knows, stays.
    async fn an_account_gives_way_only_if_it_is_unverified_and_never_bought(world: World) {
        let site = Site::new(&world).await;
        let stranger = world.register("mina@example.com").await.user.id;
        world.tickets.unavailable(true);
        assert_turned_away(&site.sign_in("google", MINA).await, "EMAIL_IN_USE");
        world.tickets.unavailable(false);
        change_role(&world.auth, stranger, UserRole::Admin).await.unwrap();
        assert_turned_away(&site.sign_in("google", MINA).await, "EMAIL_IN_USE");
        world.tickets.sold_long_ago(stranger);
        let mina = site.auth.get_user(stranger).await.unwrap();
        assert_eq!(mina.person.email.as_str(), "mina@example.com");

        let juno = world.register("juno@example.com").await.user.id;
        world.verify_email().await;
        assert_eq!(site.signed_in("google", JUNO).await, juno, "both sides did: it is joined");
    }

    /// Without the terms no account is opened, so none gives way either.
    async fn an_account_does_not_give_way_before_the_terms_are_agreed_to(world: World) {
        let site = Site::new(&world).await;
        let stranger = world.register("mina@example.com").await;
        let way = site.set_out_without_terms("google", MINA).await;
        assert_turned_away(&site.come_back(&way, None).await, "TERMS_REQUIRED");
        assert!(world.accepts(&stranger.access_token).await);
    }

    async fn a_suspended_account_is_closed_to_social_logins(world: World) {
        let site = Site::new(&world).await;
        let id = site.signed_in("google", MINA).await;
        let reason = ActionReason::parse("a test").unwrap();
        let suspend = AccountMeasure::Suspend;
        world.auth.apply_measure(id, suspend, None, &reason).await.unwrap();
        assert_turned_away(&site.sign_in("google", MINA).await, "ACCOUNT_SUSPENDED");
        let reopen = AccountMeasure::Reopen;
        world.auth.apply_measure(id, reopen, None, &reason).await.unwrap();
        assert_eq!(site.signed_in("google", MINA).await, id, "the control");
    }

    async fn the_login_page_learns_which_providers_there_are(world: World) {
        let site = Site::new(&world).await;
        let list = site.call(Method::GET, "/api/auth/social", |_| {}).await;
        let all = json!({ "providers": ["google", "kakao", "naver"], "googleButton": true });
        assert_eq!(list.body, all);
        let provider = TestProvider::start(world.clock.clone()).await;
        let site = Site::with(&world, provider, |social| {
            (social.kakao, social.naver) = (None, None);
            let google = social.google.as_mut().unwrap();
            google.client_secret = None;
        });
        let list = site.call(Method::GET, "/api/auth/social", |_| {}).await;
        assert_eq!(list.body, json!({ "providers": [], "googleButton": true }));
    }

    /// D-16: an address that the provider does not vouch for proves nothing.
    async fn d_16_an_address_joins_only_if_both_sides_proved_it(world: World) {
        let site = Site::new(&world).await;
        let id = site.signed_in("google", MINA).await;
        let unproven = PersonalDetails { email_verified: Some(false), ..MINA };
        let silent = PersonalDetails { email_verified: None, ..MINA };
        for (provider, person) in [("kakao", unproven), ("kakao", silent), ("naver", MINA)] {
            assert_turned_away(&site.sign_in(provider, person).await, "EMAIL_IN_USE");
        }
        assert_eq!(identities(&world).await, 1);
        assert_eq!(site.signed_in("kakao", MINA).await, id, "now both sides did");
        assert_eq!((users(&world).await, identities(&world).await), (1, 2));
        // An account that was opened with an unproven address is not joined either.
        let first = PersonalDetails { email: Some("x@example.com"), email_verified: Some(false), ..JUNO };
        let buyer = site.signed_in("kakao", first).await;
        world.tickets.sold_long_ago(buyer);
        let owner = PersonalDetails { email_verified: Some(true), ..first };
        assert_turned_away(&site.sign_in("google", owner).await, "EMAIL_IN_USE");
    }

    async fn another_identity_with_the_same_address_is_not_joined(world: World) {
        let site = Site::new(&world).await;
        site.signed_in("google", MINA).await;
        let other = PersonalDetails { subject: "999", ..MINA };
        assert_turned_away(&site.sign_in("google", other).await, "EMAIL_IN_USE");
        assert_eq!(identities(&world).await, 1);
    }

    async fn an_account_needs_an_address_and_the_terms(world: World) {
        let site = Site::new(&world).await;
        for provider in PROVIDERS {
            let nameless = PersonalDetails { email: None, ..MINA };
            assert_turned_away(&site.sign_in(provider, nameless).await, "EMAIL_REQUIRED");
        }
        let answer = site.start("google", "terms=0").await;
        let cookie = answer.cookie("urr_social").unwrap().to_owned();
        let way = Way { back: site.provider.approve("google", answer.location(), MINA), cookie };
        assert_turned_away(&site.come_back(&way, None).await, "TERMS_REQUIRED");
        assert_eq!(users(&world).await, 0);
        let id = site.signed_in("google", MINA).await;
        let answer = site.start("google", "").await;
        let cookie = answer.cookie("urr_social").unwrap().to_owned();
        let way = Way { back: site.provider.approve("google", answer.location(), MINA), cookie };
        let answer = site.come_back(&way, None).await;
        assert_eq!(answer.location(), "/");
        assert_eq!(site.whose(&answer).await, id, "who has an account agreed before");
    }

    async fn a_provider_that_is_down_is_said_to_be_down(world: World) {
        let provider = TestProvider::start(world.clock.clone()).await;
        let brief = |social: &mut SocialSettings| {
            social.call_timeout = Duration::from_millis(300);
        };
        let site = Site::with(&world, provider, brief);
        let button = site.button().await;
        let credential = site.provider.credential(MINA, "urr-google", Some(&button.nonce));
        for outage in [Outage::Failing, Outage::Silent, Outage::Nonsense] {
            site.provider.suffer(Some(outage));
            for provider in PROVIDERS {
                assert_turned_away(&site.sign_in(provider, MINA).await, "PROVIDER_UNAVAILABLE");
            }
            let answer = site.press(&button, &credential, true).await;
            assert_eq!(answer.refusal(), (503, "PROVIDER_UNAVAILABLE"), "{outage:?}");
        }
        site.provider.suffer(None);
        let answer = site.press(&button, &credential, true).await;
        assert_eq!(answer.status, StatusCode::OK, "an outage uses nothing up");
        let gone = |social: &mut SocialSettings| {
            let google = social.google.as_mut().unwrap();
            google.endpoints.token = "http://127.0.0.1:9/token".to_owned();
        };
        let site = Site::with(&world, site.provider, gone);
        assert_turned_away(&site.sign_in("google", MINA).await, "PROVIDER_UNAVAILABLE");
    }

    async fn only_paths_of_this_site_are_gone_on_at(world: World) {
        let site = Site::new(&world).await;
        for redirect in [
            "https://evil.example",
            "//evil.example",
            "/%5Cevil.example",
            "/%09/evil.example",
            "%2F%2Fevil.example",
            "javascript:alert(1)",
            "/a%0D%0Aset-cookie:x=1",
            "evil",
        ] {
            let answer = site.start("google", &format!("redirect={redirect}")).await;
            assert_eq!(answer.refusal(), (400, "INVALID_REDIRECT"), "{redirect}");
            assert_eq!(answer.set_cookie("urr_social"), None);
        }
        let id = world.register("mina@example.com").await.user.id;
        let body = json!({"redirect": "//evil.example"});
        let answer = site.post("/api/auth/social/google/link", body, Some(id)).await;
        assert_eq!(answer.refusal(), (400, "INVALID_REDIRECT"));
        assert_eq!(world.number("select count(*) as n from social_attempts").await, 0);
    }

    async fn connecting_the_same_identity_twice_changes_nothing(world: World) {
        let site = Site::new(&world).await;
        let id = world.register("me@example.com").await.user.id;
        for _ in 0..2 {
            assert_eq!(site.link("kakao", id, MINA).await.location(), "/my");
        }
        assert_eq!((users(&world).await, identities(&world).await), (1, 1));
        let answer = site.link("kakao", id, JUNO).await;
        assert_eq!(answer.location(), "/my?error=SOCIAL_ALREADY_LINKED");
        assert_eq!(site.link("naver", id, JUNO).await.location(), "/my");
        assert_eq!(site.signed_in("naver", JUNO).await, id);
    }

    async fn the_identity_of_someone_else_stays_theirs(world: World) {
        let site = Site::new(&world).await;
        let owner = site.signed_in("google", MINA).await;
        let other = world.register("juno@example.com").await.user.id;
        let answer = site.link("google", other, MINA).await;
        assert_eq!(answer.location(), "/my?error=IDENTITY_IN_USE");
        assert_eq!(site.signed_in("google", MINA).await, owner);
        assert_eq!(identities(&world).await, 1);
    }

    async fn connecting_is_for_who_began_it_and_is_logged_in(world: World) {
        let site = Site::new(&world).await;
        let path = "/api/auth/social/google/link";
        let answer = site.post(path, json!({}), None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let me = world.register("me@example.com").await.user.id;
        let other = world.register("other@example.com").await.user.id;
        for user in [None, Some(other), Some(UserId(Uuid::from_u128(7)))] {
            let way = site.begin_link("google", me, MINA).await;
            let answer = site.come_back(&way, user).await;
            assert_eq!(answer.location(), "/my?error=LOGIN_REQUIRED");
        }
        assert_eq!(identities(&world).await, 0);
        let get = site.call(Method::GET, path, |request| identify(request, Some(me))).await;
        assert_eq!(get.status, StatusCode::METHOD_NOT_ALLOWED, "no link elsewhere begins it");
    }

    async fn an_address_proved_by_connecting_is_proved(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("MINA@example.com").await.user.id;
        site.link("google", me, MINA).await;
        assert_eq!(site.signed_in("kakao", MINA).await, me);
        let other = world.register("juno@example.com").await.user.id;
        world.tickets.sold_long_ago(other);
        site.link("google", other, PersonalDetails { email: Some("else@example.com"), ..JUNO }).await;
        assert_turned_away(&site.sign_in("kakao", JUNO).await, "EMAIL_IN_USE");
    }

    async fn who_is_not_configured_is_not_there(world: World) {
        let provider = TestProvider::start(world.clock.clone()).await;
        let site = Site::with(&world, provider, |social| {
            social.kakao = None;
            social.google.as_mut().unwrap().client_secret = None;
        });
        let me = world.register("me@example.com").await.user.id;
        for provider in ["google", "kakao", "facebook", "Google"] {
            let answer = site.start(provider, "").await;
            assert_eq!(answer.refusal(), (404, "PROVIDER_NOT_CONFIGURED"), "{provider}");
            let path = format!("/api/auth/social/{provider}/link");
            let answer = site.post(&path, json!({}), Some(me)).await;
            assert_eq!(answer.refusal(), (404, "PROVIDER_NOT_CONFIGURED"), "{provider}");
        }
        let button = site.button().await;
        let credential = site.provider.credential(MINA, "urr-google", Some(&button.nonce));
        let answer = site.press(&button, &credential, true).await;
        assert_eq!(answer.status, StatusCode::OK, "the button needs no secret");
        let site = Site { router: router(&world, &world.auth), ..site };
        let answer = site.press(&button, &credential, true).await;
        assert_eq!(answer.refusal(), (404, "PROVIDER_NOT_CONFIGURED"));
        let answer = site.post("/api/auth/google/nonce", json!({}), None).await;
        assert_eq!(answer.refusal(), (404, "PROVIDER_NOT_CONFIGURED"));
    }

    async fn two_first_logins_at_once_open_one_account(world: World) {
        let site = std::sync::Arc::new(Site::new(&world).await);
        let logins = (0..8).map(|_| {
            let site = std::sync::Arc::clone(&site);
            async move { site.sign_in("google", MINA).await }
        });
        let mut ids = Vec::new();
        for answer in all(logins).await {
            // A request that lost the race too often is asked to try again, and nothing worse.
            match answer.location() {
                "/events?page=2" => ids.push(site.whose(&answer).await),
                other => assert_eq!(other, "/login?error=LOGIN_BUSY"),
            }
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        assert_eq!((users(&world).await, identities(&world).await), (1, 1));
    }

    async fn a_closed_account_is_forgotten_by_its_identities(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("mina@example.com").await.user.id;
        site.link("google", me, MINA).await;
        site.begin_link("naver", me, MINA).await;
        let password = Reauthentication::by_password(PASSWORD);
        world.auth.delete_user(me, password, world.context()).await.unwrap();
        assert_eq!(identities(&world).await, 0);
        assert_eq!(world.number("select count(*) as n from social_attempts").await, 0);
        let verified = "select count(*) as n from users where email_verified_at is not null";
        assert_eq!(world.number(verified).await, 0);
        assert_ne!(site.signed_in("google", MINA).await, me);
    }

    async fn an_identity_is_stored_sealed_and_survives_a_change_of_keys(world: World) {
        let site = Site::new(&world).await;
        let id = site.signed_in("google", MINA).await;
        let read = |row: &urr_storage::Row<'_>| {
            let (index, cipher) = (row.get("subject_index")?, row.get("subject_cipher")?);
            Ok::<(Vec<u8>, Vec<u8>), _>((index, cipher))
        };
        let sql = "select subject_index, subject_cipher from social_identities";
        let before = world.rows(sql, read).await;
        for stored in [&before[0].0, &before[0].1] {
            let shows = stored.windows(6).any(|part| part == MINA.subject.as_bytes());
            assert!(!shows, "the subject does not show through");
        }
        let old = urr_service::DataKey {
            version: 1,
            secret: urr_kernel::Secret::new("the first data key of these tests"),
        };
        let new = urr_service::DataKey { version: 2, secret: urr_kernel::Secret::new("the second") };
        let settings = || AuthSettings { social: site.provider.settings(), ..cheap_settings() };
        let both = urr_service::DataKeys::new(new.clone(), &[old]).unwrap();
        let during = world.auth_with(both, settings());
        let rotation = during.rotate_personal_data(100).await.unwrap();
        assert_eq!((rotation.rotated, rotation.remaining), (2, 0), "a user and an identity");
        assert_ne!(world.rows(sql, read).await, before);
        let after = world.auth_with(urr_service::DataKeys::new(new, &[]).unwrap(), settings());
        let router = router(&world, &after);
        let site = Site { auth: after, router, ..site };
        assert_eq!(site.signed_in("google", MINA).await, id);
    }

    async fn an_account_without_a_password_has_none_to_guess(world: World) {
        let site = Site::new(&world).await;
        site.signed_in("google", MINA).await;
        for password in ["", PASSWORD, "mina@example.com"] {
            let login: Result<Session, _> = world.login("mina@example.com", password).await;
            assert!(login.is_err());
        }
    }
}
