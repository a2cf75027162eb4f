//! Which seats are sold, by section, price tier and row.

use std::collections::BTreeMap;

use urr_layout::Layout;

use super::{average, price_tier};

/// How many seats there are and how many are sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatOccupancy {
    pub seats: i64,
    pub sold: i64,
    /// The sum of their prices.
    pub price_sum: i64,
}

impl SeatOccupancy {
    pub fn price_average(&self) -> i64 {
        average(self.price_sum, self.seats)
    }
}

/// The seats by section, by what they cost, and by row of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeatPreferences {
    pub sections: BTreeMap<String, SeatOccupancy>,
    pub tiers: BTreeMap<&'static str, SeatOccupancy>,
    pub rows: BTreeMap<(String, String), SeatOccupancy>,
}

/// The section of standing tickets.
const STANDING: &str = "standing";

/// The inventory of an event and what is sold of it.
pub struct HallSales {
    pub layout: Option<Layout>,
    /// By grade.
    pub prices: BTreeMap<String, i64>,
    /// Ascending.
    pub sold_seats: Vec<u32>,
    /// Price and number of each ticket type.
    pub ticket_types: Vec<(i64, i64)>,
    pub places_sold: i64,
}

impl SeatPreferences {
    pub fn of(halls: &[HallSales]) -> SeatPreferences {
        let mut preferences = SeatPreferences::default();
        for hall in halls {
            if let Some(layout) = &hall.layout {
                preferences.add_seats(layout, &hall.prices, &hall.sold_seats);
            }
            if !hall.ticket_types.is_empty() {
                preferences.add_tickets(&hall.ticket_types, hall.places_sold);
            }
        }
        preferences
    }

    /// Adds the seats of an event. `sold` is ascending.
    fn add_seats(&mut self, layout: &Layout, prices: &BTreeMap<String, i64>, sold: &[u32]) {
        for (first, section, row) in layout.rows() {
            let end = first + u32::from(row.seats);
            let sold = sold.partition_point(|seat| *seat < end)
                - sold.partition_point(|seat| *seat < first);
            let price = prices.get(&section.grade).copied().unwrap_or(0);
            let seats = i64::from(row.seats);
            let sold = i64::try_from(sold).expect("a row is short");
            let occupancy = SeatOccupancy { seats, sold, price_sum: price * seats };
            self.add(&section.name, price, occupancy);
            let row = (section.name.clone(), row.label.clone());
            add(self.rows.entry(row).or_default(), occupancy);
        }
    }

    /// Adds the tickets of a standing event: price and number of each type. Which type was sold is
    /// not announced, so they count together, at their average price.
    fn add_tickets(&mut self, types: &[(i64, i64)], sold: i64) {
        let seats = types.iter().map(|(_, total)| total).sum();
        let price_sum = types.iter().map(|(price, total)| price * total).sum();
        let occupancy = SeatOccupancy { seats, sold, price_sum };
        self.add(STANDING, occupancy.price_average(), occupancy);
    }

    fn add(&mut self, section: &str, price: i64, occupancy: SeatOccupancy) {
        add(self.sections.entry(section.to_owned()).or_default(), occupancy);
        add(self.tiers.entry(price_tier(price)).or_default(), occupancy);
    }
}

fn add(sum: &mut SeatOccupancy, occupancy: SeatOccupancy) {
    sum.seats += occupancy.seats;
    sum.sold += occupancy.sold;
    sum.price_sum += occupancy.price_sum;
}
