//! Accounts over HTTP: statuses, bodies, cookies, and who may call what.

use axum::Router;
use axum::body::Body;
use axum::http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_auth::{
    AuthSettings, CookieSecurity, Email, NewAdmin, Password, PasswordCost, PersonName, Session,
};
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};

use crate::contract;
use crate::fixture::{MINUTE, PASSWORD, World, all, cheap_settings, data_keys};

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.body["code"].as_str().unwrap_or_default())
    }

    pub fn cookies(&self) -> Vec<&str> {
        self.headers.get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap()).collect()
    }
}

/// A request as the gateway hands it on.
pub struct Call {
    request: Request<Body>,
    router: Router,
}

pub fn router(world: &World, settings: AuthSettings) -> Router {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    world.auth_with(data_keys(), settings).service(&kit).local_router()
}

pub fn call(world: &World, method: Method, path: &str) -> Call {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request.extensions_mut().insert(Caller::Gateway);
    Call { request, router: router(world, cheap_settings()) }
}

pub fn post(world: &World, path: &str) -> Call {
    call(world, Method::POST, path)
}

pub fn get(world: &World, path: &str) -> Call {
    call(world, Method::GET, path)
}

impl Call {
    pub fn header(mut self, name: impl axum::http::header::IntoHeaderName, value: &str) -> Call {
        self.request.headers_mut().append(name, value.parse().unwrap());
        self
    }

    pub fn json(mut self, body: &Value) -> Call {
        *self.request.body_mut() = Body::from(body.to_string());
        self.header(CONTENT_TYPE, "application/json")
    }

    pub fn body(mut self, body: &str) -> Call {
        *self.request.body_mut() = Body::from(body.to_owned());
        self
    }

    pub fn user(mut self, user_id: Uuid, role: UserRole) -> Call {
        Identity { user_id, email: None, role }.write(self.request.headers_mut());
        self
    }

    pub fn of(self, session: &Session) -> Call {
        self.user(session.user.id.0, session.user.role)
    }

    pub fn settings(mut self, world: &World, settings: AuthSettings) -> Call {
        self.router = router(world, settings);
        self
    }

    pub fn from(mut self, caller: Option<Caller>) -> Call {
        self.request.extensions_mut().remove::<Caller>();
        if let Some(caller) = caller {
            self.request.extensions_mut().insert(caller);
        }
        self
    }

