//! Who may use which route: every row of the table with every kind of visitor.

use axum::http::Method;
use urr_gateway::{Policy, ROUTES, Route};
use urr_service::Role;

use crate::house::{Ask, EVENT, FAN, House, passed, refused};

const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Anonymous,
    Expired,
    Forged,
    Internal,
    User,
    UserAdmitted,
    Admin,
    AdminAdmitted,
}

const EVERYBODY: [Who; 8] = [
    Who::Anonymous,
    Who::Expired,
    Who::Forged,
    Who::Internal,
    Who::User,
    Who::UserAdmitted,
    Who::Admin,
    Who::AdminAdmitted,
];

fn dress<'a>(who: Who, house: &House, ask: Ask<'a>) -> Ask<'a> {
    let entry = || house.entry_token(FAN, EVENT);
    match who {
        Who::Anonymous => ask,
        Who::Expired => {
            let mut issue = house.issue(FAN);
            issue.issued_at -= std::time::Duration::from_secs(1_801);
            ask.bearer(&house.signed(urr_service::token::ACCESS, &issue, Role::Admin))
        }
        Who::Forged => ask
            .header("x-user-id", &FAN.to_string())
            .header("X-User-Role", "admin")
            .header("x_user_role", "admin")
            .header("x-urr-entry-event", &EVENT.to_string()),
        Who::Internal => ask
            .header("x-urr-caller", "gateway")
            .header("x-urr-credential", "guessed")
            .header("authorization", "Bearer guessed"),
        Who::User => ask.bearer(&house.token(Role::User)),
        Who::UserAdmitted => ask.bearer(&house.token(Role::User)).entry(&entry()),
        Who::Admin => ask.cookie(&house.token(Role::Admin)).header("sec-fetch-site", "same-origin"),
        Who::AdminAdmitted => ask.bearer(&house.token(Role::Admin)).entry(&entry()),
    }
}

fn expected(policy: Policy, who: Who) -> (u16, String) {
    let anonymous = || refused(401, "AUTHENTICATION_REQUIRED");
    match (policy, who) {
        (Policy::Public, _) => passed(),
        (_, Who::Anonymous | Who::Forged) => anonymous(),
        (_, Who::Expired) => refused(401, "TOKEN_EXPIRED"),
        (_, Who::Internal) => refused(401, "TOKEN_MALFORMED"),
        (Policy::User, _) => passed(),
        (Policy::Admitted, Who::UserAdmitted | Who::AdminAdmitted) => passed(),
        (Policy::Admitted, _) => refused(403, "ENTRY_TOKEN_REQUIRED"),
        (Policy::Admin, Who::Admin | Who::AdminAdmitted) => passed(),
        (Policy::Admin, _) => refused(403, "ADMIN_REQUIRED"),
    }
}

fn path_of(route: &Route) -> String {
    let path = route.pattern.replace("**", "x").replace("{provider}", "google");
    path.replace("{id}", &EVENT.to_string())
}

#[tokio::test]
async fn every_route_lets_in_whom_its_policy_names_and_nobody_else() {
    let house = House::open();
    let mut asked = 0;
    for route in ROUTES {
        let path = path_of(route);
        for method in METHODS.iter().filter(|method| route.methods.contains(method)) {
            for who in EVERYBODY {
                let ask = dress(who, &house, house.ask(method.clone(), &path));
                let answer = ask.send().await;
                let (mut status, mut code) = answer.outcome();
                let expected = expected(route.policy, who);
                if *method == Method::HEAD {
                    // A HEAD has no body to read the code from.
                    (status, code) = (status, expected.1.clone());
                }
                assert_eq!((status, code), expected, "{who:?} {method} {path}");
                let seen = house.services.seen();
                assert_eq!(seen.len(), usize::from(status == 200), "{who:?} {method} {path}");
                for seen in seen {
                    assert_eq!(seen.service, route.service);
                    let known = matches!(who, Who::User | Who::UserAdmitted);
                    let admin = matches!(who, Who::Admin | Who::AdminAdmitted);
                    let user = match (known, admin) {
                        (true, _) => Some((FAN, Role::User)),
                        (_, true) => Some((FAN, Role::Admin)),
                        (false, false) => None,
                    };
                    assert_eq!(seen.user, user, "{who:?} {method} {path}");
                }
                asked += 1;
            }
        }
    }
    assert!(asked > 400, "{asked}");
}

#[tokio::test]
async fn what_is_internal_does_not_exist_outside() {
    let house = House::open();
    for path in [
        "/internal",
        "/internal/auth/revoked-tokens?after=0",
        "/internal/ticket/reservations/1/confirm",
        "/api/internal/auth/revoked-tokens?after=0",
        "/api/v1/internal/x",
        "/api/../internal/auth/revoked-tokens",
    ] {
        for who in EVERYBODY {
            let status = dress(who, &house, house.get(path)).send().await.status;
            assert!(status == 404 || status == 400, "{who:?} {path}: {status}");
        }
    }
    assert!(house.services.seen().is_empty());
}

#[tokio::test]
async fn a_service_that_is_not_there_is_not_there_for_anybody() {
    let house = House::before(&["catalog"], |_| {});
    for (path, status) in [("/api/artists", 200), ("/api/queue/status/1", 404), ("/api/time", 404)]
    {
        for who in [Who::Anonymous, Who::Admin] {
            let answer = dress(who, &house, house.get(path)).send().await;
            assert_eq!(answer.status, status, "{path}");
        }
    }
    assert!(house.feed.is_none());
}

#[tokio::test]
async fn another_method_is_told_which_ones_there_are() {
    let house = House::open();
    let answer = house.ask(Method::DELETE, "/api/artists/1").send().await;
    assert_eq!(answer.outcome(), refused(405, "METHOD_NOT_ALLOWED"));
    assert_eq!(answer.header("allow"), "GET, HEAD");
    let trace = house.ask(Method::TRACE, "/api/auth/me").send().await;
    assert_eq!(trace.status, 405);
    assert!(house.services.seen().is_empty());
}
