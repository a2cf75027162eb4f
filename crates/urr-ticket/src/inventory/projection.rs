//! What is known of an event. Merging is the same in every order and any number of times.

pub(crate) mod payload;
pub(crate) mod store;

use urr_kernel::Timestamp;

use crate::SaleStatus;
use crate::inventory::store::SaleFacts;

use crate::inventory::projection::payload::EventFacts;

/// The newest facts, and whether the event is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogState {
    pub status: SaleStatus,
    /// None: only its end was heard of so far.
    pub facts: Option<EventFacts>,
}

impl CatalogState {
    pub fn of_facts(facts: EventFacts) -> CatalogState {
        let status = if facts.is_cancelled() { SaleStatus::Cancelled } else { SaleStatus::Open };
        CatalogState { status, facts: Some(facts) }
    }

    pub fn of_end(status: SaleStatus) -> CatalogState {
        CatalogState { status, facts: None }
    }

    /// The newer facts and the later status. What is over stays over, whatever an edit says.
    pub fn merge(self, other: CatalogState) -> CatalogState {
        let newer = |facts: &EventFacts| facts.revision;
        let facts = self.facts.into_iter().chain(other.facts).max_by_key(newer);
        CatalogState { status: self.status.max(other.status), facts }
    }

    /// Whether it has taken place, as far as is known: it has begun and was not cancelled.
    pub fn has_taken_place(&self, now: Timestamp) -> bool {
        let has_begun = self.facts.as_ref().is_some_and(|facts| facts.has_begun(now));
        has_begun && self.status == SaleStatus::Open
    }

    pub fn sale_facts(&self) -> Option<SaleFacts> {
        let facts = self.facts.as_ref()?;
        Some(facts.to_sale_facts().expect("only checked facts are merged"))
    }
}
