//! For `urr audit`: every difference with its rows, and the tables as lines that can be compared with
//! those of other services.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, RowDifference, StorageError, Tx, params};

use crate::TicketService;
use crate::audit::store::{self as audit, AuditDifference, AuditDifferenceKind, AuditedEvent};
use crate::audit::{EVENTS_AT_ONCE, OVERDUE_AFTER, PIN_OLD_AFTER};

/// More differences than this are not listed: neither of one kind and event, nor of everything.
const LISTED_MAX: u32 = 1_000;
const ROWS_AT_ONCE: u32 = 1_000;

/// What another service knows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedRows {
    Reservations,
    /// Completed transfers.
    Transfers,
    /// Terms of memberships that were paid, by their payment.
    PaidTerms,
}

/// What the audit of the tables found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TicketTableAudit {
    pub events: u64,
    pub memberships: u64,
    /// At most 1,000.
    pub differences: Vec<RowDifference>,
}

impl TicketTableAudit {
    fn add(&mut self, differences: Vec<RowDifference>) {
        self.differences.extend(differences);
        self.differences.truncate(LISTED_MAX as usize);
    }
}

impl TicketService {
    /// Audits all events and memberships. An event is read in one transaction.
    pub async fn audit_rows(&self) -> DbResult<TicketTableAudit> {
        let now = self.clock.now();
        let stuck = move |tx: &mut Tx<'_>| {
            let mut stuck = audit::overdue_audit(tx, now - OVERDUE_AFTER, LISTED_MAX)?;
            stuck.extend(audit::old_pin_audit(tx, now - PIN_OLD_AFTER, LISTED_MAX)?);
            with_rows(tx, stuck)
        };
        let differences = self.db.read(stuck).await?;
        let mut found = TicketTableAudit { differences, ..TicketTableAudit::default() };
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut Tx<'_>| audit::event_list(tx, after, EVENTS_AT_ONCE);
            let events: Vec<AuditedEvent> = self.db.read(list).await?;
            let Some(last) = events.last() else { break };
            after = last.event_id;
            for AuditedEvent { event_id, .. } in events {
                found.events += 1;
                found.add(self.db.read(move |tx| event_rows(tx, event_id)).await?);
            }
        }
        let mut after = Uuid::nil();
        loop {
            let page = self.db.read(move |tx| membership_page(tx, after)).await?;
            let Some(last) = page.last else { break };
            after = last;
            found.memberships += page.count;
            found.add(page.differences);
        }
        Ok(found)
    }

    /// The next rows, each as a line, in the order of their ids.
    pub async fn audit_lines(
        &self,
        rows: SharedRows,
        after: Option<Uuid>,
    ) -> DbResult<Vec<(Uuid, String)>> {
        let after = after.unwrap_or(Uuid::nil());
        self.db.read(move |tx| lines_list(tx, rows, after)).await
    }
}

fn lines_list(
    tx: &mut Tx<'_>,
    rows: SharedRows,
    after: Uuid,
) -> Result<Vec<(Uuid, String)>, StorageError> {
    match rows {
        SharedRows::Reservations => tx.query(
            "select id, event_id, status, quantity, refund_amount from reservations \
             where id > $1 order by id limit $2",
            params![after, ROWS_AT_ONCE],
            |row| {
                let (event_id, status) =
                    (row.get::<Uuid>("event_id")?, row.get::<String>("status")?);
                let quantity: i64 = row.get("quantity")?;
                let refund = row.get::<Option<i64>>("refund_amount")?.unwrap_or(0);
                let line = format!(
                    "event_id={event_id} status={status} quantity={quantity} \
                     refund_amount={refund}"
                );
                Ok((row.get("id")?, line))
            },
        ),
        SharedRows::Transfers => tx.query(
            "select id, original_price + fee as amount from transfers \
             where id > $1 and status = 'completed' order by id limit $2",
            params![after, ROWS_AT_ONCE],
            |row| Ok((row.get("id")?, format!("amount={}", row.get::<i64>("amount")?))),
        ),
        SharedRows::PaidTerms => tx.query(
            "select payment_id, membership_id, number, amount from membership_terms \
             where payment_id > $1 and payment_status = 'paid' order by payment_id limit $2",
            params![after, ROWS_AT_ONCE],
            |row| {
                let (membership_id, number) =
                    (row.get::<Uuid>("membership_id")?, row.get::<i64>("number")?);
                let amount = row.get::<Option<i64>>("amount")?.unwrap_or(0);
                let line = format!("payable_id={membership_id} term={number} amount={amount}");
                Ok((row.get("payment_id")?, line))
            },
        ),
    }
}

