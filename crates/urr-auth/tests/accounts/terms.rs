//! Which versions of the terms are in force, and who has agreed to them.

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_auth::{AuthSettings, Session, TermsVersion, TermsVersions};

use crate::contract;
use crate::fixture::{MINUTE, World, cheap_settings};
use crate::http::{Answer, get, post, registration, with};

/// The operator has put a new privacy policy into force.
fn with_new_privacy() -> AuthSettings {
    let privacy = TermsVersion::parse("2027-01").unwrap();
    AuthSettings { terms: TermsVersions { privacy, ..cheap_settings().terms }, ..cheap_settings() }
}

fn answer(kind: &str, version: &str, agreed: bool) -> Value {
    json!({ "type": kind, "version": version, "agreed": agreed })
}

async fn answer_terms(world: &World, who: &Session, answers: Value) -> Answer {
    let call = post(world, "/api/auth/terms").of(who).json(&json!({ "terms": answers }));
    call.settings(world, with_new_privacy()).send().await
}

async fn outstanding(world: &World, who: &Session) -> Value {
    let call = get(world, "/api/auth/me").of(who).settings(world, with_new_privacy());
    call.send().await.body["user"]["termsOutstanding"].take()
}

contract! {
    async fn everybody_can_see_what_is_in_force(world: World) {
        let call = get(&world, "/api/auth/terms").settings(&world, with_new_privacy());
        assert_eq!(call.send().await.body, json!({ "terms": [
            { "type": "SERVICE", "version": "2026-11", "required": true },
            { "type": "PRIVACY", "version": "2027-01", "required": true },
            { "type": "MARKETING", "version": "2026-11", "required": false },
        ]}));
    }

    async fn registering_with_an_old_version_is_refused_and_says_which_is_in_force(world: World) {
        let register = |body: Value| {
            post(&world, "/api/auth/register").json(&body).settings(&world, with_new_privacy())
        };
        let old = registration("mina@example.com");
        let refused = register(old.clone()).send().await;
        assert_eq!(refused.refusal(), (400, "TERMS_OUTDATED"));
        let sentence = refused.body["error"].as_str().unwrap();
        assert!(sentence.contains("PRIVACY") && sentence.contains("2027-01"), "{sentence}");
        let future = json!([answer("SERVICE", "2026-11", true), answer("PRIVACY", "2028-01", true)]);
        let refused = register(with(old.clone(), "terms", future)).send().await;
        assert_eq!(refused.refusal(), (400, "TERMS_OUTDATED"));
        assert_eq!(world.number("select count(*) as n from users").await, 0);
        // The control: the same with the version in force.
        let new = json!([answer("SERVICE", "2026-11", true), answer("PRIVACY", "2027-01", true)]);
        let registered = register(with(old, "terms", new)).send().await;
        assert_eq!(registered.status, StatusCode::CREATED);
    }

    async fn who_agreed_to_an_older_version_is_told_and_can_agree(world: World) {
        let mina = world.register("mina@example.com").await;
        let me = get(&world, "/api/auth/me").of(&mina).send().await;
        assert_eq!(me.body["user"]["termsOutstanding"], json!([]), "the control: nothing is new");
        let privacy = json!([{ "type": "PRIVACY", "version": "2027-01", "required": true }]);
        assert_eq!(outstanding(&world, &mina).await, privacy);

        let agree = json!([answer("PRIVACY", "2027-01", true)]);
        let answered = answer_terms(&world, &mina, agree.clone()).await;
        assert_eq!(answered.body, json!({ "termsOutstanding": [] }));
        assert_eq!(outstanding(&world, &mina).await, json!([]));
        let rows = "select count(*) as n from terms_agreements where version = '2027-01' and agreed";
        assert_eq!(world.number(rows).await, 1);
        world.clock.advance(MINUTE);
        answer_terms(&world, &mina, agree).await;
        assert_eq!(world.number(rows).await, 1, "saying it again changes nothing");
    }

    async fn what_is_not_in_force_or_must_not_be_refused_is_not_taken(world: World) {
        let mina = world.register("mina@example.com").await;
        let before = world.number("select count(*) as n from terms_agreements").await;
        let twice = json!([answer("MARKETING", "2026-11", true), answer("MARKETING", "2026-11", false)]);
        for (answers, code) in [
            (json!([answer("PRIVACY", "2026-11", true)]), "TERMS_OUTDATED"),
            (json!([answer("PRIVACY", "2027-01", false)]), "TERMS_REQUIRED"),
            (json!([answer("COOKIES", "2027-01", true)]), "INVALID_BODY"),
            (twice, "INVALID_TERMS"),
        ] {
            let refused = answer_terms(&world, &mina, answers).await;
            assert_eq!(refused.refusal(), (400, code));
        }
        let after = world.number("select count(*) as n from terms_agreements").await;
        assert_eq!(before, after);
        let anonymous = post(&world, "/api/auth/terms").json(&json!({ "terms": [] })).send().await;
        assert_eq!(anonymous.refusal(), (401, "AUTHENTICATION_REQUIRED"));
    }

    async fn marketing_can_be_agreed_to_and_refused_at_any_time_even_twice_at_once(world: World) {
        let mina = world.register("mina@example.com").await;
        // The clock stands still: of two answers at one moment the second counts.
        for agreed in [true, false, true] {
            let answers = json!([answer("MARKETING", "2026-11", agreed)]);
            assert_eq!(answer_terms(&world, &mina, answers).await.status, StatusCode::OK);
        }
        let sql = "select count(*) as n from terms_agreements where kind = 'MARKETING' and agreed";
        assert_eq!(world.number(sql).await, 1);
    }
}
