//! The autopilot lowers the admission rate while booking fails or is slow, and raises it again
//! (Q13).
//!
//! It is off by default. It never exceeds the configured rate, never goes below one per second, and
//! does not change the threshold. Once a second it gets the booking health: too many failures, or
//! answers much slower than usual, cut the rate to seven tenths; a good second raises it a little.
//! The usual response time is learnt slowly, from good seconds alone.
//!
//! Every process has its own autopilots. The ticket process that answers them answers for all ticket
//! processes, so they see the same. A room counts the admissions of all processes but obeys the rate
//! of each call, so the highest rate of all processes is in force: within seconds all lower theirs.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use urr_contracts::internal::ticket::BookingHealth;
use urr_kernel::Uuid;

use crate::{EventRoom, QueueSettings};

/// More failures than this are too many, in thousandths of the requests.
const FAILED_MILLI_MAX: u64 = 20;
/// Fewer failures are ignored.
const FAILED_MIN: u64 = 3;
/// Fewer answers do not tell how slow booking is.
const ANSWERED_MIN: u64 = 20;
/// This many times the usual response time is too slow.
const TOO_SLOW: u64 = 2;
/// Below the first it is never too slow, above the second it always is.
const MICROS_FINE: u64 = 100_000;
const MICROS_TOO_SLOW: u64 = 2_000_000;
/// The effect of a cut takes time: the numbers are of the last seconds.
const TICKS_BETWEEN_CUTS: u32 = 5;
/// How many good seconds lead from one per second to the full rate.
const TICKS_TO_RECOVER: u64 = 60;
/// Without a report the rate stays for so many seconds, then it falls.
const SILENT_TICKS_MAX: u32 = 10;
/// An event whose room is empty for longer is forgotten.
const ABSENT_TICKS_MAX: u32 = 60;

/// The autopilots of all events.
#[derive(Default)]
pub struct Autopilots(RwLock<HashMap<Uuid, Autopilot>>);

impl Autopilots {
    /// The admissions per second at most; `None` if the autopilot is off.
    pub fn rate_max(&self, event_id: Uuid) -> Option<u32> {
        let autopilots = self.0.read().unwrap_or_else(PoisonError::into_inner);
        autopilots.get(&event_id).map(Autopilot::rate_max)
    }

    /// Called once a second. `events` have occupied rooms; `booking` is `None` without a recent
    /// report.
    pub fn tick(
        &self,
        events: &[Arc<EventRoom>],
        booking: Option<BookingHealth>,
        settings: &QueueSettings,
    ) {
        let mut autopilots = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for autopilot in autopilots.values_mut() {
            autopilot.absent_ticks += 1;
        }
        for event in events {
            if !event.room_settings.has_autopilot {
                autopilots.remove(&event.event_id);
                continue;
            }
            let wished = event.room_settings.admitted_per_second_max;
            let rate_set = wished.unwrap_or(settings.admitted_per_second_max);
            let autopilot =
                autopilots.entry(event.event_id).or_insert_with(|| Autopilot::new(rate_set));
            let before = autopilot.rate_max();
            autopilot.tick(rate_set, booking);
            autopilot.absent_ticks = 0;
            let (event_id, after) = (event.event_id, autopilot.rate_max());
            if after < before {
                tracing::info!(%event_id, before, after, ?booking, "the autopilot lowered the admission rate");
            }
        }
        autopilots.retain(|_, autopilot| autopilot.absent_ticks <= ABSENT_TICKS_MAX);
    }
}

/// The autopilot of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Autopilot {
    /// In thousandths of a person in a second.
    rate_milli: u64,
    /// The usual response time.
    p95_micros: Option<u64>,
    ticks_since_cut: u32,
    silent_ticks: u32,
    absent_ticks: u32,
}

/// What the autopilot makes of the booking health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BookingTrend {
    Good,
    /// No reason to change the rate.
    Fair,
    Bad,
}

