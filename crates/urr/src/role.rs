//! The roles that a process can play, and what each of them keeps.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use urr_storage::Schema;
use utoipa::openapi::OpenApi;

use crate::config::{DatabaseConfig, ServiceDatabase, ServicesConfig};

/// A service that can run here or elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
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
pub type Roles = BTreeSet<Role>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; the roles are {known}", known = Role::ALL.map(Role::name).join(", "))]
pub struct UnknownRole(String);

impl Role {
    pub const ALL: [Role; 8] = [
        Role::Gateway,
        Role::Auth,
        Role::Catalog,
        Role::Queue,
        Role::Ticket,
        Role::Payment,
        Role::Stats,
        Role::Mail,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Role::Gateway => "gateway",
            Role::Auth => "auth",
            Role::Catalog => "catalog",
            Role::Queue => "queue",
            Role::Ticket => "ticket",
            Role::Payment => "payment",
            Role::Stats => "stats",
            Role::Mail => "mail",
        }
    }

    /// The tables of the role. The gateway keeps nothing.
    pub const fn schema(self) -> Option<Schema> {
        match self {
            Role::Gateway => None,
            Role::Auth => Some(urr_auth::SCHEMA),
            Role::Catalog => Some(urr_catalog::SCHEMA),
            Role::Queue => Some(urr_queue::SCHEMA),
            Role::Ticket => Some(urr_ticket::SCHEMA),
            Role::Payment => Some(urr_payment::SCHEMA),
            Role::Stats => Some(urr_stats::SCHEMA),
            Role::Mail => Some(urr_mail::SCHEMA),
        }
    }

    /// What the role answers to, wherever it runs.
    pub fn openapi(self) -> Option<OpenApi> {
        match self {
            Role::Gateway => None,
            Role::Auth => Some(urr_auth::openapi()),
            Role::Catalog => Some(urr_catalog::openapi()),
            Role::Queue => Some(urr_queue::openapi()),
            Role::Ticket => Some(urr_ticket::openapi()),
            Role::Payment => Some(urr_payment::openapi()),
            Role::Stats => Some(urr_stats::openapi()),
            Role::Mail => Some(urr_mail::openapi()),
        }
    }

    /// The login of the role on PostgreSQL, unless the configuration names another.
    pub const fn database_user(self) -> &'static str {
        match self {
            Role::Gateway => "",
            Role::Auth => urr_auth::DATABASE_USER,
            Role::Catalog => "event_svc_user",
            Role::Queue => urr_queue::DATABASE_USER,
            Role::Ticket => "reservation_svc_user",
            Role::Payment => urr_payment::DATABASE_USER,
            Role::Stats => "stats_svc_user",
            Role::Mail => urr_mail::DATABASE_USER,
        }
    }

    /// What the configuration says about the role's own database.
    pub fn database(self, config: &DatabaseConfig) -> Option<&ServiceDatabase> {
        match self {
            Role::Gateway => None,
            Role::Auth => Some(&config.auth),
            Role::Catalog => Some(&config.catalog),
            Role::Queue => Some(&config.queue),
            Role::Ticket => Some(&config.ticket),
            Role::Payment => Some(&config.payment),
            Role::Stats => Some(&config.stats),
            Role::Mail => Some(&config.mail),
        }
    }

    /// Where the role listens when it runs elsewhere.
    pub fn url(self, config: &ServicesConfig) -> Option<&str> {
        match self {
            Role::Gateway => None,
            Role::Auth => config.auth_url.as_deref(),
            Role::Catalog => config.catalog_url.as_deref(),
            Role::Queue => config.queue_url.as_deref(),
            Role::Ticket => config.ticket_url.as_deref(),
            Role::Payment => config.payment_url.as_deref(),
            Role::Stats => config.stats_url.as_deref(),
            Role::Mail => config.mail_url.as_deref(),
        }
    }

    pub fn all() -> Roles {
        Role::ALL.into_iter().collect()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Role, UnknownRole> {
        let found = Role::ALL.into_iter().find(|role| role.name() == text.trim());
        found.ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_known_by_its_name() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
        }
        let error = "catalogue".parse::<Role>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"catalogue\" is not a role; the roles are gateway, auth, catalog, queue, \
             ticket, payment, stats, mail"
        );
    }

    #[test]
    fn every_operation_of_every_role_has_its_route_and_policy() {
        for role in Role::ALL {
            if let Some(openapi) = role.openapi() {
                let uncovered = urr_gateway::find_uncovered_operations(&openapi);
                assert_eq!(uncovered, Vec::<String>::new(), "{role}");
            }
        }
    }

    #[test]
    fn every_route_has_an_operation() {
        let services: Vec<_> = Role::ALL.into_iter().filter_map(Role::openapi).collect();
        assert_eq!(urr_gateway::find_unused_routes(&services), Vec::<String>::new());
    }
}
