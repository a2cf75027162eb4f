//! Points for posts and comments: rows that say what the ticket service is still to be told.
//!
//! A row is written with its post. A job makes the call, and again until there is an answer; the
//! ticket service gives points once per reference, within the limits of a day. Points go back with
//! the post: not before their award was answered, so that no late award can follow its return.

pub mod store;

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use prometheus_client::metrics::gauge::Gauge;
use urr_contracts::clients::ClientError;
use urr_contracts::internal::ticket::{AwardPoints, ReturnPoints};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::Metrics;
use urr_storage::{DbResult, Tx, storable_enum};

use crate::CommunityService;

const BATCH_MAX: u32 = 32;
const CONCURRENT_MAX: usize = 8;
/// Longer than a call can take.
pub const LEASE_TTL: Duration = Duration::from_secs(30);
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// What points are awarded for. The ticket service knows how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommunityAction {
    Post,
    Comment,
    NewsArticle,
}

storable_enum!(CommunityAction {
    Post => "COMMUNITY_POST",
    Comment => "COMMUNITY_COMMENT",
    NewsArticle => "NEWS_CREATION",
});

/// The call that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointStep {
    Award,
    Return,
    Done,
}

storable_enum!(PointStep { Award => "award", Return => "return", Done => "done" });

/// An award that a post or comment earns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunityAward {
    /// The post or comment.
    pub reference_id: Uuid,
    pub user_id: Uuid,
    pub artist_id: Option<Uuid>,
    pub action: CommunityAction,
}

/// A call that this process makes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueAward {
    pub award: CommunityAward,
    pub step: PointStep,
    pub attempts: i64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointOutcome {
    Answered,
    /// The ticket service will never do it.
    Refused(String),
    /// It may or may not have done it: the call is made again.
    Unclear(String),
}

/// The pause before the next attempt.
fn pause(attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts - 1).unwrap_or(u32::MAX).min(16);
    (PAUSE_FIRST * 2_u32.pow(doublings)).min(PAUSE_MAX)
}

/// When the next attempt is due after one that is unclear.
pub fn next_attempt_at(attempts: i64, now: Timestamp) -> Timestamp {
    now + pause(attempts)
}

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PointMetrics {
    waiting: Gauge<i64, AtomicI64>,
}

impl PointMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let help = "Posts and comments whose points the ticket service is still to be told of";
        metrics.register("urr_community_awards_waiting", help, self.waiting.clone());
    }
}

impl CommunityService {
    /// Makes the calls that are due, until there are none. Returns how many were made.
    pub async fn send_due_awards(&self) -> DbResult<usize> {
        let mut sent = 0;
        loop {
            // Usually none is waiting, and then nothing is written.
            if self.count_waiting().await? == 0 {
                return Ok(sent);
            }
            let now = self.0.clock.now();
            let lease = move |tx: &mut Tx<'_>| store::awards_lease(tx, now, BATCH_MAX);
            let due = self.0.db.write(lease).await?;
            if due.is_empty() {
                return Ok(sent);
            }
            sent += due.len();
            let calls = due.into_iter().map(|due| self.send_award(due));
            let calls: Vec<DbResult<()>> =
                stream::iter(calls).buffer_unordered(CONCURRENT_MAX).collect().await;
            calls.into_iter().collect::<DbResult<()>>()?;
        }
    }

    async fn count_waiting(&self) -> DbResult<i64> {
        let waiting = self.0.db.read(store::awards_count_waiting).await?;
        self.0.metrics.waiting.set(waiting);
        Ok(waiting)
    }

    async fn send_award(&self, due: DueAward) -> DbResult<()> {
        let outcome = self.call_ticket(due).await;
        let (id, step) = (due.award.reference_id, due.step);
        match &outcome {
            PointOutcome::Answered => {}
            PointOutcome::Refused(code) => {
                tracing::error!(reference = %id, %step, code, "points were refused");
            }
            PointOutcome::Unclear(error) => {
                tracing::warn!(reference = %id, %step, error, "points wait for the ticket service");
            }
        }
        let now = self.0.clock.now();
        let record = move |tx: &mut Tx<'_>| store::award_record(tx, &due, &outcome, now);
        self.0.db.write(record).await
    }

    async fn call_ticket(&self, due: DueAward) -> PointOutcome {
        let CommunityAward { reference_id, user_id, artist_id, action } = due.award;
        let (ticket, action_type) = (&self.0.ticket, action.as_str().to_owned());
        let context = CallContext::root(self.0.ids.next_id());
        let answer = match due.step {
            PointStep::Award => {
                let award = AwardPoints { user_id, action_type, reference_id, artist_id };
                ticket.call(award, &context).await.map(drop)
            }
            PointStep::Return => {
                let back = ReturnPoints { action_type, reference_id };
                ticket.call(back, &context).await.map(drop)
            }
            PointStep::Done => Ok(()),
        };
        match answer {
            Ok(()) => PointOutcome::Answered,
            Err(ClientError::Refused { code, .. }) => PointOutcome::Refused(code),
            Err(error @ ClientError::NoAnswer { .. }) => PointOutcome::Unclear(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let seconds: Vec<u64> = (1..=11).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pause(i64::MAX), PAUSE_MAX);
    }
}
