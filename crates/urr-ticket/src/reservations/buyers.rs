//! The people behind reservations, as those see them who look after them.
//!
//! The ticket service stores no names but those of guests without an account. Organisers see an address only as far as they can recognise
//! it; support and administrators, who may open the account, see the whole.

use std::collections::HashMap;

use serde::Serialize;
use urr_contracts::internal::auth::{ListUsers, USERS_PER_CALL_MAX};
use urr_kernel::{CallContext, Uuid, mask_email};
use urr_service::EventScope;
use utoipa::ToSchema;

use crate::TicketService;

/// A buyer.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = BuyerView)]
pub struct Buyer {
    #[schema(example = "김민아")]
    pub name: String,
    /// For organisers the first letter and the domain.
    #[schema(example = "m***@example.com")]
    pub email: String,
}

/// Names and addresses do not belong into logs.
impl std::fmt::Debug for Buyer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[buyer]")
    }
}

/// By the id of their account. Accounts that were deleted are not there.
pub type Buyers = HashMap<Uuid, Buyer>;

impl TicketService {
    /// The buyers with these accounts, and guests without one. None: the auth service is away.
    pub(crate) async fn find_buyers(
        &self,
        user_ids: Vec<Uuid>,
        scope: EventScope,
        context: &CallContext,
    ) -> Option<Buyers> {
        let mut buyers = self.find_accounts(user_ids.clone(), scope, context).await?;
        let mut others = user_ids;
        others.retain(|id| !buyers.contains_key(id));
        if !others.is_empty() {
            match self.find_guests(others, scope).await {
                Ok(guests) => buyers.extend(guests),
                Err(error) => tracing::warn!(%error, "guests are not shown"),
            }
        }
        Some(buyers)
    }

    /// The accounts, asked for a hundred at a time. None: the auth service is away.
    pub(crate) async fn find_accounts(
        &self,
        mut user_ids: Vec<Uuid>,
        scope: EventScope,
        context: &CallContext,
    ) -> Option<Buyers> {
        user_ids.sort_unstable();
        user_ids.dedup();
        let auth = &self.peers.as_ref()?.auth;
        let mut buyers = Buyers::new();
        for chunk in user_ids.chunks(USERS_PER_CALL_MAX) {
            let answer = auth.call(ListUsers { user_ids: chunk.to_vec() }, context).await;
            let answer =
                answer.inspect_err(|error| tracing::warn!(%error, "buyers are not shown")).ok()?;
            buyers.extend(answer.users.into_iter().map(|user| {
                let email = match scope {
                    EventScope::All => user.email,
                    EventScope::OwnedBy(_) | EventScope::AssignedTo(_) => mask_email(&user.email),
                };
                (user.id, Buyer { name: user.name, email })
            }));
        }
        Some(buyers)
    }
}
