//! `urr worker` beside a real queue: its health and its metrics.

use anyhow::Result;
use urr_test::servers::{self, Server, SqsServer};

use crate::http_client;
use crate::process::{Installation, Process, eventually, free_port};

#[test]
fn a_worker_says_whether_it_can_read_its_notices() -> Result<()> {
    if !servers::available(Server::Sqs)? {
        return Ok(());
    }
    let mut sqs = SqsServer::start()?;
    let mut installation = Installation::new()?;
    let port = free_port();
    let queue = format!("{}/000000000000/admissions.fifo", sqs.endpoint());
    for (name, value) in [
        ("SQS_ENABLED", "true"),
        ("SQS_QUEUE_URL", &queue),
        ("AWS_SQS_ENDPOINT", sqs.endpoint()),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "any"),
        ("URR_SERVER_MANAGEMENT_PORT", &port.to_string()),
        // Nobody listens there: `urr health` must find the other port.
        ("URR_SERVER_PORT", &free_port().to_string()),
    ] {
        installation.set(name, value);
    }
    let worker = Process::start(installation.command(&["worker"]))?;
    eventually("the worker answers", || Ok(http_client::get(port, "/health/ready").is_ok()))?;
    let health = http_client::get(port, "/health/ready")?;
    assert_eq!((health.status, health.json()?["dependencies"]["sqs"].clone()), (200, "ok".into()));
    assert!(http_client::get(port, "/metrics")?.body.contains("urr_notices_read_total 0"));
    installation.run(&["health"])?.succeeded()?;

    sqs.kill()?;
    eventually("the worker is not ready", || {
        Ok(http_client::get(port, "/health/ready")?.status == 503)
    })?;
    assert_eq!(http_client::get(port, "/health/live")?.status, 200, "it waits for the queue");
    assert!(!installation.run(&["health"])?.status.success());
    worker.signal("TERM")?;
    worker.await_end()?.succeeded()?;
    Ok(())
}
