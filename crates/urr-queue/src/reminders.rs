//! Telling those who asked for it that their turn is near, once.
//!
//! A reminder is a row. Who deletes it announces it in the same transaction: so several processes
//! may do it at once, and be killed at any moment. Only those are looked for whose number says that
//! they may be near.
//!
//! Nothing here counts as being seen: a reminder keeps nobody in line who has gone (P-1: nor does it
//! add anything to a poll).

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use crate::domain::marks::number_max;
use crate::domain::reminder::{NearFront, ReminderAction};
use crate::events::TurnNear;
use crate::status::{EventContext, QueueError, is_before_draw, has_ended};
use crate::store::reminders::{self, Reminder};
use crate::store::rooms;
use crate::{EventRoom, RoomPhase, QueueService, SOURCE};
use urr_room::{AdmissionState, RoomError, UserLocation};

/// So many are looked for, told or ended by one transaction.
const AT_ONCE: u32 = 500;

/// Why someone will not be told.
#[derive(Debug, thiserror::Error)]
pub enum ReminderError {
    #[error("they do not wait there")]
    NotWaiting,
    #[error(transparent)]
    LinePosition(#[from] QueueError),
    #[error("the storage failed")]
    Storage(#[from] StorageError),
}

/// Why those who are near were not told.
#[derive(Debug, thiserror::Error)]
enum RemindError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Room(#[from] RoomError),
}

/// What is to be done about a reminder. The stamp is of what would be announced.
#[derive(Clone, Copy)]
struct Decided {
    reminder: Reminder,
    step: ReminderAction,
    stamp: Stamp,
}

impl QueueService {
    /// Someone who waits wants to be told when their turn is near. Once more changes nothing.
    pub async fn ask_reminder(&self, event_id: Uuid, user_id: Uuid) -> Result<(), ReminderError> {
        let EventContext { event, phase, now, .. } = self.event_context(event_id)?;
        if has_ended(phase) {
            return Err(ReminderError::NotWaiting);
        }
        let found = self.count_errors(self.0.rooms.locate(event_id, &[user_id], now).await);
        let found = found.map_err(QueueError::from)?;
        let [UserLocation::Waiting(place)] = found[..] else {
            return Err(ReminderError::NotWaiting);
        };
        let is_undrawn = is_before_draw(&event, phase);
        let number = if is_undrawn { Reminder::UNDRAWN } else { place.number };
        let reminder = Reminder { event_id, user_id, number };
        self.0.db.write(move |tx| reminders::reminder_insert(tx, &reminder, now)).await?;
        Ok(())
    }

    /// Someone does not want to be told any more, whether they wanted to or not.
    pub async fn withdraw_reminder(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> Result<(), StorageError> {
        self.0.db.write(move |tx| reminders::reminder_withdraw(tx, event_id, user_id)).await
    }

    /// The events of which someone wants to be told.
    pub async fn events_with_reminders(&self) -> Result<Vec<Uuid>, StorageError> {
        self.0.db.read(reminders::reminder_list_events).await
    }

    /// Tells those of an event whose turn is near, and forgets those who are gone.
    pub async fn remind(&self, event_id: Uuid) {
        if let Err(error) = self.try_remind(event_id).await {
            tracing::warn!(%event_id, %error, "not all were told that their turn is near; tried again");
        }
    }

    async fn try_remind(&self, event_id: Uuid) -> Result<(), RemindError> {
        let now = self.0.clock.now();
        let event_context = match self.event_context(event_id) {
            Ok(event_context) if !self.is_long_over(&event_context.event, now) => event_context,
            // It may be news, or have ended long ago.
            _ => return Ok(self.end_reminders(event_id, now).await?),
        };
        // Before a draw nobody has a position, and nobody is in.
        if has_ended(event_context.phase) || is_before_draw(&event_context.event, event_context.phase) {
            return Ok(());
        }
        let crowd = self.count_errors(self.0.crowds.get(event_id, now).await)?;
        let until_opening = if is_held_up(&event_context) { None } else { event_context.until_opening() };
        let threshold = event_context.rules.threshold;
        let near = NearFront::new(event_context.wait_estimator(&crowd), until_opening, threshold);
        let number_max = number_max(&crowd.crowd.marks, near.count());
        let mut after = Some((i64::MIN, Uuid::nil()));
        while let Some(behind) = after {
            after = self.remind_some(&event_context.event, &near, behind, number_max).await?;
        }
        Ok(())
    }

    /// Deals with the next ones behind this number and user. Returns the last of them; none if there
    /// was nobody left.
    async fn remind_some(
        &self,
        event: &EventRoom,
        near: &NearFront<'_>,
        behind: (i64, Uuid),
        number_max: i64,
    ) -> Result<Option<(i64, Uuid)>, RemindError> {
        let event_id = event.event_id;
        let read = move |tx: &mut Tx<'_>| {
            reminders::reminder_list(tx, event_id, behind, number_max, AT_ONCE)
        };
        let asked = self.0.db.read(read).await?;
        let Some(last) = asked.last().map(|last| (last.number, last.user_id)) else {
            return Ok(None);
        };
        let users: Vec<Uuid> = asked.iter().map(|reminder| reminder.user_id).collect();
        // Now, not when the turn began: an old time would set a room's clock back.
        let now = self.0.clock.now();
        let found = self.count_errors(self.0.rooms.locate(event_id, &users, now).await)?;
        let steps = asked.into_iter().zip(found).map(|(reminder, found)| {
            let step = near.decide(reminder.number, found);
            Decided { reminder, step, stamp: self.stamp(now) }
        });
        self.carry_out(event, steps.collect()).await?;
        Ok(Some(last))
    }

    async fn carry_out(
        &self,
        event: &EventRoom,
        mut steps: Vec<Decided>,
    ) -> Result<(), StorageError> {
        steps.retain(|decided| decided.step != ReminderAction::WaitEstimate);
        if steps.is_empty() {
            return Ok(());
        }
        // Processes that do the same at once take their locks in the same order.
        steps.sort_unstable_by_key(|decided| decided.reminder.user_id);
        let (event_id, title) = (event.event_id, event.title.clone());
        let told = self.0.db.write(move |tx| write_steps(tx, &steps, &title)).await?;
        if told > 0 {
            tracing::debug!(%event_id, count = told, "told that their turn is near");
            self.0.metrics.count_reminded(told);
        }
        Ok(())
    }

    /// Ends all reminders of an event that is over. What this process remembers of it is not enough:
    /// the database is asked.
    async fn end_reminders(&self, event_id: Uuid, now: Timestamp) -> Result<(), StorageError> {
        let event = self.0.db.read(move |tx| rooms::room_find(tx, event_id)).await?;
        if event.is_some_and(|event| !self.is_long_over(&event, now)) {
            return Ok(());
        }
        let end = move |tx: &mut Tx<'_>| reminders::reminder_end_some(tx, event_id, AT_ONCE);
        while self.0.db.write(end).await? == u64::from(AT_ONCE) {}
        Ok(())
    }

    pub(crate) fn stamp(&self, now: Timestamp) -> Stamp {
        let context = CallContext::root(self.0.ids.next_id());
        Stamp { event_id: self.0.ids.next_id(), source: SOURCE, time: now, context }
    }
}

/// Whether nobody is let in or will be, whatever the time of the sale says: all is sold, those who
/// wait are about to be sent home, or this process knows too little.
fn is_held_up(event_context: &EventContext) -> bool {
    let is_shut = event_context.phase == RoomPhase::Open && event_context.rules.admission == AdmissionState::Closed;
    event_context.event.awaits_clearing || is_shut
}

/// Returns how many are told: those whose reminder was still there.
fn write_steps(tx: &mut Tx<'_>, steps: &[Decided], title: &str) -> Result<usize, StorageError> {
    let mut told = Vec::new();
    for Decided { reminder, step, stamp } in steps {
        match *step {
            ReminderAction::Tell { position, wait_seconds } => {
                if reminders::reminder_end(tx, reminder)? {
                    let near = TurnNear {
                        event_id: reminder.event_id,
                        user_id: reminder.user_id,
                        event_title: title.to_owned(),
                        position,
                        estimated_wait_seconds: wait_seconds,
                    };
                    told.push((*stamp, near));
                }
            }
            ReminderAction::Forget => {
                reminders::reminder_end(tx, reminder)?;
            }
            ReminderAction::Renumber(number) => reminders::reminder_renumber(tx, reminder, number)?,
            ReminderAction::WaitEstimate => {}
        }
    }
    outbox::append_all(tx, &told)?;
    Ok(told.len())
}
