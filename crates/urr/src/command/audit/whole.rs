//! `urr audit`: everything that must agree, read from the tables themselves.
//!
//! It only looks: tables are opened for reading, so it cannot migrate, repair or go on with anything.
//! Rows are read in pages, so its memory does not grow with them; it grows with events and days.
//!
//! The system may run meanwhile. Tables of one service are read at one moment; tables of two services
//! never are, so what differs is looked at again, and only what is still the same is reported.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use urr_bus::dead_letters::{self, DeadLetterScope};
use urr_kernel::{Clock, Uuid};
use urr_payment::{AuditedProviders, PaymentService, SharedPayments};
use urr_room::slot_log::{RoomAudit, audit_journal, audit_redis};
use urr_stats::{SharedFacts, StatsParts, StatsService};
use urr_storage::{Db, RowDifference, StorageError, Tx, outbox};
use urr_ticket::{SharedRows, TicketService};

use super::merge::{Comparison, DIFFERENCES_MAX, LinePage, compare_lines};
use super::report::MoneyReport;
use super::{PaymentAccess, SinceTime};
use crate::compose::{ClockAndIds, ticket_service_alone};
use crate::config::Config;
use crate::data_folder;
use crate::engines;
use crate::role::ProcessRole;

/// What differs is looked at so often, with a pause between.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_secs(2);
/// A message that waits longer than this is stuck.
const OUTBOX_OLD_AFTER: Duration = Duration::from_secs(60);
const DEAD_LETTERS_MAX: usize = 1_000;
/// So many messages of an outbox that does not move are listed.
const MESSAGES_MAX: u32 = 100;
/// A check reads a whole event in one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_mins(10);

/// The parts of the audit, in the order of the report.
const PARTS: [AuditPart; 7] = [
    AuditPart::Seats,
    AuditPart::Books,
    AuditPart::Provider,
    AuditPart::Memberships,
    AuditPart::Statistics,
    AuditPart::Messages,
    AuditPart::Rooms,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuditPart {
    Seats,
    Books,
    Provider,
    Memberships,
    Statistics,
    Messages,
    Rooms,
}

impl AuditPart {
    fn name(self) -> &'static str {
        match self {
            AuditPart::Seats => "seats, holds, reservations, tickets, transfers, points",
            AuditPart::Books => "payments and books",
            AuditPart::Provider => "the provider",
            AuditPart::Memberships => "memberships and their payments",
            AuditPart::Statistics => "statistics",
            AuditPart::Messages => "messages",
            AuditPart::Rooms => "waiting rooms",
        }
    }
}

/// What one part came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartReport {
    pub part: &'static str,
    /// What was looked at.
    pub looked_at: String,
    pub differences: Vec<RowDifference>,
}

/// What the whole audit came to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeReport {
    pub parts: Vec<PartReport>,
    /// Why some of it is missing.
    pub missing: Vec<String>,
    /// Messages that were not published yet, and payments with a step left.
    pub messages_waiting: u64,
    pub payments_under_way: u64,
}

impl WholeReport {
    pub fn differences(&self) -> usize {
        self.parts.iter().map(|part| part.differences.len()).sum()
    }

    pub fn is_clean(&self) -> bool {
        self.differences() == 0 && self.missing.is_empty()
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.messages_waiting == 0 && self.payments_under_way == 0
    }

    pub fn to_text(&self) -> String {
        let mut lines = Vec::new();
        for part in &self.parts {
            let PartReport { part: name, looked_at, differences } = part;
            if differences.is_empty() {
                lines.push(format!("ok        {name}: {looked_at}"));
            }
            for RowDifference { sentence, rows, .. } in differences {
                lines.push(format!("WRONG     {name}: {sentence}"));
                lines.extend(rows.iter().map(|row| format!("            {row}")));
            }
            if differences.len() >= DIFFERENCES_MAX {
                lines.push(format!("            {name}: there may be more; no more are listed"));
            }
        }
        lines.extend(self.missing.iter().map(|reason| format!("MISSING   {reason}")));
        let WholeReport { messages_waiting, payments_under_way, .. } = self;
        lines
            .push(format!("under way: {messages_waiting} messages, {payments_under_way} payments"));
        lines.join("\n")
    }
}

