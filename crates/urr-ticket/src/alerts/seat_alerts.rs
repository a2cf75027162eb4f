//! Alerts about returned seats: asking, withdrawing, and one's own list.

use std::collections::BTreeMap;
use std::sync::Arc;

use urr_kernel::{Timestamp, Uuid, define_id};
use urr_storage::{DbResult, StorageError, Tx, storable_enum, storable_id};

use crate::alerts::rules::{AlertSubject, SeatWish, free_of};
use crate::alerts::sale_alerts::tier_of;
use crate::alerts::store::{self, NewSeatAlert};
use crate::inventory::rules::NotOnSale;
use crate::inventory::store::{LockedSale, sale_lock_only};
use crate::inventory::ticket_types::store::{ticket_type_find, ticket_type_list};
use crate::reservations::store::live_quantity;
use crate::reserve::batch::statuses_load;
use crate::seat_map::snapshot::count_by_grade;
use crate::{AlertSettings, Inventory, InventoryKind, InventorySnapshot, TicketService};

define_id!(
    /// The id of a seat alert.
    SeatAlertId
);
storable_id!(SeatAlertId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatAlertStatus {
    Waiting,
    /// The fan was told.
    Told,
    /// The fan was told and held seats.
    Taken,
    /// The fan was told and does not want them.
    Withdrawn,
}

storable_enum!(SeatAlertStatus {
    Waiting => "waiting",
    Told => "told",
    Taken => "taken",
    Withdrawn => "withdrawn",
});

/// A fan's alert about returned seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatAlert {
    pub id: SeatAlertId,
    pub event_id: Uuid,
    pub title: String,
    pub venue_name: String,
    pub starts_at: Timestamp,
    pub subject: AlertSubject,
    /// The grade or the name of the ticket type; none for the whole event.
    pub grade: Option<String>,
    pub quantity: u32,
    pub status: SeatAlertStatus,
    /// How many wait for the same before this fan.
    pub ahead: u32,
    pub asked_at: Timestamp,
    pub told_at: Option<Timestamp>,
    /// Of a fan who was told: until then nobody is told after them.
    pub head_start_until: Option<Timestamp>,
}

/// An alert with its event, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct SeatAlertRow {
    pub id: SeatAlertId,
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub subject: AlertSubject,
    pub quantity: u32,
    pub number: i64,
    pub status: SeatAlertStatus,
    pub asked_at: Timestamp,
    pub told_at: Option<Timestamp>,
    pub title: String,
    pub venue_name: String,
    pub starts_at: Timestamp,
}

/// A request for an alert. The quantity is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskSeatAlert {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub subject: AlertSubject,
    pub quantity: u32,
}

/// Why there is no alert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatAlertError {
    #[error(transparent)]
    NotOnSale(#[from] NotOnSale),
    #[error("The event has no such grade or ticket type.")]
    SubjectNotFound,
    #[error("Seats are left. You can buy now.")]
    SeatsLeft { available: u32 },
    #[error("Nobody may have more than {seats_per_user_max} of this event.")]
    SeatLimit { seats_per_user_max: u32, live_quantity: u32 },
    #[error("You have {alerts_max} alerts already. Please withdraw one first.")]
    TooMany { alerts_max: u32 },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// Asks to be told when seats return. Repeating it keeps the place and sets the quantity.
    pub async fn ask_seat_alert(&self, ask: AskSeatAlert) -> Result<SeatAlert, SeatAlertError> {
        let stock = self.load_stock(ask.event_id).await?.ok_or(NotOnSale::NotFound)?;
        let (settings, now) = (self.settings.alerts.clone(), self.clock.now());
        let (event_id, user_id) = (ask.event_id, ask.user_id);
        let wish = SeatWish { subject: ask.subject, quantity: ask.quantity };
        let id = SeatAlertId(self.ids.next_id());
        let new = NewSeatAlert { id, event_id, user_id, wish, now };
        self.db
            .write(move |tx| {
                let row = ask_under_lock(tx, &new, &stock, &settings)?;
                Ok(row.describe(tx, &settings)?)
            })
            .await
    }

    /// Withdraws one's own alert. If the fan was told already, the next one is told at once.
    pub async fn withdraw_seat_alert(&self, id: SeatAlertId, user_id: Uuid) -> DbResult<()> {
        let now = self.clock.now();
        let withdraw = move |tx: &mut Tx<'_>| {
            let found = store::seat_alert_find(tx, id)?.filter(|row| row.user_id == user_id);
            let Some(row) = found else { return Ok(()) };
            store::seat_alert_withdraw(tx, id)?;
            store::gates_recheck(tx, row.event_id, now)
        };
        self.db.write(withdraw).await
    }

    pub async fn my_seat_alerts(&self, user_id: Uuid) -> DbResult<Vec<SeatAlert>> {
        let settings = self.settings.alerts.clone();
        let list = move |tx: &mut Tx<'_>| {
            let rows = store::seat_alert_list(tx, user_id)?;
            let mut alerts = Vec::with_capacity(rows.len());
            for row in rows {
                alerts.push(row.describe(tx, &settings)?);
            }
            Ok(alerts)
        };
        self.db.read(list).await
    }

    /// What an event sells, with a recent map. None: there is no such event.
    pub(crate) async fn load_stock(&self, event_id: Uuid) -> DbResult<Option<EventStock>> {
        let Some(inventory) = self.inventories.get(event_id).await? else { return Ok(None) };
        // Without the map all changes are read from the database.
        let map = match inventory.kind {
            InventoryKind::Seated => self.maps.load(event_id).await.ok().flatten(),
            InventoryKind::Standing => None,
        };
        Ok(Some(EventStock { inventory, map }))
    }
}

