//! Who cannot have anything now is told so before they lock a seat: in a pre-sale the crowd without
//! a membership makes no seat look busy for those who have one.
//!
//! It decides against someone only. Whether they may buy is decided under the lock of the sale.

use urr_kernel::{Clock, Uuid};
use urr_storage::{Db, StorageError};

use crate::TicketService;
use crate::batcher::Batcher;
use crate::inventory::rules::{NotOnSale, Tier};
use crate::memberships::tiers::{Fan, tier_list};
use crate::reserve::rules::RequestedItems;

/// Why a request cannot succeed, or is not known to.
pub enum EarlyRejection {
    NotOnSale(NotOnSale),
    /// What they are told depends on what they have, or their tier could not be looked up.
    Undecided,
}

/// Where the standing of buyers is asked for.
pub type TierBatcher = Batcher<Fan, Result<Option<Tier>, StorageError>>;

/// However many members come at the opening of a pre-sale, they are looked up together.
pub fn tier_batcher(db: &Db, clock: &Clock) -> TierBatcher {
    let (db, clock) = (db.clone(), clock.clone());
    let work = move |_, fans: Vec<Fan>| {
        let (db, now) = (db.clone(), clock.now());
        async move {
            let requested_fans = fans.clone();
            match db.read(move |tx| tier_list(tx, &requested_fans, now)).await {
                Ok(tiers) => fans.iter().map(|fan| Ok(tiers.get(fan).copied())).collect(),
                Err(error) => vec![Err(error); fans.len()],
            }
        }
    };
    Batcher::new(work, |_| {})
}

impl TicketService {
    /// Why they could not have this, whatever is left, as far as can be told without the lock of
    /// the sale.
    pub(crate) async fn find_early_rejection(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        requested: &RequestedItems,
    ) -> Option<EarlyRejection> {
        let policy = self.batchers.policies.get(event_id).await?;
        let tier = match policy.artist_id {
            // The only time in which it matters.
            Some(artist_id) if policy.is_before_general_sale(self.clock.now()) => {
                match self.batchers.tiers.submit(event_id, Fan { user_id, artist_id }).await {
                    Ok(Ok(tier)) => tier,
                    Ok(Err(_)) | Err(_) => return Some(EarlyRejection::Undecided),
                }
            }
            _ => None,
        };
        match policy.check_open(tier, self.clock.now()) {
            Err(reason) => Some(EarlyRejection::NotOnSale(reason)),
            Ok(()) if requested.quantity() > policy.seats_per_user_max => {
                Some(EarlyRejection::Undecided)
            }
            Ok(()) => None,
        }
    }
}
