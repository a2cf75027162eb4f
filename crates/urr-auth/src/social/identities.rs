//! The social identities of an account: linking, listing and unlinking them.

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx};

use super::sign_in::IdentityOwners;
use super::{SocialError, SocialRedirect, SocialStart};
use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::jobs::KeyRotationProgress;
use crate::social::rules::{LocalPath, SocialProfile, SocialProvider};
use crate::social::store::{self as social, StoredSocialIdentity};
use crate::{AuthService, InternalError, Reauthentication, ReauthenticationError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
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
    #[error("the account has no identity of this provider")]
    NotLinked,
    #[error("nobody could get into the account any more")]
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

    pub async fn list_identities(
        &self,
        user_id: UserId,
    ) -> Result<Vec<LinkedIdentity>, StorageError> {
        let list = move |tx: &mut Tx<'_>| social::identity_list(tx, user_id);
        let listed: Vec<(SocialProvider, Timestamp)> = self.db.read(list).await?;
        let identity = |(provider, linked_at)| LinkedIdentity { provider, linked_at };
        Ok(listed.into_iter().map(identity).collect())
    }

    /// Unlinks an identity, unless it is the last way to log in. The sessions continue.
    pub async fn unlink_identity(
        &self,
        provider: SocialProvider,
        user_id: UserId,
    ) -> Result<(), UnlinkError> {
        let auth = self.clone();
        self.db
            .write(move |tx| {
                let user = users::user_lock_existing(tx, user_id)?.ok_or(UnlinkError::NotLinked)?;
                let identities = social::identity_list(tx, user_id)?;
                if !identities.iter().any(|(linked, _)| *linked == provider) {
                    return Err(UnlinkError::NotLinked);
                }
                // A provider that is no longer configured is not a way to log in.
                let is_configured =
                    |other: SocialProvider| auth.settings.social.provider(other).is_some();
                let mut others = identities.iter().filter(|(other, _)| *other != provider);
                if user.password_hash.is_none() && !others.any(|(other, _)| is_configured(*other)) {
                    return Err(UnlinkError::LastWayIn);
                }
                social::identity_delete(tx, provider, user_id)?;
                Ok(())
            })
            .await
    }

    /// Links an identity to an account. A repetition changes nothing.
    pub(super) async fn link_identity(
        &self,
        provider: SocialProvider,
        user_id: UserId,
        profile: SocialProfile,
    ) -> Result<(), SocialError> {
        let (now, lookup) = (self.clock.now(), self.lookup(provider, &profile));
        let identity = self.identity(provider, user_id, &profile.subject);
        self.db
            .write(move |tx| {
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
                    social::user_set_email_verified(tx, user_id, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Encrypts up to `batch` identities with the current data key.
    pub(crate) async fn rotate_social(
        &self,
        batch: u32,
    ) -> Result<KeyRotationProgress, InternalError> {
        let current = self.data_keys.current_version();
        let list = move |tx: &mut Tx<'_>| social::identity_list_with_other_key(tx, current, batch);
        let stored: Vec<StoredSocialIdentity> = self.db.read(list).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for old in stored {
            let StoredSocialIdentity { provider, user_id, key_version, cipher, .. } = &old;
            let kind = provider.subject_kind();
            let subject = self.data_keys.open_text(*key_version, kind, *user_id, cipher)?;
            let new = self.identity(*provider, *user_id, &subject);
            resealed.push((old, new));
        }
        let rotation = self.db.write(move |tx| {
            let mut rotated = 0;
            for (old, new) in &resealed {
                rotated += u64::from(social::identity_reseal(tx, old, new)?);
            }
            let remaining = social::identity_count_with_other_key(tx, current)?;
            Ok::<_, StorageError>(KeyRotationProgress { rotated, remaining })
        });
        Ok(rotation.await?)
    }
}