/// What an event sells.
#[derive(Clone)]
pub(crate) struct EventStock {
    pub inventory: Arc<Inventory>,
    map: Option<Arc<InventorySnapshot>>,
}

impl EventStock {
    /// What is free of every grade or ticket type. The sale is locked.
    pub fn free(&self, tx: &mut Tx<'_>, sale: &LockedSale) -> DbResult<BTreeMap<String, u32>> {
        let Inventory { event_id, kind, layout, .. } = &*self.inventory;
        match kind {
            InventoryKind::Seated => {
                let statuses = statuses_load(tx, &self.inventory, self.map.as_deref(), sale.fence)?;
                Ok(count_by_grade(layout, &statuses).into_iter().collect())
            }
            InventoryKind::Standing => {
                let types = ticket_type_list(tx, *event_id)?;
                Ok(types.into_iter().map(|one| (one.id.to_string(), one.available)).collect())
            }
        }
    }
}

/// Decides and writes. Nothing is written before all is decided.
fn ask_under_lock(
    tx: &mut Tx<'_>,
    new: &NewSeatAlert,
    stock: &EventStock,
    settings: &AlertSettings,
) -> Result<SeatAlertRow, SeatAlertError> {
    let NewSeatAlert { event_id, user_id, wish, now, .. } = new;
    let sale = sale_lock_only(tx, *event_id)?.ok_or(NotOnSale::NotFound)?;
    let tier = tier_of(tx, &sale.policy, *user_id, *now)?;
    sale.policy.check_open(tier, *now)?;
    let free = stock.free(tx, &sale)?;
    if !wish.subject.is_whole_event() && !free.contains_key(wish.subject.as_str()) {
        return Err(SeatAlertError::SubjectNotFound);
    }
    let live_quantity = live_quantity(tx, *event_id, *user_id)?;
    let seats_per_user_max = sale.policy.seats_per_user_max;
    if live_quantity.saturating_add(wish.quantity) > seats_per_user_max {
        return Err(SeatAlertError::SeatLimit { seats_per_user_max, live_quantity });
    }
    if let Some(row) = store::seat_alert_find_waiting(tx, *event_id, *user_id, &wish.subject)? {
        store::seat_alert_set_quantity(tx, row.id, wish.quantity)?;
        store::gates_recheck(tx, *event_id, *now)?;
        return Ok(SeatAlertRow { quantity: wish.quantity, ..row });
    }
    // A gate closes what is free, so there is none for what can be bought.
    let available = free_of(&free, &wish.subject);
    if available > 0 {
        return Err(SeatAlertError::SeatsLeft { available });
    }
    let alerts_max = settings.seat_alerts_per_user_max;
    store::alert_owner_lock(tx, *user_id)?;
    if store::seat_alert_count(tx, *user_id)? >= alerts_max {
        return Err(SeatAlertError::TooMany { alerts_max });
    }
    store::seat_alert_insert(tx, new)?;
    Ok(store::seat_alert_find(tx, new.id)?.expect("it was just made"))
}

impl SeatAlertRow {
    fn describe(self, tx: &mut Tx<'_>, settings: &AlertSettings) -> DbResult<SeatAlert> {
        let ahead = match self.status {
            SeatAlertStatus::Waiting => store::seat_alert_count_ahead(tx, &self)?,
            SeatAlertStatus::Told | SeatAlertStatus::Taken | SeatAlertStatus::Withdrawn => 0,
        };
        let grade = subject_name(tx, &self.subject)?;
        let head_start_until = self.told_at.map(|told_at| told_at + settings.head_start);
        Ok(SeatAlert {
            id: self.id,
            event_id: self.event_id,
            title: self.title,
            venue_name: self.venue_name,
            starts_at: self.starts_at,
            subject: self.subject,
            grade,
            quantity: self.quantity,
            status: self.status,
            ahead,
            asked_at: self.asked_at,
            told_at: self.told_at,
            head_start_until,
        })
    }
}

/// What the subject is called; none for the whole event.
pub(crate) fn subject_name(tx: &mut Tx<'_>, subject: &AlertSubject) -> DbResult<Option<String>> {
    if subject.is_whole_event() {
        return Ok(None);
    }
    let name = match subject.as_str().parse() {
        Ok(id) => ticket_type_find(tx, id)?.map(|found| found.name),
        Err(_) => None,
    };
    Ok(Some(name.unwrap_or_else(|| subject.as_str().to_owned())))
}
