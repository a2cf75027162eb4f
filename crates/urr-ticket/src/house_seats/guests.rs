//! Guests of complimentary tickets who have no account.
//!
//! What the organiser wrote about them is encrypted, found by a keyed hash of the whole name or
//! address, and erased some time after the event or after the tickets were revoked.

use std::collections::HashMap;

use urr_kernel::{Uuid, mask_email};
use urr_service::data_keys::{KeyRotation, KeyRotationProgress, SealingKeys, UnsealError};
use urr_service::{ApiError, DataKeys, EventScope};
use urr_storage::{DbResult, StorageError};

use super::store::guests as store;
use crate::reservations::buyers::{Buyer, Buyers};
use crate::{ReservationId, TicketService};

/// A guest without an account.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HouseGuest {
    pub name: Option<String>,
    pub email: Option<String>,
}

/// Names and addresses do not belong into logs.
impl std::fmt::Debug for HouseGuest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[guest]")
    }
}

/// A guest as the table has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedGuest {
    pub key_version: u16,
    pub name_cipher: Option<Vec<u8>>,
    pub name_index: Option<Vec<u8>>,
    pub email_cipher: Option<Vec<u8>>,
    pub email_index: Option<Vec<u8>>,
}

/// Goes into every key: changing it would make all guests unreadable.
const SERVICE: &str = "urr-ticket";

/// The keys of guests. Clones share them.
#[derive(Clone)]
pub(crate) struct GuestKeys(SealingKeys);

/// A text by which a guest is found, hashed with one key.
pub(crate) struct GuestIndexes {
    pub name: Vec<u8>,
    pub email: Vec<u8>,
}

impl GuestKeys {
    pub fn new(keys: &DataKeys) -> GuestKeys {
        GuestKeys(keys.of_service(SERVICE))
    }

    /// Of processes of version 0.1.0 that had no data key.
    fn of_empty_key(version: u16) -> GuestKeys {
        GuestKeys(SealingKeys::of_empty_key(SERVICE, version))
    }

    /// Encrypts with the current key, each time anew: see [`SealingKeys::seal`].
    pub fn seal(&self, id: ReservationId, guest: &HouseGuest) -> SealedGuest {
        let (name, email) = (guest.name.as_deref(), guest.email.as_deref());
        SealedGuest {
            key_version: self.0.current_version(),
            name_cipher: name.map(|name| self.0.seal(&place("name", id), name)),
            name_index: name.map(|name| self.0.index("guest-name", &name_key(name))),
            email_cipher: email.map(|email| self.0.seal(&place("email", id), email)),
            email_index: email.map(|email| self.0.index("guest-email", &email.to_lowercase())),
        }
    }

    pub fn open(&self, id: ReservationId, guest: &SealedGuest) -> Result<HouseGuest, UnsealError> {
        let open = |column: &'static str, cipher: &Option<Vec<u8>>| {
            let text = cipher
                .as_deref()
                .map(|cipher| self.0.open(guest.key_version, &place(column, id), column, cipher));
            text.transpose()
        };
        Ok(HouseGuest {
            name: open("name", &guest.name_cipher)?,
            email: open("email", &guest.email_cipher)?,
        })
    }

    /// One row that cannot be read does not break a list.
    pub fn open_or_unknown(&self, id: ReservationId, guest: &SealedGuest) -> HouseGuest {
        self.open(id, guest).unwrap_or_else(|error| {
            tracing::error!(reservation = %id, %error, "a guest cannot be read");
            HouseGuest::default()
        })
    }

    /// The hashes of a name or an address with all keys.
    fn indexes(&self, text: &str) -> Vec<GuestIndexes> {
        let names = self.0.indexes("guest-name", &name_key(text)).into_iter();
        let emails = self.0.indexes("guest-email", &text.to_lowercase());
        names.zip(emails).map(|(name, email)| GuestIndexes { name, email }).collect()
    }
}

fn place(column: &str, id: ReservationId) -> String {
    format!("house_guests/{column}/{id}")
}

/// In lower case and without spaces, as accounts are found.
fn name_key(name: &str) -> String {
    name.to_lowercase().split_whitespace().collect()
}

/// Why keys were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestKeyError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    PersonalData(#[from] UnsealError),
}

impl TicketService {
    /// Where the tickets of a guest without an account are sent.
    pub(crate) async fn find_guest_email(
        &self,
        id: ReservationId,
    ) -> Result<Option<String>, ApiError> {
        let found = self.db.read(move |tx| store::guest_find(tx, id)).await?;
        let guest = found.map(|guest| self.guest_keys.open(id, &guest)).transpose();
        Ok(guest.map_err(ApiError::internal)?.and_then(|guest: HouseGuest| guest.email))
    }

