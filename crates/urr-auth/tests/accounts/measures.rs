//! What administrators do with accounts: find, suspend, reopen, end sessions, release an address.

use axum::http::Method;
use serde_json::{Value, json};
use urr_auth::{
    AccountMeasure, AccountMeasureError, AccountSearch, AccountStatus, ActionReason, ClientInfo,
    Email, LoginError, NewAdmin, Password, PersonName, RefreshError, Session, UserAccount, UserId,
};
use urr_service::{Page, UserRole};

use crate::contract;
use crate::fixture::{PASSWORD, World, change_role};
use crate::http::{call, get, post};

async fn apply(
    world: &World,
    id: UserId,
    measure: AccountMeasure,
) -> Result<UserAccount, AccountMeasureError> {
    let reason = ActionReason::parse("a test").unwrap();
    world.auth.apply_measure(id, measure, None, &reason).await
}

async fn boss(world: &World) -> UserId {
    let email = Email::parse("boss@example.com").unwrap();
    let password = Password::parse(PASSWORD, &email).unwrap();
    let admin = NewAdmin { email, name: PersonName::parse("관리자").unwrap(), password };
    world.auth.create_admin(admin).await.unwrap().id
}

async fn found(world: &World, text: &str) -> Vec<UserId> {
    let search = AccountSearch::parse(text).unwrap();
    let (accounts, total) = world.auth.search_accounts(search, Page::new(1, 10)).await.unwrap();
    assert_eq!(u64::try_from(accounts.len()).unwrap(), total);
    accounts.iter().map(|account| account.id).collect()
}

async fn refresh(world: &World, session: &Session) -> Result<Session, RefreshError> {
    world.auth.refresh(&session.refresh_token, ClientInfo::default()).await
}

