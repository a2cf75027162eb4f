//! Programs are kept out where the check is on, and nobody is where it is off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post as on_post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use urr_auth::{
    AuthService, AuthSettings, BotAttempt, BotCheckError, BotCheckMethod, BotCheckPurpose,
    BotCheckSettings, BotCheckTask, Challenge, Email, LoginCheck, ProofRejection, PurgeCounts,
    RemoteVerifier, RemoteVerifierKind, solve_challenge,
};
use urr_kernel::{Secret, Uuid};
use urr_service::token::{TokenFacts, TokenKey, TokenPurpose};

use crate::contract;
use crate::fixture::{MINUTE, PASSWORD, SECOND, World, all, cheap_settings, data_keys, token_key};
use crate::http::{Answer, get, post, registration};

const EASY: u8 = 6;
const PROOF: &str = "x-proof-of-work";
const TOKEN: &str = "x-bot-check-token";

fn with_check(bot_check: BotCheckSettings) -> AuthSettings {
    AuthSettings { bot_check, ..cheap_settings() }
}

fn working() -> BotCheckSettings {
    BotCheckSettings {
        method: BotCheckMethod::ProofOfWork,
        register: true,
        login: LoginCheck::Always,
        base_difficulty: EASY,
    }
}

fn checked(world: &World) -> AuthService {
    world.auth_with(data_keys(), with_check(working()))
}

fn challenge(auth: &AuthService, purpose: BotCheckPurpose) -> Challenge {
    match auth.bot_task(purpose) {
        BotCheckTask::Work(challenge) => challenge,
        other => panic!("{other:?}"),
    }
}

fn proof(auth: &AuthService, purpose: BotCheckPurpose) -> String {
    let Challenge { text, difficulty, .. } = challenge(auth, purpose);
    solve_challenge(&text, difficulty)
}

fn attempt(purpose: BotCheckPurpose, proof_of_work: Option<String>) -> BotAttempt {
    let email = Email::parse("mina@example.com").unwrap();
    BotAttempt { purpose, email, proof_of_work, remote_token: None, address: String::new() }
}

/// Why a proof does not count, if it does not.
async fn refusal(
    auth: &AuthService,
    purpose: BotCheckPurpose,
    proof: Option<String>,
) -> Option<ProofRejection> {
    match auth.check_bot(&attempt(purpose, proof)).await {
        Ok(()) => None,
        Err(BotCheckError::ProofRequired { rejection, .. }) => Some(rejection),
        Err(BotCheckError::Internal(error)) => panic!("{error}"),
    }
}

/// A challenge that someone signed who has this key.
fn signed_by(key: &TokenKey, world: &World, difficulty: u8) -> String {
    let issue = TokenFacts {
        subject: "register".to_owned(),
        id: Uuid::from_u128(77),
        issued_at: world.clock.now(),
        lifetime: Duration::from_secs(60),
    };
    let purpose = TokenPurpose { audience: "urr-bot-check", typ: "pow+jwt" };
    key.sign(purpose, &issue, &json!({ "difficulty": difficulty }))
}

async fn register(
    world: &World,
    check: &BotCheckSettings,
    email: &str,
    header: (&str, &str),
) -> Answer {
    let call = post(world, "/api/auth/register").json(&registration(email));
    let name: axum::http::HeaderName = header.0.parse().unwrap();
    call.settings(world, with_check(check.clone())).header(name, header.1).send().await
}

async fn login(world: &World, check: &BotCheckSettings, email: &str, password: &str) -> Answer {
    let body = json!({ "email": email, "password": password });
    let call = post(world, "/api/auth/login").json(&body);
    call.settings(world, with_check(check.clone())).send().await
}

