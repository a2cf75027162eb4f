//! Rate limits per client, account and address, and limits on sizes.

use std::time::Duration;

use axum::body::Body;
use serde_json::json;
use urr_gateway::{AddressRange, RateLimits};
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::harness::{TestGateway, TestRequest, passed, refused};

const SMALL: RateLimits = RateLimits {
    auth: 3,
    queue: 4,
    booking: 2,
    pay: 4,
    pay_target: 3,
    general: 5,
    webhook: 5,
    users_per_address: 3,
    login_address: 1_000,
    login_account: 1_000,
    refresh_address: 1_000,
};

fn limited() -> TestGateway {
    TestGateway::with_settings(|settings| settings.rate_limits = SMALL)
}

async fn allowed(request: impl Fn() -> TestRequest<'static>) -> usize {
    let mut count = 0;
    while count < 100 {
        match request().send().await.status.as_u16() {
            200 => count += 1,
            429 => break,
            other => panic!("{other}: it was refused for something else"),
        }
    }
    count
}

fn leak(gateway: TestGateway) -> &'static TestGateway {
    Box::leak(Box::new(gateway))
}

#[tokio::test]
async fn each_class_has_its_own_limit() {
    let gateway = leak(limited());
    let token: &'static str = gateway.token(UserRole::User).leak();
    assert_eq!(allowed(|| gateway.post("/api/auth/verify-token").bearer(token)).await, 3);
    assert_eq!(allowed(|| gateway.get("/api/queue/status/1").bearer(token)).await, 4);
    assert_eq!(allowed(|| gateway.post("/api/reservations/1/cancel").bearer(token)).await, 2);
    assert_eq!(allowed(|| gateway.get("/api/artists").bearer(token)).await, 5);
    // One client's is not another's, and an address is not a user.
    let other: &'static str = gateway.token_of(Uuid::from_u128(5), UserRole::User).leak();
    assert_eq!(allowed(|| gateway.get("/api/artists").bearer(other)).await, 5);
    assert_eq!(allowed(|| gateway.get("/api/artists").from("203.0.113.1")).await, 5);
    assert_eq!(allowed(|| gateway.get("/api/artists").from("203.0.113.2")).await, 5);
    // After a while there is some again.
    gateway.clock.advance(Duration::from_secs(12));
    assert_eq!(allowed(|| gateway.get("/api/artists").bearer(other)).await, 1);
}

/// Card attempts count for the user who makes them: nobody can use up another's.
#[tokio::test]
async fn paying_is_limited_per_user_and_per_what_is_paid() {
    let gateway = leak(limited());
    let [thief, buyer]: [&'static str; 2] = [5, 6].map(|id| {
        let token: &'static str = gateway.token_of(Uuid::from_u128(id), UserRole::User).leak();
        token
    });
    let pay = |token: &'static str, path: &'static str, body: serde_json::Value| {
        move || gateway.post(path).bearer(token).json(&body)
    };
    let confirm = || pay(thief, "/api/payments/confirm", json!({ "orderId": "ORD_1" }));
    assert_eq!(allowed(confirm()).await, 3, "three times about one order");
    let prepare = json!({ "reservationId": Uuid::from_u128(9) });
    assert_eq!(allowed(pay(thief, "/api/payments/prepare", prepare)).await, 1, "and four in all");
    assert_eq!(allowed(pay(thief, "/api/payments/1/cancel", json!({}))).await, 0);
    // Looking is not paying, and another buyer of the same has a limit of their own.
    assert_eq!(allowed(|| gateway.get("/api/payments/order/ORD_1").bearer(thief)).await, 5);
    let other = json!({ "orderId": "ORD_1" });
    assert_eq!(allowed(pay(buyer, "/api/payments/confirm", other)).await, 3);
    // The control: without these limits there is no end.
    let open = leak(TestGateway::with_settings(|settings| {
        settings.rate_limits = RateLimits { pay: 1_000, pay_target: 1_000, ..SMALL };
    }));
    let token: &'static str = open.token(UserRole::User).leak();
    let body = json!({ "orderId": "ORD_1" });
    let without = || open.post("/api/payments/confirm").bearer(token).json(&body);
    let mut count = 0;
    while count < 50 && without().send().await.status == 200 {
        count += 1;
    }
    assert_eq!(count, 50);
}

