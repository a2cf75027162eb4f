//! What the catalogue publishes, read and checked. Fields that we have no use for are ignored.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use urr_kernel::{TicketTypeDraft, Timestamp, Uuid, Won};
use urr_layout::Layout;

use crate::inventory::store::{NewSale, NewTicketType, SaleFacts};
use crate::{Inventory, InventoryKind};

/// `EVENT_CREATED`: everything.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCreated {
    pub event_id: Uuid,
    kind: String,
    layout: Option<Layout>,
    #[serde(default)]
    prices: BTreeMap<String, Won>,
    #[serde(default)]
    ticket_types: Vec<TicketTypeData>,
    #[serde(flatten)]
    pub facts: EventFacts,
}

/// `EVENT_UPDATED`: what may have changed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventUpdated {
    pub event_id: Uuid,
    #[serde(flatten)]
    pub facts: EventFacts,
}

/// `EVENT_CANCELLED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventCancelled {
    pub event_id: Uuid,
}

/// `EVENT_DELETED`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventDeleted {
    pub event_id: Uuid,
    /// Whether it has taken place. None: it is told by the times that are known.
    pub is_over: Option<bool>,
}

/// What can change about an event, as far as its sale is concerned. Also stored in this form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFacts {
    pub revision: i64,
    title: String,
    venue_name: String,
    artist_id: Option<Uuid>,
    starts_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    has_presale: bool,
    seats_per_user_max: u32,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TicketTypeData {
    id: Uuid,
    name: String,
    #[serde(default)]
    description: String,
    price: i64,
    total: i64,
}

impl EventFacts {
    pub fn has_begun(&self, now: Timestamp) -> bool {
        now >= self.starts_at
    }

    pub fn is_cancelled(&self) -> bool {
        self.status == "cancelled"
    }

    /// The facts of a sale, or why there can be none.
    pub fn to_sale_facts(&self) -> Result<SaleFacts, String> {
        if self.sale_starts_at >= self.sale_ends_at {
            return Err("the sale ends before it begins".to_owned());
        }
        if !(1..=10).contains(&self.seats_per_user_max) {
            return Err(format!("{} seats per user are not possible", self.seats_per_user_max));
        }
        Ok(SaleFacts {
            revision: self.revision,
            title: self.title.clone(),
            venue_name: self.venue_name.clone(),
            artist_id: self.artist_id,
            starts_at: self.starts_at,
            sale_starts_at: self.sale_starts_at,
            sale_ends_at: self.sale_ends_at,
            has_presale: self.has_presale,
            seats_per_user_max: self.seats_per_user_max,
        })
    }
}

impl EventCreated {
    /// What is to be sold, or why that cannot be sold.
    pub fn to_new_sale(&self) -> Result<NewSale, String> {
        let kind = InventoryKind::parse(&self.kind);
        let kind = kind.ok_or_else(|| format!("there is no kind of event {:?}", self.kind))?;
        let layout = self.layout.clone().unwrap_or(Layout { sections: Vec::new() });
        match kind {
            InventoryKind::Seated => {
                layout.check().map_err(|invalid| format!("the layout: {invalid}"))?;
                self.check_prices(&layout)?;
                if !self.ticket_types.is_empty() {
                    return Err("an event with seats has ticket types".to_owned());
                }
            }
            InventoryKind::Standing if !layout.sections.is_empty() => {
                return Err("a standing event has seats".to_owned());
            }
            InventoryKind::Standing => self.check_ticket_types()?,
        }
        let event_id = self.event_id;
        Ok(NewSale {
            inventory: Inventory { event_id, kind, layout, prices: self.prices.clone() },
            facts: self.facts.to_sale_facts()?,
            ticket_types: self
                .ticket_types
                .iter()
                .map(TicketTypeData::parse)
                .collect::<Result<_, _>>()?,
        })
    }

    fn check_prices(&self, layout: &Layout) -> Result<(), String> {
        for grade in layout.grades() {
            match self.prices.get(grade) {
                Some(price) if TicketTypeDraft::is_price(*price) => {}
                Some(price) => return Err(format!("the price of {grade:?} is {price}")),
                None => return Err(format!("the grade {grade:?} has no price")),
            }
        }
        Ok(())
    }

    fn check_ticket_types(&self) -> Result<(), String> {
        let (mut ids, mut names) = (HashSet::new(), HashSet::new());
        for ticket_type in &self.ticket_types {
            if !ids.insert(ticket_type.id) || !names.insert(ticket_type.name.trim()) {
                return Err(format!("the ticket type {:?} is there twice", ticket_type.name));
            }
        }
        Ok(())
    }
}

impl TicketTypeData {
    fn parse(&self) -> Result<NewTicketType, String> {
        let TicketTypeData { id, name, description, price, total } = self;
        let draft = TicketTypeDraft::parse(name, description, *price, *total);
        let draft = draft.map_err(|invalid| format!("the ticket type {name:?}: {invalid}"))?;
        Ok(NewTicketType::new(*id, &draft))
    }
}
