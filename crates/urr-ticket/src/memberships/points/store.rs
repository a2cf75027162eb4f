//! Points in SQL. Rows are only added; the balance and its tier follow in the same transaction.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{DbResult, StorageError, Tx, Value, from_row, params};
use utoipa::ToSchema;

use crate::in_list::for_each_chunk;
use crate::memberships::points::{PointAction, TIERS, start_of_day};

/// The active memberships that get points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointRecipients {
    pub user_id: Uuid,
    /// None: of every artist.
    pub artist_id: Option<Uuid>,
}

/// An award of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointAward {
    pub action: PointAction,
    pub reference_id: Uuid,
    pub now: Timestamp,
    /// When the points begin to count.
    pub settles_at: Timestamp,
}

/// An entry of a membership's point history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PointEntry {
    /// For example `TICKET_PURCHASE`; what was taken back ends with `_RETURNED`.
    #[serde(rename = "actionType")]
    #[schema(example = "TICKET_PURCHASE")]
    pub action: String,
    /// The payment, reservation or post that they were given for.
    pub reference_id: Uuid,
    #[schema(example = 100)]
    pub points: i64,
    pub created_at: Timestamp,
    /// Whether they count for the tier. Those of a purchase do when it cannot be cancelled for free
    /// any more.
    pub is_settled: bool,
    /// From when on they count, as far as is known.
    pub settles_at: Timestamp,
}

/// The tier of a number of points, as SQL.
fn tier_of(points: &str) -> String {
    let (lowest, higher) = TIERS.split_last().expect("there are tiers");
    let cases = higher
        .iter()
        .map(|(tier, from)| format!("when {points} >= {from} then '{}' ", tier.as_str()));
    format!("case {}else '{}' end", cases.collect::<String>(), lowest.0.as_str())
}

/// Awards the points of a ticket to the fan of its artist, if there is a membership that counts: on
/// PostgreSQL by one statement, because it is part of every sale. Once per reservation.
pub fn points_award_ticket(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    artist_id: Uuid,
    award: PointAward,
) -> DbResult<()> {
    let condition = "user_id = $6 and artist_id = $7 and status = 'active' and expires_at > $4";
    let values = params![user_id, artist_id];
    if tx.is_postgres() {
        return tx.execute_later(&award_sql(award, condition), &award_values(award, values));
    }
    insert_and_add(tx, award, condition, values).map(|_| ())
}

/// Awards points to one membership, whether it counts or not. `false`: that was done before.
pub fn points_award_member(
    tx: &mut Tx<'_>,
    membership_id: Uuid,
    award: PointAward,
) -> DbResult<bool> {
    Ok(insert_and_add(tx, award, "id = $6", params![membership_id])? == 1)
}

/// Awards points to active memberships within the daily limit of the action. Returns to how many.
/// They are locked first, so that concurrent awards are counted.
pub fn points_award_limited(
    tx: &mut Tx<'_>,
    members: PointRecipients,
    award: PointAward,
) -> DbResult<u64> {
    let per_day_max = award.action.per_day_max().expect("what has no limit is awarded elsewhere");
    let ids: Vec<Uuid> = tx.query(
        "select id from memberships where user_id = $1 and ($2::uuid is null or artist_id = $2) \
         and status = 'active' and expires_at > $3 order by id for update",
        params![members.user_id, members.artist_id, award.now],
        |row| row.get("id"),
    )?;
    let condition = "id = $6 and (select count(*) from membership_points as given \
                     where given.membership_id = $6 and given.action = $1 \
                     and given.created_at >= $7) < $8";
    let (since, mut awarded) = (start_of_day(award.now), 0);
    for id in ids {
        awarded += insert_and_add(tx, award, condition, params![id, since, per_day_max])?;
    }
    Ok(awarded)
}

