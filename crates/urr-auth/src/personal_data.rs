//! Encryption of personal data with AES-256-GCM under a versioned key, and their lookup by a keyed
//! hash.
//!
//! Each encrypted text is bound to its table, column and user, so that it cannot be decrypted in
//! another row. The hash shows only that two addresses are equal, and needs the key.
//!
//! A key is rotated in three steps: every process gets the new key beside the old one, then it
//! becomes the current one, then `AuthService::rotate_personal_data` re-encrypts the stored rows. A
//! row has the version of its key; addresses are looked up with every version.

use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use urr_kernel::{Secret, Uuid, hex};

use crate::accounts::account::{PersonalDetails, UserId};
use crate::accounts::email::Email;
use crate::accounts::profile::{PersonName, PhoneNumber};

const NONCE_BYTES: usize = 12;

/// A key for personal data, with the version that is stored in rows.
#[derive(Clone, Debug)]
pub struct DataKey {
    pub version: u16,
    pub secret: Secret,
}

/// All keys that stored data may need. New data use the current one. Clones share them.
#[derive(Clone)]
pub struct DataKeys(Arc<Vec<DerivedKeys>>);

/// The keys that are derived from a data key, one per purpose.
struct DerivedKeys {
    version: u16,
    cipher: Aes256Gcm,
    index: Secret,
    person_index: Secret,
    link: Secret,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two data keys have the version {0}")]
pub struct DuplicateKeyVersion(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    #[error("personal data were sealed with the data key of version {0}, which is not configured")]
    UnknownVersion(u16),
    #[error("the {0} of an account does not open: another key, or the row was changed by hand")]
    Broken(&'static str),
}

/// Encrypted personal data, as the table has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedDetails {
    pub key_version: u16,
    pub email_cipher: Vec<u8>,
    pub email_index: Vec<u8>,
    pub name_cipher: Vec<u8>,
    pub phone_cipher: Option<Vec<u8>>,
    pub name_index: Option<Vec<u8>>,
    pub phone_index: Option<Vec<u8>>,
}

impl DataKeys {
    /// The keys of an installation that has never rotated its key.
    pub fn single(secret: Secret) -> DataKeys {
        DataKeys(Arc::new(vec![DerivedKeys::derive(&DataKey { version: 1, secret })]))
    }

    /// New data use `current`; data under `others` can still be read.
    pub fn new(current: DataKey, others: &[DataKey]) -> Result<DataKeys, DuplicateKeyVersion> {
        let mut keys = vec![DerivedKeys::derive(&current)];
        for other in others {
            if keys.iter().any(|key| key.version == other.version) {
                return Err(DuplicateKeyVersion(other.version));
            }
            keys.push(DerivedKeys::derive(other));
        }
        Ok(DataKeys(Arc::new(keys)))
    }

    pub fn current_version(&self) -> u16 {
        self.current().version
    }

    /// The indexes of an address with all keys, the current one first.
    pub(crate) fn email_indexes(&self, email: &Email) -> Vec<Vec<u8>> {
        self.0.iter().map(|key| key.email_index(email)).collect()
    }

    /// Encrypts with the current key. Each call uses new nonces, because a nonce for two texts would
    /// reveal both; so a transaction that is repeated must encrypt again.
    pub(crate) fn seal(&self, user_id: UserId, person: &PersonalDetails) -> SealedDetails {
        let key = self.current();
        let seal = |column, text: &str| key.seal(&associated(column, user_id), text);
        SealedDetails {
            key_version: key.version,
            email_cipher: seal("email", person.email.as_str()),
            email_index: key.email_index(&person.email),
            name_cipher: seal("name", person.name.as_str()),
            phone_cipher: person.phone.as_ref().map(|phone| seal("phone", phone.as_str())),
            name_index: Some(key.person_index("name", &person.name.lookup_key())),
            phone_index: person
                .phone
                .as_ref()
                .map(|phone| key.person_index("phone", &phone.lookup_key())),
        }
    }

