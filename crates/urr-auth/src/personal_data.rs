//! The personal data of accounts, encrypted and found by keyed hashes.
//!
//! Each encrypted text is bound to its table, column and user, so that it cannot be decrypted in
//! another row.

use urr_kernel::{Secret, Uuid};
use urr_service::DataKeys;
use urr_service::data_keys::{SealingKeys, UnsealError};

use crate::accounts::account::{PersonalDetails, UserId};
use crate::accounts::email::Email;
use crate::accounts::profile::{PersonName, PhoneNumber};

/// The keys of the auth service. Clones share them.
#[derive(Clone)]
pub struct AccountKeys(SealingKeys);

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

impl AccountKeys {
    pub fn new(keys: &DataKeys) -> AccountKeys {
        AccountKeys(keys.of_service("urr-auth"))
    }

    pub fn current_version(&self) -> u16 {
        self.0.current_version()
    }

    /// The indexes of an address with all keys, the current one first.
    pub(crate) fn email_indexes(&self, email: &Email) -> Vec<Vec<u8>> {
        self.0.indexes("email", &email.lookup_key())
    }

    /// Encrypts with the current key, each time anew: see [`SealingKeys::seal`].
    pub(crate) fn seal(&self, user_id: UserId, person: &PersonalDetails) -> SealedDetails {
        let seal = |column, text: &str| self.0.seal(&place(column, user_id), text);
        let phone = person.phone.as_ref();
        SealedDetails {
            key_version: self.0.current_version(),
            email_cipher: seal("email", person.email.as_str()),
            email_index: self.0.index("email", &person.email.lookup_key()),
            name_cipher: seal("name", person.name.as_str()),
            phone_cipher: phone.map(|phone| seal("phone", phone.as_str())),
            name_index: Some(self.0.index("name", &person.name.lookup_key())),
            phone_index: phone.map(|phone| self.0.index("phone", &phone.lookup_key())),
        }
    }

    pub(crate) fn open(
        &self,
        user_id: UserId,
        sealed: &SealedDetails,
    ) -> Result<PersonalDetails, UnsealError> {
        let open = |column: &'static str, cipher: &[u8]| {
            self.0.open(sealed.key_version, &place(column, user_id), column, cipher)
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
        self.0.seal(&place_of_identity(kind, user_id), text)
    }

    pub(crate) fn open_text(
        &self,
        key_version: u16,
        kind: &'static str,
        user_id: UserId,
        cipher: &[u8],
    ) -> Result<String, UnsealError> {
        self.0.open(key_version, &place_of_identity(kind, user_id), kind, cipher)
    }

    /// The indexes of an identifier of a person with all keys, the current one first.
    pub(crate) fn person_indexes(&self, kind: &'static str, text: &str) -> Vec<Vec<u8>> {
        self.0.indexes(kind, text)
    }

    /// The secret of the link with this id. `None` if the key is not configured.
    pub(crate) fn link_token(&self, key_version: u16, id: Uuid) -> Option<Secret> {
        self.0.token(key_version, &id.to_string())
    }
}

/// Where an encrypted text belongs.
fn place(column: &str, user_id: UserId) -> String {
    format!("users/{column}/{user_id}")
}

fn place_of_identity(kind: &str, user_id: UserId) -> String {
    format!("identities/{kind}/{user_id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AccountKeys {
        AccountKeys::new(&DataKeys::single(Secret::new("root")))
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
    fn a_person_survives_sealing_and_is_found_in_any_case() {
        let sealed = keys().seal(user(1), &mina());
        assert_eq!(keys().open(user(1), &sealed), Ok(mina()));
        let typed = Email::parse("MINA@example.COM").unwrap();
        assert_eq!(keys().email_indexes(&typed), [sealed.email_index]);
    }

    #[test]
    fn a_sealed_text_opens_only_where_it_belongs() {
        let sealed = keys().seal(user(1), &mina());
        assert_eq!(keys().open(user(2), &sealed), Err(UnsealError::Broken("email")));
        let mut swapped = sealed.clone();
        swapped.name_cipher.clone_from(&sealed.email_cipher);
        assert_eq!(keys().open(user(1), &swapped), Err(UnsealError::Broken("name")));
    }
}
