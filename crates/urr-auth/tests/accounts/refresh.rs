//! Staying logged in: rotation, repeats, and what happens to a stolen token.

use std::time::Duration;

use urr_auth::{AuthService, AuthSettings, ClientInfo, RefreshError, Session};
use urr_kernel::Uuid;
use urr_service::token::{ACCESS, AccessClaims, REFRESH, RefreshClaims, TokenFacts};

use crate::contract;
use crate::fixture::{
    DAY, MINUTE, PASSWORD, SECOND, World, all, cheap_settings, data_keys, password_change,
    token_key,
};

const ROUNDS: usize = 50;
const TABS: usize = 10;

async fn refresh(auth: &AuthService, session: &Session) -> Result<Session, RefreshError> {
    auth.refresh(&session.refresh_token, ClientInfo::default()).await
}

/// Ten tabs of one browser that all notice at once that their access token has expired.
async fn refresh_in_all_tabs(
    auth: &AuthService,
    token: &str,
) -> Vec<Result<Session, RefreshError>> {
    let tabs = (0..TABS).map(|_| {
        let (auth, token) = (auth.clone(), token.to_owned());
        async move { auth.refresh(&token, ClientInfo::default()).await }
    });
    all(tabs).await
}

contract! {
    async fn a_refresh_replaces_both_tokens_and_the_new_ones_work(world: World) {
        let first = world.register("mina@example.com").await;
        world.clock.advance(20 * MINUTE);
        let second = refresh(&world.auth, &first).await.unwrap();
        assert_ne!(second.refresh_token, first.refresh_token);
        assert_ne!(second.access_token, first.access_token);
        assert!(world.accepts(&first.access_token).await, "other tabs still use it");
        world.clock.advance(20 * MINUTE);
        assert!(!world.accepts(&first.access_token).await, "it has expired");
        assert!(world.accepts(&second.access_token).await);
        assert!(refresh(&world.auth, &second).await.is_ok());
    }

    async fn r_10_ten_tabs_that_refresh_at_once_stay_logged_in(world: World) {
        let mut session = world.register("mina@example.com").await;
        for _ in 0..ROUNDS {
            let outcomes = refresh_in_all_tabs(&world.auth, &session.refresh_token).await;
            let answers: Vec<Session> = outcomes.into_iter().map(Result::unwrap).collect();
            assert!(answers.iter().all(|answer| *answer == answers[0]), "one chain goes on");
            assert_ne!(answers[0].refresh_token, session.refresh_token);
            session = answers[0].clone();
            assert!(world.accepts(&session.access_token).await);
            world.clock.advance(MINUTE);
        }
        let tips = "select count(*) as n from refresh_tokens where rotated_at is null";
        assert_eq!(world.number(tips).await, 1);
        let all = "select count(*) as n from refresh_tokens";
        assert_eq!(world.number(all).await, i64::try_from(ROUNDS).unwrap() + 1);
    }

    async fn without_a_grace_ten_tabs_log_their_owner_out(world: World) {
        let settings = AuthSettings { refresh_grace: Duration::ZERO, ..cheap_settings() };
        let strict = world.auth_with(data_keys(), settings);
        let session = world.register("mina@example.com").await;
        let outcomes = refresh_in_all_tabs(&strict, &session.refresh_token).await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        let next = outcomes.into_iter().find_map(Result::ok).unwrap();
        assert_eq!(refresh(&strict, &next).await, Err(RefreshError::Revoked));
    }

    async fn tabs_at_different_links_of_the_chain_end_at_the_same_one(world: World) {
        for _ in 0..20 {
            let first = world.login_or_register("mina@example.com").await;
            let second = refresh(&world.auth, &first).await.unwrap();
            // Half of the tabs still have the first token, half the second.
            let tabs = (0..TABS).map(|n| {
                let auth = world.auth.clone();
                let token = if n % 2 == 0 { &first } else { &second }.refresh_token.clone();
                async move { auth.refresh(&token, ClientInfo::default()).await }
            });
            let outcomes = all(tabs).await;
            let answers: Vec<Session> = outcomes.into_iter().map(Result::unwrap).collect();
            // A tab with the first token may have asked before the second was replaced.
            let third = refresh(&world.auth, &second).await.unwrap();
            let is_ours = |answer: &Session| [&second, &third].contains(&answer);
            assert!(answers.iter().all(is_ours));
            assert!(refresh(&world.auth, &third).await.is_ok());
        }
    }

    async fn an_answer_that_was_lost_can_be_asked_for_again_within_the_grace(world: World) {
        let first = world.register("mina@example.com").await;
        world.clock.advance(MINUTE);
        let lost = refresh(&world.auth, &first).await.unwrap();
        world.clock.advance(29 * SECOND);
        let repeated = Session { expires_in: lost.expires_in - 29 * SECOND, ..lost.clone() };
        assert_eq!(refresh(&world.auth, &first).await, Ok(repeated));
        world.clock.advance(MINUTE);
        assert!(refresh(&world.auth, &lost).await.is_ok());
    }

    async fn d_2b_a_stolen_token_used_after_the_grace_ends_the_session_for_good(world: World) {
        let stolen = world.register("mina@example.com").await;
        let other_device = world.login("mina@example.com", PASSWORD).await.unwrap();
        world.clock.advance(MINUTE);
        let owners = refresh(&world.auth, &stolen).await.unwrap();
        world.clock.advance(31 * SECOND);
        assert_eq!(refresh(&world.auth, &stolen).await, Err(RefreshError::Reused));
        // The refusal did not undo the revocation.
        assert_eq!(refresh(&world.auth, &owners).await, Err(RefreshError::Revoked));
        assert_eq!(refresh(&world.auth, &stolen).await, Err(RefreshError::Revoked));
        assert!(!world.accepts(&owners.access_token).await);
        assert!(!world.accepts(&stolen.access_token).await);
        assert!(refresh(&world.auth, &other_device).await.is_ok(), "another login is not touched");
        let noted = "select count(*) as n from login_history where failure = 'token_reuse'";
        assert_eq!(world.number(noted).await, 1);
    }

    async fn a_thief_who_is_quick_gains_no_second_session(world: World) {
        let stolen = world.register("mina@example.com").await;
        let thiefs = refresh(&world.auth, &stolen).await.unwrap();
        let owners = refresh(&world.auth, &stolen).await.unwrap();
        assert_eq!(thiefs, owners, "both hold the same end of one chain");
        world.clock.advance(MINUTE);
        assert!(refresh(&world.auth, &thiefs).await.is_ok());
        world.clock.advance(MINUTE);
        assert_eq!(refresh(&world.auth, &owners).await, Err(RefreshError::Reused));
    }

    async fn d_2_every_login_is_remembered_and_what_is_not_is_refused(world: World) {
        let session = world.register("mina@example.com").await;
        let logged_in = world.login("mina@example.com", PASSWORD).await.unwrap();
        let stored = "select count(*) as n from refresh_tokens";
        assert_eq!(world.number(stored).await, 2);
        assert!(refresh(&world.auth, &logged_in).await.is_ok());
        // Signed with our own key, for a user who exists, but never given out.
        let issue = TokenFacts {
            subject: session.user.id.to_string(),
            id: world.ids.next_id(),
            issued_at: world.clock.now(),
            lifetime: 7 * DAY,
        };
        let now = world.clock.now();
        let known = token_key().verify::<RefreshClaims>(REFRESH, &session.refresh_token, now);
        for family_id in [world.ids.next_id(), known.unwrap().claims.family_id] {
            let unknown = token_key().sign(REFRESH, &issue, &RefreshClaims { family_id });
            let refused = world.auth.refresh(&unknown, ClientInfo::default()).await;
            assert_eq!(refused, Err(RefreshError::Invalid));
        }
    }

    async fn d_3_only_a_refresh_token_refreshes(world: World) {
        let session = world.register("mina@example.com").await;
        let foreign = urr_service::token::TokenKey::new(&[8; 32]);
        let issue = TokenFacts {
            subject: session.user.id.to_string(),
            id: Uuid::nil(),
            issued_at: world.clock.now(),
            lifetime: 7 * DAY,
        };
        let forged = foreign.sign(REFRESH, &issue, &RefreshClaims { family_id: Uuid::nil() });
        for token in [session.access_token.as_str(), forged.as_str(), "", "a.b.c"] {
            let refused = world.auth.refresh(token, ClientInfo::default()).await;
            assert_eq!(refused, Err(RefreshError::Invalid));
        }
        assert!(!world.accepts(&session.refresh_token).await, "nor is it an access token");
    }

    async fn a_refresh_token_lives_seven_days(world: World) {
        let session = world.register("mina@example.com").await;
        world.clock.advance(7 * DAY - SECOND);
        let next = refresh(&world.auth, &session).await.unwrap();
        world.clock.advance(7 * DAY);
        assert_eq!(refresh(&world.auth, &next).await, Err(RefreshError::Expired));
    }

    async fn the_tokens_say_who_and_for_how_long(world: World) {
        let session = world.register("mina@example.com").await;
        let now = world.clock.now();
        let access = token_key().verify::<AccessClaims>(ACCESS, &session.access_token, now);
        let access = access.unwrap();
        assert_eq!(access.subject, session.user.id.to_string());
        assert_eq!(access.claims.email, "mina@example.com");
        assert_eq!(access.expires_at, now + 30 * MINUTE);
        let refresh = token_key().verify::<RefreshClaims>(REFRESH, &session.refresh_token, now);
        let refresh = refresh.unwrap();
        assert_eq!(refresh.claims.family_id, access.claims.family_id);
        assert_eq!(refresh.expires_at, now + 7 * DAY);
    }

    /// Whichever comes first, nothing of the old session survives the change.
    async fn a_refresh_beside_a_change_of_password_leaves_no_session_behind(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        let passwords = ["강변의 밤을 걷다", PASSWORD];
        let mut session = world.login("mina@example.com", PASSWORD).await.unwrap();
        for round in 0..20 {
            let (old, new) = (passwords[(round + 1) % 2], passwords[round % 2]);
            let (auth, before) = (world.auth.clone(), session.clone());
            let refreshing = tokio::spawn(async move { refresh(&auth, &before).await });
            let change = password_change(old, new);
            let changed = world.auth.change_password(id, change, ClientInfo::default()).await.unwrap();
            match refreshing.await.unwrap() {
                Ok(refreshed) => {
                    assert!(!world.accepts(&refreshed.access_token).await);
                    let again = refresh(&world.auth, &refreshed).await;
                    assert_eq!(again, Err(RefreshError::Revoked));
                }
                Err(refusal) => assert_eq!(refusal, RefreshError::Revoked),
            }
            assert!(!world.accepts(&session.access_token).await);
            assert!(world.accepts(&changed.access_token).await);
            session = refresh(&world.auth, &changed).await.unwrap();
            world.clock.advance(SECOND);
        }
    }
}
