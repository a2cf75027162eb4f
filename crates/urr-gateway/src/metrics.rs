//! The gateway's metrics.
//!
//! Only refusals are counted on the way; everything else is read when metrics are scraped, so that
//! requests do not pay for it. Labels are rate classes, priorities and services, never what a client
//! sent.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use urr_service::{BreakerState, Metrics};

use crate::routes::{Priority, RateClass};
use crate::{Gateway, RevocationFeed};

/// Requests refused since the start.
#[derive(Debug, Default)]
pub struct GatewayMetrics {
    rate_limited: [AtomicU64; RateClass::ALL.len()],
    shed: [AtomicU64; Priority::ALL.len()],
}

impl GatewayMetrics {
    pub fn count_rate_limited(&self, class: RateClass) {
        self.rate_limited[class as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_shed(&self, priority: Priority) {
        self.shed[priority as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds the metrics of this gateway to the registry.
pub fn register(gateway: &Arc<Gateway>, metrics: &Metrics) {
    // A weak reference, because the registry outlives the gateway.
    let collector = GatewayCollector(Arc::downgrade(gateway));
    metrics.with_registry(|registry| registry.register_collector(Box::new(collector)));
}

struct GatewayCollector(Weak<Gateway>);

impl fmt::Debug for GatewayCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewayCollector")
    }
}

impl Collector for GatewayCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Some(gateway) = self.0.upgrade() else { return Ok(()) };
        let families = refusals(&gateway).into_iter().chain(permits(&gateway));
        let families = families.chain(limiter(&gateway)).chain(revoked_tokens(&gateway));
        for family in families.chain([breakers(&gateway)]) {
            family.encode(&mut encoder)?;
        }
        Ok(())
    }
}

/// Values of one metric, by the value of its label; without a label there is one value.
struct MetricFamily {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    label: Option<&'static str>,
    values: Vec<(&'static str, u64)>,
}

impl MetricFamily {
    fn counter(name: &'static str, help: &'static str) -> MetricFamily {
        MetricFamily { name, help, kind: MetricType::Counter, label: None, values: Vec::new() }
    }

    fn gauge(name: &'static str, help: &'static str) -> MetricFamily {
        MetricFamily { kind: MetricType::Gauge, ..MetricFamily::counter(name, help) }
    }

    fn value(self, value: u64) -> MetricFamily {
        MetricFamily { values: vec![("", value)], ..self }
    }

    fn values(
        self,
        label: &'static str,
        values: impl Iterator<Item = (&'static str, u64)>,
    ) -> MetricFamily {
        MetricFamily { label: Some(label), values: values.collect(), ..self }
    }

    fn encode(self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, self.kind)?;
        let Some(label) = self.label else {
            let value = self.values.first().map_or(0, |(_, value)| *value);
            return encode_value(self.kind, value, metric);
        };
        for (label_value, value) in self.values {
            encode_value(self.kind, value, metric.encode_family(&[(label, label_value)])?)?;
        }
        Ok(())
    }
}

fn encode_value(kind: MetricType, value: u64, metric: MetricEncoder<'_>) -> fmt::Result {
    match kind {
        MetricType::Counter => ConstCounter::new(value).encode(metric),
        _ => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric),
    }
}

fn refusals(gateway: &Gateway) -> [MetricFamily; 2] {
    let GatewayMetrics { rate_limited, shed } = &gateway.metrics;
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let classes = RateClass::ALL.map(RateClass::as_str).into_iter();
    let classes = classes.zip(rate_limited.iter().map(load));
    let priorities = Priority::ALL.map(Priority::as_str).into_iter().zip(shed.iter().map(load));
    [
        MetricFamily::counter("urr_gateway_rate_limited", "Requests refused by a rate limit.")
            .values("class", classes),
        MetricFamily::counter("urr_gateway_shed", "Requests refused because of overload.")
            .values("priority", priorities),
    ]
}

fn permits(gateway: &Gateway) -> [MetricFamily; 2] {
    let limits = gateway.overload.usage().map(|usage| (usage.service, size(usage.limit)));
    let used = gateway.overload.usage().map(|usage| (usage.service, size(usage.used)));
    let help = "How many requests may be in progress; `all` is for all services together.";
    [
        MetricFamily::gauge("urr_gateway_permits", help).values("target", limits),
        MetricFamily::gauge("urr_gateway_permits_used", "How many requests are in progress.")
            .values("target", used),
    ]
}

fn limiter(gateway: &Gateway) -> [MetricFamily; 3] {
    let stats = gateway.limiter.stats();
    let fallback = "Rate limit checks that this process decided alone because Redis failed.";
    let overflowed = "Rate limit checks that shared a bucket because memory was full.";
    let redis_down = "1 while the rate limiter does not use Redis because it fails.";
    [
        MetricFamily::counter("urr_gateway_limiter_fallback", fallback).value(stats.fallback),
        MetricFamily::counter("urr_gateway_limiter_overflowed", overflowed).value(stats.overflowed),
        MetricFamily::gauge("urr_gateway_limiter_redis_down", redis_down)
            .value(u64::from(gateway.limiter.is_redis_down())),
    ]
}

/// The age is absent until the list was read once.
fn revoked_tokens(gateway: &Gateway) -> impl Iterator<Item = MetricFamily> {
    let feed = gateway.feed.as_ref();
    let count = feed.map(|feed| {
        let help = "Revoked access tokens that have not expired.";
        MetricFamily::gauge("urr_gateway_revoked_tokens", help).value(size(feed.len()))
    });
    let age = feed.and_then(RevocationFeed::age).map(|age| {
        let help = "Time since the list of revoked tokens was last read to its end.";
        MetricFamily::gauge("urr_gateway_revoked_tokens_age_seconds", help).value(age.as_secs())
    });
    count.into_iter().chain(age)
}

fn breakers(gateway: &Gateway) -> MetricFamily {
    let state = |state| match state {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    };
    let upstreams = gateway.upstreams.values();
    let states = upstreams.map(|upstream| (upstream.target(), state(upstream.breaker_state())));
    let help = "Circuit breaker: 0 closed, 1 half open, 2 open.";
    MetricFamily::gauge("urr_gateway_breaker", help).values("target", states)
}

fn size(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn every_class_and_priority_of_the_table_is_counted() {
        assert!(RateClass::ALL.iter().enumerate().all(|(index, class)| *class as usize == index));
        assert!(Priority::ALL.iter().enumerate().all(|(index, one)| *one as usize == index));
        let metrics = GatewayMetrics::default();
        for route in ROUTES {
            metrics.count_rate_limited(route.rate_class);
            metrics.count_shed(route.priority);
        }
        let sum = |counts: &[AtomicU64]| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            assert!(counts.clone().all(|count| count > 0), "each is used by some route");
            counts.sum::<u64>()
        };
        assert_eq!(sum(&metrics.rate_limited), size(ROUTES.len()));
        assert_eq!(sum(&metrics.shed), size(ROUTES.len()));
    }
}
