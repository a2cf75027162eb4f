//! The way into the waiting rooms of a running system.

use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use urr_kernel::Uuid;

use crate::command::operator::{Asked, Operator};
use crate::config::Config;
use crate::role::ProcessRole;

const PATIENCE: Duration = Duration::from_secs(10);
/// As many rooms as one answer has.
const PAGE_LIMIT: u32 = 100;

const ROOMS: Asked =
    Asked { role: ProcessRole::Queue, noun: "the waiting rooms", variable: "QUEUE_SERVICE_URL" };

/// The waiting rooms, as an operator reaches them.
pub struct Desk(Operator);

#[derive(Deserialize)]
struct RoomPage {
    rooms: Vec<Value>,
    pagination: Pagination,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    total_pages: u32,
}

impl Desk {
    /// What was asked for, else what the configuration names, else the system of the data folder.
    pub fn find(config: &Config, url: Option<String>) -> Result<Desk> {
        Operator::find(config, ROOMS, url).map(Desk)
    }

    /// All rooms that are worth a look.
    pub async fn rooms(&self) -> Result<Vec<Value>> {
        let mut rooms = Vec::new();
        for number in 1.. {
            let path = format!("/internal/queue/admin/rooms?page={number}&limit={PAGE_LIMIT}");
            let page: RoomPage = self.0.get(&path, PATIENCE).await?;
            rooms.extend(page.rooms);
            if number >= page.pagination.total_pages {
                break;
            }
        }
        Ok(rooms)
    }

    pub async fn room(&self, event: Uuid) -> Result<Value> {
        self.0.get(&format!("/internal/queue/admin/rooms/{event}"), PATIENCE).await
    }

    pub async fn change(&self, event: Uuid, body: &Value) -> Result<Value> {
        self.0.post(&format!("/internal/queue/admin/rooms/{event}"), body, PATIENCE).await
    }

    pub async fn clear(&self, event: Uuid) -> Result<Value> {
        let body = json!({ "confirm": event });
        self.0.post(&format!("/internal/queue/admin/rooms/{event}/clear"), &body, PATIENCE).await
    }
}