    pub async fn send(self) -> Answer {
        let response = self.router.oneshot(self.request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }
}

pub fn registration(email: &str) -> Value {
    json!({
        "email": email, "password": PASSWORD, "name": "김민아", "phone": "010-1234-5678",
        "terms": [
            { "type": "SERVICE", "version": "2026-11", "agreed": true },
            { "type": "PRIVACY", "version": "2026-11", "agreed": true },
            { "type": "MARKETING", "version": "2026-11", "agreed": false },
        ],
    })
}

pub fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

contract! {
    async fn registering_answers_with_the_session_in_body_and_cookies(world: World) {
        let answer = post(&world, "/api/auth/register").json(&registration("mina@example.com"));
        let answer = answer.header(HOST, "urr.example").send().await;
        assert_eq!(answer.status, StatusCode::CREATED);
        let id = &answer.body["user"]["id"];
        let expected = json!({
            "message": "Registration completed",
            "token": answer.body["token"], "expiresIn": 1_800,
            "refreshToken": answer.body["refreshToken"],
            "user": {
                "id": id, "userId": id, "email": "mina@example.com", "name": "김민아", "role": "user",
            },
        });
        assert_eq!(answer.body, expected);
        let (token, refresh) = (&answer.body["token"], &answer.body["refreshToken"]);
        let (token, refresh) = (token.as_str().unwrap(), refresh.as_str().unwrap());
        assert_eq!(answer.cookies(), [
            format!("access_token={token}; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax; Secure"),
            format!(
                "refresh_token={refresh}; Path=/api; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"
            ),
        ]);
        assert_eq!(answer.headers[CACHE_CONTROL], "no-store");
        assert!(world.accepts(token).await);
    }

    async fn what_cannot_be_registered_is_refused_with_its_reason(world: World) {
        let good = registration("mina@example.com");
        let no_privacy = json!([{ "type": "SERVICE", "version": "2026-11", "agreed": true }]);
        for (body, code) in [
            (with(good.clone(), "email", json!("mina")), "INVALID_EMAIL"),
            (with(good.clone(), "password", json!("short")), "INVALID_PASSWORD"),
            (with(good.clone(), "password", json!("password123")), "INVALID_PASSWORD"),
            (with(good.clone(), "name", json!(" ")), "INVALID_NAME"),
            (with(good.clone(), "phone", json!("call me")), "INVALID_PHONE"),
            (with(good.clone(), "language", json!("fr")), "INVALID_LANGUAGE"),
            (with(good.clone(), "terms", no_privacy), "TERMS_REQUIRED"),
            (with(good.clone(), "terms", json!([])), "TERMS_REQUIRED"),
            (with(good.clone(), "role", json!("admin")), "INVALID_BODY"),
            (json!([]), "INVALID_BODY"),
        ] {
            let answer = post(&world, "/api/auth/register").json(&body).send().await;
            assert_eq!(answer.refusal(), (400, code), "{body}");
            assert!(answer.cookies().is_empty());
        }
        assert_eq!(world.number("select count(*) as n from users").await, 0);
        let empty_phone = with(good, "phone", json!(""));
        let answer = post(&world, "/api/auth/register").json(&empty_phone).send().await;
        assert_eq!(answer.status, StatusCode::CREATED);
    }

    async fn d_15_an_address_that_is_taken_is_refused_in_a_neutral_sentence(world: World) {
        world.register("mina@example.com").await;
        let body = registration("MINA@example.com");
        let answer = post(&world, "/api/auth/register").json(&body).send().await;
        assert_eq!(answer.refusal(), (409, "REGISTRATION_FAILED"));
        let sentence = answer.body["error"].as_str().unwrap();
        assert!(!sentence.contains("exist") && !sentence.contains("taken"), "{sentence}");
    }

    async fn a_login_that_fails_says_nothing_of_why(world: World) {
        world.register("mina@example.com").await;
        let mut answers = Vec::new();
        for (email, password) in [
            ("mina@example.com", "not the password"),
            ("nobody@example.com", PASSWORD),
            ("no address", PASSWORD),
            ("mina@example.com", ""),
        ] {
            let body = json!({ "email": email, "password": password });
            let mut answer = post(&world, "/api/auth/login").json(&body).send().await;
            assert_eq!(answer.refusal(), (401, "INVALID_CREDENTIALS"));
            assert!(answer.cookies().is_empty());
            answer.body["traceId"].take();
            answers.push(answer.body);
        }
        assert!(answers.iter().all(|body| *body == answers[0]));
        let body = json!({ "email": "Mina@example.com", "password": PASSWORD });
        let answer = post(&world, "/api/auth/login").json(&body).send().await;
        assert_eq!((answer.status, answer.cookies().len()), (StatusCode::OK, 2));
        assert_eq!(answer.body["message"], "Login successful");
    }

    async fn too_many_logins_at_once_are_told_to_come_back(world: World) {
        let settings = AuthSettings {
            password_cost: PasswordCost { memory_kib: 65_536, passes: 4, lanes: 1 },
            hashing_parallel_max: 1,
            hashing_waiting_max: 0,
            ..AuthSettings::default()
        };
        let router = router(&world, settings);
        let body = json!({ "email": "nobody@example.com", "password": PASSWORD });
        let logins = (0..20).map(|_| {
            let mut login = post(&world, "/api/auth/login").json(&body);
            login.router = router.clone();
            login.send()
        });
        let answers = all(logins).await;
        let busy: Vec<_> = answers.iter().filter(|a| a.refusal() == (503, "LOGIN_BUSY")).collect();
        assert!(!busy.is_empty() && busy.len() < 20, "{} were busy", busy.len());
        assert!(busy.iter().all(|answer| answer.headers.contains_key("retry-after")));
        assert!(busy.iter().all(|answer| answer.body["retryAfter"] == 2));
    }

    async fn refreshing_takes_the_cookie_before_the_body(world: World) {
        let cookie = world.register("mina@example.com").await;
        let body = world.register("jun@example.com").await;
        let refresh = || post(&world, "/api/auth/refresh");
        let in_body = json!({ "refreshToken": body.refresh_token });
        let cookies = format!("a=b; refresh_token={}", cookie.refresh_token);
        let answer = refresh().header(COOKIE, &cookies).json(&in_body).send().await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.body["user"]["email"], "mina@example.com");
        assert_eq!(answer.body["message"], "Token refreshed");
        assert_eq!(answer.cookies().len(), 2);
        let answer = refresh().json(&in_body).send().await;
        assert_eq!(answer.body["user"]["email"], "jun@example.com");

        for (call, expected) in [
            (refresh(), (401, "REFRESH_TOKEN_REQUIRED")),
            (refresh().json(&json!({})), (401, "REFRESH_TOKEN_REQUIRED")),
            (refresh().json(&json!({ "refreshToken": "x" })), (401, "REFRESH_TOKEN_INVALID")),
            (refresh().body("{"), (400, "INVALID_JSON")),
        ] {
            assert_eq!(call.send().await.refusal(), expected);
        }
        world.clock.advance(MINUTE);
        let answer = refresh().header(COOKIE, &cookies).send().await;
        assert_eq!(answer.refusal(), (401, "REFRESH_TOKEN_REUSED"));
        let answer = refresh().header(COOKIE, &cookies).send().await;
        assert_eq!(answer.refusal(), (401, "REFRESH_TOKEN_REVOKED"));
    }

