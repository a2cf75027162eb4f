//! The clients against a server that takes the golden requests and gives the golden answers.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::{Value, json};
use urr_contracts::clients::{
    AuthClient, ClientError, PayableRef, PaymentClient, QueueClient, TicketClient,
};
use urr_contracts::internal::queue::SlotCheck;
use urr_contracts::internal::ticket::{
    CancelReservationBody, ConfirmPayableBody, PayableKind, PinPayableBody, RefundedPayableBody,
    UnpinPayableBody,
};
use urr_contracts::internal::{CALLS, CallMethod, InternalCall, queue};
use urr_kernel::{CallContext, Clock, IdSource, Tier, Timestamp, Won};
use urr_service::{Caller, Metrics, RequestLimits, ServiceKit, Upstream};

use crate::golden::{id, read, time};

fn upstream(router: Router) -> Upstream {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let ids = IdSource::seeded(clock.clone(), 1);
    let kit = ServiceKit { clock, ids, metrics: Metrics::new(), limits: RequestLimits::default() };
    Upstream::local(Caller::Operator, "peer", router, &kit)
}

fn context() -> CallContext {
    CallContext::root(id(99))
}

/// Every call at its path.
fn golden_server() -> Router {
    CALLS.iter().fold(Router::new(), |router, call| {
        let method = match call.method {
            CallMethod::Get => Method::GET,
            CallMethod::Post => Method::POST,
        };
        let filter = MethodFilter::try_from(method).expect("a contract that can be served");
        router.route(call.path, on(filter, |request| answer(call, request)))
    })
}

async fn answer(call: &'static InternalCall, request: Request) -> Response {
    if call.method == CallMethod::Post {
        let body =
            to_bytes(request.into_body(), usize::MAX).await.expect("a contract that can be served");
        let body: Value = serde_json::from_slice(&body).expect("a contract that can be served");
        let expected: Value =
            serde_json::from_str(&read("internal", &format!("{}.request", call.name)))
                .expect("a contract that can be served");
        assert_eq!(body, expected, "{}", call.name);
    }
    let answer = read("internal", &format!("{}.answer", call.name));
    ([("content-type", "application/json")], Body::from(answer)).into_response()
}

#[tokio::test]
async fn the_ticket_client_speaks_the_contract() {
    let (client, context) = (TicketClient::new(upstream(golden_server())), context());
    let payable = PayableRef { kind: PayableKind::Reservation, id: id(10) };
    let (payment_id, user_id, fencing_token) = (id(20), id(11), 7);
    let amount = Won::new(302_000);
    assert!(client.get_payable(payable, &context).await.is_ok());
    assert!(client.find_payable(payable, &context).await.unwrap().is_some());
    let validated = client.validate_payable(payable, user_id, &context).await.unwrap();
    assert_eq!(validated.order_name.as_deref(), Some("첫 번째 콘서트 2매"));
    let pin = PinPayableBody { payment_id, user_id, fencing_token, amount };
    let pinned = client.pin_payable(payable, &pin, &context).await.unwrap();
    assert_eq!(pinned.pinned_by, Some(payment_id));
    client.unpin_payable(payable, &UnpinPayableBody { payment_id }, &context).await.unwrap();
    let payment_method = Some("card".to_owned());
    let confirm = ConfirmPayableBody { payment_id, fencing_token, amount, payment_method };
    client.confirm_payable(payable, &confirm, &context).await.unwrap();
    let (amount, returned_amount) = (Won::new(30_000), Some(Won::new(20_000)));
    let refunded = RefundedPayableBody { payment_id, amount, returned_amount };
    client.mark_payable_refunded(payable, &refunded, &context).await.unwrap();
    assert!(client.list_paid_reservations(Some(id(9)), &context).await.unwrap().more);
    let cancel = CancelReservationBody {
        user_id: None,
        admin_id: Some(id(13)),
        reason: "중복 예매".to_owned(),
        payment_id: Some(payment_id),
    };
    client.cancel_reservation(id(10), &cancel, &context).await.unwrap();
    let summary = client.find_reservation_summary(id(10), &context).await.unwrap();
    assert_eq!(summary.map(|summary| summary.quantity), Some(2));
    let health = client.get_sales_health(vec![id(1)], &context).await.unwrap();
    assert_eq!(health.events[&id(1)].available, 8);
    assert_eq!(client.get_tier(id(1), user_id, &context).await.unwrap(), Some(Tier::Gold));
}

