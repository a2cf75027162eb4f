//! A person proves who they are to a provider, and has one account.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get as on_get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use urr_auth::{
    AuthService, AuthSettings, CompleteVerificationError, IdentityProvider, IdentityProviderError,
    PortOneIdentity, PurgeCounts, SandboxPerson, Session, StartVerificationError, UserId,
    VerificationId,
};
use urr_kernel::{Secret, Timestamp, Uuid};
use urr_service::data_keys::KeyRotationProgress;
use urr_service::{DataKeys, Metrics};

use crate::contract;
use crate::fixture::{DAY, MINUTE, SECOND, World, all, cheap_settings, data_keys};
use crate::http::{Answer, call, post};
use crate::personal_data::{contains, key, stored};

pub fn sandbox() -> AuthSettings {
    AuthSettings { identity: IdentityProvider::Sandbox, ..cheap_settings() }
}

pub fn sandbox_auth(world: &World) -> AuthService {
    world.auth_with(data_keys(), sandbox())
}

pub fn mina() -> SandboxPerson {
    named("김민아")
}

pub fn named(name: &str) -> SandboxPerson {
    SandboxPerson { name: name.to_owned(), birth_date: "1999-01-31".to_owned() }
}

pub type Completed = Result<Timestamp, CompleteVerificationError>;

/// Begins an attempt and completes it.
pub async fn verify(auth: &AuthService, user_id: UserId, person: SandboxPerson) -> Completed {
    let id = auth.start_verification(user_id).await.unwrap().id;
    auth.complete_verification(user_id, id, Some(person)).await
}

pub async fn http(
    world: &World,
    settings: &AuthSettings,
    path: &str,
    who: &Session,
    body: Value,
) -> Answer {
    let call = post(world, path).of(who).json(&body);
    call.settings(world, settings.clone()).send().await
}

async fn status(world: &World) -> Vec<String> {
    let sql = "select status from identity_verifications order by created_at, id";
    world.rows(sql, |row| row.get("status")).await
}