/// Inserts points and adds them to the balance of the memberships that meet the condition, whose
/// parameters begin at `$6`. Points are awarded once per reference.
fn insert_and_add(
    tx: &mut Tx<'_>,
    award: PointAward,
    condition: &str,
    values: &[Value<'_>],
) -> DbResult<u64> {
    let values = award_values(award, values);
    if tx.is_postgres() {
        return tx.execute(&award_sql(award, condition), &values);
    }
    let insert = insert_sql(condition);
    let ids: Vec<Uuid> = tx.query(&insert, &values, |row| row.get("membership_id"))?;
    let sql = format!("update memberships set {} where id = $1", add_sql(award, "$2"));
    for id in &ids {
        tx.execute(&sql, params![*id, award.action.points()])?;
    }
    Ok(u64::try_from(ids.len()).expect("they were counted"))
}

fn insert_sql(condition: &str) -> String {
    format!(
        "insert into membership_points (membership_id, action, reference_id, points, created_at, \
         settles_at, is_settled) select id, $1::text, $2::uuid, $3::bigint, $4::timestamptz, \
         $5::timestamptz, $5::timestamptz <= $4::timestamptz from memberships \
         where {condition} on conflict (membership_id, action, reference_id) do nothing \
         returning membership_id"
    )
}

fn add_sql(award: PointAward, points: &str) -> String {
    match award.settles_at <= award.now {
        true => {
            format!("points = points + {points}, tier = {}", tier_of(&format!("points + {points}")))
        }
        false => format!("pending_points = pending_points + {points}"),
    }
}

/// Both in one statement, as PostgreSQL can.
fn award_sql(award: PointAward, condition: &str) -> String {
    format!(
        "with noted as ({}) update memberships set {} \
         from noted where memberships.id = noted.membership_id",
        insert_sql(condition),
        add_sql(award, "$3")
    )
}

fn award_values<'a>(award: PointAward, values: &[Value<'a>]) -> Vec<Value<'a>> {
    let PointAward { action, reference_id, now, settles_at } = award;
    let mut all = vec![
        Value::Text(action.as_str()),
        Value::Uuid(reference_id),
        Value::Int(action.points()),
        Value::Time(now),
        Value::Time(settles_at),
    ];
    all.extend(values.iter().cloned());
    all
}

/// Takes back what was awarded for these references, once. Points that did not count yet never
/// will.
pub fn points_revoke(
    tx: &mut Tx<'_>,
    action: PointAction,
    reference_ids: &[Uuid],
    now: Timestamp,
) -> DbResult<()> {
    let ids = members_lock(tx, action, reference_ids)?;
    if ids.is_empty() {
        return Ok(());
    }
    let (name, name_of_return) = (action.as_str(), action.name_of_return());
    for_each_chunk(reference_ids, params![name, name_of_return, now], |list, values| {
        let sql = format!(
            "insert into membership_points (membership_id, action, reference_id, points, \
             created_at, settles_at, is_settled) select membership_id, $2::text, reference_id, \
             -points, $3::timestamptz, $3::timestamptz, true \
             from membership_points where action = $1 and reference_id in ({list}) \
             on conflict (membership_id, action, reference_id) do nothing"
        );
        tx.execute(&sql, values).map(|_| ())
    })?;
    for_each_chunk(reference_ids, params![name], |list, values| {
        let sql = format!(
            "update membership_points set is_settled = true where action = $1 \
             and reference_id in ({list}) and not is_settled"
        );
        tx.execute(&sql, values).map(|_| ())
    })?;
    balances_set(tx, &ids)
}

/// The memberships that were awarded points for these references, locked in the order of ids:
/// reservations that are cancelled together may have many owners.
fn members_lock(
    tx: &mut Tx<'_>,
    action: PointAction,
    reference_ids: &[Uuid],
) -> DbResult<Vec<Uuid>> {
    let mut ids: Vec<Uuid> = Vec::new();
    for_each_chunk(reference_ids, params![action.as_str()], |list, values| {
        let sql = format!(
            "select membership_id from membership_points where action = $1 \
             and reference_id in ({list})"
        );
        ids.extend(tx.query(&sql, values, |row| row.get::<Uuid>("membership_id"))?);
        Ok::<_, StorageError>(())
    })?;
    ids.sort_unstable();
    ids.dedup();
    memberships_lock(tx, &ids)?;
    Ok(ids)
}

