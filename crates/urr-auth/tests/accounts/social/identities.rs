//! The services that an account is connected to: seeing them, and letting one go.

use super::*;

impl Site {
    async fn list(&self, user: UserId) -> Vec<String> {
        let path = "/api/auth/me/identities";
        let answer = self.call(Method::GET, path, |request| identify(request, Some(user))).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let listed = answer.body["identities"].as_array().unwrap().clone();
        listed.iter().map(|identity| identity["provider"].as_str().unwrap().to_owned()).collect()
    }

    async fn unlink(&self, user: Option<UserId>, provider: &str) -> Answer {
        let path = format!("/api/auth/me/identities/{provider}");
        self.call(Method::DELETE, &path, |request| identify(request, user)).await
    }
}

contract! {
    async fn what_is_connected_is_listed_with_its_time_and_let_go(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("me@example.com").await.user.id;
        let other = site.signed_in("google", JUNO).await;
        assert_eq!(site.list(me).await, [""; 0]);
        site.link("google", me, MINA).await;
        world.clock.advance(MINUTE);
        site.link("kakao", me, MINA).await;
        let answer = site.call(Method::GET, "/api/auth/me/identities", |request| {
            identify(request, Some(me));
        });
        assert_eq!(answer.await.body, json!({ "identities": [
            { "provider": "google", "linkedAt": "2026-11-15T00:30:00Z" },
            { "provider": "kakao", "linkedAt": "2026-11-15T00:31:00Z" },
        ]}));
        for provider in ["google", "kakao"] {
            let answer = site.unlink(Some(me), provider).await;
            assert_eq!(answer.status, StatusCode::OK, "{}: a password is left", answer.body);
        }
        assert_eq!(site.list(me).await, [""; 0]);
        assert_eq!(site.list(other).await, ["google"], "nobody else's");
        let person = PersonalDetails { email: Some("new@example.com"), ..MINA };
        assert_ne!(site.signed_in("google", person).await, me, "it leads there no longer");
    }

    /// What is connected leads in for good: who found an open session must not make it last.
    async fn connecting_needs_a_recent_login_or_the_password(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("me@example.com").await;
        let token = me.access_token.as_str();
        let ask = |token, with| site.ask_link("google", me.user.id, token, with);
        world.clock.advance(10 * MINUTE - SECOND);
        assert_eq!(ask(token, json!({})).await.status, StatusCode::OK);
        world.clock.advance(SECOND);
        for token in [token, ""] {
            let refused = ask(token, json!({})).await;
            assert_eq!(refused.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
            assert_eq!(refused.set_cookie("urr_social"), None);
        }
        let wrong = json!({ "password": "not the password" });
        assert_eq!(ask(token, wrong).await.refusal(), (403, "WRONG_PASSWORD"));
        // The control: the password stands for the login.
        assert_eq!(ask(token, json!({ "password": PASSWORD })).await.status, StatusCode::OK);
    }

    async fn the_last_way_in_stays(world: World) {
        let site = Site::new(&world).await;
        let me = site.signed_in("google", MINA).await;
        let refused = site.unlink(Some(me), "google").await;
        assert_eq!(refused.refusal(), (409, "LAST_WAY_IN"));
        assert_eq!(site.signed_in("google", MINA).await, me);
        // A service that is no longer set up is no way in.
        site.link("kakao", me, MINA).await;
        let no_kakao = Site::with(&world, site.provider.clone(), |social| social.kakao = None);
        let refused = no_kakao.unlink(Some(me), "google").await;
        assert_eq!(refused.refusal(), (409, "LAST_WAY_IN"));
        // The control: with another way in it may go, and then that one must stay.
        assert_eq!(site.unlink(Some(me), "google").await.status, StatusCode::OK);
        assert_eq!(site.unlink(Some(me), "kakao").await.refusal(), (409, "LAST_WAY_IN"));
        assert_eq!(site.list(me).await, ["kakao"]);
    }

    async fn of_two_ways_that_are_let_go_at_once_one_stays(world: World) {
        let site = std::sync::Arc::new(Site::new(&world).await);
        let me = site.signed_in("google", MINA).await;
        site.link("kakao", me, MINA).await;
        let unlinking = ["google", "kakao"].into_iter().map(|provider| {
            let site = std::sync::Arc::clone(&site);
            async move { site.unlink(Some(me), provider).await.status }
        });
        let mut statuses = all(unlinking).await;
        statuses.sort();
        assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT]);
        assert_eq!(site.list(me).await.len(), 1);
    }

    async fn what_is_not_connected_or_not_mine_cannot_be_let_go(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("me@example.com").await.user.id;
        site.signed_in("google", JUNO).await;
        let nobody = UserId(Uuid::from_u128(7));
        for (user, provider) in [(me, "google"), (me, "facebook"), (nobody, "google")] {
            let answer = site.unlink(Some(user), provider).await;
            assert_eq!(answer.refusal(), (404, "IDENTITY_NOT_LINKED"), "{provider}");
        }
        assert_eq!(site.unlink(None, "google").await.status, StatusCode::UNAUTHORIZED);
        let path = "/api/auth/me/identities";
        let anonymous = site.call(Method::GET, path, |_| {}).await;
        assert_eq!(anonymous.status, StatusCode::UNAUTHORIZED);
        assert_eq!(identities(&world).await, 1);
    }
}
