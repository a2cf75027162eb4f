//! Transfers in SQL. Every change is a compare-and-set under the lock of the transfer.
//!
//! Locks are taken in one order: the sale, the tickets, the transfer. Check-in takes the last two.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{CursorPage, Page};
use urr_storage::{DbResult, Row, StorageError, Tx, Value, from_row, params};

use crate::ReservationId;
use crate::display_number::display_number;
use crate::in_list::for_each_chunk;
use crate::payables::attempts::EndedAttempts;
use crate::transfers::rules::{Transfer, TransferId, TransferPrice, TransferStatus};

/// The index that lets a reservation be listed once.
pub const ONE_LISTED: &str = "transfers_one_listed";

const TRANSFER: &str = "t.id, t.reservation_id, t.number, t.event_id, t.seller_id, \
    t.seller_payment_id, t.original_price, t.fee_percent, t.fee, t.status, t.end_reason, \
    t.buyer_id, t.pinned_by, t.ended_attempts, t.payment_id, t.refund_amount, t.created_at, t.completed_at";

fn transfer_read(row: &Row<'_>) -> DbResult<Transfer> {
    Ok(from_row!(row => Transfer {
        id, reservation_id, number, event_id, seller_id, seller_payment_id, status, end_reason,
        buyer_id, pinned_by, payment_id, refund_amount, created_at, completed_at;
        price: TransferPrice {
            original: row.get("original_price")?,
            fee_percent: u8::try_from(row.get::<u32>("fee_percent")?).expect("it is a percentage"),
            fee: row.get("fee")?,
        },
        ended_attempts: EndedAttempts::read(row)?,
    }))
}

pub fn transfer_find(tx: &mut Tx<'_>, id: TransferId) -> DbResult<Option<Transfer>> {
    let sql = format!("select {TRANSFER} from transfers as t where t.id = $1");
    tx.query_opt(&sql, params![id], transfer_read)
}

/// Locks the transfer until the transaction ends.
pub fn transfer_lock(tx: &mut Tx<'_>, id: TransferId) -> DbResult<()> {
    let sql = "select id from transfers where id = $1 for update";
    tx.query_one(sql, params![id], |_| Ok(()))
}

/// The open listing of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveListing {
    pub is_pinned: bool,
}

pub fn active_listing_find(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Option<ActiveListing>> {
    tx.query_opt(
        "select pinned_by from transfers where reservation_id = $1 and status = 'listed'",
        params![id],
        |row| Ok(ActiveListing { is_pinned: row.get::<Option<Uuid>>("pinned_by")?.is_some() }),
    )
}

/// A reservation that is about to be listed.
#[derive(Clone, Copy, Debug)]
pub struct NewTransfer {
    pub id: TransferId,
    pub reservation_id: ReservationId,
    pub event_id: Uuid,
    pub seller_id: Uuid,
    pub seller_payment_id: Uuid,
    pub price: TransferPrice,
    pub now: Timestamp,
}

/// Under the lock of the sale, which orders the attempts to sell a reservation.
pub fn transfer_insert(tx: &mut Tx<'_>, new: &NewTransfer) -> DbResult<()> {
    tx.execute(
        "insert into transfers (id, reservation_id, number, event_id, seller_id, \
         seller_payment_id, original_price, fee_percent, fee, status, created_at, updated_at) \
         select $1::uuid, $2::uuid, count(*) + 1, $3::uuid, $4::uuid, $5::uuid, $6::bigint, \
         $7::integer, $8::bigint, 'listed', $9::timestamptz, $9::timestamptz \
         from transfers where reservation_id = $2",
        params![
            new.id,
            new.reservation_id,
            new.event_id,
            new.seller_id,
            new.seller_payment_id,
            new.price.original,
            u32::from(new.price.fee_percent),
            new.price.fee,
            new.now
        ],
    )?;
    Ok(())
}

/// A change of a transfer by a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferChange {
    pub id: TransferId,
    pub payment_id: Uuid,
    pub now: Timestamp,
}

