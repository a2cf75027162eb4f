//! The HTTP client for social providers.

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

/// How long fetched keys are used.
const KEYS_TTL: Duration = Duration::from_secs(60 * 60);
/// A token with an unknown key makes us fetch the keys at once, but not more often than this.
const KEYS_FETCH_INTERVAL: Duration = Duration::from_secs(10);

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
    /// Whether a later attempt may succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            SocialProviderError::NoAnswer(_)
            | SocialProviderError::Failed(_)
            | SocialProviderError::Unreadable(_) => true,
            SocialProviderError::Refused(_) | SocialProviderError::IdToken(_) => false,
        }
    }
}

/// Calls providers and caches their keys. Clones share both.
#[derive(Clone)]
pub struct SocialClient {
    outbound: Outbound,
    keys: Arc<Mutex<HashMap<SocialProvider, CachedKeys>>>,
}

#[derive(Clone)]
struct CachedKeys {
    keys: Arc<IdTokenKeys>,
    fetched_at: Timestamp,
}

/// A provider with our settings for it.
#[derive(Clone, Copy)]
pub struct ProviderContext<'a> {
    pub provider: SocialProvider,
    pub settings: &'a SocialProviderSettings,
    pub timeout: Duration,
    pub now: Timestamp,
}

/// The authorization code of a browser, with the secrets of its login.
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
    #[serde(default, deserialize_with = "id_token::bool_or_text")]
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

    /// Exchanges an authorization code for the profile of the user.
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
                    self.add_user_info(context, &access_token, &mut profile).await?;
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

    /// Checks an ID token of the provider's button.
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
        let secret = secret.expect("a login by redirect starts only with a client secret");
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
        let tokens: TokenAnswer = check_status(&answer)?.json()?;
        // Naver answers errors with status 200.
        match tokens.error {
            Some(error) => Err(SocialProviderError::Refused(brief(&error))),
            None => Ok(tokens),
        }
    }

    /// The profile, and what the token says about the address being verified.
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
            Err(IdTokenError::UnknownKey)
                if known.fetched_at + KEYS_FETCH_INTERVAL <= context.now =>
            {
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
        let all = self.keys.lock().expect("nothing panics while it holds the lock");
        all.get(&context.provider)
            .filter(|known| known.fetched_at + KEYS_TTL > context.now)
            .cloned()
    }

    async fn fetch_keys(
        &self,
        context: ProviderContext<'_>,
    ) -> Result<CachedKeys, SocialProviderError> {
        let url = context.settings.endpoints.keys.as_deref();
        let url =
            url.ok_or_else(|| SocialProviderError::Refused("no address of its keys".to_owned()))?;
        let answer = self.outbound.get_json(url, HeaderMap::new(), context.timeout).await?;
        let keys = Arc::new(IdTokenKeys::parse(&check_status(&answer)?.body)?);
        let known = CachedKeys { keys, fetched_at: context.now };
        let mut all = self.keys.lock().expect("nothing panics while it holds the lock");
        all.insert(context.provider, known.clone());
        Ok(known)
    }

    /// Completes a profile by the user info, if the ID token does not say whether the address is
    /// verified.
    async fn add_user_info(
        &self,
        context: ProviderContext<'_>,
        access_token: &str,
        profile: &mut SocialProfile,
    ) -> Result<(), SocialProviderError> {
        let Some(url) = context.settings.endpoints.user_info.as_deref() else {
            return Ok(());
        };
        let user_info: OpenIdUserInfo = self.user_info(context, url, access_token).await?.json()?;
        if user_info.sub != profile.subject {
            return Err(SocialProviderError::Refused(
                "the user info is of another user".to_owned(),
            ));
        }
        if let Some(email) = user_info.email.and_then(|email| Email::parse(&email).ok()) {
            profile.email = Some(email);
            profile.email_verified = user_info.email_verified.unwrap_or(false);
        }
        Ok(())
    }

    /// Naver does not say whether an address is verified, so it counts as not verified.
    async fn naver_profile(
        &self,
        context: ProviderContext<'_>,
        access_token: &str,
    ) -> Result<SocialProfile, SocialProviderError> {
        let missing = || SocialProviderError::Refused("the user info is empty".to_owned());
        let url = context.settings.endpoints.user_info.as_deref().ok_or_else(missing)?;
        let user_info: NaverUserInfo = self.user_info(context, url, access_token).await?.json()?;
        let person =
            user_info.response.filter(|person| !person.id.is_empty()).ok_or_else(missing)?;
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
        let refused =
            |_| SocialProviderError::Refused("the access token cannot be sent".to_owned());
        let mut bearer = bearer.map_err(refused)?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let answer = self.outbound.get_json(url, headers, context.timeout).await?;
        check_status(&answer)?;
        Ok(answer)
    }
}

/// 400 to 403 reject our request; any other status but success is an outage of the provider.
fn check_status(answer: &OutboundResponse) -> Result<&OutboundResponse, SocialProviderError> {
    match answer.status.as_u16() {
        200..=299 => Ok(answer),
        400..=403 => {
            let told = answer.json::<TokenAnswer>().ok().and_then(|told| told.error);
            Err(SocialProviderError::Refused(brief(&told.unwrap_or_default())))
        }
        _ => Err(SocialProviderError::Failed(answer.status)),
    }
}

/// A foreign text, cut for the log.
fn brief(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_graphic()).take(64).collect()
}
