//! Sums over the reservations of an event in SQL.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_storage::{DbResult, Tx, from_row, params};
use utoipa::ToSchema;

/// What ends if an event is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelFigures {
    /// Paid reservations, which are cancelled.
    pub reservations: u64,
    pub tickets: u64,
    /// How many different users have them.
    pub buyers: u64,
    /// What is paid back: all that they cost, with booking fees.
    #[schema(value_type = i64)]
    pub refund_amount: Won,
    /// Holds that are released.
    pub holds: u64,
    /// Holds that are being paid now: they end, and are refunded, when the payment is decided.
    pub payments_in_progress: u64,
    /// Tickets that were checked in.
    pub checked_in: u64,
}

pub fn cancel_figures(tx: &mut Tx<'_>, event_id: Uuid, now: Timestamp) -> DbResult<CancelFigures> {
    let checked_in = tx.query_one(
        "select count(checked_in_at) as total from tickets where event_id = $1 and is_valid",
        params![event_id],
        |row| row.get("total"),
    )?;
    let paid = "r.status = 'confirmed'";
    let free = "r.status = 'pending' and r.pinned_by is null and r.expires_at > $2";
    let pinned = "r.status = 'pending' and r.pinned_by is not null";
    let count = |condition: &str| format!("count(case when {condition} then 1 end)");
    let sum = |column: &str| {
        format!("coalesce(sum(case when {paid} then {column} else 0 end), 0)::bigint")
    };
    let sql = format!(
        "select {} as reservations, {} as tickets, \
         count(distinct case when {paid} then r.user_id end) as buyers, {} as refund_amount, \
         {} as holds, {} as payments_in_progress \
         from reservations as r where r.event_id = $1",
        count(paid),
        sum("r.quantity"),
        sum("r.total_amount"),
        count(free),
        count(pinned),
    );
    tx.query_one(&sql, params![event_id, now], |row| {
        Ok(from_row!(row => CancelFigures {
            reservations, tickets, buyers, refund_amount, holds, payments_in_progress;
            checked_in: checked_in,
        }))
    })
}

/// A paid reservation, as a move concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaidReservationRow {
    pub id: Uuid,
    pub user_id: Uuid,
    pub quantity: u32,
    pub total_amount: Won,
    pub agreed_starts_at: Timestamp,
}

/// In the order of ids.
pub fn paid_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<PaidReservationRow>> {
    tx.query(
        "select id, user_id, quantity, total_amount, agreed_starts_at from reservations \
         where event_id = $1 and status = 'confirmed' and id > $2 order by id limit $3",
        params![event_id, after, limit],
        |row| {
            Ok(from_row!(row => PaidReservationRow {
                id, user_id, quantity, total_amount, agreed_starts_at
            }))
        },
    )
}

/// What was sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoldSubject {
    Seat(SeatId),
    /// By its name.
    TicketType(String),
}

/// Paid items of the same kind and price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoldItem {
    pub subject: SoldSubject,
    pub unit_price: Won,
    pub sold: u32,
    pub cancelled: u32,
}

/// A cancelled reservation has cancelled all that was left of it.
pub fn sold_item_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<SoldItem>> {
    tx.query(
        "select i.seat_id, y.name, i.unit_price, \
         coalesce(sum(case when r.status = 'confirmed' then i.quantity else 0 end), 0)::bigint \
             as sold, \
         coalesce(sum(case when r.status = 'confirmed' then i.cancelled_quantity \
             else i.quantity + i.cancelled_quantity end), 0)::bigint as cancelled \
         from reservations as r join reservation_items as i on i.reservation_id = r.id \
         left join ticket_types as y on y.id = i.ticket_type_id \
         where r.event_id = $1 and r.payment_id is not null \
         group by i.seat_id, y.name, i.unit_price order by i.seat_id, y.name, i.unit_price",
        params![event_id],
        |row| {
            let seat_id: Option<SeatId> = row.get("seat_id")?;
            let name: Option<String> = row.get("name")?;
            Ok(from_row!(row => SoldItem {
                unit_price, sold, cancelled;
                subject: match seat_id {
                    Some(seat_id) => SoldSubject::Seat(seat_id),
                    None => SoldSubject::TicketType(name.unwrap_or_default()),
                },
            }))
        },
    )
}