pub fn transfer_pin(tx: &mut Tx<'_>, step: TransferChange, buyer_id: Uuid) -> DbResult<()> {
    let rows = tx.execute(
        "update transfers set pinned_by = $2, pinned_at = $3, buyer_id = $4, updated_at = $3, \
         agreed_starts_at = (select starts_at from sales where sales.event_id = transfers.event_id) \
         where id = $1 and status = 'listed' and pinned_by is null",
        params![step.id, step.payment_id, step.now, buyer_id],
    )?;
    assert_eq!(rows, 1, "the transfer was seen to be free under the lock");
    Ok(())
}

/// Records the attempts that have ended, and releases the pin of this payment. That of another
/// payment stays.
pub fn transfer_unpin(
    tx: &mut Tx<'_>,
    step: TransferChange,
    ended: &EndedAttempts,
) -> DbResult<()> {
    let rows = tx.execute(
        "update transfers set \
         pinned_at = case when pinned_by = $2 then null else pinned_at end, \
         buyer_id = case when pinned_by = $2 then null else buyer_id end, \
         pinned_by = case when pinned_by = $2 then null else pinned_by end, \
         ended_attempts = $3, updated_at = $4 where id = $1 and status = 'listed'",
        params![step.id, step.payment_id, ended.to_json(), step.now],
    )?;
    assert_eq!(rows, 1, "the transfer was seen under the lock");
    Ok(())
}

/// A pinned transfer is sold.
pub fn transfer_complete(tx: &mut Tx<'_>, step: TransferChange) -> DbResult<()> {
    let rows = tx.execute(
        "update transfers set status = 'completed', payment_id = pinned_by, pinned_by = null, \
         pinned_at = null, completed_at = $3, updated_at = $3 \
         where id = $1 and status = 'listed' and pinned_by = $2",
        params![step.id, step.payment_id, step.now],
    )?;
    assert_eq!(rows, 1, "the pin was seen under the lock");
    Ok(())
}

pub fn transfer_set_refund(tx: &mut Tx<'_>, step: TransferChange, amount: Won) -> DbResult<()> {
    let rows = tx.execute(
        "update transfers set refund_amount = $4, updated_at = $3 \
         where id = $1 and payment_id = $2 and refund_amount is null",
        params![step.id, step.payment_id, step.now, amount],
    )?;
    assert_eq!(rows, 1, "the state was seen under the lock");
    Ok(())
}

/// Gives a reservation to the buyer, with what they paid and by which payment. A retry of the
/// seller's request is refused from now on: it must not show the buyer's reservation, nor reserve
/// once more.
pub fn reservation_hand_over(
    tx: &mut Tx<'_>,
    transfer: &Transfer,
    step: TransferChange,
    payment_method: &str,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservations set user_id = $2, payment_id = $3, payment_method = $4, \
         total_amount = total_amount + $5, booking_fee = booking_fee + $5, \
         cancelled_amount = 0, cancelled_refund_amount = 0, updated_at = $6, \
         agreed_starts_at = (select agreed_starts_at from transfers where id = $10), \
         announced_starts_at = (select agreed_starts_at from transfers where id = $10) \
         where id = $1 and status = 'confirmed' and payment_status = 'paid' and user_id = $7 \
         and payment_id = $8 and total_amount = $9",
        params![
            transfer.reservation_id,
            transfer.buyer_id,
            step.payment_id,
            payment_method,
            transfer.price.fee,
            step.now,
            transfer.seller_id,
            transfer.seller_payment_id,
            transfer.price.original,
            transfer.id
        ],
    )?;
    assert_eq!(rows, 1, "what is listed stays as it is");
    let id = transfer.reservation_id.to_string();
    let sql = "update idempotency_keys set fingerprint = 'handed over' \
               where user_id = $1 and resource_id = $2";
    tx.execute(sql, params![transfer.seller_id, id])?;
    Ok(())
}

