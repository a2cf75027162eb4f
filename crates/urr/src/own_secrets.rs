//! Which roles have which secrets of URR itself. What a process does not have, it cannot lose.
//!
//! It is the only table of that. The configuration demands secrets by it; `urr cluster` and the
//! manifests of Kubernetes give them by it, and a test compares the compose file with those.

use crate::role::ProcessRole::{self, Auth, Gateway, Queue, Ticket};

/// A secret that only some roles have. `internal.token` and the login of the database are everybody's.
#[derive(Clone, Copy, Debug)]
pub struct OwnSecret {
    /// The setting.
    pub key: &'static str,
    pub holders: &'static [ProcessRole],
}

pub const OWN_SECRETS: [OwnSecret; 4] = [
    OwnSecret { key: "auth.jwt_secret", holders: &[Auth, Gateway] },
    // The ticket service seals guests who have no account.
    OwnSecret { key: "auth.data_key", holders: &[Auth, Ticket] },
    OwnSecret { key: "gateway.entry_token_secret", holders: &[Gateway, Queue] },
    OwnSecret { key: "seats.ticket_signing_key", holders: &[Ticket] },
];
