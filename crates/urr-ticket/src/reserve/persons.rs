//! Persons: an event that requires a checked identity limits what a person has, not an account.
//!
//! The auth service says which person is behind an account, by keyed hashes. What the person has of
//! the event is counted under the lock of the sale, so two accounts of one person at the same moment
//! are decided one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use urr_contracts::clients::{AuthClient, ClientError};
use urr_contracts::internal::auth::GetPerson;
use urr_kernel::{CallContext, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::reserve::ReserveError;
use crate::reserve::rules::{HoldRejection, HoldRequest, SaleState};
use crate::{ReservationId, TicketService};

/// A person, by keyed hashes: one per data key of the auth service, the current one first. There is
/// at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonHashes(Vec<String>);

impl PersonHashes {
    /// `None` without a hash: the identity was not checked.
    pub fn parse(hashes: Vec<String>) -> Option<PersonHashes> {
        (!hashes.is_empty()).then_some(PersonHashes(hashes))
    }

    /// The one that new rows get.
    pub fn current(&self) -> &str {
        self.0.first().expect("there is at least one")
    }
}

/// Finds the person behind an account.
#[derive(Clone)]
pub enum PersonFinder {
    /// Knows these accounts only: for commands and for tests of the ticket service alone.
    Listed(Arc<HashMap<Uuid, PersonHashes>>),
    Auth(AuthClient),
}

impl PersonFinder {
    pub fn nobody() -> PersonFinder {
        PersonFinder::Listed(Arc::default())
    }

    async fn find(
        &self,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<PersonHashes>, ClientError> {
        match self {
            PersonFinder::Listed(persons) => Ok(persons.get(&user_id).cloned()),
            PersonFinder::Auth(auth) => {
                let answer = auth.call(GetPerson { id: user_id }, context).await?;
                Ok(PersonHashes::parse(answer.person_hashes))
            }
        }
    }
}

impl TicketService {
    /// The person behind an account, if the event requires one.
    pub(crate) async fn find_person(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<PersonHashes>, ReserveError> {
        let policy = self.inventories.policy(event_id).await;
        if !policy.is_some_and(|policy| policy.requires_identity) {
            return Ok(None);
        }
        match self.persons.find(user_id, context).await {
            Ok(Some(person)) => Ok(Some(person)),
            Ok(None) => Err(HoldRejection::IdentityRequired.into()),
            Err(error) => {
                tracing::warn!(%error, "a person cannot be looked up: they cannot book");
                Err(ReserveError::PersonUnavailable)
            }
        }
    }
}

/// Loads what the persons of these requests have of the event. The sale is locked.
pub fn persons_load(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    state: &mut SaleState,
) -> DbResult<()> {
    for person in requests.iter().filter_map(|request| request.person.as_ref()) {
        if state.persons.contains_key(person.current()) {
            continue;
        }
        let mut quantity = 0;
        for hash in &person.0 {
            quantity += person_quantity(tx, event_id, hash)?;
        }
        state.persons.insert(person.current().to_owned(), quantity);
    }
    Ok(())
}

fn person_quantity(tx: &mut Tx<'_>, event_id: Uuid, hash: &str) -> DbResult<u32> {
    tx.query_one(
        "select coalesce(sum(r.quantity), 0)::bigint as total from reservation_persons p \
         join reservations r on r.id = p.reservation_id \
         where p.event_id = $1 and p.person_hash = $2 and r.status in ('pending', 'confirmed')",
        params![event_id, hash],
        |row| row.get("total"),
    )
}

/// What the person of a reservation has of its event, this reservation included; 0 if the event
/// requires no identity.
pub fn quantity_with(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<u32> {
    tx.query_one(
        "select coalesce(sum(r.quantity), 0)::bigint as total from reservation_persons own \
         join reservation_persons p \
         on p.event_id = own.event_id and p.person_hash = own.person_hash \
         join reservations r on r.id = p.reservation_id \
         where own.reservation_id = $1 and r.status in ('pending', 'confirmed')",
        params![id],
        |row| row.get("total"),
    )
}

pub fn person_insert(
    tx: &mut Tx<'_>,
    id: ReservationId,
    event_id: Uuid,
    person: &PersonHashes,
) -> DbResult<()> {
    tx.execute(
        "insert into reservation_persons (reservation_id, event_id, person_hash) \
         values ($1, $2, $3)",
        params![id, event_id, person.current()],
    )?;
    Ok(())
}