/// Many accounts are no way around the limits. The control has no bound for the address.
#[tokio::test]
async fn all_users_of_one_address_share_a_limit() {
    for (users_per_address, expected) in [(3, 15), (1_000, 50)] {
        let gateway = leak(TestGateway::with_settings(|settings| {
            settings.rate_limits = RateLimits { users_per_address, ..SMALL };
        }));
        let user = |n: u128, address: &'static str| {
            let token: &'static str = gateway.token_of(Uuid::from_u128(n), UserRole::User).leak();
            move || gateway.get("/api/artists").bearer(token).from(address)
        };
        let mut total = 0;
        for n in 0..10 {
            total += allowed(user(n, "203.0.113.1")).await;
        }
        assert_eq!(total, expected, "{users_per_address}");
        assert_eq!(allowed(user(90, "203.0.113.2")).await, 5, "elsewhere");
        assert_eq!(allowed(|| gateway.get("/api/artists").from("203.0.113.1")).await, 5);
    }
}

#[tokio::test]
async fn a_refusal_says_when_to_retry() {
    let gateway = limited();
    let request = || gateway.get("/api/artists").from("203.0.113.1");
    let first = request().send().await;
    assert_eq!(first.header("ratelimit-limit"), "5");
    assert_eq!(first.header("ratelimit-remaining"), "4");
    assert_eq!(first.header("ratelimit-reset"), "12");
    for _ in 0..4 {
        request().send().await;
    }
    let refusal = request().send().await;
    assert_eq!(refusal.outcome(), refused(429, "RATE_LIMITED"));
    assert_eq!(refusal.header("retry-after"), "12");
    assert_eq!(refusal.header("ratelimit-remaining"), "0");
    assert_eq!(refusal.json()["retryAfter"], 12);
    assert_eq!(gateway.services.received().len(), 5, "it did not reach the service");
}

#[tokio::test]
async fn e_2_clients_behind_our_proxy_are_told_apart() {
    let gateway = TestGateway::with_settings(|settings| {
        settings.rate_limits = SMALL;
        let address = "10.0.0.0".parse().unwrap();
        settings.trusted_proxies = vec![AddressRange { address, prefix_bits: 8 }];
    });
    let gateway = leak(gateway);
    let behind = |client: &'static str| {
        move || gateway.get("/api/artists").from("10.1.1.1").header("x-forwarded-for", client)
    };
    assert_eq!(allowed(behind("198.51.100.1")).await, 5);
    assert_eq!(allowed(behind("198.51.100.2")).await, 5);
    assert_eq!(allowed(behind("6.6.6.6, 198.51.100.2")).await, 0, "an invented hop is no escape");
    // Forwarding headers of other peers are ignored: they are counted by their own address.
    let stranger = |claim: &'static str| {
        move || gateway.get("/api/artists").from("203.0.113.9").header("x-forwarded-for", claim)
    };
    assert_eq!(allowed(stranger("198.51.100.3")).await, 5);
    assert_eq!(allowed(stranger("198.51.100.4")).await, 0);
    // Services get the real address, and nothing that was claimed.
    gateway.services.received();
    behind("6.6.6.6, 198.51.100.7")().header("x-urr-client-address", "6.6.6.6").send().await;
    let seen = gateway.services.received().pop().unwrap().headers;
    assert_eq!(seen["x-urr-client-address"], "198.51.100.7");
    assert!(!seen.contains_key("x-forwarded-for"));
}

