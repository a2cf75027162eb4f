//! Which seats people take.

use std::collections::BTreeMap;

use urr_layout::Layout;

use super::{average, price_tier};

/// Seats of some kind: how many there are, how many are sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub seats: i64,
    pub sold: i64,
    /// What all of them cost together.
    pub price_sum: i64,
}

impl Taken {
    pub fn price_average(&self) -> i64 {
        average(self.price_sum, self.seats)
    }
}

/// The seats by section, by what they cost, and by row of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    pub sections: BTreeMap<String, Taken>,
    pub tiers: BTreeMap<&'static str, Taken>,
    pub rows: BTreeMap<(String, String), Taken>,
}

/// What standing tickets are called among the sections.
const STANDING: &str = "standing";

impl Preferences {
    /// Adds the seats of an event. `sold` is ascending.
    pub fn add_seats(&mut self, layout: &Layout, prices: &BTreeMap<String, i64>, sold: &[u32]) {
        for (first, section, row) in layout.rows() {
            let end = first + u32::from(row.seats);
            let sold = sold.partition_point(|seat| *seat < end)
                - sold.partition_point(|seat| *seat < first);
            let price = prices.get(&section.grade).copied().unwrap_or(0);
            let seats = i64::from(row.seats);
            let sold = i64::try_from(sold).expect("a row is short");
            let taken = Taken { seats, sold, price_sum: price * seats };
            self.add(&section.name, price, taken);
            let row = (section.name.clone(), row.label.clone());
            add(self.rows.entry(row).or_default(), taken);
        }
    }

    /// Adds the tickets of a standing event: price and number of each type. Which type was sold is
    /// not announced, so they count together, at their average price.
    pub fn add_tickets(&mut self, types: &[(i64, i64)], sold: i64) {
        let seats = types.iter().map(|(_, total)| total).sum();
        let price_sum = types.iter().map(|(price, total)| price * total).sum();
        let taken = Taken { seats, sold, price_sum };
        self.add(STANDING, taken.price_average(), taken);
    }

    fn add(&mut self, section: &str, price: i64, taken: Taken) {
        add(self.sections.entry(section.to_owned()).or_default(), taken);
        add(self.tiers.entry(price_tier(price)).or_default(), taken);
    }
}

fn add(sum: &mut Taken, taken: Taken) {
    sum.seats += taken.seats;
    sum.sold += taken.sold;
    sum.price_sum += taken.price_sum;
}
