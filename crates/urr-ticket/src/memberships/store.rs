//! Memberships, their terms and their artists. Every change is a compare-and-set, under the lock of
//! the membership.

use urr_contracts::events::membership::MembershipExpired;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{CursorPage, Page};
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use crate::memberships::rules::{
    Membership, MembershipArtist, MembershipId, MembershipTerm, TermPeriod,
};
use crate::payables::attempts::EndedAttempts;

/// Selects a term of a membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermSelector {
    Last,
    Number(i64),
    /// The one that the payment has pinned or paid.
    OfPayment(Uuid),
}

/// An artist as the catalog announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistUpdate {
    pub id: Uuid,
    pub name: String,
    pub membership_price: Won,
    pub announced_at: Timestamp,
}

/// Older announcements do not overwrite newer ones.
pub fn artist_upsert(tx: &mut Tx<'_>, update: &ArtistUpdate) -> DbResult<()> {
    tx.execute(
        "insert into artists (id, name, membership_price, announced_at) values ($1, $2, $3, $4) \
         on conflict (id) do update set name = excluded.name, \
         membership_price = excluded.membership_price, announced_at = excluded.announced_at \
         where artists.announced_at <= excluded.announced_at",
        params![update.id, update.name, update.membership_price, update.announced_at],
    )?;
    Ok(())
}

pub fn artist_find(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<MembershipArtist>> {
    let sql = "select name, membership_price from artists where id = $1";
    let read = |row: &Row<'_>| {
        Ok(MembershipArtist { name: row.get("name")?, price: row.get("membership_price")? })
    };
    tx.query_opt(sql, params![id], read)
}

const MEMBERSHIP: &str = "select m.id, m.user_id, m.artist_id, m.tier, m.points, \
    m.pending_points, m.joined_at, m.expires_at, m.is_live, m.term as last_term, m.ended_attempts, a.name as artist_name, a.membership_price, \
    t.number, t.payment_status, t.amount, t.pinned_by, t.payment_id, t.starts_at, t.ends_at \
    from memberships as m left join artists as a on a.id = m.artist_id \
    left join membership_terms as t on t.membership_id = m.id";

pub fn membership_find(
    tx: &mut Tx<'_>,
    id: MembershipId,
    which: TermSelector,
) -> DbResult<Option<Membership>> {
    let (condition, wanted) = match which {
        TermSelector::Last => ("t.number = m.term", None),
        TermSelector::Number(number) => ("t.number = $2", Some(Value::Int(number))),
        TermSelector::OfPayment(id) => {
            ("(t.payment_id = $2 or t.pinned_by = $2)", Some(Value::Uuid(id)))
        }
    };
    let values: Vec<Value<'_>> = [Value::Uuid(id.0)].into_iter().chain(wanted).collect();
    let sql = format!("{MEMBERSHIP} and {condition} where m.id = $1");
    tx.query_opt(&sql, &values, membership_read)
}

/// Whether an organiser has an event of the artist.
pub fn organiser_has_artist(
    tx: &mut Tx<'_>,
    organiser_id: Uuid,
    artist_id: Uuid,
) -> DbResult<bool> {
    let sql = "select 1 as found from sales where organiser_id = $1 and artist_id = $2 \
               and status <> 'deleted' limit 1";
    Ok(tx.query_opt(sql, params![organiser_id, artist_id], |_| Ok(()))?.is_some())
}

/// The memberships of an artist with their last terms, the newest first, one more than the page has.
pub fn membership_page_of_artist(
    tx: &mut Tx<'_>,
    artist_id: Uuid,
    page: CursorPage,
) -> DbResult<Vec<Membership>> {
    let sql = format!(
        "{MEMBERSHIP} and t.number = m.term where m.artist_id = $1 and m.id < $2 \
         order by m.id desc limit $3"
    );
    let before = page.cursor().unwrap_or(Uuid::max());
    tx.query(&sql, params![artist_id, before, page.rows_max()], membership_read)
}

/// A fan's membership with its last term.
pub fn membership_find_of_fan(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    artist_id: Uuid,
) -> DbResult<Option<Membership>> {
    let sql =
        format!("{MEMBERSHIP} and t.number = m.term where m.user_id = $1 and m.artist_id = $2");
    tx.query_opt(&sql, params![user_id, artist_id], membership_read)
}

