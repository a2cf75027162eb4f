//! Points of purchases begin to count when the purchase cannot be cancelled for free any more.
//!
//! Otherwise a fan could buy cheap tickets, reach a tier, buy in its pre-sale and cancel the cheap
//! tickets for nothing.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx};

use crate::ReservationId;
use crate::memberships::points::store as points;
use crate::reservations::refund::rules::free_until;
use crate::reservations::refund::{RefundTerms, owners_fee};
use crate::reservations::store::record_find;

/// Looks at points that may count by now. Returns at how many.
pub fn settle_due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<usize> {
    let due = points::points_list_due(tx, now, limit)?;
    let mut ids: Vec<Uuid> = due.iter().map(|one| one.membership_id).collect();
    ids.sort_unstable();
    ids.dedup();
    points::memberships_lock(tx, &ids)?;
    for one in &due {
        // The event may have been moved since they were awarded.
        let settles_at = settles_at(tx, ReservationId(one.reference_id), now)?;
        points::points_settle(tx, *one, settles_at, settles_at <= now)?;
    }
    points::balances_set(tx, &ids)?;
    Ok(due.len())
}

/// From when on the reservation cannot be cancelled for free.
fn settles_at(tx: &mut Tx<'_>, id: ReservationId, now: Timestamp) -> DbResult<Timestamp> {
    let Some(record) = record_find(tx, id)? else { return Ok(now) };
    let terms = RefundTerms::load(tx, id)?;
    Ok(free_until(&terms.policy, &terms.booking(&record, owners_fee(&record)), now))
}