impl Autopilot {
    /// It begins with the configured rate.
    fn new(rate_set: u32) -> Autopilot {
        Autopilot {
            rate_milli: u64::from(rate_set) * 1_000,
            p95_micros: None,
            ticks_since_cut: TICKS_BETWEEN_CUTS,
            silent_ticks: 0,
            absent_ticks: 0,
        }
    }

    fn rate_max(&self) -> u32 {
        u32::try_from(self.rate_milli / 1_000).unwrap_or(u32::MAX).max(1)
    }

    fn tick(&mut self, rate_set: u32, booking: Option<BookingHealth>) {
        let most = u64::from(rate_set) * 1_000;
        self.ticks_since_cut = self.ticks_since_cut.saturating_add(1);
        match booking {
            Some(booking) => self.tick_with_report(most, &booking),
            None => self.tick_without_report(),
        }
        self.rate_milli = self.rate_milli.clamp(1_000.min(most), most);
    }

    fn tick_with_report(&mut self, most: u64, booking: &BookingHealth) {
        self.silent_ticks = 0;
        let health = self.health(booking);
        match health {
            BookingTrend::Bad if self.ticks_since_cut >= TICKS_BETWEEN_CUTS => self.cut(),
            BookingTrend::Bad | BookingTrend::Fair => {}
            BookingTrend::Good => self.rate_milli += (most / TICKS_TO_RECOVER).max(100),
        }
        if health == BookingTrend::Good && booking.answered >= ANSWERED_MIN {
            self.learn(booking.p95_micros);
        }
    }

