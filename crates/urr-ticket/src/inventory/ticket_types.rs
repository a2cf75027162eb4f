//! Ticket types are added and changed by administrators.
//!
//! Both happen under the lock of the event's sale, like every change of stock: a change cannot
//! overwrite a concurrent sale. The admin log and the event for the catalog are written in
//! the same transaction.

pub(crate) mod http;
pub(crate) mod rules;
pub mod store;

use urr_contracts::events::inventory::TicketTypeChanged;
use urr_kernel::ticket_type_limits::PER_EVENT_MAX;
use urr_kernel::{CallContext, TicketTypeDraft, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::alerts::store::gates_note_return;
use crate::inventory::store as sales;
use crate::inventory::store::NewTicketType;
use crate::inventory::ticket_types::rules::{TicketTypeRejection, TicketTypeStock};
use crate::{InventoryKind, SaleStatus, TicketService};

/// Why a ticket type was not added or changed.
#[derive(Debug, thiserror::Error)]
pub enum TicketTypeError {
    #[error("There is no event with this id on sale.")]
    EventNotFound,
    #[error("There is no ticket type with this id.")]
    NotFound,
    #[error("The event was cancelled.")]
    EventCancelled,
    #[error("This event sells seats; only standing events have ticket types.")]
    EventHasSeats,
    #[error("The event has a ticket type with this name already.")]
    NameTaken,
    #[error("An event has at most {PER_EVENT_MAX} ticket types.")]
    TooMany,
    #[error(transparent)]
    Rejected(#[from] TicketTypeRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// Adds a ticket type to a standing event; one transaction.
    pub async fn create_ticket_type(
        &self,
        admin_id: Uuid,
        context: CallContext,
        event_id: Uuid,
        draft: TicketTypeDraft,
    ) -> Result<TicketTypeStock, TicketTypeError> {
        use TicketTypeError::{EventHasSeats, EventNotFound, NameTaken, TooMany};
        let inventory = self.inventories.get(event_id).await?.ok_or(EventNotFound)?;
        if inventory.kind == InventoryKind::Seated {
            return Err(EventHasSeats);
        }
        let new = NewTicketType::new(self.ids.next_id(), &draft);
        let summary = format!("{}: {} at {}", new.name, new.total, new.price);
        let action = self.admin_action(admin_id, "TICKET_TYPE_CREATED", "ticket_type", new.id);
        let action = AdminAction { summary, ..action };
        let stamp = self.prepare_events(1, context).stamp(0);
        let made = self
            .db
            .write(move |tx| {
                let sale = sales::sale_lock_only(tx, event_id)?.ok_or(EventNotFound)?;
                match sale.policy.status {
                    SaleStatus::Open => {}
                    SaleStatus::Cancelled => return Err(TicketTypeError::EventCancelled),
                    SaleStatus::Deleted => return Err(EventNotFound),
                }
                if store::name_exists(tx, event_id, &new.name, new.id)? {
                    return Err(NameTaken);
                }
                if store::ticket_type_count(tx, event_id)? >= PER_EVENT_MAX {
                    return Err(TooMany);
                }
                let made = sales::ticket_type_insert(tx, event_id, &new, action.created_at)?;
                assert!(made, "neither the name nor the fresh id was taken");
                let made = store::ticket_type_find(tx, new.id)?.expect("it was just made");
                finish(tx, &made, sale.fence + 1, &action, &stamp)?;
                Ok(made)
            })
            .await?;
        self.maps.mark_dirty(event_id);
        Ok(made)
    }

    /// Changes a ticket type within the limits of what was sold; one transaction.
    pub async fn change_ticket_type(
        &self,
        admin_id: Uuid,
        context: CallContext,
        id: Uuid,
        draft: TicketTypeDraft,
    ) -> Result<TicketTypeStock, TicketTypeError> {
        use TicketTypeError::{EventCancelled, NameTaken, NotFound};
        let action = self.admin_action(admin_id, "TICKET_TYPE_UPDATED", "ticket_type", id);
        let stamp = self.prepare_events(1, context).stamp(0);
        let changed = self
            .db
            .write(move |tx| {
                let event_id = store::ticket_type_find(tx, id)?.ok_or(NotFound)?.event_id;
                let sale = sales::sale_lock_only(tx, event_id)?.ok_or(NotFound)?;
                match sale.policy.status {
                    SaleStatus::Open => {}
                    SaleStatus::Cancelled => return Err(EventCancelled),
                    SaleStatus::Deleted => return Err(NotFound),
                }
                // Read again under the lock.
                let before = store::ticket_type_find(tx, id)?.ok_or(NotFound)?;
                let after = before.change(&draft)?;
                if store::name_exists(tx, event_id, &after.name, id)? {
                    return Err(NameTaken);
                }
                store::ticket_type_update(tx, &after)?;
                let action = AdminAction { summary: changes(&before, &after), ..action.clone() };
                finish(tx, &after, sale.fence + 1, &action, &stamp)?;
                Ok(after)
            })
            .await?;
        self.maps.mark_dirty(changed.event_id);
        Ok(changed)
    }
}

/// Numbers the change, so that caches of the event see it, writes the admin log and announces the
/// change.
fn finish(
    tx: &mut Tx<'_>,
    to: &TicketTypeStock,
    fence: i64,
    action: &AdminAction,
    stamp: &EventMetadata,
) -> DbResult<()> {
    sales::sale_number(tx, to.event_id, fence)?;
    // There may be more of it than before.
    gates_note_return(tx, to.event_id, action.created_at)?;
    admin_log::insert(tx, action)?;
    let changed = TicketTypeChanged {
        event_id: to.event_id,
        ticket_type_id: to.id,
        name: to.name.clone(),
        description: to.description.clone(),
        price: to.price,
        total: to.total,
        fence,
    };
    outbox::append(tx, stamp, &changed)?;
    Ok(())
}

/// The differences, for the admin log.
fn changes(before: &TicketTypeStock, after: &TicketTypeStock) -> String {
    let mut changes = Vec::new();
    if before.name != after.name {
        changes.push(format!("name {} → {}", before.name, after.name));
    }
    if before.price != after.price {
        changes.push(format!("price {} → {}", before.price, after.price));
    }
    if before.total != after.total {
        changes.push(format!("total {} → {}", before.total, after.total));
    }
    if before.description != after.description {
        changes.push("description".to_owned());
    }
    if changes.is_empty() { "nothing".to_owned() } else { changes.join(", ") }
}
