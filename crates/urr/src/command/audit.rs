//! `urr audit`: proofs for whoever runs the installation.

mod money;
mod since;
mod text;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use urr_kernel::Clock;
use urr_service::{Caller, Upstream};
use urr_storage::Db;

use self::money::Report;
use self::since::Since;
use super::operator::{Asked, Operator, kit, running_url};
use super::{NotDone, block_on, say};
use crate::compose::{World, payments, ticket_service_to_read};
use crate::config::Config;
use crate::engines;
use crate::role::ProcessRole;

const PAYMENTS: Asked =
    Asked { role: ProcessRole::Payment, noun: "the payments", variable: "PAYMENT_SERVICE_URL" };

/// The whole books are read.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Prove that every won is a sale, a fee or was given back; name every one that is not
    ///
    /// It reads the books, compares them with the provider's, and asks the ticket office whether
    /// every ticket is paid and every payment has its ticket. URR may go on running meanwhile; if
    /// it does not run, the data folder is read. Exit code 0: everything is explained. 1: something
    /// is not, and is named. 2: it could not be looked at.
    Money(MoneyArgs),
}

#[derive(Debug, Args)]
pub struct MoneyArgs {
    /// Compare with the provider what moved since then: a span such as 90m, 24h or 7d, or a moment
    /// such as 2026-11-15T09:00:00+09:00
    #[arg(long, value_name = "TIME", default_value = "24h")]
    since: Since,
    /// Where the payments answer [default: PAYMENT_SERVICE_URL, or else the running `urr up` of the
    /// data folder, or else its tables]
    #[arg(long)]
    url: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub fn run(config: &Config, command: AuditCommand) -> Result<()> {
    let AuditCommand::Money(args) = command;
    let since = args.since.before(Clock::System.now());
    let report = block_on(async {
        let books = Books::find(config, args.url).await?;
        let report = Report::read(&books.operator, since, PATIENCE).await;
        books.close().await?;
        report
    });
    let report = report.map_err(NotDone::because)?;
    match args.json {
        true => say(&serde_json::to_string_pretty(&report.to_json())?)?,
        false => say(&text::report(&report))?,
    }
    judge(&report)
}

fn judge(report: &Report) -> Result<()> {
    match (report.findings(), report.unseen.as_slice()) {
        (0, []) => Ok(()),
        (0, unseen) => {
            let unseen = unseen.join("; ");
            Err(NotDone::because(anyhow::anyhow!("not everything could be looked at: {unseen}")))
        }
        (1, _) => bail!("1 thing is not explained"),
        (count, _) => bail!("{count} things are not explained"),
    }
}

/// The payments, wherever they are.
struct Books {
    operator: Operator,
    /// What was opened for it.
    databases: Vec<Db>,
}

impl Books {
    /// Where they run, or else their tables.
    async fn find(config: &Config, url: Option<String>) -> Result<Books> {
        match running_url(config, PAYMENTS, url)? {
            Some(url) => {
                let operator = Operator::at(config, PAYMENTS, url)?;
                Ok(Books { operator, databases: Vec::new() })
            }
            None => Books::open(config).await,
        }
    }

    /// Nothing runs: the services are made here, and have no doors.
    async fn open(config: &Config) -> Result<Books> {
        let folder = config.data.dir.display();
        ensure!(
            has_tables(config, ProcessRole::Payment),
            "no `urr up` runs on the data folder {folder}, and there are no payments in it; choose \
             another folder with --data, or name the payments of a cluster with --url or \
             PAYMENT_SERVICE_URL"
        );
        let (world, kit) = (World::real(), kit());
        let mut databases = Vec::new();
        let mut office = None;
        if has_tables(config, ProcessRole::Ticket)
            && let Some(db) =
                engines::open_storage(config, ProcessRole::Ticket, &world.clock).await?
        {
            databases.push(db.clone());
            let service = ticket_service_to_read(config, db, &world).service(&kit);
            let router = service.local_router();
            office =
                Some(Upstream::local(Caller::Payment, ProcessRole::Ticket.name(), router, &kit));
        }
        let db = engines::open_storage(config, ProcessRole::Payment, &world.clock).await?;
        let db = db.expect("payments have tables");
        databases.push(db.clone());
        let payments = payments(config, db, &world)?;
        if let Some(office) = office {
            payments.connect_tickets(office);
        }
        let router = payments.service(&kit).local_router();
        let upstream = Upstream::local(Caller::Operator, ProcessRole::Payment.name(), router, &kit);
        let place = match engines::is_on_sqlite(config, ProcessRole::Payment) {
            true => format!("the data folder {folder}"),
            false => "PostgreSQL".to_owned(),
        };
        Ok(Books { operator: Operator::new(upstream, place, PAYMENTS, &kit), databases })
    }

    async fn close(self) -> Result<()> {
        let databases = self.databases;
        tokio::task::spawn_blocking(move || databases.iter().for_each(Db::close)).await?;
        Ok(())
    }
}

/// Whether a role's tables can be there: looking must not make them.
fn has_tables(config: &Config, role: ProcessRole) -> bool {
    let file = role.schema().map(|schema| engines::sqlite_path(&config.data.dir, &schema));
    !engines::is_on_sqlite(config, role) || file.is_some_and(|file| file.exists())
}