contract! {
    /// The ticket service counts persons by these.
    async fn a_person_has_the_same_hash_with_every_account_and_no_name_in_it(world: World) {
        let settings = AuthSettings { departure_kept: std::time::Duration::ZERO, ..sandbox() };
        let auth = world.auth_with(data_keys(), settings);
        let first = world.register("mina@example.com").await.user.id;
        let other = world.register("junho@example.com").await.user.id;
        assert_eq!(auth.person_hashes(first).await.unwrap(), [""; 0], "not verified");
        verify(&auth, first, mina()).await.unwrap();
        verify(&auth, other, named("박준호")).await.unwrap();
        let hashes = auth.person_hashes(first).await.unwrap();
        assert_eq!((hashes.len(), hashes[0].len()), (1, 64));
        assert_ne!(hashes, auth.person_hashes(other).await.unwrap());
        // It is not the index by which the auth service itself finds the person.
        let indexes = world.rows("select ci_index from identities", |row| row.get::<Vec<u8>>("ci_index"));
        let indexes = indexes.await;
        assert!(!indexes.iter().any(|index| urr_kernel::hex::encode(index) == hashes[0]));
    }

    async fn a_person_is_verified_and_their_account_says_so(world: World) {
        let session = world.register("mina@example.com").await;
        let settings = sandbox();
        let started = http(&world, &settings, "/api/auth/identity/start", &session, json!({})).await;
        assert_eq!(started.status, StatusCode::CREATED);
        let id = &started.body["verificationId"];
        assert_eq!(started.body, json!({
            "verificationId": id, "provider": "sandbox", "expiresAt": "2026-11-15T00:45:00Z",
            "storeId": null, "channelKey": null,
        }));
        let complete = |sandbox: Value| {
            let body = json!({ "verificationId": id, "sandbox": sandbox });
            http(&world, &settings, "/api/auth/identity/complete", &session, body)
        };
        let me = || {
            let me = call(&world, Method::GET, "/api/auth/me").of(&session);
            me.settings(&world, settings.clone()).send()
        };
        let pending = complete(Value::Null).await;
        assert_eq!(pending.refusal(), (409, "VERIFICATION_PENDING"));
        assert_eq!(me().await.body["user"]["identityVerified"], false);
        let person = json!({ "name": "김민아", "birthDate": "1999-01-31" });
        let done = complete(person).await;
        let expected = json!({ "identityVerified": true, "verifiedAt": "2026-11-15T00:30:00Z" });
        assert_eq!((done.status, &done.body), (StatusCode::OK, &expected));
        assert_eq!(me().await.body["user"]["identityVerified"], true);
        // A repeated request gets the same answer, and asks nobody: not even for another person.
        world.clock.advance(MINUTE);
        let again = complete(json!({ "name": "FAILED", "birthDate": "" })).await;
        assert_eq!(again.body, expected);
        let restart = http(&world, &settings, "/api/auth/identity/start", &session, json!({})).await;
        assert_eq!(restart.refusal(), (409, "ALREADY_VERIFIED"));
    }

    async fn strangers_and_installations_without_a_provider_are_turned_away(world: World) {
        let session = world.register("mina@example.com").await;
        for path in ["/api/auth/identity/start", "/api/auth/identity/complete"] {
            let body = json!({ "verificationId": Uuid::from_u128(1) });
            let anonymous = post(&world, path).json(&body).settings(&world, sandbox()).send().await;
            assert_eq!(anonymous.refusal(), (401, "AUTHENTICATION_REQUIRED"));
            let off = http(&world, &cheap_settings(), path, &session, body).await;
            assert_eq!(off.refusal(), (404, "IDENTITY_CHECK_OFF"));
        }
    }

    async fn an_attempt_belongs_to_the_user_who_began_it(world: World) {
        let auth = sandbox_auth(&world);
        let mina_id = world.register("mina@example.com").await.user.id;
        let thief = world.register("thief@example.com").await.user.id;
        let id = auth.start_verification(mina_id).await.unwrap().id;
        let stolen = auth.complete_verification(thief, id, Some(mina())).await;
        assert_eq!(stolen, Err(CompleteVerificationError::NotFound));
        let unknown = VerificationId(Uuid::from_u128(404));
        let unknown = auth.complete_verification(thief, unknown, Some(mina())).await;
        assert_eq!(unknown, Err(CompleteVerificationError::NotFound), "and looks the same");
        assert!(!auth.get_profile(thief).await.unwrap().identity_verified);
        assert!(auth.complete_verification(mina_id, id, Some(mina())).await.is_ok(), "control");
        // Once used it is of no use to anybody else either.
        let stolen = auth.complete_verification(thief, id, Some(mina())).await;
        assert_eq!(stolen, Err(CompleteVerificationError::NotFound));
    }

    async fn a_person_has_one_account(world: World) {
        let auth = sandbox_auth(&world);
        let first = world.register("mina@example.com").await.user.id;
        let second = world.register("mina2@example.com").await;
        verify(&auth, first, mina()).await.unwrap();
        let id = auth.start_verification(second.user.id).await.unwrap().id;
        let body = json!({
            "verificationId": id.0, "sandbox": { "name": "김민아", "birthDate": "1999-01-31" },
        });
        for code in ["ALREADY_VERIFIED_ELSEWHERE", "VERIFICATION_FAILED"] {
            let path = "/api/auth/identity/complete";
            let refused = http(&world, &sandbox(), path, &second, body.clone()).await;
            assert_eq!(refused.body["code"], code);
        }
        assert_eq!(status(&world).await, ["verified", "failed"], "the refusal was committed");
        assert!(!auth.get_profile(second.user.id).await.unwrap().identity_verified);
        // The control: another person may have that account.
        assert!(verify(&auth, second.user.id, named("박준")).await.is_ok());
    }

    async fn of_many_accounts_of_a_person_that_verify_at_once_one_succeeds(world: World) {
        let auth = sandbox_auth(&world);
        let mut attempts = Vec::new();
        for n in 0..8 {
            let user_id = world.register(&format!("fan{n}@example.com")).await.user.id;
            attempts.push((user_id, auth.start_verification(user_id).await.unwrap().id));
        }
        let completed = all(attempts.into_iter().map(|(user_id, id)| {
            let auth = auth.clone();
            async move { auth.complete_verification(user_id, id, Some(mina())).await }
        })).await;
        assert_eq!(completed.iter().filter(|completed| completed.is_ok()).count(), 1);
        let elsewhere = Err(CompleteVerificationError::VerifiedElsewhere);
        assert_eq!(completed.iter().filter(|completed| **completed == elsewhere).count(), 7);
        assert_eq!(world.number("select count(*) as n from identities").await, 1);
    }

    async fn one_attempt_completed_many_times_at_once_counts_once(world: World) {
        let auth = sandbox_auth(&world);
        let user_id = world.register("mina@example.com").await.user.id;
        let id = auth.start_verification(user_id).await.unwrap().id;
        let completed = all((0..8).map(|n| {
            let (auth, person) = (auth.clone(), named(&format!("사람{n}")));
            async move { auth.complete_verification(user_id, id, Some(person)).await }
        })).await;
        assert!(completed.iter().all(|completed| *completed == Ok(world.clock.now())));
        assert_eq!(world.number("select count(*) as n from identities").await, 1);
    }

    async fn an_account_stays_with_its_person(world: World) {
        let auth = sandbox_auth(&world);
        let user_id = world.register("mina@example.com").await.user.id;
        let [first, same, other] = [
            auth.start_verification(user_id).await.unwrap().id,
            auth.start_verification(user_id).await.unwrap().id,
            auth.start_verification(user_id).await.unwrap().id,
        ];
        let verified_at = auth.complete_verification(user_id, first, Some(mina())).await.unwrap();
        world.clock.advance(MINUTE);
        let again = auth.complete_verification(user_id, same, Some(mina())).await;
        assert_eq!(again, Ok(verified_at));
        let sold = auth.complete_verification(user_id, other, Some(named("박준"))).await;
        assert_eq!(sold, Err(CompleteVerificationError::OtherPerson));
    }

    async fn what_goes_wrong_in_the_sandbox_ends_the_attempt_or_leaves_it_open(world: World) {
        let auth = sandbox_auth(&world);
        let user_id = world.register("mina@example.com").await.user.id;
        for (name, expected, then) in [
            ("FAILED", CompleteVerificationError::Failed, "failed"),
            ("NO-CI", CompleteVerificationError::KeyMissing, "failed"),
            ("PENDING", CompleteVerificationError::Pending, "started"),
            ("SLOW", IdentityProviderError::Timeout.into(), "started"),
            ("WRONG-ID", IdentityProviderError::OtherVerification.into(), "started"),
        ] {
            let id = auth.start_verification(user_id).await.unwrap().id;
            let completed = auth.complete_verification(user_id, id, Some(named(name))).await;
            assert_eq!(completed, Err(expected), "{name}");
            assert_eq!(status(&world).await.last().unwrap(), then, "{name}");
            assert!(!auth.get_profile(user_id).await.unwrap().identity_verified, "{name}");
            if then == "failed" {
                let again = auth.complete_verification(user_id, id, Some(mina())).await;
                assert_eq!(again, Err(CompleteVerificationError::Failed), "an attempt ends once");
            }
        }
    }

    async fn an_attempt_lives_for_a_quarter_of_an_hour_and_there_are_not_many(world: World) {
        let auth = sandbox_auth(&world);
        let user_id = world.register("mina@example.com").await.user.id;
        let id = auth.start_verification(user_id).await.unwrap().id;
        for _ in 1..10 {
            auth.start_verification(user_id).await.unwrap();
        }
        let many = auth.start_verification(user_id).await;
        assert_eq!(many, Err(StartVerificationError::TooMany));
        world.clock.advance(15 * MINUTE);
        for _ in 0..2 {
            let late = auth.complete_verification(user_id, id, Some(mina())).await;
            assert_eq!(late, Err(CompleteVerificationError::Expired));
        }
        assert_eq!(status(&world).await[0], "expired");
        let id = auth.start_verification(user_id).await.unwrap().id;
        world.clock.advance(15 * MINUTE - SECOND);
        assert!(auth.complete_verification(user_id, id, Some(mina())).await.is_ok(), "the control");
        world.clock.advance(91 * DAY);
        let purged = auth.purge_expired(100).await.unwrap();
        let expected = PurgeCounts {
            refresh_tokens: 1,
            verifications: 11,
            account_links: 1,
            link_requests: 1,
            ..PurgeCounts::default()
        };
        assert_eq!(purged, expected);
        assert!(auth.get_profile(user_id).await.unwrap().identity_verified, "that is not forgotten");
    }

    async fn the_keys_of_a_person_cannot_be_read_in_what_is_stored(world: World) {
        let user_id = world.register("mina@example.com").await.user.id;
        let provider = SocialProvider::start().await;
        provider.says(|id| Reply::Json(verified(id)));
        let auth = provider.auth(&world);
        let id = auth.start_verification(user_id).await.unwrap().id;
        auth.complete_verification(user_id, id, None).await.unwrap();
        let stored = stored(&world);
        for secret in [CI, DI, "CANARY", "새장 속", "1999-01-31", "01012345678"] {
            assert!(!contains(&stored, secret), "{secret}");
        }
        assert!(contains(&stored, "portone"), "the control: what is stored in clear is found");
    }

    async fn identities_follow_when_the_data_key_is_changed(world: World) {
        let old = world.auth_with(DataKeys::new(key(1), &[]).unwrap(), sandbox());
        let both = world.auth_with(DataKeys::new(key(2), &[key(1)]).unwrap(), sandbox());
        let new = world.auth_with(DataKeys::new(key(2), &[]).unwrap(), sandbox());
        let mut ids = Vec::new();
        for n in 0..3 {
            let email = format!("fan{n}@example.com");
            ids.push(world.try_register(&old, &email).await.unwrap().user.id);
        }
        verify(&old, ids[0], mina()).await.unwrap();
        // Before the change is done, the person is known by the old key.
        let elsewhere = Err(CompleteVerificationError::VerifiedElsewhere);
        assert_eq!(verify(&both, ids[1], mina()).await, elsewhere);
        let rotation = both.rotate_personal_data(10).await.unwrap();
        assert_eq!(rotation, KeyRotationProgress { rotated: 4, remaining: 0 });
        assert_eq!(verify(&new, ids[1], mina()).await, elsewhere, "the old key can go");
        // The control: without the right keys nobody is recognised.
        assert!(verify(&old, ids[2], mina()).await.is_ok());
    }

    async fn what_the_sandbox_believed_counts_for_nothing_elsewhere(world: World) {
        let user_id = world.register("mina@example.com").await.user.id;
        let sandbox = sandbox_auth(&world);
        verify(&sandbox, user_id, mina()).await.unwrap();
        assert!(sandbox.get_profile(user_id).await.unwrap().identity_verified);
        assert!(!world.auth.get_profile(user_id).await.unwrap().identity_verified, "with no provider");
        let provider = SocialProvider::start().await;
        provider.says(|id| Reply::Json(verified(id)));
        let real = provider.auth(&world);
        assert!(!real.get_profile(user_id).await.unwrap().identity_verified);
        let id = real.start_verification(user_id).await.unwrap().id;
        assert!(real.complete_verification(user_id, id, None).await.is_ok());
        assert!(real.get_profile(user_id).await.unwrap().identity_verified);
        // The control: what a real provider told counts everywhere.
        assert!(world.auth.get_profile(user_id).await.unwrap().identity_verified);
        assert_eq!(world.number("select count(*) as n from identities").await, 1);
    }

    async fn portone_is_asked_by_our_id_and_with_the_secret(world: World) {
        let session = world.register("mina@example.com").await;
        let provider = SocialProvider::start().await;
        let settings = provider.settings();
        let started = http(&world, &settings, "/api/auth/identity/start", &session, json!({})).await;
        let id = &started.body["verificationId"];
        assert_eq!(started.body, json!({
            "verificationId": id, "provider": "portone", "storeId": "store-1",
            "channelKey": "channel-1", "expiresAt": "2026-11-15T00:45:00Z",
        }));
        provider.says(|id| Reply::Json(verified(id)));
        let body = json!({ "verificationId": id });
        let done = http(&world, &settings, "/api/auth/identity/complete", &session, body).await;
        assert_eq!(done.body["identityVerified"], true);
        let id = id.as_str().unwrap();
        let asked = format!("{id}?storeId=store-1");
        assert_eq!(provider.asked(), [(asked, "PortOne the secret".to_owned())]);
    }

    async fn what_the_browser_says_of_the_person_counts_for_nothing(world: World) {
        let session = world.register("mina@example.com").await;
        let provider = SocialProvider::start().await;
        provider.says(|id| Reply::Json(json!({ "id": id, "status": "READY" })));
        let settings = provider.settings();
        let started = http(&world, &settings, "/api/auth/identity/start", &session, json!({})).await;
        let body = json!({
            "verificationId": started.body["verificationId"],
            "sandbox": { "name": "김민아", "birthDate": "1999-01-31" },
        });
        let path = "/api/auth/identity/complete";
        let refused = http(&world, &settings, path, &session, body.clone()).await;
        assert_eq!(refused.refusal(), (409, "VERIFICATION_PENDING"));
        let mut told = body;
        told["ci"] = json!("my own");
        assert_eq!(http(&world, &settings, path, &session, told).await.status, 400);
    }

    async fn every_fault_of_portone_leaves_the_attempt_open_or_ends_it(world: World) {
        use CompleteVerificationError::{Failed, KeyMissing, Pending};
        let session = world.register("mina@example.com").await;
        let user_id = session.user.id;
        let provider = SocialProvider::start().await;
        let cases: [(Answers, CompleteVerificationError); 10] = [
            (|_| Reply::Status(500), IdentityProviderError::Status(500).into()),
            (|_| Reply::Status(401), IdentityProviderError::Status(401).into()),
            (|_| Reply::Silence, IdentityProviderError::Timeout.into()),
            (|_| Reply::Text("<html>"), IdentityProviderError::Unreadable.into()),
            (|_| Reply::Json(json!({ "status": "VERIFIED" })), IdentityProviderError::Unreadable.into()),
            (|id| but(id, "verifiedCustomer", Value::Null), IdentityProviderError::Unreadable.into()),
            (|id| but(id, "status", json!("BRAND_NEW")), IdentityProviderError::Unreadable.into()),
            (|_| Reply::Json(verified("another-id")), IdentityProviderError::OtherVerification.into()),
            (|_| Reply::Status(404), Pending),
            (|id| but(id, "status", json!("READY")), Pending),
        ];
        let id = provider.auth(&world).start_verification(user_id).await.unwrap().id;
        for (n, (reply, expected)) in cases.into_iter().enumerate() {
            provider.says(reply);
            let completed = provider.auth(&world).complete_verification(user_id, id, None).await;
            assert_eq!(completed, Err(expected), "{n}");
            assert_eq!(status(&world).await, ["started"], "{n}");
        }
        let body = json!({ "verificationId": id.0 });
        provider.says(|_| Reply::Status(500));
        let settings = provider.settings();
        let path = "/api/auth/identity/complete";
        let down = http(&world, &settings, path, &session, body).await;
        assert_eq!(down.refusal(), (503, "IDENTITY_PROVIDER_UNAVAILABLE"));

        let ends: [(Answers, CompleteVerificationError); 7] = [
            (|id| but(id, "status", json!("FAILED")), Failed),
            (|id| but(id, "channel", json!({ "type": "TEST", "key": "channel-1" })), Failed),
            (|id| but(id, "channel", json!({ "type": "LIVE", "key": "channel-2" })), Failed),
            (|id| but(id, "channel", Value::Null), Failed),
            (|id| but(id, "verifiedCustomer", json!({ "name": "김민아", "di": DI })), KeyMissing),
            (|id| but(id, "verifiedCustomer", json!({ "ci": " ", "di": DI })), KeyMissing),
            (|id| but(id, "verifiedCustomer", json!({ "ci": null })), KeyMissing),
        ];
        for (n, (reply, expected)) in ends.into_iter().enumerate() {
            let auth = provider.auth(&world);
            let id = auth.start_verification(user_id).await.unwrap().id;
            provider.says(reply);
            assert_eq!(auth.complete_verification(user_id, id, None).await, Err(expected), "{n}");
            assert_eq!(status(&world).await.last().unwrap(), "failed", "{n}");
        }
        assert!(!provider.auth(&world).get_profile(user_id).await.unwrap().identity_verified);
        // The control: the first attempt is still good, once PortOne is.
        provider.says(|id| Reply::Json(verified(id)));
        assert!(provider.auth(&world).complete_verification(user_id, id, None).await.is_ok());
    }

    /// The browser names the channel: one for tests would verify anybody as anybody.
    async fn a_verification_by_a_test_channel_counts_only_where_that_is_allowed(world: World) {
        let user_id = world.register("mina@example.com").await.user.id;
        let provider = SocialProvider::start().await;
        provider.says(|id| but(id, "channel", json!({ "type": "TEST", "key": "channel-1" })));
        let metrics = Metrics::new();
        let strict = provider.auth(&world);
        strict.register_metrics(&metrics);
        let id = strict.start_verification(user_id).await.unwrap().id;
        let refused = strict.complete_verification(user_id, id, None).await;
        assert_eq!(refused, Err(CompleteVerificationError::Failed));
        assert!(!strict.get_profile(user_id).await.unwrap().identity_verified);
        let counted = "urr_auth_identity_mismatches_total 1";
        assert!(metrics.text().contains(counted), "{}", metrics.text());
        // The control: with the guard off, the same answer verifies.
        let mut settings = provider.settings();
        let IdentityProvider::PortOne(portone) = &mut settings.identity else {
            panic!("it is PortOne");
        };
        portone.accepts_test_channel = true;
        let lenient = world.auth_with(data_keys(), settings);
        let id = lenient.start_verification(user_id).await.unwrap().id;
        assert!(lenient.complete_verification(user_id, id, None).await.is_ok());
    }

    async fn a_provider_that_tells_no_di_is_enough(world: World) {
        let provider = SocialProvider::start().await;
        provider.says(|id| but(id, "verifiedCustomer", json!({ "ci": CI, "name": "김민아" })));
        let auth = provider.auth(&world);
        let mut completed = Vec::new();
        for email in ["mina@example.com", "mina2@example.com"] {
            let user_id = world.register(email).await.user.id;
            let id = auth.start_verification(user_id).await.unwrap().id;
            completed.push(auth.complete_verification(user_id, id, None).await);
        }
        let elsewhere = Err(CompleteVerificationError::VerifiedElsewhere);
        assert_eq!(completed, [Ok(world.clock.now()), elsewhere]);
    }
}

