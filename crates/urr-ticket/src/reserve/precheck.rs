//! Who cannot have anything now is told so before they lock a seat: in a pre-sale the crowd without
//! a membership makes no seat look busy for those who have one.
//!
//! It decides against someone only. Whether they may buy is decided under the lock of the sale.

use urr_kernel::{Clock, Uuid};
use urr_storage::{Db, StorageError};

use crate::Ticket;
use crate::batcher::Desk;
use crate::inventory::rules::{NotOnSale, Tier};
use crate::memberships::tiers::{Fan, tier_list};
use crate::reserve::rules::Wanted;

/// Why a request cannot succeed, or is not known to.
pub enum Barred {
    NotOnSale(NotOnSale),
    /// What they are told depends on what they have, or their tier could not be looked up.
    Somehow,
}

/// Where the standing of buyers is asked for.
pub type TierDesk = Desk<Fan, Result<Option<Tier>, StorageError>>;

/// However many members come at the opening of a pre-sale, they are looked up together.
pub fn tier_desk(db: &Db, clock: &Clock) -> TierDesk {
    let (db, clock) = (db.clone(), clock.clone());
    let work = move |_, fans: Vec<Fan>| {
        let (db, now) = (db.clone(), clock.now());
        async move {
            let asked = fans.clone();
            match db.read(move |tx| tier_list(tx, &asked, now)).await {
                Ok(tiers) => fans.iter().map(|fan| Ok(tiers.get(fan).copied())).collect(),
                Err(error) => vec![Err(error); fans.len()],
            }
        }
    };
    Desk::new(work, |_| {})
}

impl Ticket {
    /// Why they could not have this, whatever is left, as far as can be told without the lock of
    /// the sale.
    pub(crate) async fn find_barred(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        wanted: &Wanted,
    ) -> Option<Barred> {
        let policy = self.desks.policies.get(event_id).await?;
        let tier = match policy.artist_id {
            // The only time in which it matters.
            Some(artist_id) if policy.is_before_general_sale(self.clock.now()) => {
                match self.desks.tiers.ask(event_id, Fan { user_id, artist_id }).await {
                    Ok(Ok(tier)) => tier,
                    Ok(Err(_)) | Err(_) => return Some(Barred::Somehow),
                }
            }
            _ => None,
        };
        match policy.check_open(tier, self.clock.now()) {
            Err(reason) => Some(Barred::NotOnSale(reason)),
            Ok(()) if wanted.quantity() > policy.seats_per_user_max => Some(Barred::Somehow),
            Ok(()) => None,
        }
    }
}
