//! How much one user may write in an hour and in a day.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::settings::WritingLimit;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// A day has so many times the limit of an hour.
const HOURS_PER_DAY: u32 = 4;

/// The user has written too much. Another attempt makes sense after this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("You have written a lot in a short time. Please try again later.")]
pub struct TooMuchWritten {
    pub retry_after: Duration,
}

/// What is counted: a table with its column of the author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenKind {
    Post,
    Comment,
    Report,
}

impl WrittenKind {
    fn table_and_author(self) -> (&'static str, &'static str) {
        match self {
            WrittenKind::Post => ("posts", "author_id"),
            WrittenKind::Comment => ("comments", "author_id"),
            WrittenKind::Report => ("reports", "reporter_id"),
        }
    }
}

/// Decides whether a user may write once more. `times` are those of the last day, newest first.
pub fn decide_writing(
    times: &[Timestamp],
    limit: WritingLimit,
    now: Timestamp,
) -> Result<(), TooMuchWritten> {
    let per_day_max = limit.per_hour_max.saturating_mul(HOURS_PER_DAY);
    for (window, max) in [(HOUR, limit.per_hour_max), (DAY, per_day_max)] {
        let Some(last) = usize::try_from(max).ok().and_then(|max| max.checked_sub(1)) else {
            return Err(TooMuchWritten { retry_after: window });
        };
        // The one that has to leave the window first.
        let Some(ends_at) = times.get(last).map(|oldest| *oldest + window) else { continue };
        if now < ends_at {
            let retry_after = Duration::try_from(ends_at.duration_since(now)).unwrap_or(window);
            return Err(TooMuchWritten { retry_after });
        }
    }
    Ok(())
}

/// When this user wrote within the last day. The user is locked until the end of the transaction, so
/// that requests at the same time are counted.
pub fn written_lock(
    tx: &mut Tx<'_>,
    kind: WrittenKind,
    user_id: Uuid,
    limit: WritingLimit,
    now: Timestamp,
) -> DbResult<Vec<Timestamp>> {
    tx.lock_name(&format!("community author {user_id}"))?;
    let (table, author) = kind.table_and_author();
    let sql = format!(
        "select created_at from {table} where {author} = $1 and created_at > $2 \
         order by created_at desc limit $3"
    );
    let most = limit.per_hour_max.saturating_mul(HOURS_PER_DAY);
    tx.query(&sql, params![user_id, now - DAY, most], |row| row.get("created_at"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: WritingLimit = WritingLimit { per_hour_max: 2 };

    fn at(minutes: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_hours(1_000) + Duration::from_mins(minutes)
    }

    fn decide(minutes: &[u64], now: u64) -> Option<u64> {
        let times: Vec<Timestamp> = minutes.iter().rev().map(|minutes| at(*minutes)).collect();
        let refused = decide_writing(&times, LIMIT, at(now)).err()?;
        Some(refused.retry_after.as_secs() / 60)
    }

    #[test]
    fn an_hour_and_a_day_have_their_limits() {
        assert_eq!(decide(&[], 0), None);
        assert_eq!(decide(&[0], 1), None);
        assert_eq!(decide(&[0, 10], 20), Some(40));
        assert_eq!(decide(&[0, 10], 60), None);
        let day: Vec<u64> = (0..8).map(|number| number * 60).collect();
        assert_eq!(decide(&day[..7], 500), None);
        assert_eq!(decide(&day, 500), Some(24 * 60 - 500));
        assert_eq!(decide(&day, 24 * 60), None);
    }

    #[test]
    fn a_clock_that_was_set_back_allows_no_more() {
        assert!(decide(&[10, 20], 0).is_some());
        let nothing = WritingLimit { per_hour_max: 0 };
        assert!(decide_writing(&[], nothing, at(0)).is_err());
    }
}
