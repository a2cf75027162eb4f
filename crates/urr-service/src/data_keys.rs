//! Encryption of personal data with AES-256-GCM under a versioned key, and their lookup by a keyed
//! hash.
//!
//! An installation has one data key. Each service derives its own keys from it, so that what one
//! service has encrypted cannot be read with the keys of another. Each encrypted text is bound to a
//! place (table, column and row), so that it cannot be decrypted in another row. The hash shows only
//! that two texts are equal, and needs the key.
//!
//! A key is rotated in three steps: every process gets the new key beside the old one, then it
//! becomes the current one, then a [`KeyRotation`] re-encrypts the stored rows. A row has the version
//! of its key; texts are looked up with every version.

use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use urr_kernel::{Secret, hex};
use urr_storage::{Db, DbResult, StorageError, Tx, params};

const NONCE_BYTES: usize = 12;

/// A key for personal data, with the version that is stored in rows.
#[derive(Clone, Debug)]
pub struct DataKey {
    pub version: u16,
    pub secret: Secret,
}

/// All keys that stored data may need. New data use the current one. Clones share them.
#[derive(Clone)]
pub struct DataKeys(Arc<Vec<DataKey>>);

/// Why there are no data keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDataKeys {
    #[error("two data keys have the version {0}")]
    DuplicateVersion(u16),
    #[error("the data key of version {0} is empty: everybody could open what it seals")]
    Empty(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    #[error("personal data were sealed with the data key of version {0}, which is not configured")]
    UnknownVersion(u16),
    #[error("the {0} of a person does not open: another key, or the row was changed by hand")]
    Broken(&'static str),
}

impl DataKeys {
    /// The keys of an installation that has never rotated its key.
    pub fn single(secret: Secret) -> DataKeys {
        DataKeys::new(DataKey { version: 1, secret }, &[]).expect("a data key is not empty")
    }

    /// New data use `current`; data under `others` can still be read.
    pub fn new(current: DataKey, others: &[DataKey]) -> Result<DataKeys, InvalidDataKeys> {
        let mut keys: Vec<DataKey> = Vec::new();
        for key in std::iter::once(&current).chain(others) {
            if key.secret.expose().is_empty() {
                return Err(InvalidDataKeys::Empty(key.version));
            }
            if keys.iter().any(|known| known.version == key.version) {
                return Err(InvalidDataKeys::DuplicateVersion(key.version));
            }
            keys.push(key.clone());
        }
        Ok(DataKeys(Arc::new(keys)))
    }

    /// The keys of one service.
    pub fn of_service(&self, service: &str) -> SealingKeys {
        SealingKeys(Arc::new(self.0.iter().map(|key| DerivedKeys::new(service, key)).collect()))
    }
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.version)).finish()
    }
}

/// The keys with which a service encrypts personal data and finds them. Clones share them.
#[derive(Clone)]
pub struct SealingKeys(Arc<Vec<DerivedKeys>>);

/// The keys that are derived from a data key, one per purpose.
struct DerivedKeys {
    version: u16,
    cipher: Aes256Gcm,
    index: Secret,
    token: Secret,
}

impl SealingKeys {
    /// What version 0.1.0 sealed with in a process without a data key. Everybody can derive it: open
    /// with it only to seal anew.
    pub fn of_empty_key(service: &str, version: u16) -> SealingKeys {
        let empty = DataKey { version, secret: Secret::new("") };
        SealingKeys(Arc::new(vec![DerivedKeys::new(service, &empty)]))
    }

    pub fn current_version(&self) -> u16 {
        self.current().version
    }

    /// Encrypts with the current key. Each call uses a new nonce, because a nonce for two texts would
    /// reveal both; so a transaction that is repeated must encrypt again.
    pub fn seal(&self, place: &str, text: &str) -> Vec<u8> {
        self.current().seal(place, text)
    }

    /// `what` names the text in an error.
    pub fn open(
        &self,
        key_version: u16,
        place: &str,
        what: &'static str,
        cipher: &[u8],
    ) -> Result<String, UnsealError> {
        let key = self.find(key_version).ok_or(UnsealError::UnknownVersion(key_version))?;
        key.open(place, cipher).ok_or(UnsealError::Broken(what))
    }