    pub(crate) fn open(
        &self,
        user_id: UserId,
        sealed: &SealedDetails,
    ) -> Result<PersonalDetails, UnsealError> {
        let key = self.0.iter().find(|key| key.version == sealed.key_version);
        let key = key.ok_or(UnsealError::UnknownVersion(sealed.key_version))?;
        let open = |column: &'static str, cipher: &[u8]| {
            let text = key.open(&associated(column, user_id), cipher);
            text.ok_or(UnsealError::Broken(column))
        };
        let email = Email::parse(&open("email", &sealed.email_cipher)?);
        let name = PersonName::parse(&open("name", &sealed.name_cipher)?);
        let phone = sealed.phone_cipher.as_deref();
        let phone = phone.map(|cipher| open("phone", cipher)).transpose()?;
        let phone = phone.map(|text| PhoneNumber::parse(&text)).transpose();
        Ok(PersonalDetails {
            email: email.map_err(|_| UnsealError::Broken("email"))?,
            name: name.map_err(|_| UnsealError::Broken("name"))?,
            phone: phone.map_err(|_| UnsealError::Broken("phone"))?,
        })
    }

    /// Encrypts an identifier of a person with the current key.
    pub(crate) fn seal_text(&self, kind: &'static str, user_id: UserId, text: &str) -> Vec<u8> {
        self.current().seal(&associated_identity(kind, user_id), text)
    }

    pub(crate) fn open_text(
        &self,
        key_version: u16,
        kind: &'static str,
        user_id: UserId,
        cipher: &[u8],
    ) -> Result<String, UnsealError> {
        let key = self.0.iter().find(|key| key.version == key_version);
        let key = key.ok_or(UnsealError::UnknownVersion(key_version))?;
        let text = key.open(&associated_identity(kind, user_id), cipher);
        text.ok_or(UnsealError::Broken(kind))
    }

    /// The indexes of an identifier of a person with all keys, the current one first.
    pub(crate) fn person_indexes(&self, kind: &'static str, text: &str) -> Vec<Vec<u8>> {
        self.0.iter().map(|key| key.person_index(kind, text)).collect()
    }

    /// The secret of the link with this id. `None` if the key is not configured.
    pub(crate) fn link_token(&self, key_version: u16, id: Uuid) -> Option<Secret> {
        let key = self.0.iter().find(|key| key.version == key_version)?;
        Some(key.link.derive(&id.to_string()))
    }

    fn current(&self) -> &DerivedKeys {
        self.0.first().expect("there is always a current key")
    }
}

impl fmt::Debug for DataKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| key.version)).finish()
    }
}

impl DerivedKeys {
    fn derive(key: &DataKey) -> DerivedKeys {
        let purpose = |name| key.secret.derive(&format!("urr-auth:{name}:{}", key.version));
        let cipher_key = from_hex(purpose("personal-data").expose());
        DerivedKeys {
            version: key.version,
            cipher: Aes256Gcm::new_from_slice(&cipher_key).expect("a derived key has 32 bytes"),
            index: purpose("email-index"),
            person_index: purpose("person-index"),
            link: purpose("account-link"),
        }
    }

    fn email_index(&self, email: &Email) -> Vec<u8> {
        from_hex(self.index.derive(&email.lookup_key()).expose())
    }

    fn person_index(&self, kind: &str, text: &str) -> Vec<u8> {
        from_hex(self.person_index.derive(&format!("{kind}:{text}")).expose())
    }

    /// The nonce, followed by the encrypted text with its tag.
    fn seal(&self, associated: &str, text: &str) -> Vec<u8> {
        let mut nonce = [0_u8; NONCE_BYTES];
        getrandom::fill(&mut nonce).expect("the operating system has randomness");
        let payload = Payload { msg: text.as_bytes(), aad: associated.as_bytes() };
        let cipher = self.cipher.encrypt(&Nonce::from(nonce), payload);
        [&nonce[..], &cipher.expect("a short text can be sealed")].concat()
    }

    fn open(&self, associated: &str, sealed: &[u8]) -> Option<String> {
        let (nonce, cipher) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: cipher, aad: associated.as_bytes() };
        let text = self.cipher.decrypt(&Nonce::from(*nonce), payload).ok()?;
        String::from_utf8(text).ok()
    }
}

