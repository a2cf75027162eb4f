//! Creates orders. The amount comes from the ticket service, never from the buyer.

use urr_contracts::clients::{ClientError, PayableRef};
use urr_contracts::internal::ticket::{PayableKind, PayableView, ValidatePayable};
use urr_kernel::{CallContext, IdempotencyKey, Timestamp, Uuid, Won};
use urr_storage::{DbResult, SetWrite, StorageError, Tx};

use super::approve_order::{DECLINES_COUNTED, check_rival};
use crate::PaymentService;
use crate::domain::payment::{ApprovalRejection, CURRENCY, Payment, PaymentId, PaymentStatus};
use crate::store::payments::{self, CommandAction};
use crate::store::purchase_sets::{self, NewOrder, PayableHistory};

/// What a user wants to pay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRequest {
    pub user_id: Uuid,
    pub payable: PayableRef,
    /// The amount that the buyer was shown, if they were shown one.
    pub amount: Option<Won>,
    pub key: Option<IdempotencyKey>,
}

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("the amount is {0}")]
    AmountMismatch(Won),
    /// It is paid, being paid, or was declined too often.
    #[error(transparent)]
    Refused(#[from] ApprovalRejection),
    #[error(transparent)]
    Tickets(#[from] ClientError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The command to create an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOrder {
    pub order_id: String,
    pub user_id: Uuid,
    pub payable: PayableRef,
    pub event_id: Option<Uuid>,
    /// The reservation that a transfer hands over.
    pub reservation_id: Option<Uuid>,
    pub fencing_token: Option<i64>,
    pub order_name: String,
    pub amount: Won,
    /// Part of the amount: the surcharge of a pre-sale, or the fee of a transfer.
    pub booking_fee: Won,
}

/// The flow of a command and its cause. Without a cause, a repetition could not be told from a
/// second command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandContext {
    pub correlation_id: Uuid,
    pub causation_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateResult {
    New(Payment),
    /// This command, or another one for the same order, was executed before.
    Before(Payment),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    #[error("the command does not name its cause")]
    CausationMissing,
    /// The command was executed, and there is no payment: a bug of ours, or somebody changed tables.
    #[error("the order was created, and it does not exist")]
    Lost,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl PaymentService {
    /// Creates an order for a payable, or finds its user's order that is not paid yet.
    pub async fn prepare_order(
        &self,
        request: OrderRequest,
        context: &CallContext,
    ) -> Result<Payment, PrepareError> {
        let order = self.new_order(request, context).await?;
        self.commit_in_set("prepared", order).await
    }

    /// A new order for a payable, which is not stored yet.
    pub async fn new_order(
        &self,
        request: OrderRequest,
        context: &CallContext,
    ) -> Result<PreparedOrder, PrepareError> {
        let OrderRequest { user_id, payable, amount, key } = request;
        let validate = ValidatePayable { payable, user_id };
        let view = match self.0.tickets.call(validate, context).await {
            Ok(answer) => answer.payable,
            Err(refused) => {
                self.check_declines(user_id, payable).await?;
                return Err(refused.into());
            }
        };
        if amount.is_some_and(|amount| amount != view.total_amount) {
            self.check_declines(user_id, payable).await?;
            return Err(PrepareError::AmountMismatch(view.total_amount));
        }
        let (id, now) = (PaymentId(self.0.ids.next_id()), self.0.clock.now());
        let order = order_of(&view, payable, user_id, order_id(id, now));
        let correlation_id = view.correlation_id.unwrap_or(context.correlation_id);
        let cause_event_id = view.last_event_id;
        let fresh = self.new_payment(id, order, correlation_id, now);
        let fresh = Payment { cause_event_id, ..fresh };
        let key = key.map(|key| format!("{user_id}:{}", key.as_str()));
        let declines_max = self.0.settings.declines_per_hold_max;
        Ok(PreparedOrder { fresh, key, declines_max })
    }

    /// A hold that was given up is refused for this reason, whatever has become of it since.
    async fn check_declines(&self, user_id: Uuid, payable: PayableRef) -> Result<(), PrepareError> {
        let since = self.0.clock.now() - DECLINES_COUNTED;
        let count = self.read(move |tx| payments::decline_count(tx, user_id, payable, since));
        match count.await? < self.0.settings.declines_per_hold_max {
            true => Ok(()),
            false => Err(ApprovalRejection::TooManyDeclines.into()),
        }
    }

    /// Creates an order once per command and order (P4).
    pub async fn create_order(
        &self,
        order: CreateOrder,
        context: CommandContext,
    ) -> Result<CreateResult, CreateError> {
        let CommandContext { correlation_id, causation_id } = context;
        let key = causation_id.filter(|key| !key.is_empty());
        let key = key.ok_or(CreateError::CausationMissing)?;
        let (id, now) = (PaymentId(self.0.ids.next_id()), self.0.clock.now());
        let fresh = self.new_payment(id, order, correlation_id, now);
        self.commit("created", move |tx| create(tx, &fresh, &key, now)).await
    }

    fn new_payment(
        &self,
        id: PaymentId,
        order: CreateOrder,
        correlation_id: Uuid,
        now: Timestamp,
    ) -> Payment {
        Payment {
            id,
            order_id: order.order_id,
            user_id: order.user_id,
            payable: order.payable,
            event_id: order.event_id,
            reservation_id: order.reservation_id,
            fencing_token: order.fencing_token,
            order_name: order.order_name,
            amount: order.amount,
            booking_fee: order.booking_fee,
            currency: CURRENCY.to_owned(),
            provider: self.provider().name().to_owned(),
            payment_key: None,
            provider_key: None,
            method: None,
            status: PaymentStatus::Pending,
            step: None,
            attempts: 0,
            pin_attempt: 1,
            charge_sent_at: None,
            last_charge_at: None,
            failure_code: None,
            wait_code: None,
            cancel_reason: None,
            approved_at: None,
            receipt_url: None,
            charged: Won::ZERO,
            refunded: Won::ZERO,
            correlation_id,
            traceparent: None,
            cause_event_id: None,
            confirmed_event_id: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// A new order, unless its user has one for the same purchase.
#[derive(Debug)]
pub struct PreparedOrder {
    pub fresh: Payment,
    /// Of the request, if it has one.
    key: Option<String>,
    declines_max: u32,
}

impl PreparedOrder {
    /// The key under which the order is created once.
    pub(super) fn create_key(&self) -> String {
        self.key.clone().unwrap_or_else(|| self.fresh.id.to_string())
    }

    /// The key under which it is approved once.
    pub(super) fn approve_key(&self, payment_key: &str) -> String {
        self.key.clone().unwrap_or_else(|| payment_key.to_owned())
    }

    /// The order that is there; none if the new one is to be inserted.
    fn decide(&self, history: PayableHistory) -> Result<Option<Payment>, ApprovalRejection> {
        let PayableHistory { pending, rival, declines } = history;
        if declines >= self.declines_max {
            return Err(ApprovalRejection::TooManyDeclines);
        }
        let pending = pending.filter(|payment| is_same_purchase(payment, &self.fresh));
        if pending.is_none() {
            check_rival(rival)?;
        }
        Ok(pending)
    }
}

impl SetWrite for PreparedOrder {
    type Answer = Payment;
    type Error = PrepareError;

    fn subject(&self) -> Option<String> {
        Some(self.fresh.payable.id.to_string())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<Payment, PrepareError>>> {
        let known = orders_find_known(tx, set)?;
        let new = set.iter().zip(&known).filter(|(_, known)| matches!(known, Ok(None)));
        let order = |(one, _): (&&PreparedOrder, _)| NewOrder {
            payment: one.fresh.clone(),
            key: one.create_key(),
            begun: None,
        };
        purchase_sets::orders_insert(tx, &new.map(order).collect::<Vec<_>>())?;
        let order = |(one, known): (&&PreparedOrder, KnownOrder)| {
            Ok(known?.unwrap_or_else(|| one.fresh.clone()))
        };
        Ok(set.iter().zip(known).map(order).collect())
    }
}

/// A user's order for the same purchase, if there is one and it can be paid.
type KnownOrder = Result<Option<Payment>, ApprovalRejection>;

/// Locks the purchases, and returns what is known of each: two clicks at the same moment are one order.
pub(super) fn orders_find_known(
    tx: &mut Tx<'_>,
    orders: &[&PreparedOrder],
) -> DbResult<Vec<KnownOrder>> {
    let Some(first) = orders.first() else { return Ok(Vec::new()) };
    let name =
        |one: &&PreparedOrder| format!("prepare {} {}", one.fresh.user_id, one.fresh.payable.id);
    tx.lock_names(orders.iter().map(name).collect())?;
    let fresh: Vec<&Payment> = orders.iter().map(|one| &one.fresh).collect();
    let since = first.fresh.created_at - DECLINES_COUNTED;
    let histories = purchase_sets::payable_histories(tx, &fresh, since)?;
    Ok(orders.iter().zip(histories).map(|(one, history)| one.decide(history)).collect())
}

/// Inserts the command's key first, then the payment: of two at once, the second waits.
fn create(
    tx: &mut Tx<'_>,
    fresh: &Payment,
    key: &str,
    now: Timestamp,
) -> Result<CreateResult, CreateError> {
    let is_first = payments::command_insert(tx, &fresh.order_id, CommandAction::Create, key, now)?;
    if is_first && payments::payment_insert(tx, fresh)? {
        return Ok(CreateResult::New(fresh.clone()));
    }
    let known = payments::payment_find_by_order(tx, &fresh.order_id)?;
    known.map(CreateResult::Before).ok_or(CreateError::Lost)
}

fn order_of(
    view: &PayableView,
    payable: PayableRef,
    user_id: Uuid,
    order_id: String,
) -> CreateOrder {
    let name = view.order_name.as_ref().or(view.reservation_number.as_ref());
    CreateOrder {
        user_id,
        payable,
        event_id: view.event_id,
        reservation_id: view.reservation_id.filter(|_| payable.kind == PayableKind::Transfer),
        fencing_token: Some(view.fencing_token),
        order_name: name.cloned().unwrap_or_else(|| order_id.clone()),
        order_id,
        amount: view.total_amount,
        booking_fee: match payable.kind {
            PayableKind::Reservation => view.booking_fee,
            PayableKind::Transfer => view.transfer_fee,
            PayableKind::Membership => Won::ZERO,
        },
    }
}

/// `ORD_<milliseconds>_<8 digits>`: providers allow letters, digits and these two signs.
fn order_id(id: PaymentId, now: Timestamp) -> String {
    let digits = id.0.simple().to_string().to_uppercase();
    format!("ORD_{}_{}", now.as_millisecond(), &digits[digits.len() - 8..])
}

fn is_same_purchase(known: &Payment, fresh: &Payment) -> bool {
    known.amount == fresh.amount
        && known.fencing_token == fresh.fencing_token
        && known.provider == fresh.provider
}
