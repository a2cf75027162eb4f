//! The report of `urr audit money` as text.

use urr_contracts::internal::payment::{
    AccountBalance, AuditFinding, LedgerAudit, ProviderAudit, TicketAudit,
};
use urr_kernel::Won;

use super::report::MoneyReport;

/// Longer than the name of any line.
const NAME_WIDTH: usize = 28;
const AMOUNT_WIDTH: usize = 20;

pub fn report(report: &MoneyReport) -> String {
    let ledger = &report.ledger;
    let mut lines = vec![format!("Money of {} at {}", report.location, ledger.at)];
    lines.extend(ledger_lines(ledger));
    lines.push(String::new());
    lines.extend(result_lines("the ledger", &ledger.unexplained, "every won is explained"));
    let none_stuck = "none has been stuck for ten minutes";
    lines.extend(result_lines("payments", &ledger.stuck, none_stuck));
    lines.extend(report.provider.iter().flat_map(provider_lines));
    lines.extend(report.tickets.iter().flat_map(ticket_lines));
    lines.extend(report.missing.iter().map(|reason| format!("MISSING   {reason}")));
    lines.join("\n")
}

fn ledger_lines(ledger: &LedgerAudit) -> Vec<String> {
    let sum = |amounts: &[Won]| Won::new(amounts.iter().map(|amount| amount.amount()).sum());
    let less = |amount: Won| Won::new(-amount.amount());
    let left = [ledger.charged, less(ledger.refunded)];
    let right = [ledger.sold, less(ledger.cancelled), ledger.undelivered, ledger.owed];
    let difference = sum(&left).amount() - sum(&right).amount();
    let mut lines = vec![
        String::new(),
        line("charged", left[0]),
        line("refunded", left[1]),
        line("= with the provider", sum(&left)),
        String::new(),
        line("sold", right[0]),
        line("cancelled", right[1]),
        line("paid, not handed over yet", right[2]),
        line("to be given back", right[3]),
        line("= accounted for", sum(&right)),
        String::new(),
        line("difference", Won::new(difference)),
        String::new(),
        "Accounts (we have or are owed: above zero; we owe or have earned: below)".to_owned(),
    ];
    let accounts = ledger.balances.iter();
    let account_line =
        |account: &AccountBalance| line(&format!("  {}", account.account), account.balance);
    lines.extend(accounts.map(account_line));
    lines
}

fn provider_lines(audit: &ProviderAudit) -> Vec<String> {
    let name = format!("the provider ({})", audit.providers.join(", "));
    let good = format!("{} payments since {} agree", audit.compared, audit.since);
    let mut lines = result_lines(&name, &audit.differences, &good);
    let reopened = |order: &String| format!("note      order {order} had failed and is resumed");
    lines.extend(audit.reopened.iter().map(reopened));
    lines
}

fn ticket_lines(audit: &TicketAudit) -> Vec<String> {
    let good =
        format!("{} paid reservations and {} payments agree", audit.reservations, audit.payments);
    result_lines("the tickets", &audit.differences, &good)
}

fn result_lines(name: &str, findings: &[AuditFinding], good: &str) -> Vec<String> {
    if findings.is_empty() {
        return vec![format!("ok        {name}: {good}")];
    }
    findings.iter().map(|finding| format!("WRONG     {name}: {}", finding.sentence)).collect()
}

fn line(name: &str, amount: Won) -> String {
    format!("{name:<NAME_WIDTH$}{:>AMOUNT_WIDTH$}", amount.to_string())
}
