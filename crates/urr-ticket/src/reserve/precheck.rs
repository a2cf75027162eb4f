//! Early rejections: a request that cannot succeed locks no seat. In a pre-sale, users without a
//! membership do not make seats look busy for members.
//!
//! It only rejects. Whether a user may buy is decided under the lock of the sale. A request for the
//! best seats names none, so it locks none and is not checked here.

use urr_kernel::{Clock, Uuid};
use urr_storage::{Db, DbResult};

use crate::TicketService;
use crate::batcher::Batcher;
use crate::inventory::rules::{NotOnSale, Tier};
use crate::memberships::tiers::tier_list;
use crate::reserve::rules::RequestedItems;

/// Why a request cannot succeed.
pub enum EarlyRejection {
    NotOnSale(NotOnSale),
    /// The answer depends on the user's other reservations, or the tier could not be loaded.
    Undecided,
}

/// Loads the tiers of buyers in batches, by artist.
pub type TierBatcher = Batcher<Uuid, DbResult<Option<Tier>>>;

/// At the opening of a pre-sale the tiers of many members are loaded together.
pub fn tier_batcher(db: &Db, clock: &Clock) -> TierBatcher {
    let (db, clock) = (db.clone(), clock.clone());
    let work = move |artist_id, user_ids: Vec<Uuid>| {
        let (db, now) = (db.clone(), clock.now());
        async move {
            let asked = user_ids.clone();
            match db.read(move |tx| tier_list(tx, artist_id, &asked, now)).await {
                Ok(tiers) => user_ids.iter().map(|id| Ok(tiers.get(id).copied())).collect(),
                Err(error) => vec![Err(error); user_ids.len()],
            }
        }
    };
    Batcher::new(work, |_| {})
}

impl TicketService {
    /// Why the request would be rejected, as far as is known without the lock of the sale.
    pub(crate) async fn find_early_rejection(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        requested: &RequestedItems,
    ) -> Option<EarlyRejection> {
        if matches!(requested, RequestedItems::Best(_)) {
            return None;
        }
        let policy = self.inventories.policy(event_id).await?;
        let tier = match policy.artist_id {
            // The tier matters only then.
            Some(artist_id) if policy.is_before_general_sale(self.clock.now()) => {
                match self.batchers.tiers.submit(artist_id, user_id).await {
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
