//! A user's own data: a copy of all of it, and the end of the account.
//!
//! Tickets, memberships and offers are in the ticket service, which knows users by their ids only.
//! Deleting an account with valid tickets loses them, so the user is told what is lost first,
//! and must accept exactly that.

pub mod http;

use serde_json::Value;
use urr_contracts::clients::{
    ClientError, CommunityClient, MailClient, PaymentClient, TicketClient,
};
use urr_contracts::internal::community::GetContributions;
use urr_contracts::internal::mail::GetMailRecords;
use urr_contracts::internal::payment::GetPaymentRecords;
use urr_contracts::internal::ticket::{GetHoldings, Holding, HoldingsAnswer};
use urr_kernel::{CallContext, hex};
use urr_service::Page;

use crate::accounts::account::UserId;
use crate::sessions::hash_of;
use crate::{AuthService, InternalError, Reauthentication, ReauthenticationError, UserError};

/// The services that have a user's tickets, payments, mails and posts.
#[derive(Clone, Debug)]
pub struct AuthPeers {
    pub ticket: TicketClient,
    pub payment: PaymentClient,
    pub mail: MailClient,
    pub community: CommunityClient,
}

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
    /// A service that has a part of the data did not answer: `tickets`, `payments`, `mails` or
    /// `community`.
    #[error("A part of your data cannot be read at the moment. Please try again later.")]
    PartUnavailable(&'static str),
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
        let Some(peers) = &self.0.peers else { return Err(TicketsUnknown) };
        let answer = peers.ticket.call(GetHoldings { user_id: user_id.0 }, context).await;
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
        let known = known.map_err(|_| ExportError::PartUnavailable("tickets"))?;
        let [payments, mails, community] = self.other_records(id, &context).await?;
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
            payments,
            mails,
            community,
        }))
    }

    /// What the payment, mail and community services have of a user.
    async fn other_records(
        &self,
        id: UserId,
        context: &CallContext,
    ) -> Result<[Value; 3], ExportError> {
        let missing = |part: &'static str| {
            move |error: ClientError| {
                tracing::warn!(%error, part, "a copy of a user's data is not complete");
                ExportError::PartUnavailable(part)
            }
        };
        let peers = self.0.peers.as_ref().ok_or(ExportError::PartUnavailable("payments"))?;
        let payments = peers.payment.call(GetPaymentRecords { user_id: id.0 }, context).await;
        let payments = payments.map_err(missing("payments"))?;
        let mails = peers.mail.call(GetMailRecords { user_id: id.0 }, context).await;
        let mails = mails.map_err(missing("mails"))?;
        let posts = peers.community.call(GetContributions { user_id: id.0 }, context).await;
        let posts = posts.map_err(missing("community"))?;
        Ok([payments.records, mails.records, posts.records])
    }
}