contract! {
    async fn accounts_are_found_by_whole_address_name_number_and_id(world: World) {
        let mina = world.register("mina@example.com").await.user.id;
        let boss = boss(&world).await;
        let name = PersonName::parse("Park Juno").unwrap();
        let juno = world.register("juno@example.com").await.user.id;
        world.auth.update_profile(juno, name, None, None).await.unwrap();
        for (text, expected) in [
            ("MINA@example.com", vec![mina]),
            (" 김민아 ", vec![mina]),
            ("park juno", vec![juno]),
            ("01012345678", vec![mina]),
            ("+82-10-1234-5678", vec![mina]),
            ("관리자", vec![boss]),
            (mina.to_string().as_str(), vec![mina]),
            ("mina", vec![]),
            ("김민", vec![]),
            ("010-1234", vec![]),
            (&"x".repeat(200), vec![]),
        ] {
            assert_eq!(found(&world, text).await, expected, "{text}");
        }
        assert_eq!(found(&world, "").await.len(), 3);
    }

    async fn a_suspended_account_is_closed_until_it_is_reopened(world: World) {
        let session = world.register("mina@example.com").await;
        let id = session.user.id;
        let suspended = apply(&world, id, AccountMeasure::Suspend).await.unwrap();
        assert_eq!(suspended.status, AccountStatus::Suspended);
        assert!(!world.accepts(&session.access_token).await);
        assert_eq!(refresh(&world, &session).await, Err(RefreshError::Revoked));
        let login = world.login("mina@example.com", PASSWORD).await;
        assert_eq!(login, Err(LoginError::Suspended));
        // A stranger is not told that the account is suspended.
        let guess = world.login("mina@example.com", "not the password").await;
        assert_eq!(guess, Err(LoginError::InvalidCredentials));
        let again = apply(&world, id, AccountMeasure::Suspend).await;
        assert_eq!(again, Err(AccountMeasureError::AlreadySuspended));
        let reopened = apply(&world, id, AccountMeasure::Reopen).await.unwrap();
        assert_eq!(reopened.status, AccountStatus::Active);
        // The control: it was the suspension that kept them out.
        assert!(world.login("mina@example.com", PASSWORD).await.is_ok());
        let again = apply(&world, id, AccountMeasure::Reopen).await;
        assert_eq!(again, Err(AccountMeasureError::NotSuspended));
    }

    async fn an_administrator_remains_who_is_not_suspended(world: World) {
        let boss = boss(&world).await;
        let mina = world.register("mina@example.com").await.user.id;
        let last = apply(&world, boss, AccountMeasure::Suspend).await;
        assert_eq!(last, Err(AccountMeasureError::LastAdmin));
        change_role(&world.auth, mina, UserRole::Admin).await.unwrap();
        apply(&world, boss, AccountMeasure::Suspend).await.unwrap();
        assert!(change_role(&world.auth, mina, UserRole::User).await.is_err(), "boss is suspended");
        let last = apply(&world, mina, AccountMeasure::Suspend).await;
        assert_eq!(last, Err(AccountMeasureError::LastAdmin));
    }

    async fn sessions_end_and_the_user_logs_in_again(world: World) {
        let session = world.register("mina@example.com").await;
        apply(&world, session.user.id, AccountMeasure::EndSessions).await.unwrap();
        assert!(!world.accepts(&session.access_token).await);
        assert!(world.login("mina@example.com", PASSWORD).await.is_ok());
    }

    /// Somebody registered an address that is not theirs, and bought with it.
    async fn a_released_address_can_be_registered_by_its_owner(world: World) {
        let stranger = world.register("mina@example.com").await;
        assert!(world.try_register(&world.auth, "mina@example.com").await.is_err(), "the control");
        let id = stranger.user.id;
        let released = apply(&world, id, AccountMeasure::ReleaseAddress).await.unwrap();
        assert!(released.person.email.as_str().ends_with("@released.invalid"));
        assert!(!released.email_verified && !world.accepts(&stranger.access_token).await);
        assert!(world.login("mina@example.com", PASSWORD).await.is_err());
        let owner = world.register("mina@example.com").await;
        assert_ne!(owner.user.id, id);
        let boss = boss(&world).await;
        let refused = apply(&world, boss, AccountMeasure::ReleaseAddress).await;
        assert_eq!(refused, Err(AccountMeasureError::AddressOfAdmin));
    }

    async fn every_measure_is_in_the_log_with_its_reason(world: World) {
        let boss = boss(&world).await;
        let id = world.register("mina@example.com").await.user.id;
        let path = |measure: &str| format!("/api/auth/admin/users/{id}/{measure}");
        let send = async |measure: &str, body: Value, role: UserRole| {
            let answer = post(&world, &path(measure)).user(boss.0, role).json(&body).send().await;
            (answer.status.as_u16(), answer.body["code"].as_str().unwrap_or_default().to_owned())
        };
        let reason = json!({ "reason": "resells tickets" });
        for measure in ["suspend", "reopen", "end-sessions", "release-address"] {
            let refused = send(measure, reason.clone(), UserRole::User).await;
            assert_eq!(refused, (403, "ADMIN_REQUIRED".to_owned()), "{measure}");
            let empty = send(measure, json!({ "reason": " " }), UserRole::Admin).await;
            assert_eq!(empty, (400, "INVALID_REASON".to_owned()), "{measure}");
            assert_eq!(send(measure, reason.clone(), UserRole::Admin).await.0, 200, "{measure}");
        }
        let refused = send("reopen", reason.clone(), UserRole::Admin).await;
        assert_eq!(refused, (409, "NOT_SUSPENDED".to_owned()));
        let log = get(&world, "/api/auth/admin/log").user(boss.0, UserRole::Admin).send().await;
        let text = log.body.to_string();
        let count = text.matches("resells tickets").count();
        assert_eq!(count, 4, "what was refused is not in it: {text}");
        for action in
            ["ACCOUNT_SUSPENDED", "ACCOUNT_REOPENED", "SESSIONS_ENDED", "ADDRESS_RELEASED"]
        {
            assert!(text.contains(action), "{action}: {text}");
        }
    }

    async fn an_account_is_shown_with_its_sessions_and_logins(world: World) {
        let session = world.register("mina@example.com").await;
        world.login("mina@example.com", "not the password").await.unwrap_err();
        let path = format!("/api/auth/admin/users/{}", session.user.id);
        let mine = get(&world, &path).of(&session).send().await;
        assert_eq!(mine.refusal(), (403, "ADMIN_REQUIRED"));
        let admin = boss(&world).await;
        let shown = get(&world, &path).user(admin.0, UserRole::Admin).send().await;
        assert_eq!(shown.body["user"]["email"], "mina@example.com");
        assert_eq!(shown.body["emailVerified"], false);
        assert_eq!(shown.body["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(shown.body["logins"][0]["failure"], "wrong_password");
        let nobody = format!("/api/auth/admin/users/{}", world.ids.next_id());
        let call = call(&world, Method::GET, &nobody).user(admin.0, UserRole::Admin);
        assert_eq!(call.send().await.refusal(), (404, "USER_NOT_FOUND"));
    }
}