    /// The ticket service may be too overloaded to report.
    fn tick_without_report(&mut self) {
        self.silent_ticks = self.silent_ticks.saturating_add(1);
        if self.silent_ticks > SILENT_TICKS_MAX && self.ticks_since_cut >= TICKS_BETWEEN_CUTS {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.rate_milli = self.rate_milli * 7 / 10;
        self.ticks_since_cut = 0;
    }

    fn health(&self, booking: &BookingHealth) -> BookingTrend {
        let BookingHealth { answered, failed, p95_micros, .. } = *booking;
        let failed_milli = failed * 1_000 / (answered + failed).max(1);
        if failed >= FAILED_MIN && failed_milli > FAILED_MILLI_MAX {
            return BookingTrend::Bad;
        }
        if answered < ANSWERED_MIN {
            return BookingTrend::Good;
        }
        let usual = self.p95_micros.unwrap_or(MICROS_TOO_SLOW / TOO_SLOW);
        let too_slow = (usual * TOO_SLOW).clamp(MICROS_FINE, MICROS_TOO_SLOW);
        match p95_micros {
            slow if slow > too_slow => BookingTrend::Bad,
            slow if slow > too_slow * 3 / 4 => BookingTrend::Fair,
            _ => BookingTrend::Good,
        }
    }

    /// A faster time is adopted soon, a slower one takes minutes.
    fn learn(&mut self, p95_micros: u64) {
        let usual = self.p95_micros.unwrap_or(p95_micros);
        self.p95_micros = Some(match p95_micros < usual {
            true => usual - (usual - p95_micros) / 8,
            false => usual + (p95_micros - usual) / 128,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use urr_kernel::Timestamp;

    use super::*;

    fn booking(answered: u64, failed: u64, p95_millis: u64) -> Option<BookingHealth> {
        let p95_micros = p95_millis * 1_000;
        Some(BookingHealth { answered, failed, p50_micros: 0, p95_micros, p99_micros: 0 })
    }

    const WELL: Option<BookingHealth> = Some(BookingHealth {
        answered: 500,
        failed: 0,
        p50_micros: 9_000,
        p95_micros: 30_000,
        p99_micros: 60_000,
    });

    /// An autopilot that has seen a minute of good booking.
    fn settled(rate_set: u32) -> Autopilot {
        let mut autopilot = Autopilot::new(rate_set);
        for _ in 0..60 {
            autopilot.tick(rate_set, WELL);
        }
        autopilot
    }

    fn after(autopilot: &Autopilot, booking: Option<BookingHealth>) -> u32 {
        let mut autopilot = autopilot.clone();
        autopilot.tick(100, booking);
        autopilot.rate_max()
    }

    #[test]
    fn while_booking_is_well_the_rate_is_the_one_that_was_set() {
        assert_eq!(Autopilot::new(100).rate_max(), 100);
        assert_eq!(settled(100).rate_max(), 100);
        assert_eq!(after(&settled(100), booking(0, 0, 0)), 100, "nobody books");
    }

    #[test]
    fn failures_and_slow_answers_cut_the_rate() {
        let autopilot = settled(100);
        assert_eq!(after(&autopilot, booking(950, 50, 30)), 70);
        assert_eq!(after(&autopilot, booking(500, 0, 101)), 70);
        assert_eq!(after(&autopilot, booking(0, 30, 0)), 70, "nothing is answered at all");
    }

    #[test]
    fn a_few_failures_and_a_little_more_time_do_not() {
        let autopilot = settled(100);
        for booking in [booking(10, 2, 30), booking(990, 10, 30), booking(500, 0, 100)] {
            assert_eq!(after(&autopilot, booking), 100, "{booking:?}");
        }
        assert_eq!(after(&autopilot, booking(19, 0, 5_000)), 100, "too few to tell");
    }

    #[test]
    fn what_is_slow_depends_on_what_is_usual() {
        let mut slow = Autopilot::new(100);
        for _ in 0..60 {
            slow.tick(100, booking(500, 0, 400));
        }
        assert_eq!(after(&slow, booking(500, 0, 700)), 100);
        assert_eq!(after(&slow, booking(500, 0, 900)), 70);
        // But not without limit, however slowly it comes.
        for tick in 0..100_000 {
            slow.tick(100, booking(500, 0, 400 + tick / 100));
        }
        assert_eq!(after(&slow, booking(500, 0, 1_400)), 100);
        assert_eq!(after(&slow, booking(500, 0, 2_001)), 70);
    }

    #[test]
    fn the_rate_never_falls_below_one_nor_rises_above_what_was_set() {
        let mut autopilot = settled(100);
        for _ in 0..1_000 {
            autopilot.tick(100, booking(0, 500, 5_000));
            assert!((1..=100).contains(&autopilot.rate_max()), "{autopilot:?}");
        }
        assert_eq!(autopilot.rate_max(), 1);
        for _ in 0..1_000 {
            autopilot.tick(100, WELL);
            assert!((1..=100).contains(&autopilot.rate_max()), "{autopilot:?}");
        }
        assert_eq!(autopilot.rate_max(), 100);
        autopilot.tick(40, WELL);
        assert_eq!(autopilot.rate_max(), 40, "the organiser wishes fewer");
    }

    #[test]
    fn the_effect_of_a_cut_is_waited_for() {
        let mut autopilot = settled(100);
        let mut rates = Vec::new();
        for _ in 0..9 {
            autopilot.tick(100, booking(500, 100, 30));
            rates.push(autopilot.rate_max());
        }
        assert_eq!(rates, [70, 70, 70, 70, 70, 49, 49, 49, 49]);
    }

    #[test]
    fn a_cut_is_given_back_little_by_little() {
        let mut autopilot = settled(100);
        autopilot.tick(100, booking(500, 100, 30));
        let mut rates = Vec::new();
        for _ in 0..20 {
            autopilot.tick(100, WELL);
            rates.push(autopilot.rate_max());
        }
        assert!(rates.is_sorted(), "{rates:?}");
        assert_eq!((rates[0], rates[9], rates[19]), (71, 86, 100));
    }

    #[test]
    fn a_silent_office_is_waited_for_and_then_spared() {
        let mut autopilot = settled(100);
        for _ in 0..SILENT_TICKS_MAX {
            autopilot.tick(100, None);
            assert_eq!(autopilot.rate_max(), 100);
        }
        for _ in 0..9 {
            autopilot.tick(100, None);
        }
        assert_eq!(autopilot.rate_max(), 49);
        autopilot.tick(100, WELL);
        assert_eq!(autopilot.rate_max(), 50, "it answers again");
    }

    /// A ticket service with a capacity per second. Excess requests queue up and fail after five
    /// seconds.
    struct Office {
        capacity: u64,
        backlog: u64,
        /// Of the last ten seconds: answered, failed, milliseconds.
        seconds: VecDeque<(u64, u64, u64)>,
    }

    impl Office {
        fn second(&mut self, came: u64) {
            self.backlog += came;
            let done = self.backlog.min(self.capacity);
            self.backlog -= done;
            let millis = 30 + self.backlog * 1_000 / self.capacity;
            let gave_up = self.backlog.saturating_sub(5 * self.capacity);
            self.backlog -= gave_up;
            self.seconds.push_back((done, gave_up, millis));
            if self.seconds.len() > 10 {
                self.seconds.pop_front();
            }
        }

        /// The slowest second stands for the slowest twentieth.
        fn booking(&self) -> Option<BookingHealth> {
            let answered = self.seconds.iter().map(|second| second.0).sum();
            let failed = self.seconds.iter().map(|second| second.1).sum();
            booking(answered, failed, self.seconds.iter().map(|second| second.2).max()?)
        }
    }

    /// Ten minutes of a sale with a hundred admissions per second. From the third to the eighth
    /// minute the capacity is only sixty. Returns failures, the answers of the bad minutes, and the
    /// last rate.
    fn sale(has_autopilot: bool) -> (u64, u64, u32) {
        let mut ticket = Office { capacity: 150, backlog: 0, seconds: VecDeque::new() };
        let mut autopilot = Autopilot::new(100);
        let (mut failures, mut done, mut rate) = (0, 0, 100);
        for second in 0..600 {
            let is_ill = (120..480).contains(&second);
            ticket.capacity = if is_ill { 60 } else { 150 };
            ticket.second(rate.into());
            autopilot.tick(100, ticket.booking());
            if has_autopilot {
                rate = autopilot.rate_max();
            }
            let (answered, failed, _) = ticket.seconds[ticket.seconds.len() - 1];
            failures += failed;
            done += if is_ill { answered } else { 0 };
        }
        (failures, done, rate)
    }

    #[test]
    fn an_office_that_can_do_less_is_spared_and_found_well_again() {
        let (failures, done, rate) = sale(true);
        assert_eq!(failures, 0);
        assert!(done >= 360 * 60 * 7 / 10, "it is not left idle: {done}");
        assert_eq!(rate, 100);
        // The control: without an autopilot.
        let (failures, ..) = sale(false);
        assert!(failures > 10_000, "{failures}");
    }

    #[test]
    fn it_flies_only_where_it_is_wished_and_forgets_who_is_gone() {
        let event = |has_autopilot| {
            let room_settings =
                crate::RoomSettings { has_autopilot, ..crate::RoomSettings::default() };
            Arc::new(EventRoom {
                event_id: Uuid::from_u128(1),
                status: crate::RoomEventStatus::Open,
                title: String::new(),
                artist_id: None,
                artist_name: None,
                organiser_id: None,
                sale_starts_at: Timestamp::UNIX_EPOCH,
                sale_ends_at: Timestamp::MAX,
                has_presale: false,
                room_settings,
                draw: None,
                awaits_clearing: false,
            })
        };
        let (autopilots, settings) = (Autopilots::default(), QueueSettings::default());
        let rate = |events: &[Arc<EventRoom>], booking| {
            autopilots.tick(events, booking, &settings);
            autopilots.rate_max(Uuid::from_u128(1))
        };
        let ill = booking(500, 100, 30);
        assert_eq!(rate(&[event(false)], ill), None);
        assert_eq!(rate(&[event(true)], ill), Some(70));
        assert_eq!(rate(&[], ill), Some(70), "the rooms could not be listed for a moment");
        assert_eq!(rate(&[event(false)], ill), None);
        assert_eq!(rate(&[event(true)], WELL), Some(100));
        for _ in 0..=ABSENT_TICKS_MAX {
            rate(&[], WELL);
        }
        assert_eq!(autopilots.rate_max(Uuid::from_u128(1)), None);
    }
}
