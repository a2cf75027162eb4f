//! The checks of the audit in SQL: a query without rows means agreement.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Row, Tx, from_row, params};
use utoipa::ToSchema;

/// The kinds of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditDifferenceKind {
    /// An event does not have the seats of its layout.
    SeatCount,
    /// A seat is held or sold, but its reservation does not have it.
    SeatWithoutItem,
    /// A live reservation has a seat that is not marked as its own.
    ItemWithoutSeat,
    /// A seat is held though its reservation is paid, or the other way round.
    SeatStatus,
    /// A reservation is live and its item is not, or the other way round.
    ItemStatus,
    /// The quantity of a reservation is not the sum of its items, or its amount is not their price
    /// and the booking fee.
    Amount,
    /// What is available of a ticket type is not the total less what is live or blocked.
    Stock,
    /// A blocked seat has a live or valid ticket or no reason, or a seat with a reason is not
    /// blocked.
    HouseSeat,
    /// Complimentary tickets have a price or a payment.
    Complimentary,
    /// A confirmed reservation does not have a valid ticket for everyone, or another has one.
    Tickets,
    /// The state of the payment does not fit that of the reservation.
    Payment,
    /// A ticket that is not its owner's any more still has its points, or the balance of a membership
    /// is not the sum of its points.
    Points,
    /// What is for sale is not the seller's own paid reservation, or what was sold is not the
    /// buyer's by their payment.
    Transfer,
    /// A hold was not ended although its time has long been over.
    Overdue,
    /// A payment has pinned a hold or a transfer for too long: it must have been forgotten.
    OldPin,
    /// The stored sums of an event that is over are not those of its reservations.
    EventSums,
    /// Somebody has returned seats that were for fans who were told, and was not told.
    Gate,
}

/// One thing that does not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditDifference {
    pub kind: AuditDifferenceKind,
    pub event_id: Uuid,
    pub reservation_id: Option<Uuid>,
    pub seat_id: Option<SeatId>,
    pub ticket_type_id: Option<Uuid>,
}

