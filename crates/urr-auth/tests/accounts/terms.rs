//! Which versions of the terms are in force, what they say, and who has agreed to them.

use axum::http::StatusCode;
use axum::http::header::ACCEPT_LANGUAGE;
use serde_json::{Value, json};
use urr_auth::{
    AuthService, AuthSettings, Session, TermsText, TermsTextError, TermsTexts, TermsVersion,
    TermsVersions,
};

use crate::contract;
use crate::fixture::{MINUTE, World, all, cheap_settings, data_keys};
use crate::http::{Answer, get, post, registration, with};

/// The operator has put a new privacy policy into force.
fn with_new_privacy() -> AuthSettings {
    let privacy = TermsVersion::parse("2027-01").unwrap();
    AuthSettings { terms: TermsVersions { privacy, ..cheap_settings().terms }, ..cheap_settings() }
}

/// A process whose operator wrote these texts of the privacy terms and of nothing else.
fn with_privacy(version: &str, text: Option<&str>) -> AuthSettings {
    let privacy = TermsVersion::parse(version).unwrap();
    let mut terms_texts = TermsTexts::examples();
    if let Some(text) = text {
        terms_texts.privacy = TermsText::parse(text, &format!("{text} in English")).unwrap();
    }
    let terms = TermsVersions { privacy, ..cheap_settings().terms };
    AuthSettings { terms, terms_texts, ..cheap_settings() }
}

fn process(world: &World, version: &str, text: Option<&str>) -> AuthService {
    world.auth_with(data_keys(), with_privacy(version, text))
}

async fn is_refused(world: &World, version: &str, text: Option<&str>) -> bool {
    match process(world, version, text).record_terms().await {
        Ok(()) => false,
        Err(TermsTextError::OtherText { version: other, .. }) => other == version,
        Err(error) => panic!("{error}"),
    }
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

    async fn everybody_can_read_the_texts_in_both_languages(world: World) {
        let settings = || with_privacy("2027-01", Some("개인정보"));
        let read = |path: &str, language: &str| {
            let call = get(&world, path).header(ACCEPT_LANGUAGE, language);
            call.settings(&world, settings())
        };
        let privacy = |language: &str, text: &str| json!({
            "type": "PRIVACY", "version": "2027-01", "required": true, "language": language,
            "text": text, "isExample": false,
        });
        let korean = read("/api/auth/terms/PRIVACY", "ko-KR").send().await;
        assert_eq!(korean.body, privacy("ko", "개인정보"));
        let english = read("/api/auth/terms/PRIVACY", "en").send().await;
        assert_eq!(english.body, privacy("en", "개인정보 in English"));
        let service = read("/api/auth/terms/SERVICE", "ko").send().await;
        assert_eq!(service.body["isExample"], true, "the operator wrote none");
        assert!(service.body["text"].as_str().unwrap().contains("예시"));
        assert_eq!(read("/api/auth/terms/COOKIES", "ko").send().await.status, StatusCode::BAD_REQUEST);
    }

    async fn what_was_agreed_to_can_be_read_after_another_version_came(world: World) {
        process(&world, "2026-12", Some("처음")).record_terms().await.unwrap();
        process(&world, "2027-01", Some("다음")).record_terms().await.unwrap();
        let read = |version: &str| {
            let path = format!("/api/auth/terms/PRIVACY?version={version}");
            let call = get(&world, &path).header(ACCEPT_LANGUAGE, "ko");
            call.settings(&world, with_privacy("2027-01", Some("다음")))
        };
        assert_eq!(read("2026-12").send().await.body["text"], "처음");
        assert_eq!(read("2027-01").send().await.body["text"], "다음");
        for unknown in ["2025-01", "%3Cb%3E", ""] {
            assert_eq!(read(unknown).send().await.refusal(), (404, "TERMS_NOT_FOUND"), "{unknown}");
        }
    }

    async fn a_version_keeps_the_text_that_users_agreed_to(world: World) {
        assert!(!is_refused(&world, "2026-12", Some("처음")).await);
        assert!(!is_refused(&world, "2026-12", Some("처음")).await, "a restart");
        assert!(is_refused(&world, "2026-12", Some("바뀜")).await);
        assert!(is_refused(&world, "2026-12", None).await, "a process without the texts");
        assert!(!is_refused(&world, "2027-01", Some("바뀜")).await, "the control: a new version");
        let rows = "select count(*) as n from terms_documents where kind = 'PRIVACY'";
        assert_eq!(world.number(rows).await, 2);
    }

    async fn examples_are_no_terms_of_an_operator(world: World) {
        assert!(!is_refused(&world, "2026-11", None).await);
        // The text of an earlier program.
        let old = "update terms_documents set text_ko = 'alt' where kind = 'PRIVACY'";
        world.db.write(move |tx| tx.execute(old, &[])).await.unwrap_or_else(
            |error: urr_storage::StorageError| panic!("{error}"),
        );
        assert!(!is_refused(&world, "2026-11", None).await, "an upgrade brings its own");
        let count = "select count(*) as n from terms_documents where text_ko = 'alt'";
        assert_eq!(world.number(count).await, 0);
        assert!(is_refused(&world, "2026-11", Some("내 약관")).await, "its users agreed to an example");
    }

    async fn of_processes_that_start_at_once_with_different_texts_one_starts(world: World) {
        let texts = ["하나", "둘", "셋", "넷"];
        let starts = texts.map(|text| {
            let auth = process(&world, "2026-12", Some(text));
            async move { auth.record_terms().await.is_ok() }
        });
        let started = all(starts).await;
        assert_eq!(started.iter().filter(|started| **started).count(), 1);
    }
}
