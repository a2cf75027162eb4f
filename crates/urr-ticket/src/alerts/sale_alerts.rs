//! Alerts before a sale opens: one mail per opening, at the time at which the fan may buy.

use std::time::Duration;

use urr_contracts::events::alert::SaleAlertDue;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, StorageError, Tx, outbox};

use crate::alerts::rules::{LATE_MAX, SaleAlertStep, decide_sale_alert};
use crate::alerts::store;
use crate::inventory::rules::NotOnSale;
use crate::inventory::store::{policy_find, sale_title_find};
use crate::memberships::tiers::tier_find;
use crate::reservations::transition::PreparedEvents;
use crate::{SalePolicy, TicketService, Tier};

/// A fan's alert about an opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaleAlert {
    pub event_id: Uuid,
    pub title: String,
    pub venue_name: String,
    pub starts_at: Timestamp,
    /// When the fan may buy, by their present tier.
    pub opens_at: Timestamp,
    /// When the mail is sent.
    pub alert_at: Timestamp,
    pub told_at: Option<Timestamp>,
    pub asked_at: Timestamp,
}

/// An alert with its sale, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct SaleAlertRow {
    pub event_id: Uuid,
    pub title: String,
    pub venue_name: String,
    pub told_at: Option<Timestamp>,
    pub asked_at: Timestamp,
    pub policy: SalePolicy,
}

/// An alert that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueSaleAlert {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub told_opens_at: Option<Timestamp>,
    pub due_at: Timestamp,
}

/// Why there is no alert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaleAlertError {
    #[error(transparent)]
    NotOnSale(#[from] NotOnSale),
    #[error("The sale has begun. You can buy now.")]
    HasBegun,
    #[error("You have {alerts_max} alerts already. Please withdraw one first.")]
    TooMany { alerts_max: u32 },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// Asks to be told before the sale opens. Repeating it changes nothing.
    pub async fn ask_sale_alert(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> Result<SaleAlert, SaleAlertError> {
        let (settings, now) = (self.settings.alerts.clone(), self.clock.now());
        let ask = move |tx: &mut Tx<'_>| {
            let policy = policy_find(tx, event_id)?.ok_or(NotOnSale::NotFound)?;
            let tier = tier_of(tx, &policy, user_id, now)?;
            match policy.check_open(tier, now) {
                Err(NotOnSale::NotOpen { .. } | NotOnSale::Presale { .. }) => {}
                Err(reason) => return Err(reason.into()),
                Ok(()) => return Err(SaleAlertError::HasBegun),
            }
            let find = |tx: &mut Tx<'_>| store::sale_alert_list(tx, user_id, Some(event_id));
            if find(tx)?.is_empty() {
                let alerts_max = settings.sale_alerts_per_user_max;
                store::alert_owner_lock(tx, user_id)?;
                if store::sale_alert_count(tx, user_id)? >= alerts_max {
                    return Err(SaleAlertError::TooMany { alerts_max });
                }
                store::sale_alert_insert(tx, event_id, user_id, now)?;
            }
            let row = find(tx)?.pop().expect("it is there now");
            Ok(row.with_opening(tier, settings.sale_lead))
        };
        self.db.write(ask).await
    }

    /// Withdraws the alert, if there is one.
    pub async fn withdraw_sale_alert(&self, event_id: Uuid, user_id: Uuid) -> DbResult<()> {
        self.db.write(move |tx| store::sale_alert_delete(tx, event_id, user_id)).await
    }

    pub async fn my_sale_alerts(&self, user_id: Uuid) -> DbResult<Vec<SaleAlert>> {
        let (lead, now) = (self.settings.alerts.sale_lead, self.clock.now());
        let list = move |tx: &mut Tx<'_>| {
            let rows = store::sale_alert_list(tx, user_id, None)?;
            let mut alerts = Vec::with_capacity(rows.len());
            for row in rows {
                let tier = tier_of(tx, &row.policy, user_id, now)?;
                alerts.push(row.with_opening(tier, lead));
            }
            Ok(alerts)
        };
        self.db.read(list).await
    }

    /// Tells the fans whose sale is about to open. Returns how many alerts were looked at.
    pub async fn tell_sale_alerts(&self) -> DbResult<u64> {
        let (lead, metrics) = (self.settings.alerts.sale_lead, self.metrics.clone());
        let mut looked_at = 0;
        loop {
            let (prepared, now) = (self.prepare_alerts(), self.clock.now());
            let tell = move |tx: &mut Tx<'_>| tell_batch(tx, &prepared, lead, now);
            let batch: ToldBatch = self.db.write(tell).await?;
            metrics.count_alerts_told("sale", batch.told);
            looked_at += u64::try_from(batch.looked_at).unwrap_or(u64::MAX);
            if batch.looked_at < AT_ONCE as usize {
                return Ok(looked_at);
            }
        }
    }
}

