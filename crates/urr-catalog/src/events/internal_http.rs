//! The internal call by which other services look up an event.

use urr_contracts::internal::catalog::{EventInfo, GetEvent, GetEventAnswer};
use urr_kernel::CallContext;
use urr_service::{ApiError, InternalCalls};

use crate::errors::event_not_found;
use crate::{CatalogService, EventId};

pub fn calls(catalog: CatalogService) -> InternalCalls<CatalogService> {
    InternalCalls::new(catalog).serve(get_event)
}

async fn get_event(
    catalog: CatalogService,
    call: GetEvent,
    _: CallContext,
) -> Result<GetEventAnswer, ApiError> {
    let found = catalog.get_event(EventId(call.id)).await?;
    let found = found.filter(|found| found.event.deleted_at.is_none());
    let found = found.ok_or_else(event_not_found)?;
    let (event, now) = (found.event, found.now);
    let status = event.status_at(now).into();
    let (artist_id, artist_name) = event.artist.map(|artist| (artist.id.0, artist.name)).unzip();
    let event = EventInfo {
        id: event.id.0,
        revision: event.revision,
        title: event.title,
        kind: event.kind,
        status,
        artist_id,
        artist_name,
        starts_at: event.schedule.starts_at(),
        sale_starts_at: event.schedule.sale_starts_at(),
        sale_ends_at: event.schedule.sale_ends_at(),
        has_presale: event.has_presale,
        inventory_ready: event.inventory_ready,
    };
    Ok(GetEventAnswer { event })
}
