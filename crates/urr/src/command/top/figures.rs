//! The figures of `urr top`: what changed between two moments.

use super::scrape::{Scrape, WantedLabels};
use crate::text_table::align;

const DURATIONS: &str = "urr_http_request_duration_seconds_bucket";
const GATEWAY: WantedLabels<'static> = &[("service", "gateway")];

/// The whole picture. The two moments are a second apart, so differences are rates.
pub fn render(before: &Scrape, now: &Scrape) -> String {
    let moments = Moments { before, now };
    format!("{}\n\n{}", align(&moments.subjects()), align(&moments.services()))
}

struct Moments<'a> {
    before: &'a Scrape,
    now: &'a Scrape,
}

impl Moments<'_> {
    /// A counter that went back belongs to a process that was restarted.
    fn rate(&self, name: &str, wanted: WantedLabels<'_>) -> i64 {
        (self.now.sum(name, wanted) - self.before.sum(name, wanted)).max(0)
    }

    /// The bound below which so many of a hundred requests were answered.
    fn percentile(&self, percent: i64, wanted: WantedLabels<'_>) -> String {
        let before = self.before.buckets(DURATIONS, wanted);
        let earlier = |bound| before.iter().find(|(b, _)| *b == bound).map_or(0, |(_, n)| *n);
        let counts: Vec<_> = self
            .now
            .buckets(DURATIONS, wanted)
            .into_iter()
            .map(|(bound, count)| (bound, count - earlier(bound)))
            .collect();
        let total = counts.last().map_or(0, |(_, count)| *count);
        let reached = counts.iter().find(|(_, count)| count * 100 >= total * percent);
        match reached {
            _ if total <= 0 => "-".to_owned(),
            Some((Some(bound), _)) => format!("< {} ms", thousandths(*bound)),
            _ => "> 10 s".to_owned(),
        }
    }

    fn subjects(&self) -> Vec<[String; 5]> {
        let now = self.now;
        let per_second = |count: i64, what: &str| format!("{what} {count}/s");
        let failed: i64 = now
            .label_values("urr_http_requests_total", "status")
            .into_iter()
            .filter(|status| status.starts_with('5'))
            .map(|status| {
                let wanted = [("service", "gateway"), ("status", status)];
                self.rate("urr_http_requests_total", &wanted)
            })
            .sum();
        let all = &[("target", "all")];
        vec![
            [
                "requests".to_owned(),
                per_second(self.rate("urr_http_requests_total", GATEWAY), "answered"),
                per_second(failed, "failed"),
                format!("p99 {}", self.percentile(99, GATEWAY)),
                format!(
                    "in progress {} of {}",
                    now.sum("urr_gateway_permits_used", all),
                    now.sum("urr_gateway_permits", all)
                ),
            ],
            [
                "line".to_owned(),
                format!("waiting {}", self.sum_of_events("urr_queue_waiting")),
                format!("inside {}", self.sum_of_events("urr_queue_active")),
                per_second(self.rate("urr_queue_admitted_total", &[]), "admitted"),
                format!("last waits {} s", now.max("urr_queue_estimated_wait_seconds", &[])),
            ],
            [
                "sale".to_owned(),
                per_second(self.rate("urr_reservations_created_total", &[]), "held"),
                per_second(self.rate("urr_reservations_confirmed_total", &[]), "sold"),
                per_second(self.rate("urr_reservations_ended_total", &[]), "ended"),
                format!("disagree {}", now.max("urr_reservation_audit_differences", &[])),
            ],
            [
                "money".to_owned(),
                format!("stuck {}", now.max("urr_payments_stuck", &[])),
                format!("unexplained {}", now.max("urr_ledger_unexplained", &[])),
                format!("provider differs {}", now.max("urr_provider_differences", &[])),
                format!("alarms {}", now.sum("urr_payment_alarms_total", &[])),
            ],
            [
                "bus".to_owned(),
                per_second(self.rate("urr_bus_published_total", &[]), "published"),
                per_second(self.rate("urr_bus_handled_total", &[]), "handled"),
                format!("oldest waits {} s", now.max("urr_bus_outbox_oldest_age_seconds", &[])),
                format!("dead letters {}", now.sum("urr_bus_dead_letters_total", &[])),
            ],
        ]
    }

    /// Every replica reports the same rooms.
    fn sum_of_events(&self, name: &str) -> i64 {
        let events = self.now.label_values(name, "event");
        events.into_iter().map(|event| self.now.max(name, &[("event", event)])).sum()
    }

    fn services(&self) -> Vec<[String; 6]> {
        let head = ["service", "requests/s", "p50", "p99", "commits/s", "storage queue"];
        let mut rows = vec![head.map(str::to_owned)];
        let mut services = self.now.label_values("urr_http_requests_total", "service");
        services.extend(self.now.label_values("urr_storage_commits_total", "service"));
        services.sort_unstable();
        services.dedup();
        for service in services {
            let wanted = [("service", service)];
            rows.push([
                service.to_owned(),
                self.rate("urr_http_requests_total", &wanted).to_string(),
                self.percentile(50, &wanted),
                self.percentile(99, &wanted),
                self.rate("urr_storage_commits_total", &wanted).to_string(),
                self.now.sum("urr_storage_queue_length", &wanted).to_string(),
            ]);
        }
        rows
    }
}

/// Microseconds in milliseconds, such as `2.5`.
fn thousandths(micros: u64) -> String {
    match (micros / 1_000, micros % 1_000) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{}", format!("{rest:03}").trim_end_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(answered: i64, slow: i64) -> Scrape {
        let mut scrape = Scrape::default();
        let all = answered + slow;
        scrape.add(&format!(
            "urr_http_requests_total{{service=\"gateway\",status=\"200\"}} {answered}\n\
             urr_http_requests_total{{service=\"gateway\",status=\"503\"}} {slow}\n\
             {DURATIONS}{{service=\"gateway\",le=\"0.0025\"}} {answered}\n\
             {DURATIONS}{{service=\"gateway\",le=\"0.25\"}} {all}\n\
             {DURATIONS}{{service=\"gateway\",le=\"+Inf\"}} {all}\n\
             urr_queue_waiting{{event=\"a\"}} 40\nurr_queue_waiting{{event=\"a\"}} 40\n\
             urr_storage_queue_length{{service=\"gateway\"}} 3\n"
        ));
        scrape
    }

    #[test]
    fn rates_are_differences_and_replicas_count_once() {
        let picture = render(&scrape(100, 1), &scrape(190, 11));
        for part in ["answered 100/s", "failed 10/s", "p99 < 250 ms", "waiting 40", "< 2.5 ms"] {
            assert!(picture.contains(part), "{part:?} is not in\n{picture}");
        }
        assert!(picture.lines().last().unwrap().ends_with(" 3"), "{picture}");
    }

    #[test]
    fn a_restarted_process_is_not_negative_and_silence_has_no_percentile() {
        let picture = render(&scrape(100, 1), &scrape(2, 0));
        assert!(picture.contains("answered 0/s") && picture.contains("p99 -"), "{picture}");
    }
}
