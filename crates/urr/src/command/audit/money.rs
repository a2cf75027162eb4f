//! What the payments have to say about the money.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid, Won};

use crate::command::operator::Operator;

/// Everything that was found, and what could not be looked at.
pub struct Report {
    /// Where the books are.
    pub place: String,
    pub books: Books,
    pub provider: Option<Provider>,
    pub tickets: Option<Tickets>,
    /// Why some of it is missing.
    pub unseen: Vec<String>,
}

/// The books themselves.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Books {
    pub at: Timestamp,
    pub charged: Won,
    pub refunded: Won,
    pub sold: Won,
    pub cancelled: Won,
    pub undelivered: Won,
    pub owed: Won,
    pub balances: Vec<Balance>,
    pub unexplained: Vec<Finding>,
    pub stuck: Vec<Finding>,
}

#[derive(Serialize, Deserialize)]
pub struct Balance {
    pub account: String,
    pub balance: Won,
}

/// Something that is not explained.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub kind: String,
    pub payment_id: Option<Uuid>,
    pub order_id: Option<String>,
    pub reservation_id: Option<Uuid>,
    pub amount: Won,
    pub sentence: String,
}

/// The comparison with the provider's books.
#[derive(Serialize, Deserialize)]
pub struct Provider {
    pub providers: Vec<String>,
    pub since: Timestamp,
    pub compared: u64,
    pub reopened: Vec<String>,
    pub differences: Vec<Finding>,
    /// Those that did not say everything.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// The comparison with the ticket office's books, or a stretch of it.
#[derive(Serialize, Deserialize)]
pub struct Tickets {
    pub reservations: u64,
    pub payments: u64,
    pub differences: Vec<Finding>,
    #[serde(skip_serializing)]
    next: Option<Uuid>,
}

impl Report {
    /// Without the books there is no report; without the others there is less of one.
    pub async fn read(at: &Operator, since: Timestamp, patience: Duration) -> Result<Report> {
        let books = at.get("/internal/payment/audit", patience).await?;
        let mut unseen = Vec::new();
        let mut seen = |what: &str, error: anyhow::Error| unseen.push(format!("{what}: {error:#}"));
        let path = format!("/internal/payment/audit/provider?since={since}");
        let provider: Result<Provider> = at.get(&path, patience).await;
        let provider = provider.map_err(|error| seen("the provider's books", error)).ok();
        let tickets = read_tickets(at, patience).await;
        let tickets = tickets.map_err(|error| seen("the ticket office's books", error)).ok();
        let silent = provider.iter().flat_map(|provider| &provider.silent);
        unseen.extend(silent.map(|name| format!("the books of {name}: it does not answer")));
        Ok(Report { place: at.place().to_owned(), books, provider, tickets, unseen })
    }

    /// How many things are not explained.
    pub fn findings(&self) -> usize {
        let provider = self.provider.as_ref().map_or(0, |provider| provider.differences.len());
        let tickets = self.tickets.as_ref().map_or(0, |tickets| tickets.differences.len());
        self.books.unexplained.len() + self.books.stuck.len() + provider + tickets
    }

    pub fn to_json(&self) -> Value {
        json!({
            "explained": self.findings() == 0 && self.unseen.is_empty(),
            "findings": self.findings(),
            "books": self.books,
            "provider": self.provider,
            "tickets": self.tickets,
            "unseen": self.unseen,
        })
    }
}

async fn read_tickets(at: &Operator, patience: Duration) -> Result<Tickets> {
    let mut all: Tickets = at.get("/internal/payment/audit/tickets", patience).await?;
    while let Some(after) = all.next {
        let path = format!("/internal/payment/audit/tickets?after={after}");
        let page: Tickets = at.get(&path, patience).await?;
        all.reservations += page.reservations;
        all.payments += page.payments;
        all.differences.extend(page.differences);
        all.next = page.next;
    }
    Ok(all)
}
