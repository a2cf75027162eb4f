//! A user's own sessions, logins and data, and the end of the account.

use axum::http::Method;
use axum::http::header::COOKIE;
use serde_json::json;
use urr_auth::{
    AccountDeletion, ClientInfo, Credentials, DeleteAccountError, Email, EndSessionError,
    ExportError, Reauthentication, ReauthenticationError, Session,
};
use urr_kernel::Secret;
use urr_service::Page;

use crate::contract;
use crate::fixture::{MINUTE, PASSWORD, World, client};
use crate::http::{call, get, post};

const EMAIL: &str = "mina@example.com";
const PHONE: &str =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1";

async fn login_from(world: &World, address: &str, user_agent: &str) -> Session {
    let email = Email::parse(EMAIL).unwrap();
    let credentials = Credentials { email, password: Secret::new(PASSWORD) };
    world.auth.login(credentials, client(address, user_agent)).await.unwrap()
}

fn deletion(accepted_losses: Option<&str>) -> AccountDeletion {
    AccountDeletion {
        reauthentication: Reauthentication::by_password(PASSWORD),
        accepted_losses: accepted_losses.map(str::to_owned),
    }
}

async fn users(world: &World) -> i64 {
    world.number("select count(*) as n from users where status <> 'deleted'").await
}

