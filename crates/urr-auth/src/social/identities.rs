//! The social identities of an account: linking, listing and unlinking them.

use serde::Serialize;
use urr_kernel::Timestamp;
use urr_storage::DbResult;
use utoipa::ToSchema;

use super::sign_in::IdentityOwners;
use super::{SocialError, SocialRedirect, SocialStart};
use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::social::rules::{LocalPath, SocialProfile, SocialProvider};
use crate::social::store as social;
use crate::{AuthService, InternalError, Reauthentication, ReauthenticationError};

/// A linked social provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IdentityView)]
pub struct LinkedIdentity {
    #[schema(value_type = String, example = "google")]
    pub provider: SocialProvider,
    pub linked_at: Timestamp,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartLinkError {
    #[error(transparent)]
    Social(#[from] SocialError),
    #[error(transparent)]
    NotConfirmed(#[from] ReauthenticationError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnlinkError {
    #[error("Your account is not connected to this service.")]
    NotLinked,
    #[error(
        "You could not log in any more. Please choose a password first, or connect another service."
    )]
    LastWayIn,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(UnlinkError);

impl AuthService {
    /// Starts to link an identity to an account. It needs reauthentication, because a linked identity
    /// gives lasting access, which a stolen session must not.
    pub async fn start_link(
        &self,
        provider: SocialProvider,
        user_id: UserId,
        redirect: LocalPath,
        reauthentication: Reauthentication,
    ) -> Result<SocialRedirect, StartLinkError> {
        self.context_for_redirect(provider)?;
        self.reauthenticate_either_way(user_id, reauthentication).await?;
        let link_user_id = Some(user_id);
        let start = SocialStart { redirect, terms_agreed: false, link_user_id };
        Ok(self.start_social(provider, start).await?)
    }

    pub async fn list_identities(&self, user_id: UserId) -> DbResult<Vec<LinkedIdentity>> {
        self.read(move |tx| social::identity_list(tx, user_id)).await
    }

    /// Unlinks an identity, unless it is the last way to log in. The sessions continue.
    pub async fn unlink_identity(
        &self,
        provider: SocialProvider,
        user_id: UserId,
    ) -> Result<(), UnlinkError> {
        let auth = self.clone();
        let written = self.0.db.write(move |tx| {
            let user = users::user_lock_existing(tx, user_id)?.ok_or(UnlinkError::NotLinked)?;
            let identities = social::identity_list(tx, user_id)?;
            if !identities.iter().any(|linked| linked.provider == provider) {
                return Err(UnlinkError::NotLinked);
            }
            // A provider that is no longer configured is not a way to log in.
            let is_other_way = |linked: &LinkedIdentity| {
                let settings = auth.0.settings.social.provider(linked.provider);
                linked.provider != provider && settings.is_some()
            };
            if user.password_hash.is_none() && !identities.iter().any(is_other_way) {
                return Err(UnlinkError::LastWayIn);
            }
            social::identity_delete(tx, provider, user_id)?;
            Ok(())
        });
        written.await
    }

    /// Links an identity to an account. A repetition changes nothing.
    pub(super) async fn link_identity(
        &self,
        provider: SocialProvider,
        user_id: UserId,
        profile: SocialProfile,
    ) -> Result<(), SocialError> {
        let (now, lookup) = (self.0.clock.now(), self.lookup(provider, &profile));
        let identity = self.identity(provider, user_id, &profile.subject);
        let written = self.0.db.write(move |tx| {
            users::user_lock_existing(tx, user_id)?.ok_or(SocialError::LoginRequired)?;
            let IdentityOwners { identity_owner, email_owner } = lookup.find(tx)?;
            match identity_owner {
                Some(owner) if owner == user_id => {}
                Some(_) => return Err(SocialError::IdentityInUse),
                None if social::identity_exists(tx, provider, user_id)? => {
                    return Err(SocialError::AlreadyLinked);
                }
                None if !social::identity_insert(tx, &identity, now)? => {
                    return Err(SocialError::IdentityInUse);
                }
                None => {}
            }
            let is_same_address = email_owner.is_some_and(|owner| owner.id == user_id);
            if profile.email_verified && is_same_address {
                users::user_set_email_verified(tx, user_id, now)?;
            }
            Ok(())
        });
        written.await
    }
}