/// Runs the whole audit. An error: nothing could be looked at.
pub async fn audit_everything(config: &Config, since: SinceTime) -> Result<WholeReport> {
    let mut config = config.clone();
    let timeout_ms = u64::try_from(STATEMENT_TIMEOUT.as_millis())?;
    config.database.statement_timeout_ms = timeout_ms;
    let was_stopped = is_stopped(&config);
    let tables = OpenTables::open(&config).await?;
    let mut report = WholeReport::default();
    for part in PARTS {
        match tables.look_until_sure(part, since).await {
            Ok(found) => report.parts.push(found),
            Err(error) => report.missing.push(format!("{}: {error:#}", part.name())),
        }
    }
    report.messages_waiting = tables.messages_waiting().await?;
    report.payments_under_way = tables.payments.count_under_way().await?;
    tables.close().await?;
    // Files of a stopped system are read without locks.
    ensure!(
        !was_stopped || is_stopped(&config),
        "URR was started while its files were looked at; run the audit again"
    );
    Ok(report)
}

/// Audits until everything agrees and nothing is under way, or the time is over.
pub async fn await_agreement(config: &Config, patience: Duration) -> Result<WholeReport> {
    let ends_at = tokio::time::Instant::now() + patience;
    loop {
        let since = SinceTime::Ago(Duration::from_hours(24));
        let report = audit_everything(config, since).await?;
        if (report.is_clean() && report.is_quiet()) || tokio::time::Instant::now() > ends_at {
            return Ok(report);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Whether nothing changes: everything is in the data folder, and no process has it.
fn is_stopped(config: &Config) -> bool {
    let is_local = ProcessRole::SERVICES.iter().all(|role| engines::is_on_sqlite(config, *role));
    is_local && matches!(data_folder::internal_url(&config.data.dir), Ok(None))
}

/// The tables of all services, opened for one audit.
struct OpenTables {
    config: Config,
    /// How often differences are looked at.
    looks: u32,
    databases: Vec<(ProcessRole, Db)>,
    tickets: TicketService,
    stats: StatsService,
    payments: PaymentService,
    money: PaymentAccess,
}

impl OpenTables {
    async fn open(config: &Config) -> Result<OpenTables> {
        let needed = [ProcessRole::Ticket, ProcessRole::Payment, ProcessRole::Stats];
        ensure!(
            needed.iter().all(|role| engines::has_tables(config, *role)),
            "there is no system in {}; choose another folder with --data, or set database.url",
            config.data.dir.display()
        );
        let mut databases = Vec::new();
        for role in ProcessRole::SERVICES {
            if engines::has_tables(config, role) {
                databases.push((role, engines::open_storage_read_only(config, role).await?));
            }
        }
        let of = |role: ProcessRole| {
            let found = databases.iter().find(|(of, _)| *of == role);
            found.map(|(_, db)| db.clone()).context("its tables were just seen")
        };
        let sources = ClockAndIds::system();
        let tickets = ticket_service_alone(config, of(ProcessRole::Ticket)?, &sources)?;
        let parts = StatsParts { db: of(ProcessRole::Stats)?, clock: Clock::System };
        let money = PaymentAccess::open(config).await?;
        let payments = money.payments.clone().context("it was just opened")?;
        let stats = StatsService::new(parts);
        let config = config.clone();
        let looks = if is_stopped(&config) { 1 } else { LOOKS };
        Ok(OpenTables { config, looks, databases, tickets, stats, payments, money })
    }

    async fn close(self) -> Result<()> {
        let databases = self.databases;
        tokio::task::spawn_blocking(move || databases.iter().for_each(|(_, db)| db.close()))
            .await?;
        self.money.close().await
    }

    /// What differs is looked at again, until it is gone or has not changed.
    async fn look_until_sure(&self, part: AuditPart, since: SinceTime) -> Result<PartReport> {
        let mut found = self.look(part, since).await?;
        for _ in 1..self.looks {
            if found.differences.is_empty() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            let again = self.look(part, since).await?;
            let still: BTreeSet<&RowDifference> = again.differences.iter().collect();
            found.differences.retain(|difference| still.contains(difference));
            found.looked_at = again.looked_at;
        }
        Ok(found)
    }

    async fn look(&self, part: AuditPart, since: SinceTime) -> Result<PartReport> {
        let (looked_at, differences) = match part {
            AuditPart::Seats => {
                let found = self.tickets.audit_rows().await?;
                let said = format!("{} events, {} memberships", found.events, found.memberships);
                (said, found.differences)
            }
            AuditPart::Books => self.look_at_books().await?,
            AuditPart::Provider => self.look_at_provider(since).await?,
            AuditPart::Memberships => self.look_at_memberships().await?,
            AuditPart::Statistics => self.look_at_statistics().await?,
            AuditPart::Messages => self.look_at_messages().await?,
            AuditPart::Rooms => {
                let RoomAudit { rooms, admissions, differences } = self.look_at_rooms().await?;
                (format!("{admissions} admissions in {rooms} rooms"), differences)
            }
        };
        Ok(PartReport { part: part.name(), looked_at, differences })
    }

    async fn look_at_books(&self) -> Result<(String, Vec<RowDifference>)> {
        let report = MoneyReport::load(&self.money.operator, None).await?;
        let tickets = report.tickets.as_ref().context(report.missing.join("; "))?;
        let said = format!(
            "{} payments and {} paid reservations, {} won with the provider",
            tickets.payments,
            tickets.reservations,
            report.ledger.charged.amount() - report.ledger.refunded.amount()
        );
        let findings = report.ledger.unexplained.iter().map(|found| ("books", found));
        let findings = findings.chain(report.ledger.stuck.iter().map(|found| ("stuck", found)));
        let findings = findings.chain(tickets.differences.iter().map(|found| ("unpaid", found)));
        let differences = findings.map(|(kind, found)| {
            let ids = [("payments", found.payment_id), ("reservations", found.reservation_id)];
            let row = |(table, id): (&str, Option<Uuid>)| Some(format!("{table} id={}", id?));
            let rows = ids.into_iter().filter_map(row).collect();
            RowDifference { kind, sentence: found.sentence.clone(), rows }
        });
        Ok((said, differences.collect()))
    }

    async fn look_at_provider(&self, since: SinceTime) -> Result<(String, Vec<RowDifference>)> {
        let sandbox = self.payments.audit_sandbox().await?;
        let now = Clock::System.now();
        let since = since.before(now);
        let audited = AuditedProviders::WithoutSandbox;
        let found = self.payments.audit_providers(audited, since, now).await?;
        ensure!(found.silent.is_empty(), "{} does not answer", found.silent.join(", "));
        let said = format!(
            "{} payments beside the sandbox, {} since {since} beside the providers' lists",
            sandbox.payments, found.compared
        );
        let mut differences = sandbox.differences;
        differences.extend(found.differences.iter().map(|found| {
            let rows = vec![format!("payments order_id={}", found.order_id())];
            RowDifference { kind: "provider", sentence: found.to_string(), rows }
        }));
        Ok((said, differences))
    }

    async fn look_at_memberships(&self) -> Result<(String, Vec<RowDifference>)> {
        let words = Comparison {
            kind: "membership",
            noun: "payment",
            left: "payments",
            right: "membership_terms",
        };
        let payments = self.payment_lines(SharedPayments::Terms);
        let terms = self.ticket_lines(SharedRows::PaidTerms);
        let found = compare_lines(words, payments, terms).await?;
        Ok((format!("{} paid terms", found.count), found.differences))
    }

    async fn look_at_statistics(&self) -> Result<(String, Vec<RowDifference>)> {
        let counters = self.stats.audit_counters().await?;
        let mut differences = counters.differences;
        let mut count = 0;
        let words = |noun, left| Comparison { kind: "statistics", noun, left, right: "statistics" };
        let of_tickets = [
            (words("reservation", "reservations"), SharedRows::Reservations),
            (words("transfer", "transfers"), SharedRows::Transfers),
        ];
        for (words, rows) in of_tickets {
            let facts = match rows {
                SharedRows::Transfers => SharedFacts::Transfers,
                _ => SharedFacts::Reservations,
            };
            let facts = self.fact_lines(facts);
            let found = compare_lines(words, self.ticket_lines(rows), facts).await?;
            count += found.count;
            differences.extend(found.differences);
        }
        let of_payments = [
            (words("payment", "payments"), SharedPayments::Charges, SharedFacts::Charges),
            (words("refund", "refunds"), SharedPayments::Refunds, SharedFacts::Refunds),
            (words("payment", "payments"), SharedPayments::Memberships, SharedFacts::Memberships),
        ];
        for (words, rows, facts) in of_payments {
            let facts = self.fact_lines(facts);
            let found = compare_lines(words, self.payment_lines(rows), facts).await?;
            count += found.count;
            differences.extend(found.differences);
        }
        let said = format!("{} facts counted again, {count} beside their tables", counters.facts);
        Ok((said, differences))
    }

    fn ticket_lines(&self, rows: SharedRows) -> impl AsyncFnMut(Option<Uuid>) -> Result<LinePage> {
        async move |after| Ok(self.tickets.audit_lines(rows, after).await?)
    }

    fn payment_lines(
        &self,
        rows: SharedPayments,
    ) -> impl AsyncFnMut(Option<Uuid>) -> Result<LinePage> {
        async move |after| Ok(self.payments.audit_lines(rows, after).await?)
    }

    fn fact_lines(&self, facts: SharedFacts) -> impl AsyncFnMut(Option<Uuid>) -> Result<LinePage> {
        async move |after| Ok(self.stats.audit_facts(facts, after).await?)
    }

    /// Outboxes that do not move, and dead letters.
    async fn look_at_messages(&self) -> Result<(String, Vec<RowDifference>)> {
        let old = Clock::System.now() - OUTBOX_OLD_AFTER;
        let mut differences = Vec::new();
        for (role, db) in &self.databases {
            let lag: Result<_, StorageError> = db.read(outbox::lag).await;
            let (waiting, oldest) = lag?;
            if let Some(oldest) = oldest.filter(|oldest| *oldest < old) {
                let rows = db.read(|tx: &mut Tx<'_>| outbox::unpublished(tx, MESSAGES_MAX)).await;
                let rows: Vec<outbox::OutboxRow> = rows.map_err(anyhow::Error::from)?;
                let row = |row: &outbox::OutboxRow| {
                    format!("outbox seq={} topic={} key={}", row.seq, row.topic, row.key)
                };
                differences.push(RowDifference {
                    kind: "outbox",
                    sentence: format!(
                        "{waiting} messages of {role} wait to be published, the oldest since \
                         {oldest}"
                    ),
                    rows: rows.iter().map(row).collect(),
                });
            }
        }
        let bus = engines::connect_bus_read_only(&self.config, &Clock::System)?;
        let listed = dead_letters::list(&bus, None, DeadLetterScope::Open, DEAD_LETTERS_MAX).await;
        bus.close().await;
        let letters = listed?.letters;
        differences.extend(letters.iter().map(|letter| RowDifference {
            kind: "deadLetter",
            sentence: format!("dead letter {} of {}: {}", letter.id, letter.group, letter.reason),
            rows: Vec::new(),
        }));
        Ok((format!("outboxes of {} services, dead letters", self.databases.len()), differences))
    }

    async fn messages_waiting(&self) -> Result<u64> {
        let mut waiting = 0;
        for (_, db) in &self.databases {
            let lag: Result<_, StorageError> = db.read(outbox::lag).await;
            waiting += lag?.0;
        }
        Ok(waiting)
    }

    async fn look_at_rooms(&self) -> Result<RoomAudit> {
        if let Some(redis) = engines::open_redis(&self.config).await? {
            let queue = self.databases.iter().find(|(role, _)| *role == ProcessRole::Queue);
            let (_, queue) = queue.context("the queue service has no tables")?;
            let events = urr_queue::room_event_list(queue).await?;
            return Ok(audit_redis(&redis, &events).await?);
        }
        if !engines::has_room_journal(&self.config) {
            return Ok(RoomAudit::default());
        }
        let journal = engines::open_room_journal_read_only(&self.config).await?;
        let audit = audit_journal(&journal, None).await;
        tokio::task::spawn_blocking(move || journal.close()).await?;
        Ok(audit?)
    }
}

/// Which of these reservations are not paid.
pub async fn unpaid_reservations(config: &Config, ids: &BTreeSet<String>) -> Result<Vec<String>> {
    let db = engines::open_storage_read_only(config, ProcessRole::Ticket).await?;
    let tickets = ticket_service_alone(config, db.clone(), &ClockAndIds::system())?;
    let (mut unpaid, mut after) = (ids.clone(), None);
    loop {
        let page = tickets.audit_lines(SharedRows::Reservations, after).await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        for (id, _) in page.iter().filter(|(_, line)| line.contains("status=confirmed")) {
            unpaid.remove(&id.to_string());
        }
    }
    tokio::task::spawn_blocking(move || db.close()).await?;
    Ok(unpaid.into_iter().collect())
}
