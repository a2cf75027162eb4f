//! Links that are sent by mail: verifying an address, resetting a password, and whose account it is.

use serde_json::json;
use urr_auth::{
    AccountMeasure, ActionReason, AuthSettings, ClientInfo, Email, LinkError, LoginError,
    RefreshError, UserId,
};
use urr_kernel::Secret;
use urr_service::DataKeys;

use crate::contract;
use crate::fixture::{
    MINUTE, PASSWORD, SECOND, World, all, cheap_settings, data_keys, password_change,
};
use crate::http::{get, post};
use crate::personal_data::key;

const NEW: &str = "새로 고른 비밀번호";
const EMAIL: &str = "mina@example.com";

async fn forgot(world: &World, email: &str) -> Option<Secret> {
    let email = Email::parse(email).unwrap();
    world.auth.request_password_reset(&email, world.context()).await.unwrap();
    world.last_link("reset_password").await
}

async fn reset(world: &World, link: &Secret, password: &str) -> Result<(), LinkError> {
    let context = world.context();
    world.auth.reset_password(link, password, ClientInfo::default(), context).await
}

async fn is_verified(world: &World, id: UserId) -> bool {
    world.auth.get_user(id).await.unwrap().email_verified
}

async fn links(world: &World) -> i64 {
    world.number("select count(*) as n from account_links").await
}

