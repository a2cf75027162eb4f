//! The auth service, as its callers see it.

use urr_kernel::{CallContext, Uuid};
use urr_service::Upstream;

use super::{ClientError, get, post, with_query};
use crate::internal::auth::{
    AccountSummary, LIST_REVOKED_TOKENS, LIST_USERS, ListUsersAnswer, ListUsersBody,
    RevokedTokenPage,
};

#[derive(Clone, Debug)]
pub struct AuthClient(Upstream);

impl AuthClient {
    pub fn new(upstream: Upstream) -> AuthClient {
        AuthClient(upstream)
    }

    /// Those of the users who have an account.
    pub async fn list_users(
        &self,
        user_ids: Vec<Uuid>,
        context: &CallContext,
    ) -> Result<Vec<AccountSummary>, ClientError> {
        let body = ListUsersBody { user_ids };
        let answer = post(&self.0, &LIST_USERS, LIST_USERS.path, &body, context).await;
        answer.map(|ListUsersAnswer { users }| users)
    }

    /// A page of the list of revoked tokens, in the order in which they were revoked.
    pub async fn list_revoked_tokens(
        &self,
        after: i64,
        context: &CallContext,
    ) -> Result<RevokedTokenPage, ClientError> {
        let path = with_query(LIST_REVOKED_TOKENS.path, "after", Some(after));
        get(&self.0, &LIST_REVOKED_TOKENS, &path, context).await
    }
}
