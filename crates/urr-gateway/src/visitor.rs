//! Who a request is from: its access token verified, its identity told to the service.

use std::time::Duration;

use axum::http::HeaderMap;
use urr_kernel::{Timestamp, Uuid};
use urr_service::token::TokenError;
use urr_service::{ApiError, Role};

use crate::Gateway;
use crate::credential::Credential;
use crate::verified::Verified;

/// Who a request is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visitor {
    Anonymous,
    User {
        id: Uuid,
        role: Role,
    },
    /// Somebody whose token is no good: as good as nobody, but where a user is needed they are
    /// told what is wrong with it (G3).
    Invalid(TokenFault),
}

/// What is wrong with an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    Expired,
    Malformed,
    Revoked,
    /// Not ours, not an access token, or from the future.
    Invalid,
    /// Perhaps good, but nobody has told us yet which ones are revoked.
    Unknown,
}

impl TokenFault {
    pub fn error(self) -> ApiError {
        let (code, sentence) = match self {
            TokenFault::Expired => ("TOKEN_EXPIRED", "Your session has expired."),
            TokenFault::Malformed => ("TOKEN_MALFORMED", "The access token cannot be read."),
            TokenFault::Revoked => {
                ("TOKEN_REVOKED", "Your session has ended. Please log in again.")
            }
            TokenFault::Invalid => ("TOKEN_INVALID", "The access token is not valid."),
            TokenFault::Unknown => {
                let sentence = "We cannot check who you are at the moment. Please try again.";
                let again = Duration::from_secs(1);
                return ApiError::unavailable("SERVICE_UNAVAILABLE", sentence, again);
            }
        };
        ApiError::unauthorized(code, sentence)
    }
}

impl From<TokenError> for TokenFault {
    fn from(error: TokenError) -> TokenFault {
        match error {
            TokenError::Expired => TokenFault::Expired,
            TokenError::Malformed => TokenFault::Malformed,
            TokenError::Forged | TokenError::WrongPurpose | TokenError::NotYetValid => {
                TokenFault::Invalid
            }
        }
    }
}

/// Verifies the token and writes the identity headers, the only ones there are.
pub fn identify(gateway: &Gateway, credential: &Credential, headers: &mut HeaderMap) -> Visitor {
    let token = match credential {
        Credential::None => return Visitor::Anonymous,
        Credential::Malformed { .. } => return Visitor::Invalid(TokenFault::Malformed),
        Credential::Header(token) | Credential::Cookie(token) => token,
    };
    match verify(gateway, token, gateway.clock.now()) {
        Err(fault) => Visitor::Invalid(fault),
        Ok(verified) => {
            verified.headers.write(headers);
            Visitor::User { id: verified.user_id, role: verified.role }
        }
    }
}

fn verify(gateway: &Gateway, token: &str, now: Timestamp) -> Result<Verified, TokenFault> {
    let verified = gateway.verified.verify(&gateway.settings.access_key, token, now)?;
    if !gateway.revoked.is_complete() {
        return Err(TokenFault::Unknown);
    }
    match gateway.revoked.contains(verified.token_id) {
        true => Err(TokenFault::Revoked),
        false => Ok(verified),
    }
}
