//! Whether the configured data keys are those of the stored accounts.
//!
//! With another key nobody can log in, addresses can be registered twice, and mail goes nowhere. A
//! start refuses that instead of letting new accounts mix with old ones.

use urr_service::Page;
use urr_storage::StorageError;

use crate::AuthService;
use crate::accounts::store as users;

/// How many accounts are looked at. One unreadable row is damage; if all are, the key is wrong.
const SAMPLE: i64 = 20;

#[derive(Debug, thiserror::Error)]
pub enum DataKeyError {
    #[error(
        "the accounts were encrypted with another auth.data_key; restore the former one: \
         secrets.toml in the data folder, or URR_AUTH_DATA_KEY"
    )]
    OtherKey,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl AuthService {
    /// Fails if there are accounts and none of the newest can be read.
    pub async fn check_data_keys(&self) -> Result<(), DataKeyError> {
        let page = Page::new(1, SAMPLE);
        let newest = self.read(move |tx| users::user_list(tx, page)).await?;
        let is_readable = newest.iter().any(|user| self.unseal(user).is_ok());
        if newest.is_empty() || is_readable { Ok(()) } else { Err(DataKeyError::OtherKey) }
    }
}
