//! Google's own button: its token counts in the browser that asked for it, once.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, COOKIE};
use serde_json::json;

use super::*;

/// What a page has that shows the button.
pub struct Button {
    pub nonce: String,
    pub cookie: String,
}

impl Site {
    pub async fn button(&self) -> Button {
        let answer = self.call(Method::POST, "/api/auth/google/nonce", |_| {}).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let nonce = answer.body["nonce"].as_str().unwrap().to_owned();
        Button { nonce, cookie: answer.cookie("urr_button").unwrap().to_owned() }
    }

    /// Brings a token from the page to us.
    pub async fn press(&self, button: &Button, credential: &str, terms_agreed: bool) -> Answer {
        let body = json!({ "credential": credential, "termsAgreed": terms_agreed });
        self.call(Method::POST, "/api/auth/google", |request| {
            *request.body_mut() = Body::from(body.to_string());
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
            headers.insert(COOKIE, format!("urr_button={}", button.cookie).parse().unwrap());
        })
        .await
    }

    fn credential(&self, person: PersonalDetails, button: &Button) -> String {
        self.provider.credential(person, "urr-google", Some(&button.nonce))
    }
}

contract! {
    async fn the_token_of_the_button_is_checked_like_any_other(world: World) {
        let site = Site::new(&world).await;
        let button = site.button().await;
        let credential = site.credential(MINA, &button);
        for bad in [
            site.provider.credential(MINA, "another-client", Some(&button.nonce)),
            format!("{credential}x"),
            String::new(),
        ] {
            let answer = site.press(&button, &bad, true).await;
            assert_eq!(answer.refusal(), (401, "SOCIAL_LOGIN_REJECTED"));
        }
        let answer = site.press(&button, &credential, true).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert_eq!(answer.body["message"], "Google login successful");
        assert_eq!(answer.body["user"]["email"], "mina@example.com");
        let id = site.whose(&answer).await;
        assert_eq!(site.signed_in("google", MINA).await, id, "both ways lead to one account");

        let juno = world.register("juno@example.com").await.user.id;
        world.tickets.sold_long_ago(juno);
        let button = site.button().await;
        let answer = site.press(&button, &site.credential(JUNO, &button), true).await;
        assert_eq!(answer.refusal(), (409, "EMAIL_IN_USE"), "D-16");
    }

    async fn a_token_without_the_nonce_of_this_browser_is_refused(world: World) {
        let site = Site::new(&world).await;
        let (mine, foreign) = (site.button().await, site.button().await);
        // Caught elsewhere, asked for by another page, or injected into this browser.
        let foreign_token = site.credential(MINA, &foreign);
        let no_nonce = site.provider.credential(MINA, "urr-google", None);
        let made_up = site.provider.credential(MINA, "urr-google", Some("a nonce"));
        for credential in [&foreign_token, &no_nonce, &made_up] {
            let answer = site.press(&mine, credential, true).await;
            assert_eq!(answer.refusal(), (401, "SOCIAL_LOGIN_REJECTED"));
        }
        let without_cookie = Button { cookie: String::new(), nonce: mine.nonce.clone() };
        let answer = site.press(&without_cookie, &site.credential(MINA, &mine), true).await;
        assert_eq!(answer.refusal(), (400, "SOCIAL_STATE_INVALID"));
        // The nonce is known to the page; the cookie that it follows from is not.
        let nonce_as_cookie = Button { cookie: mine.nonce.clone(), nonce: mine.nonce.clone() };
        let answer = site.press(&nonce_as_cookie, &site.credential(MINA, &mine), true).await;
        assert_eq!(answer.refusal(), (401, "SOCIAL_LOGIN_REJECTED"));
        assert_eq!(users(&world).await, 0);
        // The control: each in its own browser.
        let answer = site.press(&mine, &site.credential(MINA, &mine), true).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let answer = site.press(&foreign, &foreign_token, true).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }

    async fn a_nonce_we_did_not_give_out_counts_for_nothing(world: World) {
        let site = Site::new(&world).await;
        // A page that could plant a cookie of its making would know the nonce that follows from it.
        let planted = urr_kernel::Secret::new("planted");
        let nonce = planted.derive("urr-auth:button:nonce").expose().to_owned();
        let button = Button { cookie: "planted".to_owned(), nonce };
        let answer = site.press(&button, &site.credential(MINA, &button), true).await;
        assert_eq!(answer.refusal(), (400, "SOCIAL_STATE_INVALID"));
        assert_eq!(users(&world).await, 0);
    }

    async fn a_nonce_counts_once_and_for_ten_minutes(world: World) {
        let site = Site::new(&world).await;
        let button = site.button().await;
        let credential = site.credential(MINA, &button);
        assert_eq!(site.press(&button, &credential, true).await.status, StatusCode::OK);
        let again = site.press(&button, &credential, true).await;
        assert_eq!(again.refusal(), (400, "SOCIAL_STATE_INVALID"));

        let [in_time, late] = [site.button().await, site.button().await];
        world.clock.advance(10 * MINUTE - SECOND);
        let answer = site.press(&in_time, &site.credential(MINA, &in_time), true).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        world.clock.advance(SECOND);
        let answer = site.press(&late, &site.credential(MINA, &late), true).await;
        assert_eq!(answer.refusal(), (400, "SOCIAL_STATE_INVALID"));
    }

    async fn who_has_to_read_the_terms_first_brings_the_same_token_again(world: World) {
        let site = Site::new(&world).await;
        let button = site.button().await;
        let credential = site.credential(MINA, &button);
        let answer = site.press(&button, &credential, false).await;
        assert_eq!(answer.refusal(), (400, "TERMS_REQUIRED"));
        let answer = site.press(&button, &credential, true).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        assert!(answer.set_cookie("urr_button").unwrap().contains("Max-Age=0"));
        let again = site.press(&button, &credential, true).await;
        assert_eq!(again.refusal(), (400, "SOCIAL_STATE_INVALID"));
    }

    async fn of_many_who_bring_one_token_at_once_one_gets_in(world: World) {
        let site = std::sync::Arc::new(Site::new(&world).await);
        let button = std::sync::Arc::new(site.button().await);
        let credential = site.credential(MINA, &button);
        let presses = (0..8).map(|_| {
            let (site, button) = (std::sync::Arc::clone(&site), std::sync::Arc::clone(&button));
            let credential = credential.clone();
            async move { site.press(&button, &credential, true).await.status }
        });
        let statuses = all(presses).await;
        assert_eq!(statuses.iter().filter(|status| **status == StatusCode::OK).count(), 1);
        assert_eq!(users(&world).await, 1);
    }

    async fn the_nonce_is_bound_by_a_cookie_that_scripts_cannot_read(world: World) {
        let site = Site::new(&world).await;
        let answer = site.call(Method::POST, "/api/auth/google/nonce", |_| {}).await;
        let (_, attributes) = answer.set_cookie("urr_button").unwrap().split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/api; Max-Age=600; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.body["clientId"], "urr-google");
        assert_ne!(answer.body["nonce"], answer.cookie("urr_button").unwrap());
    }
}
