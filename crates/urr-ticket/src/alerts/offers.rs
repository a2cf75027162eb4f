//! Tells fans that seats have returned, in the order of asking with a head start each.

use std::collections::{BTreeMap, HashSet};

use urr_contracts::events::alert::SeatAlertDue;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::{DbResult, StorageError, Tx, outbox};

use crate::alerts::gates::{AlertGate, GatePeriod};
use crate::alerts::rules::{AlertSubject, OfferBudget, SeatWish, free_of};
use crate::alerts::sale_alerts::AT_ONCE;
use crate::alerts::seat_alerts::{EventStock, subject_name};
use crate::alerts::store::{self, WaitingFan};
use crate::inventory::store::{LockedSale, sale_lock_only, sale_title_find};
use crate::reservations::transition::PreparedEvents;
use crate::{AlertSettings, SaleStatus, TicketService};

const EVENTS_AT_ONCE: u32 = 100;

/// Fans who cannot use what is free are looked at again after this time: they may have given back
/// a hold.
const RECHECK_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// Told alerts are in the fan's list for so long.
const TOLD_RETENTION: std::time::Duration = std::time::Duration::from_hours(30 * 24);

impl TicketService {
    /// Tells the fans whose turn it is. Returns how many.
    pub async fn tell_seat_alerts(&self) -> DbResult<u64> {
        let now = self.clock.now();
        let due = self.db.read(move |tx| store::gate_list_due(tx, now, EVENTS_AT_ONCE)).await?;
        let mut told = 0;
        for event_id in due {
            match self.tell_event(event_id).await {
                Ok(count) => told += u64::try_from(count).unwrap_or(u64::MAX),
                // The others do not wait for it.
                Err(error) => {
                    tracing::warn!(%event_id, %error, "fans could not be told of returned seats");
                }
            }
        }
        Ok(told)
    }

    async fn tell_event(&self, event_id: Uuid) -> DbResult<usize> {
        let Some(stock) = self.load_stock(event_id).await? else { return Ok(0) };
        let (settings, now) = (self.settings.alerts.clone(), self.clock.now());
        let prepared = self.prepare_alerts();
        let round = OfferRound { event_id, stock, settings, now };
        let told = self.db.write(move |tx| round.run(tx, &prepared)).await?;
        self.metrics.count_alerts_told("seat", told);
        Ok(told)
    }

    /// Ends alerts of events that are over and of fans who have bought. Returns how many events
    /// ended.
    pub async fn end_seat_alerts(&self) -> DbResult<u64> {
        let now = self.clock.now();
        let end = move |tx: &mut Tx<'_>| {
            let ended = store::gate_list_ended(tx, now, EVENTS_AT_ONCE)?;
            for event_id in &ended {
                sale_lock_only(tx, *event_id)?;
                store::event_alerts_end(tx, *event_id)?;
            }
            store::bought_alerts_delete(tx)?;
            store::told_alerts_delete(tx, now - TOLD_RETENTION)?;
            Ok::<_, StorageError>(ended.len())
        };
        let ended = self.db.write(end).await?;
        let (sales, seats) = self.db.read(store::alert_count_waiting).await?;
        self.metrics.set_alerts_waiting(sales, seats);
        Ok(u64::try_from(ended).unwrap_or(u64::MAX))
    }

    /// Ids for as many announcements as one transaction makes.
    pub(crate) fn prepare_alerts(&self) -> PreparedEvents {
        self.prepare_events(AT_ONCE as usize, CallContext::root(self.ids.next_id()))
    }
}

/// One look at the fans who wait for an event.
struct OfferRound {
    event_id: Uuid,
    stock: EventStock,
    settings: AlertSettings,
    now: Timestamp,
}

/// A wish of a fan in their head start, and when that ends.
type HeadStart = (SeatWish, Timestamp);

impl OfferRound {
    /// Locks, looks, tells, sets the gates. Returns how many fans were told.
    fn run(&self, tx: &mut Tx<'_>, prepared: &PreparedEvents) -> DbResult<usize> {
        let Some(sale) = sale_lock_only(tx, self.event_id)? else { return Ok(0) };
        let gates = store::gate_list(tx, self.event_id)?;
        let is_due = |gate: &AlertGate| gate.next_at.is_some_and(|next_at| next_at <= self.now);
        if !gates.iter().any(is_due) {
            // Another process was faster.
            return Ok(0);
        }
        let policy = &sale.policy;
        if policy.status != SaleStatus::Open
            || self.now >= policy.sale_ends_at.min(policy.starts_at)
        {
            store::event_alerts_end(tx, self.event_id)?;
            return Ok(0);
        }
        let free = self.stock.free(tx, &sale)?;
        let mut head_starts = self.head_starts(tx)?;
        let fans = self.waiting_fans(tx, &sale, &free)?;
        let claims: Vec<SeatWish> = head_starts.iter().map(|(wish, _)| wish.clone()).collect();
        let mut budget = OfferBudget::new(&free, &claims);
        let (chosen, others): (Vec<WaitingFan>, Vec<WaitingFan>) =
            fans.into_iter().partition(|fan| budget.try_take(&fan.wish));
        let mut told = 0;
        for (at, fan) in chosen.iter().enumerate() {
            if store::seat_alert_mark_told(tx, fan.id, self.now)? {
                let is_closed = self.is_closed(&gates, &fan.wish.subject);
                let event = self.announcement(tx, &sale, fan, is_closed)?;
                outbox::append(tx, &prepared.stamp(at), &event)?;
                head_starts.push((fan.wish.clone(), self.now + self.settings.head_start));
                told += 1;
            }
        }
        self.set_gates(tx, &sale, gates, &free, &head_starts, &others)?;
        Ok(told)
    }