    /// The keyed hash of a text with the current key, by which its row is found.
    pub fn index(&self, kind: &str, text: &str) -> Vec<u8> {
        self.current().index(kind, text)
    }

    /// The hashes of a text with all keys, the current one first.
    pub fn indexes(&self, kind: &str, text: &str) -> Vec<Vec<u8>> {
        self.0.iter().map(|key| key.index(kind, text)).collect()
    }

    /// A secret that follows from a name. `None` if the key is not configured.
    pub fn token(&self, key_version: u16, name: &str) -> Option<Secret> {
        Some(self.find(key_version)?.token.derive(name))
    }

    fn current(&self) -> &DerivedKeys {
        self.0.first().expect("there is always a current key")
    }

    fn find(&self, version: u16) -> Option<&DerivedKeys> {
        self.0.iter().find(|key| key.version == version)
    }
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.version)).finish()
    }
}

impl DerivedKeys {
    fn new(service: &str, key: &DataKey) -> DerivedKeys {
        let purpose = |name| key.secret.derive(&format!("{service}:{name}:{}", key.version));
        let cipher_key = from_hex(&purpose("personal-data"));
        DerivedKeys {
            version: key.version,
            cipher: Aes256Gcm::new_from_slice(&cipher_key).expect("a derived key has 32 bytes"),
            index: purpose("person-index"),
            token: purpose("token"),
        }
    }

    fn index(&self, kind: &str, text: &str) -> Vec<u8> {
        from_hex(&self.index.derive(&format!("{kind}:{text}")))
    }

    /// The nonce, followed by the encrypted text with its tag.
    fn seal(&self, place: &str, text: &str) -> Vec<u8> {
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).expect("the operating system has randomness");
        let payload = Payload { msg: text.as_bytes(), aad: place.as_bytes() };
        let cipher = self.cipher.encrypt(&Nonce::from(nonce), payload);
        [&nonce[..], &cipher.expect("a short text can be sealed")].concat()
    }

    fn open(&self, place: &str, sealed: &[u8]) -> Option<String> {
        let (nonce, cipher) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: cipher, aad: place.as_bytes() };
        let text = self.cipher.decrypt(&Nonce::from(*nonce), payload).ok()?;
        String::from_utf8(text).ok()
    }
}

/// The bytes of a derived secret, which is hexadecimal text.
fn from_hex(secret: &Secret) -> Vec<u8> {
    hex::decode(secret.expose()).expect("derived secrets are hexadecimal")
}

/// How many rows were encrypted with the current data key, and how many are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRotationProgress {
    pub rotated: u64,
    pub remaining: u64,
}