    /// The owners, who have no account, of reservations whose guest has this name or address.
    pub(crate) async fn find_guest_ids(&self, text: &str, limit: usize) -> DbResult<Vec<Uuid>> {
        let indexes = self.guest_keys.indexes(text);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.db.read(move |tx| store::guest_owners(tx, &indexes, limit)).await
    }

    /// The guests among the owners of reservations, as buyers.
    pub(crate) async fn find_guests(
        &self,
        user_ids: Vec<Uuid>,
        scope: EventScope,
    ) -> DbResult<Buyers> {
        let found = self.db.read(move |tx| store::guest_list(tx, &user_ids)).await?;
        let buyer = |(user_id, id, sealed): (Uuid, ReservationId, SealedGuest)| {
            let HouseGuest { name, email } = self.guest_keys.open_or_unknown(id, &sealed);
            let email = email.unwrap_or_default();
            let email = match scope {
                EventScope::All => email,
                EventScope::OwnedBy(_) | EventScope::AssignedTo(_) => mask_email(&email),
            };
            (user_id, Buyer { name: name.unwrap_or_default(), email })
        };
        Ok(found.into_iter().map(buyer).collect::<HashMap<_, _>>())
    }

    /// Erases up to `limit` guests whose event, or whose tickets, ended long ago. Returns how many.
    pub async fn erase_guests(&self, limit: u32) -> DbResult<u64> {
        let before = self.clock.now() - self.settings.guests_kept;
        self.db.write(move |tx| store::guests_delete(tx, before, limit)).await
    }

    /// Encrypts up to `batch` guests with the current data key. The service keeps running.
    pub async fn rotate_guest_keys(
        &self,
        batch: u32,
    ) -> Result<KeyRotationProgress, GuestKeyError> {
        let keys = &self.guest_keys;
        let rotation = KeyRotation {
            rows: "house_guests where true",
            list: store::guest_list_with_other_key,
            reseal: |(id, old): &(ReservationId, SealedGuest)| {
                Ok(keys.seal(*id, &keys.open(*id, old)?))
            },
            write: store::guest_reseal,
        };
        rotation.run(&self.db, keys.0.current_version(), batch).await
    }

    /// Encrypts guests anew that a process of version 0.1.0 without a data key left for everybody to
    /// open, `batch` per transaction. Returns how many there were.
    pub async fn reseal_guests_of_empty_key(&self, batch: u32) -> DbResult<u64> {
        let (mut after, mut total) = (ReservationId(Uuid::nil()), 0);
        loop {
            let page = self.db.read(move |tx| store::guest_list_after(tx, after, batch)).await?;
            let Some((last, _)) = page.last() else { return Ok(total) };
            after = *last;
            let keys = &self.guest_keys;
            let broken = page.into_iter().filter(|(id, guest)| keys.open(*id, guest).is_err());
            let resealed: Vec<_> = broken
                .filter_map(|(id, old)| {
                    let guest = GuestKeys::of_empty_key(old.key_version).open(id, &old).ok()?;
                    let new = keys.seal(id, &guest);
                    Some(((id, old), new))
                })
                .collect();
            total += u64::try_from(resealed.len()).unwrap_or(u64::MAX);
            let write = self.db.write(move |tx| {
                resealed
                    .iter()
                    .try_for_each(|(old, new)| store::guest_reseal(tx, old, new).map(drop))
            });
            write.await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Secret;

    use super::*;

    #[test]
    fn a_guest_is_found_by_the_whole_name_or_address_and_opens_in_its_own_row() {
        let keys = GuestKeys::new(&DataKeys::single(Secret::new("root")));
        let [id, other] = [1, 2].map(|number| ReservationId(Uuid::from_u128(number)));
        let guest = HouseGuest {
            name: Some("Kim Haru".to_owned()),
            email: Some("Haru@Example.com".to_owned()),
        };
        let sealed = keys.seal(id, &guest);
        assert_eq!(keys.open(id, &sealed), Ok(guest));
        assert_eq!(keys.open(other, &sealed), Err(UnsealError::Broken("name")));
        assert_eq!(keys.open_or_unknown(other, &sealed), HouseGuest::default());
        let is_found = |text: &str| {
            let GuestIndexes { name, email } = keys.indexes(text).remove(0);
            sealed.name_index == Some(name) || sealed.email_index == Some(email)
        };
        assert!(is_found("kim  haru") && is_found("HARU@example.com"));
        assert!(!is_found("haru") && !is_found("example.com"));
    }
}
