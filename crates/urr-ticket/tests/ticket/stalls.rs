//! A sale that does not answer.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use urr_kernel::Uuid;
use urr_storage::{StorageError, Tx, params};
use urr_ticket::inventory::store;

use crate::fixture::World;

/// Requests for the sale's lock wait until their deadline.
pub enum Stall {
    /// Someone has the lock.
    Postgres { stop: mpsc::Sender<()>, holder: JoinHandle<()> },
    /// Where there is one writer: taking the lock does not come to an end.
    Sqlite,
}

impl Stall {
    pub async fn begin(world: &World, event_id: Uuid) -> Stall {
        if world.is_postgres() {
            keep_lock(world, event_id).await
        } else {
            slow(world, event_id).await
        }
    }

    pub async fn end(self, world: &World) {
        match self {
            Stall::Postgres { stop, holder } => {
                stop.send(()).unwrap();
                holder.await.unwrap();
            }
            Stall::Sqlite => {
                world.execute("drop trigger stall").await;
            }
        }
    }
}

async fn keep_lock(world: &World, event_id: Uuid) -> Stall {
    let (stop, stopped) = mpsc::channel();
    let (locked, is_locked) = oneshot::channel();
    let (stopped, locked) = (Mutex::new(stopped), Mutex::new(Some(locked)));
    let db = world.db.clone();
    let keep = move |tx: &mut Tx<'_>| {
        store::sale_lock_only(tx, event_id)?;
        let locked = locked.lock().unwrap_or_else(PoisonError::into_inner).take();
        locked.map(|locked| locked.send(()));
        let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        // A transaction that is silent for long is ended by the database.
        while stopped.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
            tx.query_one("select 1 as n", &[], |row| row.get::<i64>("n"))?;
        }
        Ok::<_, StorageError>(())
    };
    let holder = tokio::spawn(async move { db.write(keep).await.unwrap() });
    is_locked.await.unwrap();
    Stall::Postgres { stop, holder }
}

async fn slow(world: &World, event_id: Uuid) -> Stall {
    let name = "update sales set title = 'slow' where event_id = $1";
    let named = world.db.write(move |tx| tx.execute(name, params![event_id])).await;
    assert_eq!(named, Ok::<u64, StorageError>(1));
    world
        .execute(
            "create trigger stall before update of fence on sales when new.title = 'slow' begin \
             select (with recursive n (i) as (select 1 union all select i + 1 from n) \
             select max(i) from n); end",
        )
        .await;
    Stall::Sqlite
}

/// A transaction that holds a sale, until it is let go.
pub struct Standstill {
    let_go: mpsc::Sender<()>,
    stalling: JoinHandle<Result<(), StorageError>>,
}

impl Standstill {
    /// Returns when nothing about the sale can be decided any more.
    pub async fn begin(world: &World, event_id: Uuid) -> Standstill {
        let (let_go, go) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let parts = Arc::new(Mutex::new((Some(begun), go)));
        let db = world.db.clone();
        let stalling = tokio::spawn(async move {
            db.write(move |tx| {
                store::sale_lock_only(tx, event_id)?;
                let mut parts = parts.lock().unwrap();
                if let Some(begun) = parts.0.take() {
                    begun.send(()).unwrap();
                }
                parts.1.recv().unwrap();
                Ok(())
            })
            .await
        });
        has_begun.await.unwrap();
        Standstill { let_go, stalling }
    }

    pub async fn end(self) {
        self.let_go.send(()).unwrap();
        self.stalling.await.unwrap().unwrap();
    }
}
