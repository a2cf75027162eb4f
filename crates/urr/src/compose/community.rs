//! The community service, from the configuration.

use anyhow::{Context, Result};
use urr_catalog::CatalogService;
use urr_community::{CommunityParts, CommunityService, CommunitySettings, WritingLimit};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::{Caller, Page, Service};
use urr_storage::Db;

use super::builder::Builder;
use super::consumers;
use crate::config::Config;
use crate::role::ProcessRole;

/// Starts the community service.
pub fn start(builder: &mut Builder<'_>, db: Db) -> Result<Service> {
    builder.consume(&db, &consumers::COMMUNITY);
    let community = CommunityService::new(CommunityParts {
        db,
        clock: builder.kit.clock.clone(),
        ids: builder.kit.ids.clone(),
        settings: settings(builder.config),
        auth: AuthClient::new(builder.upstream(Caller::Community, ProcessRole::Auth)?),
        ticket: TicketClient::new(builder.upstream(Caller::Community, ProcessRole::Ticket)?),
    });
    let jobs = community.clone().run_jobs(builder.stopping.clone());
    builder.add_jobs("the community jobs", jobs);
    Ok(community.service(builder.kit))
}

fn settings(config: &Config) -> CommunitySettings {
    let community = &config.community;
    CommunitySettings {
        posts: WritingLimit { per_hour_max: community.posts_per_hour_max },
        comments: WritingLimit { per_hour_max: community.comments_per_hour_max },
        ..CommunitySettings::default()
    }
}

/// Adds demo posts and news of the artists in the catalogue.
pub async fn seed_demo(
    catalog: &CatalogService,
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
) -> Result<()> {
    let (artists, ..) = catalog.list_artists(Page::new(1, 100)).await?;
    let artists: Vec<Uuid> = artists.into_iter().map(|artist| artist.id.0).collect();
    urr_community::seed_demo(db, clock, ids, &artists).await.context("the demo posts")?;
    Ok(())
}