contract! {
    async fn whoever_did_the_work_may_register_and_nobody_else(world: World) {
        let check = working();
        let refused = register(&world, &check, "mina@example.com", (PROOF, "")).await;
        assert_eq!(refused.refusal(), (403, "PROOF_REQUIRED"));
        let url = refused.body["challengeUrl"].as_str().unwrap();
        assert_eq!(url, "/api/auth/challenge?for=register");
        let task = get(&world, url).settings(&world, with_check(check.clone())).send().await;
        assert_eq!(task.body["method"], "proof-of-work");
        assert_eq!(task.body["expiresAt"], "2026-11-15T00:32:00Z");
        // Either challenge can be solved: that at the address, and that in the refusal.
        for (task, email) in [
            (&task.body, "mina@example.com"), (&refused.body["task"], "jun@example.com"),
        ] {
            assert_eq!(task["difficulty"], EASY);
            let proof = solve_challenge(task["challenge"].as_str().unwrap(), EASY);
            let answer = register(&world, &check, email, (PROOF, &proof)).await;
            assert_eq!(answer.status, StatusCode::CREATED);
            let replay = register(&world, &check, "bot@example.com", (PROOF, &proof)).await;
            assert_eq!(replay.refusal(), (403, "PROOF_REQUIRED"), "a proof counts once");
        }
        assert_eq!(world.number("select count(*) as n from users").await, 2);
    }

    /// The control: it is the check that refuses.
    async fn switched_off_or_elsewhere_nobody_needs_a_proof(world: World) {
        let off = BotCheckSettings { method: BotCheckMethod::Off, ..working() };
        let elsewhere = BotCheckSettings { register: false, ..working() };
        for (check, email) in [(off, "mina@example.com"), (elsewhere, "jun@example.com")] {
            let answer = register(&world, &check, email, (PROOF, "nonsense")).await;
            assert_eq!(answer.status, StatusCode::CREATED);
            let url = "/api/auth/challenge?for=register";
            let task = get(&world, url).settings(&world, with_check(check)).send().await;
            assert_eq!(task.body, json!({
                "method": "none",
                "challenge": null, "difficulty": null, "expiresAt": null, "siteKey": null,
            }));
        }
        let nowhere = get(&world, "/api/auth/challenge?for=payment").send().await;
        assert_eq!(nowhere.status, StatusCode::BAD_REQUEST);
    }

    async fn whoever_sets_nothing_has_the_work_at_the_door_and_honest_logins_without_it(world: World) {
        let check = AuthSettings::default().bot_check;
        let url = "/api/auth/challenge?for=register";
        let task = get(&world, url).settings(&world, with_check(check.clone())).send().await.body;
        assert_eq!((&task["method"], &task["difficulty"]), (&json!("proof-of-work"), &json!(16)));
        let refused = register(&world, &check, "mina@example.com", (PROOF, "")).await;
        assert_eq!(refused.refusal(), (403, "PROOF_REQUIRED"));
        let proof = solve_challenge(task["challenge"].as_str().unwrap(), 16);
        let answer = register(&world, &check, "mina@example.com", (PROOF, &proof)).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        assert_eq!(login(&world, &check, "mina@example.com", PASSWORD).await.status, 200);
    }

    /// D-15: stolen lists are tried with one password per address, so no address sees many.
    async fn d_15_while_very_many_logins_fail_everywhere_every_login_needs_a_proof(world: World) {
        let check = BotCheckSettings { login: LoginCheck::AfterFailures(3), ..working() };
        let auth = world.auth_with(data_keys(), with_check(check));
        for n in 0..299 {
            let email = Email::parse(&format!("fan{n}@example.com")).unwrap();
            auth.note_failed_login(&email).await.unwrap();
        }
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, None).await, None, "an ordinary day");
        auth.note_failed_login(&Email::parse("fan@example.com").unwrap()).await.unwrap();
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, None).await, Some(ProofRejection::Missing));
        let solved = proof(&auth, BotCheckPurpose::Login);
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, Some(solved)).await, None);
        world.clock.advance(2 * MINUTE);
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, None).await, None, "it has passed");
    }

    async fn every_bad_proof_is_refused_for_its_own_reason(world: World) {
        let auth = checked(&world);
        let fresh = challenge(&auth, BotCheckPurpose::Register);
        let nonces = 0_u32..;
        let candidates = nonces.map(|nonce| format!("{}:{nonce}", fresh.text));
        let mut solutions = candidates.map(|text| (solves(&text), text));
        let (_, unsolved) = solutions.find(|(solved, _)| !solved).unwrap();
        let forged = signed_by(&TokenKey::new(&[8; 32]), &world, 0);
        let access = world.register("jun@example.com").await.access_token;
        let mut touched = proof(&auth, BotCheckPurpose::Register);
        touched.replace_range(40..41, if &touched[40..41] == "A" { "B" } else { "A" });
        for (shown, expected) in [
            (None, ProofRejection::Missing),
            (Some(String::new()), ProofRejection::Malformed),
            (Some("nonsense".to_owned()), ProofRejection::Malformed),
            (Some("a.b.c:1".to_owned()), ProofRejection::Malformed),
            (Some(fresh.text.clone()), ProofRejection::Malformed),
            (Some(format!("{forged}:1")), ProofRejection::Forged),
            (Some(format!("{access}:1")), ProofRejection::Forged),
            (Some(touched), ProofRejection::Forged),
            (Some(unsolved), ProofRejection::TooEasy),
            (Some(proof(&auth, BotCheckPurpose::Login)), ProofRejection::OtherPurpose),
        ] {
            let found = refusal(&auth, BotCheckPurpose::Register, shown.clone()).await;
            assert_eq!(found, Some(expected), "{shown:?}");
        }
        let at_login = refusal(&auth, BotCheckPurpose::Login, Some(proof(&auth, BotCheckPurpose::Register))).await;
        assert_eq!(at_login, Some(ProofRejection::OtherPurpose));
        // The controls: our own key makes that forgery good, and the challenge can be solved.
        let ours = signed_by(&token_key(), &world, 0);
        assert_eq!(refusal(&auth, BotCheckPurpose::Register, Some(format!("{ours}:1"))).await, None);
        let solved = solve_challenge(&fresh.text, fresh.difficulty);
        assert_eq!(refusal(&auth, BotCheckPurpose::Register, Some(solved)).await, None);
    }

    async fn a_challenge_lives_for_two_minutes(world: World) {
        let auth = checked(&world);
        let [early, late] = [proof(&auth, BotCheckPurpose::Login), proof(&auth, BotCheckPurpose::Login)];
        world.clock.advance(2 * MINUTE - SECOND);
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, Some(early)).await, None);
        world.clock.advance(SECOND);
        assert_eq!(refusal(&auth, BotCheckPurpose::Login, Some(late)).await, Some(ProofRejection::Expired));
    }

    async fn of_many_who_show_one_proof_at_once_one_gets_in(world: World) {
        let auth = checked(&world);
        let proof = proof(&auth, BotCheckPurpose::Register);
        let shown = (0..12).map(|_| {
            let (auth, proof) = (auth.clone(), proof.clone());
            async move { refusal(&auth, BotCheckPurpose::Register, Some(proof)).await }
        });
        let refusals = all(shown).await;
        assert_eq!(refusals.iter().filter(|refusal| refusal.is_none()).count(), 1);
        assert_eq!(refusals.iter().filter(|r| **r == Some(ProofRejection::Spent)).count(), 11);
    }

    async fn a_proof_spent_here_is_spent_in_every_process(world: World) {
        let [here, there] = [checked(&world), checked(&world)];
        let proof = proof(&here, BotCheckPurpose::Login);
        assert_eq!(refusal(&there, BotCheckPurpose::Login, Some(proof.clone())).await, None);
        assert_eq!(refusal(&here, BotCheckPurpose::Login, Some(proof)).await, Some(ProofRejection::Spent));
    }

    async fn without_proof_no_password_is_compared(world: World) {
        world.register("mina@example.com").await;
        let before = world.number("select count(*) as n from login_history").await;
        let refused = login(&world, &working(), "mina@example.com", PASSWORD).await;
        assert_eq!(refused.refusal(), (403, "PROOF_REQUIRED"), "even with the right password");
        let after = world.number("select count(*) as n from login_history").await;
        assert_eq!(before, after, "a failed or good login would be written down");
    }

    async fn a_login_needs_a_proof_after_failures_whether_the_account_exists_or_not(world: World) {
        world.register("mina@example.com").await;
        let check = BotCheckSettings { login: LoginCheck::AfterFailures(3), ..working() };
        for email in ["mina@example.com", "nobody@example.com"] {
            for _ in 0..3 {
                let failed = login(&world, &check, email, "wrong password").await;
                assert_eq!(failed.refusal(), (401, "INVALID_CREDENTIALS"));
            }
            let asked = login(&world, &check, email, PASSWORD).await;
            assert_eq!(asked.refusal(), (403, "PROOF_REQUIRED"), "{email}");
        }
        // The control, and other accounts: they are asked for nothing.
        let never = BotCheckSettings { login: LoginCheck::Never, ..working() };
        assert_eq!(login(&world, &never, "mina@example.com", PASSWORD).await.status, 200);
        world.register("jun@example.com").await;
        assert_eq!(login(&world, &check, "jun@example.com", PASSWORD).await.status, 200);
        // With the proof, and after a quarter of an hour without, the owner gets in.
        let auth = world.auth_with(data_keys(), with_check(check.clone()));
        let body = json!({ "email": "Mina@Example.com", "password": PASSWORD });
        let call = post(&world, "/api/auth/login").json(&body);
        let call = call.settings(&world, with_check(check.clone()));
        assert_eq!(call.header(PROOF, &proof(&auth, BotCheckPurpose::Login)).send().await.status, 200);
        world.clock.advance(15 * MINUTE);
        assert_eq!(login(&world, &check, "mina@example.com", PASSWORD).await.status, 200);
    }

    /// Asking costs nothing, so it changes nothing. What was solved and spent does.
    async fn challenges_get_harder_under_pressure_and_easier_after(world: World) {
        let auth = checked(&world);
        for _ in 0..20_000 {
            assert_eq!(challenge(&auth, BotCheckPurpose::Register).difficulty, EASY);
        }
        for _ in 0..1_200 {
            let solved = proof(&auth, BotCheckPurpose::Register);
            assert_eq!(refusal(&auth, BotCheckPurpose::Register, Some(solved)).await, None);
        }
        let hard = challenge(&auth, BotCheckPurpose::Register);
        assert_eq!(hard.difficulty, EASY + 1);
        let solved = solve_challenge(&hard.text, hard.difficulty);
        assert_eq!(refusal(&auth, BotCheckPurpose::Register, Some(solved)).await, None);
        world.clock.advance(2 * MINUTE);
        assert_eq!(challenge(&auth, BotCheckPurpose::Register).difficulty, EASY);
        // Failures weigh more: guessing passwords makes it harder as well.
        let email = Email::parse("mina@example.com").unwrap();
        for _ in 0..300 {
            auth.note_failed_login(&email).await.unwrap();
        }
        assert_eq!(challenge(&auth, BotCheckPurpose::Register).difficulty, EASY + 1);
    }

    async fn what_the_checks_remember_is_forgotten_in_time(world: World) {
        let check = BotCheckSettings { login: LoginCheck::AfterFailures(1), ..working() };
        let auth = world.auth_with(data_keys(), with_check(check));
        assert_eq!(refusal(&auth, BotCheckPurpose::Register, Some(proof(&auth, BotCheckPurpose::Register))).await, None);
        auth.note_failed_login(&Email::parse("mina@example.com").unwrap()).await.unwrap();
        world.clock.advance(3 * MINUTE);
        assert_eq!(auth.purge_expired(100).await.unwrap(), PurgeCounts::default());
        world.clock.advance(SECOND);
        let purged = auth.purge_expired(100).await.unwrap();
        assert_eq!(purged, PurgeCounts { spent_challenges: 1, ..PurgeCounts::default() });
        world.clock.advance(12 * MINUTE);
        let purged = auth.purge_expired(100).await.unwrap();
        assert_eq!(purged, PurgeCounts { failed_logins: 1, ..PurgeCounts::default() });
    }

    async fn a_verifier_elsewhere_is_asked_and_believed(world: World) {
        let verifier = Verifier::start().await;
        let good = json!({
            "success": true, "hostname": "urr.example", "action": "register", "score": 0.9,
        });
        let but = |field: &str, value: Value| {
            let mut answer = good.clone();
            answer[field] = value;
            Reply::Json(answer)
        };
        for (n, (kind, reply, expected)) in [
            (RemoteVerifierKind::RecaptchaV3, Reply::Json(good.clone()), 201),
            (RemoteVerifierKind::RecaptchaV2, Reply::Json(good.clone()), 201),
            (RemoteVerifierKind::Turnstile, Reply::Json(good.clone()), 201),
            (RemoteVerifierKind::Turnstile, but("success", json!(false)), 403),
            (RemoteVerifierKind::RecaptchaV2, but("hostname", json!("evil.example")), 403),
            (RemoteVerifierKind::RecaptchaV3, but("score", json!(0.1)), 403),
            (RemoteVerifierKind::RecaptchaV3, but("score", Value::Null), 403),
            (RemoteVerifierKind::RecaptchaV3, but("action", json!("login")), 403),
        ].into_iter().enumerate() {
            verifier.answers(reply);
            let check = verifier.check(kind);
            let email = format!("fan{n}@example.com");
            let answer = register(&world, &check, &email, (TOKEN, "a token")).await;
            assert_eq!(answer.status.as_u16(), expected, "{kind:?} {n}");
            if expected == 403 {
                let task = json!({
                    "method": kind.as_str(), "siteKey": "the site",
                    "challenge": null, "difficulty": null, "expiresAt": null,
                });
                assert_eq!(answer.body["task"], task, "no other way while the verifier works");
            }
        }
        let asked = verifier.asked();
        assert_eq!(asked.len(), 8);
        assert_eq!(asked[0], "secret=the+secret&response=a+token");
        let check = verifier.check(RemoteVerifierKind::Turnstile);
        let missing = register(&world, &check, "last@example.com", (TOKEN, "")).await;
        assert_eq!(missing.refusal(), (403, "PROOF_REQUIRED"));
        assert_eq!(verifier.asked().len(), 8, "there was nothing to ask about");
    }

    async fn the_verifier_learns_where_the_client_is(world: World) {
        let verifier = Verifier::start().await;
        let settings = with_check(verifier.check(RemoteVerifierKind::Turnstile));
        let call = post(&world, "/api/auth/register").json(&registration("mina@example.com"));
        let call = call.settings(&world, settings).header(TOKEN, "t");
        call.header("x-urr-client-address", "203.0.113.9").send().await;
        assert_eq!(verifier.asked(), ["secret=the+secret&response=t&remoteip=203.0.113.9"]);
    }

    async fn a_verifier_that_is_down_does_not_open_the_door_but_gives_work_instead(world: World) {
        let verifier = Verifier::start().await;
        let internal = json!({ "success": false, "error-codes": ["internal-error"] });
        for (n, reply) in [
            Reply::Status(500), Reply::Silence, Reply::Text("<html>"), Reply::Json(json!({})),
            Reply::Json(internal), Reply::Status(302),
        ].into_iter().enumerate() {
            verifier.answers(reply);
            let check = verifier.check(RemoteVerifierKind::Turnstile);
            let email = format!("fan{n}@example.com");
            let refused = register(&world, &check, &email, (TOKEN, "a token")).await;
            assert_eq!(refused.refusal(), (403, "PROOF_REQUIRED"), "{n}");
            let task = &refused.body["task"];
            assert_eq!(task["method"], "proof-of-work", "{n}");
            let proof = solve_challenge(task["challenge"].as_str().unwrap(), EASY);
            let answer = register(&world, &check, &email, (PROOF, &proof)).await;
            assert_eq!(answer.status, StatusCode::CREATED, "{n}");
            let replay = register(&world, &check, "bot@example.com", (PROOF, &proof)).await;
            assert_eq!(replay.refusal(), (403, "PROOF_REQUIRED"));
            assert_eq!(replay.body["task"]["method"], "turnstile");
        }
        let nobody = BotCheckMethod::Remote(RemoteVerifier {
            endpoint: "http://127.0.0.1:1/siteverify".to_owned(),
            ..verifier.remote(RemoteVerifierKind::Turnstile)
        });
        let check = BotCheckSettings { method: nobody, ..working() };
        let refused = register(&world, &check, "last@example.com", (TOKEN, "a token")).await;
        assert_eq!(refused.body["task"]["method"], "proof-of-work");
    }
}

