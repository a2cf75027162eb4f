//! A report about the money, for people.

use urr_kernel::Won;

use super::money::{Books, Finding, Provider, Report, Tickets};

/// Longer than the name of any line.
const NAME_WIDTH: usize = 28;
const AMOUNT_WIDTH: usize = 20;

pub fn report(report: &Report) -> String {
    let mut lines = vec![format!("Money of {} at {}", report.place, report.books.at)];
    lines.extend(books(&report.books));
    lines.push(String::new());
    let books = &report.books;
    lines.extend(verdict("the books", &books.unexplained, "every won is explained"));
    lines.extend(verdict("payments", &books.stuck, "none has been stuck for ten minutes"));
    lines.extend(report.provider.iter().flat_map(provider));
    lines.extend(report.tickets.iter().flat_map(tickets));
    lines.extend(report.unseen.iter().map(|why| format!("NOT SEEN  {why}")));
    lines.join("\n")
}

fn books(books: &Books) -> Vec<String> {
    let sum = |amounts: &[Won]| Won::new(amounts.iter().map(|amount| amount.amount()).sum());
    let less = |amount: Won| Won::new(-amount.amount());
    let left = [books.charged, less(books.refunded)];
    let right = [books.sold, less(books.cancelled), books.undelivered, books.owed];
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
    let accounts = books.balances.iter();
    lines.extend(accounts.map(|of| line(&format!("  {}", of.account), of.balance)));
    lines
}

fn provider(found: &Provider) -> Vec<String> {
    let name = format!("the provider ({})", found.providers.join(", "));
    let good = format!("{} payments since {} agree", found.compared, found.since);
    let mut lines = verdict(&name, &found.differences, &good);
    let again =
        |order: &String| format!("note      order {order} was given up and is looked at again");
    lines.extend(found.reopened.iter().map(again));
    lines
}

fn tickets(found: &Tickets) -> Vec<String> {
    let good =
        format!("{} paid reservations and {} payments agree", found.reservations, found.payments);
    verdict("the ticket office", &found.differences, &good)
}

fn verdict(name: &str, findings: &[Finding], good: &str) -> Vec<String> {
    if findings.is_empty() {
        return vec![format!("ok        {name}: {good}")];
    }
    findings.iter().map(|finding| format!("WRONG     {name}: {}", finding.sentence)).collect()
}

fn line(name: &str, amount: Won) -> String {
    format!("{name:<NAME_WIDTH$}{:>AMOUNT_WIDTH$}", amount.to_string())
}
