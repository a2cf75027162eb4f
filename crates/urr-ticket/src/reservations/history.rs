//! The history of a reservation: one list of what happened to it, and by whom.
//!
//! Most of it follows from rows that exist anyway: the reservation, its transfers, its tickets. What
//! leaves no trace there has a row of its own, written in the transaction of the change. Payments and
//! mails are asked for; without an answer the rest is shown, and what is missing is named.

pub(crate) mod store;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use urr_contracts::internal::mail::{ListReservationMails, ReservationMail};
use urr_contracts::internal::payment::{
    ListPayablePayments, PAYABLES_PER_CALL_MAX, PayablePayment,
};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_storage::{DbResult, StorageError, storable_enum};
use utoipa::ToSchema;

use self::store::{ScanTrace, TransferTrace, UsedTicket};
use crate::check_in::rules::ScanDirection;
use crate::reservations::rules::ReservationRecord;
use crate::{ReservationId, ReservationKind, ReservationStatus, TicketService};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    Held,
    /// Issued as complimentary tickets.
    Complimentary,
    /// Sold at the box office.
    BoxOffice,
    Extended,
    SeatsChanged,
    PaymentFailed,
    Paid,
    MailSent,
    Listed,
    ListingEnded,
    Transferred,
    EventMoved,
    CheckedIn,
    LeftHall,
    ReEntered,
    CheckInUndone,
    TicketsCancelled,
    Cancelled,
    Expired,
    Refunded,
}

storable_enum!(HistoryKind {
    Held => "held",
    Complimentary => "complimentary",
    BoxOffice => "box_office",
    Extended => "extended",
    SeatsChanged => "seats_changed",
    PaymentFailed => "payment_failed",
    Paid => "paid",
    MailSent => "mail_sent",
    Listed => "listed",
    ListingEnded => "listing_ended",
    Transferred => "transferred",
    EventMoved => "event_moved",
    CheckedIn => "checked_in",
    LeftHall => "left_hall",
    ReEntered => "re_entered",
    CheckInUndone => "check_in_undone",
    TicketsCancelled => "tickets_cancelled",
    Cancelled => "cancelled",
    Expired => "expired",
    Refunded => "refunded",
});

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryActor {
    /// The owner at that time, or who bought it from them.
    Owner(Uuid),
    /// An administrator, organiser, or member of support or of the door staff.
    Admin(Uuid),
    System,
}

impl HistoryActor {
    pub fn name(self) -> &'static str {
        match self {
            HistoryActor::Owner(_) => "owner",
            HistoryActor::Admin(_) => "admin",
            HistoryActor::System => "system",
        }
    }

    pub fn user_id(self) -> Option<Uuid> {
        match self {
            HistoryActor::Owner(id) | HistoryActor::Admin(id) => Some(id),
            HistoryActor::System => None,
        }
    }
}

/// What else is known. Fields that do not belong to the kind are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryDetails {
    /// Labels of seats before and after a change.
    pub previous_seats: Vec<String>,
    pub seats: Vec<String>,
    pub ticket_numbers: Vec<String>,
    /// Where they were scanned.
    pub door: Option<String>,
    /// When a moved event was to begin before, and when it begins.
    pub previous_starts_at: Option<Timestamp>,
    pub starts_at: Option<Timestamp>,
    pub payment_id: Option<Uuid>,
    pub payment_method: Option<String>,
    #[schema(example = "purchase")]
    pub mail_kind: Option<String>,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub kind: HistoryKind,
    pub by: HistoryActor,
    /// What was paid or goes back.
    pub amount: Option<Won>,
    pub reason: Option<String>,
    pub details: HistoryDetails,
}

/// The history, and what it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationHistory {
    /// In the order of time.
    pub entries: Vec<HistoryEntry>,
    /// `payments`, `mails`: those services did not answer.
    pub missing: Vec<&'static str>,
}

impl HistoryEntry {
    fn new(at: Timestamp, kind: HistoryKind, by: HistoryActor) -> HistoryEntry {
        let details = HistoryDetails::default();
        HistoryEntry { at, kind, by, amount: None, reason: None, details }
    }
}

/// What our own tables say about a reservation.
#[derive(Clone, Debug)]
struct StoredHistory {
    entries: Vec<HistoryEntry>,
    transfers: Vec<TransferTrace>,
    tickets: Vec<UsedTicket>,
    scans: Vec<ScanTrace>,
}

