//! Who may act on an event: its organiser, and the door staff that are assigned to it.

pub(crate) mod http;
mod store;

use urr_contracts::clients::ClientError;
use urr_contracts::internal::auth::{AccountRole, AccountSummary, FindUsers, ListUsers};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{ApiError, EventScope, NotYourEvent};
use urr_storage::{DbResult, StorageError};

use crate::http::event_not_found;
use crate::reservations::rules::{ReservationRecord, ReservationRejection};
use crate::reservations::store::record_find;
use crate::reservations::transition::TransitionError;
use crate::{ReservationId, TicketService};

/// More assignments than this are a mistake.
pub(crate) const STAFF_PER_EVENT_MAX: u32 = 200;

/// A member of the door staff of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaffAssignment {
    pub user_id: Uuid,
    pub assigned_by: Uuid,
    pub assigned_at: Timestamp,
    /// Whether they sell at the box office too.
    pub may_sell: bool,
}

/// Why somebody was not assigned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignStaffError {
    #[error("An event has at most {STAFF_PER_EVENT_MAX} members of the door staff.")]
    TooMany,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why nobody was found by an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindStaffError {
    /// Of other accounts nothing is said, so that nobody learns which addresses have one.
    #[error("No member of the door staff has this address.")]
    NotFound,
    #[error("Accounts cannot be looked up at the moment. Please use the id of the account.")]
    Unavailable,
}

impl TicketService {
    /// The account with the role `staff` that has this address.
    pub(crate) async fn find_staff(
        &self,
        email: &str,
        context: &CallContext,
    ) -> Result<Uuid, FindStaffError> {
        let auth = &self.peers.as_ref().ok_or(FindStaffError::Unavailable)?.auth;
        let away = |error: ClientError| {
            tracing::warn!(%error, "door staff cannot be looked up");
            FindStaffError::Unavailable
        };
        let text = email.trim().to_owned();
        let found = auth.call(FindUsers { text: text.clone() }, context).await.map_err(away)?;
        if found.user_ids.is_empty() {
            return Err(FindStaffError::NotFound);
        }
        let asked = ListUsers { user_ids: found.user_ids };
        let users = auth.call(asked, context).await.map_err(away)?.users;
        // A search also finds names.
        let is_it = |user: &AccountSummary| {
            user.role == AccountRole::Staff && user.email.eq_ignore_ascii_case(&text)
        };
        users.into_iter().find(is_it).map(|user| user.id).ok_or(FindStaffError::NotFound)
    }

    /// Refuses an event that is not in the scope: 403, because that an event exists is no secret.
    pub(crate) async fn check_event(
        &self,
        event_id: Uuid,
        scope: EventScope,
    ) -> Result<(), ApiError> {
        if scope == EventScope::All {
            return Ok(());
        }
        let read = self.db.read(move |tx| {
            let organiser_id = store::organiser_find(tx, event_id)?;
            let is_assigned = match scope {
                EventScope::AssignedTo(user_id) => store::staff_exists(tx, event_id, user_id)?,
                EventScope::All | EventScope::OwnedBy(_) => false,
            };
            Ok::<_, StorageError>((organiser_id, is_assigned))
        });
        match read.await? {
            (None, _) => Err(event_not_found()),
            (Some(_), true) => Ok(()),
            (Some(organiser_id), false) => scope.check(organiser_id).map_err(ApiError::from),
        }
    }

    /// Refuses those who may not sell at the box office of an event. Door staff need the assignment
    /// and the permission.
    pub(crate) async fn check_seller(
        &self,
        event_id: Uuid,
        scope: EventScope,
    ) -> Result<(), ApiError> {
        let EventScope::AssignedTo(user_id) = scope else {
            return self.check_event(event_id, scope).await;
        };
        let read = self.db.read(move |tx| {
            let is_known = store::organiser_find(tx, event_id)?.is_some();
            Ok::<_, StorageError>((is_known, store::staff_may_sell(tx, event_id, user_id)?))
        });
        match read.await? {
            (false, _) => Err(event_not_found()),
            (true, true) => Ok(()),
            (true, false) => Err(NotYourEvent.into()),
        }
    }

    /// A reservation of an event that is in the scope; another one is as if it were not there.
    pub(crate) async fn find_in_scope(
        &self,
        id: ReservationId,
        scope: EventScope,
    ) -> Result<ReservationRecord, TransitionError> {
        let found = self.db.read(move |tx| {
            let Some(record) = record_find(tx, id)? else { return Ok(None) };
            let organiser_id = store::organiser_find(tx, record.reservation.event_id)?.flatten();
            Ok::<_, StorageError>(scope.includes(organiser_id).then_some(record))
        });
        Ok(found.await?.ok_or(ReservationRejection::NotFound)?)
    }

    pub(crate) async fn event_of_ticket_type(&self, id: Uuid) -> DbResult<Option<Uuid>> {
        self.db.read(move |tx| store::ticket_type_event(tx, id)).await
    }

    /// The door staff of an event, those assigned first come first.
    pub async fn list_staff(&self, event_id: Uuid) -> DbResult<Vec<StaffAssignment>> {
        self.db.read(move |tx| store::staff_list(tx, event_id)).await
    }

    /// Assigns a user to the entrance of an event, and says whether they sell there too. A repetition
    /// changes nothing.
    pub async fn assign_staff(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        may_sell: bool,
        admin_id: Uuid,
    ) -> Result<(), AssignStaffError> {
        let action = self.admin_action(admin_id, "STAFF_ASSIGNED", "event", event_id);
        let action = AdminAction { summary: user_id.to_string(), ..action };
        let assigned_at = action.created_at;
        let assigned = self.db.write(move |tx| {
            let new = StaffAssignment { user_id, assigned_by: admin_id, assigned_at, may_sell };
            if !store::staff_insert(tx, event_id, &new)? {
                return Ok(());
            }
            // A bound against mistakes: two at the same moment may both be the last.
            if store::staff_count(tx, event_id)? > STAFF_PER_EVENT_MAX {
                return Err(AssignStaffError::TooMany);
            }
            admin_log::insert(tx, &action)?;
            Ok(())
        });
        assigned.await
    }

    /// Takes an assignment away; from now on the user checks nobody in. A repetition changes nothing.
    pub async fn remove_staff(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        admin_id: Uuid,
    ) -> DbResult<()> {
        let action = self.admin_action(admin_id, "STAFF_REMOVED", "event", event_id);
        let action = AdminAction { summary: user_id.to_string(), ..action };
        let removed = self.db.write(move |tx| {
            if store::staff_delete(tx, event_id, user_id)? {
                admin_log::insert(tx, &action)?;
            }
            Ok::<_, StorageError>(())
        });
        removed.await
    }
}
