//! The jobs of the queue service: admit, sweep, draw, end slots, remind, publish statistics.
//!
//! Every process may run all of them at once: the rooms bound what all processes together admit
//! . Each event is worked on by its own task, so that a slow one delays no other (P-6).

mod event_tasks;
mod room_end;

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use urr_kernel::Uuid;
use urr_room::RoomError;
use urr_service::jobs::run_every;
use urr_storage::{DbResult, StorageError};

use self::event_tasks::EventTasks;
use crate::metrics::{AdmissionPath, RoomGauges};
use crate::store::slot_ends::{self, SlotEnd};
use crate::{QueueService, RoomPhase};

const SECOND: Duration = Duration::from_secs(1);
const REMIND_EVERY: Duration = Duration::from_secs(3);
/// More often than once a minute, so that no minute is missed.
const PUBLISH_STATS_EVERY: Duration = Duration::from_secs(20);
/// Few enough that other requests to the room are not delayed.
const SWEPT_AT_ONCE: u32 = 1_000;
const SLOT_ENDS_AT_ONCE: u32 = 500;

/// Why a job has not done its work. The next run tries again.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Room(#[from] RoomError),
}

impl QueueService {
    /// Runs the jobs until `stop`. A run under way ends at its next await; every step is atomic.
    pub async fn run_jobs(self, stop: CancellationToken) {
        let [admissions, draws, sweeps, reminders] = [(); 4].map(|()| EventTasks::default());
        let settings = &self.0.settings;
        let jobs = async {
            tokio::join!(
                run_every("queue_load_events", SECOND, || self.load()),
                run_every("queue_admit", settings.admission_interval, || async {
                    let events = self.occupied_events().await.into_iter();
                    let events = events.chain(self.0.event_index.awaiting_clearing());
                    let events: BTreeSet<Uuid> = events.collect();
                    admissions.spawn_each(&self, events, async |queue, id| queue.admit(id).await);
                }),
                run_every("queue_draw", SECOND, || async {
                    let undrawn = self.events_to_draw();
                    draws.spawn_each(&self, undrawn, async |queue, id| queue.draw_logged(id).await);
                }),
                run_every("queue_sweep", settings.sweep_interval, || async {
                    let events = self.occupied_events().await;
                    sweeps.spawn_each(&self, events, async |queue, id| queue.sweep(id).await);
                }),
                run_every("queue_end_bought_slots", SECOND, || self.end_bought_slots()),
                run_every("queue_remind", REMIND_EVERY, || async {
                    let events = self.events_with_reminders().await?;
                    reminders.spawn_each(&self, events, async |queue, id| queue.remind(id).await);
                    Ok::<_, StorageError>(())
                }),
                run_every("queue_publish_stats", PUBLISH_STATS_EVERY, || self.publish_stats()),
                run_every("queue_refresh_health", SECOND, || self.refresh_health()),
                run_every("queue_tell_boards", SECOND, || self.tell_boards()),
            )
        };
        stop.run_until_cancelled(jobs).await;
    }

    /// The lotteries that are due. A lottery is drawn even if nobody waits: only then it opens.
    fn events_to_draw(&self) -> Vec<Uuid> {
        let now = self.0.clock.now();
        let mut undrawn = self.0.event_index.undrawn();
        undrawn.retain(|event| event.phase(&self.0.settings, now) == RoomPhase::Drawing);
        undrawn.into_iter().map(|event| event.event_id).collect()
    }

    async fn draw_logged(&self, event_id: Uuid) {
        if let Err(error) = self.draw(event_id).await {
            tracing::warn!(%event_id, %error, "a step of a draw failed; it will be retried");
        }
    }

    /// Admits from the line of an event as many users as the rules allow, or clears its room if the
    /// sale has ended.
    pub async fn admit(&self, event_id: Uuid) {
        let now = self.0.clock.now();
        let Some(event) = self.0.event_index.get(event_id) else {
            // Either too new for the index, or ended long ago.
            return self.clear_ended(event_id, now).await;
        };
        if event.phase(&self.0.settings, now).has_ended() {
            if self.is_long_over(&event, now) {
                self.clear_ended(event_id, now).await;
            }
            return;
        }
        if event.awaits_clearing {
            return self.clear_for_presale(event_id, now).await;
        }
        let rules = self.rules_of(&event, now);
        match self.count_errors(self.0.rooms.admit(event_id, &rules, now).await) {
            Ok(admitted) if admitted.is_empty() => {}
            Ok(admitted) => {
                tracing::debug!(%event_id, count = admitted.len(), "users were admitted");
                self.0.metrics.count_admitted(AdmissionPath::FromLine, admitted.len());
                self.0.notices.admitted(event_id, &admitted, now);
            }
            Err(error) => {
                tracing::warn!(%event_id, %error, "an admission failed; it will be retried");
            }
        }
    }