impl TicketService {
    /// The history of a reservation that the caller may see.
    pub async fn reservation_history(
        &self,
        record: &ReservationRecord,
        context: &CallContext,
    ) -> DbResult<ReservationHistory> {
        let id = record.reservation.id;
        let read = self.db.read(move |tx| {
            let entries = store::history_list(tx, id)?;
            let transfers = store::transfer_trace_list(tx, id)?;
            let tickets = store::used_ticket_list(tx, id)?;
            let scans = store::scan_trace_list(tx, id)?;
            Ok::<_, StorageError>(StoredHistory { entries, transfers, tickets, scans })
        });
        let stored = read.await?;
        let mut payable_ids = vec![id.0];
        payable_ids.extend(stored.transfers.iter().map(|transfer| transfer.id));
        payable_ids.truncate(PAYABLES_PER_CALL_MAX);
        let payments = self.payments_of(payable_ids, context).await;
        let mails = self.mails_of(id, context).await;
        let mut missing = Vec::new();
        missing.extend(payments.is_none().then_some("payments"));
        missing.extend(mails.is_none().then_some("mails"));
        let entries = compose(
            record,
            stored,
            payments.as_deref(),
            &mails.unwrap_or_default(),
            self.clock.now(),
        );
        Ok(ReservationHistory { entries, missing })
    }

    /// None: the payment service is away.
    async fn payments_of(
        &self,
        payable_ids: Vec<Uuid>,
        context: &CallContext,
    ) -> Option<Vec<PayablePayment>> {
        let payment = &self.peers.as_ref()?.payment;
        match payment.call(ListPayablePayments { payable_ids }, context).await {
            Ok(answer) => Some(answer.payments),
            Err(error) => {
                tracing::warn!(%error, "a history is without payments");
                None
            }
        }
    }

    /// None: the mail service is away.
    async fn mails_of(
        &self,
        id: ReservationId,
        context: &CallContext,
    ) -> Option<Vec<ReservationMail>> {
        let mail = &self.peers.as_ref()?.mail;
        match mail.call(ListReservationMails { reservation_id: id.0 }, context).await {
            Ok(answer) => Some(answer.mails),
            Err(error) => {
                tracing::warn!(%error, "a history is without mails");
                None
            }
        }
    }
}

/// One list in the order of time. Without payments, the tickets say when it was paid.
fn compose(
    record: &ReservationRecord,
    stored: StoredHistory,
    payments: Option<&[PayablePayment]>,
    mails: &[ReservationMail],
    now: Timestamp,
) -> Vec<HistoryEntry> {
    let StoredHistory { mut entries, transfers, tickets, scans } = stored;
    entries.extend(own_entries(record, &transfers, now));
    entries.extend(transfers.iter().flat_map(transfer_entries));
    entries.extend(check_in_entries(&scans));
    match payments {
        Some(payments) => entries.extend(payments.iter().flat_map(payment_entries)),
        None if record.kind == ReservationKind::Online => entries.extend(issue_entry(&tickets)),
        None => {}
    }
    entries.extend(mails.iter().filter_map(mail_entry));
    entries.sort_by_key(|entry| (entry.at, entry.kind));
    entries
}

/// Held, extended, expired.
fn own_entries(
    record: &ReservationRecord,
    transfers: &[TransferTrace],
    now: Timestamp,
) -> Vec<HistoryEntry> {
    let reservation = &record.reservation;
    let first_sale = transfers.iter().find(|transfer| transfer.completed_at.is_some());
    let owner = first_sale.map_or(reservation.user_id, |transfer| transfer.seller_id);
    let by = HistoryActor::Owner(owner);
    if record.kind != ReservationKind::Online {
        // It was never held, and its first entry is written down.
        return Vec::new();
    }
    let mut entries = vec![HistoryEntry::new(reservation.created_at, HistoryKind::Held, by)];
    let extended = |at| HistoryEntry::new(at, HistoryKind::Extended, by);
    entries.extend(record.extended_at.map(extended));
    if record.status(now) == ReservationStatus::Expired {
        let at = reservation.expires_at;
        entries.push(HistoryEntry::new(at, HistoryKind::Expired, HistoryActor::System));
    }
    entries
}

