//! Audits of everything: one at a time, and what came of the last one.

use std::time::Duration;

use axum::http::StatusCode;
use urr_kernel::{Clock, IdSource, Timestamp};
use urr_service::whole_audit::{WholeAudit, WholeAuditState};
use urr_storage::{Db, DbResult, Schema, SqliteOptions, StorageError, migrate};

/// A process that dies during an audit keeps the others from it for this long.
const LEASE: Duration = Duration::from_mins(1);

fn audit() -> (tempfile::TempDir, WholeAudit) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audits.db");
    let schema = Schema { name: "audits", migrations: &[] };
    migrate::migrate_sqlite(&path, &schema, Timestamp::UNIX_EPOCH).unwrap();
    let db = Db::open_sqlite(&path, &SqliteOptions::default()).unwrap();
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let ids = IdSource::seeded(clock.clone(), 1);
    (folder, WholeAudit { db, clock, ids, name: "books" })
}

async fn result(of: u64) -> DbResult<u64> {
    Ok(of)
}

async fn last(audit: &WholeAudit) -> Option<u64> {
    audit.state().await.unwrap().last
}

#[tokio::test]
async fn the_result_of_the_last_audit_is_shown_with_its_times() {
    let (_folder, audit) = audit();
    assert_eq!(audit.state::<u64>().await, Ok(WholeAuditState::NONE));
    let slow = async {
        audit.clock.advance(Duration::from_secs(5));
        result(1).await
    };
    assert_eq!(audit.run(slow).await, Ok(true));
    let shown = audit.state::<u64>().await.unwrap();
    let begun = Timestamp::UNIX_EPOCH;
    let ended = begun + Duration::from_secs(5);
    let times = (Some(begun), Some(ended));
    assert_eq!((shown.last, (shown.started_at, shown.ended_at)), (Some(1), times));
    assert_eq!(shown.ordered(), StatusCode::OK);
    // One that fails leaves the last result, and does not keep others from it.
    let broken = async { Err::<u64, _>(StorageError::Contention) };
    assert_eq!(audit.run(broken).await, Err(StorageError::Contention));
    assert_eq!(last(&audit).await, Some(1));
    audit.order(result(2)).await.unwrap();
    assert_eq!(last(&audit).await, Some(2));
}

#[tokio::test]
async fn one_process_at_a_time_audits_and_one_that_died_keeps_nobody() {
    let (_folder, audit) = audit();
    let (others, mut late) = (audit.clone(), None);
    let long = async {
        assert_eq!(others.run(result(2)).await, Ok(false), "one runs");
        let shown = others.state::<u64>().await.unwrap();
        assert_eq!(shown.running_since, Some(others.clock.now()));
        assert_eq!(shown.ordered(), StatusCode::ACCEPTED);
        others.clock.advance(LEASE);
        assert_eq!(others.state::<u64>().await, Ok(WholeAuditState::NONE), "it has died");
        late = Some(others.run(result(3)).await);
        result(1).await
    };
    assert_eq!(audit.run(long).await, Ok(false), "what comes too late is not stored");
    assert_eq!((late, last(&audit).await), (Some(Ok(true)), Some(3)));
}

#[tokio::test]
async fn a_job_audits_only_what_nobody_has_audited_for_a_while() {
    let (_folder, audit) = audit();
    let day = Duration::from_hours(24);
    assert_eq!(audit.run_if_older(day, result(1)).await, Ok(true));
    audit.clock.advance(day - Duration::from_secs(1));
    assert_eq!(audit.run_if_older(day, result(2)).await, Ok(false));
    audit.clock.advance(Duration::from_secs(1));
    assert_eq!(audit.run_if_older(day, result(3)).await, Ok(true));
    assert_eq!(last(&audit).await, Some(3));
}

#[tokio::test]
async fn an_ordered_audit_goes_on_after_who_ordered_it_has_gone() {
    let (_folder, audit) = audit();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let (orderer, ordered) = (audit.clone(), async move {
        released.await.unwrap();
        result(1).await
    });
    let order = tokio::spawn(async move { orderer.order(ordered).await });
    while audit.state::<u64>().await.unwrap().running_since.is_none() {
        tokio::task::yield_now().await;
    }
    order.abort();
    assert!(order.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    while audit.state::<u64>().await.unwrap().running_since.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(last(&audit).await, Some(1));
}
