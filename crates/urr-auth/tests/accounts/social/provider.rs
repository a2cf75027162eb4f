//! A provider on this machine: OpenID as Google and Kakao speak it, and OAuth as Naver does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use urr_auth::{ProviderEndpoints, SocialProvider, SocialProviderSettings, SocialSettings};
use urr_kernel::{Clock, Secret};

const CLIENT_SECRET: &str = "hush";

/// Someone with an account at the provider.
#[derive(Clone, Copy, Debug)]
pub struct PersonalDetails {
    pub subject: &'static str,
    pub email: Option<&'static str>,
    /// None: the provider does not say.
    pub email_verified: Option<bool>,
    pub name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    Failing,
    Silent,
    Nonsense,
}

type Tamper = fn(&mut Value, &mut Value);

#[derive(Clone)]
pub struct TestProvider {
    base: String,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    clock: Clock,
    base: String,
    signer: Signer,
    forger: Option<Signer>,
    tamper: Option<Tamper>,
    outage: Option<Outage>,
    keys_asked: u32,
    grants: HashMap<String, Grant>,
    access_tokens: HashMap<String, PersonalDetails>,
    count: u32,
}

/// What a code stands for.
struct Grant {
    provider: String,
    challenge: String,
    nonce: String,
    redirect_uri: String,
    person: PersonalDetails,
}

struct Signer {
    kid: String,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(kid: &str) -> Signer {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Signer { kid: kid.to_owned(), pair }
    }

