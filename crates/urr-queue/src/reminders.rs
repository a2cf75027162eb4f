//! Reminds users once that their admission is near.
//!
//! A reminder is a row. The transaction that deletes it also announces it, so that several processes
//! can do this at once and crash at any moment. Only users whose number may be near the front are
//! looked up.
//!
//! Nothing here marks a user as seen: a reminder does not keep a position (P-1: nor does it add
//! anything to a poll).

use urr_contracts::events::queue::AdmissionNear;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_room::{AdmissionState, UserLocation};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::domain::marks::number_max;
use crate::domain::reminder::{NearFront, ReminderAction};
use crate::jobs::JobError;
use crate::status::{EventContext, QueueError};
use crate::store::reminders::{self, Reminder};
use crate::store::rooms;
use crate::{EventRoom, QueueService, RoomPhase, SOURCE};

/// How many reminders one transaction handles.
const AT_ONCE: u32 = 500;

/// Why a reminder is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ReminderError {
    #[error("the user does not wait for this event")]
    NotWaiting,
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the storage failed")]
    Storage(#[from] StorageError),
}

/// A reminder with what to do about it, and the stamp of its announcement.
#[derive(Clone, Copy)]
struct PlannedReminder {
    reminder: Reminder,
    action: ReminderAction,
    stamp: EventMetadata,
}

impl QueueService {
    /// Inserts a reminder for a user who waits. Repeating the call changes nothing.
    pub async fn ask_reminder(&self, event_id: Uuid, user_id: Uuid) -> Result<(), ReminderError> {
        let context = self.event_context(event_id)?;
        let now = context.now;
        if context.phase.has_ended() {
            return Err(ReminderError::NotWaiting);
        }
        let located = self.count_errors(self.0.rooms.locate(event_id, &[user_id], now).await);
        let located = located.map_err(QueueError::from)?;
        let [UserLocation::Waiting(line)] = located[..] else {
            return Err(ReminderError::NotWaiting);
        };
        let number = if context.is_before_draw() { Reminder::UNDRAWN } else { line.number };
        let reminder = Reminder { event_id, user_id, number };
        self.0.db.write(move |tx| reminders::reminder_insert(tx, &reminder, now)).await?;
        Ok(())
    }

    /// Deletes a user's reminder, if there is one.
    pub async fn withdraw_reminder(&self, event_id: Uuid, user_id: Uuid) -> DbResult<()> {
        self.0.db.write(move |tx| reminders::reminder_withdraw(tx, event_id, user_id)).await
    }

    pub async fn events_with_reminders(&self) -> DbResult<Vec<Uuid>> {
        self.0.db.read(reminders::reminder_list_events).await
    }

    /// Sends the reminders of an event that are due, and deletes those of users who have gone.
    pub async fn remind(&self, event_id: Uuid) {
        if let Err(error) = self.try_remind(event_id).await {
            tracing::warn!(%event_id, %error, "not all reminders were sent; it will be retried");
        }
    }

    async fn try_remind(&self, event_id: Uuid) -> Result<(), JobError> {
        let now = self.0.clock.now();
        let context = match self.event_context(event_id) {
            Ok(context) if !self.is_long_over(&context.event, now) => context,
            // Either too new for the index, or ended long ago.
            _ => return Ok(self.end_reminders(event_id, now).await?),
        };
        // Before a draw nobody has a position, and nobody is admitted.
        if context.phase.has_ended() || context.is_before_draw() {
            return Ok(());
        }
        let crowd = self.count_errors(self.0.crowds.get(event_id, now).await)?;
        let until_opening = if is_held_up(&context) { None } else { context.until_opening() };
        let estimator = context.wait_estimator(&crowd);
        let near = NearFront::new(estimator, until_opening, context.rules.threshold);
        let number_max = number_max(&crowd.crowd.marks, near.count());
        let mut after = Some((i64::MIN, Uuid::nil()));
        while let Some(behind) = after {
            after = self.remind_some(&context.event, &near, behind, number_max).await?;
        }
        Ok(())
    }

