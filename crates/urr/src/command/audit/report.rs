//! The report of `urr audit money`: what the payment service says about its ledger, the provider
//! and the tickets.

use anyhow::Result;
use serde_json::{Value, json};
use urr_contracts::clients::{ClientError, PaymentClient};
use urr_contracts::internal::payment::{
    AccountBalance, AuditLedger, AuditProvider, AuditTickets, LedgerAudit, ProviderAudit,
    TicketAudit,
};
use urr_kernel::{Timestamp, Won};

use crate::command::operator::Operator;

/// Everything that was found, and what could not be compared.
pub struct MoneyReport {
    /// Where the payment service runs.
    pub location: String,
    pub ledger: LedgerAudit,
    pub provider: Option<ProviderAudit>,
    pub tickets: Option<TicketAudit>,
    /// Why some of it is missing.
    pub missing: Vec<String>,
}

impl MoneyReport {
    /// Without the ledger there is no report; without the others it is incomplete. Without `since`
    /// the provider is not asked.
    pub async fn load(operator: &Operator, since: Option<Timestamp>) -> Result<MoneyReport> {
        let (client, context) = (PaymentClient::new(operator.upstream()), operator.context());
        let explain = |error: ClientError| operator.explain(error);
        let ledger = load_ledger(&client, operator).await.map_err(explain)?;
        let mut missing = Vec::new();
        let mut note =
            |what: &str, error: anyhow::Error| missing.push(format!("{what}: {error:#}"));
        let provider = match since {
            Some(since) => {
                let asked = client.call(AuditProvider { since }, context).await.map_err(explain);
                asked.map_err(|error| note("the provider's payments", error)).ok()
            }
            None => None,
        };
        let tickets = load_tickets(&client, operator).await.map_err(explain);
        let tickets = tickets.map_err(|error| note("the tickets", error)).ok();
        let silent = provider.iter().flat_map(|provider| &provider.silent);
        missing.extend(silent.map(|name| format!("the payments of {name}: it does not answer")));
        let location = operator.location().to_owned();
        Ok(MoneyReport { location, ledger, provider, tickets, missing })
    }

    /// How many things are not explained.
    pub fn findings(&self) -> usize {
        let provider = self.provider.as_ref().map_or(0, |provider| provider.differences.len());
        let tickets = self.tickets.as_ref().map_or(0, |tickets| tickets.differences.len());
        self.ledger.unexplained.len() + self.ledger.stuck.len() + provider + tickets
    }

    pub fn to_json(&self) -> Value {
        json!({
            "explained": self.findings() == 0 && self.missing.is_empty(),
            "findings": self.findings(),
            "ledger": self.ledger,
            "provider": self.provider,
            "tickets": self.tickets,
            "missing": self.missing,
        })
    }
}

/// More findings than this are not listed.
const FINDINGS_MAX: usize = 1_000;

async fn load_ledger(
    client: &PaymentClient,
    operator: &Operator,
) -> Result<LedgerAudit, ClientError> {
    let mut all = client.call(AuditLedger { after: None }, operator.context()).await?;
    while all.next.is_some() {
        let part = client.call(AuditLedger { after: all.next }, operator.context()).await?;
        add_part(&mut all, part);
    }
    Ok(all)
}

fn add_part(all: &mut LedgerAudit, part: LedgerAudit) {
    let sums = [
        (&mut all.charged, part.charged),
        (&mut all.refunded, part.refunded),
        (&mut all.sold, part.sold),
        (&mut all.cancelled, part.cancelled),
        (&mut all.undelivered, part.undelivered),
        (&mut all.owed, part.owed),
    ];
    let add = |(sum, more): (&mut Won, Won)| *sum = Won::new(sum.amount() + more.amount());
    sums.into_iter().for_each(add);
    for AccountBalance { account, balance } in part.balances {
        match all.balances.iter_mut().find(|known| known.account == account) {
            Some(known) => add((&mut known.balance, balance)),
            None => all.balances.push(AccountBalance { account, balance }),
        }
    }
    all.unexplained.extend(part.unexplained);
    all.unexplained.truncate(FINDINGS_MAX);
    all.stuck.extend(part.stuck);
    all.next = part.next;
}

async fn load_tickets(
    client: &PaymentClient,
    operator: &Operator,
) -> Result<TicketAudit, ClientError> {
    let mut all = client.call(AuditTickets { after: None }, operator.context()).await?;
    while all.next.is_some() {
        let page = client.call(AuditTickets { after: all.next }, operator.context()).await?;
        all.reservations += page.reservations;
        all.payments += page.payments;
        all.differences.extend(page.differences);
        all.differences.truncate(FINDINGS_MAX);
        all.next = page.next;
    }
    Ok(all)
}
