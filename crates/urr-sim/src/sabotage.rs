//! Guards that can be switched off, one at a time. A simulation that does not notice is worth
//! nothing: the tests want each of them found.
//!
//! Nothing in the services knows of this. A guard is removed in the tables of the run, in what
//! connects the services, or in what the simulation does not do.

use urr_kernel::named_enum;

use crate::databases::DatabaseName;

/// A guard that is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Seats are held without a look at whether they are free, and without the unique index.
    SeatGuard,
    /// Nobody asks the waiting room before a booking.
    SlotCheck,
    /// A consumer forgets which events it has handled.
    Inbox,
    /// A cancellation is committed without its event.
    OutboxRow,
    /// Events are marked as published before they are.
    OutboxMark,
    /// Messages are acknowledged without their effect.
    ConsumerEffect,
    /// A hold that is being paid can expire.
    Pin,
    /// The ticket service forgets which attempts to pay are over.
    EndedAttempts,
    /// Holds end before the time that their owners were told.
    HoldEnd,
    /// Nobody ends holds whose time is over.
    ExpiryJob,
    /// Nobody resumes payments that have stopped half-way.
    SagaRecovery,
    /// An answer is sent before the commit.
    CommitBeforeAnswer,
    /// A place in the line is told before it is in the journal.
    PlaceInJournal,
    /// The same for a slot.
    SlotInJournal,
    /// A hold that is changed keeps its token.
    FencingToken,
    /// The token of a release is lost on its way.
    ReleaseToken,
    /// Who asks for a release is taken for the owner.
    HoldOwner,
    /// A payment releases what another one has pinned.
    PinOwner,
    /// The end of a slot is not written.
    SlotEnd,
    /// The ticket service believes an old answer about a slot.
    SlotAnswer,
    /// The room admits one more than it may.
    Threshold,
    /// After a restart the line has another order.
    LineOrder,
    /// A repeated request is not recognised.
    IdempotencyKey,
    /// An entry of the ledger lacks a line.
    LedgerLine,
    /// Points of a purchase are not written.
    Points,
    /// Standing tickets that are given back count twice.
    Stock,
    /// The statistics lose a cancellation.
    StatsFact,
}

named_enum!(Sabotage {
    SeatGuard => "seat-guard",
    SlotCheck => "slot-check",
    Inbox => "inbox",
    OutboxRow => "outbox-row",
    OutboxMark => "outbox-mark",
    ConsumerEffect => "consumer-effect",
    Pin => "pin",
    EndedAttempts => "ended-attempts",
    HoldEnd => "hold-end",
    ExpiryJob => "expiry-job",
    SagaRecovery => "saga-recovery",
    CommitBeforeAnswer => "commit-before-answer",
    PlaceInJournal => "place-in-journal",
    SlotInJournal => "slot-in-journal",
    FencingToken => "fencing-token",
    ReleaseToken => "release-token",
    HoldOwner => "hold-owner",
    PinOwner => "pin-owner",
    SlotEnd => "slot-end",
    SlotAnswer => "slot-answer",
    Threshold => "threshold",
    LineOrder => "line-order",
    IdempotencyKey => "idempotency-key",
    LedgerLine => "ledger-line",
    Points => "points",
    Stock => "stock",
    StatsFact => "stats-fact",
});

impl Sabotage {
    /// The statement that removes the guard from the tables, if it is there.
    pub fn statement(self) -> Option<(DatabaseName, &'static str)> {
        let of_tickets = self.ticket_statement().map(|sql| (DatabaseName::Ticket, sql));
        of_tickets.or_else(|| self.other_statement())
    }

    fn ticket_statement(self) -> Option<&'static str> {
        Some(match self {
            Sabotage::SeatGuard => "drop index reservation_items_one_live_per_seat",
            Sabotage::OutboxRow => {
                "create trigger sabotage after insert on outbox \
                 when new.body like '%\"RESERVATION_CANCELLED\"%' \
                 begin delete from outbox where seq = new.seq; end"
            }
            Sabotage::EndedAttempts => {
                "create trigger sabotage after update of ended_attempts on reservations \
                 when new.ended_attempts is not null begin \
                 update reservations set ended_attempts = null where id = new.id; end"
            }
            Sabotage::FencingToken => {
                "create trigger sabotage after update of fence on reservations \
                 when new.status = 'pending' and new.fence > old.fence begin \
                 update reservations set fence = old.fence where id = new.id; end"
            }
            Sabotage::PinOwner => {
                "create trigger sabotage after update of ended_attempts on reservations \
                 when new.ended_attempts is not null and new.pinned_by is not null begin \
                 update reservations set pinned_by = null, pinned_at = null where id = new.id; end"
            }
            Sabotage::HoldEnd => {
                "create trigger sabotage after insert on reservations begin \
                 update reservations set expires_at = created_at where id = new.id; end"
            }
            Sabotage::IdempotencyKey => {
                "create trigger sabotage after insert on idempotency_keys begin \
                 delete from idempotency_keys where key = new.key; end"
            }
            Sabotage::Points => {
                "create trigger sabotage before insert on membership_points \
                 when new.action = 'TICKET_PURCHASE' begin select raise(ignore); end"
            }
            Sabotage::Stock => {
                "create trigger sabotage after update of available on ticket_types \
                 when new.available > old.available and new.available < new.total begin \
                 update ticket_types set available = available + 1 where id = new.id; end"
            }
            _ => return None,
        })
    }

    fn other_statement(self) -> Option<(DatabaseName, &'static str)> {
        Some(match self {
            Sabotage::Inbox => (
                DatabaseName::Witness,
                "create trigger sabotage after insert on inbox \
                 begin delete from inbox where event_id = new.event_id; end",
            ),
            Sabotage::OutboxMark => (
                DatabaseName::Payment,
                "create trigger sabotage after insert on outbox \
                 begin update outbox set published_at = created_at where seq = new.seq; end",
            ),
            Sabotage::PlaceInJournal => (
                DatabaseName::Journal,
                "create trigger sabotage before insert on places \
                 begin select raise(ignore); end",
            ),
            Sabotage::SlotInJournal => (
                DatabaseName::Journal,
                "create trigger sabotage before insert on slots \
                 begin select raise(ignore); end",
            ),
            Sabotage::SlotEnd => (
                DatabaseName::Journal,
                "create trigger sabotage before delete on slots \
                 begin select raise(ignore); end",
            ),
            Sabotage::LineOrder => (
                DatabaseName::Journal,
                "create trigger sabotage after insert on places begin \
                 update places set drawn = 1000 - new.arrival \
                 where room = new.room and arrival = new.arrival; end",
            ),
            Sabotage::LedgerLine => (
                DatabaseName::Payment,
                "create trigger sabotage before insert on ledger_lines \
                 when new.account = 'refunds_due' begin select raise(ignore); end",
            ),
            Sabotage::StatsFact => (
                DatabaseName::Stats,
                "create trigger sabotage after update on reservations \
                 when new.cancelled_at is not null begin \
                 update reservations set cancelled_at = null where id = new.id; end",
            ),
            _ => return None,
        })
    }
}
