//! Live boards of organisers beside the purchases.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;
use urr_test::figures::{BenchFigure, RatioTarget};

use crate::ROUNDS;
use crate::buyers::{self, PurchaseRun};
use crate::system::BenchSystem;

const BOARDS: usize = 20;
const BUYERS: usize = 64;
/// What boards may cost.
const RATIO_MIN: f64 = 0.98;

/// Purchases with boards and without, in turn. Returns how many were made, and whether boards cost
/// as little as they may.
pub fn bench(runtime: &Runtime, system: &BenchSystem) -> Result<(usize, bool)> {
    let (mut without, mut with) = (PurchaseRun::default(), PurchaseRun::default());
    for _ in 0..ROUNDS {
        without.add(runtime.block_on(buyers::run(system, BUYERS)));
        runtime.block_on(system.settled())?;
        let boards = runtime.block_on(open(system))?;
        with.add(runtime.block_on(buyers::run(system, BUYERS)));
        drop(boards);
        runtime.block_on(system.settled())?;
    }
    let figure = BenchFigure {
        name: "purchases beside 20 live boards",
        value: with.rate(),
        unit: "purchases/s",
        baseline: "without boards",
        baseline_value: without.rate(),
        target: RatioTarget::AtLeast(RATIO_MIN),
    };
    Ok((with.purchases.len() + without.purchases.len(), figure.show()))
}

/// Boards that are read until they are dropped.
async fn open(system: &BenchSystem) -> Result<JoinSet<()>> {
    let mut boards = JoinSet::new();
    for _ in 0..BOARDS {
        let mut stream = TcpStream::connect(system.address).await?;
        let request = format!(
            "GET /api/admin/events/{}/live HTTP/1.1\r\nhost: localhost\r\n\
             authorization: Bearer {}\r\n\r\n",
            system.event_id,
            system.tokens.admin()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = vec![0; 64 * 1024];
        let begun = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await;
        let count = begun.context("a board does not answer")??;
        let answer = String::from_utf8_lossy(&bytes[..count]).into_owned();
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        boards.spawn(async move { while stream.read(&mut bytes).await.is_ok_and(|it| it > 0) {} });
    }
    Ok(boards)
}