/// Each check takes the event as `$1` and the limit of rows as `$2`.
const CHECKS: [(AuditDifferenceKind, &str); 14] = [
    (
        AuditDifferenceKind::SeatCount,
        "select null::uuid as reservation_id, null::integer as seat_id, \
         null::uuid as ticket_type_id from sales where event_id = $1 and is_complete \
         and seats_total <> (select count(*) from seats where event_id = $1) limit $2",
    ),
    (
        AuditDifferenceKind::SeatWithoutItem,
        "select s.reservation_id, s.seat_id, null::uuid as ticket_type_id from seats as s \
         where s.event_id = $1 and s.reservation_id is not null and not exists (\
             select 1 from reservation_items as i where i.event_id = s.event_id \
             and i.seat_id = s.seat_id and i.is_live and i.reservation_id = s.reservation_id\
         ) order by s.seat_id limit $2",
    ),
    (
        AuditDifferenceKind::ItemWithoutSeat,
        "select i.reservation_id, i.seat_id, null::uuid as ticket_type_id \
         from reservation_items as i where i.event_id = $1 and i.is_live \
         and i.seat_id is not null and not exists (\
             select 1 from seats as s where s.event_id = i.event_id and s.seat_id = i.seat_id \
             and s.reservation_id = i.reservation_id\
         ) order by i.seat_id limit $2",
    ),
    (
        AuditDifferenceKind::SeatStatus,
        "select s.reservation_id, s.seat_id, null::uuid as ticket_type_id from seats as s \
         join reservations as r on r.id = s.reservation_id where s.event_id = $1 \
         and not (s.status = 'held' and r.status = 'pending') \
         and not (s.status = 'sold' and r.status = 'confirmed') order by s.seat_id limit $2",
    ),
    (
        AuditDifferenceKind::ItemStatus,
        "select r.id as reservation_id, i.seat_id, i.ticket_type_id from reservations as r \
         join reservation_items as i on i.reservation_id = r.id where r.event_id = $1 \
         and (r.status in ('pending', 'confirmed') and i.quantity > 0) <> i.is_live \
         order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Amount,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from reservations as r where r.event_id = $1 and (\
             r.quantity <> (select coalesce(sum(i.quantity), 0) from reservation_items as i \
                 where i.reservation_id = r.id) \
             or r.total_amount <> r.booking_fee + (select coalesce(sum(i.quantity * i.unit_price), 0) \
                 from reservation_items as i where i.reservation_id = r.id) \
             or r.cancelled_amount > (select coalesce(sum(i.cancelled_quantity * i.unit_price), 0) \
                 from reservation_items as i where i.reservation_id = r.id)\
         ) order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Stock,
        "select null::uuid as reservation_id, null::integer as seat_id, t.id as ticket_type_id \
         from ticket_types as t where t.event_id = $1 and t.total - t.available <> (\
             select coalesce(sum(i.quantity), 0) from reservation_items as i \
             join reservations as r on r.id = i.reservation_id \
             where r.event_id = $1 and i.ticket_type_id = t.id and i.is_live\
         ) + (select coalesce(sum(h.quantity), 0) from house_stock as h \
             where h.ticket_type_id = t.id) order by t.id limit $2",
    ),
    (
        AuditDifferenceKind::HouseSeat,
        "select null::uuid as reservation_id, s.seat_id, null::uuid as ticket_type_id \
         from seats as s where s.event_id = $1 and ((s.status = 'blocked') <> exists (\
             select 1 from house_seats as h where h.event_id = s.event_id \
             and h.seat_id = s.seat_id\
         ) or (s.status = 'blocked' and exists (\
             select 1 from tickets as t where t.event_id = s.event_id and t.seat_id = s.seat_id \
             and t.is_valid\
         ))) order by s.seat_id limit $2",
    ),
    (
        AuditDifferenceKind::Complimentary,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from reservations as r where r.event_id = $1 and r.kind = 'complimentary' and (\
             r.payment_id is not null or r.total_amount <> 0 or r.booking_fee <> 0 \
             or r.cancelled_amount <> 0 or r.pinned_by is not null\
         ) order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Tickets,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from reservations as r where r.event_id = $1 and (\
             select count(*) from tickets as t where t.reservation_id = r.id and t.is_valid\
         ) <> case when r.status = 'confirmed' then r.quantity else 0 end \
         order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Payment,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from reservations as r where r.event_id = $1 and not (case r.status \
             when 'confirmed' then r.payment_status = 'paid' \
                 and (r.payment_id is null) = (r.kind = 'complimentary') \
             when 'cancelled' then (r.refund_amount is null) = (r.payment_status = 'unpaid') \
                 and r.payment_status <> 'paid' \
             else r.payment_status = 'unpaid' end) order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Points,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from reservations as r join membership_points as given on given.reference_id = r.id \
         and given.action = 'TICKET_PURCHASE' join memberships as m on m.id = given.membership_id \
         where r.event_id = $1 and ((r.status <> 'confirmed' and not exists (\
             select 1 from membership_points as back where back.reference_id = r.id \
             and back.membership_id = m.id and back.action = 'TICKET_PURCHASE_RETURNED'\
         )) or m.points <> (\
             select coalesce(sum(p.points), 0) from membership_points as p \
             where p.membership_id = m.id and p.is_settled\
         ) or m.pending_points <> (\
             select coalesce(sum(p.points), 0) from membership_points as p \
             where p.membership_id = m.id and not p.is_settled\
         )) order by r.id limit $2",
    ),
    (
        AuditDifferenceKind::Transfer,
        "select r.id as reservation_id, null::integer as seat_id, null::uuid as ticket_type_id \
         from transfers as t join reservations as r on r.id = t.reservation_id \
         where t.event_id = $1 and not (case t.status \
             when 'listed' then r.status = 'confirmed' and r.user_id = t.seller_id \
                 and r.payment_id = t.seller_payment_id and r.total_amount = t.original_price \
             when 'completed' then exists (\
                 select 1 from transfers as later where later.reservation_id = t.reservation_id \
                 and later.number > t.number and later.status = 'completed'\
             ) or (r.user_id = t.buyer_id and r.payment_id = t.payment_id \
                 and r.total_amount + r.cancelled_amount = t.original_price + t.fee) \
             else true end) order by t.id limit $2",
    ),
    (
        AuditDifferenceKind::EventSums,
        "select null::uuid as reservation_id, null::integer as seat_id, \
         null::uuid as ticket_type_id from sales as e join event_sums as s \
         on s.event_id = e.event_id and s.fence = e.fence where e.event_id = $1 \
         and (s.confirmed <> (select count(*) from reservations as r \
             where r.event_id = $1 and r.status = 'confirmed') \
         or s.revenue <> (select coalesce(sum(r.total_amount), 0) from reservations as r \
             where r.event_id = $1 and r.status = 'confirmed')) limit $2",
    ),
];

