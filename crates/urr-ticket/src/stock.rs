//! Ticket types are added and changed by administrators.
//!
//! Both happen under the lock of the event's sale, as everything that changes stock does: a change
//! cannot overwrite a sale of the same moment. The administrator's action is written in the
//! same transaction.

use urr_kernel::Uuid;
use urr_storage::{StorageError, Tx};

use crate::domain::stock::{ChangeRefused, PER_EVENT_MAX, TicketType, TicketTypeDraft};
use crate::store::admin::{AdminAction, action_insert};
use crate::store::{sales, stock as store};
use crate::{Kind, SaleStatus, Ticket};

#[derive(Debug, thiserror::Error)]
pub enum CreateTicketTypeError {
    #[error("there is no such event")]
    EventNotFound,
    #[error("the event was cancelled")]
    EventCancelled,
    #[error("the event sells seats")]
    EventHasSeats,
    #[error("the event has a ticket type of this name")]
    NameTaken,
    #[error("the event has as many ticket types as it can")]
    TooMany,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Debug, thiserror::Error)]
pub enum ChangeTicketTypeError {
    #[error("there is no such ticket type")]
    NotFound,
    #[error("the event was cancelled")]
    EventCancelled,
    #[error("the event has another ticket type of this name")]
    NameTaken,
    #[error(transparent)]
    Refused(#[from] ChangeRefused),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Ticket {
    /// Adds a ticket type to a standing event; one transaction.
    pub async fn create_ticket_type(
        &self,
        admin_id: Uuid,
        event_id: Uuid,
        draft: TicketTypeDraft,
    ) -> Result<TicketType, CreateTicketTypeError> {
        use CreateTicketTypeError::{EventHasSeats, EventNotFound, NameTaken, TooMany};
        let inventory = self.inventories.get(event_id).await?.ok_or(EventNotFound)?;
        if inventory.kind == Kind::Seated {
            return Err(EventHasSeats);
        }
        let new = draft.into_new(self.ids.next_id());
        let summary = format!("{}: {} at {}", new.name, new.total, new.price);
        let action = self.stock_action(admin_id, "CREATE_TICKET_TYPE", new.id, summary);
        let made = self
            .db
            .write(move |tx| {
                let sale = sales::sale_lock_only(tx, event_id)?.ok_or(EventNotFound)?;
                match sale.policy.status {
                    SaleStatus::Open => {}
                    SaleStatus::Cancelled => return Err(CreateTicketTypeError::EventCancelled),
                    SaleStatus::Deleted => return Err(EventNotFound),
                }
                if store::name_exists(tx, event_id, &new.name, new.id)? {
                    return Err(NameTaken);
                }
                if store::ticket_type_count(tx, event_id)? >= PER_EVENT_MAX {
                    return Err(TooMany);
                }
                let made = sales::ticket_type_insert(tx, event_id, &new, action.now)?;
                assert!(made, "neither the name nor the fresh id was taken");
                finish(tx, event_id, sale.fence, &action)?;
                Ok(store::ticket_type_find(tx, new.id)?.expect("it was just made"))
            })
            .await?;
        self.maps.mark_dirty(event_id);
        Ok(made)
    }

    /// Changes a ticket type as far as what was sold allows; one transaction.
    pub async fn change_ticket_type(
        &self,
        admin_id: Uuid,
        id: Uuid,
        draft: TicketTypeDraft,
    ) -> Result<TicketType, ChangeTicketTypeError> {
        use ChangeTicketTypeError::{EventCancelled, NameTaken, NotFound};
        let action = self.stock_action(admin_id, "UPDATE_TICKET_TYPE", id, String::new());
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
                // Again, now that nobody else changes it.
                let before = store::ticket_type_find(tx, id)?.ok_or(NotFound)?;
                let after = before.change(&draft)?;
                if store::name_exists(tx, event_id, &after.name, id)? {
                    return Err(NameTaken);
                }
                store::ticket_type_update(tx, &after)?;
                let action = AdminAction { summary: changes(&before, &after), ..action.clone() };
                finish(tx, event_id, sale.fence, &action)?;
                Ok(after)
            })
            .await?;
        self.maps.mark_dirty(changed.event_id);
        Ok(changed)
    }

    fn stock_action(
        &self,
        admin_id: Uuid,
        action: &'static str,
        resource_id: Uuid,
        summary: String,
    ) -> AdminAction {
        let (id, now) = (self.ids.next_id(), self.clock.now());
        AdminAction {
            id,
            admin_id,
            action,
            resource_type: "ticket_type",
            resource_id,
            summary,
            now,
        }
    }
}

/// Numbers the change, so that whoever caches the event sees it, and notes who made it.
fn finish(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    fence: i64,
    action: &AdminAction,
) -> Result<(), StorageError> {
    sales::sale_number(tx, event_id, fence + 1)?;
    action_insert(tx, action)
}

/// What differs, for the people who read the log.
fn changes(before: &TicketType, after: &TicketType) -> String {
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
