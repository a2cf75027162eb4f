//! What operators look after: what is wrong now, dead letters, and the settings in force.

use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use tempfile::TempDir;
use urr_bus::{Bus, BusMessage, TopicSpec};
use urr_catalog::{
    CatalogParts, CatalogPeers, CatalogService, CatalogSettings, Operations, SettingInForce,
};
use urr_contracts::clients::{AuthClient, MailClient, PaymentClient, QueueClient, TicketClient};
use urr_contracts::internal::problems::{
    ListMailProblems, ListPaymentProblems, ListQueueProblems, ListTicketProblems,
};
use urr_kernel::Uuid;
use urr_service::{Caller, InternalCall, Metrics, RequestLimits, ServiceKit, Upstream, UserRole};

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World};

const MINA: Uuid = Uuid::from_u128(11);

/// What the other services say, by the name of the service.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<HashMap<&'static str, Value>>>);

/// The organisers that were asked for.
type Asked = Arc<Mutex<Vec<Option<String>>>>;

struct Desk {
    catalog: CatalogService,
    said: Said,
    asked: Asked,
    bus: Bus,
    _folder: TempDir,
}

impl Desk {
    async fn new(world: &World) -> Desk {
        let (said, asked) = (Said::default(), Asked::default());
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::open_embedded(&folder.path().join("bus.db"), &world.clock).unwrap();
        let topic =
            TopicSpec { name: "payment-events".to_owned(), partitions: 1, retention: 60 * MINUTE };
        bus.ensure_topics(&[topic]).await.unwrap();
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let upstream = |name, path: &str| {
            let state = (name, said.clone(), Arc::clone(&asked));
            let router = Router::new().route(path, get(answer)).with_state(state);
            Upstream::local(Caller::Catalog, name, router, &kit)
        };
        let setting = SettingInForce {
            key: "auth.jwt_secret".to_owned(),
            value: "(set)".to_owned(),
            source: "environment".to_owned(),
            environment: vec!["URR_AUTH_JWT_SECRET".to_owned()],
            comment: String::new(),
        };
        let peers = CatalogPeers {
            ticket: TicketClient::new(upstream("ticket", ListTicketProblems::SPEC.path)),
            auth: AuthClient::new(upstream("auth", "/none")),
            operations: Operations {
                payment: Some(PaymentClient::new(upstream(
                    "payment",
                    ListPaymentProblems::SPEC.path,
                ))),
                queue: Some(QueueClient::new(upstream("queue", ListQueueProblems::SPEC.path))),
                mail: Some(MailClient::new(upstream("mail", ListMailProblems::SPEC.path))),
                bus: Some(bus.clone()),
                settings: Arc::new([setting]),
            },
        };
        let catalog = CatalogService::new(CatalogParts {
            db: world.db.clone(),
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            settings: CatalogSettings::default(),
            peers: Some(peers),
        });
        Desk { catalog, said, asked, bus, _folder: folder }
    }

    fn say(&self, service: &'static str, problem: Value) {
        self.said.0.lock().unwrap().insert(service, problem);
    }

    async fn problems(&self, world: &World, role: UserRole) -> Vec<Value> {
        // What was told is kept for a few seconds.
        world.clock.advance(4 * SECOND);
        let call = world.call_on(&self.catalog, Method::GET, "/api/admin/problems");
        let answer = call.by_person(MINA, role).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body["problems"].as_array().unwrap().clone()
    }

    async fn poison(&self, world: &World) {
        let mut letter = BusMessage::new("payment-events-dlq", "k", "{\"oops\":1}");
        let headers = [
            ("urr-reason", "it cannot be read".to_owned()),
            ("urr-group", "stats-service-group".to_owned()),
            ("urr-original", "payment-events/0/0".to_owned()),
            ("urr-failed-at", world.clock.now().to_string()),
        ];
        letter.headers = headers.map(|(name, value)| (name.to_owned(), value)).into();
        self.bus.publish_one(letter).await.unwrap();
    }
}

