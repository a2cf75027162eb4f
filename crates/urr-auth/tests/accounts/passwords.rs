//! Passwords: imported hashes, stronger hashes, and too many logins.

use urr_auth::{
    AuthSettings, BotCheckSettings, ClientInfo, InternalError, InvalidPassword, PasswordCost,
    Reauthentication, ReauthenticationError,
};

use crate::contract;
use crate::fixture::{
    MINUTE, PASSWORD, World, all, cheap_settings, data_keys, login, password_change,
};

async fn stored_hash(world: &World) -> String {
    let hashes =
        world.rows("select password_hash from users", |row| row.get("password_hash")).await;
    hashes.into_iter().next().unwrap()
}

contract! {
    async fn a_hash_from_elsewhere_lets_its_owner_in_and_is_replaced(world: World) {
        world.register("mina@example.com").await;
        let bcrypt = bcrypt::hash("the old password", 4).unwrap();
        let set: Result<u64, urr_storage::StorageError> = world.db.write(move |tx| {
            tx.execute("update users set password_hash = $1", urr_storage::params![bcrypt])
        }).await;
        assert_eq!(set, Ok(1));
        assert!(world.login("mina@example.com", "the wrong password").await.is_err());
        assert!(stored_hash(&world).await.starts_with("$2b$"), "a failure replaces nothing");
        world.login("mina@example.com", "the old password").await.unwrap();
        assert!(stored_hash(&world).await.starts_with("$argon2id$"));
        world.login("mina@example.com", "the old password").await.unwrap();
    }

    async fn many_who_log_in_while_their_hash_is_replaced_all_get_in(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        for _ in 0..5 {
            let bcrypt = bcrypt::hash(PASSWORD, 4).unwrap();
            let set: Result<u64, urr_storage::StorageError> = world.db.write(move |tx| {
                tx.execute("update users set password_hash = $1", urr_storage::params![bcrypt])
            }).await;
            assert_eq!(set, Ok(1));
            let logins = (0..10).map(|_| {
                let auth = world.auth.clone();
                async move { login(&auth, "mina@example.com", PASSWORD).await }
            });
            for outcome in all(logins).await {
                assert_eq!(outcome.unwrap().user.id, id);
            }
        }
    }

    /// A login that compared the old password must not begin a session after the change.
    async fn a_login_beside_a_change_of_password_leaves_no_session_behind(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        let passwords = ["강변의 밤을 걷다", PASSWORD];
        for round in 0..20 {
            let (old, new) = (passwords[(round + 1) % 2], passwords[round % 2]);
            let auth = world.auth.clone();
            let entering = tokio::spawn(async move { login(&auth, "mina@example.com", old).await });
            let change = password_change(old, new);
            world.auth.change_password(id, change, ClientInfo::default()).await.unwrap();
            if let Ok(session) = entering.await.unwrap() {
                assert!(!world.accepts(&session.access_token).await);
            }
        }
    }

    async fn a_hash_that_was_cheaper_is_replaced_at_the_next_login(world: World) {
        world.register("mina@example.com").await;
        let password_cost = PasswordCost { memory_kib: 16, passes: 2, lanes: 1 };
        let dearer = world.auth_with(data_keys(), AuthSettings { password_cost, ..cheap_settings() });
        login(&dearer, "mina@example.com", PASSWORD).await.unwrap();
        let hash = stored_hash(&world).await;
        assert!(hash.starts_with("$argon2id$v=19$m=16,t=2,p=1$"), "{hash}");
        login(&dearer, "mina@example.com", PASSWORD).await.unwrap();
        assert_eq!(stored_hash(&world).await, hash);
    }

    async fn a_storm_of_logins_is_answered_and_most_of_it_at_once(world: World) {
        world.register("mina@example.com").await;
        let settings = AuthSettings {
            password_cost: PasswordCost { memory_kib: 65_536, passes: 4, lanes: 1 },
            hashing_parallel_max: 1,
            hashing_waiting_max: 1,
            ..AuthSettings::default()
        };
        let auth = world.auth_with(data_keys(), settings);
        let logins = (0..40).map(|_| {
            let auth = auth.clone();
            async move { login(&auth, "nobody@example.com", PASSWORD).await.unwrap_err() }
        });
        let refusals = all(logins).await;
        let busy = refusals.iter().filter(|refusal| {
            matches!(refusal, urr_auth::LoginError::Internal(InternalError::Busy(_)))
        });
        let (busy, compared) = (busy.count(), auth.passwords_compared());
        assert!((1..=20).contains(&compared), "{compared} were compared");
        assert_eq!(busy + usize::try_from(compared).unwrap(), 40);
    }

    async fn a_new_password_needs_the_old_one_and_must_be_good(world: World) {
        let user = world.register("mina@example.com").await.user;
        for (old, new, expected) in [
            ("not the password", "강변의 밤을 걷다", ReauthenticationError::WrongPassword),
            (PASSWORD, "short", ReauthenticationError::InvalidPassword(InvalidPassword::TooShort)),
            (
                PASSWORD,
                "Mina@example.com",
                ReauthenticationError::InvalidPassword(InvalidPassword::SameAsEmail),
            ),
        ] {
            let change = password_change(old, new);
            let changed = world.auth.change_password(user.id, change, ClientInfo::default()).await;
            assert_eq!(changed, Err(expected));
        }
        assert!(world.login("mina@example.com", PASSWORD).await.is_ok());
    }

    /// A stolen session is no place to guess the password, one after the other or all at once.
    async fn wrong_passwords_within_a_session_are_failed_logins_and_have_an_end(world: World) {
        let settings = AuthSettings { bot_check: BotCheckSettings::default(), ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        let id = world.register("mina@example.com").await.user.id;
        let guess = |password: &'static str| {
            let (auth, context) = (auth.clone(), world.context());
            let proof = Reauthentication::by_password(password);
            async move { auth.delete_user(id, proof, context).await }
        };
        let mut wrong = 0;
        for _ in 0..5 {
            for outcome in all((0..4).map(|_| guess("not the password"))).await {
                match outcome {
                    Err(ReauthenticationError::WrongPassword) => wrong += 1,
                    other => assert_eq!(other, Err(ReauthenticationError::TooManyFailures)),
                }
            }
        }
        assert_eq!(wrong, 10);
        assert_eq!(world.number("select count(*) as n from failed_logins").await, 10);
        let failed = "select count(*) as n from login_history where failure = 'wrong_password'";
        assert_eq!(world.number(failed).await, 10);
        // Now the right one is refused as well: whoever guesses must not learn that it is right.
        assert_eq!(guess(PASSWORD).await, Err(ReauthenticationError::TooManyFailures));
        assert!(world.login("mina@example.com", PASSWORD).await.is_ok(), "logging in goes on");
        // Control: after a quarter of an hour it is accepted, and a right one leaves no trace.
        world.clock.advance(15 * MINUTE);
        let change = password_change(PASSWORD, "강변의 밤을 걷다");
        auth.change_password(id, change, ClientInfo::default()).await.unwrap();
        assert_eq!(world.number(failed).await, 10);
    }
}
