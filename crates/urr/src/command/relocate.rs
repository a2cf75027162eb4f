//! `urr move`: an embedded shop becomes one on PostgreSQL, Redis and Kafka.
//!
//! The tables are copied in one transaction, which is committed last. So a move that fails or is killed
//! has moved nothing, and can be repeated: what it wrote to Redis and Kafka before is the same again.
//! From shortly before the commit on, `urr up` refuses to sell from the old files.

mod report;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use urr_bus::{Bus, RelocationError, UnreadMessages};
use urr_contracts::events::TOPICS;
use urr_kernel::{Clock, Secret, Won};
use urr_payment::{LedgerAccount, account_balances};
use urr_room::relocation::{SlotTimes, StoredRooms};
use urr_storage::transfer::{TransferSource, TransferTarget, TransferredTable};
use urr_storage::{Schema, reach_postgres};

use super::{block_on, print_line};
use crate::backup::manifest::{BackupManifest, MANIFEST_FILE};
use crate::config::{self, Config};
use crate::data_folder::{self, DataFolder};
use crate::engines;
use crate::role::ProcessRole;

/// For how long a Kafka that answers with errors is tried again.
const KAFKA_ATTEMPTS_MAX: u32 = 30;
const KAFKA_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct MoveArgs {
    /// The administrator's connection to an empty PostgreSQL database [default: database.url]
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    to: Option<Secret>,
    /// Look at both sides, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write the secrets of the shop into a new file, as variables for other processes
    #[arg(long, value_name = "FILE")]
    secrets_to: Option<PathBuf>,
}

fn parse_url(text: &str) -> Result<Secret, String> {
    match text.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Ok(Secret::new(text)),
        _ => Err("it begins with postgres://".to_owned()),
    }
}

/// What is in a data folder, or in a backup of one.
struct EmbeddedShop {
    folder: DataFolder,
    is_backup: bool,
    services: Vec<(ProcessRole, Schema, TransferSource)>,
    /// Of the bus, and of the journal of the waiting rooms.
    unread: UnreadMessages,
    rooms: StoredRooms,
}

/// Balances of the accounts of the ledger.
type LedgerBalances = Vec<(LedgerAccount, Won)>;