    fn key(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": self.kid, "x": x, "y": y})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

impl TestProvider {
    pub async fn start(clock: Clock) -> TestProvider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner {
            clock,
            base: base.clone(),
            signer: Signer::new("key-1"),
            forger: None,
            tamper: None,
            outage: None,
            keys_asked: 0,
            grants: HashMap::new(),
            access_tokens: HashMap::new(),
            count: 0,
        };
        let provider = TestProvider { base, inner: Arc::new(Mutex::new(inner)) };
        let router = Router::new()
            .route("/token", post(token))
            .route("/keys", get(keys))
            .route("/userinfo", get(user_info))
            .route("/me", get(naver_me))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    /// AuthSettings that lead here.
    pub fn settings(&self) -> SocialSettings {
        let here = |path: &str| format!("{}{path}", self.base);
        let of = |provider: SocialProvider, user_info: Option<&str>| {
            let is_openid = provider != SocialProvider::Naver;
            let endpoints = ProviderEndpoints {
                authorize: here("/authorize"),
                token: here("/token"),
                issuers: if is_openid { vec![self.base.clone()] } else { vec![] },
                keys: is_openid.then(|| here("/keys")),
                user_info: user_info.map(here),
                ..ProviderEndpoints::of(provider)
            };
            let client_secret = Some(Secret::new(CLIENT_SECRET));
            let client_id = format!("urr-{}", provider.as_str());
            Some(SocialProviderSettings { client_id, client_secret, endpoints })
        };
        SocialSettings {
            public_url: "https://urr.example/".to_owned(),
            google: of(SocialProvider::Google, None),
            kakao: of(SocialProvider::Kakao, Some("/userinfo")),
            naver: of(SocialProvider::Naver, Some("/me")),
            ..SocialSettings::default()
        }
    }

    /// A person agrees on the page that `url` leads to. Returns where the browser is sent.
    pub fn approve(&self, provider: &str, url: &str, person: PersonalDetails) -> String {
        assert!(url.starts_with(&format!("{}/authorize?", self.base)), "{url}");
        let mut asked = query(url);
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["client_id"], format!("urr-{provider}"));
        assert_eq!(asked["code_challenge_method"], "S256");
        let mut inner = self.lock();
        inner.count += 1;
        let code = format!("code-{}", inner.count);
        let mut take = |name: &str| asked.remove(name).unwrap();
        let (state, redirect_uri) = (take("state"), take("redirect_uri"));
        let (challenge, nonce) = (take("code_challenge"), take("nonce"));
        let back = redirect_uri.strip_prefix("https://urr.example").unwrap();
        let back = format!("{back}?code={code}&state={state}");
        let provider = provider.to_owned();
        inner.grants.insert(code, Grant { provider, challenge, nonce, redirect_uri, person });
        back
    }

    /// An ID token as Google's button gives it to a page.
    pub fn credential(
        &self,
        person: PersonalDetails,
        audience: &str,
        nonce: Option<&str>,
    ) -> String {
        let inner = self.lock();
        let mut claims = inner.claims(person, audience);
        claims["nonce"] = json!(nonce);
        claims["email_verified"] = json!(person.email_verified);
        inner.signer.sign(&inner.header(), &claims)
    }

    pub fn tamper(&self, tamper: Option<Tamper>) {
        self.lock().tamper = tamper;
    }

    /// Signs with a key of its own, under the name of the true one.
    pub fn forge(&self, forge: bool) {
        let mut inner = self.lock();
        let kid = inner.signer.kid.clone();
        inner.forger = forge.then(|| Signer::new(&kid));
    }

    pub fn suffer(&self, outage: Option<Outage>) {
        self.lock().outage = outage;
    }

    pub fn change_key(&self) {
        self.lock().signer = Signer::new("key-2");
    }

    pub fn keys_asked(&self) -> u32 {
        self.lock().keys_asked
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    async fn suffer_now(&self) -> Result<(), (StatusCode, Json<Value>)> {
        let outage = self.lock().outage;
        match outage {
            None => Ok(()),
            Some(Outage::Failing) => Err((StatusCode::BAD_GATEWAY, Json(json!({})))),
            Some(Outage::Nonsense) => Err((StatusCode::OK, Json(json!("maintenance")))),
            Some(Outage::Silent) => std::future::pending().await,
        }
    }
}

impl Inner {
    fn header(&self) -> Value {
        json!({"alg": "ES256", "kid": self.signer.kid, "typ": "JWT"})
    }

    fn claims(&self, person: PersonalDetails, audience: &str) -> Value {
        let now = self.clock.now().as_second();
        json!({
            "iss": self.base, "sub": person.subject, "aud": audience,
            "iat": now, "exp": now + 3600, "email": person.email, "name": person.name,
        })
    }

    /// Whether a code comes with the secrets that it was made for; it is used up.
    fn redeem(&mut self, form: &HashMap<String, String>) -> Option<Grant> {
        let grant = self.grants.remove(form.get("code")?)?;
        let verifier = form.get("code_verifier")?;
        assert!((43..=128).contains(&verifier.len()), "RFC 7636");
        let proven = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
        let is_right = form.get("grant_type")? == "authorization_code"
            && *form.get("client_id")? == format!("urr-{}", grant.provider)
            && form.get("client_secret")? == CLIENT_SECRET
            && *form.get("redirect_uri")? == grant.redirect_uri
            && proven == grant.challenge;
        is_right.then_some(grant)
    }
}

/// The fields of a query or a form.
pub fn query(text: &str) -> HashMap<String, String> {
    let text = text.split_once('?').map_or(text, |(_, query)| query);
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

type Answer = Result<Json<Value>, (StatusCode, Json<Value>)>;

async fn token(State(provider): State<TestProvider>, body: String) -> Answer {
    provider.suffer_now().await?;
    let mut inner = provider.lock();
    let refused = || (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"})));
    let grant = inner.redeem(&query(&body)).ok_or_else(refused)?;
    inner.count += 1;
    let access_token = format!("access-{}", inner.count);
    inner.access_tokens.insert(access_token.clone(), grant.person);
    if grant.provider == "naver" {
        return Ok(Json(json!({"access_token": access_token, "token_type": "bearer"})));
    }
    let mut header = inner.header();
    let mut claims = inner.claims(grant.person, &format!("urr-{}", grant.provider));
    claims["nonce"] = json!(grant.nonce);
    // Kakao says it elsewhere.
    if grant.provider == "google" {
        claims["email_verified"] = json!(grant.person.email_verified);
    }
    if let Some(tamper) = inner.tamper {
        tamper(&mut header, &mut claims);
    }
    let signer = inner.forger.as_ref().unwrap_or(&inner.signer);
    let id_token = signer.sign(&header, &claims);
    Ok(Json(json!({"access_token": access_token, "id_token": id_token, "expires_in": 3600})))
}

async fn keys(State(provider): State<TestProvider>) -> Answer {
    provider.suffer_now().await?;
    let mut inner = provider.lock();
    inner.keys_asked += 1;
    Ok(Json(json!({"keys": [inner.signer.key()]})))
}

async fn user_info(State(provider): State<TestProvider>, headers: HeaderMap) -> Answer {
    provider.suffer_now().await?;
    let person = whose(&provider, &headers)?;
    Ok(Json(json!({
        "sub": person.subject, "email": person.email, "email_verified": person.email_verified,
    })))
}

async fn naver_me(State(provider): State<TestProvider>, headers: HeaderMap) -> Answer {
    provider.suffer_now().await?;
    let person = whose(&provider, &headers)?;
    let told = json!({"id": person.subject, "email": person.email, "name": person.name});
    Ok(Json(json!({"resultcode": "00", "message": "success", "response": told})))
}

fn whose(
    provider: &TestProvider,
    headers: &HeaderMap,
) -> Result<PersonalDetails, (StatusCode, Json<Value>)> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = bearer.and_then(|bearer| bearer.strip_prefix("Bearer "));
    let person = token.and_then(|token| provider.lock().access_tokens.get(token).copied());
    person.ok_or((StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_token"}))))
}
