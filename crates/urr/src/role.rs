//! The roles that a process can play, and what each of them keeps.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use urr_storage::Schema;
use utoipa::openapi::OpenApi;

/// A service, or the gateway, as something that a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessRole {
    Gateway,
    Auth,
    Catalog,
    Queue,
    Ticket,
    Payment,
    Stats,
    Mail,
}

/// A set of roles.
pub type ProcessRoles = BTreeSet<ProcessRole>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; the roles are {known}", known = ProcessRole::ALL.map(ProcessRole::name).join(", "))]
pub struct UnknownProcessRole(String);

impl ProcessRole {
    pub const ALL: [ProcessRole; 8] = [
        ProcessRole::Gateway,
        ProcessRole::Auth,
        ProcessRole::Catalog,
        ProcessRole::Queue,
        ProcessRole::Ticket,
        ProcessRole::Payment,
        ProcessRole::Stats,
        ProcessRole::Mail,
    ];

    /// The roles that keep tables: all but the gateway.
    pub const SERVICES: [ProcessRole; 7] = [
        ProcessRole::Auth,
        ProcessRole::Catalog,
        ProcessRole::Queue,
        ProcessRole::Ticket,
        ProcessRole::Payment,
        ProcessRole::Stats,
        ProcessRole::Mail,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ProcessRole::Gateway => "gateway",
            ProcessRole::Auth => "auth",
            ProcessRole::Catalog => "catalog",
            ProcessRole::Queue => "queue",
            ProcessRole::Ticket => "ticket",
            ProcessRole::Payment => "payment",
            ProcessRole::Stats => "stats",
            ProcessRole::Mail => "mail",
        }
    }

    /// The tables of the role. The gateway has none.
    pub const fn schema(self) -> Option<Schema> {
        match self {
            ProcessRole::Gateway => None,
            ProcessRole::Auth => Some(urr_auth::SCHEMA),
            ProcessRole::Catalog => Some(urr_catalog::SCHEMA),
            ProcessRole::Queue => Some(urr_queue::SCHEMA),
            ProcessRole::Ticket => Some(urr_ticket::SCHEMA),
            ProcessRole::Payment => Some(urr_payment::SCHEMA),
            ProcessRole::Stats => Some(urr_stats::SCHEMA),
            ProcessRole::Mail => Some(urr_mail::SCHEMA),
        }
    }

    /// The OpenAPI document of the role.
    pub fn openapi(self) -> Option<OpenApi> {
        match self {
            ProcessRole::Gateway => None,
            ProcessRole::Auth => Some(urr_auth::openapi()),
            ProcessRole::Catalog => Some(urr_catalog::openapi()),
            ProcessRole::Queue => Some(urr_queue::openapi()),
            ProcessRole::Ticket => Some(urr_ticket::openapi()),
            ProcessRole::Payment => Some(urr_payment::openapi()),
            ProcessRole::Stats => Some(urr_stats::openapi()),
            ProcessRole::Mail => Some(urr_mail::openapi()),
        }
    }

    /// The login of the role on PostgreSQL, unless the configuration names another.
    pub const fn database_user(self) -> &'static str {
        match self {
            ProcessRole::Gateway => "",
            ProcessRole::Auth => urr_auth::DATABASE_USER,
            ProcessRole::Catalog => "event_svc_user",
            ProcessRole::Queue => urr_queue::DATABASE_USER,
            ProcessRole::Ticket => "reservation_svc_user",
            ProcessRole::Payment => urr_payment::DATABASE_USER,
            ProcessRole::Stats => "stats_svc_user",
            ProcessRole::Mail => urr_mail::DATABASE_USER,
        }
    }

    pub fn all() -> ProcessRoles {
        ProcessRole::ALL.into_iter().collect()
    }
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ProcessRole {
    type Err = UnknownProcessRole;

    fn from_str(text: &str) -> Result<ProcessRole, UnknownProcessRole> {
        let found = ProcessRole::ALL.into_iter().find(|role| role.name() == text.trim());
        found.ok_or_else(|| UnknownProcessRole(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_known_by_its_name() {
        for role in ProcessRole::ALL {
            assert_eq!(role.name().parse(), Ok(role));
        }
        let error = "catalogue".parse::<ProcessRole>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"catalogue\" is not a role; the roles are gateway, auth, catalog, queue, \
             ticket, payment, stats, mail"
        );
    }
}