contract! {
    async fn an_address_is_verified_once_by_the_link_of_the_registration(world: World) {
        let session = world.register(EMAIL).await;
        assert!(!is_verified(&world, session.user.id).await);
        let link = world.last_link("verify_email").await.unwrap();
        world.auth.verify_email(&link).await.unwrap();
        assert!(is_verified(&world, session.user.id).await);
        assert_eq!(world.auth.verify_email(&link).await, Err(LinkError::Invalid), "once");
        // The old access token says that the address is not verified, so it is revoked.
        assert!(!world.accepts(&session.access_token).await);
        let next = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await.unwrap();
        assert!(next.user.email_verified && world.accepts(&next.access_token).await);
        let again = world.auth.request_verification(session.user.id, world.context()).await;
        assert_eq!(again, Err(LinkError::AlreadyVerified));
    }

    async fn a_link_lasts_half_an_hour(world: World) {
        world.register(EMAIL).await;
        let verify = world.last_link("verify_email").await.unwrap();
        let link = forgot(&world, EMAIL).await.unwrap();
        world.clock.advance(30 * MINUTE - SECOND);
        assert!(world.last_link("reset_password").await.is_some());
        world.clock.advance(SECOND);
        assert_eq!(reset(&world, &link, NEW).await, Err(LinkError::Invalid));
        assert_eq!(world.auth.verify_email(&verify).await, Err(LinkError::Invalid));
        assert!(world.last_link("reset_password").await.is_none(), "and is not sent any more");
        world.clock.advance(30 * MINUTE + SECOND);
        let purged = world.auth.purge_expired(100).await.unwrap();
        assert_eq!((purged.account_links, purged.link_requests), (2, 2));
    }

    /// The control of the lifetime: with a longer one the same link works.
    async fn a_longer_life_makes_a_link_last_longer(world: World) {
        let settings = AuthSettings { link_lifetime: 60 * MINUTE, ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        world.try_register(&auth, EMAIL).await.unwrap();
        world.clock.advance(31 * MINUTE);
        let link = world.last_link("verify_email").await.unwrap();
        auth.verify_email(&link).await.unwrap();
    }

    async fn a_reset_sets_the_password_and_ends_all_sessions(world: World) {
        let session = world.register(EMAIL).await;
        let other = world.login(EMAIL, PASSWORD).await.unwrap();
        let link = forgot(&world, "MINA@example.com").await.unwrap();
        reset(&world, &link, NEW).await.unwrap();
        for session in [&session, &other] {
            assert!(!world.accepts(&session.access_token).await);
            let refreshed = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await;
            assert_eq!(refreshed, Err(RefreshError::Revoked));
        }
        let old = world.login(EMAIL, PASSWORD).await;
        assert_eq!(old, Err(LoginError::InvalidCredentials));
        assert!(world.login(EMAIL, NEW).await.is_ok());
        assert!(is_verified(&world, session.user.id).await, "who reads the mail has the address");
        assert_eq!(reset(&world, &link, PASSWORD).await, Err(LinkError::Invalid), "once");
    }

    async fn a_link_is_for_one_state_of_the_account(world: World) {
        let session = world.register(EMAIL).await;
        let first = forgot(&world, EMAIL).await.unwrap();
        world.clock.advance(SECOND);
        let second = forgot(&world, EMAIL).await.unwrap();
        let id = session.user.id;
        let change = password_change(PASSWORD, NEW);
        world.auth.change_password(id, change, ClientInfo::default()).await.unwrap();
        for link in [&first, &second] {
            assert_eq!(reset(&world, link, PASSWORD).await, Err(LinkError::Invalid));
        }
        let reason = ActionReason::parse("a test").unwrap();
        let third = forgot(&world, EMAIL).await.unwrap();
        world.auth.apply_measure(id, AccountMeasure::Suspend, None, &reason).await.unwrap();
        assert_eq!(reset(&world, &third, PASSWORD).await, Err(LinkError::Invalid));
        assert_eq!(world.last_link("reset_password").await.map(|_| ()), None);
        world.auth.apply_measure(id, AccountMeasure::Reopen, None, &reason).await.unwrap();
        assert_eq!(reset(&world, &third, PASSWORD).await, Ok(()), "it was only closed meanwhile");
    }

    /// A link of one kind, a guess and a token of a session are no link of the other kind.
    async fn a_link_is_for_one_purpose(world: World) {
        let session = world.register(EMAIL).await;
        let verify = world.last_link("verify_email").await.unwrap();
        let link = forgot(&world, EMAIL).await.unwrap();
        assert_eq!(world.auth.verify_email(&link).await, Err(LinkError::Invalid));
        for wrong in [verify, Secret::new(session.access_token), Secret::new(""), Secret::new("0")] {
            assert_eq!(reset(&world, &wrong, NEW).await, Err(LinkError::Invalid));
        }
        let refused = reset(&world, &link, "password").await;
        assert!(matches!(refused, Err(LinkError::InvalidPassword(_))), "{refused:?}");
        assert_eq!(reset(&world, &link, NEW).await, Ok(()), "a refused password uses nothing up");
    }

    async fn of_many_who_use_a_link_at_once_one_succeeds(world: World) {
        world.register(EMAIL).await;
        for round in 0..5 {
            let link = forgot(&world, EMAIL).await.unwrap();
            let attempts = (0..8).map(|n| {
                let (auth, context, link) = (world.auth.clone(), world.context(), link.clone());
                let password = format!("{NEW} {round} {n}");
                async move {
                    auth.reset_password(&link, &password, ClientInfo::default(), context).await.is_ok()
                }
            });
            let succeeded = all(attempts).await.into_iter().filter(|ok| *ok).count();
            assert_eq!(succeeded, 1);
            world.clock.advance(61 * MINUTE);
        }
    }

    /// An attacker who asks learns nothing, by the answer or by what is stored for the next one.
    async fn the_answer_is_the_same_with_and_without_an_account(world: World) {
        world.register(EMAIL).await;
        let mut answers = Vec::new();
        for email in [EMAIL, "nobody@example.com"] {
            let call = post(&world, "/api/auth/password/forgot");
            let answer = call.json(&json!({ "email": email })).send().await;
            answers.push((answer.status.as_u16(), answer.body));
        }
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 202);
        let kinds = "select count(*) as n from account_links where kind = 'reset_password'";
        assert_eq!(world.number(kinds).await, 1, "the control: only one of them has an account");
        let requests = "select count(*) as n from link_requests where kind = 'reset_password'";
        assert_eq!(world.number(requests).await, 2, "both cost a write");
    }

    async fn nobody_fills_a_mailbox_with_links(world: World) {
        let id = world.register(EMAIL).await.user.id;
        for _ in 0..10 {
            forgot(&world, EMAIL).await;
            forgot(&world, "nobody@example.com").await;
        }
        assert_eq!(links(&world).await, 4, "one of the registration and three resets");
        for _ in 0..2 {
            world.auth.request_verification(id, world.context()).await.unwrap();
        }
        let refused = world.auth.request_verification(id, world.context()).await;
        assert_eq!(refused, Err(LinkError::TooMany));
        world.clock.advance(60 * MINUTE);
        world.auth.request_verification(id, world.context()).await.unwrap();
        assert!(forgot(&world, EMAIL).await.is_some(), "an hour later it goes on");
    }

    /// The control: without the bound a mailbox is filled.
    async fn without_the_bound_every_request_sends_a_link(world: World) {
        let settings = AuthSettings { link_requests_max: u32::MAX, ..cheap_settings() };
        let auth = world.auth_with(data_keys(), settings);
        world.try_register(&auth, EMAIL).await.unwrap();
        let email = Email::parse(EMAIL).unwrap();
        for _ in 0..10 {
            auth.request_password_reset(&email, world.context()).await.unwrap();
        }
        assert_eq!(links(&world).await, 11);
    }

    async fn only_hashes_of_links_are_stored_and_events_name_ids_only(world: World) {
        world.register(EMAIL).await;
        let link = forgot(&world, EMAIL).await.unwrap();
        let again = world.last_link("reset_password").await.unwrap();
        assert_eq!(again.expose(), link.expose(), "a mail that is sent again has the same link");
        let stored = world.rows("select token_hash from account_links", |row| {
            row.get::<Vec<u8>>("token_hash")
        }).await;
        assert!(stored.iter().all(|hash| hash.len() == 32));
        let events = world.rows("select body from outbox", |row| row.get::<String>("body")).await;
        let events = events.join(" ");
        assert!(events.contains("ACCOUNT_LINK_ISSUED") && !events.contains(link.expose()));
        assert!(!events.contains("mina"), "{events}");
    }

    async fn links_work_while_the_data_key_is_changed(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), cheap_settings());
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), cheap_settings());
        world.try_register(&old, EMAIL).await.unwrap();
        both.request_password_reset(&Email::parse(EMAIL).unwrap(), world.context()).await.unwrap();
        let ids = world.rows("select id from account_links", |row| {
            row.get::<urr_kernel::Uuid>("id")
        }).await;
        for id in ids {
            let link = both.get_link(id).await.unwrap();
            assert!(link.is_some(), "either key makes links for the row as it is");
        }
    }

    /// A stranger registered the address. Its owner asks for a new password: the stranger's
    /// sessions, password and identity end.
    async fn an_unverified_account_gives_way_to_who_reads_the_mail(world: World) {
        let stranger = world.register(EMAIL).await;
        let id = stranger.user.id;
        let link = forgot(&world, EMAIL).await.unwrap();
        reset(&world, &link, NEW).await.unwrap();
        assert!(!world.accepts(&stranger.access_token).await);
        assert!(world.login(EMAIL, PASSWORD).await.is_err());
        let owner = world.login(EMAIL, NEW).await.unwrap();
        assert_eq!((owner.user.id, owner.user.person.phone.clone()), (id, None), "not theirs");
        // The control: an account that bought something, or was verified, keeps what it has.
        for (email, is_buyer) in [("buyer@example.com", true), ("verified@example.com", false)] {
            let user = world.register(email).await.user;
            match is_buyer {
                true => world.tickets.sold_long_ago(user.id),
                false => world.verify_email().await,
            }
            let link = forgot(&world, email).await.unwrap();
            reset(&world, &link, NEW).await.unwrap();
            let kept = world.login(email, NEW).await.unwrap().user.person.phone;
            assert_eq!(kept, user.person.phone, "{email}");
        }
    }

    async fn whether_an_account_bought_is_believed_only_if_the_ticket_service_says_so(world: World) {
        let user = world.register(EMAIL).await.user;
        world.tickets.unavailable(true);
        let link = forgot(&world, EMAIL).await.unwrap();
        reset(&world, &link, NEW).await.unwrap();
        let kept = world.login(EMAIL, NEW).await.unwrap().user.person.phone;
        assert_eq!(kept, user.person.phone, "no answer takes nothing away");
    }

    async fn links_over_http(world: World) {
        let session = world.register(EMAIL).await;
        let me = get(&world, "/api/auth/me").of(&session).send().await;
        assert_eq!(me.body["user"]["emailVerified"], false);
        let path = "/api/auth/email/verification";
        assert_eq!(post(&world, path).send().await.refusal().0, 401);
        assert_eq!(post(&world, path).of(&session).send().await.status.as_u16(), 202);
        let link = world.last_link("verify_email").await.unwrap();
        let verify = async |token: &str| {
            let call = post(&world, "/api/auth/email/verify");
            call.json(&json!({ "token": token })).send().await
        };
        assert_eq!(verify("guess").await.refusal(), (400, "LINK_INVALID"));
        assert_eq!(verify(link.expose()).await.status.as_u16(), 200);
        assert_eq!(verify(link.expose()).await.refusal(), (400, "LINK_INVALID"));
        let told = post(&world, path).of(&session).send().await;
        assert_eq!(told.refusal(), (409, "EMAIL_ALREADY_VERIFIED"));
        let me = get(&world, "/api/auth/me").of(&session).send().await;
        assert_eq!(me.body["user"]["emailVerified"], true);

        let forgot_call = post(&world, "/api/auth/password/forgot");
        let bad = forgot_call.json(&json!({ "email": "mina" })).send().await;
        assert_eq!(bad.refusal(), (400, "INVALID_EMAIL"));
        let link = forgot(&world, EMAIL).await.unwrap();
        let reset = async |password: &str| {
            let body = json!({ "token": link.expose(), "newPassword": password });
            post(&world, "/api/auth/password/reset").json(&body).send().await
        };
        assert_eq!(reset("short").await.refusal(), (400, "INVALID_PASSWORD"));
        assert_eq!(reset(NEW).await.status.as_u16(), 200);
        assert_eq!(reset(NEW).await.refusal(), (400, "LINK_INVALID"));
    }
}