/// The tables of all services, and the accounts of the ledger on both sides.
struct MovedTables {
    tables: Vec<(&'static str, TransferredTable)>,
    source_balances: LedgerBalances,
    target_balances: LedgerBalances,
}

pub fn run(config: &Config, args: &MoveArgs) -> Result<()> {
    let target = target_config(config, args)?;
    let url = target.database.url.clone().context("there is a target")?;
    args.secrets_to.as_deref().map_or(Ok(()), require_new)?;
    let shop = EmbeddedShop::open(&config.data.dir)?;
    if args.dry_run {
        return dry_run(&shop, &target, &url);
    }
    let secrets = config::secret_variables(&config.data.dir, config.describe());
    let secrets = secrets.map_err(anyhow::Error::msg)?;
    require_free(&shop, &target, &url)?;
    for role in ProcessRole::SERVICES {
        engines::migrate_storage(&target, role, Clock::System.now())?;
    }
    let mut database = TransferTarget::begin(url.expose())?;
    require_unused(&mut database, &shop, &url)?;
    let moved = shop.fill(&mut database)?;
    print_line(&report::render(&moved))?;
    ensure!(moved.is_equal(), "nothing was moved: what PostgreSQL has is not what was copied");
    let carried = block_on(carry(&shop, &target))?;
    let place = engines::place_of(&url);
    commit(database, &shop, &place)?;
    block_on(finish(&target))?;
    if let Some(file) = &args.secrets_to {
        write_secrets(file, &secrets)?;
    }
    carried.iter().try_for_each(|line| print_line(line))?;
    print_line(&format!(
        "The shop is in {place}. Run `urr audit` with database.url set to it before you sell again"
    ))
}

/// The configuration as it is after the move.
fn target_config(config: &Config, args: &MoveArgs) -> Result<Config> {
    let mut target = config.clone();
    target.database.url = args.to.clone().or(target.database.url);
    ensure!(target.database.url.is_some(), "say where to: --to postgres://…");
    let own = |role: &ProcessRole| {
        config.service_databases.of(*role).is_some_and(|database| database.url.is_some())
    };
    if let Some(role) = ProcessRole::SERVICES.iter().find(|role| own(role)) {
        bail!("all services move into one database; remove database.{role}.url");
    }
    Ok(target)
}

impl EmbeddedShop {
    /// Locks the folder: a shop that runs is refused.
    fn open(path: &Path) -> Result<EmbeddedShop> {
        let files =
            ProcessRole::SERVICES.into_iter().filter_map(|role| Some((role, role.schema()?)));
        let files: Vec<(ProcessRole, Schema)> = files.collect();
        for (_, schema) in &files {
            let file = engines::sqlite_path(path, schema);
            ensure!(
                file.is_file(),
                "there is no shop in {}: it has no {}.db",
                path.display(),
                schema.name
            );
        }
        let folder = DataFolder::lock(path)?;
        let is_backup = path.join(MANIFEST_FILE).is_file();
        if is_backup {
            BackupManifest::verify(path)?;
        }
        let open = |(role, schema): (ProcessRole, Schema)| -> Result<_> {
            let file = engines::sqlite_path(path, &schema);
            let source = TransferSource::open(&file, &schema);
            Ok((role, schema, source.with_context(|| file.display().to_string())?))
        };
        let services = files.into_iter().map(open).collect::<Result<_>>()?;
        let bus = engines::bus_path(path);
        let unread = match bus.exists() {
            true => {
                TransferSource::open(&bus, &urr_bus::EMBEDDED_SCHEMA)?.read(UnreadMessages::read)?
            }
            false => UnreadMessages::default(),
        };
        let journal = engines::sqlite_path(path, &urr_room::JOURNAL);
        let rooms = match journal.exists() {
            true => TransferSource::open(&journal, &urr_room::JOURNAL)?.read(StoredRooms::read)?,
            false => StoredRooms::default(),
        };
        Ok(EmbeddedShop { folder, is_backup, services, unread, rooms })
    }

