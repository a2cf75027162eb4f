//! The audit of gates: returned seats that somebody has who was not told of them.
//!
//! It does not ask the rule that decides about holds. It compares what is live with two records: when
//! gates were closed, by the numbers of changes, and who was told. Holds whose seats were changed
//! later are left out: their number is that of the last change.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Row, StorageError, Tx, from_row, params};

use crate::alerts::gates::{GatePeriod, ToldFan};
use crate::alerts::rules::{AlertSubject, SeatWish};
use crate::alerts::store::gate_list;
use crate::audit::store::{AuditDifference, AuditDifferenceKind};
use crate::{Inventory, TicketService};

/// A seat, or tickets of a type, that somebody took.
#[derive(Clone, Debug)]
struct TakenItem {
    reservation_id: Uuid,
    /// Who took it, also if it was sold to somebody else since.
    taker_id: Uuid,
    fence: i64,
    created_at: Timestamp,
    /// What was taken together.
    quantity: u32,
    seat_id: Option<SeatId>,
    ticket_type_id: Option<Uuid>,
}

impl TicketService {
    pub(crate) async fn audit_gates(&self, limit: usize) -> DbResult<Vec<AuditDifference>> {
        let exclusive_max = self.settings.alerts.exclusive_max;
        let events: Vec<Uuid> = self.db.read(gated_event_list).await?;
        let mut differences = Vec::new();
        for event_id in events {
            let Some(inventory) = self.inventories.get(event_id).await? else { continue };
            let audit = move |tx: &mut Tx<'_>| gate_audit(tx, &inventory, exclusive_max);
            let found: Vec<AuditDifference> = self.db.read(audit).await?;
            differences.extend(found);
            if differences.len() >= limit {
                break;
            }
        }
        Ok(differences)
    }
}

fn gated_event_list(tx: &mut Tx<'_>) -> DbResult<Vec<Uuid>> {
    let sql = "select event_id from alert_gates union select event_id from alert_gate_periods \
               order by event_id";
    tx.query(sql, &[], |row| row.get("event_id"))
}

fn gate_audit(
    tx: &mut Tx<'_>,
    inventory: &Inventory,
    exclusive_max: Duration,
) -> DbResult<Vec<AuditDifference>> {
    let event_id = inventory.event_id;
    let mut periods = period_list(tx, event_id)?;
    let closed = gate_list(tx, event_id)?;
    periods.extend(closed.iter().filter_map(|gate| gate.period_until(i64::MAX, exclusive_max)));
    let Some(first) = periods.iter().map(|period| period.closed_fence).min() else {
        return Ok(Vec::new());
    };
    let told = told_list(tx, event_id)?;
    let taken = taken_list(tx, event_id, first)?;
    let wrong = taken.iter().filter(|item| item.is_unentitled(inventory, &periods, &told));
    let difference = |item: &TakenItem| AuditDifference {
        kind: AuditDifferenceKind::Gate,
        event_id,
        reservation_id: Some(item.reservation_id),
        seat_id: item.seat_id,
        ticket_type_id: item.ticket_type_id,
    };
    Ok(wrong.map(difference).collect())
}

impl TakenItem {
    fn is_unentitled(
        &self,
        inventory: &Inventory,
        periods: &[GatePeriod],
        told: &[ToldFan],
    ) -> bool {
        let grade = match (self.seat_id, self.ticket_type_id) {
            (Some(seat_id), _) => {
                let place = inventory.layout.place(seat_id);
                place.map(|place| place.section.grade.clone()).unwrap_or_default()
            }
            (None, Some(id)) => id.to_string(),
            (None, None) => return false,
        };
        let was_closed = |period: &GatePeriod| {
            period.subject.covers(&grade)
                && (period.closed_fence + 1..=period.opened_fence).contains(&self.fence)
                && self.created_at < period.exclusive_until
        };
        let may_take = |told: &ToldFan| {
            told.user_id == self.taker_id
                && told.wish.subject.covers(&grade)
                && self.quantity <= told.wish.quantity
        };
        periods.iter().any(was_closed) && !told.iter().any(may_take)
    }
}

fn period_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<GatePeriod>> {
    tx.query(
        "select subject, closed_fence, opened_fence, exclusive_until from alert_gate_periods \
         where event_id = $1",
        params![event_id],
        |row| {
            Ok::<_, StorageError>(from_row!(row => GatePeriod {
                closed_fence, opened_fence, exclusive_until;
                subject: AlertSubject::stored(row.get("subject")?),
            }))
        },
    )
}

/// Everybody who was told, whatever they did then.
fn told_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<ToldFan>> {
    tx.query(
        "select user_id, subject, quantity from seat_alerts \
         where event_id = $1 and told_at is not null",
        params![event_id],
        |row| {
            let subject = AlertSubject::stored(row.get("subject")?);
            let wish = SeatWish { subject, quantity: row.get("quantity")? };
            Ok(ToldFan { user_id: row.get("user_id")?, wish })
        },
    )
}

/// What was taken after a change and is still live.
fn taken_list(tx: &mut Tx<'_>, event_id: Uuid, after: i64) -> DbResult<Vec<TakenItem>> {
    tx.query(
        "select r.id as reservation_id, r.fence, r.created_at, i.seat_id, i.ticket_type_id, \
         case when i.seat_id is null then i.quantity else r.quantity end as quantity, \
         coalesce((select t.seller_id from transfers as t where t.reservation_id = r.id \
             and t.status = 'completed' order by t.number limit 1), r.user_id) as taker_id \
         from reservations as r join reservation_items as i on i.reservation_id = r.id \
         where r.event_id = $1 and r.fence > $2 and r.kind = 'online' \
         and r.status in ('pending', 'confirmed') \
         and i.is_live and not exists (select 1 from reservation_history as h \
             where h.reservation_id = r.id and h.kind = 'seats_changed') \
         order by r.id, i.position",
        params![event_id, after],
        |row: &Row<'_>| {
            Ok(from_row!(row => TakenItem {
                reservation_id, taker_id, fence, created_at, quantity, seat_id, ticket_type_id
            }))
        },
    )
}