/// The differences of an event, up to a limit. One transaction sees one moment.
pub fn event_audit(tx: &mut Tx<'_>, event_id: Uuid, limit: u32) -> DbResult<Vec<AuditDifference>> {
    let mut differences = Vec::new();
    for (kind, sql) in CHECKS {
        let found =
            tx.query(sql, params![event_id, limit], |row| difference_read(row, kind, event_id))?;
        differences.extend(found);
    }
    Ok(differences)
}

fn difference_read(
    row: &Row<'_>,
    kind: AuditDifferenceKind,
    event_id: Uuid,
) -> DbResult<AuditDifference> {
    Ok(from_row!(row => AuditDifference {
        reservation_id, seat_id, ticket_type_id;
        kind: kind,
        event_id: event_id,
    }))
}

/// Holds whose time was over before `before` and that were not ended.
pub fn overdue_audit(
    tx: &mut Tx<'_>,
    before: Timestamp,
    limit: u32,
) -> DbResult<Vec<AuditDifference>> {
    tx.query(
        "select id, event_id from reservations where status = 'pending' and pinned_by is null \
         and expires_at < $1 order by expires_at, id limit $2",
        params![before, limit],
        |row| hold_read(row, AuditDifferenceKind::Overdue),
    )
}

/// Holds and transfers that were pinned before `before` and still are. Nothing else ends them.
pub fn old_pin_audit(
    tx: &mut Tx<'_>,
    before: Timestamp,
    limit: u32,
) -> DbResult<Vec<AuditDifference>> {
    tx.query(
        "select id, event_id, pinned_at from reservations where status = 'pending' \
         and pinned_at < $1 union all select reservation_id, event_id, pinned_at from transfers \
         where status = 'listed' and pinned_at < $1 order by pinned_at, id limit $2",
        params![before, limit],
        |row| hold_read(row, AuditDifferenceKind::OldPin),
    )
}

fn hold_read(row: &Row<'_>, kind: AuditDifferenceKind) -> DbResult<AuditDifference> {
    Ok(AuditDifference {
        kind,
        event_id: row.get("event_id")?,
        reservation_id: row.get("id")?,
        seat_id: None,
        ticket_type_id: None,
    })
}

/// An event that can be audited.
#[derive(Clone, Copy, Debug)]
pub struct AuditedEvent {
    pub event_id: Uuid,
    /// The number of its last change.
    pub fence: i64,
    pub starts_at: Timestamp,
}

/// The next events after `after`.
pub fn event_list(tx: &mut Tx<'_>, after: Uuid, limit: u32) -> DbResult<Vec<AuditedEvent>> {
    tx.query(
        "select event_id, fence, starts_at from sales where event_id > $1 order by event_id limit $2",
        params![after, limit],
        |row| Ok(from_row!(row => AuditedEvent { event_id, fence, starts_at })),
    )
}
