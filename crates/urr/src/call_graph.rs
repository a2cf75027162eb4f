//! Who talks to whom: which role calls which, and which servers each role needs.
//!
//! It is the only table of that. The composition refuses a call that is not in it; deployments and
//! network policies in `deploy/kubernetes` are made from it; tests compare it with the calls that the
//! composition makes, with the contracts and with ARCHITECTURE.md.

#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod tests;

use urr_service::Caller;

use crate::role::ProcessRole;

/// What processes of one role connect to.
#[derive(Clone, Copy, Debug)]
pub struct RoleConnections {
    pub role: ProcessRole,
    pub calls: &'static [ProcessRole],
    pub servers: &'static [ServerKind],
}

/// A server that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    Postgres,
    Kafka,
    Redis,
    /// Payment and identity providers, the beacon of draws, SQS.
    Https,
    Smtp,
}

use ProcessRole::{Auth, Catalog, Community, Gateway, Mail, Payment, Queue, Stats, Ticket};
use ServerKind::{Https, Kafka, Postgres, Redis, Smtp};

pub const CONNECTIONS: [RoleConnections; ProcessRole::ALL.len()] = [
    connections(Gateway, &ProcessRole::SERVICES, &[Redis]),
    connections(Auth, &[Ticket, Payment, Mail, Community], &[Postgres, Kafka, Https]),
    connections(Catalog, &[Auth, Queue, Ticket, Payment, Mail], &[Postgres, Kafka]),
    connections(Queue, &[Ticket, Payment, Stats], &[Postgres, Kafka, Redis, Https]),
    connections(Ticket, &[Auth, Queue, Payment, Mail], &[Postgres, Kafka, Redis]),
    connections(Payment, &[Ticket], &[Postgres, Kafka, Https]),
    connections(Stats, &[], &[Postgres, Kafka]),
    connections(Mail, &[Auth, Ticket], &[Postgres, Kafka, Smtp]),
    connections(Community, &[Auth, Ticket], &[Postgres, Kafka]),
];

const fn connections(
    role: ProcessRole,
    calls: &'static [ProcessRole],
    servers: &'static [ServerKind],
) -> RoleConnections {
    RoleConnections { role, calls, servers }
}

/// The connections of a role.
pub fn connections_of(role: ProcessRole) -> RoleConnections {
    let mut rows = CONNECTIONS.into_iter();
    rows.find(|row| row.role == role).expect("the table has a row for every role")
}

/// Who may call a service: the roles of the table, and operators.
pub fn callers_of(role: ProcessRole) -> Vec<Caller> {
    let rows = CONNECTIONS.into_iter().filter(|row| row.calls.contains(&role));
    let caller = |row: RoleConnections| row.role.name().parse().expect("a role is a caller");
    rows.map(caller).chain([Caller::Operator]).collect()
}
