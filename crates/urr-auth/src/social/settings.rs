//! The settings of social providers.

use std::time::Duration;

use urr_kernel::Secret;

use crate::social::rules::SocialProvider;

#[derive(Clone, Debug)]
pub struct SocialSettings {
    /// The public address of this site, such as `https://urr.example`, for redirects.
    pub public_url: String,
    pub google: Option<SocialProviderSettings>,
    pub kakao: Option<SocialProviderSettings>,
    pub naver: Option<SocialProviderSettings>,
    /// How long a user may take at the provider.
    pub attempt_lifetime: Duration,
    /// The timeout of a call to a provider.
    pub call_timeout: Duration,
}

impl Default for SocialSettings {
    /// No provider.
    fn default() -> SocialSettings {
        SocialSettings {
            public_url: String::new(),
            google: None,
            kakao: None,
            naver: None,
            attempt_lifetime: Duration::from_secs(10 * 60),
            call_timeout: Duration::from_secs(5),
        }
    }
}

impl SocialSettings {
    pub(crate) fn provider(&self, provider: SocialProvider) -> Option<&SocialProviderSettings> {
        match provider {
            SocialProvider::Google => self.google.as_ref(),
            SocialProvider::Kakao => self.kakao.as_ref(),
            SocialProvider::Naver => self.naver.as_ref(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct SocialProviderSettings {
    pub client_id: String,
    /// Without it only logins by the provider's button are possible.
    pub client_secret: Option<Secret>,
    pub endpoints: ProviderEndpoints,
}

/// The addresses of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEndpoints {
    /// Where browsers are redirected to.
    pub authorize: String,
    /// Where a code is exchanged for tokens.
    pub token: String,
    /// The accepted issuers of ID tokens. Empty if it issues none.
    pub issuers: Vec<String>,
    /// The public keys of its ID tokens.
    pub keys: Option<String>,
    /// The user info.
    pub user_info: Option<String>,
    pub scope: Option<String>,
}

impl ProviderEndpoints {
    /// The addresses that the provider publishes.
    pub fn of(provider: SocialProvider) -> ProviderEndpoints {
        let text = str::to_owned;
        match provider {
            SocialProvider::Google => ProviderEndpoints {
                authorize: text("https://accounts.google.com/o/oauth2/v2/auth"),
                token: text("https://oauth2.googleapis.com/token"),
                issuers: vec![text("https://accounts.google.com"), text("accounts.google.com")],
                keys: Some(text("https://www.googleapis.com/oauth2/v3/certs")),
                user_info: None,
                scope: Some(text("openid email profile")),
            },
            // Its ID tokens do not say whether the address is verified; the user info does.
            SocialProvider::Kakao => ProviderEndpoints {
                authorize: text("https://kauth.kakao.com/oauth/authorize"),
                token: text("https://kauth.kakao.com/oauth/token"),
                issuers: vec![text("https://kauth.kakao.com")],
                keys: Some(text("https://kauth.kakao.com/.well-known/jwks.json")),
                user_info: Some(text("https://kapi.kakao.com/v1/oidc/userinfo")),
                scope: Some(text("openid account_email profile_nickname")),
            },
            SocialProvider::Naver => ProviderEndpoints {
                authorize: text("https://nid.naver.com/oauth2.0/authorize"),
                token: text("https://nid.naver.com/oauth2.0/token"),
                issuers: Vec::new(),
                keys: None,
                user_info: Some(text("https://openapi.naver.com/v1/nid/me")),
                scope: None,
            },
        }
    }
}
