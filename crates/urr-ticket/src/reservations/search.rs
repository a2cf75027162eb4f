//! The search for reservations by number, address, name or phone number.
//!
//! Numbers are ours. Addresses and names are encrypted in the auth service, which finds an account
//! by a keyed hash: so a whole address or a whole name finds its reservations, a part does not. Guests
//! without an account are found in the same way, here.

use urr_contracts::internal::auth::{FindUsers, USERS_FOUND_MAX};
use urr_kernel::CallContext;
use urr_service::CursorPage;
use urr_storage::{StorageError, Tx};

use crate::display_number::parse_display_number;
use crate::reservations::details::{ReservationDetails, ReservationFilter};
use crate::reservations::store::{items, list};
use crate::{ReservationId, TicketService};

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationSearch {
    Id(ReservationId),
    Number(String),
    /// Of one of its tickets.
    TicketNumber(String),
    /// An address, a name or a phone number.
    Buyer(String),
}

/// Why nothing was looked for.
#[derive(Debug, thiserror::Error)]
pub enum ReservationSearchError {
    #[error("More than {USERS_FOUND_MAX} people have this name. Search by address or number.")]
    TooManyBuyers,
    #[error("Buyers cannot be looked up at the moment. A search by number works.")]
    BuyersUnavailable,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ReservationSearch {
    /// None for an empty text.
    pub fn parse(text: &str) -> Option<ReservationSearch> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if let Ok(id) = text.parse() {
            return Some(ReservationSearch::Id(ReservationId(id)));
        }
        if let Some(number) = parse_display_number('R', text) {
            return Some(ReservationSearch::Number(number));
        }
        if let Some(number) = parse_display_number('T', text) {
            return Some(ReservationSearch::TicketNumber(number));
        }
        Some(ReservationSearch::Buyer(text.to_owned()))
    }
}

impl TicketService {
    /// A page of the reservations that fit, the newest first; one row more than the page has.
    pub async fn search_reservations(
        &self,
        search: Option<ReservationSearch>,
        filter: ReservationFilter,
        page: CursorPage,
        context: &CallContext,
    ) -> Result<Vec<ReservationDetails>, ReservationSearchError> {
        let filter = match search {
            None => filter,
            Some(search) => match self.resolve(search, filter, context).await? {
                Some(filter) => filter,
                None => return Ok(Vec::new()),
            },
        };
        let read = move |tx: &mut Tx<'_>| {
            let records = list::record_page_after(tx, &filter, page)?;
            let ids: Vec<_> = records.iter().map(|record| record.reservation.id.0).collect();
            let items = items::item_list_of(tx, &ids)?;
            Ok::<_, StorageError>((records, items))
        };
        let (records, items) = self.db.read(read).await?;
        Ok(self.with_inventories(records, items).await?)
    }

    /// The filter with what is looked for. None: there can be no such reservation.
    async fn resolve(
        &self,
        search: ReservationSearch,
        filter: ReservationFilter,
        context: &CallContext,
    ) -> Result<Option<ReservationFilter>, ReservationSearchError> {
        let find = |number: String, of: list::NumberOf| {
            self.db.read(move |tx| list::reservation_find_by_number(tx, of, &number))
        };
        let id = match search {
            ReservationSearch::Id(id) => Some(id),
            ReservationSearch::Number(number) => find(number, list::NumberOf::Reservation).await?,
            ReservationSearch::TicketNumber(number) => find(number, list::NumberOf::Ticket).await?,
            ReservationSearch::Buyer(text) => {
                let buyers = self.find_buyer_ids(text, context).await?;
                return Ok((!buyers.is_empty())
                    .then_some(ReservationFilter { buyers: Some(buyers), ..filter }));
            }
        };
        Ok(id.map(|id| ReservationFilter { id: Some(id), ..filter }))
    }

    async fn find_buyer_ids(
        &self,
        text: String,
        context: &CallContext,
    ) -> Result<Vec<urr_kernel::Uuid>, ReservationSearchError> {
        let peers = self.peers.as_ref().ok_or(ReservationSearchError::BuyersUnavailable)?;
        let mut found = self.find_guest_ids(&text, USERS_FOUND_MAX).await?;
        match peers.auth.call(FindUsers { text }, context).await {
            Ok(answer) if answer.more => return Err(ReservationSearchError::TooManyBuyers),
            Ok(answer) => found.extend(answer.user_ids),
            Err(error) => {
                tracing::warn!(%error, "buyers cannot be looked up");
                return Err(ReservationSearchError::BuyersUnavailable);
            }
        }
        match found.len() <= USERS_FOUND_MAX {
            true => Ok(found),
            false => Err(ReservationSearchError::TooManyBuyers),
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    #[test]
    fn a_search_is_an_id_a_number_or_a_buyer() {
        let search = |text: &str| ReservationSearch::parse(text).unwrap();
        assert_eq!(ReservationSearch::parse("  "), None);
        let id = Uuid::from_u128(7);
        assert_eq!(search(&id.to_string()), ReservationSearch::Id(ReservationId(id)));
        let number = "R-7ZQ0-M4KD-91XA".to_owned();
        assert_eq!(search("r7zq0m4kd91xa"), ReservationSearch::Number(number));
        let number = "T-4GZ8-0QKX-M2VD".to_owned();
        assert_eq!(search("T-4GZ8-0QKX-M2VD"), ReservationSearch::TicketNumber(number));
        for buyer in ["김민아", "mina@example.com", "010-1234-5678", "Tae-ho"] {
            assert_eq!(search(buyer), ReservationSearch::Buyer(buyer.to_owned()), "{buyer}");
        }
    }
}
