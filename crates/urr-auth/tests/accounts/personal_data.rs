//! What names a person is not to be found in what is stored; keys can be changed.

use urr_auth::{DataKeyError, InternalError, LoginError, PersonName, RegisterError};
use urr_kernel::Secret;
use urr_service::data_keys::{KeyRotationProgress, UnsealError};
use urr_service::{DataKey, DataKeys, Page};
pub use urr_test::engines::contains;

use crate::contract;
use crate::fixture::{PASSWORD, World, cheap_settings, client, login, registration};

pub fn key(version: u16) -> DataKey {
    DataKey { version, secret: Secret::new(format!("the data key of version {version}")) }
}

/// Everything that is stored, as text and as bytes of the files.
pub fn stored(world: &World) -> Vec<u8> {
    world.database.stored_bytes()
}

contract! {
    async fn neither_address_nor_name_nor_phone_can_be_read_in_what_is_stored(world: World) {
        let mut canary = registration("Canary.Bird@Example.com");
        canary.person.name = PersonName::parse("새장 속의 카나리아").unwrap();
        canary.person.phone = Some(urr_auth::PhoneNumber::parse("010-9876-1234").unwrap());
        let client = client("203.0.113.77", "found");
        let session = world.auth.register(canary, client, world.context()).await.unwrap();
        let name = PersonName::parse("새장을 떠난 카나리아").unwrap();
        let phone = session.user.person.phone;
        world.auth.update_profile(session.user.id, name, phone, None).await.unwrap();
        login(&world.auth, "canary.bird@example.com", PASSWORD).await.unwrap();
        let stored = stored(&world);
        for secret in [
            "Canary.Bird@Example.com", "canary.bird@example.com", "anary", "카나리아", "9876",
            PASSWORD, session.refresh_token.as_str(), session.access_token.as_str(),
        ] {
            assert!(!contains(&stored, secret), "{secret}");
        }
        // The control: what is stored in clear is found.
        assert!(contains(&stored, "203.0.113.77"));
        assert!(contains(&stored, "USER_REGISTERED"));
    }

    async fn keys_are_changed_while_people_log_in_and_register(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), cheap_settings());
        for n in 0..25 {
            world.try_register(&old, &format!("fan{n}@example.com")).await.unwrap();
        }
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), cheap_settings());
        let mut progress = Vec::new();
        loop {
            let rotation = both.rotate_personal_data(10).await.unwrap();
            progress.push((rotation.rotated, rotation.remaining));
            for n in [0, 12, 24] {
                let email = format!("Fan{n}@example.com");
                let session = login(&both, &email, PASSWORD).await.unwrap();
                assert_eq!(session.user.person.email.as_str(), format!("fan{n}@example.com"));
                let taken = world.try_register(&both, &email).await;
                assert_eq!(taken, Err(RegisterError::EmailTaken), "in either key");
            }
            if rotation.remaining == 0 {
                break;
            }
        }
        assert_eq!(progress, [(10, 15), (10, 5), (5, 0)]);
        let done = both.rotate_personal_data(10).await.unwrap();
        assert_eq!(done, KeyRotationProgress { rotated: 0, remaining: 0 });
        let new = world.auth_with(DataKeys::new(key(2), &[]).unwrap(), cheap_settings());
        assert!(login(&new, "fan7@example.com", PASSWORD).await.is_ok(), "the old key can go");
        // The controls: without the new key nobody is found, and the old one is not in use.
        let nobody = login(&old, "fan7@example.com", PASSWORD).await;
        assert_eq!(nobody, Err(LoginError::InvalidCredentials));
    }

    async fn the_look_up_under_the_old_key_is_what_keeps_an_address_unique(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), cheap_settings());
        world.try_register(&old, "mina@example.com").await.unwrap();
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), cheap_settings());
        let taken = world.try_register(&both, "mina@example.com").await;
        assert_eq!(taken, Err(RegisterError::EmailTaken));
        let forgetful = world.auth_with(DataKeys::new(key(2), &[]).unwrap(), cheap_settings());
        assert!(world.try_register(&forgetful, "mina@example.com").await.is_ok());
    }

    async fn a_profile_that_changes_during_the_change_of_keys_is_not_overwritten(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), cheap_settings());
        let mut ids = Vec::new();
        for n in 0..20 {
            let session = world.try_register(&old, &format!("fan{n}@example.com")).await.unwrap();
            ids.push(session.user.id);
        }
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), cheap_settings());
        let rotating = tokio::spawn({
            let both = both.clone();
            async move { while both.rotate_personal_data(3).await.unwrap().remaining > 0 {} }
        });
        for id in &ids {
            let name = PersonName::parse("새 이름").unwrap();
            both.update_profile(*id, name, None, None).await.unwrap();
        }
        rotating.await.unwrap();
        for user in both.get_users(ids).await.unwrap() {
            assert_eq!((user.person.name.as_str(), &user.person.phone), ("새 이름", &None));
        }
    }

    /// One damaged row is left out of lists; only if nothing can be read the key is another one.
    async fn one_unreadable_row_does_not_break_a_list(world: World) {
        world.auth.check_data_keys().await.unwrap();
        let mut ids = Vec::new();
        for email in ["a@example.com", "b@example.com", "c@example.com"] {
            ids.push(world.register(email).await.user.id);
        }
        let damage = "update users set name_cipher = email_cipher \
                      where id = (select id from users order by id desc limit 1)";
        world.database.db.write(move |tx| tx.execute(damage, &[]).map(drop)).await.unwrap();
        let (listed, total) = world.auth.list_users(Page::of(None, None)).await.unwrap();
        assert_eq!((listed.len(), total), (2, 3));
        assert_eq!(world.auth.get_users(ids).await.unwrap().len(), 2);
        world.auth.check_data_keys().await.unwrap();
        let other = DataKeys::new(key(1), &[]).unwrap();
        let other = world.auth_with(other, cheap_settings());
        assert!(matches!(other.check_data_keys().await, Err(DataKeyError::OtherKey)));
        assert!(other.list_users(Page::of(None, None)).await.unwrap().0.is_empty());
    }

    async fn a_missing_key_is_an_error_and_not_an_empty_name(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), cheap_settings());
        let id = world.try_register(&old, "mina@example.com").await.unwrap().user.id;
        let new = world.auth_with(DataKeys::new(key(2), &[]).unwrap(), cheap_settings());
        let unreadable = InternalError::PersonalData(UnsealError::UnknownVersion(1));
        assert_eq!(new.get_user(id).await, Err(unreadable.clone().into()));
        assert_eq!(new.rotate_personal_data(10).await, Err(unreadable));
    }
}
