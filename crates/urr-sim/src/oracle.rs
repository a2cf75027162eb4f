//! The oracle: what must be true after every step, and what must be true when all is settled.
//!
//! It reads the tables directly and shares no code with the services. The numbers of the rules are
//! those of the product's invariants.

mod settled;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx};

pub use self::settled::is_settled;
use self::settled::{check_events, check_given_points, check_money, check_statistics};
use crate::databases::{DatabaseName, Databases, THRESHOLD};
use crate::fans::Fans;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

type Verdict = Result<(), Violation>;

fn broken<T>(invariant: &'static str, what: impl fmt::Debug) -> Result<T, Violation> {
    Err(Violation { invariant, what: format!("{what:?}") })
}

fn require(is_kept: bool, invariant: &'static str, what: impl fmt::Debug) -> Verdict {
    if is_kept { Ok(()) } else { broken(invariant, what) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenReservation {
    id: Uuid,
    user_id: Uuid,
    event_id: Uuid,
    status: String,
    payment_status: String,
    total_amount: i64,
    cancelled_amount: i64,
    cancelled_refund_amount: i64,
    refund_amount: Option<i64>,
    pinned_by: Option<Uuid>,
    payment_id: Option<Uuid>,
    expires_at: Timestamp,
    fence: i64,
    /// The seats that it has.
    seats: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenPayment {
    id: Uuid,
    order_id: String,
    payable_kind: String,
    payable_id: Uuid,
    status: String,
    step: Option<String>,
    amount: i64,
    charged_amount: i64,
    refunded_amount: i64,
}

/// What the provider has: charged and refunded, by order.
type ProviderRows = BTreeMap<String, (i64, i64)>;

#[derive(Debug, Default)]
struct RoomRows {
    /// Arrival by user.
    places: BTreeMap<Uuid, i64>,
    slots: BTreeSet<Uuid>,
}

/// What a run came to, to see that the simulation reaches what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub reservations: u64,
    pub confirmed: u64,
    pub cancelled: u64,
    pub expired: u64,
    pub charges: u64,
    pub refunds: u64,
    pub transfers: u64,
    pub memberships: u64,
    pub waited: u64,
    pub crashes: u64,
    pub faults: u64,
}

impl Figures {
    pub fn plus(self, other: &Figures) -> Figures {
        Figures {
            reservations: self.reservations + other.reservations,
            confirmed: self.confirmed + other.confirmed,
            cancelled: self.cancelled + other.cancelled,
            expired: self.expired + other.expired,
            charges: self.charges + other.charges,
            refunds: self.refunds + other.refunds,
            transfers: self.transfers + other.transfers,
            memberships: self.memberships + other.memberships,
            waited: self.waited + other.waited,
            crashes: self.crashes + other.crashes,
            faults: self.faults + other.faults,
        }
    }
}

/// Remembers the last state, to judge changes.
#[derive(Default)]
pub struct Oracle {
    reservations: HashMap<Uuid, SeenReservation>,
    charged: HashMap<String, i64>,
    room: RoomRows,
    threshold_max: u32,
    waited: u64,
}

/// The present moment of a run.
pub struct Moment<'a> {
    pub databases: &'a Databases,
    pub fans: &'a Fans,
    /// By the clock that is ahead of all others.
    pub latest_now: Timestamp,
}

impl Moment<'_> {
    fn read<T>(&self, name: DatabaseName, body: impl FnOnce(&mut Tx<'_>) -> DbResult<T>) -> T {
        self.databases.get(name).inspect(body).expect("the oracle's statements are right")
    }

    fn rows<T>(
        &self,
        name: DatabaseName,
        sql: &str,
        read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> Vec<T> {
        self.read(name, |tx| tx.query(sql, &[], read))
    }

    fn payments(&self) -> Vec<SeenPayment> {
        let sql = "select id, order_id, payable_kind, payable_id, status, step, amount, \
                   charged_amount, refunded_amount from payments";
        self.rows(DatabaseName::Payment, sql, |row| {
            Ok(SeenPayment {
                id: row.get("id")?,
                order_id: row.get("order_id")?,
                payable_kind: row.get("payable_kind")?,
                payable_id: row.get("payable_id")?,
                status: row.get("status")?,
                step: row.get("step")?,
                amount: row.get("amount")?,
                charged_amount: row.get("charged_amount")?,
                refunded_amount: row.get("refunded_amount")?,
            })
        })
    }

    fn provider(&self) -> ProviderRows {
        let sql = "select order_id, charged, refunded from sandbox_payments where charged > 0";
        let rows = self.rows(DatabaseName::Provider, sql, |row| {
            Ok((row.get("order_id")?, (row.get("charged")?, row.get("refunded")?)))
        });
        rows.into_iter().collect()
    }

    fn reservations(&self) -> Vec<SeenReservation> {
        let sql = "select id, user_id, event_id, status, payment_status, total_amount, \
                   cancelled_amount, cancelled_refund_amount, refund_amount, pinned_by, \
                   payment_id, expires_at, fence, (select group_concat(seat_id order by seat_id) \
                   from reservation_items where reservation_id = reservations.id and is_live) \
                   as seats from reservations";
        self.rows(DatabaseName::Ticket, sql, |row| {
            Ok(SeenReservation {
                id: row.get("id")?,
                user_id: row.get("user_id")?,
                event_id: row.get("event_id")?,
                status: row.get("status")?,
                payment_status: row.get("payment_status")?,
                total_amount: row.get("total_amount")?,
                cancelled_amount: row.get("cancelled_amount")?,
                cancelled_refund_amount: row.get("cancelled_refund_amount")?,
                refund_amount: row.get("refund_amount")?,
                pinned_by: row.get("pinned_by")?,
                payment_id: row.get("payment_id")?,
                expires_at: row.get("expires_at")?,
                fence: row.get("fence")?,
                seats: row.get("seats")?,
            })
        })
    }

    fn count(&self, name: DatabaseName, sql: &str) -> u64 {
        self.rows(name, sql, |row| row.get::<u64>("n"))[0]
    }

    fn nothing(&self, name: DatabaseName, invariant: &'static str, sql: &str) -> Verdict {
        let found = self.rows(name, sql, |row| row.get::<String>("what"));
        require(found.is_empty(), invariant, found)
    }
}

impl Oracle {
    pub fn new() -> Oracle {
        Oracle { threshold_max: THRESHOLD, ..Oracle::default() }
    }

    /// After a transaction on this database.
    pub fn after_step(&mut self, name: DatabaseName, moment: &Moment<'_>) -> Verdict {
        match name {
            DatabaseName::Ticket => {
                check_seats(moment)?;
                check_stock(moment)?;
                check_points(moment)?;
                self.check_reservations(moment)
            }
            DatabaseName::Payment => check_ledger(moment),
            DatabaseName::Provider => self.check_charges(moment),
            DatabaseName::Journal => self.check_room(moment),
            DatabaseName::Queue
            | DatabaseName::Stats
            | DatabaseName::Catalog
            | DatabaseName::Witness
            | DatabaseName::Bus => Ok(()),
        }
    }

    /// 2, 4, 5, 7: how reservations change.
    fn check_reservations(&mut self, moment: &Moment<'_>) -> Verdict {
        let rows = moment.reservations();
        for row in &rows {
            let before = self.reservations.get(&row.id);
            if before == Some(row) {
                continue;
            }
            let was = before.map_or("pending", |before| before.status.as_str());
            let is_legal = matches!(
                (was, row.status.as_str()),
                ("pending", _) | ("confirmed", "confirmed" | "cancelled")
            ) || was == row.status;
            require(is_legal, "4: a reservation goes from one state to the next", (was, row))?;
            if let Some(before) = before {
                check_released(moment, before, row)?;
            }
            if row.status == "pending" {
                let is_shorter = before.is_some_and(|before| row.expires_at < before.expires_at);
                require(!is_shorter, "5: nothing weakens a hold", row)?;
            }
            if row.status == "expired" && was == "pending" {
                let told = moment.fans.told_end(row.id).unwrap_or(row.expires_at);
                let is_over = moment.latest_now >= told;
                require(is_over, "5: a hold lives as long as its owner was told", (told, row))?;
                let is_pinned = before.is_some_and(|before| before.pinned_by.is_some());
                require(!is_pinned, "8: what is being paid does not expire", row)?;
            }
            if row.status == "confirmed" && was == "pending" {
                check_paid(moment, row)?;
            }
        }
        self.reservations = rows.into_iter().map(|row| (row.id, row)).collect();
        Ok(())
    }

    /// 6, 8: what may be charged, and when.
    fn check_charges(&mut self, moment: &Moment<'_>) -> Verdict {
        let provider = moment.provider();
        let fresh: Vec<&String> =
            provider.keys().filter(|order| !self.charged.contains_key(*order)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let payments = moment.payments();
        for order in fresh {
            let payment = payments.iter().find(|payment| payment.order_id == *order);
            let Some(payment) = payment else {
                return broken("6: only what was ordered is charged", order);
            };
            if payment.payable_kind == "reservation" {
                check_charged_hold(moment, payment, &payments, &provider)?;
            }
        }
        self.charged = provider.iter().map(|(order, sums)| (order.clone(), sums.0)).collect();
        Ok(())
    }

    /// 12, 13: the room.
    fn check_room(&mut self, moment: &Moment<'_>) -> Verdict {
        let sql = "select user_id, arrival from places";
        let places = moment.rows(DatabaseName::Journal, sql, |row| {
            Ok((row.get::<Uuid>("user_id")?, row.get::<i64>("arrival")?))
        });
        let sql = "select user_id from slots";
        let slots = moment.rows(DatabaseName::Journal, sql, |row| row.get::<Uuid>("user_id"));
        let count = places.len();
        let now =
            RoomRows { places: places.into_iter().collect(), slots: slots.into_iter().collect() };
        require(now.places.len() == count, "12: nobody waits twice", &now)?;
        let both = now.slots.iter().find(|user| now.places.contains_key(*user));
        require(both.is_none(), "12: nobody waits who was admitted", &now)?;
        let active = u32::try_from(now.slots.len()).unwrap_or(u32::MAX);
        let limit = self.threshold_max;
        require(active <= limit, "13: no more are inside than the threshold", (active, limit))?;
        for user in now.slots.difference(&self.room.slots) {
            let Some(arrival) = self.room.places.get(user) else { continue };
            let mut ahead = self.room.places.iter().filter(|(_, other)| *other < arrival);
            let overtaken = ahead.find(|(other, _)| now.places.contains_key(*other));
            require(overtaken.is_none(), "12: first come, first admitted", (user, overtaken))?;
        }
        let is_new = |user: &&Uuid| !self.room.places.contains_key(*user);
        self.waited += u64::try_from(now.places.keys().filter(is_new).count()).unwrap_or(0);
        self.room = now;
        Ok(())
    }

    /// After healing: everything has come to its end.
    pub fn at_the_end(&mut self, moment: &Moment<'_>) -> Verdict {
        for name in [
            DatabaseName::Ticket,
            DatabaseName::Payment,
            DatabaseName::Provider,
            DatabaseName::Journal,
        ] {
            self.after_step(name, moment)?;
        }
        check_money(moment)?;
        check_events(moment)?;
        check_statistics(moment)?;
        check_given_points(moment)
    }

    pub fn figures(&self, moment: &Moment<'_>) -> Figures {
        let of = |status: &str| {
            let rows = self.reservations.values().filter(|row| row.status == status);
            u64::try_from(rows.count()).unwrap_or(0)
        };
        let completed = "select count(*) as n from transfers where status = 'completed'";
        let active = "select count(*) as n from memberships where status = 'active'";
        let refunded = "select count(*) as n from sandbox_payments where refunded > 0";
        Figures {
            reservations: u64::try_from(self.reservations.len()).unwrap_or(0),
            confirmed: of("confirmed"),
            cancelled: of("cancelled"),
            expired: of("expired"),
            charges: u64::try_from(moment.provider().len()).unwrap_or(0),
            refunds: moment.count(DatabaseName::Provider, refunded),
            transfers: moment.count(DatabaseName::Ticket, completed),
            memberships: moment.count(DatabaseName::Ticket, active),
            waited: self.waited,
            ..Figures::default()
        }
    }
}

/// 2: a changed hold has another token, so that old ones release nothing; and what a payment has
/// pinned, only the end of that attempt releases.
fn check_released(moment: &Moment<'_>, before: &SeenReservation, row: &SeenReservation) -> Verdict {
    if before.status != "pending" || row.status != "pending" {
        return Ok(());
    }
    let has_new_token = row.fence > before.fence;
    let is_changed = row.seats != before.seats;
    require(!is_changed || has_new_token, "2: a changed hold has a new token", (before, row))?;
    let Some(pinned_by) = before.pinned_by.filter(|_| row.pinned_by.is_none()) else {
        return Ok(());
    };
    let payments = moment.payments();
    let payment = payments.iter().find(|payment| payment.id == pinned_by);
    // A payment that goes back can never confirm the hold.
    let is_over = payment.is_none_or(|payment| {
        matches!(payment.step.as_deref(), None | Some("unpin"))
            || matches!(payment.status.as_str(), "failed" | "refunding" | "refunded")
    });
    require(is_over, "2: only the end of its own payment releases a pin", (row, payment))
}

/// 1: a seat has at most one live hold or sale, and one valid ticket.
fn check_seats(moment: &Moment<'_>) -> Verdict {
    moment.nothing(
        DatabaseName::Ticket,
        "1: a seat has at most one live hold or sale",
        "select 'seat ' || seat_id as what from reservation_items \
         where is_live and seat_id is not null group by event_id, seat_id having count(*) > 1",
    )?;
    moment.nothing(
        DatabaseName::Ticket,
        "1: a seat has one valid ticket, of a confirmed reservation",
        "select 'seat ' || coalesce(t.seat_id, -1) as what from tickets t \
         join reservations r on r.id = t.reservation_id where t.is_valid \
         group by t.event_id, coalesce(cast(t.seat_id as text), t.id) \
         having count(*) > 1 or max(r.status <> 'confirmed')",
    )?;
    moment.nothing(
        DatabaseName::Ticket,
        "1: seats and items agree",
        "select 'seat ' || s.seat_id || ' ' || s.status as what from seats s \
         left join reservation_items i \
         on i.event_id = s.event_id and i.seat_id = s.seat_id and i.is_live \
         left join reservations r on r.id = i.reservation_id \
         where s.status <> case r.status when 'pending' then 'held' \
         when 'confirmed' then 'sold' else 'available' end",
    )
}

/// 3: 0 ≤ available ≤ total, and what is not available is held or sold.
fn check_stock(moment: &Moment<'_>) -> Verdict {
    moment.nothing(
        DatabaseName::Ticket,
        "3: stock is what is neither held nor sold",
        "select 'available ' || t.available as what from ticket_types t \
         where t.available < 0 or t.available > t.total or t.total - t.available <> \
         (select coalesce(sum(i.quantity), 0) from reservation_items i \
         where i.ticket_type_id = t.id and i.is_live)",
    )
}

/// 10: a balance of points is the sum of its entries.
fn check_points(moment: &Moment<'_>) -> Verdict {
    moment.nothing(
        DatabaseName::Ticket,
        "10: points are the sum of their entries",
        "select 'points ' || m.points || ' pending ' || m.pending_points as what \
         from memberships m where m.points <> (select coalesce(sum(p.points), 0) \
         from membership_points p where p.membership_id = m.id and p.is_settled) \
         or m.pending_points <> (select coalesce(sum(p.points), 0) \
         from membership_points p where p.membership_id = m.id and not p.is_settled)",
    )
}

/// Money: entries sum to zero, and the account of the provider is what payments say.
fn check_ledger(moment: &Moment<'_>) -> Verdict {
    const RULE: &str = "8: every won is in the ledger, and entries sum to zero";
    moment.nothing(
        DatabaseName::Payment,
        RULE,
        "select 'an entry of ' || sum(amount) as what from ledger_lines \
         group by entry_id having sum(amount) <> 0",
    )?;
    let sums = "select (select coalesce(sum(amount), 0) from ledger_lines \
                where account = 'provider') as ledger, \
                (select coalesce(sum(charged_amount - refunded_amount), 0) from payments) as paid";
    let found = moment.rows(DatabaseName::Payment, sums, |row| {
        Ok((row.get::<i64>("ledger")?, row.get::<i64>("paid")?))
    });
    let (ledger, paid) = found[0];
    require(ledger == paid, RULE, (ledger, paid))
}

/// 7: confirmed only after the provider confirmed the same amount.
fn check_paid(moment: &Moment<'_>, row: &SeenReservation) -> Verdict {
    const RULE: &str = "7: confirmed only after the provider charged the same amount";
    let payments = moment.payments();
    let payment = payments.iter().find(|payment| Some(payment.id) == row.payment_id);
    let Some(payment) = payment else { return broken(RULE, row) };
    let charged = moment.provider().get(&payment.order_id).map_or(0, |sums| sums.0);
    require(charged == row.total_amount + row.cancelled_amount, RULE, (charged, row))
}

/// 6, 8: what is charged is pinned by that payment, and nobody else pays for it.
fn check_charged_hold(
    moment: &Moment<'_>,
    payment: &SeenPayment,
    payments: &[SeenPayment],
    provider: &ProviderRows,
) -> Verdict {
    let reservations = moment.reservations();
    let row = reservations.iter().find(|row| row.id == payment.payable_id);
    let Some(row) = row else { return broken("6: only what exists is charged", payment) };
    let is_ours = row.pinned_by == Some(payment.id) || row.payment_id == Some(payment.id);
    require(is_ours, "8: what is charged is pinned for its payment", (payment, row))?;
    let kept = |other: &&SeenPayment| {
        let sums = provider.get(&other.order_id);
        other.payable_id == payment.payable_id
            && sums.is_some_and(|(charged, refunded)| refunded < charged)
    };
    let charges: Vec<&SeenPayment> = payments.iter().filter(kept).collect();
    require(charges.len() <= 1, "6: one successful charge per target", charges)
}
