//! A verified person who closes their account is recognised for a while, and not named.

use std::time::Duration;

use serde_json::json;
use urr_auth::{
    AuthService, AuthSettings, CompleteVerificationError, Reauthentication, StartVerificationError,
    UserId,
};
use urr_service::DataKeys;

use crate::contract;
use crate::fixture::{DAY, PASSWORD, SECOND, World, data_keys};
use crate::identity_check::{http, mina, named, sandbox, sandbox_auth, verify};
use crate::personal_data::key;

async fn delete(auth: &AuthService, world: &World, id: UserId) {
    let reauthentication = Reauthentication::by_password(PASSWORD);
    auth.delete_user(id, reauthentication, world.context()).await.unwrap();
}

contract! {
    /// If users could leave and return at once, they would have as many accounts as they like, one
    /// after the other.
    async fn a_closed_account_frees_its_person_after_a_month(world: World) {
        let auth = sandbox_auth(&world);
        let first = world.register("mina@example.com").await.user.id;
        verify(&auth, first, mina()).await.unwrap();
        let session = world.register("mina2@example.com").await;
        let second = session.user.id;
        delete(&auth, &world, first).await;
        assert_eq!(world.number("select count(*) as n from identities").await, 0);
        assert_eq!(world.number("select count(*) as n from identity_verifications").await, 0);
        let gone = auth.start_verification(first).await;
        assert_eq!(gone, Err(StartVerificationError::UserNotFound));

        let until = world.clock.now() + 30 * DAY;
        let refused = verify(&auth, second, mina()).await;
        assert_eq!(refused, Err(CompleteVerificationError::DeletedRecently { until }));
        assert!(!auth.get_profile(second).await.unwrap().identity_verified);
        let id = auth.start_verification(second).await.unwrap().id;
        let body = json!({
            "verificationId": id.0, "sandbox": { "name": "김민아", "birthDate": "1999-01-31" },
        });
        let path = "/api/auth/identity/complete";
        let told = http(&world, &sandbox(), path, &session, body).await;
        assert_eq!(told.refusal(), (409, "LEFT_LATELY"));
        assert_eq!(told.body["until"], "2026-12-15T00:30:00Z");
        let other = world.register("jun@example.com").await.user.id;
        assert!(verify(&auth, other, named("박준")).await.is_ok(), "nobody else is held back");

        world.clock.advance(30 * DAY - SECOND);
        assert!(verify(&auth, second, mina()).await.is_err());
        world.clock.advance(SECOND);
        assert!(verify(&auth, second, mina()).await.is_ok());
        let purged = auth.purge_expired(100).await.unwrap();
        assert_eq!(purged.departed_people, 1);
        assert_eq!(auth.purge_expired(100).await.unwrap().departed_people, 0);
    }

    /// The control: it is the kept hash that holds them back.
    async fn without_a_month_to_wait_a_person_may_return_at_once(world: World) {
        let at_once = AuthSettings { departure_kept: Duration::ZERO, ..sandbox() };
        let auth = world.auth_with(data_keys(), at_once);
        let first = world.register("mina@example.com").await.user.id;
        verify(&auth, first, mina()).await.unwrap();
        delete(&auth, &world, first).await;
        assert_eq!(world.number("select count(*) as n from departed_people").await, 0);
        let second = world.register("mina@example.com").await.user.id;
        assert!(verify(&auth, second, mina()).await.is_ok());
    }

    async fn of_who_left_only_a_hash_remains_and_of_who_was_never_verified_nothing(world: World) {
        let auth = sandbox_auth(&world);
        let stranger = world.register("jun@example.com").await.user.id;
        delete(&auth, &world, stranger).await;
        assert_eq!(world.number("select count(*) as n from departed_people").await, 0);
        // What the sandbox believed does not hold back a real person.
        let believed = world.register("fan@example.com").await.user.id;
        verify(&auth, believed, mina()).await.unwrap();
        delete(&world.auth, &world, believed).await;
        assert_eq!(world.number("select count(*) as n from departed_people").await, 0);

        let mina_id = world.register("mina@example.com").await.user.id;
        verify(&auth, mina_id, mina()).await.unwrap();
        let index = "select ci_index as hash from identities";
        let read = |row: &urr_storage::Row<'_>| row.get::<Vec<u8>>("hash");
        let index = world.rows(index, read).await;
        delete(&auth, &world, mina_id).await;
        let kept = world.rows("select ci_index as hash from departed_people", read).await;
        assert_eq!(kept, index);
        assert_eq!(kept[0].len(), 32, "a keyed hash");
    }

    async fn who_left_is_recognised_while_the_data_key_is_changed(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), sandbox());
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), sandbox());
        let new = world.auth_with(DataKeys::new(key(2), &[]).unwrap(), sandbox());
        let first = world.try_register(&old, "mina@example.com").await.unwrap().user.id;
        verify(&old, first, mina()).await.unwrap();
        delete(&old, &world, first).await;
        let second = world.try_register(&both, "mina@example.com").await.unwrap().user.id;
        let refused = verify(&both, second, mina()).await;
        assert!(matches!(refused, Err(CompleteVerificationError::DeletedRecently { .. })));
        // A hash cannot be made anew from a hash: with the old key gone it says nothing.
        assert!(verify(&new, second, mina()).await.is_ok());
    }
}
