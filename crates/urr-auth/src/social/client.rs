//! Conversations with providers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use urr_kernel::{Secret, Timestamp};
use urr_outbound::{Outbound, OutboundError, OutboundResponse};

use super::id_token::{self, ExpectedClaims, IdTokenError, IdTokenKeys};
use super::settings::SocialProviderSettings;
use crate::accounts::email::Email;
use crate::social::rules::{SocialProfile, SocialProvider};

/// Keys are asked for again after so long.
const KEYS_FRESH: Duration = Duration::from_secs(60 * 60);
/// A token with an unknown key makes us ask at once, but not more often than this.
const KEYS_ASKED_EVERY: Duration = Duration::from_secs(10);

/// Why a provider told nothing that counts.
#[derive(Debug, thiserror::Error)]
pub enum SocialProviderError {
    #[error("the provider did not answer")]
    NoAnswer(#[from] OutboundError),
    #[error("the provider answered with status {0}")]
    Failed(StatusCode),
    #[error("the provider's answer cannot be read")]
    Unreadable(#[from] serde_json::Error),
    #[error("the provider refused: {0}")]
    Refused(String),
    #[error(transparent)]
    IdToken(#[from] IdTokenError),
}

impl SocialProviderError {
    /// Whether the same may work later.
    pub fn is_outage(&self) -> bool {
        match self {
            SocialProviderError::NoAnswer(_)
            | SocialProviderError::Failed(_)
            | SocialProviderError::Unreadable(_) => true,
            SocialProviderError::Refused(_) | SocialProviderError::IdToken(_) => false,
        }
    }
}

/// Talks to providers and remembers their keys. Clones share both.
#[derive(Clone)]
pub struct SocialClient {
    outbound: Outbound,
    keys: Arc<Mutex<HashMap<SocialProvider, CachedKeys>>>,
}

#[derive(Clone)]
struct CachedKeys {
    keys: Arc<IdTokenKeys>,
    asked_at: Timestamp,
}

/// A provider, and who we are to it.
#[derive(Clone, Copy)]
pub struct ProviderContext<'a> {
    pub provider: SocialProvider,
    pub settings: &'a SocialProviderSettings,
    pub timeout: Duration,
    pub now: Timestamp,
}

/// What a browser brought back, with what only its own way knows.
pub struct CodeExchange<'a> {
    pub code: &'a str,
    pub state: &'a str,
    pub verifier: &'a Secret,
    pub nonce: &'a Secret,
    pub redirect_uri: &'a str,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    id_token: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct OpenIdUserInfo {
    sub: String,
    email: Option<String>,
    #[serde(default, deserialize_with = "id_token::yes_or_no")]
    email_verified: Option<bool>,
}

#[derive(Deserialize)]
struct NaverUserInfo {
    response: Option<NaverPerson>,
}

#[derive(Deserialize)]
struct NaverPerson {
    id: String,
    email: Option<String>,
    name: Option<String>,
    nickname: Option<String>,
}

impl SocialClient {
    pub fn new(outbound: Outbound) -> SocialClient {
        SocialClient { outbound, keys: Arc::default() }
    }

    /// Turns the code that a browser brought into who its user is.
    pub async fn profile(
        &self,
        context: ProviderContext<'_>,
        returned: &CodeExchange<'_>,
    ) -> Result<SocialProfile, SocialProviderError> {
        let tokens = self.exchange(context, returned).await?;
        match context.provider {
            SocialProvider::Google | SocialProvider::Kakao => {
                let missing = || SocialProviderError::Refused("no ID token".to_owned());
                let id_token = tokens.id_token.as_deref().ok_or_else(missing)?;
                let told = self.read_id_token(context, id_token, returned.nonce).await?;
                let (mut profile, told) = told;
                if let (None, Some(access_token)) = (told, tokens.access_token) {
                    self.ask_whether_verified(context, &access_token, &mut profile).await?;
                }
                Ok(profile)
            }
            SocialProvider::Naver => {
                let missing = || SocialProviderError::Refused("no access token".to_owned());
                let access_token = tokens.access_token.ok_or_else(missing)?;
                self.naver_profile(context, &access_token).await
            }
        }
    }

    /// Checks an ID token that the provider's button brought.
    pub async fn profile_of_credential(
        &self,
        context: ProviderContext<'_>,
        id_token: &str,
        nonce: &Secret,
    ) -> Result<SocialProfile, SocialProviderError> {
        Ok(self.read_id_token(context, id_token, nonce).await?.0)
    }

    async fn exchange(
        &self,
        context: ProviderContext<'_>,
        returned: &CodeExchange<'_>,
    ) -> Result<TokenAnswer, SocialProviderError> {
        let secret = context.settings.client_secret.as_ref();
        let secret = secret.expect("a way begins only with a client secret");
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", &context.settings.client_id),
            ("client_secret", secret.expose()),
            ("code", returned.code),
            ("state", returned.state),
            ("redirect_uri", returned.redirect_uri),
            ("code_verifier", returned.verifier.expose()),
        ];
        let url = &context.settings.endpoints.token;
        let answer =
            self.outbound.post_form(url, HeaderMap::new(), &fields, context.timeout).await?;
        let tokens: TokenAnswer = succeeded(&answer)?.json()?;
        // Naver refuses with status 200.
        match tokens.error {
            Some(error) => Err(SocialProviderError::Refused(brief(&error))),
            None => Ok(tokens),
        }
    }

