//! Who may use which route: every route with every kind of sender.

use axum::http::Method;
use urr_gateway::{Policy, ROUTES, Route};
use urr_service::{RoleGroup, UserRole};

use crate::harness::{EVENT, FAN, TestGateway, TestRequest, passed, refused};

const METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Anonymous,
    Expired,
    Forged,
    Internal,
    User,
    UserAdmitted,
    Staff,
    Organiser,
    Support,
    Admin,
    AdminAdmitted,
}

const ALL_SENDERS: [Sender; 11] = [
    Sender::Anonymous,
    Sender::Expired,
    Sender::Forged,
    Sender::Internal,
    Sender::User,
    Sender::UserAdmitted,
    Sender::Staff,
    Sender::Organiser,
    Sender::Support,
    Sender::Admin,
    Sender::AdminAdmitted,
];

impl Sender {
    /// The role that the sender proves.
    fn role(self) -> Option<UserRole> {
        match self {
            Sender::Anonymous | Sender::Expired | Sender::Forged | Sender::Internal => None,
            Sender::User | Sender::UserAdmitted => Some(UserRole::User),
            Sender::Staff => Some(UserRole::Staff),
            Sender::Organiser => Some(UserRole::Organiser),
            Sender::Support => Some(UserRole::Support),
            Sender::Admin | Sender::AdminAdmitted => Some(UserRole::Admin),
        }
    }
}

fn with_credentials<'a>(
    sender: Sender,
    gateway: &TestGateway,
    request: TestRequest<'a>,
) -> TestRequest<'a> {
    let entry = || gateway.entry_token(FAN, EVENT);
    match sender {
        Sender::Anonymous => request,
        Sender::Expired => {
            let mut issue = gateway.issue(FAN);
            issue.issued_at -= std::time::Duration::from_secs(1_801);
            request.bearer(&gateway.signed(urr_service::token::ACCESS, &issue, UserRole::Admin))
        }
        Sender::Forged => request
            .header("x-user-id", &FAN.to_string())
            .header("X-User-Role", "admin")
            .header("x_user_role", "admin")
            .header("x-urr-entry-event", &EVENT.to_string()),
        Sender::Internal => request
            .header("x-urr-caller", "gateway")
            .header("x-urr-credential", "guessed")
            .header("authorization", "Bearer guessed"),
        Sender::User => request.bearer(&gateway.token(UserRole::User)),
        Sender::Staff => request.bearer(&gateway.token(UserRole::Staff)),
        Sender::Organiser => request.bearer(&gateway.token(UserRole::Organiser)),
        Sender::Support => request.bearer(&gateway.token(UserRole::Support)),
        Sender::UserAdmitted => request.bearer(&gateway.token(UserRole::User)).entry(&entry()),
        Sender::Admin => {
            request.cookie(&gateway.token(UserRole::Admin)).header("sec-fetch-site", "same-origin")
        }
        Sender::AdminAdmitted => request.bearer(&gateway.token(UserRole::Admin)).entry(&entry()),
    }
}

fn expected(policy: Policy, sender: Sender) -> (u16, String) {
    let anonymous = || refused(401, "AUTHENTICATION_REQUIRED");
    match (policy, sender) {
        (Policy::Public, _) => passed(),
        (_, Sender::Anonymous | Sender::Forged) => anonymous(),
        (_, Sender::Expired) => refused(401, "TOKEN_EXPIRED"),
        (_, Sender::Internal) => refused(401, "TOKEN_MALFORMED"),
        (Policy::User, _) => passed(),
        (Policy::Admitted, Sender::UserAdmitted | Sender::AdminAdmitted) => passed(),
        (Policy::Admitted, _) => refused(403, "ENTRY_TOKEN_REQUIRED"),
        (Policy::Role(group), sender) if admits(group, sender) => passed(),
        (Policy::Role(RoleGroup::Admin), _) => refused(403, "ADMIN_REQUIRED"),
        (Policy::Role(_), _) => refused(403, "ROLE_REQUIRED"),
    }
}

