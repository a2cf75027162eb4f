//! A user's own sessions and logins: where and by which device, and how to end one of them.

use urr_kernel::{Secret, Timestamp, Uuid};
use urr_service::Page;
use urr_service::token::{ACCESS, AccessClaims};
use urr_storage::{DbResult, StorageError};

use crate::AuthService;
use crate::InternalError;
use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::sessions::login_history::{self, LoginEntry};
use crate::sessions::store::{self as sessions, SessionSelection};

/// A session that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSession {
    pub id: Uuid,
    pub login_at: Option<Timestamp>,
    /// When it was last refreshed.
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
    /// The login that began it. `None` if the history is not kept for so long.
    pub method: Option<String>,
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndSessionError {
    #[error("There is no such session.")]
    NotFound,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(EndSessionError);

impl AuthService {
    /// The live sessions of a user, the most recently used first.
    pub async fn list_sessions(&self, user_id: UserId) -> DbResult<Vec<LiveSession>> {
        let now = self.0.clock.now();
        self.read(move |tx| sessions::session_list(tx, user_id, now)).await
    }

    /// One page of the logins of a user, the newest first, and how many there are.
    pub async fn list_logins(
        &self,
        user_id: UserId,
        page: Page,
    ) -> DbResult<(Vec<LoginEntry>, u64)> {
        self.read(move |tx| login_history::login_history_list(tx, user_id, page)).await
    }

    /// Ends one session of a user.
    pub async fn end_session(&self, user_id: UserId, id: Uuid) -> Result<(), EndSessionError> {
        let now = self.0.clock.now();
        let ended = self.0.db.write(move |tx| {
            users::user_lock(tx, user_id)?.ok_or(EndSessionError::NotFound)?;
            let live = sessions::session_list(tx, user_id, now)?;
            if !live.iter().any(|session| session.id == id) {
                return Err(EndSessionError::NotFound);
            }
            sessions::sessions_end(tx, SessionSelection::One(id), now)?;
            Ok(())
        });
        ended.await
    }

    /// Ends all sessions of a user.
    pub(crate) async fn end_all_sessions(&self, user_id: UserId) -> DbResult<()> {
        let now = self.0.clock.now();
        let ended = self.0.db.write(move |tx| {
            users::user_lock(tx, user_id)?;
            sessions::sessions_end(tx, SessionSelection::AllOf(user_id), now)?;
            Ok::<_, StorageError>(())
        });
        ended.await
    }

    /// The session of an access token.
    pub(crate) fn session_of(&self, access_token: Option<&Secret>) -> Option<Uuid> {
        let now = self.0.clock.now();
        let token = access_token?.expose();
        let verified = self.0.token_key.verify::<AccessClaims>(ACCESS, token, now).ok()?;
        Some(verified.claims.family_id)
    }
}