    async fn logging_out_never_fails_and_clears_the_cookies_it_set(world: World) {
        let session = world.register("mina@example.com").await;
        let logout = || post(&world, "/api/auth/logout").header(HOST, "localhost:3001");
        for call in [logout(), logout().body("{nonsense"), logout().body("[]"),
            logout().header(COOKIE, "refresh_token=nonsense"),
            logout().json(&json!({ "all": true }))] {
            let answer = call.send().await;
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.body["message"], "Logged out successfully");
            assert_eq!(answer.cookies(), [
                "access_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax",
                "refresh_token=; Path=/api; Max-Age=0; HttpOnly; SameSite=Lax",
            ]);
        }
        assert!(world.accepts(&session.access_token).await, "none of them named it");
        let cookies = format!("refresh_token={}", session.refresh_token);
        logout().header(COOKIE, &cookies).send().await;
        assert!(!world.accepts(&session.access_token).await);
    }

    async fn cookies_are_secure_as_the_settings_say(world: World) {
        let body = |n: i32| registration(&format!("fan{n}@example.com"));
        for (n, security, host, secure) in [
            (1, CookieSecurity::Auto, "localhost", false),
            (2, CookieSecurity::Auto, "urr.example", true),
            (3, CookieSecurity::Always, "localhost", true),
            (4, CookieSecurity::Never, "urr.example", false),
        ] {
            let settings = AuthSettings { cookie_security: security, ..cheap_settings() };
            let call = post(&world, "/api/auth/register").settings(&world, settings);
            let answer = call.header(HOST, host).json(&body(n)).send().await;
            let all_secure = answer.cookies().iter().all(|cookie| cookie.ends_with("; Secure"));
            assert_eq!(all_secure, secure, "{security:?} {host}");
        }
    }

    async fn my_account_can_be_seen_changed_and_closed(world: World) {
        let session = world.register("mina@example.com").await;
        let me = |method| call(&world, method, "/api/auth/me");
        assert_eq!(me(Method::GET).send().await.refusal(), (401, "AUTHENTICATION_REQUIRED"));
        let answer = me(Method::GET).of(&session).send().await;
        let id = session.user.id.0;
        assert_eq!(answer.body, json!({ "user": {
            "id": id, "userId": id, "email": "mina@example.com", "name": "김민아",
            "phone": "010-1234-5678", "role": "user", "language": "ko", "hasPassword": true,
            "emailVerified": false, "identityVerified": false, "termsOutstanding": [],
            "createdAt": "2026-11-15T00:30:00Z",
        }}));
        let changed = me(Method::PUT).of(&session).json(&json!({ "name": "민아" })).send().await;
        assert_eq!(changed.body["user"]["name"], "민아");
        assert_eq!(changed.body["user"]["phone"], Value::Null);
        let bad = me(Method::PUT).of(&session).json(&json!({ "name": "" })).send().await;
        assert_eq!(bad.refusal(), (400, "INVALID_NAME"));

        let wrong = json!({ "password": "not the password" });
        let refused = me(Method::DELETE).of(&session).json(&wrong).send().await;
        assert_eq!(refused.refusal(), (403, "WRONG_PASSWORD"));
        let right = json!({ "password": PASSWORD });
        let deleted = me(Method::DELETE).of(&session).json(&right).send().await;
        assert_eq!((deleted.status, deleted.cookies().len()), (StatusCode::OK, 2));
        let gone = me(Method::GET).of(&session).send().await;
        assert_eq!(gone.refusal(), (404, "USER_NOT_FOUND"));
    }

    async fn an_account_has_a_language_which_its_owner_or_their_browser_chooses(world: World) {
        for (number, (said, accepted, expected)) in [
            (json!(null), None, "ko"),
            (json!(null), Some("en-US,en;q=0.9,ko;q=0.8"), "en"),
            (json!(null), Some("fr-FR,ko;q=0.8,en;q=0.7"), "ko"),
            (json!(null), Some("fr-FR"), "ko"),
            (json!("ko"), Some("en"), "ko"),
            (json!("en"), None, "en"),
            (json!(""), Some("en"), "en"),
        ].into_iter().enumerate() {
            let body = registration(&format!("mina{number}@example.com"));
            let mut call = post(&world, "/api/auth/register").json(&with(body, "language", said));
            if let Some(accepted) = accepted {
                call = call.header(ACCEPT_LANGUAGE, accepted);
            }
            let id = call.send().await.body["user"]["id"].as_str().unwrap().to_owned();
            let answer = get(&world, &format!("/internal/auth/users/{id}")).send().await;
            assert_eq!(answer.body["user"]["language"], expected, "{accepted:?}");
        }
    }

    async fn a_language_is_changed_only_if_one_is_named(world: World) {
        let session = world.register("mina@example.com").await;
        let put = |body: Value| call(&world, Method::PUT, "/api/auth/me").of(&session).json(&body);
        let changed = put(json!({ "name": "민아", "language": "en" })).send().await;
        assert_eq!(changed.body["user"]["language"], "en");
        let kept = put(json!({ "name": "민아" })).send().await;
        assert_eq!(kept.body["user"]["language"], "en");
        let unknown = put(json!({ "name": "민아", "language": "kr" })).send().await;
        assert_eq!(unknown.refusal(), (400, "INVALID_LANGUAGE"));
        let me = call(&world, Method::GET, "/api/auth/me").of(&session).send().await;
        assert_eq!(me.body["user"]["language"], "en");
    }

    async fn a_changed_password_comes_with_a_new_session(world: World) {
        let session = world.register("mina@example.com").await;
        let change = || call(&world, Method::PUT, "/api/auth/password").of(&session);
        let wrong = json!({ "oldPassword": "wrong wrong", "newPassword": "강변의 밤을 걷다" });
        assert_eq!(change().json(&wrong).send().await.refusal(), (403, "WRONG_PASSWORD"));
        let weak = json!({ "oldPassword": PASSWORD, "newPassword": "12345678" });
        assert_eq!(change().json(&weak).send().await.refusal(), (400, "INVALID_PASSWORD"));
        let good = json!({ "oldPassword": PASSWORD, "newPassword": "강변의 밤을 걷다" });
        let answer = change().json(&good).send().await;
        assert_eq!((answer.status, answer.cookies().len()), (StatusCode::OK, 2));
        assert!(world.accepts(answer.body["token"].as_str().unwrap()).await);
        assert!(!world.accepts(&session.access_token).await);
    }

    async fn a_token_is_verified_for_anyone_who_holds_it(world: World) {
        let session = world.register("mina@example.com").await;
        let verify = |token: &str| {
            post(&world, "/api/auth/verify-token").json(&json!({ "token": token })).send()
        };
        let answer = verify(&session.access_token).await;
        assert_eq!(answer.body["valid"], true);
        assert_eq!(answer.body["user"]["userId"], json!(session.user.id.0));
        for token in ["", "x", session.refresh_token.as_str()] {
            assert_eq!(verify(token).await.refusal(), (401, "INVALID_TOKEN"));
        }
        world.clock.advance(30 * MINUTE);
        assert_eq!(verify(&session.access_token).await.refusal(), (401, "INVALID_TOKEN"));
    }

    async fn internal_addresses_answer_our_own_programs_only(world: World) {
        let session = world.register("mina@example.com").await;
        let id = session.user.id.0;
        let batch = json!({ "userIds": [id, Uuid::from_u128(5), id] });
        let calls = || [
            get(&world, &format!("/internal/auth/users/{id}")),
            post(&world, "/internal/auth/users/batch").json(&batch),
            get(&world, "/internal/auth/revoked-tokens?after=0"),
        ];
        for call in calls() {
            let refused = call.from(None).send().await;
            assert_eq!(refused.refusal(), (401, "INTERNAL_CREDENTIAL_REQUIRED"));
        }
        let mina = json!({
            "id": id, "email": "mina@example.com", "name": "김민아", "role": "user",
            "language": "ko", "emailVerified": false,
        });
        let [one, many, revoked] = calls().map(|call| call.from(Some(Caller::Ticket)));
        assert_eq!(one.send().await.body, json!({ "user": mina }));
        assert_eq!(many.send().await.body, json!({ "users": [mina] }));
        assert_eq!(revoked.send().await.body, json!({ "tokens": [], "next": 0 }));

        // A search finds whole addresses and names, and is for the ticket service alone.
        let find = |text: &str| post(&world, "/internal/auth/users/find").json(&json!({ "text": text }));
        for (text, found) in [
            ("MINA@example.com", json!([id])), ("김민아", json!([id])), ("김민", json!([])),
            ("", json!([])), ("mina@", json!([])),
        ] {
            let answer = find(text).from(Some(Caller::Ticket)).send().await;
            assert_eq!(answer.body, json!({ "userIds": found, "more": false }), "{text}");
        }
        let refused = find("김민아").from(Some(Caller::Mail)).send().await;
        assert_eq!(refused.refusal(), (403, "CALLER_NOT_ALLOWED"));
        let nobody = format!("/internal/auth/users/{}", Uuid::from_u128(5));
        assert_eq!(get(&world, &nobody).send().await.refusal(), (404, "USER_NOT_FOUND"));
        for ids in [json!([]), json!(vec![id; 101])] {
            let call = post(&world, "/internal/auth/users/batch").json(&json!({ "userIds": ids }));
            assert_eq!(call.send().await.refusal(), (400, "INVALID_USER_IDS"));
        }
    }

    async fn revoked_tokens_are_told_with_the_number_to_go_on_from(world: World) {
        let session = world.register("mina@example.com").await;
        let cookies = format!("refresh_token={}", session.refresh_token);
        post(&world, "/api/auth/logout").header(COOKIE, &cookies).send().await;
        let answer = get(&world, "/internal/auth/revoked-tokens").send().await;
        let token = &answer.body["tokens"][0];
        assert_eq!(answer.body["next"], token["seq"]);
        assert_eq!(token["expiresAt"], "2026-11-15T01:00:00Z");
        let next = format!("/internal/auth/revoked-tokens?after={}", token["seq"]);
        let rest = get(&world, &next).send().await;
        assert_eq!(rest.body, json!({ "tokens": [], "next": token["seq"] }));
        let bad = get(&world, "/internal/auth/revoked-tokens?after=x").send().await;
        assert_eq!(bad.refusal(), (400, "INVALID_QUERY"));
    }

    async fn only_administrators_see_accounts_and_give_roles(world: World) {
        let mina = world.register("mina@example.com").await;
        let email = Email::parse("boss@example.com").unwrap();
        let password = Password::parse(PASSWORD, &email).unwrap();
        let boss = NewAdmin { email, name: PersonName::parse("관리자").unwrap(), password };
        let boss = world.auth.create_admin(boss).await.unwrap().id.0;
        let role_path = format!("/api/auth/admin/users/{}/role", mina.user.id);
        let to_admin = json!({ "role": "admin" });
        let calls = || [
            get(&world, "/api/auth/admin/users"),
            call(&world, Method::PUT, &role_path).json(&to_admin),
        ];
        for anonymous in calls() {
            assert_eq!(anonymous.send().await.refusal(), (401, "AUTHENTICATION_REQUIRED"));
        }
        let refused = ["ROLE_REQUIRED", "ADMIN_REQUIRED"];
        for (as_user, code) in calls().map(|call| call.of(&mina)).into_iter().zip(refused) {
            assert_eq!(as_user.send().await.refusal(), (403, code));
        }
        let [list, give] = calls().map(|call| call.user(boss, UserRole::Support));
        assert_eq!(list.send().await.status, 200, "support reads");
        assert_eq!(give.send().await.refusal(), (403, "ADMIN_REQUIRED"));
        for forged in calls().map(|call| call.user(boss, UserRole::Admin).from(None)) {
            assert_eq!(forged.send().await.refusal(), (403, "UNTRUSTED_IDENTITY"));
        }
        let [list, give] = calls().map(|call| call.user(boss, UserRole::Admin));
        let listed = list.send().await.body;
        assert_eq!(listed["pagination"]["total"], 2);
        assert_eq!(listed["users"][0]["role"], "admin");
        assert_eq!(give.send().await.body["user"]["role"], "admin");
        assert!(!world.accepts(&mina.access_token).await);

        let list = |query: &str| {
            get(&world, &format!("/api/auth/admin/users?{query}")).user(boss, UserRole::Admin).send()
        };
        assert_eq!(list("q=MINA@example.com").await.body["users"][0]["email"], "mina@example.com");
        assert_eq!(list("q=nobody@example.com").await.body["pagination"]["total"], 0);
        assert_eq!(list("q=mina").await.body["pagination"]["total"], 0, "a name that nobody has");
        assert_eq!(list("q=mina@").await.refusal(), (400, "INVALID_EMAIL"));
        let root = json!({ "role": "root" });
        let bad = call(&world, Method::PUT, &role_path).user(boss, UserRole::Admin).json(&root);
        assert_eq!(bad.send().await.refusal(), (400, "INVALID_ROLE"));
        let bad_path = call(&world, Method::PUT, "/api/auth/admin/users/7/role");
        let f_9 = bad_path.user(boss, UserRole::Admin).json(&to_admin).send().await;
        assert_eq!(f_9.refusal(), (400, "INVALID_PATH"), "F-9: not our failure");
    }

    async fn the_first_administrator_comes_by_invitation(world: World) {
        let invite = world.auth.issue_admin_invite().await.unwrap().unwrap();
        let body = |token: &str| json!({
            "token": token, "email": "boss@example.com", "password": PASSWORD, "name": "관리자",
        });
        let redeem = |token: &str| post(&world, "/api/auth/admin-invite").json(&body(token)).send();
        assert_eq!(redeem("guess").await.refusal(), (403, "ADMIN_INVITE_INVALID"));
        let answer = redeem(invite.expose()).await;
        assert_eq!((answer.status, answer.cookies().len()), (StatusCode::CREATED, 2));
        assert_eq!(answer.body["user"]["role"], "admin");
        assert_eq!(redeem(invite.expose()).await.refusal(), (403, "ADMIN_INVITE_INVALID"));
    }

    async fn the_origin_of_a_login_is_what_the_gateway_says(world: World) {
        world.register("mina@example.com").await;
        let body = json!({ "email": "mina@example.com", "password": PASSWORD });
        let login = post(&world, "/api/auth/login").json(&body);
        let login = login.header("x-urr-client-address", "203.0.113.9");
        login.header("user-agent", "test/1").send().await;
        let sql = "select address, user_agent from login_history order by id desc limit 1";
        let read = |row: &urr_storage::Row<'_>| Ok((row.get("address")?, row.get("user_agent")?));
        let client: (String, String) = world.rows(sql, read).await.remove(0);
        assert_eq!(client, ("203.0.113.9".to_owned(), "test/1".to_owned()));
    }
}
