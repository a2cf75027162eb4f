//! The identities of an account: adding one, seeing them, removing one.

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx};

use super::sign_in::Known;
use super::{SocialError, SocialStart, SocialWay};
use crate::domain::account::UserId;
use crate::domain::social::{LocalPath, Provider, SocialProfile};
use crate::fault::from_faults;
use crate::jobs::Rotation;
use crate::store::social::{self, StoredIdentity};
use crate::store::users;
use crate::{Auth, Confirmation, ConfirmedError, Fault};

/// One of the services by which a user gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    pub provider: Provider,
    pub linked_at: Timestamp,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartLinkError {
    #[error(transparent)]
    Social(#[from] SocialError),
    #[error(transparent)]
    NotConfirmed(#[from] ConfirmedError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnlinkError {
    #[error("the account has no identity of this provider")]
    NotLinked,
    #[error("nobody could get into the account any more")]
    LastWayIn,
    #[error(transparent)]
    Fault(#[from] Fault),
}

from_faults!(UnlinkError);

impl Auth {
    /// Begins to add an identity to an account. What is added leads in for good, so being logged in
    /// is not enough: whoever has stolen a session must not make it last.
    pub async fn start_link(
        &self,
        provider: Provider,
        user_id: UserId,
        redirect: LocalPath,
        confirmation: Confirmation,
    ) -> Result<SocialWay, StartLinkError> {
        self.side_of_ways(provider)?;
        self.confirm_either_way(user_id, confirmation).await?;
        let link_user_id = Some(user_id);
        let start = SocialStart { redirect, terms_agreed: false, link_user_id };
        Ok(self.start_social(provider, start).await?)
    }

    pub async fn list_identities(
        &self,
        user_id: UserId,
    ) -> Result<Vec<LinkedIdentity>, StorageError> {
        let list = move |tx: &mut Tx<'_>| social::identity_list(tx, user_id);
        let listed: Vec<(Provider, Timestamp)> = self.db.read(list).await?;
        let identity = |(provider, linked_at)| LinkedIdentity { provider, linked_at };
        Ok(listed.into_iter().map(identity).collect())
    }

    /// Removes an identity, unless it is the last way into the account. Sessions go on: who wants
    /// to end them logs out everywhere.
    pub async fn unlink_identity(
        &self,
        provider: Provider,
        user_id: UserId,
    ) -> Result<(), UnlinkError> {
        let auth = self.clone();
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, user_id)?.filter(|user| user.person.is_some());
                let user = user.ok_or(UnlinkError::NotLinked)?;
                let identities = social::identity_list(tx, user_id)?;
                if !identities.iter().any(|(linked, _)| *linked == provider) {
                    return Err(UnlinkError::NotLinked);
                }
                // By a service that is no longer configured nobody gets in.
                let leads_in = |other: Provider| auth.settings.social.provider(other).is_some();
                let mut others = identities.iter().filter(|(other, _)| *other != provider);
                if user.password_hash.is_none() && !others.any(|(other, _)| leads_in(*other)) {
                    return Err(UnlinkError::LastWayIn);
                }
                social::identity_delete(tx, provider, user_id)?;
                Ok(())
            })
            .await
    }

    /// Adds an identity to the account of who is logged in. The same one twice is no mistake.
    pub(super) async fn link_identity(
        &self,
        provider: Provider,
        user_id: UserId,
        profile: SocialProfile,
    ) -> Result<(), SocialError> {
        let (now, lookup) = (self.clock.now(), self.lookup(provider, &profile));
        let identity = self.identity(provider, user_id, &profile.subject);
        self.db
            .write(move |tx| {
                let user = users::user_lock(tx, user_id)?.filter(|user| user.person.is_some());
                user.ok_or(SocialError::LoginRequired)?;
                let Known { identity_owner, email_owner } = lookup.find(tx)?;
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

    /// Seals so many identities at most with the current key.
    pub(crate) async fn rotate_social(&self, batch: u32) -> Result<Rotation, Fault> {
        let current = self.data_keys.current_version();
        let list =
            move |tx: &mut Tx<'_>| social::identity_list_sealed_otherwise(tx, current, batch);
        let stored: Vec<StoredIdentity> = self.db.read(list).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for old in stored {
            let StoredIdentity { provider, user_id, key_version, cipher, .. } = &old;
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
            let remaining = social::identity_count_sealed_otherwise(tx, current)?;
            Ok::<_, StorageError>(Rotation { rotated, remaining })
        });
        Ok(rotation.await?)
    }
}
