//! The ticket service, as payments, mails and waiting rooms see it. Every call can be repeated
//! without harm.

use serde::Serialize;
use urr_kernel::{CallContext, Tier, Uuid};
use urr_service::Upstream;

use super::{ClientError, found, get, post, with_query};
use crate::internal::InternalCall;
use crate::internal::ticket::{
    CANCEL_RESERVATION, CONFIRM_PAYABLE, CancelReservationBody, ConfirmPayableBody, GET_PAYABLE,
    GET_RESERVATION_SUMMARY, GET_SALES_HEALTH, GET_TIER, LIST_PAID_RESERVATIONS,
    MARK_PAYABLE_REFUNDED, PIN_PAYABLE, PaidReservationPage, PayableAnswer, PayableKind,
    PayableView, PinPayableBody, RefundedPayableBody, ReservationSummary, ReservationSummaryAnswer,
    SalesHealthAnswer, SalesHealthBody, TierAnswer, UNPIN_PAYABLE, UnpinPayableBody,
    VALIDATE_PAYABLE,
};

#[derive(Clone, Debug)]
pub struct TicketClient(Upstream);

/// Names a payable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayableRef {
    pub kind: PayableKind,
    pub id: Uuid,
}

type PayableResult = Result<PayableView, ClientError>;

impl TicketClient {
    pub fn new(upstream: Upstream) -> TicketClient {
        TicketClient(upstream)
    }

    /// A payable in whatever state; none if it does not exist.
    pub async fn find_payable(
        &self,
        payable: PayableRef,
        context: &CallContext,
    ) -> Result<Option<PayableView>, ClientError> {
        found(self.get_payable(payable, context).await)
    }

    /// A payable in whatever state.
    pub async fn get_payable(&self, payable: PayableRef, context: &CallContext) -> PayableResult {
        let path = GET_PAYABLE.path_with(&[&payable.kind, &payable.id]);
        let answer = get(&self.0, &GET_PAYABLE, &path, context).await;
        answer.map(|PayableAnswer { payable }| payable)
    }

    /// A payable that this user can pay now.
    pub async fn validate_payable(
        &self,
        payable: PayableRef,
        user_id: Uuid,
        context: &CallContext,
    ) -> PayableResult {
        let path = VALIDATE_PAYABLE.path_with(&[&payable.kind, &payable.id]);
        let path = with_query(&path, "userId", Some(user_id));
        let answer = get(&self.0, &VALIDATE_PAYABLE, &path, context).await;
        answer.map(|PayableAnswer { payable }| payable)
    }

    pub async fn pin_payable(
        &self,
        payable: PayableRef,
        body: &PinPayableBody,
        context: &CallContext,
    ) -> PayableResult {
        self.post_payable(&PIN_PAYABLE, payable, body, context).await
    }

    pub async fn unpin_payable(
        &self,
        payable: PayableRef,
        body: &UnpinPayableBody,
        context: &CallContext,
    ) -> PayableResult {
        self.post_payable(&UNPIN_PAYABLE, payable, body, context).await
    }

    pub async fn confirm_payable(
        &self,
        payable: PayableRef,
        body: &ConfirmPayableBody,
        context: &CallContext,
    ) -> PayableResult {
        self.post_payable(&CONFIRM_PAYABLE, payable, body, context).await
    }

    pub async fn mark_payable_refunded(
        &self,
        payable: PayableRef,
        body: &RefundedPayableBody,
        context: &CallContext,
    ) -> PayableResult {
        self.post_payable(&MARK_PAYABLE_REFUNDED, payable, body, context).await
    }

    /// A page of the reservations that were ever paid.
    pub async fn list_paid_reservations(
        &self,
        after: Option<Uuid>,
        context: &CallContext,
    ) -> Result<PaidReservationPage, ClientError> {
        let path = with_query(LIST_PAID_RESERVATIONS.path, "after", after);
        get(&self.0, &LIST_PAID_RESERVATIONS, &path, context).await
    }

    pub async fn cancel_reservation(
        &self,
        reservation_id: Uuid,
        body: &CancelReservationBody,
        context: &CallContext,
    ) -> PayableResult {
        let path = CANCEL_RESERVATION.path_with(&[&reservation_id]);
        let answer = post(&self.0, &CANCEL_RESERVATION, &path, body, context).await;
        answer.map(|PayableAnswer { payable }| payable)
    }

    /// What was booked, in words for people; none if there is no such reservation.
    pub async fn find_reservation_summary(
        &self,
        reservation_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<ReservationSummary>, ClientError> {
        let path = GET_RESERVATION_SUMMARY.path_with(&[&reservation_id]);
        let answer = get(&self.0, &GET_RESERVATION_SUMMARY, &path, context).await;
        found(answer.map(|ReservationSummaryAnswer { reservation }| reservation))
    }

    /// What is left of these events, and how booking goes.
    pub async fn get_sales_health(
        &self,
        event_ids: Vec<Uuid>,
        context: &CallContext,
    ) -> Result<SalesHealthAnswer, ClientError> {
        let body = SalesHealthBody { event_ids };
        post(&self.0, &GET_SALES_HEALTH, GET_SALES_HEALTH.path, &body, context).await
    }

    /// The tier of a user with the artist of an event; none is the general public.
    pub async fn get_tier(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<Tier>, ClientError> {
        let path = GET_TIER.path_with(&[&event_id, &user_id]);
        let answer = get(&self.0, &GET_TIER, &path, context).await;
        answer.map(|TierAnswer { tier }| tier)
    }

    async fn post_payable(
        &self,
        call: &InternalCall,
        payable: PayableRef,
        body: &impl Serialize,
        context: &CallContext,
    ) -> PayableResult {
        let path = call.path_with(&[&payable.kind, &payable.id]);
        let answer = post(&self.0, call, &path, body, context).await;
        answer.map(|PayableAnswer { payable }| payable)
    }
}
