//! The periodic work of the services, which the schedule begins when it likes.

use std::collections::BTreeMap;
use std::time::Duration;

use urr_contracts::events::catalog::{
    ArtistCreated, CatalogEventStatus, EventCreated, EventKind, EventSnapshot, OrderedTicketType,
};
use urr_kernel::{CallContext, EventData, Uuid};
use urr_layout::{GradeRows, Grid};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{Db, StorageError};
use urr_ticket::Sweeper;

use crate::databases::{
    ARTIST, SEATED_EVENT, SEATS, STANDING_EVENT, STANDING_TICKETS, TICKET_TYPE, epoch,
};
use crate::fans::PRICE;
use crate::services::{LiveProcess, Role};

/// A job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    ExpireHolds,
    EmptyClosedSales,
    ResumePayments,
    LoadRooms,
    Admit,
    SweepRoom,
    EndSlots,
    SettlePoints,
    EndTransfers,
}

impl JobKind {
    pub const ALL: [JobKind; 9] = [
        JobKind::ExpireHolds,
        JobKind::EmptyClosedSales,
        JobKind::ResumePayments,
        JobKind::LoadRooms,
        JobKind::Admit,
        JobKind::SweepRoom,
        JobKind::EndSlots,
        JobKind::SettlePoints,
        JobKind::EndTransfers,
    ];

    pub fn role(self) -> Role {
        match self {
            JobKind::ResumePayments => Role::Payment,
            JobKind::ExpireHolds
            | JobKind::EmptyClosedSales
            | JobKind::SettlePoints
            | JobKind::EndTransfers => Role::Ticket,
            JobKind::LoadRooms | JobKind::Admit | JobKind::SweepRoom | JobKind::EndSlots => {
                Role::Queue
            }
        }
    }
}

/// Does a job until it is done or its process has died. A failure is retried by the next one.
pub async fn run(job: JobKind, process: LiveProcess) {
    tokio::select! {
        biased;
        () = process.died.cancelled() => {}
        () = work(job, &process) => {}
    }
}

async fn work(job: JobKind, process: &LiveProcess) {
    let instance = &process.instance;
    match job {
        JobKind::ExpireHolds => {
            let mut sweeper = Sweeper::new(instance.ticket().0.clone());
            drop(sweeper.expire_overdue().await);
        }
        JobKind::EmptyClosedSales => {
            let mut sweeper = Sweeper::new(instance.ticket().0.clone());
            drop(sweeper.empty_closed_sales().await);
        }
        JobKind::SettlePoints => drop(instance.ticket().0.settle_points().await),
        JobKind::EndTransfers => drop(instance.ticket().0.end_started_transfers().await),
        JobKind::ResumePayments => drop(instance.payment().resolve_due().await),
        JobKind::LoadRooms => drop(instance.queue().load().await),
        JobKind::Admit => instance.queue().admit(SEATED_EVENT).await,
        JobKind::SweepRoom => instance.queue().sweep(SEATED_EVENT).await,
        JobKind::EndSlots => drop(instance.queue().end_bought_slots().await),
    }
}

/// The catalog announces an artist and two events.
pub async fn announce_events(catalog: Db) {
    let artist =
        ArtistCreated { artist_id: ARTIST, name: "강변".to_owned(), membership_price: PRICE };
    let all = GradeRows { grade: "R".to_owned(), from_row: 1, to_row: 1 };
    let grid = Grid { rows: 1, seats_per_row: SEATS, grade_mapping: vec![all] };
    let layout = grid.to_layout().expect("a row of seats is a layout");
    let seated = EventSnapshot {
        artist_id: Some(ARTIST),
        layout: Some(layout),
        prices: BTreeMap::from([("R".to_owned(), PRICE)]),
        ..event(SEATED_EVENT, EventKind::Seated)
    };
    let standing = EventSnapshot {
        ticket_types: vec![OrderedTicketType {
            id: TICKET_TYPE,
            name: "스탠딩".to_owned(),
            description: String::new(),
            price: PRICE,
            total: STANDING_TICKETS,
        }],
        ..event(STANDING_EVENT, EventKind::Standing)
    };
    announce(&catalog, 1, artist).await;
    announce(&catalog, 2, EventCreated(seated)).await;
    announce(&catalog, 3, EventCreated(standing)).await;
}

async fn announce<D: EventData + Clone + Send + Sync + 'static>(db: &Db, number: u128, data: D) {
    let id = Uuid::from_u128(0x0194_0000_0000_7000_9000_0000_0000_0000 + number);
    let metadata = EventMetadata {
        event_id: id,
        source: "urr/catalog",
        time: epoch(),
        context: CallContext::root(id),
    };
    let written = db.write(move |tx| outbox::append(tx, &metadata, &data)).await;
    written.unwrap_or_else(|error: StorageError| panic!("{error}"));
}

fn event(event_id: Uuid, kind: EventKind) -> EventSnapshot {
    let day = Duration::from_secs(24 * 60 * 60);
    EventSnapshot {
        event_id,
        revision: 1,
        title: "한강의 밤".to_owned(),
        kind,
        status: CatalogEventStatus::OnSale,
        artist_id: None,
        artist_name: None,
        venue_id: Uuid::from_u128(5),
        venue_name: "강변 홀".to_owned(),
        address: "서울".to_owned(),
        starts_at: epoch() + 20 * day,
        sale_starts_at: epoch() - day,
        sale_ends_at: epoch() + 10 * day,
        has_presale: false,
        seats_per_user_max: 4,
        organiser_id: None,
        requires_identity: false,
        allows_reentry: false,
        cancel_policy: None,
        layout: None,
        prices: BTreeMap::new(),
        ticket_types: Vec::new(),
    }
}
