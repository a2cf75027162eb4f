//! The accounts, as mails see them: who is written to, and in which language.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use urr_kernel::{CallContext, Uuid};
use urr_service::{CallPolicy, Upstream, UpstreamError};

use crate::domain::mail::Language;

const DEADLINE: Duration = Duration::from_secs(5);

/// Who knows addresses.
#[derive(Clone, Debug)]
pub struct Accounts(Upstream);

/// Somebody who can be written to.
#[derive(Clone, PartialEq, Eq)]
pub struct Reader {
    pub address: String,
    pub language: Language,
}

#[derive(Deserialize)]
struct Answer {
    users: Vec<User>,
}

#[derive(Deserialize)]
struct User {
    id: Uuid,
    #[serde(default)]
    email: String,
    #[serde(default)]
    language: String,
}

impl Accounts {
    pub fn new(upstream: Upstream) -> Accounts {
        Accounts(upstream)
    }

    /// Those of them who have an account. A hundred are asked for at most.
    pub async fn find(
        &self,
        user_ids: &[Uuid],
        context: &CallContext,
    ) -> Result<HashMap<Uuid, Reader>, UpstreamError> {
        let (path, body) = ("/internal/auth/users/batch", json!({"userIds": user_ids}));
        let policy = CallPolicy::idempotent(DEADLINE);
        let Answer { users } = self.0.post_json(path, &body, context, policy).await?;
        let known = users.into_iter().map(|user| {
            let language = Language::parse(&user.language).unwrap_or_default();
            (user.id, Reader { address: user.email, language })
        });
        Ok(known.collect())
    }
}

/// An address as administrators see it: enough to recognise one's own.
pub fn mask(address: &str) -> String {
    let (name, domain) = address.rsplit_once('@').unwrap_or((address, ""));
    let first: String = name.chars().take(1).collect();
    format!("{first}***@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_first_letter_and_the_domain_are_shown() {
        assert_eq!(mask("mina@example.com"), "m***@example.com");
        assert_eq!(mask("김@example.com"), "김***@example.com");
        assert_eq!(mask("none"), "n***@");
    }
}