fn solves(text: &str) -> bool {
    let (challenge, nonce) = text.rsplit_once(':').unwrap();
    // The solver counts from nought, so the first nonce that solves it is the one it finds.
    solve_challenge(challenge, EASY) == format!("{challenge}:{nonce}")
}

#[derive(Clone, Debug)]
enum Reply {
    Json(Value),
    Text(&'static str),
    Status(u16),
    Silence,
}

/// A server that speaks as reCAPTCHA and Turnstile do.
struct Verifier {
    url: String,
    state: Arc<Mutex<(Reply, Vec<String>)>>,
}

impl Verifier {
    async fn start() -> Verifier {
        let state = Arc::new(Mutex::new((Reply::Silence, Vec::new())));
        let shared = Arc::clone(&state);
        let answer = move |body: String| {
            let shared = Arc::clone(&shared);
            async move {
                let reply = {
                    let mut state = shared.lock().unwrap();
                    state.1.push(body);
                    state.0.clone()
                };
                reply.send().await
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/siteverify", listener.local_addr().unwrap());
        let router = Router::new().route("/siteverify", on_post(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Verifier { url, state }
    }

    fn answers(&self, reply: Reply) {
        self.state.lock().unwrap().0 = reply;
    }

    fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().1.clone()
    }

    fn remote(&self, kind: RemoteVerifierKind) -> RemoteVerifier {
        let silent = matches!(self.state.lock().unwrap().0, Reply::Silence);
        RemoteVerifier {
            kind,
            site_key: "the site".to_owned(),
            secret: Secret::new("the secret"),
            endpoint: self.url.clone(),
            hostname: Some("urr.example".to_owned()),
            score_min: 0.5,
            timeout: if silent { SECOND / 4 } else { 10 * SECOND },
        }
    }

    fn check(&self, kind: RemoteVerifierKind) -> BotCheckSettings {
        BotCheckSettings { method: BotCheckMethod::Remote(self.remote(kind)), ..working() }
    }
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
