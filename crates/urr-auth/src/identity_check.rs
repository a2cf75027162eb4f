//! Identity verification (본인확인): a provider verifies the person behind an account.
//!
//! A user starts a verification with an id of ours. The browser opens the provider with it; what it
//! sends back proves nothing. Then we ask the provider about this id.
//!
//! Two identifiers of the person are stored encrypted: `ci`, the same everywhere, and `di`, for our
//! site only. A person has one account. Without the `ci` we cannot check that, so an answer without
//! it is rejected.

pub mod http;
mod provider;
mod store;

use std::time::Duration;

use urr_kernel::{Timestamp, define_id};
use urr_storage::{StorageError, Tx, storable_enum, storable_id};

use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::personal_data::{DataKeys, UnsealError};
use crate::{AuthService, InternalError};

pub use provider::{
    IdentityProvider, IdentityProviderError, PORTONE_ENDPOINT, PortOneIdentity, SandboxPerson,
};
use provider::{PersonKey, VerificationOutcome, VerificationReport, ask_sandbox};
use store::{SealedPersonKeys, StoredPersonIdentity};

/// How long a verification can be completed.
const VERIFICATION_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// How many verifications a user may start within that time, because each costs money.
const VERIFICATIONS_OPEN_MAX: u32 = 10;
/// How long verifications are kept for inquiries.
const VERIFICATIONS_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

