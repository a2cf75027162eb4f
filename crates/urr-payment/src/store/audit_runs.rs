//! Periodic audits: their progress, the lease of the process that runs one, and what they found.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

/// How far an audit has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditRunProgress {
    /// Everything that happened before this time was audited.
    pub up_to: Option<Timestamp>,
}

/// The process that runs an audit, and how long its lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRunHolder {
    pub id: Uuid,
    pub lease: Duration,
}

/// Claims an audit unless another process holds it or it succeeded since `done_since`. Returns its
/// progress. A lease that ends later than twice its length from now was set by a wrong clock and is
/// ignored.
pub fn audit_run_claim(
    tx: &mut Tx<'_>,
    name: &str,
    holder: AuditRunHolder,
    done_since: Timestamp,
    now: Timestamp,
) -> DbResult<Option<AuditRunProgress>> {
    let rows = tx.execute(
        "insert into audit_runs (name, holder, held_until) values ($1, $2, $3) \
         on conflict (name) do update set holder = excluded.holder, \
         held_until = excluded.held_until \
         where (audit_runs.holder is null or audit_runs.holder = excluded.holder \
                or audit_runs.held_until < $4 or audit_runs.held_until > $5) \
         and (audit_runs.succeeded_at is null or audit_runs.succeeded_at <= $6 \
              or audit_runs.succeeded_at > $5)",
        params![name, holder.id, now + holder.lease, now, now + holder.lease * 2, done_since],
    )?;
    if rows == 0 {
        return Ok(None);
    }
    tx.query_opt("select up_to from audit_runs where name = $1", params![name], |row| {
        Ok(AuditRunProgress { up_to: row.get("up_to")? })
    })
}

/// Renews the lease and records the progress. Returns false if another process has the lease.
pub fn audit_run_update(
    tx: &mut Tx<'_>,
    name: &str,
    holder: AuditRunHolder,
    progress: AuditRunProgress,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update audit_runs set held_until = $3, up_to = $4 where name = $1 and holder = $2",
        params![name, holder.id, now + holder.lease, progress.up_to],
    )?;
    Ok(rows == 1)
}

/// Gives the lease back.
pub fn audit_run_finish(
    tx: &mut Tx<'_>,
    name: &str,
    holder: AuditRunHolder,
    succeeded_at: Option<Timestamp>,
) -> DbResult<()> {
    tx.execute(
        "update audit_runs set holder = null, held_until = null, \
         succeeded_at = coalesce($3, succeeded_at) where name = $1 and holder = $2",
        params![name, holder.id, succeeded_at],
    )?;
    Ok(())
}

/// When each audit last succeeded.
pub fn audit_runs_list(tx: &mut Tx<'_>) -> DbResult<Vec<(String, Timestamp)>> {
    tx.query(
        "select name, succeeded_at from audit_runs where succeeded_at is not null order by name",
        &[],
        |row| Ok((row.get("name")?, row.get("succeeded_at")?)),
    )
}

/// Payments that the ledger did not explain.
pub fn unexplained_list(tx: &mut Tx<'_>, limit: u32) -> DbResult<Vec<Uuid>> {
    tx.query(
        "select payment_id from unexplained_payments order by payment_id limit $1",
        params![limit],
        |row| row.get("payment_id"),
    )
}

pub fn unexplained_insert(tx: &mut Tx<'_>, payment_id: Uuid, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "insert into unexplained_payments (payment_id, found_at) values ($1, $2) \
         on conflict (payment_id) do nothing",
        params![payment_id, now],
    )?;
    Ok(())
}

pub fn unexplained_delete(tx: &mut Tx<'_>, payment_id: Uuid) -> DbResult<()> {
    tx.execute("delete from unexplained_payments where payment_id = $1", params![payment_id])?;
    Ok(())
}

/// Orders on which a provider and we differ.
pub fn differing_list(tx: &mut Tx<'_>, provider: &str, limit: u32) -> DbResult<Vec<String>> {
    tx.query(
        "select order_id from differing_orders where provider = $1 order by order_id limit $2",
        params![provider, limit],
        |row| row.get("order_id"),
    )
}

/// Records which of the checked orders differ now.
pub fn differing_set(
    tx: &mut Tx<'_>,
    provider: &str,
    checked: &[String],
    differing: &[String],
    now: Timestamp,
) -> DbResult<()> {
    for order_id in checked {
        tx.execute(
            "delete from differing_orders where provider = $1 and order_id = $2",
            params![provider, order_id],
        )?;
    }
    for order_id in differing {
        tx.execute(
            "insert into differing_orders (provider, order_id, found_at) values ($1, $2, $3) \
             on conflict (provider, order_id) do nothing",
            params![provider, order_id, now],
        )?;
    }
    Ok(())
}

pub fn differing_count(tx: &mut Tx<'_>) -> DbResult<i64> {
    let sql = "select count(*) as differing from differing_orders";
    tx.query_one(sql, &[], |row| row.get("differing"))
}

pub fn unexplained_count(tx: &mut Tx<'_>) -> DbResult<i64> {
    let sql = "select count(*) as unexplained from unexplained_payments";
    tx.query_one(sql, &[], |row| row.get("unexplained"))
}