    /// Drops the users from the line of an event who were not seen for too long.
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
                    self.0.metrics.dropped.inc_by(u64::from(count));
                    if count < SWEPT_AT_ONCE {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%event_id, %error, "a room was not swept; it will be retried");
                    return;
                }
            }
        }
    }

    /// Ends the slots of users whose purchases were announced. What a room does not answer is
    /// retried by the next run.
    pub async fn end_bought_slots(&self) -> DbResult<()> {
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut urr_storage::Tx<'_>| {
                slot_ends::slot_end_list(tx, after, SLOT_ENDS_AT_ONCE)
            };
            let due = self.0.db.read(list).await?;
            let Some(last) = due.last() else { return Ok(()) };
            after = last.reservation_id;
            let ended = join_all(due.iter().map(|slot_end| self.end_bought_slot(slot_end))).await;
            let done = due.iter().zip(ended).filter(|(_, ended)| ended.is_ok());
            let done: Vec<Uuid> = done.map(|(slot_end, _)| slot_end.reservation_id).collect();
            self.0.db.write(move |tx| slot_ends::slot_end_delete(tx, &done)).await?;
        }
    }

    async fn end_bought_slot(&self, slot_end: &SlotEnd) -> Result<(), RoomError> {
        let SlotEnd { event_id, user_id, bought_at, .. } = *slot_end;
        if self.finish(event_id, user_id, bought_at).await? {
            self.0.metrics.finished.inc();
        }
        Ok(())
    }

    /// Refreshes the sales health, the autopilots and the gauges of the occupied rooms.
    pub async fn refresh_health(&self) {
        let occupied = self.occupied_events().await;
        let relevant = self.events_of_interest(&occupied, self.0.clock.now());
        self.refresh_sales_health(&relevant).await;
        let now = self.0.clock.now();
        let events: Vec<_> = occupied.iter().filter_map(|id| self.0.event_index.get(*id)).collect();
        let booking = self.0.sales_health.booking(now);
        self.0.autopilots.tick(&events, booking, &self.0.settings);
        let crowds = events.iter().map(|event| self.0.crowds.get(event.event_id, now));
        let crowds = join_all(crowds).await;
        let gauges = events.iter().zip(&crowds).filter_map(|(event, crowd)| {
            let crowd = crowd.as_ref().ok()?;
            let wait_seconds = self.longest_wait(event, crowd).map(|wait| wait.seconds);
            Some(RoomGauges { event_id: event.event_id, crowd: &crowd.crowd, wait_seconds })
        });
        self.0.metrics.set_room_gauges(gauges);
        let read = events.iter().zip(&crowds);
        self.record_rooms(
            read.filter_map(|(event, crowd)| Some((&**event, &crowd.as_ref().ok()?.crowd))),
        );
    }

    /// The events whose rooms are occupied. If the rooms cannot be listed, those that were occupied
    /// before or asked for lately: one failed list must not stop every line.
    pub(crate) async fn occupied_events(&self) -> Vec<Uuid> {
        match self.count_errors(self.0.rooms.occupied_events().await) {
            Ok(events) => {
                let mut occupied = self.0.occupied.write().unwrap_or_else(PoisonError::into_inner);
                *occupied = Arc::from(events.as_slice());
                events
            }
            Err(error) => {
                tracing::warn!(%error, "the rooms could not be listed; the last list is used");
                self.likely_occupied_events()
            }
        }
    }

    /// The events that were occupied when the rooms were listed last, or were asked for lately.
    pub(crate) fn likely_occupied_events(&self) -> Vec<Uuid> {
        let occupied = self.0.occupied.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut likely: BTreeSet<Uuid> = occupied.iter().copied().collect();
        likely.extend(self.0.sales_health.interests(self.0.clock.now()));
        likely.into_iter().collect()
    }
}
