//! The SQL of awards.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::{CommunityAward, DueAward, LEASE_TTL, PointOutcome, next_attempt_at};

const ERROR_CHARS_MAX: usize = 200;

/// Notes an award that is due now.
pub fn award_insert(tx: &mut Tx<'_>, award: &CommunityAward, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "insert into point_awards (reference_id, user_id, artist_id, action, step, is_withdrawn, \
         attempts, due_at, created_at) values ($1, $2, $3, $4, 'award', false, 0, $5, $5) \
         on conflict (reference_id) do nothing",
        params![award.reference_id, award.user_id, award.artist_id, award.action, now],
    )?;
    Ok(())
}

/// Takes an award back. One that was never sent is forgotten; one that is on its way is returned
/// when it was answered.
pub fn award_withdraw(tx: &mut Tx<'_>, reference_id: Uuid, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update point_awards set is_withdrawn = true, step = case \
         when step = 'award' and attempts = 0 then 'done' \
         when step = 'award' then 'award' \
         when step = 'done' then 'return' else step end, \
         due_at = case when step = 'done' then $2::timestamptz else due_at end \
         where reference_id = $1 and not is_withdrawn",
        params![reference_id, now],
    )?;
    Ok(())
}

fn due_read(row: &Row<'_>) -> DbResult<DueAward> {
    let award = from_row!(row => CommunityAward { reference_id, user_id, artist_id, action });
    Ok(from_row!(row => DueAward { step, attempts; award: award }))
}

/// Takes due awards for this process, the longest due first. From now on the call may have been
/// made.
pub fn awards_lease(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<Vec<DueAward>> {
    let mut due = tx.query(
        "select reference_id, user_id, artist_id, action, step, attempts from point_awards \
         where step <> 'done' and due_at <= $1 and (leased_until is null or leased_until <= $1) \
         order by due_at, reference_id limit $2 for update skip locked",
        params![now, limit],
        due_read,
    )?;
    for award in &mut due {
        tx.execute(
            "update point_awards set attempts = attempts + 1, leased_until = $2 \
             where reference_id = $1",
            params![award.award.reference_id, now + LEASE_TTL],
        )?;
        award.attempts += 1;
    }
    Ok(due)
}

/// Notes how a call ended. A row that has moved on in the meantime stays as it is.
pub fn award_record(
    tx: &mut Tx<'_>,
    due: &DueAward,
    outcome: &PointOutcome,
    now: Timestamp,
) -> DbResult<()> {
    let (id, step) = (due.award.reference_id, due.step);
    match outcome {
        PointOutcome::Answered => tx.execute(
            "update point_awards set leased_until = null, last_error = null, due_at = $3, \
             step = case when step = 'award' and is_withdrawn then 'return' else 'done' end \
             where reference_id = $1 and step = $2",
            params![id, step, now],
        ),
        PointOutcome::Refused(code) => tx.execute(
            "update point_awards set leased_until = null, last_error = $3, step = 'done' \
             where reference_id = $1 and step = $2",
            params![id, step, shorten(code)],
        ),
        PointOutcome::Unclear(error) => tx.execute(
            "update point_awards set leased_until = null, last_error = $3, due_at = $4 \
             where reference_id = $1 and step = $2",
            params![id, step, shorten(error), next_attempt_at(due.attempts, now)],
        ),
    }
    .map(drop)
}

fn shorten(error: &str) -> String {
    error.chars().take(ERROR_CHARS_MAX).collect()
}

pub fn awards_count_waiting(tx: &mut Tx<'_>) -> DbResult<i64> {
    let sql = "select count(*) as total from point_awards where step <> 'done'";
    tx.query_one(sql, &[], |row| row.get("total"))
}
