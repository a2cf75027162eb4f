//! `urr seed`: demo data for an installation that exists already.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use urr_catalog::{CatalogCounts, CatalogParts, CatalogService, CatalogSettings};
use urr_kernel::Clock;

use super::{block_on, print_line, with_storage};
use crate::compose::{ClockAndIds, System, seed_demo_posts};
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::engines;
use crate::role::{ProcessRole, ProcessRoles};

/// How long the inventories of the demo events may take.
const READY_WITHIN: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Adds the demo data. Running it again adds nothing.
pub fn seed(config: &Config, folder: Option<DataFolder>) -> Result<()> {
    block_on(async {
        let events = match folder {
            Some(folder) => seed_folder(config, folder).await?,
            None => seed_servers(config).await?,
        };
        print_line(&format!("the demo data are there: {events} events"))
    })
}

/// Nothing else runs on the data folder: the services start here, without listeners, until all
/// seats exist.
async fn seed_folder(config: &Config, folder: DataFolder) -> Result<u64> {
    for role in ProcessRole::ALL {
        engines::migrate_storage(config, role, Clock::System.now())?;
    }
    let roles: ProcessRoles =
        [ProcessRole::Catalog, ProcessRole::Queue, ProcessRole::Ticket].into_iter().collect();
    let system = System::start(config, &roles, ClockAndIds::system(), Some(folder)).await?;
    let seeded = async {
        system.seed_demo().await?;
        let catalog = system.catalog().context("the catalog runs here")?;
        seed_posts(config, catalog).await?;
        wait_for_seats(catalog).await
    };
    let seeded = seeded.await;
    system.stop().await;
    seeded
}

/// On PostgreSQL the tables of the catalog and the community are enough: the running services do the rest.
async fn seed_servers(config: &Config) -> Result<u64> {
    with_storage(config, ProcessRole::Catalog, async |db| {
        let ClockAndIds { clock, ids } = ClockAndIds::system();
        let settings = CatalogSettings::default();
        let catalog = CatalogService::new(CatalogParts { db, clock, ids, settings, peers: None });
        catalog.seed_demo().await.context("the demo data")?;
        seed_posts(config, &catalog).await?;
        Ok(count_events(&catalog.get_counts(None).await?))
    })
    .await
}

/// The running community service announces them.
async fn seed_posts(config: &Config, catalog: &CatalogService) -> Result<()> {
    with_storage(config, ProcessRole::Community, async |db| {
        let ClockAndIds { clock, ids } = ClockAndIds::system();
        seed_demo_posts(catalog, &db, &clock, &ids).await
    })
    .await
}

fn count_events(figures: &CatalogCounts) -> u64 {
    figures.upcoming + figures.on_sale + figures.ended + figures.cancelled
}

async fn wait_for_seats(catalog: &CatalogService) -> Result<u64> {
    let waiting = async {
        loop {
            let figures = catalog.get_counts(None).await?;
            if figures.not_ready == 0 {
                return Ok(count_events(&figures));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(READY_WITHIN, waiting).await {
        Ok(events) => events,
        Err(_) => {
            bail!("the seats of some demo events are not there yet; `urr up` goes on with them")
        }
    }
}
