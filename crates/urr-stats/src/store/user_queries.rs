//! Reads what users did: in the last hour, and how often and for how much they book.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, params};

/// How many seats and tickets are held at this moment.
pub fn held_places(tx: &mut Tx<'_>, now: Timestamp) -> DbResult<i64> {
    tx.query_one(
        "select coalesce(sum(quantity), 0)::bigint as places from reservations \
         where hold_ends_at > $1 and confirmed_at is null and cancelled_at is null \
         and expired_at is null",
        params![now],
        |row| row.get("places"),
    )
}

/// How many accounts are open, by role.
pub fn users_by_role(tx: &mut Tx<'_>) -> DbResult<Vec<(String, i64)>> {
    let sql = "select role, count(*) as total from users \
               where registered_at is not null and deleted_at is null \
               group by role order by role";
    tx.query(sql, &[], |row| Ok((row.get("role")?, row.get("total")?)))
}

/// What happened since a time.
pub struct LastHourStats {
    pub reservations: i64,
    pub charges: i64,
    pub revenue: i64,
    pub users: i64,
}

pub fn last_hour_stats(tx: &mut Tx<'_>, since: Timestamp) -> DbResult<LastHourStats> {
    let reservations = "select count(*) as reservations from reservations where created_at >= $1";
    let reservations = tx.query_one(reservations, params![since], |row| row.get("reservations"))?;
    let (charges, revenue) = tx.query_one(
        "select coalesce(sum(case when kind = 'charge' then 1 else 0 end), 0)::bigint as charges, \
         coalesce(sum(case when kind = 'charge' then amount else -amount end), 0)::bigint \
         as revenue from transactions where kind in ('charge', 'refund') and happened_at >= $1",
        params![since],
        |row| Ok((row.get("charges")?, row.get("revenue")?)),
    )?;
    let users = tx.query_one(
        "select count(*) as users from (select user_id from reservations where created_at >= $1 \
         union select user_id from transactions where kind = 'charge' and happened_at >= $1) as active",
        params![since],
        |row| row.get("users"),
    )?;
    Ok(LastHourStats { reservations, charges, revenue, users })
}

/// Pairs of (reservations, number of users), of the users who reserved since a time: their
/// reservations since then, or of all time.
pub fn reservations_per_user(
    tx: &mut Tx<'_>,
    since: Timestamp,
    of_all_time: bool,
) -> DbResult<Vec<(i64, i64)>> {
    let which = match of_all_time {
        false => "created_at >= $1",
        true => "user_id in (select user_id from reservations where created_at >= $1)",
    };
    let sql = format!(
        "select reservations, count(*) as users from (select user_id, count(*) as reservations \
         from reservations where {which} group by user_id) as people \
         group by reservations order by reservations"
    );
    tx.query(&sql, params![since], |row| Ok((row.get("reservations")?, row.get("users")?)))
}

/// The number of paying users since a time by spending tier: below each bound, and above the last.
/// Refunds are not spent.
pub fn spending_tiers(tx: &mut Tx<'_>, since: Timestamp, bounds: [i64; 3]) -> DbResult<[i64; 4]> {
    let [low, medium, high] = bounds;
    let rows = tx.query(
        "select tier, count(*) as users from (select case when spent < $2 then 0 \
         when spent < $3 then 1 when spent < $4 then 2 else 3 end as tier from \
         (select user_id, sum(case when kind = 'charge' then amount else -amount end)::bigint \
         as spent from transactions where kind in ('charge', 'refund') and happened_at >= $1 \
         and user_id is not null group by user_id) as people) as tiers group by tier",
        params![since, low, medium, high],
        |row| Ok((row.get::<u32>("tier")?, row.get::<i64>("users")?)),
    )?;
    let mut tiers = [0; 4];
    for (tier, users) in rows {
        tiers[tier as usize] = users;
    }
    Ok(tiers)
}