const CI: &str =
    "CANARY+ci+Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYg==";
const DI: &str = "CANARY+di+MC0CCQC2YmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9v";

/// What PortOne says of an attempt that succeeded, as its description has it.
fn verified(id: &str) -> Value {
    json!({
        "status": "VERIFIED", "id": id,
        "channel": {
            "type": "LIVE", "id": "channel-id-1", "key": "channel-1", "name": "본인인증",
            "pgProvider": "DANAL", "pgMerchantId": "A010002002",
        },
        "verifiedCustomer": {
            "name": "새장 속의 카나리아", "gender": "FEMALE", "birthDate": "1999-01-31",
            "phoneNumber": "01012345678", "isForeigner": false, "ci": CI, "di": DI,
        },
        "requestedAt": "2026-11-15T00:30:00Z", "updatedAt": "2026-11-15T00:31:00Z",
        "statusChangedAt": "2026-11-15T00:31:00Z", "verifiedAt": "2026-11-15T00:31:00Z",
        "pgTxId": "tx", "pgRawResponse": "{}", "a field of tomorrow": 1,
    })
}

fn but(id: &str, field: &str, value: Value) -> Reply {
    let mut answer = verified(id);
    answer[field] = value;
    Reply::Json(answer)
}

#[derive(Clone)]
enum Reply {
    Json(Value),
    Text(&'static str),
    Status(u16),
    Silence,
}

impl Reply {
    async fn send(self) -> Response {
        match self {
            Reply::Json(value) => axum::Json(value).into_response(),
            Reply::Text(text) => text.into_response(),
            Reply::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
            Reply::Silence => std::future::pending().await,
        }
    }
}

/// A server that speaks as PortOne does.
struct SocialProvider {
    url: String,
    state: Arc<Mutex<ProviderState>>,
}

/// What is answered to a question about this id.
type Answers = fn(&str) -> Reply;

struct ProviderState {
    reply: Answers,
    /// Which attempts, and with what credential.
    asked: Vec<(String, String)>,
}

impl SocialProvider {
    async fn start() -> SocialProvider {
        let state = ProviderState { reply: |_| Reply::Status(404), asked: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let answer =
            move |Path(id): Path<String>, RawQuery(query): RawQuery, headers: HeaderMap| {
                let shared = Arc::clone(&shared);
                async move {
                    let reply = {
                        let mut state = shared.lock().unwrap();
                        let credential = headers[AUTHORIZATION].to_str().unwrap().to_owned();
                        let asked = format!("{id}?{}", query.unwrap_or_default());
                        state.asked.push((asked, credential));
                        state.reply
                    };
                    reply(&id).send().await
                }
            };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/identity-verifications/{id}", on_get(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        SocialProvider { url, state }
    }

    fn says(&self, reply: Answers) {
        self.state.lock().unwrap().reply = reply;
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().asked.clone()
    }

    fn settings(&self) -> AuthSettings {
        let is_silent = matches!((self.state.lock().unwrap().reply)(""), Reply::Silence);
        let portone = PortOneIdentity {
            secret: Secret::new("the secret"),
            store_id: "store-1".to_owned(),
            channel_key: "channel-1".to_owned(),
            accepts_test_channel: false,
            endpoint: self.url.clone(),
            timeout: if is_silent { SECOND / 4 } else { 10 * SECOND },
        };
        AuthSettings { identity: IdentityProvider::PortOne(portone), ..cheap_settings() }
    }

    fn auth(&self, world: &World) -> AuthService {
        world.auth_with(data_keys(), self.settings())
    }
}