    /// The profile, and whether the token says anything about the address being verified.
    async fn read_id_token(
        &self,
        context: ProviderContext<'_>,
        token: &str,
        nonce: &Secret,
    ) -> Result<(SocialProfile, Option<bool>), SocialProviderError> {
        let SocialProviderSettings { client_id, endpoints, .. } = context.settings;
        let (issuers, audience) = (endpoints.issuers.as_slice(), client_id.as_str());
        let expected =
            ExpectedClaims { issuers, audience, nonce: nonce.expose(), now: context.now };
        let known = match self.cached_keys(context) {
            Some(known) => known,
            None => self.fetch_keys(context).await?,
        };
        let claims = match id_token::verify(token, &known.keys, expected) {
            Err(IdTokenError::UnknownKey) if known.asked_at + KEYS_ASKED_EVERY <= context.now => {
                let known = self.fetch_keys(context).await?;
                id_token::verify(token, &known.keys, expected)?
            }
            verified => verified?,
        };
        let profile = SocialProfile {
            subject: claims.sub,
            email: claims.email.and_then(|email| Email::parse(&email).ok()),
            email_verified: claims.email_verified.unwrap_or(false),
            name: claims.name.or(claims.nickname),
        };
        Ok((profile, claims.email_verified))
    }

    fn cached_keys(&self, context: ProviderContext<'_>) -> Option<CachedKeys> {
        let all = self.keys.lock().expect("nobody panics while holding the keys");
        all.get(&context.provider)
            .filter(|known| known.asked_at + KEYS_FRESH > context.now)
            .cloned()
    }

    async fn fetch_keys(
        &self,
        context: ProviderContext<'_>,
    ) -> Result<CachedKeys, SocialProviderError> {
        let url = context.settings.endpoints.keys.as_deref();
        let url =
            url.ok_or_else(|| SocialProviderError::Refused("no address of keys".to_owned()))?;
        let answer = self.outbound.get_json(url, HeaderMap::new(), context.timeout).await?;
        let keys = Arc::new(IdTokenKeys::parse(&succeeded(&answer)?.body)?);
        let known = CachedKeys { keys, asked_at: context.now };
        let mut all = self.keys.lock().expect("nobody panics while holding the keys");
        all.insert(context.provider, known.clone());
        Ok(known)
    }

    /// Completes a profile from a provider whose ID tokens do not say whether the address is
    /// verified.
    async fn ask_whether_verified(
        &self,
        context: ProviderContext<'_>,
        access_token: &str,
        profile: &mut SocialProfile,
    ) -> Result<(), SocialProviderError> {
        let Some(url) = context.settings.endpoints.user_info.as_deref() else {
            return Ok(());
        };
        let told: OpenIdUserInfo = self.user_info(context, url, access_token).await?.json()?;
        if told.sub != profile.subject {
            return Err(SocialProviderError::Refused("it tells of someone else".to_owned()));
        }
        if let Some(email) = told.email.and_then(|email| Email::parse(&email).ok()) {
            profile.email = Some(email);
            profile.email_verified = told.email_verified.unwrap_or(false);
        }
        Ok(())
    }

    /// Naver does not say whether an address is verified, so none is.
    async fn naver_profile(
        &self,
        context: ProviderContext<'_>,
        access_token: &str,
    ) -> Result<SocialProfile, SocialProviderError> {
        let missing = || SocialProviderError::Refused("it tells of nobody".to_owned());
        let url = context.settings.endpoints.user_info.as_deref().ok_or_else(missing)?;
        let told: NaverUserInfo = self.user_info(context, url, access_token).await?.json()?;
        let person = told.response.filter(|person| !person.id.is_empty()).ok_or_else(missing)?;
        Ok(SocialProfile {
            subject: person.id,
            email: person.email.and_then(|email| Email::parse(&email).ok()),
            email_verified: false,
            name: person.name.or(person.nickname),
        })
    }

    async fn user_info(
        &self,
        context: ProviderContext<'_>,
        url: &str,
        access_token: &str,
    ) -> Result<OutboundResponse, SocialProviderError> {
        let bearer = HeaderValue::from_str(&format!("Bearer {access_token}"));
        let refused = |_| SocialProviderError::Refused("its access token is no token".to_owned());
        let mut bearer = bearer.map_err(refused)?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let answer = self.outbound.get_json(url, headers, context.timeout).await?;
        succeeded(&answer)?;
        Ok(answer)
    }
}

/// 400 to 403 are refusals of what we brought; anything else but success is the provider's failure.
fn succeeded(answer: &OutboundResponse) -> Result<&OutboundResponse, SocialProviderError> {
    match answer.status.as_u16() {
        200..=299 => Ok(answer),
        400..=403 => {
            let told = answer.json::<TokenAnswer>().ok().and_then(|told| told.error);
            Err(SocialProviderError::Refused(brief(&told.unwrap_or_default())))
        }
        _ => Err(SocialProviderError::Failed(answer.status)),
    }
}

/// As much of a foreign text as a log should take.
fn brief(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
