//! `urr audit`: proofs that states and sums agree.

mod merge;
mod render;
mod report;
mod whole;

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use urr_contracts::clients::TicketClient;
use urr_kernel::{Clock, Timestamp};
use urr_payment::PaymentService;
use urr_service::{Caller, LocalService, Upstream};
use urr_storage::Db;

use self::report::MoneyReport;
pub use self::whole::{WholeReport, audit_everything, await_agreement, unpaid_reservations};
use super::operator::{Operator, OperatorTarget, kit, running_url};
use super::{CommandNotRun, block_on, print_line};
use crate::compose::{ClockAndIds, payment_service, ticket_service_alone};
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

pub(super) const PAYMENTS: OperatorTarget = OperatorTarget {
    role: ProcessRole::Payment,
    noun: "the payments",
    variable: "PAYMENT_SERVICE_URL",
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,
    #[command(flatten)]
    whole: WholeArgs,
}

#[derive(Debug, Args)]
struct WholeArgs {
    /// Ask providers other than the sandbox about what moved since then: a span such as 90m, 24h or
    /// 7d, or a moment such as 2026-11-15T09:00:00+09:00. The sandbox is compared whole
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: SinceTime,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Prove that every won is a sale, a fee or was given back; name every one that is not
    ///
    /// It reads the ledger, compares it with the provider, and asks the ticket service whether every
    /// ticket is paid and every payment has its ticket. URR may go on running meanwhile; if
    /// it does not run, the data folder is read. Exit code 0: everything is explained. 1: something
    /// is not, and is named. 2: the audit could not run.
    Money(MoneyArgs),
}

#[derive(Debug, Args)]
struct MoneyArgs {
    /// Compare with the provider what moved since then: a span such as 90m, 24h or 7d, or a moment
    /// such as 2026-11-15T09:00:00+09:00
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: SinceTime,
    /// Where the payments answer [default: PAYMENT_SERVICE_URL, or else the running `urr up` of the
    /// data folder, or else its tables]
    #[arg(long)]
    url: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(config: &Config, args: AuditArgs) -> Result<()> {
    match args.command {
        Some(AuditCommand::Money(money)) => run_money(config, money),
        None => run_whole(config, &args.whole),
    }
}

fn run_whole(config: &Config, args: &WholeArgs) -> Result<()> {
    let report = block_on(audit_everything(config, args.since)).map_err(CommandNotRun::wrap)?;
    match args.json {
        true => print_line(&serde_json::to_string_pretty(&report)?)?,
        false => print_line(&report.to_text())?,
    }
    match (report.differences(), report.missing.len()) {
        (0, 0) => Ok(()),
        (0, _) => Err(CommandNotRun::wrap(anyhow::anyhow!("not everything could be looked at"))),
        (1, _) => bail!("1 difference"),
        (count, _) => bail!("{count} differences"),
    }
}

fn run_money(config: &Config, args: MoneyArgs) -> Result<()> {
    let since = args.since.before(Clock::System.now());
    let report = block_on(async {
        let access = PaymentAccess::find(config, args.url).await?;
        let report = MoneyReport::load(&access.operator, Some(since)).await;
        access.close().await?;
        report
    });
    let report = report.map_err(CommandNotRun::wrap)?;
    match args.json {
        true => print_line(&serde_json::to_string_pretty(&report.to_json())?)?,
        false => print_line(&render::report(&report))?,
    }
    judge(&report)
}

fn judge(report: &MoneyReport) -> Result<()> {
    match (report.findings(), report.missing.as_slice()) {
        (0, []) => Ok(()),
        (0, missing) => {
            let missing = missing.join("; ");
            Err(CommandNotRun::wrap(anyhow::anyhow!("not everything could be compared: {missing}")))
        }
        (1, _) => bail!("1 thing is not explained"),
        (count, _) => bail!("{count} things are not explained"),
    }
}

/// The payment service, running or opened for this command.
struct PaymentAccess {
    operator: Operator,
    /// If it was opened for this command.
    payments: Option<PaymentService>,
    /// Opened for this command, and closed with it.
    databases: Vec<Db>,
}

impl PaymentAccess {
    /// The running service, or else its tables.
    async fn find(config: &Config, url: Option<String>) -> Result<PaymentAccess> {
        match running_url(config, PAYMENTS, url)? {
            Some(url) => {
                let operator = Operator::at(config, PAYMENTS, url)?;
                Ok(PaymentAccess { operator, payments: None, databases: Vec::new() })
            }
            None => PaymentAccess::open(config).await,
        }
    }

