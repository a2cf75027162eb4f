//! The gateway's own figures for operators.
//!
//! What is counted is counted where something is refused; everything else is read when somebody
//! looks, so that a request pays nothing for it. Labels are names of ours: classes, priorities and
//! services, never what a client sent.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use urr_service::{BreakerState, Metrics};

use crate::Gateway;
use crate::routes::{Priority, RateClass};

const CLASSES: [(RateClass, &str); 6] = [
    (RateClass::Auth, "auth"),
    (RateClass::Login, "login"),
    (RateClass::Refresh, "refresh"),
    (RateClass::Queue, "queue"),
    (RateClass::Booking, "booking"),
    (RateClass::General, "general"),
];
const PRIORITIES: [(Priority, &str); 3] =
    [(Priority::Pay, "pay"), (Priority::Hold, "hold"), (Priority::Browse, "browse")];

/// What was refused since the start.
#[derive(Debug, Default)]
pub struct Figures {
    limited: [AtomicU64; CLASSES.len()],
    shed: [AtomicU64; PRIORITIES.len()],
}

impl Figures {
    /// One too many of its rate class.
    pub fn limited(&self, class: RateClass) {
        let position = CLASSES.iter().position(|(named, _)| *named == class);
        let position = position.expect("every class has its name");
        self.limited[position].fetch_add(1, Ordering::Relaxed);
    }

    /// One for which there was no place.
    pub fn shed(&self, priority: Priority) {
        let position = PRIORITIES.iter().position(|(named, _)| *named == priority);
        let position = position.expect("every priority has its name");
        self.shed[position].fetch_add(1, Ordering::Relaxed);
    }
}

/// Shows the figures of this gateway for as long as it lives.
pub fn show(gateway: &Arc<Gateway>, metrics: &Metrics) {
    // The metrics outlive the gateway, and the gateway holds them itself.
    let watched = Watched(Arc::downgrade(gateway));
    metrics.with_registry(|registry| registry.register_collector(Box::new(watched)));
}

struct Watched(Weak<Gateway>);

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the gateway")
    }
}

type Rows = Vec<(&'static str, u64)>;

impl Collector for Watched {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some(gateway) = self.0.upgrade() else { return Ok(()) };
        let mut page = Page(&mut encoder);
        page.refusals(&gateway)?;
        page.places(&gateway)?;
        page.limiter(&gateway)?;
        page.revoked(&gateway)?;
        page.breakers(&gateway)
    }
}

struct Page<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Page<'_, '_> {
    fn refusals(&mut self, gateway: &Gateway) -> fmt::Result {
        let Figures { limited, shed } = &gateway.figures;
        let counts = limited.iter().map(|count| count.load(Ordering::Relaxed));
        let rows = CLASSES.iter().map(|(_, name)| *name).zip(counts).collect();
        let help = "Requests refused by their rate limit.";
        self.counters("urr_gateway_rate_limited", help, "class", rows)?;
        let counts = shed.iter().map(|count| count.load(Ordering::Relaxed));
        let rows = PRIORITIES.iter().map(|(_, name)| *name).zip(counts).collect();
        let help = "Requests refused because there was too much to do.";
        self.counters("urr_gateway_shed", help, "priority", rows)
    }

    fn places(&mut self, gateway: &Gateway) -> fmt::Result {
        let places: Vec<_> = gateway.overload.places().collect();
        let rows = places.iter().map(|places| (places.service, size(places.limit))).collect();
        let help = "How many requests may be under way now; `all` is for all services together.";
        self.gauges("urr_gateway_places", help, "target", rows)?;
        let rows = places.iter().map(|places| (places.service, size(places.taken))).collect();
        self.gauges("urr_gateway_places_taken", "How many are.", "target", rows)
    }

    fn limiter(&mut self, gateway: &Gateway) -> fmt::Result {
        let stats = gateway.limiter.stats();
        let help = "Checks that this process decided alone because Redis did not answer.";
        self.counter("urr_gateway_limiter_fallback", help, stats.fallback)?;
        let help = "Checks that shared a bucket because memory was full.";
        self.counter("urr_gateway_limiter_overflowed", help, stats.overflowed)?;
        let help = "1 while Redis is left out because it fails.";
        self.gauge("urr_gateway_limiter_alone", help, u64::from(gateway.limiter.is_alone()))
    }

    fn revoked(&mut self, gateway: &Gateway) -> fmt::Result {
        let Some(feed) = &gateway.feed else { return Ok(()) };
        let help = "Revoked tokens that have not expired.";
        self.gauge("urr_gateway_revoked_tokens", help, size(gateway.revoked.len()))?;
        // Without an age the list was never read: then nobody is let in as a user.
        let Some(age) = feed.age() else { return Ok(()) };
        let help = "Time since the revoked tokens were last read to their end.";
        self.gauge("urr_gateway_revoked_tokens_age_seconds", help, age.as_secs())
    }

    fn breakers(&mut self, gateway: &Gateway) -> fmt::Result {
        let state = |state| match state {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        };
        let upstreams = gateway.upstreams.values();
        let rows = upstreams.map(|to| (to.target(), state(to.breaker_state()))).collect();
        let help = "0: calls pass; 1: a few, to see whether the service is back; 2: none.";
        self.gauges("urr_gateway_breaker", help, "target", rows)
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(metric)
    }

    fn gauge(&mut self, name: &str, help: &str, figure: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(figure).unwrap_or(i64::MAX)).encode(metric)
    }

    fn counters(&mut self, name: &str, help: &str, label: &str, rows: Rows) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in rows {
            ConstCounter::new(count).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }

    fn gauges(&mut self, name: &str, help: &str, label: &str, rows: Rows) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (value, figure) in rows {
            let figure = i64::try_from(figure).unwrap_or(i64::MAX);
            ConstGauge::new(figure).encode(family.encode_family(&[(label, value)])?)?;
        }
        Ok(())
    }
}

fn size(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn every_class_and_priority_of_the_table_is_counted_under_its_name() {
        let figures = Figures::default();
        for route in ROUTES {
            figures.limited(route.rate_class);
            figures.shed(route.priority);
        }
        let sum = |counts: &[AtomicU64]| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            assert!(counts.clone().all(|count| count > 0), "each is used by some row");
            counts.sum::<u64>()
        };
        assert_eq!(sum(&figures.limited), size(ROUTES.len()));
        assert_eq!(sum(&figures.shed), size(ROUTES.len()));
    }
}
