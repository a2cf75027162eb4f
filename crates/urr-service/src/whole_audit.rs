//! Audits of everything that a service has. One takes minutes when there are millions of rows, so a
//! page shows what came of the last one, and only a job or a button runs it: one process at a time.
//!
//! State and result are in the table `whole_audits`, so every process shows the same.

use std::pin::pin;
use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_storage::{Db, DbResult, Row, Tx, params};

use crate::jobs::ticker;

/// A process that dies during an audit keeps the others from it for this long.
const LEASE: Duration = Duration::from_secs(60);
/// How long whoever orders an audit waits for its end: long enough for a small shop.
const ORDERED_WAIT: Duration = Duration::from_secs(10);

/// An audit by its name. Clones are the same audit.
#[derive(Clone)]
pub struct WholeAudit {
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub name: &'static str,
}

/// What is known of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeAuditState<R> {
    /// What the last one came to; none if none has ended yet.
    pub last: Option<R>,
    /// When that one began and ended.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// When the one under way began.
    pub running_since: Option<Timestamp>,
}

impl<R> WholeAuditState<R> {
    pub const NONE: WholeAuditState<R> =
        WholeAuditState { last: None, started_at: None, ended_at: None, running_since: None };

    /// The status of the answer to whoever has ordered one: it has ended, or it still runs.
    pub fn ordered(&self) -> StatusCode {
        match self.running_since {
            Some(_) => StatusCode::ACCEPTED,
            None => StatusCode::OK,
        }
    }
}

impl WholeAudit {
    /// Runs an audit and stores its result, unless one runs. Returns whether it ran to its end.
    pub async fn run<R: Serialize>(
        &self,
        audit: impl Future<Output = DbResult<R>>,
    ) -> DbResult<bool> {
        self.run_after(audit, None).await
    }

    /// The same, unless one has ended within `age_max`.
    pub async fn run_if_older<R: Serialize>(
        &self,
        age_max: Duration,
        audit: impl Future<Output = DbResult<R>>,
    ) -> DbResult<bool> {
        self.run_after(audit, Some(self.clock.now() - age_max)).await
    }

    /// Runs an audit in the background, unless one runs, and waits a little for its end.
    pub async fn order<R: Serialize + Send>(
        &self,
        audit: impl Future<Output = DbResult<R>> + Send + 'static,
    ) -> DbResult<()> {
        let (this, name) = (self.clone(), self.name);
        let run = tokio::spawn(async move {
            let ran = this.run(audit).await;
            if let Err(error) = &ran {
                tracing::warn!(name, %error, "an ordered audit failed");
            }
            ran
        });
        match tokio::time::timeout(ORDERED_WAIT, run).await {
            Ok(Ok(ran)) => ran.map(|_| ()),
            Ok(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            Err(_) => Ok(()),
        }
    }

    /// What came of the last one, and whether one runs.
    pub async fn state<R: DeserializeOwned + Send + 'static>(
        &self,
    ) -> DbResult<WholeAuditState<R>> {
        let (name, now) = (self.name, self.clock.now());
        self.db.read(move |tx: &mut Tx<'_>| state_find(tx, name, now)).await
    }

    async fn run_after<R: Serialize>(
        &self,
        audit: impl Future<Output = DbResult<R>>,
        ended_before: Option<Timestamp>,
    ) -> DbResult<bool> {
        let (name, id, started_at) = (self.name, self.ids.next_id(), self.clock.now());
        let claim = move |tx: &mut Tx<'_>| run_claim(tx, name, id, started_at, ended_before);
        if !self.db.write(claim).await? {
            return Ok(false);
        }
        let (mut audit, mut renewals) = (pin!(audit), ticker(LEASE / 4));
        renewals.reset();
        let outcome = loop {
            tokio::select! {
                outcome = &mut audit => break outcome,
                _ = renewals.tick() => {
                    let now = self.clock.now();
                    let renew = move |tx: &mut Tx<'_>| run_renew(tx, name, id, now);
                    if !self.db.write(renew).await? {
                        return Ok(false);
                    }
                }
            }
        };
        let ended_at = self.clock.now();
        let (result, failure) = match outcome {
            Ok(result) => (Some(document(&result)), None),
            Err(error) => (None, Some(error)),
        };
        let end = move |tx: &mut Tx<'_>| match &result {
            Some(result) => run_end(tx, name, id, ended_at, result),
            None => run_abandon(tx, name, id),
        };
        let is_stored = self.db.write(end).await?;
        failure.map_or(Ok(is_stored), Err)
    }
}

fn document(result: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(result).expect("a result has only names as keys")
}

/// A lease that ends later than twice its length from now was set by a wrong clock and is ignored.
fn run_claim(
    tx: &mut Tx<'_>,
    name: &str,
    id: Uuid,
    now: Timestamp,
    ended_before: Option<Timestamp>,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into whole_audits (name, run_id, run_until, run_started_at) \
         values ($1, $2, $3, $4) on conflict (name) do update set run_id = excluded.run_id, \
         run_until = excluded.run_until, run_started_at = excluded.run_started_at \
         where (whole_audits.run_id is null or whole_audits.run_until <= $4 \
                or whole_audits.run_until > $5) \
         and (whole_audits.ended_at is null or whole_audits.ended_at <= $6 \
              or whole_audits.ended_at > $5)",
        params![name, id, now + LEASE, now, now + LEASE * 2, ended_before.unwrap_or(now)],
    )?;
    Ok(rows == 1)
}

fn run_renew(tx: &mut Tx<'_>, name: &str, id: Uuid, now: Timestamp) -> DbResult<bool> {
    let sql = "update whole_audits set run_until = $3 where name = $1 and run_id = $2";
    Ok(tx.execute(sql, params![name, id, now + LEASE])? == 1)
}

fn run_end(
    tx: &mut Tx<'_>,
    name: &str,
    id: Uuid,
    now: Timestamp,
    result: &serde_json::Value,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update whole_audits set started_at = run_started_at, ended_at = $3, result = $4, \
         run_id = null, run_until = null, run_started_at = null where name = $1 and run_id = $2",
        params![name, id, now, result.clone()],
    )?;
    Ok(rows == 1)
}

fn run_abandon(tx: &mut Tx<'_>, name: &str, id: Uuid) -> DbResult<bool> {
    let rows = tx.execute(
        "update whole_audits set run_id = null, run_until = null, run_started_at = null \
         where name = $1 and run_id = $2",
        params![name, id],
    )?;
    Ok(rows == 1)
}

fn state_find<R: DeserializeOwned>(
    tx: &mut Tx<'_>,
    name: &str,
    now: Timestamp,
) -> DbResult<WholeAuditState<R>> {
    let sql = "select run_until, run_started_at, started_at, ended_at, result from whole_audits \
               where name = $1";
    let found = tx.query_opt(sql, params![name], |row: &Row<'_>| {
        let until: Option<Timestamp> = row.get("run_until")?;
        let is_alive = until.is_some_and(|until| until > now && until <= now + LEASE * 2);
        let running_since: Option<Timestamp> = row.get("run_started_at")?;
        Ok(WholeAuditState {
            last: row.get_json("result")?,
            started_at: row.get("started_at")?,
            ended_at: row.get("ended_at")?,
            running_since: running_since.filter(|_| is_alive),
        })
    })?;
    Ok(found.unwrap_or(WholeAuditState::NONE))
}