/// How many alerts one transaction handles.
pub(crate) const AT_ONCE: u32 = 250;

struct ToldBatch {
    looked_at: usize,
    told: usize,
}

impl SaleAlertRow {
    fn with_opening(self, tier: Option<Tier>, lead: Duration) -> SaleAlert {
        let opens_at = self.policy.opens_at(tier);
        SaleAlert {
            event_id: self.event_id,
            title: self.title,
            venue_name: self.venue_name,
            starts_at: self.policy.starts_at,
            opens_at,
            alert_at: opens_at - lead,
            told_at: self.told_at,
            asked_at: self.asked_at,
        }
    }
}

/// The tier, as long as it decides when the user may buy.
pub(crate) fn tier_of(
    tx: &mut Tx<'_>,
    policy: &SalePolicy,
    user_id: Uuid,
    now: Timestamp,
) -> DbResult<Option<Tier>> {
    match policy.artist_id {
        Some(artist_id) if policy.is_before_general_sale(now) => {
            tier_find(tx, artist_id, user_id, now)
        }
        _ => Ok(None),
    }
}

fn tell_batch(
    tx: &mut Tx<'_>,
    prepared: &PreparedEvents,
    lead: Duration,
    now: Timestamp,
) -> DbResult<ToldBatch> {
    let due = store::sale_alert_list_due(tx, now, AT_ONCE)?;
    let mut told = 0;
    for (at, alert) in due.iter().enumerate() {
        let Some(policy) = policy_find(tx, alert.event_id)? else {
            store::sale_alert_end(tx, alert)?;
            continue;
        };
        let tier = tier_of(tx, &policy, alert.user_id, now)?;
        match decide_sale_alert(&policy, tier, alert.told_opens_at, lead, now) {
            SaleAlertStep::End => store::sale_alert_end(tx, alert)?,
            SaleAlertStep::Wait { until } => store::sale_alert_postpone(tx, alert, until)?,
            SaleAlertStep::Tell { opens_at } => {
                let due_at = opens_at + LATE_MAX;
                if store::sale_alert_mark_told(tx, alert, opens_at, due_at, now)? {
                    let event = announcement(tx, alert, &policy, opens_at)?;
                    outbox::append(tx, &prepared.stamp(at), &event)?;
                    told += 1;
                }
            }
        }
    }
    Ok(ToldBatch { looked_at: due.len(), told })
}

fn announcement(
    tx: &mut Tx<'_>,
    alert: &DueSaleAlert,
    policy: &SalePolicy,
    opens_at: Timestamp,
) -> DbResult<SaleAlertDue> {
    let (event_title, venue_name) = sale_title_find(tx, alert.event_id)?;
    Ok(SaleAlertDue {
        user_id: alert.user_id,
        event_id: alert.event_id,
        event_title,
        venue_name,
        event_starts_at: policy.starts_at,
        opens_at,
        is_presale: policy.has_presale && opens_at < policy.opens_at(None),
    })
}
