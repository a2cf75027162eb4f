//! What of an event is closed for a user now, so that a page does not offer it.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, StorageError, Tx};

use crate::alerts::gates::GateLimit;
use crate::alerts::store::{GatePass, gates_load};
use crate::inventory::ticket_types::store::ticket_type_list;
use crate::reservations::store::has_pending_hold;
use crate::{InventoryKind, TicketService};

/// A grade or ticket type of which a user may not take any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedSubject {
    /// Of an event with seats.
    pub grade: Option<String>,
    /// Of a standing event.
    pub ticket_type_id: Option<Uuid>,
    /// How many the user may take: none, or what they were told of.
    pub quantity_max: u32,
    /// When everybody may take them, at the latest; none while nothing has returned.
    pub opens_at: Option<Timestamp>,
}

impl TicketService {
    /// What gates keep from this user, by the rule that decides about a hold. None: there is no such
    /// event.
    pub async fn my_gates(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> DbResult<Option<Vec<ClosedSubject>>> {
        let Some(inventory) = self.inventories.get(event_id).await? else { return Ok(None) };
        let (exclusive_max, now) = (self.settings.alerts.exclusive_max, self.clock.now());
        let list = move |tx: &mut Tx<'_>| {
            // Who holds seats may take others instead.
            let pass = match has_pending_hold(tx, event_id, user_id)? {
                true => GatePass::ForChange,
                false => GatePass::ForHold,
            };
            let gates = gates_load(tx, event_id, pass, exclusive_max, now)?;
            let limited = |name: &str| gates.limit(user_id, name);
            Ok::<_, StorageError>(match inventory.kind {
                InventoryKind::Seated => {
                    let grades = inventory.layout.grades().into_iter();
                    let closed = |grade: &str| Some(closed_grade(grade, limited(grade)?));
                    grades.filter_map(closed).collect()
                }
                InventoryKind::Standing => {
                    let types = ticket_type_list(tx, event_id)?.into_iter();
                    let closed = |id: Uuid| Some(closed_ticket_type(id, limited(&id.to_string())?));
                    types.filter_map(|one| closed(one.id)).collect()
                }
            })
        };
        self.db.read(list).await.map(Some)
    }
}

fn closed_grade(grade: &str, limit: GateLimit) -> ClosedSubject {
    let GateLimit { quantity_max, opens_at } = limit;
    ClosedSubject { grade: Some(grade.to_owned()), ticket_type_id: None, quantity_max, opens_at }
}

fn closed_ticket_type(id: Uuid, limit: GateLimit) -> ClosedSubject {
    let GateLimit { quantity_max, opens_at } = limit;
    ClosedSubject { grade: None, ticket_type_id: Some(id), quantity_max, opens_at }
}
