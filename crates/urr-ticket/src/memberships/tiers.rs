//! Tiers of users with artists, in SQL.

use std::collections::HashMap;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::Tier;
use crate::in_list::for_each_chunk;

/// The tiers of these users with an artist; the general public is left out.
pub fn tier_list(
    tx: &mut Tx<'_>,
    artist_id: Uuid,
    user_ids: &[Uuid],
    now: Timestamp,
) -> DbResult<HashMap<Uuid, Tier>> {
    let mut tiers = HashMap::new();
    for_each_chunk(user_ids, params![artist_id, now], |list, values| {
        let sql = format!(
            "select user_id, tier from memberships where artist_id = $1 and user_id in ({list}) \
             and status = 'active' and expires_at > $2"
        );
        let read = |row: &Row<'_>| Ok((row.get("user_id")?, row.get("tier")?));
        tiers.extend(tx.query::<(Uuid, Tier)>(&sql, values, read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(tiers)
}

/// The tier of a user; none is the general public.
pub fn tier_find(
    tx: &mut Tx<'_>,
    artist_id: Uuid,
    user_id: Uuid,
    now: Timestamp,
) -> DbResult<Option<Tier>> {
    Ok(tier_list(tx, artist_id, &[user_id], now)?.remove(&user_id))
}
