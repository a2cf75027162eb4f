//! Makes an event to rehearse with: an event of its own is never a real sale.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use urr_kernel::{Clock, IdSource, Uuid};

use crate::client::{FanClient, FanRequest, Site};

const SEATS_PER_ROW: usize = 50;
const ROWS_MAX: usize = 500;
const READY_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// Creates a hall with about so many seats and an event in it that is on sale. Returns its id when it
/// can be booked. `token` is an administrator's.
pub async fn create_sale(site: &Site, token: &str, seats: usize) -> Result<Uuid> {
    let client = FanClient::new(site.clone(), 4, 1);
    let rows = seats.div_ceil(SEATS_PER_ROW);
    ensure!((1..=ROWS_MAX).contains(&rows), "between 1 and {} seats", ROWS_MAX * SEATS_PER_ROW);
    let per_row = seats.div_ceil(rows);
    let make = async |path: String, body: Value| {
        let request = FanRequest::post(path).token(token).body(body);
        let Ok(answer) = client.send(0, request).await else { bail!("the site does not answer") };
        ensure!(answer.status.is_success(), "{} {}", answer.status, answer.body);
        Ok(answer.body)
    };
    // Names of venues are unique, and there may be rehearsals before this one.
    let number = IdSource::from_system_randomness(Clock::System).next_id();
    let venue = json!({ "name": format!("Rehearsal {number}"), "address": "Seoul" });
    let venue = make("/api/admin/venues".to_owned(), venue).await?;
    let half = rows.div_ceil(2);
    let mut grades = vec![json!({ "grade": "R", "fromRow": 1, "toRow": half })];
    if half < rows {
        grades.push(json!({ "grade": "S", "fromRow": half + 1, "toRow": rows }));
    }
    let grid = json!({ "rows": rows, "seatsPerRow": per_row, "gradeMapping": grades });
    let venue_id = venue["venue"]["id"].as_str().context("a venue has an id")?;
    let halls = format!("/api/admin/venues/{venue_id}/halls");
    let hall = make(halls, json!({ "name": "Hall", "grid": grid })).await?;
    let now = Clock::System.now();
    let (day, month) = (Duration::from_hours(24), Duration::from_hours(30 * 24));
    let mut prices = json!({ "R": 90_000 });
    if half < rows {
        prices["S"] = json!(60_000);
    }
    let event = json!({
        "title": "Rehearsal", "hallId": hall["hall"]["id"], "startsAt": now + month * 2,
        "saleStartsAt": now - day, "saleEndsAt": now + month, "prices": prices,
    });
    let event = make("/api/admin/events".to_owned(), event).await?;
    let id: Uuid = event["event"]["id"].as_str().context("an event has an id")?.parse()?;
    let ends_at = Instant::now() + READY_WITHIN;
    loop {
        let answer = client.send(0, FanRequest::get(format!("/api/events/{id}"))).await;
        if answer.is_ok_and(|answer| answer.body["event"]["inventoryReady"] == true) {
            return Ok(id);
        }
        ensure!(Instant::now() < ends_at, "the event cannot be booked after {READY_WITHIN:?}");
        sleep(PAUSE).await;
    }
}