/// Reissues the tickets of a reservation with new numbers: the old ones are not valid any more.
pub fn tickets_reissue(tx: &mut Tx<'_>, id: ReservationId, number_ids: &[Uuid]) -> DbResult<()> {
    let ids: Vec<Uuid> = tx.query(
        "select id from tickets where reservation_id = $1 and is_valid order by id",
        params![id],
        |row| row.get("id"),
    )?;
    assert_eq!(ids.len(), number_ids.len(), "there is a ticket for everyone");
    for (ticket_id, number_id) in ids.iter().zip(number_ids) {
        tx.execute(
            "update tickets set issue = issue + 1, number = $2 where id = $1",
            params![*ticket_id, display_number('T', *number_id)],
        )?;
    }
    Ok(())
}

/// Whether this payment had paid for the reservation before it was sold on.
pub fn was_sold_by(tx: &mut Tx<'_>, id: ReservationId, seller_payment_id: Uuid) -> DbResult<bool> {
    let sold = tx.query_opt(
        "select id from transfers where reservation_id = $1 and seller_payment_id = $2 \
         and status = 'completed'",
        params![id, seller_payment_id],
        |row| row.get::<Uuid>("id"),
    )?;
    Ok(sold.is_some())
}

/// The columns where no other table is.
fn own_columns() -> String {
    TRANSFER.replace("t.", "")
}

const END: &str = "update transfers set status = 'cancelled', end_reason = $1, \
    pinned_by = null, pinned_at = null, buyer_id = null, updated_at = $2";

/// Cancels a listing for its seller.
pub fn transfer_cancel(
    tx: &mut Tx<'_>,
    id: TransferId,
    reason: &str,
    now: Timestamp,
) -> DbResult<Transfer> {
    let sql = format!(
        "{END} where id = $3 and status = 'listed' and pinned_by is null returning {}",
        own_columns()
    );
    let ended = tx.query(&sql, params![reason, now, id], transfer_read)?;
    assert_eq!(ended.len(), 1, "the state was seen under the lock");
    Ok(ended.into_iter().next().expect("it is one"))
}

