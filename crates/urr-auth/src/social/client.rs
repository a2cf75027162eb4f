//! Conversations with providers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use urr_kernel::{Secret, Timestamp};
use urr_outbound::{Outbound, OutboundError, OutboundResponse};

use super::id_token::{self, Expected, IdTokenError, KeySet};
use super::settings::ProviderSettings;
use crate::domain::email::Email;
use crate::domain::social::{Provider, SocialProfile};

/// Keys are asked for again after so long.
const KEYS_FRESH: Duration = Duration::from_secs(60 * 60);
/// A token with an unknown key makes us ask at once, but not more often than this.
const KEYS_ASKED_EVERY: Duration = Duration::from_secs(10);

/// Why a provider told nothing that counts.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
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

impl ProviderError {
    /// Whether the same may work later.
    pub fn is_outage(&self) -> bool {
        match self {
            ProviderError::NoAnswer(_)
            | ProviderError::Failed(_)
            | ProviderError::Unreadable(_) => true,
            ProviderError::Refused(_) | ProviderError::IdToken(_) => false,
        }
    }
}

/// Talks to providers and remembers their keys. Clones share both.
#[derive(Clone)]
pub struct SocialClient {
    outbound: Outbound,
    keys: Arc<Mutex<HashMap<Provider, KnownKeys>>>,
}

#[derive(Clone)]
struct KnownKeys {
    keys: Arc<KeySet>,
    asked_at: Timestamp,
}

/// A provider, and who we are to it.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub provider: Provider,
    pub settings: &'a ProviderSettings,
    pub timeout: Duration,
    pub now: Timestamp,
}

/// What a browser brought back, with what only its own way knows.
pub struct Returned<'a> {
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
        side: Side<'_>,
        returned: &Returned<'_>,
    ) -> Result<SocialProfile, ProviderError> {
        let tokens = self.exchange(side, returned).await?;
        match side.provider {
            Provider::Google | Provider::Kakao => {
                let missing = || ProviderError::Refused("no ID token".to_owned());
                let id_token = tokens.id_token.as_deref().ok_or_else(missing)?;
                let told = self.read_id_token(side, id_token, returned.nonce).await?;
                let (mut profile, told) = told;
                if let (None, Some(access_token)) = (told, tokens.access_token) {
                    self.ask_whether_verified(side, &access_token, &mut profile).await?;
                }
                Ok(profile)
            }
            Provider::Naver => {
                let missing = || ProviderError::Refused("no access token".to_owned());
                let access_token = tokens.access_token.ok_or_else(missing)?;
                self.naver_profile(side, &access_token).await
            }
        }
    }

    /// Checks an ID token that the provider's button brought.
    pub async fn profile_of_credential(
        &self,
        side: Side<'_>,
        id_token: &str,
        nonce: &Secret,
    ) -> Result<SocialProfile, ProviderError> {
        Ok(self.read_id_token(side, id_token, nonce).await?.0)
    }

    async fn exchange(
        &self,
        side: Side<'_>,
        returned: &Returned<'_>,
    ) -> Result<TokenAnswer, ProviderError> {
        let secret = side.settings.client_secret.as_ref();
        let secret = secret.expect("a way begins only with a client secret");
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", &side.settings.client_id),
            ("client_secret", secret.expose()),
            ("code", returned.code),
            ("state", returned.state),
            ("redirect_uri", returned.redirect_uri),
            ("code_verifier", returned.verifier.expose()),
        ];
        let url = &side.settings.endpoints.token;
        let answer = self.outbound.post_form(url, HeaderMap::new(), &fields, side.timeout).await?;
        let tokens: TokenAnswer = succeeded(&answer)?.json()?;
        // Naver refuses with status 200.
        match tokens.error {
            Some(error) => Err(ProviderError::Refused(brief(&error))),
            None => Ok(tokens),
        }
    }

    /// The profile, and whether the token says anything about the address being verified.
    async fn read_id_token(
        &self,
        side: Side<'_>,
        token: &str,
        nonce: &Secret,
    ) -> Result<(SocialProfile, Option<bool>), ProviderError> {
        let ProviderSettings { client_id, endpoints, .. } = side.settings;
        let (issuers, audience) = (endpoints.issuers.as_slice(), client_id.as_str());
        let expected = Expected { issuers, audience, nonce: nonce.expose(), now: side.now };
        let known = match self.known_keys(side) {
            Some(known) => known,
            None => self.ask_keys(side).await?,
        };
        let claims = match id_token::verify(token, &known.keys, expected) {
            Err(IdTokenError::UnknownKey) if known.asked_at + KEYS_ASKED_EVERY <= side.now => {
                let known = self.ask_keys(side).await?;
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

    fn known_keys(&self, side: Side<'_>) -> Option<KnownKeys> {
        let all = self.keys.lock().expect("nobody panics while holding the keys");
        all.get(&side.provider).filter(|known| known.asked_at + KEYS_FRESH > side.now).cloned()
    }

    async fn ask_keys(&self, side: Side<'_>) -> Result<KnownKeys, ProviderError> {
        let url = side.settings.endpoints.keys.as_deref();
        let url = url.ok_or_else(|| ProviderError::Refused("no address of keys".to_owned()))?;
        let answer = self.outbound.get_json(url, HeaderMap::new(), side.timeout).await?;
        let keys = Arc::new(KeySet::parse(&succeeded(&answer)?.body)?);
        let known = KnownKeys { keys, asked_at: side.now };
        let mut all = self.keys.lock().expect("nobody panics while holding the keys");
        all.insert(side.provider, known.clone());
        Ok(known)
    }

    /// Completes a profile from a provider whose ID tokens do not say whether the address is
    /// verified.
    async fn ask_whether_verified(
        &self,
        side: Side<'_>,
        access_token: &str,
        profile: &mut SocialProfile,
    ) -> Result<(), ProviderError> {
        let Some(url) = side.settings.endpoints.user_info.as_deref() else {
            return Ok(());
        };
        let told: OpenIdUserInfo = self.user_info(side, url, access_token).await?.json()?;
        if told.sub != profile.subject {
            return Err(ProviderError::Refused("it tells of someone else".to_owned()));
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
        side: Side<'_>,
        access_token: &str,
    ) -> Result<SocialProfile, ProviderError> {
        let missing = || ProviderError::Refused("it tells of nobody".to_owned());
        let url = side.settings.endpoints.user_info.as_deref().ok_or_else(missing)?;
        let told: NaverUserInfo = self.user_info(side, url, access_token).await?.json()?;
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
        side: Side<'_>,
        url: &str,
        access_token: &str,
    ) -> Result<OutboundResponse, ProviderError> {
        let bearer = HeaderValue::from_str(&format!("Bearer {access_token}"));
        let refused = |_| ProviderError::Refused("its access token is no token".to_owned());
        let mut bearer = bearer.map_err(refused)?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let answer = self.outbound.get_json(url, headers, side.timeout).await?;
        succeeded(&answer)?;
        Ok(answer)
    }
}

/// 400 to 403 are refusals of what we brought; anything else but success is the provider's failure.
fn succeeded(answer: &OutboundResponse) -> Result<&OutboundResponse, ProviderError> {
    match answer.status.as_u16() {
        200..=299 => Ok(answer),
        400..=403 => {
            let told = answer.json::<TokenAnswer>().ok().and_then(|told| told.error);
            Err(ProviderError::Refused(brief(&told.unwrap_or_default())))
        }
        _ => Err(ProviderError::Failed(answer.status)),
    }
}

/// As much of a foreign text as a log should take.
fn brief(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
