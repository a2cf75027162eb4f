//! A user's own data: a copy of all of it, and the end of the account.
//!
//! Tickets, memberships and offers are in the ticket service, which knows users by their ids only.
//! Deleting an account with valid tickets loses them, so the user is told what is lost first,
//! and must accept exactly that.

pub mod http;

use serde_json::Value;
use urr_contracts::internal::ticket::{GetHoldings, Holding, HoldingsAnswer};
use urr_kernel::{CallContext, hex};
use urr_service::Page;

use crate::accounts::account::UserId;
use crate::sessions::hash_of;
use crate::{AuthService, InternalError, Reauthentication, ReauthenticationError, UserError};

/// How many logins a copy has at most, the newest.
const LOGINS_MAX: i64 = 100;

/// The request to delete an account.
#[derive(Clone, Debug, Default)]
pub struct AccountDeletion {
    pub reauthentication: Reauthentication,
    /// The name of the losses that the user was told of and accepts.
    pub accepted_losses: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteAccountError {
    /// The user has to accept what is lost.
    #[error("With your account you would lose what is still valid. Please look at the list.")]
    Losses(Losses),
    /// The ticket service does not say what would be lost.
    #[error("We cannot see your tickets at the moment. Please try again later.")]
    TicketsUnknown,
    #[error(transparent)]
    NotConfirmed(#[from] ReauthenticationError),
}

/// What a user loses with the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    pub holdings: Vec<Holding>,
    /// Names this list. A list with anything else in it has another name.
    pub name: String,
}

impl Losses {
    fn of(holdings: Vec<Holding>) -> Option<Losses> {
        if holdings.is_empty() {
            return None;
        }
        let ids: Vec<String> =
            holdings.iter().map(|holding| format!("{}:{}", holding.kind, holding.id)).collect();
        let name = hex::encode(hash_of(&ids.join(",")));
        Some(Losses { holdings, name })
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("We cannot see your tickets at the moment. Please try again later.")]
    TicketsUnknown,
    #[error(transparent)]
    NotConfirmed(#[from] ReauthenticationError),
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Internal(#[from] InternalError),
}

crate::internal_error::from_internal_errors!(ExportError);

/// The ticket service did not answer, or this process does not know where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TicketsUnknown;

impl AuthService {
    /// What the ticket service has of a user.
    pub(crate) async fn holdings(
        &self,
        user_id: UserId,
        context: &CallContext,
    ) -> Result<HoldingsAnswer, TicketsUnknown> {
        let Some(ticket) = &self.0.ticket else { return Err(TicketsUnknown) };
        let answer = ticket.call(GetHoldings { user_id: user_id.0 }, context).await;
        answer.map_err(|error| {
            tracing::warn!(%error, "what a user has is not known");
            TicketsUnknown
        })
    }

    /// Deletes the account of a user who has nothing that is still valid, or accepts its loss.
    pub async fn close_account(
        &self,
        id: UserId,
        deletion: AccountDeletion,
        context: CallContext,
    ) -> Result<(), DeleteAccountError> {
        let AccountDeletion { reauthentication, accepted_losses } = deletion;
        let (_, version) = self.reauthenticate(id, reauthentication).await?;
        let known = self.holdings(id, &context).await;
        let known = known.map_err(|_| DeleteAccountError::TicketsUnknown)?;
        match Losses::of(known.holdings) {
            Some(losses) if accepted_losses.as_deref() != Some(&losses.name) => {
                Err(DeleteAccountError::Losses(losses))
            }
            Some(_) | None => Ok(self.erase_account(id, version, context).await?),
        }
    }

    /// All that is stored about a user, as JSON. Complete, or not at all.
    pub async fn export_account(
        &self,
        id: UserId,
        reauthentication: Reauthentication,
        context: CallContext,
    ) -> Result<Value, ExportError> {
        self.reauthenticate_either_way(id, reauthentication).await?;
        let profile = self.get_profile(id).await?;
        let known = self.holdings(id, &context).await;
        let known = known.map_err(|_| ExportError::TicketsUnknown)?;
        let sessions = self.list_sessions(id).await?;
        let (logins, _) = self.list_logins(id, Page::new(1, LOGINS_MAX)).await?;
        let identities = self.list_identities(id).await?;
        let terms = self.read(move |tx| crate::terms::store::terms_list_all(tx, id)).await?;
        Ok(http::export_document(http::ExportParts {
            exported_at: self.0.clock.now(),
            profile,
            sessions,
            logins,
            identities,
            terms,
            tickets: known.records,
        }))
    }
}