/// One page of a user's memberships, the newest first: ids grow with time.
pub fn membership_list(tx: &mut Tx<'_>, user_id: Uuid, page: Page) -> DbResult<Vec<Membership>> {
    let sql = format!(
        "{MEMBERSHIP} and t.number = m.term where m.user_id = $1 \
         order by m.id desc limit $2 offset $3"
    );
    tx.query(&sql, params![user_id, page.limit(), page.offset()], membership_read)
}

pub fn membership_count(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<u64> {
    let sql = "select count(*) as total from memberships where user_id = $1";
    tx.query_one(sql, params![user_id], |row| row.get("total"))
}

fn membership_read(row: &Row<'_>) -> DbResult<Membership> {
    let (name, price): (Option<String>, Option<Won>) =
        (row.get("artist_name")?, row.get("membership_price")?);
    Ok(from_row!(row => Membership {
        id, user_id, artist_id, tier, points, pending_points, joined_at, expires_at, is_live,
        last_term;
        artist: name.zip(price).map(|(name, price)| MembershipArtist { name, price }),
        ended_attempts: EndedAttempts::read(row)?,
        term: term_read(row)?,
    }))
}

fn term_read(row: &Row<'_>) -> DbResult<Option<MembershipTerm>> {
    let Some(number) = row.get::<Option<i64>>("number")? else { return Ok(None) };
    Ok(Some(from_row!(row => MembershipTerm {
        payment_status, amount, pinned_by, payment_id;
        number: number,
        period: period_read(row)?,
    })))
}

fn period_read(row: &Row<'_>) -> DbResult<Option<TermPeriod>> {
    let (starts_at, ends_at): (Option<Timestamp>, Option<Timestamp>) =
        (row.get("starts_at")?, row.get("ends_at")?);
    Ok(starts_at.zip(ends_at).map(|(starts_at, ends_at)| TermPeriod { starts_at, ends_at }))
}

/// Locks the membership until the transaction ends.
pub fn membership_lock(tx: &mut Tx<'_>, id: MembershipId) -> DbResult<()> {
    let sql = "select id from memberships where id = $1 for update";
    tx.query_one(sql, params![id], |_| Ok(()))
}

/// Creates a user's membership if there is none, and locks it. It is not active yet.
pub fn membership_make(
    tx: &mut Tx<'_>,
    id: MembershipId,
    user_id: Uuid,
    artist_id: Uuid,
    now: Timestamp,
) -> DbResult<MembershipId> {
    tx.execute(
        "insert into memberships (id, user_id, artist_id, tier, status, expires_at) \
         values ($1, $2, $3, 'silver', 'pending', $4) on conflict (user_id, artist_id) do nothing",
        params![id, user_id, artist_id, now],
    )?;
    tx.query_one(
        "select id from memberships where user_id = $1 and artist_id = $2 for update",
        params![user_id, artist_id],
        |row| row.get("id"),
    )
}

/// The next year can be bought.
pub fn term_offer(tx: &mut Tx<'_>, membership: &Membership, now: Timestamp) -> DbResult<()> {
    let number = membership.last_term + 1;
    tx.execute(
        "insert into membership_terms (membership_id, number, payment_status, created_at, \
         updated_at) values ($1, $2, 'unpaid', $3, $3)",
        params![membership.id, number, now],
    )?;
    tx.execute("update memberships set term = $2 where id = $1", params![membership.id, number])?;
    Ok(())
}

/// A change of a term by a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermChange {
    pub id: MembershipId,
    pub number: i64,
    pub payment_id: Uuid,
    pub now: Timestamp,
}

/// A payment begins, at this price.
pub fn term_pin(tx: &mut Tx<'_>, step: TermChange, amount: Won) -> DbResult<()> {
    let rows = tx.execute(
        "update membership_terms set pinned_by = $3, pinned_at = $4, amount = $5, updated_at = $4 \
         where membership_id = $1 and number = $2 and payment_status = 'unpaid' \
         and pinned_by is null",
        params![step.id, step.number, step.payment_id, step.now, amount],
    )?;
    assert_eq!(rows, 1, "the term was seen to be free under the lock");
    Ok(())
}