/// Sets balances to the sums of their entries.
pub fn balances_set(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<()> {
    for_each_chunk(ids, &[], |list, values| {
        let tier = tier_of("total.points");
        let sql = format!(
            "update memberships set points = total.points, pending_points = total.pending, \
             tier = {tier} from (\
                 select membership_id, \
                 sum(case when is_settled then points else 0 end)::bigint as points, \
                 sum(case when is_settled then 0 else points end)::bigint as pending \
                 from membership_points \
                 where membership_id in ({list}) group by membership_id\
             ) as total where memberships.id = total.membership_id"
        );
        tx.execute(&sql, values)?;
        Ok(())
    })
}

/// Points that are due to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuePoints {
    pub membership_id: Uuid,
    /// The reservation.
    pub reference_id: Uuid,
}

/// The next points that may count by now. They are not locked.
pub fn points_list_due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<Vec<DuePoints>> {
    tx.query(
        "select membership_id, reference_id from membership_points where not is_settled \
         and settles_at <= $1 order by settles_at, reference_id limit $2",
        params![now, limit],
        |row| Ok(from_row!(row => DuePoints { membership_id, reference_id })),
    )
}

/// Points of a purchase count from now on, or are looked at again at `settles_at`. Its membership is
/// locked.
pub fn points_settle(
    tx: &mut Tx<'_>,
    due: DuePoints,
    settles_at: Timestamp,
    is_settled: bool,
) -> DbResult<()> {
    tx.execute(
        "update membership_points set settles_at = $4, is_settled = $5 where membership_id = $1 \
         and reference_id = $2 and action = $3 and not is_settled",
        params![
            due.membership_id,
            due.reference_id,
            PointAction::TicketPurchase.as_str(),
            settles_at,
            is_settled
        ],
    )?;
    Ok(())
}

/// Whether the points of these reservations count is to be looked at again.
pub fn points_recheck(tx: &mut Tx<'_>, reference_ids: &[Uuid], now: Timestamp) -> DbResult<()> {
    let action = PointAction::TicketPurchase.as_str();
    for_each_chunk(reference_ids, params![action, now], |list, values| {
        let sql = format!(
            "update membership_points set settles_at = $2 where action = $1 \
             and reference_id in ({list}) and not is_settled"
        );
        tx.execute(&sql, values).map(|_| ())
    })
}

/// Locks memberships in the order of their ids.
pub fn memberships_lock(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<()> {
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!("select id from memberships where id in ({list}) order by id for update");
        tx.query(&sql, values, |_| Ok(())).map(|_| ())
    })
}

/// One page of what a membership was given and what was taken back, the newest first.
pub fn point_entry_list(
    tx: &mut Tx<'_>,
    membership_id: Uuid,
    page: Page,
) -> DbResult<Vec<PointEntry>> {
    tx.query(
        "select action, reference_id, points, created_at, settles_at, is_settled \
         from membership_points \
         where membership_id = $1 order by created_at desc, action desc, reference_id desc \
         limit $2 offset $3",
        params![membership_id, i64::from(page.limit()), page.offset()],
        |row| {
            Ok(from_row!(row => PointEntry {
                action, reference_id, points, created_at, settles_at, is_settled
            }))
        },
    )
}

pub fn point_entry_count(tx: &mut Tx<'_>, membership_id: Uuid) -> DbResult<u64> {
    let sql = "select count(*) as total from membership_points where membership_id = $1";
    tx.query_one(sql, params![membership_id], |row| row.get("total"))
}