    /// Handles the next reminders behind this number and user. Returns the last of them; none if
    /// there were no more.
    async fn remind_some(
        &self,
        event: &EventRoom,
        near: &NearFront<'_>,
        behind: (i64, Uuid),
        number_max: i64,
    ) -> Result<Option<(i64, Uuid)>, JobError> {
        let event_id = event.event_id;
        let read = move |tx: &mut Tx<'_>| {
            reminders::reminder_list(tx, event_id, behind, number_max, AT_ONCE)
        };
        let page = self.0.db.read(read).await?;
        let Some(last) = page.last().map(|last| (last.number, last.user_id)) else {
            return Ok(None);
        };
        let users: Vec<Uuid> = page.iter().map(|reminder| reminder.user_id).collect();
        // The present time, not that of the job's start: an old time would set the room back.
        let now = self.0.clock.now();
        let located = self.count_errors(self.0.rooms.locate(event_id, &users, now).await)?;
        let planned = page.into_iter().zip(located).map(|(reminder, location)| {
            let action = near.decide(reminder.number, location);
            PlannedReminder { reminder, action, stamp: self.stamp(now) }
        });
        self.carry_out(event, planned.collect()).await?;
        Ok(Some(last))
    }

    async fn carry_out(
        &self,
        event: &EventRoom,
        mut planned: Vec<PlannedReminder>,
    ) -> DbResult<()> {
        planned.retain(|planned| planned.action != ReminderAction::Wait);
        if planned.is_empty() {
            return Ok(());
        }
        // Concurrent processes take their row locks in the same order.
        planned.sort_unstable_by_key(|planned| planned.reminder.user_id);
        let (event_id, title, sale_ends_at) =
            (event.event_id, event.title.clone(), event.sale_ends_at);
        let write = self.0.db.write(move |tx| write_planned(tx, &planned, &title, sale_ends_at));
        let sent = write.await?;
        if sent > 0 {
            tracing::debug!(%event_id, count = sent, "reminders were sent");
            self.0.metrics.reminded.inc_by(u64::try_from(sent).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// Deletes all reminders of an event that is over. The database decides, not what this process
    /// has in memory.
    async fn end_reminders(&self, event_id: Uuid, now: Timestamp) -> DbResult<()> {
        let event = self.0.db.read(move |tx| rooms::room_find(tx, event_id)).await?;
        if event.is_some_and(|event| !self.is_long_over(&event, now)) {
            return Ok(());
        }
        let end = move |tx: &mut Tx<'_>| reminders::reminder_end_some(tx, event_id, AT_ONCE);
        while self.0.db.write(end).await? == u64::from(AT_ONCE) {}
        Ok(())
    }

    pub(crate) fn stamp(&self, now: Timestamp) -> EventMetadata {
        let context = CallContext::root(self.0.ids.next_id());
        EventMetadata { event_id: self.0.ids.next_id(), source: SOURCE, time: now, context }
    }
}

/// Whether nobody is admitted although the sale runs: all is sold, the room is about to be cleared,
/// or this process has stale data.
fn is_held_up(context: &EventContext) -> bool {
    let is_closed = context.rules.admission == AdmissionState::Closed;
    context.event.awaits_clearing || (context.phase == RoomPhase::Open && is_closed)
}

/// Returns how many were sent: those whose reminder was still there.
fn write_planned(
    tx: &mut Tx<'_>,
    planned: &[PlannedReminder],
    title: &str,
    sale_ends_at: Timestamp,
) -> DbResult<usize> {
    let mut sent = Vec::new();
    for PlannedReminder { reminder, action, stamp } in planned {
        match *action {
            ReminderAction::Notify { position, wait_seconds } => {
                if reminders::reminder_end(tx, reminder)? {
                    let near = AdmissionNear {
                        event_id: reminder.event_id,
                        user_id: reminder.user_id,
                        event_title: Some(title.to_owned()),
                        position: Some(position),
                        estimated_wait_seconds: wait_seconds,
                        sale_ends_at: Some(sale_ends_at),
                    };
                    sent.push((*stamp, near));
                }
            }
            ReminderAction::Delete => {
                reminders::reminder_end(tx, reminder)?;
            }
            ReminderAction::Renumber(number) => reminders::reminder_renumber(tx, reminder, number)?,
            ReminderAction::Wait => {}
        }
    }
    outbox::append_all(tx, &sent)?;
    Ok(sent.len())
}