pub fn term_unpin(tx: &mut Tx<'_>, step: TermChange) -> DbResult<()> {
    let rows = tx.execute(
        "update membership_terms set pinned_by = null, pinned_at = null, updated_at = $4 \
         where membership_id = $1 and number = $2 and pinned_by = $3",
        params![step.id, step.number, step.payment_id, step.now],
    )?;
    assert_eq!(rows, 1, "the pin was seen under the lock");
    Ok(())
}

/// Records the attempts that have ended.
pub fn membership_set_ended_attempts(
    tx: &mut Tx<'_>,
    id: MembershipId,
    ended: &EndedAttempts,
) -> DbResult<()> {
    let sql = "update memberships set ended_attempts = $2 where id = $1";
    tx.execute(sql, params![id, ended.to_json()])?;
    Ok(())
}

/// The term is paid, and the membership lasts until its end.
pub fn term_pay(
    tx: &mut Tx<'_>,
    step: TermChange,
    period: TermPeriod,
    method: &str,
) -> DbResult<()> {
    let rows = tx.execute(
        "update membership_terms set payment_status = 'paid', payment_id = pinned_by, \
         pinned_by = null, pinned_at = null, payment_method = $4, starts_at = $5, ends_at = $6, \
         updated_at = $7 where membership_id = $1 and number = $2 and payment_status = 'unpaid' \
         and pinned_by = $3",
        params![
            step.id,
            step.number,
            step.payment_id,
            method,
            period.starts_at,
            period.ends_at,
            step.now
        ],
    )?;
    assert_eq!(rows, 1, "the pin was seen under the lock");
    tx.execute(
        "update memberships set status = 'active', joined_at = coalesce(joined_at, $2), \
         expires_at = $3, is_live = true where id = $1",
        params![step.id, step.now, period.ends_at],
    )?;
    Ok(())
}

/// The spans of the terms that are paid, but this one.
pub fn period_list_except(
    tx: &mut Tx<'_>,
    id: MembershipId,
    number: i64,
) -> DbResult<Vec<(i64, TermPeriod)>> {
    tx.query(
        "select number, starts_at, ends_at from membership_terms where membership_id = $1 \
         and number <> $2 and payment_status = 'paid' order by number",
        params![id, number],
        |row| {
            let period = period_read(row)?.expect("what is paid has a span");
            Ok((row.get("number")?, period))
        },
    )
}

/// The money of a term is back.
pub fn term_refund(tx: &mut Tx<'_>, step: TermChange) -> DbResult<()> {
    let rows = tx.execute(
        "update membership_terms set payment_status = 'refunded', updated_at = $4 \
         where membership_id = $1 and number = $2 and payment_id = $3 and payment_status = 'paid'",
        params![step.id, step.number, step.payment_id, step.now],
    )?;
    assert_eq!(rows, 1, "the state was seen under the lock");
    Ok(())
}

pub fn term_update_period(
    tx: &mut Tx<'_>,
    id: MembershipId,
    number: i64,
    period: TermPeriod,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "update membership_terms set starts_at = $3, ends_at = $4, updated_at = $5 \
         where membership_id = $1 and number = $2",
        params![id, number, period.starts_at, period.ends_at, now],
    )?;
    Ok(())
}

pub fn membership_set_end(
    tx: &mut Tx<'_>,
    id: MembershipId,
    expires_at: Timestamp,
) -> DbResult<()> {
    tx.execute("update memberships set expires_at = $2 where id = $1", params![id, expires_at])?;
    Ok(())
}

/// Marks expired memberships as ended, up to a limit. One that is being renewed is skipped: the
/// condition is checked again under the lock.
pub fn membership_end_overdue(
    tx: &mut Tx<'_>,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<MembershipExpired>> {
    tx.query(
        "update memberships set is_live = false where is_live and expires_at <= $1 and id in (\
             select id from memberships where is_live and expires_at <= $1 \
             order by expires_at, id limit $2 for update skip locked\
         ) returning id, user_id, artist_id, tier, expires_at",
        params![now, limit],
        |row| {
            Ok(from_row!(row => MembershipExpired {
                user_id, artist_id, tier, expires_at;
                membership_id: row.get("id")?,
                timestamp: Some(now),
            }))
        },
    )
}