fn event_rows(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<RowDifference>> {
    let differences = audit::event_audit(tx, event_id, LISTED_MAX)?;
    let mut found = with_rows(tx, differences)?;
    found.extend(tx.query(
        "select t.id, t.number, t.reservation_id, t.position, t.seat_id from tickets as t \
         where t.event_id = $1 and t.is_valid and not exists (\
             select 1 from reservation_items as i where i.reservation_id = t.reservation_id \
             and i.position = t.position and i.is_live \
             and coalesce(i.seat_id, -1) = coalesce(t.seat_id, -1)\
         ) order by t.id limit $2",
        params![event_id, LISTED_MAX],
        |row| ticket_difference(row, event_id),
    )?);
    Ok(found)
}

fn ticket_difference(row: &Row<'_>, event_id: Uuid) -> DbResult<RowDifference> {
    let (id, number) = (row.get::<Uuid>("id")?, row.get::<String>("number")?);
    let (reservation_id, position) =
        (row.get::<Uuid>("reservation_id")?, row.get::<i64>("position")?);
    let seat = row.get::<Option<i64>>("seat_id")?;
    Ok(RowDifference {
        kind: "ticketWithoutItem",
        sentence: format!("event {event_id}: ticket {number} is valid without a live item"),
        rows: vec![format!(
            "tickets id={id} number={number} reservation_id={reservation_id} \
             position={position} seat_id={seat:?}"
        )],
    })
}

fn with_rows(tx: &mut Tx<'_>, found: Vec<AuditDifference>) -> DbResult<Vec<RowDifference>> {
    found.iter().map(|difference| row_difference(tx, difference)).collect()
}

fn row_difference(tx: &mut Tx<'_>, difference: &AuditDifference) -> DbResult<RowDifference> {
    let AuditDifference { kind, event_id, reservation_id, seat_id, ticket_type_id } = *difference;
    let mut rows = Vec::new();
    if let Some(id) = reservation_id {
        rows.extend(reservation_row(tx, id)?);
    }
    if let Some(seat_id) = seat_id {
        let sql = "select status, reservation_id, fence from seats \
                   where event_id = $1 and seat_id = $2";
        rows.extend(tx.query(sql, params![event_id, seat_id], |row| {
            let (status, fence) = (row.get::<String>("status")?, row.get::<i64>("fence")?);
            let owner = row.get::<Option<Uuid>>("reservation_id")?;
            let owner = owner.map_or_else(|| "null".to_owned(), |id| id.to_string());
            Ok(format!(
                "seats event_id={event_id} seat_id={seat_id} status={status} \
                 reservation_id={owner} fence={fence}"
            ))
        })?);
    }
    if let Some(id) = ticket_type_id {
        let sql = "select name, total, available from ticket_types where id = $1";
        rows.extend(tx.query(sql, params![id], |row| {
            let (name, total) = (row.get::<String>("name")?, row.get::<i64>("total")?);
            let available = row.get::<i64>("available")?;
            Ok(format!("ticket_types id={id} name={name:?} total={total} available={available}"))
        })?);
    }
    if rows.is_empty() {
        rows.push(format!("sales event_id={event_id}"));
    }
    let (kind, said) = words(kind);
    Ok(RowDifference { kind, sentence: format!("event {event_id}: {said}"), rows })
}

fn reservation_row(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<String>> {
    let sql = "select number, user_id, status, payment_status, quantity, total_amount, \
               payment_id, pinned_by from reservations where id = $1";
    tx.query_opt(sql, params![id], |row| {
        let text = |name: &str| row.get::<String>(name);
        let optional = |name: &str| {
            let id: Option<Uuid> = row.get(name)?;
            Ok::<_, StorageError>(id.map_or_else(|| "null".to_owned(), |id| id.to_string()))
        };
        Ok(format!(
            "reservations id={id} number={} user_id={} status={} payment_status={} quantity={} \
             total_amount={} payment_id={} pinned_by={}",
            text("number")?,
            row.get::<Uuid>("user_id")?,
            text("status")?,
            text("payment_status")?,
            row.get::<i64>("quantity")?,
            row.get::<i64>("total_amount")?,
            optional("payment_id")?,
            optional("pinned_by")?,
        ))
    })
}

fn words(kind: AuditDifferenceKind) -> (&'static str, &'static str) {
    match kind {
        AuditDifferenceKind::SeatCount => ("seatCount", "it does not have the seats of its layout"),
        AuditDifferenceKind::SeatWithoutItem => {
            ("seatWithoutItem", "a seat is taken, and its reservation does not have it")
        }
        AuditDifferenceKind::ItemWithoutSeat => {
            ("itemWithoutSeat", "a live reservation has a seat that is not marked as its own")
        }
        AuditDifferenceKind::SeatStatus => {
            ("seatStatus", "the state of a seat is not that of its reservation")
        }
        AuditDifferenceKind::ItemStatus => {
            ("itemStatus", "the state of an item is not that of its reservation")
        }
        AuditDifferenceKind::Amount => {
            ("amount", "quantity or amount of a reservation is not the sum of its items")
        }
        AuditDifferenceKind::Stock => {
            ("stock", "what is available of a ticket type is not the total less what is taken")
        }
        AuditDifferenceKind::Tickets => {
            ("tickets", "a reservation has too few or too many valid tickets")
        }
        AuditDifferenceKind::Payment => {
            ("payment", "the state of the payment is not that of the reservation")
        }
        AuditDifferenceKind::Points => {
            ("points", "points were not taken back, or a balance is not their sum")
        }
        AuditDifferenceKind::Transfer => {
            ("transfer", "what is for sale or was sold is not in the right hands")
        }
        AuditDifferenceKind::EventSums => {
            ("eventSums", "the sums of an event that is over are not those of its reservations")
        }
        AuditDifferenceKind::Overdue => ("overdue", "a hold was not ended in time"),
        AuditDifferenceKind::OldPin => ("oldPin", "a payment has pinned it for too long"),
        AuditDifferenceKind::Gate => {
            ("gate", "returned seats went to somebody for whom they were not kept")
        }
        AuditDifferenceKind::HouseSeat => {
            ("houseSeat", "a blocked seat has a ticket or no reason, or is not blocked")
        }
        AuditDifferenceKind::Complimentary => {
            ("complimentary", "a complimentary ticket has a price or a payment")
        }
    }
}

struct MembershipPage {
    last: Option<Uuid>,
    count: u64,
    differences: Vec<RowDifference>,
}

fn membership_page(tx: &mut Tx<'_>, after: Uuid) -> DbResult<MembershipPage> {
    let sql = "select m.id, m.points, m.pending_points, \
               (select coalesce(sum(p.points), 0)::bigint from membership_points as p \
                where p.membership_id = m.id and p.is_settled) as settled, \
               (select coalesce(sum(p.points), 0)::bigint from membership_points as p \
                where p.membership_id = m.id and not p.is_settled) as unsettled \
               from memberships as m where m.id > $1 order by m.id limit $2";
    let rows = tx.query(sql, params![after, ROWS_AT_ONCE], |row| {
        let balance = [row.get::<i64>("points")?, row.get("pending_points")?];
        Ok((row.get::<Uuid>("id")?, balance, [row.get::<i64>("settled")?, row.get("unsettled")?]))
    })?;
    let difference =
        |(id, [points, pending], [settled, unsettled]): &(Uuid, [i64; 2], [i64; 2])| {
            RowDifference {
                kind: "points",
                sentence: format!(
                    "membership {id}: its points add up to {settled}, and {unsettled} pending"
                ),
                rows: vec![format!("memberships id={id} points={points} pending_points={pending}")],
            }
        };
    let wrong = rows.iter().filter(|(_, balance, sums)| balance != sums);
    Ok(MembershipPage {
        last: rows.last().map(|(id, ..)| *id),
        count: u64::try_from(rows.len()).expect("a page is small"),
        differences: wrong.map(difference).collect(),
    })
}
