//! The auth, payment and mail services in memory, as far as the ticket service asks them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use urr_contracts::clients::{AuthClient, MailClient, PaymentClient};
use urr_contracts::internal::auth::{
    AccountLanguage, AccountRole, AccountSummary, FindUsers, FindUsersAnswer, ListUsers,
    ListUsersAnswer,
};
use urr_contracts::internal::mail::{
    ListReservationMails, ResendTicketMail, ResendTicketMailAnswer, ReservationMail,
    ReservationMailsAnswer,
};
use urr_contracts::internal::payment::{
    GetUnclearPayments, ListPayablePayments, PayablePayment, PayablePaymentsAnswer, PayableRefund,
    UnclearPaymentsAnswer,
};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::{
    ApiError, Caller, InternalCalls, Metrics, RequestLimits, Service, ServiceKit, Upstream,
};
use urr_ticket::TicketPeers;
use utoipa_axum::router::OpenApiRouter;

use crate::fixture::World;
use crate::operations::PaidReservation;

/// Clones share them.
#[derive(Clone, Default)]
pub struct FakePeers(Arc<Mutex<PeerState>>);

#[derive(Default)]
struct PeerState {
    is_away: bool,
    is_crowded: bool,
    users: BTreeMap<Uuid, (String, String)>,
    staff: BTreeSet<Uuid>,
    payments: Vec<PayablePayment>,
    mails: Vec<(Uuid, ReservationMail)>,
    unclear: (u64, i64),
    /// How many users were asked for at once.
    asked: Vec<usize>,
    resent: Vec<(Uuid, Uuid)>,
}

impl FakePeers {
    pub fn clients(&self, world: &World) -> TicketPeers {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let calls = InternalCalls::new(self.clone())
            .serve(list_users)
            .serve(find_users)
            .serve(list_payments)
            .serve(get_unclear)
            .serve(list_mails)
            .serve(resend);
        let service = Service::new("peers", OpenApiRouter::new(), &kit).with_calls(calls);
        let upstream = |name| Upstream::local(Caller::Ticket, name, &service, &kit);
        TicketPeers {
            auth: AuthClient::new(upstream("auth")),
            payment: PaymentClient::new(upstream("payment")),
            mail: MailClient::new(upstream("mail")),
        }
    }

    fn state(&self) -> MutexGuard<'_, PeerState> {
        self.0.lock().unwrap()
    }

    /// The state, unless the services are away.
    fn reach(&self) -> Result<MutexGuard<'_, PeerState>, ApiError> {
        let state = self.state();
        match state.is_away {
            true => Err(ApiError::unavailable("AWAY", "away", Duration::from_secs(1))),
            false => Ok(state),
        }
    }

    pub fn set_away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    /// More people have a name than are told.
    pub fn set_crowded(&self, is_crowded: bool) {
        self.state().is_crowded = is_crowded;
    }

    pub fn set_unclear(&self, payments: u64, amount: i64) {
        self.state().unclear = (payments, amount);
    }

    pub fn register(&self, id: Uuid, name: &str, email: &str) {
        self.state().users.insert(id, (name.to_owned(), email.to_owned()));
    }

    /// Somebody with an account gets the role of door staff.
    pub fn hire(&self, id: Uuid) {
        self.state().staff.insert(id);
    }

    pub fn asked_at_once(&self) -> Vec<usize> {
        self.state().asked.clone()
    }

    pub fn resent(&self) -> Vec<(Uuid, Uuid)> {
        self.state().resent.clone()
    }

    pub fn pay(&self, paid: &PaidReservation, at: Timestamp) {
        let reservation = &paid.record.reservation;
        self.state().payments.push(PayablePayment {
            id: paid.payment_id,
            payable_id: reservation.id.0,
            user_id: reservation.user_id,
            status: "confirmed".to_owned(),
            method: Some("card".to_owned()),
            amount: reservation.total_amount,
            failure_code: None,
            created_at: at,
            approved_at: Some(at),
            updated_at: at,
            refunds: Vec::new(),
        });
    }

    pub fn refund(&self, paid: &PaidReservation, amount: i64, at: Timestamp) {
        let mut state = self.state();
        let payment = state.payments.iter_mut().find(|one| one.id == paid.payment_id).unwrap();
        payment.refunds.push(PayableRefund {
            id: paid.payment_id,
            amount: Won::new(amount),
            status: "done".to_owned(),
            reason: "cancelled".to_owned(),
            requested_by: None,
            created_at: at,
            done_at: Some(at),
        });
    }

    pub fn mail(&self, paid: &PaidReservation, kind: &str, at: Timestamp) {
        let mail = ReservationMail {
            id: paid.payment_id,
            user_id: paid.record.reservation.user_id,
            kind: kind.to_owned(),
            status: "sent".to_owned(),
            created_at: at,
            ended_at: Some(at),
        };
        self.state().mails.push((paid.id().0, mail));
    }
}

async fn list_users(
    peers: FakePeers,
    call: ListUsers,
    _: CallContext,
) -> Result<ListUsersAnswer, ApiError> {
    let mut state = peers.reach()?;
    state.asked.push(call.user_ids.len());
    let users = call.user_ids.iter().filter_map(|id| {
        let (name, email) = state.users.get(id)?;
        Some(AccountSummary {
            id: *id,
            email: email.clone(),
            name: name.clone(),
            role: match state.staff.contains(id) {
                true => AccountRole::Staff,
                false => AccountRole::User,
            },
            language: AccountLanguage::Korean,
            email_verified: true,
        })
    });
    Ok(ListUsersAnswer { users: users.collect() })
}

async fn find_users(
    peers: FakePeers,
    call: FindUsers,
    _: CallContext,
) -> Result<FindUsersAnswer, ApiError> {
    let state = peers.reach()?;
    let fits = |(name, email): &(String, String)| *name == call.text || *email == call.text;
    let found = state.users.iter().filter(|(_, user)| fits(user));
    Ok(FindUsersAnswer { user_ids: found.map(|(id, _)| *id).collect(), more: state.is_crowded })
}

async fn list_payments(
    peers: FakePeers,
    call: ListPayablePayments,
    _: CallContext,
) -> Result<PayablePaymentsAnswer, ApiError> {
    let state = peers.reach()?;
    let payments = state.payments.iter().filter(|one| call.payable_ids.contains(&one.payable_id));
    Ok(PayablePaymentsAnswer { payments: payments.cloned().collect() })
}

async fn get_unclear(
    peers: FakePeers,
    _: GetUnclearPayments,
    _: CallContext,
) -> Result<UnclearPaymentsAnswer, ApiError> {
    let (payments, amount) = peers.reach()?.unclear;
    Ok(UnclearPaymentsAnswer { payments, amount: Won::new(amount) })
}

async fn list_mails(
    peers: FakePeers,
    call: ListReservationMails,
    _: CallContext,
) -> Result<ReservationMailsAnswer, ApiError> {
    let state = peers.reach()?;
    let mails = state.mails.iter().filter(|(id, _)| *id == call.reservation_id);
    Ok(ReservationMailsAnswer { mails: mails.map(|(_, mail)| mail.clone()).collect() })
}

async fn resend(
    peers: FakePeers,
    call: ResendTicketMail,
    _: CallContext,
) -> Result<ResendTicketMailAnswer, ApiError> {
    peers.reach()?.resent.push((call.reservation_id, call.user_id));
    Ok(ResendTicketMailAnswer { mail_id: call.request_id })
}