#[tokio::test]
async fn the_other_clients_speak_the_contract() {
    let (upstream, context) = (upstream(golden_server()), context());
    let auth = AuthClient::new(upstream.clone());
    let users = auth.list_users(vec![id(11), id(12)], &context).await.unwrap();
    assert_eq!(users.len(), 1);
    assert_eq!(auth.list_revoked_tokens(0, &context).await.unwrap().next, 7);
    let queue = QueueClient::new(upstream.clone());
    let check = SlotCheck { event_id: id(1), user_id: id(11), slot_id: id(60) };
    assert_eq!(queue.check_slots(vec![check], &context).await.unwrap(), [true]);
    let bought_at = time("2026-12-01T11:02:01Z");
    let finish = queue::FinishSlotBody { event_id: id(1), user_id: id(11), bought_at };
    assert!(queue.finish_slot(&finish, &context).await.unwrap().ended);
    assert_eq!(queue.list_rooms(1, 100, &context).await.unwrap().rooms.len(), 1);
    assert_eq!(queue.get_room(id(1), &context).await.unwrap()["room"]["phase"], "open");
    let change = json!({ "threshold": 500, "message": null });
    queue.change_room(id(1), &change, &context).await.unwrap();
    assert_eq!(queue.clear_room(id(1), &context).await.unwrap()["active"], 500);
    let payment = PaymentClient::new(upstream);
    assert_eq!(payment.audit_ledger(&context).await.unwrap().stuck.len(), 1);
    let since = time("2026-12-01T00:00:00Z");
    assert_eq!(payment.audit_provider(since, &context).await.unwrap().compared, 12);
    assert_eq!(payment.audit_tickets(None, &context).await.unwrap().next, Some(id(10)));
}

fn refusing(status: StatusCode, code: &'static str) -> TicketClient {
    let body = json!({ "error": "No.", "code": code });
    let refuse = async move || (status, axum::Json(body));
    TicketClient::new(upstream(Router::new().fallback(refuse)))
}

#[tokio::test]
async fn a_refusal_by_the_rules_is_told_from_a_call_that_failed() {
    let payable = PayableRef { kind: PayableKind::Transfer, id: id(40) };
    for (status, code) in [
        (StatusCode::CONFLICT, "HOLD_EXPIRED"),
        (StatusCode::NOT_FOUND, "TRANSFER_NOT_FOUND"),
        (StatusCode::FORBIDDEN, "NOT_THE_OWNER"),
    ] {
        let refused = refusing(status, code).get_payable(payable, &context()).await.unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused:?}");
        assert_eq!(refused.is_not_found(), status == StatusCode::NOT_FOUND);
    }
    for (status, code) in [
        (StatusCode::UNAUTHORIZED, "INTERNAL_CREDENTIAL_REQUIRED"),
        (StatusCode::FORBIDDEN, "CALLER_NOT_ALLOWED"),
        (StatusCode::NOT_FOUND, "NOT_FOUND"),
        (StatusCode::NOT_FOUND, ""),
        (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS"),
        (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
    ] {
        let client = refusing(status, code);
        let error = client.get_payable(payable, &context()).await.unwrap_err();
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{error:?}");
        assert!(client.find_payable(payable, &context()).await.is_err(), "{status} {code}");
    }
    let missing = refusing(StatusCode::NOT_FOUND, "TRANSFER_NOT_FOUND");
    assert_eq!(missing.find_payable(payable, &context()).await.unwrap(), None);
}