/// How the rows `R` of a table become rows `S` that are encrypted with the current key.
pub struct KeyRotation<R, S, F> {
    /// The table, and which of its rows have personal data.
    pub rows: &'static str,
    /// Lists rows with another key than this one.
    pub list: fn(&mut Tx<'_>, u16, u32) -> DbResult<Vec<R>>,
    pub reseal: F,
    /// `false` if the row was changed meanwhile.
    pub write: fn(&mut Tx<'_>, &R, &S) -> DbResult<bool>,
}

impl<R, S, F> KeyRotation<R, S, F>
where
    R: Send + Sync + 'static,
    S: Send + Sync + 'static,
    F: Fn(&R) -> Result<S, UnsealError>,
{
    /// Encrypts up to `batch` rows with the current key. Rows that change at the same time are left
    /// to the next call.
    pub async fn run<E>(
        self,
        db: &Db,
        key_version: u16,
        batch: u32,
    ) -> Result<KeyRotationProgress, E>
    where
        E: From<StorageError> + From<UnsealError>,
    {
        let KeyRotation { rows, list, reseal, write } = self;
        let stored = db.read(move |tx| list(tx, key_version, batch)).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for old in stored {
            let new = reseal(&old)?;
            resealed.push((old, new));
        }
        let rotation = db.write(move |tx| {
            let mut rotated = 0;
            for (old, new) in &resealed {
                rotated += u64::from(write(tx, old, new)?);
            }
            let sql = format!("select count(*) as total from {rows} and key_version <> $1");
            let remaining = tx.query_one(&sql, params![key_version], |row| row.get("total"))?;
            Ok::<_, StorageError>(KeyRotationProgress { rotated, remaining })
        });
        Ok(rotation.await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(version: u16) -> DataKey {
        DataKey { version, secret: Secret::new(format!("the secret of version {version}")) }
    }

    fn keys(current: u16, others: &[u16]) -> SealingKeys {
        let others: Vec<DataKey> = others.iter().map(|version| key(*version)).collect();
        DataKeys::new(key(current), &others).unwrap().of_service("test")
    }

    #[test]
    fn a_text_survives_sealing_and_does_not_show_through() {
        let keys = keys(1, &[]);
        let sealed = keys.seal("people/name/1", "mina");
        assert_eq!(keys.open(1, "people/name/1", "name", &sealed).as_deref(), Ok("mina"));
        assert!(!sealed.windows(4).any(|window| window == b"mina"));
        assert_ne!(keys.seal("people/name/1", "mina"), sealed, "every sealing has its own nonce");
        assert_eq!(keys.index("name", "mina"), keys.index("name", "mina"));
        assert_ne!(keys.index("name", "mina"), keys.index("email", "mina"));
    }

    #[test]
    fn a_sealed_text_opens_only_where_it_belongs() {
        let keys = keys(1, &[]);
        let sealed = keys.seal("people/name/1", "mina");
        let broken = Err(UnsealError::Broken("name"));
        assert_eq!(keys.open(1, "people/name/2", "name", &sealed), broken);
        assert_eq!(keys.open(1, "people/name/1", "name", &sealed[..5]), broken);
        let mut touched = sealed.clone();
        *touched.last_mut().unwrap() ^= 1;
        assert_eq!(keys.open(1, "people/name/1", "name", &touched), broken);
        let other = DataKeys::new(key(1), &[]).unwrap().of_service("other");
        assert_eq!(other.open(1, "people/name/1", "name", &sealed), broken, "of another service");
        assert_ne!(other.index("name", "mina"), keys.index("name", "mina"));
    }

    #[test]
    fn older_versions_open_and_are_found_as_long_as_their_key_is_known() {
        let (old, both, new) = (keys(1, &[]), keys(2, &[1]), keys(2, &[]));
        let sealed = old.seal("p", "mina");
        assert_eq!(both.open(1, "p", "name", &sealed).as_deref(), Ok("mina"));
        assert_eq!(both.current_version(), 2);
        assert_eq!(new.open(1, "p", "name", &sealed), Err(UnsealError::UnknownVersion(1)));
        assert_eq!(both.indexes("name", "mina")[1], old.index("name", "mina"));
        assert_eq!(both.indexes("name", "mina")[0], new.index("name", "mina"));
        assert_ne!(new.index("name", "mina"), old.index("name", "mina"));
        let twice = DataKeys::new(key(1), &[key(1)]);
        assert_eq!(twice.unwrap_err(), InvalidDataKeys::DuplicateVersion(1));
    }

    /// The key of an empty secret can be derived by everybody.
    #[test]
    fn an_empty_key_is_refused() {
        let empty = |version| DataKey { version, secret: Secret::new("") };
        let refused = |current, other: &[DataKey]| DataKeys::new(current, other).unwrap_err();
        assert_eq!(refused(empty(1), &[]), InvalidDataKeys::Empty(1));
        assert_eq!(refused(key(1), &[empty(2)]), InvalidDataKeys::Empty(2));
    }

    #[test]
    fn a_token_needs_the_key_of_its_version() {
        let (both, new) = (keys(2, &[1]), keys(2, &[]));
        let token = both.token(1, "link").unwrap();
        assert!(token.matches(keys(1, &[]).token(1, "link").unwrap().expose()));
        assert!(!token.matches(both.token(2, "link").unwrap().expose()));
        assert!(new.token(1, "link").is_none());
    }

    #[test]
    fn the_keys_are_not_printed() {
        let keys = DataKeys::new(key(2), &[key(1)]).unwrap();
        assert_eq!(format!("{keys:?}"), "[2, 1]");
        assert_eq!(format!("{:?}", keys.of_service("test")), "[2, 1]");
    }
}