    fn fill(&self, database: &mut TransferTarget) -> Result<MovedTables> {
        let mut tables = Vec::new();
        let mut progress = Progress::new();
        for (role, schema, source) in &self.services {
            let mut report = |table: &str, rows| progress.show(schema.name, table, rows);
            let filled = database.fill(source, &mut report);
            let filled = filled.with_context(|| format!("the tables of the {role} service"))?;
            tables.extend(filled.into_iter().map(|table| (schema.name, table)));
        }
        progress.end();
        let payments = self.services.iter().find(|(role, ..)| *role == ProcessRole::Payment);
        let (_, schema, source) = payments.context("there are payments")?;
        Ok(MovedTables {
            tables,
            source_balances: source.read(account_balances)?,
            target_balances: database.read(schema, account_balances)?,
        })
    }
}

impl MovedTables {
    fn is_equal(&self) -> bool {
        self.tables.iter().all(|(_, table)| table.is_equal())
            && self.source_balances == self.target_balances
    }
}

fn require_unused(database: &mut TransferTarget, shop: &EmbeddedShop, url: &Secret) -> Result<()> {
    for (_, schema, _) in &shop.services {
        ensure!(
            database.is_unused(schema, Clock::System.now())?,
            "{} is not empty: the schema {} has rows; create another database",
            engines::place_of(url),
            schema.name
        );
    }
    Ok(())
}

fn dry_run(shop: &EmbeddedShop, target: &Config, url: &Secret) -> Result<()> {
    let mut rows = Vec::new();
    for (_, schema, source) in &shop.services {
        let counted = source.count_rows()?;
        rows.extend(counted.into_iter().map(|(table, count)| (schema.name, table, count)));
    }
    require_free(shop, target, url)?;
    print_line(&report::render_counts(&rows))?;
    for line in [report::messages(shop, target), report::rooms(shop, target)] {
        print_line(&line)?;
    }
    print_line("Nothing was changed")
}

/// Looks at all targets before anything is changed: migrating the database of another shop would
/// change its logins.
fn require_free(shop: &EmbeddedShop, target: &Config, url: &Secret) -> Result<()> {
    reach_postgres(url.expose())?;
    let place = engines::place_of(url);
    match data_folder::moved_to(shop.folder.path()).context("the data folder")? {
        Some(before) if before != place => bail!(
            "the shop in {} was moved to {before} before; delete the file `moved-to` if nothing is \
             there",
            shop.folder.path().display()
        ),
        _ => {}
    }
    require_unused(&mut TransferTarget::begin(url.expose())?, shop, url)?;
    block_on(async {
        let Some(redis) = engines::open_redis(target).await? else { return Ok(()) };
        redis.ping().await.context("Redis")?;
        Ok(shop.rooms.require_unused(&redis).await?)
    })
}

/// Messages and waiting rooms, where they have another engine now. Says what became of them.
async fn carry(shop: &EmbeddedShop, target: &Config) -> Result<[String; 2]> {
    if !target.bus.kafka_bootstrap_servers.is_empty() {
        let bus = engines::open_bus(target, &Clock::System).await?;
        let published = publish(shop, &bus).await;
        bus.close().await;
        published.context("the messages that nobody has handled")?;
    }
    if let Some(redis) = engines::open_redis(target).await? {
        let times = SlotTimes {
            slot_ttl: Duration::from_secs(target.queue.active_ttl_seconds),
            slot_max: Duration::from_secs(target.queue.active_seconds_max),
        };
        shop.rooms.write(&redis, times).await.context("the waiting rooms")?;
    }
    Ok([report::messages(shop, target), report::rooms(shop, target)])
}

/// Tries again for a while: the leaders of new topics are elected for a moment.
async fn publish(shop: &EmbeddedShop, bus: &Bus) -> Result<(), RelocationError> {
    let mut attempts = 1..=KAFKA_ATTEMPTS_MAX;
    loop {
        let is_last = attempts.next() == Some(KAFKA_ATTEMPTS_MAX);
        match shop.unread.publish(bus, TOPICS).await {
            Err(RelocationError::Bus(error)) if !is_last => {
                tracing::warn!(%error, "Kafka refuses; trying again");
                tokio::time::sleep(KAFKA_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// The old files are given up before the new ones count: never are there two shops.
fn commit(database: TransferTarget, shop: &EmbeddedShop, place: &str) -> Result<()> {
    if !shop.is_backup {
        data_folder::mark_moved(&shop.folder, place).context("the data folder")?;
    }
    database.commit().context(
        "it is not known whether the shop was moved; run the command again: if it was, the database \
         is not empty any more",
    )
}

async fn finish(target: &Config) -> Result<()> {
    match engines::open_redis(target).await? {
        Some(redis) => StoredRooms::finish(&redis).await.context("the mark of the move in Redis"),
        None => Ok(()),
    }
}

/// It is written at the very end, when a refusal would come too late.
fn require_new(file: &Path) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "the secrets cannot be written: there is no {}", folder.display());
    ensure!(!file.exists(), "{} exists; name a new file for the secrets", file.display());
    Ok(())
}

fn write_secrets(file: &Path, secrets: &[(String, String)]) -> Result<()> {
    let lines: String = secrets.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    data_folder::write_private(file, &lines).with_context(|| file.display().to_string())
}

/// Says on a terminal which table is copied.
struct Progress {
    is_terminal: bool,
}

impl Progress {
    fn new() -> Progress {
        Progress { is_terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, schema: &str, table: &str, rows: u64) {
        self.write(&format!("\r\x1b[2K{schema}.{table}: {rows} rows"));
    }

    fn end(&mut self) {
        self.write("\r\x1b[2K");
    }

    /// A move does not end because nobody watches it.
    fn write(&mut self, text: &str) {
        if self.is_terminal {
            drop(io::stderr().write_all(text.as_bytes()));
        }
    }
}