define_id!(
    /// Which verification.
    VerificationId
);
storable_id!(VerificationId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationStatus {
    Started,
    Verified,
    Failed,
    Expired,
}

storable_enum!(VerificationStatus {
    Started => "started",
    Verified => "verified",
    Failed => "failed",
    Expired => "expired",
});

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    pub id: VerificationId,
    pub user_id: UserId,
    pub status: VerificationStatus,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartVerificationError {
    #[error("identity checks are off")]
    Off,
    #[error("there is no such user")]
    UserNotFound,
    #[error("the user is verified")]
    AlreadyVerified,
    #[error("the user has begun too many attempts")]
    TooMany,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteVerificationError {
    #[error("identity checks are off")]
    Off,
    /// Or it belongs to another user.
    #[error("there is no such verification")]
    NotFound,
    #[error("the user has not completed their part")]
    Pending,
    #[error("the person could not be verified")]
    Failed,
    #[error("the provider did not return the ci of the person")]
    KeyMissing,
    #[error("the verification has expired")]
    Expired,
    #[error("the person has another account")]
    VerifiedElsewhere,
    #[error("the person has deleted an account recently")]
    DeletedRecently { until: Timestamp },
    #[error("the account belongs to another person")]
    OtherPerson,
    #[error(transparent)]
    SocialProvider(#[from] IdentityProviderError),
    #[error(transparent)]
    Internal(#[from] InternalError),
}

from_internal_errors!(StartVerificationError, CompleteVerificationError);

/// The identifiers of a verified person.
#[derive(Clone)]
struct PersonKeys {
    ci: PersonKey,
    di: Option<PersonKey>,
}

/// The answer of the provider that ends a verification.
#[derive(Clone)]
enum VerificationResult {
    Verified(PersonKeys),
    Failed(VerificationFailure),
}

#[derive(Clone, Copy)]
enum VerificationFailure {
    SocialProvider,
    KeyMissing,
}

/// When the identity was verified, or why not.
type CompletionResult = Result<Timestamp, CompleteVerificationError>;

/// Interprets a report. An error leaves the verification open.
fn decide(
    id: VerificationId,
    report: VerificationReport,
) -> Result<VerificationResult, CompleteVerificationError> {
    if report.verification_id != id.to_string() {
        return Err(IdentityProviderError::OtherVerification.into());
    }
    match report.outcome {
        VerificationOutcome::Pending => Err(CompleteVerificationError::Pending),
        VerificationOutcome::Failed => {
            Ok(VerificationResult::Failed(VerificationFailure::SocialProvider))
        }
        VerificationOutcome::Verified { ci: None, .. } => {
            Ok(VerificationResult::Failed(VerificationFailure::KeyMissing))
        }
        VerificationOutcome::Verified { ci: Some(ci), di } => {
            Ok(VerificationResult::Verified(PersonKeys { ci, di }))
        }
    }
}

impl AuthService {
    /// Starts a verification.
    pub async fn start_verification(
        &self,
        user_id: UserId,
    ) -> Result<Verification, StartVerificationError> {
        let provider = self.settings.identity.name();
        if matches!(self.settings.identity, IdentityProvider::Off) {
            return Err(StartVerificationError::Off);
        }
        let now = self.clock.now();
        let verification = Verification {
            id: VerificationId(self.ids.next_id()),
            user_id,
            status: VerificationStatus::Started,
            created_at: now,
            expires_at: now + VERIFICATION_LIFETIME,
        };
        let settings = self.settings.clone();
        self.db
            .write(move |tx| {
                let user = users::user_lock_existing(tx, user_id)?;
                if user.is_none() {
                    return Err(StartVerificationError::UserNotFound);
                }
                let known = store::identity_find(tx, user_id)?;
                if known.is_some_and(|known| settings.identity.trusts(&known.provider)) {
                    return Err(StartVerificationError::AlreadyVerified);
                }
                let since = now - VERIFICATION_LIFETIME;
                if store::verification_count(tx, user_id, since)? >= VERIFICATIONS_OPEN_MAX {
                    return Err(StartVerificationError::TooMany);
                }
                store::verification_insert(tx, &verification, provider)?;
                Ok(verification.clone())
            })
            .await
    }

    /// Asks the provider for the result of a verification, and stores it. A repetition gets the same
    /// answer.
    ///
    /// `sandbox` is the person for the sandbox; PortOne ignores it.
    pub async fn complete_verification(
        &self,
        user_id: UserId,
        id: VerificationId,
        sandbox: Option<SandboxPerson>,
    ) -> CompletionResult {
        if matches!(self.settings.identity, IdentityProvider::Off) {
            return Err(CompleteVerificationError::Off);
        }
        let now = self.clock.now();
        let look = move |tx: &mut Tx<'_>| verification_result(tx, user_id, id, now);
        let ended: Option<CompletionResult> = self.db.write(look).await?;
        if let Some(ended) = ended {
            return ended;
        }
        let report = match &self.settings.identity {
            IdentityProvider::Off => return Err(CompleteVerificationError::Off),
            IdentityProvider::Sandbox => ask_sandbox(id, sandbox.as_ref())?,
            IdentityProvider::PortOne(portone) => portone.ask(&self.outbound, id).await?,
        };
        let (auth, result) = (self.clone(), decide(id, report)?);
        let write = move |tx: &mut Tx<'_>| {
            users::user_lock_existing(tx, user_id)?.ok_or(CompleteVerificationError::NotFound)?;
            // Another request may have completed it meanwhile.
            match verification_result(tx, user_id, id, now)? {
                Some(ended) => Ok(ended),
                None => auth.verification_complete(tx, user_id, id, &result),
            }
        };
        let written: Result<CompletionResult, CompleteVerificationError> =
            self.db.write(write).await;
        written?
    }

    /// Whether a provider has verified the identity.
    pub(crate) fn is_identity_verified(
        &self,
        tx: &mut Tx<'_>,
        user_id: UserId,
    ) -> Result<bool, StorageError> {
        let found = store::identity_find(tx, user_id)?;
        Ok(found.is_some_and(|found| self.settings.identity.trusts(&found.provider)))
    }

    /// Erases the identity of an account that is being deleted, except for a hash that prevents a new
    /// account for a while. The caller holds the lock of the user.
    pub(crate) fn forget_identity(
        &self,
        tx: &mut Tx<'_>,
        user_id: UserId,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let (identity, kept) = (&self.settings.identity, self.settings.departure_kept);
        let known = store::identity_find(tx, user_id)?;
        let known = known.filter(|known| identity.trusts(&known.provider));
        if let Some(known) = known.filter(|_| !kept.is_zero()) {
            store::departure_upsert(tx, &known.sealed.ci_index, now + kept)?;
        }
        store::identity_erase(tx, user_id)
    }

    /// Ends a verification. A rejection is a value and not an error of the transaction, because the
    /// end must be committed.
    fn verification_complete(
        &self,
        tx: &mut Tx<'_>,
        user_id: UserId,
        id: VerificationId,
        result: &VerificationResult,
    ) -> Result<CompletionResult, CompleteVerificationError> {
        let now = self.clock.now();
        let written = match result {
            VerificationResult::Failed(VerificationFailure::SocialProvider) => {
                Err(CompleteVerificationError::Failed)
            }
            VerificationResult::Failed(VerificationFailure::KeyMissing) => {
                Err(CompleteVerificationError::KeyMissing)
            }
            VerificationResult::Verified(keys) => self.bind_identity(tx, user_id, keys, now)?,
        };
        let status = match written {
            Ok(_) => VerificationStatus::Verified,
            Err(_) => VerificationStatus::Failed,
        };
        store::verification_end(tx, id, status, now)?;
        Ok(written)
    }

    /// Binds the account to the person, unless one of them has another already. The caller holds the
    /// lock of the user.
    fn bind_identity(
        &self,
        tx: &mut Tx<'_>,
        user_id: UserId,
        keys: &PersonKeys,
        now: Timestamp,
    ) -> Result<CompletionResult, StorageError> {
        let ci_indexes = self.data_keys.person_indexes("ci", keys.ci.expose());
        let di = keys.di.as_ref();
        let di_indexes =
            di.map(|di| self.data_keys.person_indexes("di", di.expose())).unwrap_or_default();
        let (known, provider) = (store::identity_find(tx, user_id)?, &self.settings.identity);
        if known.as_ref().is_some_and(|known| !provider.trusts(&known.provider)) {
            store::identity_delete(tx, user_id)?;
        } else if let Some(own) = known {
            return Ok(match ci_indexes.contains(&own.sealed.ci_index) {
                true => Ok(own.verified_at),
                false => Err(CompleteVerificationError::OtherPerson),
            });
        }
        // The unique indexes cover the current data key only. During a key rotation the person may
        // still be indexed with another one.
        if store::identity_find_by_keys(tx, &ci_indexes, &di_indexes)?.is_some() {
            return Ok(Err(CompleteVerificationError::VerifiedElsewhere));
        }
        if let Some(until) = store::departure_find(tx, &ci_indexes, now)? {
            return Ok(Err(CompleteVerificationError::DeletedRecently { until }));
        }
        let sealed = seal(&self.data_keys, user_id, keys);
        let provider = provider.name().to_owned();
        let identity = StoredPersonIdentity { user_id, sealed, provider, verified_at: now };
        Ok(match store::identity_insert(tx, &identity)? {
            true => Ok(now),
            false => Err(CompleteVerificationError::VerifiedElsewhere),
        })
    }

    /// Encrypts up to `batch` identities with the current data key. Returns how many were encrypted
    /// and how many are left.
    pub(crate) async fn rotate_identities(&self, batch: u32) -> Result<(u64, u64), InternalError> {
        let current = self.data_keys.current_version();
        let list = move |tx: &mut Tx<'_>| store::identity_list_with_other_key(tx, current, batch);
        let stored: Vec<StoredPersonIdentity> = self.db.read(list).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for old in stored {
            let keys = open(&self.data_keys, &old)?;
            let new = seal(&self.data_keys, old.user_id, &keys);
            resealed.push((old, new));
        }
        let rotated = self.db.write(move |tx| {
            let mut rotated = 0;
            for (old, new) in &resealed {
                rotated += u64::from(store::identity_reseal(tx, old, new)?);
            }
            Ok::<_, StorageError>((rotated, store::identity_count_with_other_key(tx, current)?))
        });
        Ok(rotated.await?)
    }
}

/// The result of a verification that has ended, or `None`. An expired one is ended here.
fn verification_result(
    tx: &mut Tx<'_>,
    user_id: UserId,
    id: VerificationId,
    now: Timestamp,
) -> Result<Option<CompletionResult>, CompleteVerificationError> {
    let found = store::verification_find(tx, id)?.filter(|found| found.user_id == user_id);
    let found = found.ok_or(CompleteVerificationError::NotFound)?;
    Ok(match found.status {
        VerificationStatus::Started if now < found.expires_at => None,
        VerificationStatus::Started => {
            store::verification_end(tx, id, VerificationStatus::Expired, now)?;
            Some(Err(CompleteVerificationError::Expired))
        }
        VerificationStatus::Verified => {
            let own = store::identity_find(tx, user_id)?;
            Some(own.map(|own| own.verified_at).ok_or(CompleteVerificationError::NotFound))
        }
        VerificationStatus::Failed => Some(Err(CompleteVerificationError::Failed)),
        VerificationStatus::Expired => Some(Err(CompleteVerificationError::Expired)),
    })
}

fn seal(data_keys: &DataKeys, user_id: UserId, keys: &PersonKeys) -> SealedPersonKeys {
    let index = |kind, key: &PersonKey| {
        let indexes = data_keys.person_indexes(kind, key.expose());
        indexes.into_iter().next().expect("there is always a current key")
    };
    let cipher = |kind, key: &PersonKey| data_keys.seal_text(kind, user_id, key.expose());
    SealedPersonKeys {
        key_version: data_keys.current_version(),
        ci_cipher: cipher("ci", &keys.ci),
        ci_index: index("ci", &keys.ci),
        di: keys.di.as_ref().map(|di| (cipher("di", di), index("di", di))),
    }
}

fn open(data_keys: &DataKeys, identity: &StoredPersonIdentity) -> Result<PersonKeys, UnsealError> {
    let SealedPersonKeys { key_version, ci_cipher, di, .. } = &identity.sealed;
    let open = |kind, cipher: &[u8]| {
        let text = data_keys.open_text(*key_version, kind, identity.user_id, cipher)?;
        Ok::<_, UnsealError>(PersonKey::stored(text))
    };
    let di = di.as_ref().map(|(cipher, _)| open("di", cipher)).transpose()?;
    Ok(PersonKeys { ci: open("ci", ci_cipher)?, di })
}

/// Deletes old verifications, and expired hashes of deleted accounts. Returns how many of each.
pub(crate) fn purge(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
) -> Result<(u64, u64), StorageError> {
    let verifications = store::verification_purge(tx, now - VERIFICATIONS_KEPT, limit)?;
    Ok((verifications, store::departure_purge(tx, now, limit)?))
}
