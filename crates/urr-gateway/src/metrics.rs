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
use prometheus_client::metrics::MetricType::{self, Counter, Gauge};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use urr_service::{BreakerState, Metrics};

use crate::Gateway;
use crate::routes::{Priority, RateClass};

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
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let Some(gateway) = self.0.upgrade() else { return Ok(()) };
        let mut metrics = MetricWriter(encoder);
        write_refusals(&gateway, &mut metrics)?;
        write_permits(&gateway, &mut metrics)?;
        write_limiter(&gateway, &mut metrics)?;
        write_revoked_tokens(&gateway, &mut metrics)?;
        write_breakers(&gateway, &mut metrics)
    }
}

struct MetricWriter<'a>(DescriptorEncoder<'a>);

impl MetricWriter<'_> {
    /// A metric with one value.
    fn one(&mut self, kind: MetricType, name: &str, help: &str, value: u64) -> fmt::Result {
        encode_value(kind, value, self.0.encode_descriptor(name, help, None, kind)?)
    }

    /// A metric with a value for each value of a label.
    fn each(
        &mut self,
        kind: MetricType,
        (name, help): (&str, &str),
        label: &'static str,
        values: impl Iterator<Item = (&'static str, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (label_value, value) in values {
            encode_value(kind, value, metric.encode_family(&[(label, label_value)])?)?;
        }
        Ok(())
    }
}

fn encode_value(kind: MetricType, value: u64, metric: MetricEncoder<'_>) -> fmt::Result {
    match kind {
        Counter => ConstCounter::new(value).encode(metric),
        _ => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric),
    }
}

fn write_refusals(gateway: &Gateway, metrics: &mut MetricWriter<'_>) -> fmt::Result {
    let GatewayMetrics { rate_limited, shed } = &gateway.metrics;
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let classes = RateClass::ALL.map(RateClass::as_str).into_iter();
    let classes = classes.zip(rate_limited.iter().map(load));
    let rate_limited = ("urr_gateway_rate_limited", "Requests refused by a rate limit.");
    metrics.each(Counter, rate_limited, "class", classes)?;
    let priorities = Priority::ALL.map(Priority::as_str).into_iter().zip(shed.iter().map(load));
    let shed = ("urr_gateway_shed", "Requests refused because of overload.");
    metrics.each(Counter, shed, "priority", priorities)
}

fn write_permits(gateway: &Gateway, metrics: &mut MetricWriter<'_>) -> fmt::Result {
    let limits = gateway.overload.usage().map(|usage| (usage.service, size(usage.limit)));
    let used = gateway.overload.usage().map(|usage| (usage.service, size(usage.used)));
    let help = "How many requests may be in progress; `all` is for all services together.";
    metrics.each(Gauge, ("urr_gateway_permits", help), "target", limits)?;
    let help = "How many requests are in progress.";
    metrics.each(Gauge, ("urr_gateway_permits_used", help), "target", used)
}

fn write_limiter(gateway: &Gateway, metrics: &mut MetricWriter<'_>) -> fmt::Result {
    let stats = gateway.limiter.stats();
    let help = "Rate limit checks that this process decided alone because Redis failed.";
    metrics.one(Counter, "urr_gateway_limiter_fallback", help, stats.fallback)?;
    let help = "Rate limit checks that shared a bucket because memory was full.";
    metrics.one(Counter, "urr_gateway_limiter_overflowed", help, stats.overflowed)?;
    let help = "1 while the rate limiter does not use Redis because it fails.";
    let is_down = u64::from(gateway.limiter.is_redis_down());
    metrics.one(Gauge, "urr_gateway_limiter_redis_down", help, is_down)
}

/// The age is absent until the list was read once.
fn write_revoked_tokens(gateway: &Gateway, metrics: &mut MetricWriter<'_>) -> fmt::Result {
    let Some(feed) = &gateway.feed else { return Ok(()) };
    let help = "Revoked access tokens that have not expired.";
    metrics.one(Gauge, "urr_gateway_revoked_tokens", help, size(feed.len()))?;
    let Some(age) = feed.age() else { return Ok(()) };
    let help = "Time since the list of revoked tokens was last read to its end.";
    metrics.one(Gauge, "urr_gateway_revoked_tokens_age_seconds", help, age.as_secs())
}

fn write_breakers(gateway: &Gateway, metrics: &mut MetricWriter<'_>) -> fmt::Result {
    let state = |state| match state {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    };
    let upstreams = gateway.upstreams.values();
    let states = upstreams.map(|upstream| (upstream.target(), state(upstream.breaker_state())));
    let help = "Circuit breaker: 0 closed, 1 half open, 2 open.";
    metrics.each(Gauge, ("urr_gateway_breaker", help), "target", states)
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
