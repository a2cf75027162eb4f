//! What a role allows: which routes, and which events behind them.
//!
//! The gateway's route table and the services use the same [`RoleGroup`]s. Which events a request
//! may concern is an [`EventScope`]: organisers are tenants and see their own events only.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::ApiError;
use crate::identity::{Identity, User, UserRole};

/// The roles that may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleGroup {
    Admin,
    /// Support and administrators.
    Support,
    /// Organisers, for their own events, and administrators.
    Organiser,
    /// Those who read about events: organisers (their own), support and administrators.
    EventReader,
    /// Those at the entrance: door staff (assigned events), organisers (their own) and
    /// administrators.
    DoorStaff,
}

impl RoleGroup {
    pub const ALL: [RoleGroup; 5] = [
        RoleGroup::Admin,
        RoleGroup::Support,
        RoleGroup::Organiser,
        RoleGroup::EventReader,
        RoleGroup::DoorStaff,
    ];

    pub fn contains(self, role: UserRole) -> bool {
        match role {
            UserRole::Admin => true,
            UserRole::User => false,
            UserRole::Support => matches!(self, RoleGroup::Support | RoleGroup::EventReader),
            UserRole::Staff => self == RoleGroup::DoorStaff,
            UserRole::Organiser => {
                matches!(self, RoleGroup::Organiser | RoleGroup::EventReader | RoleGroup::DoorStaff)
            }
        }
    }

    /// Refuses a role that is not in the group.
    pub fn check(self, role: UserRole) -> Result<(), ApiError> {
        if self.contains(role) {
            return Ok(());
        }
        Err(match self {
            RoleGroup::Admin => {
                ApiError::forbidden("ADMIN_REQUIRED", "This is for administrators only.")
            }
            _ => ApiError::forbidden("ROLE_REQUIRED", "Your role does not allow this."),
        })
    }
}

/// The events that a request may concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventScope {
    /// Administrators and support.
    All,
    /// The events of this organiser.
    OwnedBy(Uuid),
    /// The events that this member of the door staff is assigned to.
    AssignedTo(Uuid),
}

/// The event belongs to another organiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("This event belongs to somebody else.")]
pub struct NotYourEvent;

impl From<NotYourEvent> for ApiError {
    fn from(error: NotYourEvent) -> ApiError {
        ApiError::forbidden("NOT_YOUR_EVENT", error.to_string())
    }
}

impl EventScope {
    /// Whether an event of this organiser is in the scope. Assignments are not known here: an
    /// event of a scope of assignments is looked up by the service that has them.
    pub fn includes(self, organiser_id: Option<Uuid>) -> bool {
        match self {
            EventScope::All => true,
            EventScope::OwnedBy(id) => organiser_id == Some(id),
            EventScope::AssignedTo(_) => false,
        }
    }

    /// Refuses an event of another organiser.
    pub fn check(self, organiser_id: Option<Uuid>) -> Result<(), NotYourEvent> {
        if self.includes(organiser_id) { Ok(()) } else { Err(NotYourEvent) }
    }

    /// The organiser whose events alone are listed; `None` lists all.
    pub fn organiser_id(self) -> Option<Uuid> {
        match self {
            EventScope::All => None,
            EventScope::OwnedBy(id) => Some(id),
            // Nobody is an organiser under this id, so nothing is listed.
            EventScope::AssignedTo(_) => Some(Uuid::nil()),
        }
    }
}

impl Identity {
    /// The events that this user may act on. For a plain user there are none.
    pub fn event_scope(&self) -> EventScope {
        match self.role {
            UserRole::Admin | UserRole::Support => EventScope::All,
            UserRole::Organiser => EventScope::OwnedBy(self.user_id),
            UserRole::Staff | UserRole::User => EventScope::AssignedTo(self.user_id),
        }
    }
}

/// Declares an extractor: a user whose role is in the group of the same name; 401 or 403 otherwise.
macro_rules! role_extractors {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(pub Identity);

        impl<S: Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<$name, ApiError> {
                let User(identity) = User::from_request_parts(parts, state).await?;
                RoleGroup::$name.check(identity.role)?;
                Ok($name(identity))
            }
        }
    )+};
}

role_extractors! {
    /// Extractor: an administrator.
    Admin
    /// Extractor: support or an administrator.
    Support
    /// Extractor: an organiser or an administrator. The event must be in their scope.
    Organiser
    /// Extractor: an organiser, support or an administrator. The event must be in their scope.
    EventReader
    /// Extractor: door staff, an organiser or an administrator. The event must be in their scope.
    DoorStaff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_administrator_is_in_every_group_and_a_plain_user_in_none() {
        for group in RoleGroup::ALL {
            assert!(group.contains(UserRole::Admin));
            assert!(!group.contains(UserRole::User));
        }
    }

    #[test]
    fn each_role_has_its_groups_only() {
        let groups = |role| RoleGroup::ALL.map(|group| group.contains(role));
        assert_eq!(groups(UserRole::Support), [false, true, false, true, false]);
        assert_eq!(groups(UserRole::Organiser), [false, false, true, true, true]);
        assert_eq!(groups(UserRole::Staff), [false, false, false, false, true]);
    }

    #[test]
    fn an_organisers_scope_has_their_own_events_only() {
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let scope = EventScope::OwnedBy(own);
        assert!(scope.includes(Some(own)));
        assert!(!scope.includes(Some(other)));
        assert!(!scope.includes(None));
        assert!(EventScope::All.includes(None));
        assert!(!EventScope::AssignedTo(own).includes(Some(own)));
    }
}
