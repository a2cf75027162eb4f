//! Opening accounts, logging in, changing and deleting them.

use urr_auth::{
    AuthSettings, ClientInfo, LoginError, PersonName, PhoneNumber, Reauthentication,
    ReauthenticationError, RegisterError, UserError, UserId,
};
use urr_kernel::{DomainEvent, Secret};

use crate::contract;
use crate::fixture::{
    PASSWORD, SECOND, World, all, cheap_settings, client, data_keys, login, registration,
};

contract! {
    async fn someone_registers_and_logs_in_with_any_spelling_of_the_address(world: World) {
        let session = world.register("Mina@Example.com").await;
        assert_eq!(session.user.person.email.as_str(), "Mina@Example.com");
        assert!(world.accepts(&session.access_token).await);
        world.clock.advance(SECOND);
        let again = world.login(" mina@EXAMPLE.com ", PASSWORD).await.unwrap();
        assert_eq!(again.user.id, session.user.id);
        assert_ne!(again.refresh_token, session.refresh_token);
        let user = world.auth.get_user(session.user.id).await.unwrap();
        assert_eq!(user.last_login_at, world.clock.now());
        assert_eq!(user.person.phone, Some(PhoneNumber::parse("010-1234-5678").unwrap()));
    }

    async fn what_was_agreed_to_is_written_down_with_its_version(world: World) {
        world.register("mina@example.com").await;
        let sql = "select kind, version, agreed from terms_agreements order by kind";
        let terms = world.rows(sql, |row| {
            Ok((row.get::<String>("kind")?, row.get::<String>("version")?, row.get("agreed")?))
        }).await;
        let agreed = |kind: &str| (kind.to_owned(), "2026-11".to_owned(), true);
        assert_eq!(terms, [agreed("PRIVACY"), agreed("SERVICE")]);
    }

    async fn d_15_a_wrong_password_and_an_unknown_address_cannot_be_told_apart(world: World) {
        world.register("mina@example.com").await;
        let before = world.auth.passwords_compared();
        let wrong = world.login("mina@example.com", "not the password").await;
        let unknown = world.login("nobody@example.com", "not the password").await;
        assert_eq!(wrong, Err(LoginError::InvalidCredentials));
        assert_eq!(unknown, Err(LoginError::InvalidCredentials));
        assert_eq!(world.auth.passwords_compared(), before + 2, "both took a comparison");
    }

    async fn logins_are_remembered_whether_they_succeed_or_not(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        let client = client("203.0.113.9", "cli");
        for (email, password) in [
            ("mina@example.com", PASSWORD),
            ("mina@example.com", "not the password"),
            ("nobody@example.com", "not the password"),
        ] {
            let email = urr_auth::Email::parse(email).unwrap();
            let credentials = urr_auth::Credentials { email, password: Secret::new(password) };
            drop(world.auth.login(credentials, client.clone()).await);
        }
        let sql = "select user_id, method, success, failure from login_history order by id";
        let history = world.rows(sql, |row| {
            let known = row.get::<Option<urr_kernel::Uuid>>("user_id")?.map(UserId);
            let (method, success): (String, bool) = (row.get("method")?, row.get("success")?);
            let failure: Option<String> = row.get("failure")?;
            Ok((known, format!("{method} {success} {}", failure.unwrap_or_default())))
        }).await;
        assert_eq!(history, [
            (Some(id), "registration true ".to_owned()),
            (Some(id), "password true ".to_owned()),
            (Some(id), "password false wrong_password".to_owned()),
            (None, "password false unknown_email".to_owned()),
        ]);
        let sql = "select count(*) as n from login_history where address = '203.0.113.9'";
        assert_eq!(world.number(sql).await, 3);
    }

    async fn of_many_who_register_one_address_at_once_one_succeeds(world: World) {
        for round in 0..10 {
            let attempts = (0..10).map(|n| {
                let (auth, context) = (world.auth.clone(), world.context());
                let case = if n % 2 == 0 { "Mina" } else { "mina" };
                let registration = registration(&format!("{case}{round}@example.com"));
                async move { auth.register(registration, ClientInfo::default(), context).await }
            });
            let outcomes = all(attempts).await;
            let succeeded = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            let refused = outcomes.iter().filter(|o| **o == Err(RegisterError::EmailTaken)).count();
            assert_eq!((succeeded, refused), (1, 9));
        }
        assert_eq!(world.number("select count(*) as n from users").await, 10);
        assert_eq!(world.number("select count(*) as n from refresh_tokens").await, 10);
        assert_eq!(world.number("select count(*) as n from outbox").await, 20, "account and link");
    }

    async fn events_name_the_user_and_tell_nothing_else(world: World) {
        let user = world.register("mina@example.com").await.user;
        let secret = Reauthentication::by_password(PASSWORD);
        world.auth.delete_user(user.id, secret, world.context()).await.unwrap();
        let sql = "select topic, body from outbox order by seq";
        let events = world.rows(sql, |row| Ok((row.get("topic")?, row.get("body")?))).await;
        let events: Vec<(String, String, serde_json::Value)> = events.into_iter()
            .map(|(topic, body): (String, String)| {
                let mut event = DomainEvent::from_bytes(body.as_bytes()).unwrap();
                // What the data of every event have.
                for common in ["type", "sagaId"] {
                    event.data.as_object_mut().unwrap().remove(common).unwrap();
                }
                (topic, event.event_type, event.data)
            }).collect();
        let registered = serde_json::json!({ "userId": user.id.0, "role": "user" });
        let link_id = &events[1].2["linkId"];
        let link = serde_json::json!({
            "linkId": link_id, "userId": user.id.0, "kind": "verify_email",
        });
        let deleted = serde_json::json!({ "userId": user.id.0 });
        let topic = urr_auth::TOPICS[0].to_owned();
        assert_eq!(events, [
            (topic.clone(), "USER_REGISTERED".to_owned(), registered),
            (topic.clone(), "ACCOUNT_LINK_ISSUED".to_owned(), link),
            (topic, "USER_DELETED".to_owned(), deleted),
        ]);
    }

    async fn a_profile_can_be_changed_and_the_phone_removed(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        let name = PersonName::parse("김민아 2").unwrap();
        world.auth.update_profile(id, name.clone(), None, None).await.unwrap();
        let changed = world.auth.get_user(id).await.unwrap();
        assert_eq!((&changed.person.name, &changed.person.phone), (&name, &None));
        assert!(world.login("mina@example.com", PASSWORD).await.is_ok(), "still found");
        let nobody = UserId(world.ids.next_id());
        let outcome = world.auth.update_profile(nobody, name, None, None).await;
        assert_eq!(outcome, Err(UserError::NotFound));
    }

    async fn a_closed_account_is_forgotten_and_its_address_free(world: World) {
        let user = world.register("mina@example.com").await.user;
        let client = client("203.0.113.9", "cli");
        let credentials = urr_auth::Credentials {
            email: user.person.email.clone(), password: Secret::new(PASSWORD),
        };
        world.auth.login(credentials, client).await.unwrap();
        let wrong = Reauthentication::by_password("not the password");
        let outcome = world.auth.delete_user(user.id, wrong, world.context()).await;
        assert_eq!(outcome, Err(ReauthenticationError::WrongPassword));
        assert!(world.auth.get_user(user.id).await.is_ok(), "a wrong password deletes nothing");

        let right = Reauthentication::by_password(PASSWORD);
        world.auth.delete_user(user.id, right.clone(), world.context()).await.unwrap();
        assert_eq!(world.auth.get_user(user.id).await, Err(UserError::NotFound));
        assert!(world.login("mina@example.com", PASSWORD).await.is_err());
        assert_eq!(world.auth.get_users(vec![user.id]).await.unwrap(), []);
        let traces = "select count(*) as n from login_history \
                      where address <> '' or user_agent <> ''";
        assert_eq!(world.number(traces).await, 0);
        let again = world.auth.delete_user(user.id, right, world.context()).await;
        assert_eq!(again, Err(ReauthenticationError::NotFound));

        let next = world.register("mina@example.com").await.user;
        assert_ne!(next.id, user.id);
    }

    async fn d_12_nobody_can_log_in_to_a_fresh_installation(world: World) {
        assert_eq!(world.number("select count(*) as n from users").await, 0);
        for (email, password) in [("admin@urr.com", "admin123"), ("admin@urr.com", "password")] {
            assert_eq!(world.login(email, password).await, Err(LoginError::InvalidCredentials));
        }
    }

    async fn a_login_beyond_the_bound_ends_the_oldest_session(world: World) {
        let settings = AuthSettings { sessions_per_user_max: 3, ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        let mut sessions = vec![world.register("mina@example.com").await];
        for _ in 0..3 {
            world.clock.advance(SECOND);
            sessions.push(login(&auth, "mina@example.com", PASSWORD).await.unwrap());
        }
        assert!(!world.accepts(&sessions[0].access_token).await);
        assert!(auth.refresh(&sessions[0].refresh_token, ClientInfo::default()).await.is_err());
        for session in &sessions[1..] {
            assert!(world.accepts(&session.access_token).await);
            assert!(auth.refresh(&session.refresh_token, ClientInfo::default()).await.is_ok());
        }
    }
}
