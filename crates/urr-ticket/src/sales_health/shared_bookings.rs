//! How booking goes in all ticket processes: each writes its own totals into a table once a second, and
//! whoever is asked answers for all.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use urr_contracts::internal::ticket::BookingHealth;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use super::booking_stats::BookingTotals;
use crate::TicketService;

/// A report counts for this long. A process that does not write any more is silent, not well.
const REPORT_TTL: Duration = Duration::from_secs(3);
/// Reports of processes that have ended are deleted after this time.
const REPORT_KEPT: Duration = Duration::from_hours(1);

/// The reports of this process and of the others.
pub struct SharedBookings {
    process_id: Uuid,
    /// What others reported, and when it was read.
    others: Mutex<Option<(BookingTotals, Timestamp)>>,
}

impl SharedBookings {
    pub fn new(process_id: Uuid) -> SharedBookings {
        SharedBookings { process_id, others: Mutex::new(None) }
    }

    fn others(&self, now: Timestamp) -> Option<BookingTotals> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = others.as_ref().filter(|(_, read_at)| now < *read_at + REPORT_TTL);
        fresh.map(|(others, _)| others.clone())
    }
}

impl TicketService {
    /// How booking went in the last seconds, in this process and in those that report.
    pub(crate) fn booking_health(&self) -> BookingHealth {
        let mut totals = self.booking_stats.totals();
        if let Some(others) = self.shared_bookings.others(self.clock.now()) {
            totals.add(&others);
        }
        totals.health()
    }

    /// Reports how booking goes here, and reads how it goes elsewhere, if several processes sell.
    pub async fn share_bookings(&self) -> DbResult<()> {
        if !self.settings.shares_bookings {
            return Ok(());
        }
        let (own, now) = (self.booking_stats.totals(), self.clock.now());
        let process_id = self.shared_bookings.process_id;
        let others = match own == BookingTotals::NONE {
            true => self.db.read(move |tx| others_read(tx, process_id, now)).await?,
            false => {
                let share = move |tx: &mut Tx<'_>| {
                    report_write(tx, process_id, &own, now)?;
                    others_read(tx, process_id, now)
                };
                self.db.write(share).await?
            }
        };
        let mut known = self.shared_bookings.others.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((others, now));
        Ok(())
    }
}

fn report_write(
    tx: &mut Tx<'_>,
    process_id: Uuid,
    own: &BookingTotals,
    now: Timestamp,
) -> DbResult<()> {
    let sql = "delete from booking_reports where reported_at < $1";
    tx.execute_later(sql, params![now - REPORT_KEPT])?;
    let (answered, failed) = (stored(own.answered), stored(own.failed));
    tx.execute(
        "insert into booking_reports (process_id, reported_at, answered, failed, by_duration) \
         values ($1, $2, $3, $4, $5) on conflict (process_id) do update set \
         reported_at = excluded.reported_at, answered = excluded.answered, \
         failed = excluded.failed, by_duration = excluded.by_duration",
        params![process_id, now, answered, failed, serde_json::json!(own.durations())],
    )?;
    Ok(())
}

fn others_read(tx: &mut Tx<'_>, process_id: Uuid, now: Timestamp) -> DbResult<BookingTotals> {
    let sql = "select answered, failed, by_duration from booking_reports \
               where process_id <> $1 and reported_at > $2 and reported_at < $3";
    let (oldest, newest) = (now - REPORT_TTL, now + REPORT_TTL);
    let reports = tx.query(sql, params![process_id, oldest, newest], |row: &Row<'_>| {
        let count =
            |name: &str| row.get::<i64>(name).map(|count| u64::try_from(count).unwrap_or(0));
        let durations: Vec<(usize, u64)> = row.get_json("by_duration")?;
        Ok::<_, StorageError>(BookingTotals::new(count("answered")?, count("failed")?, &durations))
    })?;
    let mut others = BookingTotals::NONE;
    reports.iter().for_each(|report| others.add(report));
    Ok(others)
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
