//! What has to be done from time to time: letting people in, dropping those who are gone, ending the
//! slots of those who have bought, telling those whose turn is near and the statistics, and looking
//! at what is left.
//!
//! Every process may do all of it at once: the rooms see to it that together they let in no more
//! than one alone. Each event has its own turn: a slow one stops no other (P-6).

mod ending;
mod turns;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_kernel::Uuid;
use urr_storage::StorageError;

use self::turns::EventTasks;
use crate::draw::draw_due;
use crate::metrics::{RoomGauges, AdmissionPath};
use crate::status::has_ended;
use crate::store::slot_ends::{self, SlotEnd};
use crate::{RoomPhase, QueueService};
use urr_room::RoomError;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const REMIND_EVERY: Duration = Duration::from_secs(3);
/// More often than once a minute, so that no minute is missed.
const OBSERVE_EVERY: Duration = Duration::from_secs(20);
/// Few enough that a room does not feel it.
const SWEPT_AT_ONCE: u32 = 1_000;
const PURCHASES_AT_ONCE: u32 = 500;

impl QueueService {
    /// Does what has to be done from time to time, until it is told to stop. What is under way then
    /// ends at its next wait; every step is whole by itself.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let jobs = async {
            tokio::join!(
                self.run_directory(),
                self.run_admission(),
                self.run_draws(),
                self.run_sweep(),
                self.run_purchases(),
                self.run_reminders(),
                self.run_observations(),
                self.run_pulse()
            )
        };
        stop.run_until_cancelled(jobs).await;
    }

    async fn run_directory(&self) {
        let mut tick = every(LOOK_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.load().await {
                tracing::warn!(%error, "what is known of the events could not be read; tried again");
            }
        }
    }

    async fn run_admission(&self) {
        let mut turns = EventTasks::default();
        let mut tick = every(self.0.settings.admission_interval);
        loop {
            tick.tick().await;
            let mut events: BTreeSet<Uuid> = self.events_with_people().await.into_iter().collect();
            events.extend(self.0.event_index.awaiting_clearing());
            for event_id in events {
                let queue = self.clone();
                turns.begin(event_id, async move { queue.admit(event_id).await });
            }
        }
    }

    /// A lottery is drawn even if nobody came: only then is its door opened.
    async fn run_draws(&self) {
        let mut turns = EventTasks::default();
        let mut tick = every(LOOK_EVERY);
        loop {
            tick.tick().await;
            let now = self.0.clock.now();
            for event in self.0.event_index.undrawn() {
                if event.phase(&self.0.settings, now) != RoomPhase::Drawing {
                    continue;
                }
                let queue = self.clone();
                turns.begin(event.event_id, async move {
                    if let Err(error) = draw_due(&queue, &event, now).await {
                        let event_id = event.event_id;
                        tracing::warn!(%event_id, %error, "a draw did not get on; tried again");
                    }
                });
            }
        }
    }

    async fn run_sweep(&self) {
        let mut turns = EventTasks::default();
        let mut tick = every(self.0.settings.sweep_interval);
        loop {
            tick.tick().await;
            for event_id in self.events_with_people().await {
                let queue = self.clone();
                turns.begin(event_id, async move { queue.sweep(event_id).await });
            }
        }
    }

    async fn run_purchases(&self) {
        let mut tick = every(LOOK_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.end_bought_slots().await {
                tracing::warn!(%error, "purchases could not be read; tried again");
            }
        }
    }

    async fn run_reminders(&self) {
        let mut turns = EventTasks::default();
        let mut tick = every(REMIND_EVERY);
        loop {
            tick.tick().await;
            match self.events_with_reminders().await {
                Ok(events) => {
                    for event_id in events {
                        let queue = self.clone();
                        turns.begin(event_id, async move { queue.remind(event_id).await });
                    }
                }
                Err(error) => tracing::warn!(%error, "reminders could not be read; tried again"),
            }
        }
    }

    async fn run_observations(&self) {
        let mut tick = every(OBSERVE_EVERY);
        loop {
            tick.tick().await;
            self.observe().await;
        }
    }

    async fn run_pulse(&self) {
        let mut tick = every(LOOK_EVERY);
        loop {
            tick.tick().await;
            self.refresh_health().await;
        }
    }

    /// Lets in from the line of an event as many as may come; ends its room if the sale is over.
    pub async fn admit(&self, event_id: Uuid) {
        let now = self.0.clock.now();
        let Some(event) = self.0.event_index.get(event_id) else {
            // It may be news, or have ended long ago.
            return self.empty(event_id, now).await;
        };
        if has_ended(event.phase(&self.0.settings, now)) {
            if self.is_long_over(&event, now) {
                self.empty(event_id, now).await;
            }
            return;
        }
        if event.awaits_clearing {
            return self.send_home(event_id, now).await;
        }
        match self.count_errors(self.0.rooms.admit(event_id, &self.rules_of(&event, now), now).await) {
            Ok(admitted) if admitted.is_empty() => {}
            Ok(admitted) => {
                tracing::debug!(%event_id, count = admitted.len(), "let in");
                self.0.metrics.count_admitted(AdmissionPath::FromLine, admitted.len());
                self.0.notices.admitted(event_id, &admitted, now);
            }
            Err(error) => tracing::warn!(%event_id, %error, "nobody could be let in; tried again"),
        }
    }

    /// Drops those from the line of an event who were not seen for too long.
    pub async fn sweep(&self, event_id: Uuid) {
        if self.0.event_index.get(event_id).is_none() {
            return;
        }
        loop {
            let now = self.0.clock.now();
            let unseen_since = now - self.0.settings.seen_ttl;
            let swept = self.0.rooms.sweep(event_id, unseen_since, SWEPT_AT_ONCE, now).await;
            match self.count_errors(swept) {
                Ok(count) => {
                    self.0.metrics.count_dropped(count);
                    if count < SWEPT_AT_ONCE {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%event_id, %error, "the line was not looked through");
                    return;
                }
            }
        }
    }

    /// Ends the slots of those whose purchases were heard of. What a room does not answer to is
    /// tried again next time.
    pub async fn end_bought_slots(&self) -> Result<(), StorageError> {
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut urr_storage::Tx<'_>| {
                slot_ends::slot_end_list(tx, after, PURCHASES_AT_ONCE)
            };
            let heard = self.0.db.read(list).await?;
            let Some(last) = heard.last() else { return Ok(()) };
            after = last.reservation_id;
            let ended = join_all(heard.iter().map(|purchase| self.end_bought_slot(purchase))).await;
            let done = heard.iter().zip(ended).filter(|(_, ended)| ended.is_ok());
            let done: Vec<Uuid> = done.map(|(purchase, _)| purchase.reservation_id).collect();
            self.0.db.write(move |tx| slot_ends::slot_end_delete(tx, &done)).await?;
        }
    }

    async fn end_bought_slot(&self, purchase: &SlotEnd) -> Result<(), RoomError> {
        let SlotEnd { event_id, user_id, bought_at, .. } = *purchase;
        if self.finish(event_id, user_id, bought_at).await? {
            self.0.metrics.count_finished();
        }
        Ok(())
    }

    /// Looks at what is left of the events with people in their rooms, and at the rooms themselves.
    pub async fn refresh_health(&self) {
        let event_ids = self.events_with_people().await;
        let asked = self.events_of_interest(&event_ids, self.0.clock.now());
        self.refresh_sales_health(&asked).await;
        let now = self.0.clock.now();
        let events: Vec<_> =
            event_ids.iter().filter_map(|event_id| self.0.event_index.get(*event_id)).collect();
        let booking = self.0.sales_health.booking(now);
        self.0.autopilots.turn(&events, booking, &self.0.settings);
        let crowds = events.iter().map(|event| self.0.crowds.get(event.event_id, now));
        let crowds = join_all(crowds).await;
        let shown = events.iter().zip(&crowds).filter_map(|(event, crowd)| {
            let crowd = crowd.as_ref().ok()?;
            let wait = self.longest_wait(event, crowd).map(|wait| wait.seconds);
            Some(RoomGauges { event_id: event.event_id, crowd: &crowd.crowd, wait_seconds: wait })
        });
        self.0.metrics.show_crowds(shown);
    }

    /// If the rooms cannot be listed, those that had people before and those that someone asked for
    /// lately: one list that is not answered for must not stop every line.
    pub(crate) async fn events_with_people(&self) -> Vec<Uuid> {
        match self.count_errors(self.0.rooms.occupied_events().await) {
            Ok(events) => {
                let mut occupied = self.0.occupied.write().unwrap_or_else(PoisonError::into_inner);
                *occupied = Arc::from(events.as_slice());
                events
            }
            Err(error) => {
                tracing::warn!(%error, "the rooms could not be listed; those known are looked at");
                self.events_likely_with_people()
            }
        }
    }

    /// The events that had people when the rooms were listed last, or were asked for lately.
    pub(crate) fn events_likely_with_people(&self) -> Vec<Uuid> {
        let occupied = self.0.occupied.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut likely: BTreeSet<Uuid> = occupied.iter().copied().collect();
        likely.extend(self.0.sales_health.interests(self.0.clock.now()));
        likely.into_iter().collect()
    }
}

/// Turns come late rather than in a heap.
fn every(pause: Duration) -> Interval {
    let mut tick = interval(pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