fn transfer_entries(transfer: &TransferTrace) -> Vec<HistoryEntry> {
    let seller = HistoryActor::Owner(transfer.seller_id);
    let mut entries = vec![HistoryEntry::new(transfer.created_at, HistoryKind::Listed, seller)];
    if let (Some(at), Some(buyer_id)) = (transfer.completed_at, transfer.buyer_id) {
        let amount = transfer.price.plus(transfer.fee).ok();
        let by = HistoryActor::Owner(buyer_id);
        let bought = HistoryEntry::new(at, HistoryKind::Transferred, by);
        entries.push(HistoryEntry { amount, ..bought });
    } else if let Some(reason) = &transfer.end_reason {
        let by = match transfer.is_ended_by_seller() {
            true => seller,
            false => HistoryActor::System,
        };
        let ended = HistoryEntry::new(transfer.updated_at, HistoryKind::ListingEnded, by);
        entries.push(HistoryEntry { reason: Some(reason.clone()), ..ended });
    }
    entries
}

/// In, out, in again, and what was undone. Tickets that one person scanned at the same moment and
/// door are one entry.
fn check_in_entries(scans: &[ScanTrace]) -> Vec<HistoryEntry> {
    let mut entries: Vec<HistoryEntry> = Vec::new();
    let mut note = |scan: &ScanTrace, at, kind, staff_id| {
        let by = HistoryActor::Admin(staff_id);
        let door = Some(scan.door.clone()).filter(|door| !door.is_empty());
        let same = entries.iter_mut().find(|entry| {
            (entry.at, entry.kind, entry.by) == (at, kind, by) && entry.details.door == door
        });
        if let Some(entry) = same {
            entry.details.ticket_numbers.push(scan.number.clone());
            return;
        }
        let mut entry = HistoryEntry::new(at, kind, by);
        entry.details.ticket_numbers.push(scan.number.clone());
        entry.details.door = door;
        entries.push(entry);
    };
    let mut entered = BTreeSet::new();
    for scan in scans {
        let kind = match scan.direction {
            ScanDirection::Exit => HistoryKind::LeftHall,
            ScanDirection::Entry if entered.contains(&scan.number) => HistoryKind::ReEntered,
            ScanDirection::Entry => HistoryKind::CheckedIn,
        };
        note(scan, scan.scanned_at, kind, scan.staff_id);
        match scan.undone_at.zip(scan.undone_by) {
            Some((at, staff_id)) => note(scan, at, HistoryKind::CheckInUndone, staff_id),
            None => _ = entered.insert(&scan.number),
        }
    }
    entries
}

fn issue_entry(tickets: &[UsedTicket]) -> Option<HistoryEntry> {
    let at = tickets.iter().map(|ticket| ticket.created_at).min()?;
    Some(HistoryEntry::new(at, HistoryKind::Paid, HistoryActor::System))
}

/// Paid, declined, refunded.
fn payment_entries(payment: &PayablePayment) -> Vec<HistoryEntry> {
    let by = HistoryActor::Owner(payment.user_id);
    let details = HistoryDetails {
        payment_id: Some(payment.id),
        payment_method: payment.method.clone(),
        ..HistoryDetails::default()
    };
    let mut entries = Vec::new();
    if payment.status == "failed" {
        let failed = HistoryEntry::new(payment.updated_at, HistoryKind::PaymentFailed, by);
        let reason = payment.failure_code.clone();
        entries.push(HistoryEntry { reason, details: details.clone(), ..failed });
    } else if let Some(at) = payment.approved_at {
        let paid = HistoryEntry::new(at, HistoryKind::Paid, by);
        let amount = Some(payment.amount);
        entries.push(HistoryEntry { amount, details: details.clone(), ..paid });
    }
    for refund in &payment.refunds {
        let Some(at) = refund.done_at.filter(|_| refund.status != "withdrawn") else { continue };
        let by = refund.requested_by.map_or(HistoryActor::System, HistoryActor::Admin);
        let refunded = HistoryEntry::new(at, HistoryKind::Refunded, by);
        let (amount, reason) = (Some(refund.amount), Some(refund.reason.clone()));
        entries.push(HistoryEntry { amount, reason, details: details.clone(), ..refunded });
    }
    entries
}

fn mail_entry(mail: &ReservationMail) -> Option<HistoryEntry> {
    let at = mail.ended_at.filter(|_| mail.status == "sent")?;
    let mut entry = HistoryEntry::new(at, HistoryKind::MailSent, HistoryActor::System);
    entry.details.mail_kind = Some(mail.kind.clone());
    Some(entry)
}

impl ReservationHistory {
    /// Everybody who did something, each once.
    pub fn user_ids(&self) -> Vec<Uuid> {
        let ids: BTreeSet<Uuid> =
            self.entries.iter().filter_map(|entry| entry.by.user_id()).collect();
        ids.into_iter().collect()
    }
}
