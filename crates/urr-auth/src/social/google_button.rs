//! Login by Google's button, which gives the page an ID token for us.
//!
//! Anybody who holds such a token could use it. So the page asks us for a nonce first, which is derived
//! from a secret in the cookie of the browser, and the button puts it into the token. A token that
//! was stolen elsewhere has another nonce or none. Each nonce can be used once.

use urr_kernel::{CallContext, Secret};

use super::{SocialError, log_provider_error};
use crate::social::rules::{LocalPath, SocialProvider};
use crate::social::store::SocialAttempt;
use crate::{AuthService, ClientInfo, Session};

/// What a page needs to show the button.
#[derive(Clone, Debug)]
pub struct ButtonStart {
    pub client_id: String,
    /// The button puts it into the token.
    pub nonce: Secret,
    /// For the cookie of the browser.
    pub secret: Secret,
}

impl AuthService {
    /// Starts a login by the button of a provider.
    pub async fn start_button(&self, provider: SocialProvider) -> Result<ButtonStart, SocialError> {
        let at_provider = self.provider_context(provider)?;
        let secret = Secret::generate();
        let nonce = nonce_of(&secret);
        let attempt = SocialAttempt {
            provider,
            redirect: LocalPath::root(),
            terms_agreed: false,
            link_user_id: None,
            expires_at: at_provider.now + self.0.settings.social.attempt_lifetime,
        };
        self.insert_attempt(&nonce, attempt).await?;
        Ok(ButtonStart { client_id: at_provider.settings.client_id.clone(), nonce, secret })
    }

    /// Logs in by the ID token of the button, in the browser that has this secret.
    pub async fn login_by_button(
        &self,
        provider: SocialProvider,
        id_token: &str,
        secret: Option<Secret>,
        terms_agreed: bool,
        (client, context): (ClientInfo, CallContext),
    ) -> Result<Session, SocialError> {
        let at_provider = self.provider_context(provider)?;
        let nonce = nonce_of(&secret.ok_or(SocialError::InvalidState)?);
        let profile = self.0.social.profile_of_credential(at_provider, id_token, &nonce).await;
        let profile = profile.map_err(|error| log_provider_error(provider, &error))?;
        // The nonce is used up only now: an invalid token or an outage must not use it up.
        let attempt = self.take_attempt(provider, &nonce).await?;
        let signed_in = self.sign_in(provider, profile, terms_agreed, client, context).await;
        if signed_in == Err(SocialError::TermsRequired) {
            // The page shows the terms and sends the same token again.
            self.insert_attempt(&nonce, attempt).await?;
        }
        signed_in
    }
}

fn nonce_of(secret: &Secret) -> Secret {
    secret.derive("urr-auth:button:nonce")
}