/// The associated data that an encrypted text is bound to.
fn associated(column: &str, user_id: UserId) -> String {
    format!("users/{column}/{user_id}")
}

fn associated_identity(kind: &str, user_id: UserId) -> String {
    format!("identities/{kind}/{user_id}")
}

/// The bytes of a derived secret, which is hexadecimal text.
fn from_hex(text: &str) -> Vec<u8> {
    hex::decode(text).expect("derived secrets are hexadecimal")
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    fn key(version: u16) -> DataKey {
        DataKey { version, secret: Secret::new(format!("the secret of version {version}")) }
    }

    fn mina() -> PersonalDetails {
        PersonalDetails {
            email: Email::parse("Mina@Example.com").unwrap(),
            name: PersonName::parse("김민아").unwrap(),
            phone: Some(PhoneNumber::parse("010-1234-5678").unwrap()),
        }
    }

    fn user(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    #[test]
    fn a_person_survives_sealing_and_does_not_show_through() {
        let keys = DataKeys::single(Secret::new("root"));
        let sealed = keys.seal(user(1), &mina());
        assert_eq!(keys.open(user(1), &sealed), Ok(mina()));
        let ciphers = [&sealed.email_cipher, &sealed.name_cipher];
        assert!(ciphers.iter().all(|cipher| cipher.len() > NONCE_BYTES + 16));
        let again = keys.seal(user(1), &mina());
        assert_ne!(again.email_cipher, sealed.email_cipher, "every sealing has its own nonce");
        assert_eq!(again.email_index, sealed.email_index);
    }

    #[test]
    fn a_sealed_text_opens_only_where_it_belongs() {
        let keys = DataKeys::single(Secret::new("root"));
        let sealed = keys.seal(user(1), &mina());
        assert_eq!(keys.open(user(2), &sealed), Err(UnsealError::Broken("email")));
        let mut swapped = sealed.clone();
        swapped.name_cipher.clone_from(&sealed.email_cipher);
        assert_eq!(keys.open(user(1), &swapped), Err(UnsealError::Broken("name")));
        let mut touched = sealed.clone();
        *touched.email_cipher.last_mut().unwrap() ^= 1;
        assert_eq!(keys.open(user(1), &touched), Err(UnsealError::Broken("email")));
        let mut cut = sealed;
        cut.email_cipher.truncate(5);
        assert_eq!(keys.open(user(1), &cut), Err(UnsealError::Broken("email")));
    }

    #[test]
    fn older_versions_open_as_long_as_their_key_is_known() {
        let old = DataKeys::new(key(1), &[]).unwrap();
        let sealed = old.seal(user(1), &mina());
        let both = DataKeys::new(key(2), &[key(1)]).unwrap();
        assert_eq!(both.open(user(1), &sealed), Ok(mina()));
        assert_eq!(both.seal(user(1), &mina()).key_version, 2);
        let new = DataKeys::new(key(2), &[]).unwrap();
        assert_eq!(new.open(user(1), &sealed), Err(UnsealError::UnknownVersion(1)));
        let twice = DataKeys::new(key(1), &[key(1)]);
        assert_eq!(twice.unwrap_err(), DuplicateKeyVersion(1));
    }

    #[test]
    fn an_address_is_looked_up_under_every_version_and_in_any_case() {
        let both = DataKeys::new(key(2), &[key(1)]).unwrap();
        let indexes = both.email_indexes(&Email::parse("MINA@example.COM").unwrap());
        assert_eq!(indexes[0], both.seal(user(1), &mina()).email_index);
        let old = DataKeys::new(key(1), &[]).unwrap();
        assert_eq!(indexes[1], old.seal(user(9), &mina()).email_index);
        assert_ne!(indexes[0], indexes[1]);
    }

    #[test]
    fn the_keys_are_not_printed() {
        assert_eq!(format!("{:?}", DataKeys::new(key(2), &[key(1)]).unwrap()), "[2, 1]");
    }
}
