//! The names of authors, as the auth service knows them at the moment.
//!
//! An account has the name of a person and not one for a board, so only its first and last letters
//! are shown. Without an answer a page is shown without names.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::timeout;
use urr_contracts::clients::AuthClient;
use urr_contracts::internal::auth::{ListUsers, USERS_PER_CALL_MAX};
use urr_kernel::{CallContext, Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};

use crate::demo::{DEMO_AUTHOR, DEMO_NAME};

const OPTIONS: CacheOptions = CacheOptions { ttl: Duration::from_mins(5), entries_max: 20_000 };
/// Readers wait no longer than this for names.
const WAIT_MAX: Duration = Duration::from_secs(1);

pub struct AuthorNames {
    auth: AuthClient,
    /// None: there is no such account.
    cache: Cache<Uuid, Option<String>, ()>,
}

impl AuthorNames {
    pub fn new(auth: AuthClient, clock: Clock) -> AuthorNames {
        AuthorNames { auth, cache: Cache::new(clock, OPTIONS) }
    }

    /// The names that are known of these authors.
    pub async fn find(
        &self,
        ids: Vec<Option<Uuid>>,
        context: &CallContext,
    ) -> HashMap<Uuid, String> {
        let ids: BTreeSet<Uuid> = ids.into_iter().flatten().collect();
        let is_missing = |id: &Uuid| *id != DEMO_AUTHOR && self.cache.get(id).is_none();
        let missing: Vec<Uuid> = ids.iter().copied().filter(is_missing).collect();
        for chunk in missing.chunks(USERS_PER_CALL_MAX) {
            self.load(chunk, context).await;
        }
        let name = |id: Uuid| match id == DEMO_AUTHOR {
            true => Some((id, DEMO_NAME.to_owned())),
            false => self.cache.get(&id).flatten().map(|name| (id, name)),
        };
        ids.into_iter().filter_map(name).collect()
    }

    async fn load(&self, ids: &[Uuid], context: &CallContext) {
        let asked = self.auth.call(ListUsers { user_ids: ids.to_vec() }, context);
        let answer = match timeout(WAIT_MAX, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return tracing::warn!(%error, "posts are shown without names"),
            Err(_) => return tracing::warn!("posts are shown without names: no answer in time"),
        };
        let mut names: HashMap<Uuid, String> =
            answer.users.into_iter().map(|user| (user.id, shown_name(&user.name))).collect();
        for id in ids {
            self.cache.insert(*id, names.remove(id));
        }
    }
}

/// The first and the last letter of a name.
fn shown_name(name: &str) -> String {
    let mut letters = name.chars();
    match (letters.next(), letters.next_back()) {
        (Some(first), Some(last)) if letters.next().is_some() => format!("{first}*{last}"),
        (Some(first), _) => format!("{first}*"),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_by_its_first_and_last_letter() {
        for (name, shown) in
            [("김민아", "김*아"), ("김팬", "김*"), ("팬", "팬*"), ("Mina Kim", "M*m"), ("", "")]
        {
            assert_eq!(shown_name(name), shown);
        }
    }
}