#[tokio::test]
async fn d_15_guessing_is_counted_by_account_and_by_address() {
    let gateway = TestGateway::with_settings(|settings| {
        settings.rate_limits.login_account = 3;
        settings.rate_limits.login_address = 5;
    });
    let login = async |address: &str, email: &str, path: &str| {
        let body = json!({ "email": email, "password": "guess" });
        gateway.post(path).from(address).json(&body).send().await.status.as_u16()
    };
    // One account from many addresses.
    for (n, expected) in [(1, 200), (2, 200), (3, 200), (4, 429), (5, 429)] {
        let address = format!("198.51.100.{n}");
        let spelling = if n % 2 == 0 { "Mina@Example.com" } else { "mina@example.com " };
        assert_eq!(login(&address, spelling, "/api/auth/login").await, expected, "{n}");
    }
    // Many accounts from one address.
    for (n, expected) in [(1, 200), (2, 200), (3, 200), (4, 200), (5, 200), (6, 429)] {
        let email = format!("fan{n}@example.com");
        assert_eq!(login("203.0.113.1", &email, "/api/v1/auth/login").await, expected, "{n}");
    }
    // Registrations count too; other addresses and accounts are not affected.
    assert_eq!(login("203.0.113.1", "new@example.com", "/api/auth/register").await, 429);
    assert_eq!(login("198.51.100.9", "mina@example.com", "/api/auth/register").await, 429);
    assert_eq!(login("198.51.100.9", "jun@example.com", "/api/auth/login").await, 200);
    // A refusal by the address takes nothing from the account.
    assert_eq!(login("203.0.113.1", "jun@example.com", "/api/auth/login").await, 429);
    assert_eq!(login("198.51.100.8", "jun@example.com", "/api/auth/login").await, 200);
    assert_eq!(login("198.51.100.7", "jun@example.com", "/api/auth/login").await, 200);
    let body = gateway.services.received().pop().unwrap().body;
    assert!(body.starts_with(b"{\"email\":\"jun@example.com\""), "the body is passed on whole");
}

/// A campus shares one address, and its sessions expire at about the same time.
#[tokio::test]
async fn refreshes_are_counted_by_session_and_the_address_has_much_more() {
    let gateway = leak(TestGateway::with_settings(|settings| {
        settings.rate_limits.auth = 3;
        settings.rate_limits.refresh_address = 20;
    }));
    let refresh = |address: &'static str, token: &str| {
        let cookie = format!("theme=dark; refresh_token={token}").leak();
        move || {
            let request = gateway.post("/api/auth/refresh").from(address).header("cookie", cookie);
            request.header("sec-fetch-site", "same-origin")
        }
    };
    // A session has its own limit, from any address.
    assert_eq!(allowed(refresh("203.0.113.1", "a.b.c")).await, 3);
    assert_eq!(allowed(refresh("203.0.113.2", "a.b.c")).await, 0, "no new one elsewhere");
    // Its neighbours are not affected, up to the limit of the address.
    for n in 0..5 {
        assert_eq!(allowed(refresh("203.0.113.1", &format!("{n}.b.c"))).await, 3, "{n}");
    }
    assert_eq!(allowed(refresh("203.0.113.1", "x.b.c")).await, 2, "20 from one address");
    assert_eq!(allowed(refresh("203.0.113.2", "y.b.c")).await, 3, "and others have their own");
    // A refusal by the address takes nothing from the session.
    assert_eq!(allowed(refresh("203.0.113.1", "z.b.c")).await, 0);
    assert_eq!(allowed(refresh("203.0.113.3", "z.b.c")).await, 3);
    // Invented tokens are counted by where they come from.
    let mut invented = 0;
    while refresh("203.0.113.4", &invented.to_string())().send().await.status != 429 {
        invented += 1;
    }
    assert_eq!(invented, 20);
}