async fn answer(
    State((service, said, asked)): State<(&'static str, Said, Asked)>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    asked.lock().unwrap().push(query.get("organiserId").cloned());
    match said.0.lock().unwrap().get(service) {
        None => Json(json!({ "problems": [] })).into_response(),
        Some(Value::Null) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Some(problem) => Json(json!({ "problems": [problem] })).into_response(),
    }
}

fn codes(problems: &[Value]) -> Vec<&str> {
    problems.iter().map(|problem| problem["code"].as_str().unwrap()).collect()
}

contract! {
    async fn what_is_wrong_is_told_with_a_sentence_and_a_page(world: World) {
        let desk = Desk::new(&world).await;
        assert_eq!(desk.problems(&world, UserRole::Admin).await, [] as [Value; 0]);
        let event = Uuid::from_u128(5);
        desk.say("queue", json!({
            "code": "ROOM_PAUSED", "count": 20, "eventId": event, "subject": "한강의 밤",
        }));
        let since = world.clock.now();
        desk.say("payment", json!({ "code": "PAYMENTS_UNCLEAR", "count": 2, "since": since }));
        // A service that is away is itself a problem.
        desk.say("mail", Value::Null);
        let problems = desk.problems(&world, UserRole::Support).await;
        assert_eq!(codes(&problems), ["PAYMENTS_UNCLEAR", "ROOM_PAUSED", "SERVICE_AWAY"]);
        assert_eq!(problems[0]["since"], json!(since));
        assert_eq!(problems[0]["link"], "/admin/payments?status=unknown");
        assert_eq!(problems[1]["link"], format!("/admin/events/{event}/live"));
        assert_eq!(problems[1]["sentence"], "한강의 밤: paused while 20 people wait.");
        assert_eq!(problems[2]["sentence"], "The mail service does not answer.");
        world.clock.advance(MINUTE);
        let call = world.call_on(&desk.catalog, Method::GET, "/api/admin/problems");
        let korean = call.by_person(MINA, UserRole::Admin).header("accept-language", "ko");
        let sentence = korean.send().await.body["problems"][2]["sentence"].clone();
        assert_eq!(sentence, "mail 서비스가 응답하지 않습니다.");
    }

    async fn an_organiser_is_told_of_their_own_events_only(world: World) {
        let desk = Desk::new(&world).await;
        desk.poison(&world).await;
        assert_eq!(codes(&desk.problems(&world, UserRole::Admin).await), ["DEAD_LETTERS"]);
        assert!(desk.asked.lock().unwrap().iter().all(Option::is_none));
        desk.asked.lock().unwrap().clear();
        let own = desk.problems(&world, UserRole::Organiser).await;
        assert_eq!(own, [] as [Value; 0], "dead letters are for operators");
        let asked = desk.asked.lock().unwrap().clone();
        assert_eq!(asked, vec![Some(MINA.to_string()); 4]);
        for role in [UserRole::User, UserRole::Staff] {
            let call = world.call_on(&desk.catalog, Method::GET, "/api/admin/problems");
            assert_eq!(call.by_user(role).send().await.refusal(), (403, "ROLE_REQUIRED"));
        }
    }

    async fn many_who_look_at_once_ask_once(world: World) {
        let desk = Desk::new(&world).await;
        desk.problems(&world, UserRole::Admin).await;
        let before = desk.asked.lock().unwrap().len();
        for _ in 0..20 {
            let call = world.call_on(&desk.catalog, Method::GET, "/api/admin/problems");
            call.by_person(MINA, UserRole::Admin).send().await;
        }
        assert_eq!(desk.asked.lock().unwrap().len(), before);
    }

    async fn a_dead_letter_is_sent_again_once_and_the_log_has_it(world: World) {
        let desk = Desk::new(&world).await;
        desk.poison(&world).await;
        let list = || async {
            let call = world.call_on(&desk.catalog, Method::GET, "/api/admin/dead-letters");
            call.by_admin().send().await.body["deadLetters"].as_array().unwrap().clone()
        };
        let letters = list().await;
        let [letter] = letters.as_slice() else { panic!("{letters:?}") };
        assert_eq!(letter["id"], "payment-events-dlq:0:0");
        assert_eq!(letter["reason"], "it cannot be read");
        assert_eq!(letter["body"], "{\"oops\":1}");
        let retry = |id: &str| {
            let path = format!("/api/admin/dead-letters/{id}/retry");
            world.call_on(&desk.catalog, Method::POST, &path)
        };
        for role in [UserRole::Organiser, UserRole::Support] {
            let refused = retry("payment-events-dlq:0:0").by_user(role).send().await;
            assert_eq!(refused.refusal(), (403, "ADMIN_REQUIRED"));
        }
        let sent = retry("payment-events-dlq:0:0").by_admin().send().await;
        assert_eq!(sent.body["sentAs"], "payment-events:0:0", "{}", sent.body);
        assert_eq!(list().await, [] as [Value; 0]);
        let again = retry("payment-events-dlq:0:0").by_admin().send().await;
        assert_eq!(again.refusal(), (409, "ALREADY_REPLAYED"));
        for unknown in ["payment-events-dlq:0:77", "payment-events:0:0", "nonsense"] {
            let refused = retry(unknown).by_admin().send().await;
            assert_eq!(refused.refusal(), (404, "DEAD_LETTER_NOT_FOUND"), "{unknown}");
        }
        let log = world.call_on(&desk.catalog, Method::GET, "/api/admin/catalog/log");
        let log = log.by_admin().send().await.body["entries"].clone();
        let logged: Vec<_> = log.as_array().unwrap().iter()
            .map(|entry| (entry["action"].clone(), entry["details"]["outcome"].clone())).collect();
        let retried = json!("DEAD_LETTER_RETRIED");
        assert_eq!(logged, [(retried.clone(), json!("refused")), (retried, json!("done"))]);
    }

    async fn only_administrators_read_the_settings(world: World) {
        let desk = Desk::new(&world).await;
        let call = || world.call_on(&desk.catalog, Method::GET, "/api/admin/settings");
        let seen = call().by_admin().send().await;
        assert_eq!(seen.body["settings"][0]["key"], "auth.jwt_secret");
        assert_eq!(seen.body["settings"][0]["value"], "(set)");
        for role in [UserRole::Organiser, UserRole::Support] {
            assert_eq!(call().by_user(role).send().await.refusal(), (403, "ADMIN_REQUIRED"));
        }
    }
}