contract! {
    async fn sessions_are_listed_with_device_and_place_and_ended_one_by_one(world: World) {
        let first = world.register(EMAIL).await;
        world.clock.advance(MINUTE);
        let phone = login_from(&world, "203.0.113.7", PHONE).await;
        let id = first.user.id;
        let cookie = format!("access_token={}", phone.access_token);
        let list = get(&world, "/api/auth/me/sessions").of(&phone).header(COOKIE, &cookie);
        let list = list.send().await.body["sessions"].take();
        assert_eq!(list.as_array().unwrap().len(), 2);
        assert_eq!(list[0]["device"], "Safari · iPhone");
        assert_eq!(list[0]["address"], "203.0.113.7");
        assert_eq!(list[0]["method"], "password");
        assert_eq!((&list[0]["isCurrent"], &list[1]["isCurrent"]), (&json!(true), &json!(false)));
        // A refresh continues the session of the login.
        world.clock.advance(MINUTE);
        let next = world.auth.refresh(&phone.refresh_token, ClientInfo::default()).await.unwrap();
        let live = world.auth.list_sessions(id).await.unwrap();
        assert_eq!(live.len(), 2);
        assert_eq!(live[0].user_agent.as_deref(), Some(PHONE));
        assert_eq!(live[0].last_used_at, world.clock.now());

        world.auth.end_session(id, live[0].id).await.unwrap();
        assert!(!world.accepts(&next.access_token).await);
        assert!(world.accepts(&first.access_token).await, "the other one goes on");
        let gone = world.auth.end_session(id, live[0].id).await;
        assert_eq!(gone, Err(EndSessionError::NotFound));
    }

    async fn nobody_ends_or_sees_the_sessions_of_another(world: World) {
        let mina = world.register(EMAIL).await;
        let juno = world.register("juno@example.com").await;
        let session = world.auth.list_sessions(mina.user.id).await.unwrap()[0].id;
        let path = format!("/api/auth/me/sessions/{session}");
        let refused = call(&world, Method::DELETE, &path).of(&juno).send().await;
        assert_eq!(refused.refusal(), (404, "SESSION_NOT_FOUND"));
        assert!(world.accepts(&mina.access_token).await);
        let logins = get(&world, "/api/auth/me/logins").of(&juno).send().await;
        assert_eq!(logins.body["pagination"]["total"], 1);
        let ended = call(&world, Method::DELETE, &path).of(&mina).send().await;
        assert_eq!(ended.status.as_u16(), 200, "the control: their own they end");
    }

    async fn logins_and_failed_attempts_are_listed_newest_first(world: World) {
        let session = world.register(EMAIL).await;
        world.clock.advance(MINUTE);
        world.login(EMAIL, "not the password").await.unwrap_err();
        world.clock.advance(MINUTE);
        login_from(&world, "203.0.113.7", "curl/8.5.0").await;
        let (logins, total) =
            world.auth.list_logins(session.user.id, Page::new(1, 2)).await.unwrap();
        assert_eq!((logins.len(), total), (2, 3));
        assert_eq!(logins[1].failure.as_deref(), Some("wrong_password"));
        let shown = get(&world, "/api/auth/me/logins?limit=1").of(&session).send().await.body;
        assert_eq!(shown["logins"][0]["device"], "curl");
        assert_eq!(shown["logins"][0]["success"], true);
    }

    async fn a_copy_has_all_of_ones_own_data_and_nothing_of_others(world: World) {
        let mina = world.register(EMAIL).await;
        let juno = world.register("juno@example.com").await;
        world.tickets.sell(mina.user.id, 7);
        let path = "/api/auth/me/export";
        let body = json!({ "password": PASSWORD });
        let copy = post(&world, path).of(&mina).json(&body).send().await;
        assert_eq!(copy.status.as_u16(), 200);
        assert!(copy.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
        assert_eq!(copy.headers["cache-control"], "no-store");
        assert_eq!(copy.body["account"]["email"], EMAIL);
        assert_eq!(copy.body["account"]["phone"], "010-1234-5678");
        assert_eq!(copy.body["terms"].as_array().unwrap().len(), 2);
        assert_eq!(copy.body["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(copy.body["logins"][0]["method"], "registration");
        assert_eq!(copy.body["tickets"]["reservations"][0], "R-7ZQ0");
        assert_eq!(copy.body["payments"]["payments"][0]["of"], json!(mina.user.id.0));
        assert_eq!(copy.body["mails"]["mails"][0]["to"], json!(mina.user.id.0));
        assert_eq!(copy.body["community"]["posts"][0]["by"], json!(mina.user.id.0));
        let text = copy.body.to_string();
        assert!(!text.contains("argon2") && !text.contains("juno"), "{text}");
        let other = post(&world, path).of(&juno).json(&body).send().await;
        assert!(!other.body.to_string().contains("R-7ZQ0"));
    }

    async fn a_stolen_session_gets_no_copy_and_a_copy_is_never_half(world: World) {
        let mina = world.register(EMAIL).await;
        let export = async |proof| world.auth.export_account(mina.user.id, proof, world.context()).await;
        let wrong = export(Reauthentication::by_password("not the password")).await;
        let error = ReauthenticationError::WrongPassword;
        assert_eq!(wrong, Err(ExportError::NotConfirmed(error)));
        assert!(export(Reauthentication::by_session(&mina.access_token)).await.is_ok());
        world.clock.advance(11 * MINUTE);
        let old = export(Reauthentication::by_session(&mina.access_token)).await;
        assert_eq!(old, Err(ExportError::NotConfirmed(ReauthenticationError::RecentLoginRequired)));
        world.tickets.unavailable(true);
        let half = export(Reauthentication::by_password(PASSWORD)).await;
        assert_eq!(half, Err(ExportError::PartUnavailable("tickets")));
        world.tickets.unavailable(false);
        world.tickets.payments_away(true);
        let half = export(Reauthentication::by_password(PASSWORD)).await;
        assert_eq!(half, Err(ExportError::PartUnavailable("payments")));
        world.tickets.payments_away(false);
        world.tickets.mails_away(true);
        let body = json!({ "password": PASSWORD });
        let half = post(&world, "/api/auth/me/export").of(&mina).json(&body).send().await;
        assert_eq!(half.refusal(), (503, "EXPORT_UNAVAILABLE"));
        assert_eq!(half.body["missing"], "mails");
        world.tickets.mails_away(false);
        world.tickets.posts_away(true);
        let half = export(Reauthentication::by_password(PASSWORD)).await;
        assert_eq!(half, Err(ExportError::PartUnavailable("community")));
        world.tickets.posts_away(false);
        assert!(export(Reauthentication::by_password(PASSWORD)).await.is_ok(), "the control");
    }

    async fn whoever_has_valid_tickets_is_told_what_is_lost_first(world: World) {
        let mina = world.register(EMAIL).await;
        let id = mina.user.id;
        world.tickets.sell(id, 7);
        let close = async |accepted: Option<&str>| {
            world.auth.close_account(id, deletion(accepted), world.context()).await
        };
        let told = close(None).await;
        let Err(DeleteAccountError::Losses(losses)) = told else { panic!("{told:?}") };
        assert_eq!(losses.holdings[0].number.as_deref(), Some("R-7ZQ0"));
        assert_eq!(users(&world).await, 1);
        assert!(world.accepts(&mina.access_token).await, "nothing has happened");
        // Another purchase meanwhile: what was accepted is not what is lost.
        world.tickets.sell(id, 8);
        let changed = close(Some(&losses.name)).await;
        let Err(DeleteAccountError::Losses(losses)) = changed else { panic!("{changed:?}") };
        assert_eq!((losses.holdings.len(), users(&world).await), (2, 1));
        assert_eq!(close(Some(&losses.name)).await, Ok(()));
        assert_eq!(users(&world).await, 0);
    }

    /// The control: without the question the account is gone with its tickets.
    async fn without_the_question_tickets_are_lost_unnoticed(world: World) {
        let id = world.register(EMAIL).await.user.id;
        world.tickets.sell(id, 7);
        let proof = Reauthentication::by_password(PASSWORD);
        world.auth.delete_user(id, proof, world.context()).await.unwrap();
        assert_eq!(users(&world).await, 0);
    }

    async fn an_account_is_not_closed_while_nobody_knows_what_is_lost(world: World) {
        let id = world.register(EMAIL).await.user.id;
        world.tickets.unavailable(true);
        let closed = world.auth.close_account(id, deletion(None), world.context()).await;
        assert_eq!(closed, Err(DeleteAccountError::TicketsUnknown));
        assert_eq!(users(&world).await, 1);
        // A wrong password is refused before anything is asked about the user.
        let asked = world.tickets.asked();
        let guess = AccountDeletion {
            reauthentication: Reauthentication::by_password("not the password"),
            accepted_losses: None,
        };
        let wrong = world.auth.close_account(id, guess, world.context()).await;
        let error = ReauthenticationError::WrongPassword;
        assert_eq!(wrong, Err(DeleteAccountError::NotConfirmed(error)));
        assert_eq!(world.tickets.asked(), asked);
    }

    async fn deletion_over_http_names_what_is_lost(world: World) {
        let mina = world.register(EMAIL).await;
        world.tickets.sell(mina.user.id, 7);
        let delete = async |body| {
            call(&world, Method::DELETE, "/api/auth/me").of(&mina).json(&body).send().await
        };
        let told = delete(json!({ "password": PASSWORD })).await;
        assert_eq!(told.refusal(), (409, "LOSSES_NOT_ACCEPTED"));
        assert_eq!(told.body["losses"][0]["title"], "한강의 밤");
        let accepted = &told.body["lossesName"];
        let gone = delete(json!({ "password": PASSWORD, "acceptedLosses": accepted })).await;
        assert_eq!(gone.status.as_u16(), 200);
        assert_eq!(world.number("select count(*) as n from account_links").await, 0);
    }
}