#[tokio::test]
async fn a_session_is_the_same_in_the_cookie_and_in_the_body_and_at_v1() {
    let gateway = leak(TestGateway::with_settings(|settings| settings.rate_limits.auth = 3));
    let body = |token: &str| json!({ "refreshToken": token });
    let by_body = |path: &'static str, token: &'static str| {
        move || gateway.post(path).from("203.0.113.1").json(&body(token))
    };
    let by_cookie = |cookie: &'static str| {
        move || {
            let request =
                gateway.post("/api/auth/refresh").from("203.0.113.1").header("cookie", cookie);
            request.header("sec-fetch-site", "same-origin")
        }
    };
    assert_eq!(allowed(by_body("/api/v1/auth/refresh", "a")).await, 3);
    assert_eq!(allowed(by_body("/api/auth/refresh", "a")).await, 0);
    assert_eq!(allowed(by_cookie("refresh_token=a")).await, 0);
    assert_eq!(allowed(by_cookie("refresh_token=; refresh_token=a")).await, 0, "the service's");
    let seen = gateway.services.received().pop().unwrap();
    assert_eq!(seen.body, r#"{"refreshToken":"a"}"#, "the body is passed on whole");
    // Without a token there is no session: the address is counted with its other requests.
    assert_eq!(allowed(|| gateway.post("/api/auth/refresh").from("203.0.113.1")).await, 3);
    assert_eq!(allowed(|| gateway.post("/api/auth/logout").from("203.0.113.1")).await, 0);
    assert_eq!(allowed(by_body("/api/auth/refresh", "")).await, 0);
    // Control: another session goes on.
    assert_eq!(allowed(by_body("/api/auth/refresh", "b")).await, 3);
}

/// Hyper takes 128 and answers more with its own error.
#[tokio::test]
async fn headers_have_a_largest_number() {
    let gateway = TestGateway::new();
    let request = |count: usize| {
        let names = (0..count).map(|n| format!("x-{n}"));
        names.fold(gateway.get("/api/artists"), |request, name| request.header(&name, "1"))
    };
    assert_eq!(request(64).send().await.outcome(), passed());
    let many = request(65).send().await;
    assert_eq!(many.outcome(), refused(431, "TOO_MANY_HEADERS"));
    assert!(many.json()["error"].is_string());
    let same =
        (0..65).fold(gateway.get("/api/artists"), |request, _| request.header("x-same", "1"));
    assert_eq!(same.send().await.outcome(), refused(431, "TOO_MANY_HEADERS"), "of one name");
    assert_eq!(gateway.services.received().len(), 1);
}

/// The headers that the gateway adds still fit into the limit of the server of a service.
#[tokio::test]
async fn the_largest_number_of_headers_reaches_a_service_elsewhere() {
    let gateway = TestGateway::remote(|_| {}).await;
    let request = gateway.get("/api/reservations/my").bearer(&gateway.token(UserRole::User));
    let request = (1..64).fold(request, |request, n| request.header(&format!("x-{n}"), "1"));
    assert_eq!(request.send().await.outcome(), passed());
}

#[tokio::test]
async fn headers_have_a_largest_size() {
    let gateway = TestGateway::new();
    let request = |bytes: usize| gateway.get("/api/artists").header("x-long", &"x".repeat(bytes));
    assert_eq!(request(16_384 - 10).send().await.outcome(), passed());
    assert_eq!(request(16_384 - 9).send().await.outcome(), refused(431, "HEADERS_TOO_LARGE"));
}

#[tokio::test]
async fn bodies_have_a_largest_size_and_those_for_auth_a_smaller_one() {
    let gateway = TestGateway::new();
    let token = gateway.token(UserRole::Admin);
    let unannounced = |bytes: usize| {
        let chunk = Ok::<_, std::io::Error>(vec![b' '; bytes]);
        Body::from_stream(futures_util::stream::iter([chunk]))
    };
    for (path, bytes, outcome) in [
        ("/api/auth/login", 10_240, passed()),
        ("/api/auth/login", 10_241, refused(413, "BODY_TOO_LARGE")),
        ("/api/auth/refresh", 10_240, passed()),
        ("/api/auth/refresh", 10_241, refused(413, "BODY_TOO_LARGE")),
        ("/api/payments/confirm", 1_048_576, passed()),
        ("/api/payments/confirm", 1_048_577, refused(413, "BODY_TOO_LARGE")),
        ("/api/image/upload", 5_308_417, refused(413, "BODY_TOO_LARGE")),
    ] {
        let request = gateway.post(path).bearer(&token).body(vec![b' '; bytes]);
        assert_eq!(request.send().await.outcome(), outcome, "{path} {bytes}");
    }
    let login = gateway.post("/api/auth/login").body(unannounced(10_241)).send().await;
    assert_eq!(login.outcome(), refused(413, "BODY_TOO_LARGE"));
    assert_eq!(gateway.services.received().len(), 3);
}
