//! What an event means in tickets and money: if it is cancelled, if it is moved, and by grade.
//!
//! All of it is read, and nothing is decided here: between a look and the deed more may be sold.

pub(crate) mod http;
mod store;

use std::collections::{BTreeMap, BTreeSet};

use urr_contracts::internal::payment::{GetUnclearPayments, UnclearPaymentsAnswer};
use urr_contracts::internal::ticket::{
    GetGradeSales, GradeSales, GradeSalesAnswer, MovePreviewAnswer, PreviewMove,
};
use urr_kernel::{CallContext, KOREA, Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::ApiError;
use urr_storage::{DbResult, StorageError};

pub use self::store::CancelFigures;
use self::store::{SoldItem, SoldSubject};
use crate::house_seats::store::complimentary_count;
use crate::http::event_not_found;
use crate::{Inventory, TicketService};

/// How many reservations one read looks at.
const READ_AT_ONCE: u32 = 1_000;

impl TicketService {
    /// What would happen if the event were cancelled now.
    pub(crate) async fn cancel_figures(&self, event_id: Uuid) -> DbResult<CancelFigures> {
        let now = self.clock.now();
        self.db.read(move |tx| store::cancel_figures(tx, event_id, now)).await
    }

    /// Payments of the event without an outcome. None: the payment service is away.
    pub(crate) async fn unclear_payments(
        &self,
        event_id: Uuid,
        context: &CallContext,
    ) -> Option<UnclearPaymentsAnswer> {
        let payment = &self.peers.as_ref()?.payment;
        let answer = payment.call(GetUnclearPayments { event_id }, context).await;
        answer
            .inspect_err(|error| tracing::warn!(%error, "a preview is without unclear payments"))
            .ok()
    }
}

/// For the catalogue, which knows what else is at that time.
pub async fn preview_move(
    ticket: TicketService,
    PreviewMove { event_id, starts_at }: PreviewMove,
    _: CallContext,
) -> Result<MovePreviewAnswer, ApiError> {
    let mut preview = MovePreviewAnswer::default();
    let (mut buyers, mut after) = (BTreeSet::new(), Uuid::nil());
    loop {
        let read = ticket.db.read(move |tx| store::paid_list(tx, event_id, after, READ_AT_ONCE));
        let paid: Result<Vec<store::PaidReservationRow>, StorageError> = read.await;
        let paid = paid?;
        let Some(last) = paid.last() else { break };
        after = last.id;
        for one in &paid {
            buyers.insert(one.user_id);
            preview.reservations += 1;
            preview.tickets += u64::from(one.quantity);
            if is_other_day(one.agreed_starts_at, starts_at) {
                preview.free_reservations += 1;
                preview.refund_max = add(preview.refund_max, one.total_amount);
            }
        }
    }
    preview.buyers = u64::try_from(buyers.len()).unwrap_or(u64::MAX);
    Ok(preview)
}

/// As the refund rules say: another hour of the same day in Korea does not count.
fn is_other_day(agreed: Timestamp, starts_at: Timestamp) -> bool {
    KOREA.to_datetime(agreed).date() != KOREA.to_datetime(starts_at).date()
}

fn add(sum: Won, amount: Won) -> Won {
    sum.plus(amount).expect("prices are bounded where they enter")
}

/// For the settlement. Grades come in the order of the hall or of the types.
pub async fn get_grade_sales(
    ticket: TicketService,
    GetGradeSales { event_id }: GetGradeSales,
    _: CallContext,
) -> Result<GradeSalesAnswer, ApiError> {
    let inventory = ticket.inventories.get(event_id).await?.ok_or_else(event_not_found)?;
    let read = ticket.db.read(move |tx| {
        let items = store::sold_item_list(tx, event_id)?;
        Ok::<_, StorageError>((items, complimentary_count(tx, event_id)?))
    });
    let (items, complimentary_tickets) = read.await?;
    Ok(GradeSalesAnswer { grades: grade_sales(&inventory, &items), complimentary_tickets })
}

fn grade_sales(inventory: &Inventory, items: &[SoldItem]) -> Vec<GradeSales> {
    let mut sums: BTreeMap<String, GradeSales> = BTreeMap::new();
    for item in items {
        let grade = item_grade(inventory, &item.subject);
        let sales = sums
            .entry(grade.clone())
            .or_insert_with(|| GradeSales { grade, ..GradeSales::default() });
        sales.sold += u64::from(item.sold);
        sales.cancelled += u64::from(item.cancelled);
        let amount =
            |quantity: u32| item.unit_price.times(i64::from(quantity)).expect("prices are bounded");
        sales.sold_amount = add(sales.sold_amount, amount(item.sold));
        sales.cancelled_amount = add(sales.cancelled_amount, amount(item.cancelled));
    }
    let mut ordered = Vec::with_capacity(sums.len());
    for grade in inventory.layout.grades() {
        ordered.extend(sums.remove(grade));
    }
    ordered.extend(sums.into_values());
    ordered
}

fn item_grade(inventory: &Inventory, subject: &SoldSubject) -> String {
    let of_seat = |seat_id: SeatId| inventory.layout.place(seat_id);
    match subject {
        SoldSubject::Seat(seat_id) => {
            of_seat(*seat_id).map(|place| place.section.grade.clone()).unwrap_or_default()
        }
        SoldSubject::TicketType(name) => name.clone(),
    }
}
