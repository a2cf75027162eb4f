//! The list of an event's tickets, for phones that may lose their network.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use urr_contracts::internal::auth::{ListUsers, USERS_PER_CALL_MAX};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::EventScope;
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::{DbResult, StorageError};

use crate::check_in::rules::initials;
use crate::check_in::store as check_in;
use crate::check_in::store::{CheckInEvent, CheckInEventFilter, ListedTicket};
use crate::{PersonFinder, TicketService};

/// A page of the list has at most this many tickets.
pub const LIST_PAGE_MAX: u32 = 1_000;

/// All phones of an event ask for the same pages, so a page is made once for all of them.
const PAGES: CacheOptions = CacheOptions { ttl: Duration::from_secs(5), entries_max: 400 };

const NAME_CALLS_AT_ONCE: usize = 4;

/// Events that began longer ago are not offered any more.
const EVENTS_SINCE: Duration = Duration::from_hours(36);
const EVENTS_MAX: u32 = 200;

/// A page of the list, in the order of the tickets' ids.
#[derive(Clone, Debug)]
pub struct CheckInListPage {
    pub allows_reentry: bool,
    pub tickets: Vec<ListedTicket>,
    /// By user. Those whose names are not known are left out.
    pub initials: HashMap<Uuid, String>,
    /// After which ticket the next page begins; none at the end.
    pub next: Option<Uuid>,
}

pub(crate) type CheckInPages = Cache<(Uuid, Option<Uuid>, u32), Arc<CheckInListPage>, StorageError>;

pub(crate) fn pages(clock: urr_kernel::Clock) -> CheckInPages {
    Cache::new(clock, PAGES)
}

impl TicketService {
    /// A page of the list, at most some seconds old. The event has a sale.
    pub(crate) async fn check_in_list(
        &self,
        event_id: Uuid,
        after: Option<Uuid>,
        limit: u32,
        context: CallContext,
    ) -> DbResult<Arc<CheckInListPage>> {
        let ticket = self.clone();
        let load = || async move { ticket.load_page(event_id, after, limit, context).await };
        self.check_in_pages.get_or_load((event_id, after, limit), load).await
    }

    async fn load_page(
        &self,
        event_id: Uuid,
        after: Option<Uuid>,
        limit: u32,
        context: CallContext,
    ) -> DbResult<Arc<CheckInListPage>> {
        let read = self.db.read(move |tx| {
            let tickets = check_in::ticket_list(tx, event_id, after, limit + 1)?;
            Ok::<_, StorageError>((tickets, check_in::reentry_find(tx, event_id)?))
        });
        let (mut tickets, allows_reentry) = read.await?;
        let is_last = tickets.len() <= usize::try_from(limit).expect("a page is small");
        if !is_last {
            tickets.pop();
        }
        let next = tickets.last().filter(|_| !is_last).map(|ticket| ticket.id);
        let mut user_ids: Vec<Uuid> = tickets.iter().map(|ticket| ticket.user_id).collect();
        user_ids.sort_unstable();
        user_ids.dedup();
        let initials = self.persons.find_initials(&user_ids, &context).await;
        Ok(Arc::new(CheckInListPage { allows_reentry, tickets, initials, next }))
    }

    /// The events at whose doors a user may check tickets in, the next one first.
    pub(crate) async fn check_in_events(&self, scope: EventScope) -> DbResult<Vec<CheckInEvent>> {
        let filter = match scope {
            EventScope::All => CheckInEventFilter::All,
            EventScope::OwnedBy(id) => CheckInEventFilter::OwnedBy(id),
            EventScope::AssignedTo(id) => CheckInEventFilter::AssignedTo(id),
        };
        let from: Timestamp = self.clock.now() - EVENTS_SINCE;
        self.db.read(move |tx| check_in::event_list(tx, filter, from, EVENTS_MAX)).await
    }
}

impl PersonFinder {
    /// The initials of users. While the auth service is away there are none: the list is needed
    /// most when something is away.
    async fn find_initials(
        &self,
        user_ids: &[Uuid],
        context: &CallContext,
    ) -> HashMap<Uuid, String> {
        let PersonFinder::Auth(auth) = self else { return HashMap::new() };
        let calls = user_ids.chunks(USERS_PER_CALL_MAX).map(|chunk| {
            let (auth, context) = (auth.clone(), *context);
            let user_ids = chunk.to_vec();
            async move { auth.call(ListUsers { user_ids }, &context).await }
        });
        let calls: Vec<_> = calls.collect();
        let mut answers = stream::iter(calls).buffer_unordered(NAME_CALLS_AT_ONCE);
        let mut found = HashMap::new();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => found
                    .extend(answer.users.into_iter().map(|user| (user.id, initials(&user.name)))),
                Err(error) => tracing::warn!(%error, "a check-in list is without names"),
            }
        }
        found
    }
}