/// Ends the listings of reservations that have ended. A payment that is under way will be rejected.
pub fn transfers_end_of(
    tx: &mut Tx<'_>,
    reservation_ids: &[Uuid],
    reason: &str,
    now: Timestamp,
) -> DbResult<Vec<Transfer>> {
    let mut ended = Vec::new();
    for_each_chunk(reservation_ids, params![reason, now], |list, values| {
        let sql = format!(
            "{END} where reservation_id in ({list}) and status = 'listed' returning {}",
            own_columns()
        );
        ended.extend(tx.query(&sql, values, transfer_read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(ended)
}

/// Ends listings of events that have begun, up to a limit. Pinned ones are decided by their payment
/// first; locked ones are skipped until the next run.
pub fn transfers_end_started(
    tx: &mut Tx<'_>,
    reason: &str,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<Transfer>> {
    let sql = format!(
        "{END} where status = 'listed' and pinned_by is null and id in (\
             select id from transfers where status = 'listed' and pinned_by is null \
             and exists (select 1 from sales where sales.event_id = transfers.event_id \
                 and sales.starts_at <= $2) \
             order by id limit $3 for update skip locked\
         ) returning {}",
        own_columns()
    );
    tx.query(&sql, params![reason, now, limit], transfer_read)
}

/// A transfer with its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferSummary {
    pub transfer: Transfer,
    pub quantity: u32,
    pub event_title: String,
    pub venue_name: String,
    pub starts_at: Timestamp,
    pub artist_id: Option<Uuid>,
    pub artist_name: Option<String>,
}

const FROM: &str = "from transfers as t join reservations as r on r.id = t.reservation_id \
    join sales as s on s.event_id = t.event_id left join artists as a on a.id = s.artist_id";

fn summary_read(row: &Row<'_>) -> DbResult<TransferSummary> {
    Ok(from_row!(row => TransferSummary {
        quantity, event_title, venue_name, starts_at, artist_id, artist_name;
        transfer: transfer_read(row)?,
    }))
}

/// Which transfers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferFilter {
    One(TransferId),
    OfSeller(Uuid),
    /// What can be bought now. None of a field: all.
    Listed {
        artist_id: Option<Uuid>,
        event_id: Option<Uuid>,
        now: Timestamp,
    },
}

impl TransferFilter {
    /// The condition and its parameters: a text per combination, so that each can use its index.
    fn condition(&self) -> (String, Vec<Value<'static>>) {
        match *self {
            TransferFilter::One(id) => ("t.id = $1".to_owned(), vec![Value::Uuid(id.0)]),
            TransferFilter::OfSeller(id) => ("t.seller_id = $1".to_owned(), vec![Value::Uuid(id)]),
            TransferFilter::Listed { artist_id, event_id, now } => {
                let mut wanted =
                    "t.status = 'listed' and s.status = 'open' and s.starts_at > $1".to_owned();
                let mut values = vec![Value::Time(now)];
                for (column, id) in [("s.artist_id", artist_id), ("t.event_id", event_id)] {
                    if let Some(id) = id {
                        values.push(Value::Uuid(id));
                        wanted.push_str(&format!(" and {column} = ${}", values.len()));
                    }
                }
                (wanted, values)
            }
        }
    }
}

/// One page, the newest first: ids grow with time.
pub fn transfer_list(
    tx: &mut Tx<'_>,
    filter: &TransferFilter,
    page: Page,
) -> DbResult<Vec<TransferSummary>> {
    let (wanted, mut values) = filter.condition();
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Int(i64::from(page.limit())), Value::Int(page.offset())]);
    let sql = format!(
        "{} {FROM} where {wanted} order by t.id desc limit ${limit} offset ${offset}",
        summary_columns()
    );
    tx.query(&sql, &values, summary_read)
}

fn summary_columns() -> String {
    format!(
        "select {TRANSFER}, r.quantity, s.title as event_title, s.venue_name, s.starts_at, \
         s.artist_id, a.name as artist_name"
    )
}

/// Which transfers those see who look after events. `None` in a field means all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdminTransferFilter {
    pub event_id: Option<Uuid>,
    pub status: Option<TransferStatus>,
    /// Only transfers of this organiser's events.
    pub organiser_id: Option<Uuid>,
}

/// The part of the list that the cursor names, the newest first, and one more.
pub fn transfer_page_after(
    tx: &mut Tx<'_>,
    filter: &AdminTransferFilter,
    page: CursorPage,
) -> DbResult<Vec<TransferSummary>> {
    let mut values = vec![Value::Uuid(page.cursor().unwrap_or(Uuid::max()))];
    let mut wanted = "t.id < $1".to_owned();
    let conditions = [
        ("t.event_id", filter.event_id.map(Value::Uuid)),
        ("t.status", filter.status.map(|status| Value::Text(status.as_str()))),
        ("s.organiser_id", filter.organiser_id.map(Value::Uuid)),
    ];
    for (column, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            wanted.push_str(&format!(" and {column} = ${}", values.len()));
        }
    }
    values.push(Value::Int(i64::from(page.rows_max())));
    let (columns, limit) = (summary_columns(), values.len());
    let sql = format!("{columns} {FROM} where {wanted} order by t.id desc limit ${limit}");
    tx.query(&sql, &values, summary_read)
}

pub fn transfer_count(tx: &mut Tx<'_>, filter: &TransferFilter) -> DbResult<u64> {
    let (wanted, values) = filter.condition();
    let sql = format!("select count(*) as total {FROM} where {wanted}");
    tx.query_one(&sql, &values, |row| row.get("total"))
}