    fn head_starts(&self, tx: &mut Tx<'_>) -> DbResult<Vec<HeadStart>> {
        let head_start = self.settings.head_start;
        let told = store::told_wish_list(tx, self.event_id, self.now - head_start)?;
        Ok(told.into_iter().map(|(wish, told_at)| (wish, told_at + head_start)).collect())
    }

    /// The fans who could take what they want of what is free, in the order of asking. Those who
    /// have bought since they asked do not wait any more.
    fn waiting_fans(
        &self,
        tx: &mut Tx<'_>,
        sale: &LockedSale,
        free: &BTreeMap<String, u32>,
    ) -> DbResult<Vec<WaitingFan>> {
        let grades = free.keys().map(|grade| AlertSubject::stored(grade.clone()));
        let mut waiting = Vec::new();
        for subject in grades.chain([AlertSubject::whole_event()]) {
            let free = free_of(free, &subject);
            if free > 0 {
                let (event_id, limit) = (self.event_id, AT_ONCE);
                waiting.extend(store::waiting_fan_list(tx, event_id, &subject, free, limit)?);
            }
        }
        waiting.sort_by_key(|fan| fan.number);
        waiting.truncate(AT_ONCE as usize);
        let mut fans = Vec::with_capacity(waiting.len());
        for fan in waiting {
            let quantity = fan.live_quantity + fan.wish.quantity;
            if fan.has_bought {
                store::seat_alert_delete(tx, fan.id)?;
            } else if quantity <= sale.policy.seats_per_user_max {
                fans.push(fan);
            }
        }
        Ok(fans)
    }

    fn is_closed(&self, gates: &[AlertGate], subject: &AlertSubject) -> bool {
        let max = self.settings.exclusive_max;
        let is_in_force =
            |gate: &AlertGate| gate.subject == *subject && gate.is_in_force(max, self.now);
        !max.is_zero() && gates.iter().any(is_in_force)
    }

    fn announcement(
        &self,
        tx: &mut Tx<'_>,
        sale: &LockedSale,
        fan: &WaitingFan,
        is_closed: bool,
    ) -> DbResult<SeatAlertDue> {
        let (event_title, venue_name) = sale_title_find(tx, self.event_id)?;
        let AlertSettings { head_start, exclusive_max, .. } = self.settings;
        let policy = &sale.policy;
        let useful_until = self.now + head_start.max(exclusive_max);
        Ok(SeatAlertDue {
            alert_id: fan.id.0,
            user_id: fan.user_id,
            event_id: self.event_id,
            event_title,
            venue_name,
            event_starts_at: policy.starts_at,
            grade: subject_name(tx, &fan.wish.subject)?,
            quantity: fan.wish.quantity,
            head_start_until: is_closed.then(|| self.now + head_start),
            useful_until: useful_until.min(policy.sale_ends_at),
        })
    }

    /// A gate stays closed while somebody has a head start or waits for a turn. It is deleted when
    /// nobody waits, and idle when nothing is free.
    fn set_gates(
        &self,
        tx: &mut Tx<'_>,
        sale: &LockedSale,
        gates: Vec<AlertGate>,
        free: &BTreeMap<String, u32>,
        head_starts: &[HeadStart],
        others: &[WaitingFan],
    ) -> DbResult<()> {
        let awaited: HashSet<AlertSubject> = store::waiting_subject_list(tx, self.event_id)?;
        let mut left = 0;
        for gate in gates {
            let overlaps = |(wish, _): &&HeadStart| gate.subject.overlaps(&wish.subject);
            let overlapping = head_starts.iter().filter(overlaps);
            let next_end = overlapping.map(|(_, until)| *until).min();
            let ended = gate.period_until(sale.fence, self.settings.exclusive_max);
            if !awaited.contains(&gate.subject) && next_end.is_none() {
                self.note_period(tx, ended)?;
                store::gate_delete(tx, self.event_id, &gate.subject)?;
                continue;
            }
            left += 1;
            let has_next = others.iter().any(|fan| fan.wish.subject == gate.subject);
            let next = match free_of(free, &gate.subject) {
                0 => {
                    let closed_fence = sale.fence;
                    let (returned_at, next_at) = (None, None);
                    AlertGate { returned_at, is_open: false, next_at, closed_fence, ..gate }
                }
                _ => {
                    let is_timely = gate.is_in_force(self.settings.exclusive_max, self.now);
                    let is_open = !is_timely || (next_end.is_none() && !has_next);
                    let next_at = next_end.unwrap_or(self.now + RECHECK_EVERY);
                    let returned_at = gate.returned_at.or(Some(self.now));
                    AlertGate { is_open, returned_at, next_at: Some(next_at), ..gate }
                }
            };
            if next.is_open || next.returned_at.is_none() {
                self.note_period(tx, ended)?;
            }
            store::gate_update(tx, self.event_id, &next)?;
        }
        store::sale_mark_alerts(tx, self.event_id, left > 0)
    }

    /// The audit compares who took what in this time with who was told.
    fn note_period(&self, tx: &mut Tx<'_>, period: Option<GatePeriod>) -> DbResult<()> {
        match period {
            Some(period) => store::gate_period_insert(tx, self.event_id, &period),
            None => Ok(()),
        }
    }
}
