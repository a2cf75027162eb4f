//! The roles that a process can play, and what each of them keeps.

use std::collections::BTreeSet;

use urr_kernel::named_enum;
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
    Community,
}

named_enum!(ProcessRole {
    Gateway => "gateway",
    Auth => "auth",
    Catalog => "catalog",
    Queue => "queue",
    Ticket => "ticket",
    Payment => "payment",
    Stats => "stats",
    Mail => "mail",
    Community => "community",
});

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
    /// The roles that keep tables: all but the gateway.
    pub const SERVICES: [ProcessRole; 8] = {
        let [_gateway, services @ ..] = ProcessRole::ALL;
        services
    };

    pub const fn name(self) -> &'static str {
        self.as_str()
    }

    /// Reads the name of a role, or says which there are.
    pub fn parse(text: &str) -> Result<ProcessRole, UnknownProcessRole> {
        text.trim().parse().map_err(|_| UnknownProcessRole(text.to_owned()))
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
            ProcessRole::Community => {
                let user = urr_community::DATABASE_USER;
                service(urr_community::SCHEMA, urr_community::openapi, user)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_known_by_its_name() {
        for role in ProcessRole::ALL {
            assert_eq!(ProcessRole::parse(role.name()), Ok(role));
        }
        let error = ProcessRole::parse("catalogue").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"catalogue\" is not a role; the roles are gateway, auth, catalog, queue, \
             ticket, payment, stats, mail, community"
        );
    }
}
