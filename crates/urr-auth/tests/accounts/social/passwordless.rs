//! Accounts without a password: a fresh login stands for it.

use super::*;

const NEW: &str = "강변의 밤을 걷다";

/// A logged-in user, with the token of the session.
struct Browser {
    user: UserId,
    token: String,
}

impl Site {
    async fn browser(&self, person: PersonalDetails) -> Browser {
        let answer = self.sign_in("google", person).await;
        let token = answer.cookie("access_token").unwrap().to_owned();
        Browser { user: self.whose(&answer).await, token }
    }

    async fn confirmed(&self, browser: &Browser, method: Method, body: Value) -> Answer {
        let path = match method {
            Method::DELETE => "/api/auth/me",
            _ => "/api/auth/password",
        };
        self.call(method, path, |request| {
            *request.body_mut() = Body::from(body.to_string());
            identify(request, Some(browser.user));
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
            headers.insert(COOKIE, format!("access_token={}", browser.token).parse().unwrap());
        })
        .await
    }

    async fn choose_password(&self, browser: &Browser) -> Answer {
        self.confirmed(browser, Method::PUT, json!({ "newPassword": NEW })).await
    }

    async fn has_password(&self, user: UserId) -> bool {
        self.auth.get_profile(user).await.unwrap().has_password
    }
}

contract! {
    async fn a_fresh_login_at_the_provider_gives_the_account_a_password(world: World) {
        let site = Site::new(&world).await;
        let browser = site.browser(MINA).await;
        assert!(!site.has_password(browser.user).await);
        world.clock.advance(10 * MINUTE - SECOND);
        let answer = site.choose_password(&browser).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert!(site.has_password(browser.user).await);
        assert_eq!(world.login("mina@example.com", NEW).await.unwrap().user.id, browser.user);
        assert!(!world.accepts(&browser.token).await, "as with any new password");
        assert!(world.accepts(answer.body["token"].as_str().unwrap()).await);
        assert_eq!(site.signed_in("google", MINA).await, browser.user, "the old way still leads in");
    }

    async fn an_old_session_gives_no_password_however_often_it_is_refreshed(world: World) {
        let site = Site::new(&world).await;
        let browser = site.browser(MINA).await;
        let answer = site.sign_in("google", MINA).await;
        let refresh = answer.cookie("refresh_token").unwrap().to_owned();
        world.clock.advance(10 * MINUTE);
        let refreshed = site.auth.refresh(&refresh, urr_auth::ClientInfo::default()).await.unwrap();
        let young_token = Browser { token: refreshed.access_token, user: browser.user };
        let no_token = Browser { token: String::new(), ..browser };
        for browser in [&young_token, &no_token] {
            let answer = site.choose_password(browser).await;
            assert_eq!(answer.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
            let answer = site.confirmed(browser, Method::DELETE, json!({})).await;
            assert_eq!(answer.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
        }
        assert!(!site.has_password(young_token.user).await);
        // The control: a new login.
        assert_eq!(site.choose_password(&site.browser(MINA).await).await.status, StatusCode::OK);
    }

    async fn the_session_must_be_ones_own_and_alive(world: World) {
        let site = Site::new(&world).await;
        let mina = site.browser(MINA).await;
        let juno = site.browser(JUNO).await;
        let mixed = Browser { user: mina.user, token: juno.token.clone() };
        let answer = site.choose_password(&mixed).await;
        assert_eq!(answer.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
        let logout = urr_auth::LogoutRequest {
            access_token: Some(mina.token.clone()), ..urr_auth::LogoutRequest::default()
        };
        site.auth.logout(logout).await.unwrap();
        let answer = site.choose_password(&mina).await;
        assert_eq!(answer.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
        assert_eq!(site.choose_password(&juno).await.status, StatusCode::OK);
    }

    async fn where_there_is_a_password_a_fresh_login_does_not_stand_for_it(world: World) {
        let site = Site::new(&world).await;
        let me = world.register("me@example.com").await.user.id;
        site.link("google", me, MINA).await;
        let browser = site.browser(MINA).await;
        assert_eq!(browser.user, me);
        let answer = site.choose_password(&browser).await;
        assert_eq!(answer.refusal(), (400, "PASSWORD_REQUIRED"));
        let answer = site.confirmed(&browser, Method::DELETE, json!({})).await;
        assert_eq!(answer.refusal(), (400, "PASSWORD_REQUIRED"));
        let wrong = json!({ "password": "not the password" });
        let answer = site.confirmed(&browser, Method::DELETE, wrong).await;
        assert_eq!(answer.refusal(), (403, "WRONG_PASSWORD"));
        world.login("me@example.com", PASSWORD).await.unwrap();
    }

    async fn an_account_without_a_password_can_be_closed(world: World) {
        let site = Site::new(&world).await;
        let browser = site.browser(MINA).await;
        let answer = site.confirmed(&browser, Method::DELETE, json!({})).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!((users(&world).await, identities(&world).await), (0, 0));
        assert!(!world.accepts(&browser.token).await);
        assert_ne!(site.signed_in("google", MINA).await, browser.user, "a new account");
    }

    async fn two_first_passwords_at_once_leave_one(world: World) {
        let site = std::sync::Arc::new(Site::new(&world).await);
        let browsers = [site.browser(MINA).await, site.browser(MINA).await];
        let choosing = browsers.into_iter().map(|browser| {
            let site = std::sync::Arc::clone(&site);
            async move { site.choose_password(&browser).await.status }
        });
        let statuses = all(choosing).await;
        assert_eq!(statuses.iter().filter(|status| **status == StatusCode::OK).count(), 1);
    }

    /// A program of the version before writes no time of the login.
    async fn a_session_whose_login_nobody_wrote_down_is_old(world: World) {
        let site = Site::new(&world).await;
        let browser = site.browser(MINA).await;
        let forget = |tx: &mut urr_storage::Tx<'_>| {
            tx.execute("update refresh_tokens set login_at = null", &[])
        };
        let forgotten: Result<u64, urr_storage::StorageError> = world.db.write(forget).await;
        assert_eq!(forgotten.unwrap(), 1);
        let answer = site.choose_password(&browser).await;
        assert_eq!(answer.refusal(), (403, "RECENT_LOGIN_REQUIRED"));
    }
}