    /// Nothing runs: the services are made here, without listeners and jobs, on tables that they can
    /// only read.
    async fn open(config: &Config) -> Result<PaymentAccess> {
        let folder = config.data.dir.display();
        ensure!(
            engines::has_tables(config, ProcessRole::Payment),
            "no `urr up` runs on the data folder {folder}, and there are no payments in it; choose \
             another folder with --data, or name the payments of a cluster with --url or \
             PAYMENT_SERVICE_URL"
        );
        let kit = kit();
        let mut databases = Vec::new();
        let tickets = LocalService::default();
        if engines::has_tables(config, ProcessRole::Ticket) {
            let db = engines::open_storage_read_only(config, ProcessRole::Ticket).await?;
            databases.push(db.clone());
            let service = ticket_service_alone(config, db, &ClockAndIds::system())?;
            tickets.set(&service.service(&kit));
        }
        let db = engines::open_storage_read_only(config, ProcessRole::Payment).await?;
        databases.push(db.clone());
        // Without its tables the ticket service is not set and does not answer.
        let tickets = Upstream::local(Caller::Payment, ProcessRole::Ticket.name(), tickets, &kit);
        let payments =
            payment_service(config, db, &ClockAndIds::system(), TicketClient::new(tickets))?;
        let service = &payments.service(&kit);
        let upstream =
            Upstream::local(Caller::Operator, ProcessRole::Payment.name(), service, &kit);
        let location = match engines::is_on_sqlite(config, ProcessRole::Payment) {
            true => format!("the data folder {folder}"),
            false => "PostgreSQL".to_owned(),
        };
        let operator = Operator::new(upstream, location, PAYMENTS, &kit);
        Ok(PaymentAccess { operator, payments: Some(payments), databases })
    }

    async fn close(self) -> Result<()> {
        let databases = self.databases;
        tokio::task::spawn_blocking(move || databases.iter().for_each(Db::close)).await?;
        Ok(())
    }
}

/// How far back an audit goes: a span before now, or a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinceTime {
    Ago(Duration),
    At(Timestamp),
}

/// Longer than any provider keeps its list.
const DAYS_MAX: u64 = 3_650;

impl SinceTime {
    /// The moment, never after `now`.
    fn before(self, now: Timestamp) -> Timestamp {
        match self {
            SinceTime::Ago(span) => now - span,
            SinceTime::At(moment) => moment.min(now),
        }
    }
}

impl FromStr for SinceTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<SinceTime, &'static str> {
        if let Ok(moment) = text.parse() {
            return Ok(SinceTime::At(moment));
        }
        let expected = "expected a span such as 90m, 24h or 7d, or a moment such as \
                        2026-11-15T09:00:00+09:00";
        let unit = text.chars().next_back().ok_or(expected)?;
        let seconds = match unit {
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _ => return Err(expected),
        };
        let count = text.strip_suffix(unit).and_then(|count| count.parse::<u64>().ok());
        let count = count.ok_or(expected)?;
        let span = count.checked_mul(seconds).filter(|span| *span <= DAYS_MAX * 24 * 60 * 60);
        span.map(|span| SinceTime::Ago(Duration::from_secs(span)))
            .ok_or("that is more than ten years")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_or_a_moment_says_how_far_back() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let check = |text: &str, expected: &str| {
            let since = text.parse::<SinceTime>().map(|since| since.before(now).to_string());
            assert_eq!(since.as_deref(), Ok(expected), "{text}");
        };
        check("90m", "2026-11-15T10:30:00Z");
        check("24h", "2026-11-14T12:00:00Z");
        check("7d", "2026-11-08T12:00:00Z");
        check("2026-11-15T09:00:00+09:00", "2026-11-15T00:00:00Z");
        check("2027-01-01T00:00:00Z", "2026-11-15T12:00:00Z");
        for wrong in ["", "h", "24", "24x", "-1h", "1hh", "99999999d", "yesterday", "1.5h"] {
            assert!(wrong.parse::<SinceTime>().is_err(), "{wrong}");
        }
    }
}