/// Written down a second time, so that a change of the groups is a change of this test.
fn admits(group: RoleGroup, sender: Sender) -> bool {
    let Some(role) = sender.role() else { return false };
    let admitted: &[UserRole] = match group {
        RoleGroup::Admin => &[],
        RoleGroup::Support => &[UserRole::Support],
        RoleGroup::Organiser => &[UserRole::Organiser],
        RoleGroup::EventReader => &[UserRole::Organiser, UserRole::Support],
        RoleGroup::DoorStaff => &[UserRole::Staff, UserRole::Organiser],
    };
    role == UserRole::Admin || admitted.contains(&role)
}

fn path_of(route: &Route) -> String {
    let path = route.pattern.replace("**", "x").replace("{provider}", "google");
    path.replace("{id}", &EVENT.to_string()).replace("{refundId}", &EVENT.to_string())
}

#[tokio::test]
async fn every_route_admits_exactly_the_senders_of_its_policy() {
    let gateway = TestGateway::new();
    let mut asked = 0;
    for route in ROUTES {
        let path = path_of(route);
        for method in METHODS.iter().filter(|method| route.methods.contains(method)) {
            for sender in ALL_SENDERS {
                let request =
                    with_credentials(sender, &gateway, gateway.request(method.clone(), &path));
                let answer = request.send().await;
                let (mut status, mut code) = answer.outcome();
                let expected = expected(route.policy, sender);
                if *method == Method::HEAD {
                    // A HEAD has no body to read the code from.
                    (status, code) = (status, expected.1.clone());
                }
                assert_eq!((status, code), expected, "{sender:?} {method} {path}");
                let seen = gateway.services.received();
                assert_eq!(seen.len(), usize::from(status == 200), "{sender:?} {method} {path}");
                for seen in seen {
                    assert_eq!(seen.service, route.service);
                    let user = sender.role().map(|role| (FAN, role));
                    assert_eq!(seen.user, user, "{sender:?} {method} {path}");
                }
                asked += 1;
            }
        }
    }
    assert!(asked > 400, "{asked}");
}

#[tokio::test]
async fn internal_paths_do_not_exist_in_public() {
    let gateway = TestGateway::new();
    for path in [
        "/internal",
        "/internal/auth/revoked-tokens?after=0",
        "/internal/ticket/reservations/1/confirm",
        "/api/internal/auth/revoked-tokens?after=0",
        "/api/v1/internal/x",
        "/api/../internal/auth/revoked-tokens",
    ] {
        for sender in ALL_SENDERS {
            let status = with_credentials(sender, &gateway, gateway.get(path)).send().await.status;
            assert!(status == 404 || status == 400, "{sender:?} {path}: {status}");
        }
    }
    assert!(gateway.services.received().is_empty());
}

#[tokio::test]
async fn routes_of_a_service_that_does_not_run_answer_404() {
    let gateway = TestGateway::with_services(&["catalog"], |_| {});
    for (path, status) in [("/api/artists", 200), ("/api/queue/status/1", 404), ("/api/time", 404)]
    {
        for sender in [Sender::Anonymous, Sender::Admin] {
            let answer = with_credentials(sender, &gateway, gateway.get(path)).send().await;
            assert_eq!(answer.status, status, "{path}");
        }
    }
    assert!(gateway.feed.is_none());
}

#[tokio::test]
async fn another_method_gets_the_allowed_ones() {
    let gateway = TestGateway::new();
    let answer = gateway.request(Method::DELETE, "/api/artists/1").send().await;
    assert_eq!(answer.outcome(), refused(405, "METHOD_NOT_ALLOWED"));
    assert_eq!(answer.header("allow"), "GET, HEAD");
    let trace = gateway.request(Method::TRACE, "/api/auth/me").send().await;
    assert_eq!(trace.status, 405);
    assert!(gateway.services.received().is_empty());
}
