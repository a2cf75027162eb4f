//! Access tokens that stop working before they expire.

use std::collections::BTreeSet;

use urr_auth::{ClientInfo, LogoutRequest, Reauthentication, RefreshError, Session};
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_service::token::{ACCESS, AccessClaims};

use crate::contract;
use crate::fixture::{
    MINUTE, PASSWORD, SECOND, World, all, change_role, password_change, token_key,
};

fn by_refresh_token(session: &Session) -> LogoutRequest {
    LogoutRequest { refresh_token: Some(session.refresh_token.clone()), ..LogoutRequest::default() }
}

fn jti(session: &Session, now: urr_kernel::Timestamp) -> Uuid {
    token_key().verify::<AccessClaims>(ACCESS, &session.access_token, now).unwrap().id
}

contract! {
    async fn d_20_logging_out_ends_this_session_and_its_access_tokens_only(world: World) {
        let first = world.register("mina@example.com").await;
        let second = world.auth.refresh(&first.refresh_token, ClientInfo::default()).await.unwrap();
        let other_device = world.login("mina@example.com", PASSWORD).await.unwrap();
        world.auth.logout(by_refresh_token(&second)).await.unwrap();
        for session in [&first, &second] {
            assert!(!world.accepts(&session.access_token).await, "rotated ones included");
            let refused = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await;
            assert_eq!(refused, Err(RefreshError::Revoked));
        }
        assert!(world.accepts(&other_device.access_token).await);
        // A second click changes nothing.
        world.auth.logout(by_refresh_token(&second)).await.unwrap();
        assert_eq!(world.number("select count(*) as n from revoked_access_tokens").await, 2);
    }

    async fn d_20_logging_out_everywhere_ends_all_sessions_of_this_user_only(world: World) {
        let mina = world.register("mina@example.com").await;
        let minas_phone = world.login("mina@example.com", PASSWORD).await.unwrap();
        let jun = world.register("jun@example.com").await;
        let logout = LogoutRequest { all_devices: true, ..by_refresh_token(&mina) };
        world.auth.logout(logout).await.unwrap();
        assert!(!world.accepts(&mina.access_token).await);
        assert!(!world.accepts(&minas_phone.access_token).await);
        assert!(world.accepts(&jun.access_token).await);
    }

    async fn who_logs_out_without_naming_a_session_ends_them_all(world: World) {
        let mina = world.register("mina@example.com").await;
        let logout = LogoutRequest { user_id: Some(mina.user.id), ..LogoutRequest::default() };
        world.auth.logout(logout).await.unwrap();
        assert!(!world.accepts(&mina.access_token).await);
    }

    async fn an_access_token_names_its_session_too(world: World) {
        let here = world.register("mina@example.com").await;
        let there = world.login("mina@example.com", PASSWORD).await.unwrap();
        let access_token = Some(here.access_token.clone());
        let logout = LogoutRequest { access_token, user_id: Some(here.user.id), ..LogoutRequest::default() };
        world.auth.logout(logout).await.unwrap();
        assert!(!world.accepts(&here.access_token).await);
        assert!(world.accepts(&there.access_token).await);
    }

    async fn nobody_logs_someone_else_out(world: World) {
        let mina = world.register("mina@example.com").await;
        let jun = world.register("jun@example.com").await;
        // With Jun's identity and Mina's token it is Jun who leaves.
        let logout = LogoutRequest { user_id: Some(jun.user.id), ..by_refresh_token(&mina) };
        world.auth.logout(logout).await.unwrap();
        assert!(world.accepts(&mina.access_token).await);
        assert!(!world.accepts(&jun.access_token).await);
        for nonsense in ["", "a.b.c", jun.access_token.as_str()] {
            let refresh_token = Some(nonsense.to_owned());
            world.auth.logout(LogoutRequest { refresh_token, ..LogoutRequest::default() }).await.unwrap();
        }
        assert!(world.accepts(&mina.access_token).await);
    }

    async fn d_20_a_change_of_role_revokes_access_but_not_the_session(world: World) {
        let session = world.register("mina@example.com").await;
        change_role(&world.auth, session.user.id, UserRole::Admin).await.unwrap();
        assert!(!world.accepts(&session.access_token).await);
        let next = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await.unwrap();
        assert!(world.accepts(&next.access_token).await);
        assert_eq!(next.user.role, UserRole::Admin);
        // The same role again is no change.
        change_role(&world.auth, session.user.id, UserRole::Admin).await.unwrap();
        assert!(world.accepts(&next.access_token).await);
    }

    async fn a_repeated_refresh_after_a_change_of_role_gives_tokens_that_work(world: World) {
        let first = world.register("mina@example.com").await;
        let second = world.auth.refresh(&first.refresh_token, ClientInfo::default()).await.unwrap();
        change_role(&world.auth, first.user.id, UserRole::Admin).await.unwrap();
        let repeated = world.auth.refresh(&first.refresh_token, ClientInfo::default()).await.unwrap();
        assert!(world.accepts(&repeated.access_token).await);
        let same = world.auth.refresh(&second.refresh_token, ClientInfo::default()).await.unwrap();
        assert_eq!(same, repeated);
    }

    /// A refresh that read the old role must not issue its token after the revocation.
    async fn d_20_a_refresh_beside_a_change_of_role_leaves_no_token_of_the_old_role(world: World) {
        let mut session = world.register("mina@example.com").await;
        // Someone else stays an administrator throughout.
        let boss = world.register("boss@example.com").await.user.id;
        change_role(&world.auth, boss, UserRole::Admin).await.unwrap();
        let id = session.user.id;
        for round in 0..30 {
            let role = if round % 2 == 0 { UserRole::Admin } else { UserRole::User };
            let (auth, before) = (world.auth.clone(), session.clone());
            let refreshing = tokio::spawn(async move {
                auth.refresh(&before.refresh_token, ClientInfo::default()).await
            });
            change_role(&world.auth, id, role).await.unwrap();
            let refreshed = refreshing.await.unwrap().unwrap();
            let now_is = world.auth.get_user(id).await.unwrap().role;
            let claims = token_key()
                .verify::<AccessClaims>(ACCESS, &refreshed.access_token, world.clock.now())
                .unwrap().claims;
            let in_force = world.accepts(&refreshed.access_token).await;
            assert!(!in_force || claims.role == now_is, "a live token says {}", claims.role);
            let next = world.auth.refresh(&refreshed.refresh_token, ClientInfo::default()).await;
            session = next.unwrap();
            world.clock.advance(MINUTE);
        }
    }

    async fn d_20_deleting_the_account_and_changing_the_password_revoke_access(world: World) {
        let first = world.register("mina@example.com").await;
        let other_device = world.login("mina@example.com", PASSWORD).await.unwrap();
        let new = "강변의 밤을 걷다".to_owned();
        let change = password_change(PASSWORD, &new);
        let id = first.user.id;
        let changed = world.auth.change_password(id, change, ClientInfo::default()).await.unwrap();
        assert!(!world.accepts(&first.access_token).await);
        assert!(!world.accepts(&other_device.access_token).await);
        assert!(world.accepts(&changed.access_token).await, "who changed it stays logged in");
        assert!(world.login("mina@example.com", PASSWORD).await.is_err());
        assert!(world.login("mina@example.com", &new).await.is_ok());
        world.auth.delete_user(id, Reauthentication::by_password(&new), world.context()).await.unwrap();
        assert!(!world.accepts(&changed.access_token).await);
    }

    async fn the_list_of_revoked_tokens_is_told_by_number(world: World) {
        let mut revoked = Vec::new();
        for _ in 0..3 {
            let session = world.login_or_register("mina@example.com").await;
            revoked.push(jti(&session, world.clock.now()));
            world.auth.logout(by_refresh_token(&session)).await.unwrap();
            world.clock.advance(SECOND);
        }
        let all = world.auth.list_revoked_tokens(0).await.unwrap();
        assert_eq!(all.iter().map(|token| token.jti).collect::<Vec<_>>(), revoked);
        let rest = world.auth.list_revoked_tokens(all[1].seq).await.unwrap();
        assert_eq!(rest, &all[2..]);
        assert_eq!(world.auth.list_revoked_tokens(all[2].seq).await.unwrap(), []);
        // What has expired anyway is not told.
        world.clock.advance(30 * MINUTE - 2 * SECOND);
        assert_eq!(world.auth.list_revoked_tokens(0).await.unwrap(), &all[2..]);
    }

    /// The gateways ask for what comes after the last number they saw. A number that becomes
    /// visible after a greater one would be a logout that never happens.
    async fn a_gateway_that_follows_the_list_misses_nothing_revoked_meanwhile(world: World) {
        let mut sessions = Vec::new();
        for n in 0..40 {
            sessions.push(world.register(&format!("fan{n}@example.com")).await);
        }
        let expected: BTreeSet<Uuid> =
            sessions.iter().map(|session| jti(session, world.clock.now())).collect();
        let auth = world.auth.clone();
        let leaving = tokio::spawn(all(sessions.into_iter().map(move |session| {
            let auth = auth.clone();
            async move { auth.logout(by_refresh_token(&session)).await.unwrap() }
        })));
        let (mut seen, mut after) = (BTreeSet::new(), 0);
        loop {
            let is_last = leaving.is_finished();
            let new = world.auth.list_revoked_tokens(after).await.unwrap();
            after = new.last().map_or(after, |token| token.seq);
            seen.extend(new.iter().map(|token| token.jti));
            if is_last && new.is_empty() {
                break;
            }
        }
        assert_eq!(seen, expected);
    }
}
