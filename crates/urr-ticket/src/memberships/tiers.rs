//! Tiers of users with artists, in SQL.

use std::collections::HashMap;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Row, StorageError, Tx, params};

use crate::Tier;
use crate::reserve::store_postgres::list;

/// A user and an artist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fan {
    pub user_id: Uuid,
    pub artist_id: Uuid,
}

/// Their tiers; the general public is left out.
pub fn tier_list(
    tx: &mut Tx<'_>,
    fans: &[Fan],
    now: Timestamp,
) -> Result<HashMap<Fan, Tier>, StorageError> {
    if tx.is_postgres() {
        return tier_list_at_once(tx, fans, now);
    }
    let mut tiers = HashMap::new();
    for &fan in fans {
        let tier = tx.query_opt(
            "select tier from memberships where user_id = $1 and artist_id = $2 \
             and status = 'active' and expires_at > $3",
            params![fan.user_id, fan.artist_id, now],
            tier_read,
        )?;
        tiers.extend(tier.map(|tier| (fan, tier)));
    }
    Ok(tiers)
}

fn tier_list_at_once(
    tx: &mut Tx<'_>,
    fans: &[Fan],
    now: Timestamp,
) -> Result<HashMap<Fan, Tier>, StorageError> {
    let (user_ids, artist_ids): (Vec<Uuid>, Vec<Uuid>) =
        fans.iter().map(|fan| (fan.user_id, fan.artist_id)).unzip();
    let tiers = tx.query(
        "select fan.user_id, fan.artist_id, membership.tier \
         from unnest(string_to_array($1, ',')::uuid[], string_to_array($2, ',')::uuid[]) \
         as fan (user_id, artist_id) \
         cross join lateral (select tier from memberships where user_id = fan.user_id \
         and artist_id = fan.artist_id and status = 'active' and expires_at > $3 limit 1) \
         as membership",
        params![list(&user_ids), list(&artist_ids), now],
        |row| {
            let (user_id, artist_id) = (row.get("user_id")?, row.get("artist_id")?);
            Ok((Fan { user_id, artist_id }, tier_read(row)?))
        },
    )?;
    Ok(tiers.into_iter().collect())
}

fn tier_read(row: &Row<'_>) -> Result<Tier, StorageError> {
    row.get("tier")
}
