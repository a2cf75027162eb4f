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
pub mod store;

use std::sync::atomic::Ordering;
use std::time::Duration;

use urr_kernel::{Timestamp, define_id};
use urr_service::data_keys::UnsealError;
use urr_storage::{DbResult, Tx, storable_enum, storable_id};

use crate::accounts::account::UserId;
use crate::accounts::store as users;
use crate::internal_error::from_internal_errors;
use crate::personal_data::AccountKeys;
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
    #[error("Identity verification is not enabled here.")]
    Off,
    #[error("There is no such user.")]
    UserNotFound,
    #[error("Your identity is verified already.")]
    AlreadyVerified,
    #[error("You have tried too often. Please wait 15 minutes.")]
    TooMany,
    #[error(transparent)]
    Internal(#[from] InternalError),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteVerificationError {
    #[error("Identity verification is not enabled here.")]
    Off,
    /// Or it belongs to another user.
    #[error("There is no such verification. Please begin again.")]
    NotFound,
    #[error("Please finish in the window of the identity provider first.")]
    Pending,
    #[error("The identity provider could not verify you. Please begin again.")]
    Failed,
    /// The provider did not return the `ci` of the person.
    #[error("This method of verification is not sufficient. Please choose another.")]
    KeyMissing,
    #[error("This took too long. Please begin again.")]
    Expired,
    #[error("You have another account already. A person can have only one.")]
    VerifiedElsewhere,
    #[error("You deleted an account recently. Please try again later.")]
    DeletedRecently { until: Timestamp },
    #[error("This account belongs to another person already.")]
    OtherPerson,
    #[error("The identity provider does not answer. Please try again in a moment.")]
    Provider(#[from] IdentityProviderError),
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

/// When the identity was verified, or why not.
type CompletionResult = Result<Timestamp, CompleteVerificationError>;

/// The person of a report, or why there is none. An outer error leaves the verification open.
fn decide(
    id: VerificationId,
    report: VerificationReport,
) -> Result<Result<PersonKeys, CompleteVerificationError>, CompleteVerificationError> {
    if report.verification_id != id.to_string() {
        return Err(IdentityProviderError::OtherVerification.into());
    }
    match report.outcome {
        VerificationOutcome::Pending => Err(CompleteVerificationError::Pending),
        VerificationOutcome::Failed | VerificationOutcome::OtherChannel => {
            Ok(Err(CompleteVerificationError::Failed))
        }
        VerificationOutcome::Verified { ci: None, .. } => {
            Ok(Err(CompleteVerificationError::KeyMissing))
        }
        VerificationOutcome::Verified { ci: Some(ci), di } => Ok(Ok(PersonKeys { ci, di })),
    }
}

impl AuthService {
    /// Starts a verification.
    pub async fn start_verification(
        &self,
        user_id: UserId,
    ) -> Result<Verification, StartVerificationError> {
        let provider = self.0.settings.identity.name();
        if matches!(self.0.settings.identity, IdentityProvider::Off) {
            return Err(StartVerificationError::Off);
        }
        let now = self.0.clock.now();
        let verification = Verification {
            id: VerificationId(self.0.ids.next_id()),
            user_id,
            status: VerificationStatus::Started,
            created_at: now,
            expires_at: now + VERIFICATION_LIFETIME,
        };
        let auth = self.clone();
        let written = self.0.db.write(move |tx| {
            users::user_lock_existing(tx, user_id)?.ok_or(StartVerificationError::UserNotFound)?;
            if auth.is_identity_verified(tx, user_id)? {
                return Err(StartVerificationError::AlreadyVerified);
            }
            let since = now - VERIFICATION_LIFETIME;
            if store::verification_count(tx, user_id, since)? >= VERIFICATIONS_OPEN_MAX {
                return Err(StartVerificationError::TooMany);
            }
            store::verification_insert(tx, &verification, provider)?;
            Ok(verification.clone())
        });
        written.await
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
        if matches!(self.0.settings.identity, IdentityProvider::Off) {
            return Err(CompleteVerificationError::Off);
        }
        let now = self.0.clock.now();
        let look = move |tx: &mut Tx<'_>| verification_result(tx, user_id, id, now);
        let ended: Option<CompletionResult> = self.0.db.write(look).await?;
        if let Some(ended) = ended {
            return ended;
        }
        let report = match &self.0.settings.identity {
            IdentityProvider::Off => return Err(CompleteVerificationError::Off),
            IdentityProvider::Sandbox => ask_sandbox(id, sandbox.as_ref())?,
            IdentityProvider::PortOne(portone) => portone.ask(&self.0.outbound, id).await?,
        };
        if report.outcome == VerificationOutcome::OtherChannel {
            self.0.identity_mismatches.fetch_add(1, Ordering::Relaxed);
            tracing::error!(verification = %id, "a verification went through another channel");
        }
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
            self.0.db.write(write).await;
        written?
    }

    /// Names of the verified person behind an account that tell nothing else: one per data key, the
    /// current one first. Empty if the identity was not verified.
    pub async fn person_hashes(&self, user_id: UserId) -> Result<Vec<String>, InternalError> {
        let found = self.read(move |tx| store::identity_find(tx, user_id)).await?;
        let Some(identity) = found.filter(|it| self.0.settings.identity.trusts(&it.provider))
        else {
            return Ok(Vec::new());
        };
        let keys = open(&self.0.data_keys, &identity)?;
        // Not the index of our own table: whoever has one of them cannot look up the other.
        let hashes = self.0.data_keys.person_indexes("ci-of-a-buyer", keys.ci.expose());
        Ok(hashes.iter().map(urr_kernel::hex::encode).collect())
    }

    /// Whether a provider has verified the identity.
    pub(crate) fn is_identity_verified(&self, tx: &mut Tx<'_>, user_id: UserId) -> DbResult<bool> {
        let found = store::identity_find(tx, user_id)?;
        Ok(found.is_some_and(|found| self.0.settings.identity.trusts(&found.provider)))
    }

    /// Erases the identity of an account that is being deleted, except for a hash that prevents a new
    /// account for a while. The caller holds the lock of the user.
    pub(crate) fn forget_identity(
        &self,
        tx: &mut Tx<'_>,
        user_id: UserId,
        now: Timestamp,
    ) -> DbResult<()> {
        let (identity, kept) = (&self.0.settings.identity, self.0.settings.departure_kept);
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
        result: &Result<PersonKeys, CompleteVerificationError>,
    ) -> Result<CompletionResult, CompleteVerificationError> {
        let now = self.0.clock.now();
        let written = match result {
            Ok(keys) => self.bind_identity(tx, user_id, keys, now)?,
            Err(failure) => Err(failure.clone()),
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
    ) -> DbResult<CompletionResult> {
        let ci_indexes = self.0.data_keys.person_indexes("ci", keys.ci.expose());
        let di = keys.di.as_ref();
        let di_indexes =
            di.map(|di| self.0.data_keys.person_indexes("di", di.expose())).unwrap_or_default();
        let (known, provider) = (store::identity_find(tx, user_id)?, &self.0.settings.identity);
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
        let sealed = seal(&self.0.data_keys, user_id, keys);
        let provider = provider.name().to_owned();
        let identity = StoredPersonIdentity { user_id, sealed, provider, verified_at: now };
        Ok(match store::identity_insert(tx, &identity)? {
            true => Ok(now),
            false => Err(CompleteVerificationError::VerifiedElsewhere),
        })
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

fn seal(data_keys: &AccountKeys, user_id: UserId, keys: &PersonKeys) -> SealedPersonKeys {
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

/// The identifiers of a person, encrypted with the current key.
pub(crate) fn reseal(
    data_keys: &AccountKeys,
    identity: &StoredPersonIdentity,
) -> Result<SealedPersonKeys, UnsealError> {
    Ok(seal(data_keys, identity.user_id, &open(data_keys, identity)?))
}

fn open(
    data_keys: &AccountKeys,
    identity: &StoredPersonIdentity,
) -> Result<PersonKeys, UnsealError> {
    let SealedPersonKeys { key_version, ci_cipher, di, .. } = &identity.sealed;
    let open = |kind, cipher: &[u8]| {
        let text = data_keys.open_text(*key_version, kind, identity.user_id, cipher)?;
        Ok::<_, UnsealError>(PersonKey::stored(text))
    };
    let di = di.as_ref().map(|(cipher, _)| open("di", cipher)).transpose()?;
    Ok(PersonKeys { ci: open("ci", ci_cipher)?, di })
}
