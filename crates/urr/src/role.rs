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

/// What the program knows of a service.
struct RoleService {
    schema: Schema,
    openapi: fn() -> OpenApi,
    database_user: &'static str,
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
    pub const SERVICES: [ProcessRole; 7] = {
        let [_gateway, services @ ..] = ProcessRole::ALL;
        services
    };

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

    /// The tables, the interface and the login of a service. The gateway has none of them.
    fn service(self) -> Option<RoleService> {
        let service =
            |schema, openapi, database_user| Some(RoleService { schema, openapi, database_user });
        match self {
            ProcessRole::Gateway => None,
            ProcessRole::Auth => {
                service(urr_auth::SCHEMA, urr_auth::openapi, urr_auth::DATABASE_USER)
            }
            ProcessRole::Catalog => {
                service(urr_catalog::SCHEMA, urr_catalog::openapi, "event_svc_user")
            }
            ProcessRole::Queue => {
                service(urr_queue::SCHEMA, urr_queue::openapi, urr_queue::DATABASE_USER)
            }
            ProcessRole::Ticket => {
                service(urr_ticket::SCHEMA, urr_ticket::openapi, "reservation_svc_user")
            }
            ProcessRole::Payment => {
                service(urr_payment::SCHEMA, urr_payment::openapi, urr_payment::DATABASE_USER)
            }
            ProcessRole::Stats => service(urr_stats::SCHEMA, urr_stats::openapi, "stats_svc_user"),
            ProcessRole::Mail => {
                service(urr_mail::SCHEMA, urr_mail::openapi, urr_mail::DATABASE_USER)
            }
        }
    }

    pub fn schema(self) -> Option<Schema> {
        self.service().map(|service| service.schema)
    }

    /// The OpenAPI document of the role.
    pub fn openapi(self) -> Option<OpenApi> {
        self.service().map(|service| (service.openapi)())
    }

    /// The login of the role on PostgreSQL, unless the configuration names another.
    pub fn database_user(self) -> &'static str {
        self.service().map_or("", |service| service.database_user)
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

    #[test]
    fn every_operation_of_every_role_has_its_route_and_policy() {
        for role in ProcessRole::ALL {
            if let Some(openapi) = role.openapi() {
                let uncovered = urr_gateway::find_uncovered_operations(&openapi);
                assert_eq!(uncovered, Vec::<String>::new(), "{role}");
            }
        }
    }

    #[test]
    fn every_route_has_an_operation() {
        let services: Vec<_> =
            ProcessRole::ALL.into_iter().filter_map(ProcessRole::openapi).collect();
        assert_eq!(urr_gateway::find_unused_routes(&services), Vec::<String>::new());
    }
}
