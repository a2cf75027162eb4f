//! Reads the text of `/metrics`.

/// All samples of one moment, of one or more processes.
#[derive(Debug, Default)]
pub struct Scrape(Vec<Sample>);

#[derive(Debug, PartialEq, Eq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: i64,
}

/// Labels that a sample must have.
pub type WantedLabels<'a> = &'a [(&'a str, &'a str)];

impl Scrape {
    /// Adds the samples of a process. Lines that are no whole number (sums of times) are left out.
    pub fn add(&mut self, text: &str) {
        self.0.extend(text.lines().filter_map(parse_line));
    }

    /// The sum over all samples of a name that have these labels.
    pub fn sum(&self, name: &str, wanted: WantedLabels<'_>) -> i64 {
        self.having(name, wanted).map(|sample| sample.value).sum()
    }

    /// The largest one: what every replica reports alike.
    pub fn max(&self, name: &str, wanted: WantedLabels<'_>) -> i64 {
        self.having(name, wanted).map(|sample| sample.value).max().unwrap_or(0)
    }

    /// The values of a label, each once, in order.
    pub fn label_values(&self, name: &str, label: &str) -> Vec<&str> {
        let mut values: Vec<&str> =
            self.having(name, &[]).filter_map(|sample| sample.label(label)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// The upper bounds of a histogram with the number of samples below each, in rising order. The
    /// last one has no bound.
    pub fn buckets(&self, name: &str, wanted: WantedLabels<'_>) -> Vec<(Option<u64>, i64)> {
        let mut buckets: Vec<(Option<u64>, i64)> = Vec::new();
        for sample in self.having(name, wanted) {
            let bound = sample.label("le").and_then(micros);
            match buckets.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += sample.value,
                None => buckets.push((bound, sample.value)),
            }
        }
        buckets.sort_by_key(|(bound, _)| bound.unwrap_or(u64::MAX));
        buckets
    }

    fn having(&self, name: &str, wanted: WantedLabels<'_>) -> impl Iterator<Item = &Sample> {
        let has_all = move |sample: &&Sample| {
            wanted.iter().all(|(label, value)| sample.label(label) == Some(*value))
        };
        self.0.iter().filter(move |sample| sample.name == name).filter(has_all)
    }
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        let label = self.labels.iter().find(|(known, _)| known == name);
        label.map(|(_, value)| value.as_str())
    }
}

/// `name{label="value",…} 12`. Our labels hold no quotes.
fn parse_line(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    let pairs = labels.split("\",").filter(|pair| !pair.is_empty());
    let label = |pair: &str| {
        let (name, value) = pair.split_once("=\"")?;
        Some((name.to_owned(), value.trim_end_matches('"').to_owned()))
    };
    let labels = pairs.map(label).collect::<Option<_>>()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Seconds such as `0.0025` in microseconds; none for `+Inf`.
fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some(whole * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_several_processes_are_read() {
        let mut scrape = Scrape::default();
        scrape.add(
            "# HELP urr_queue_waiting Users who wait.\n# TYPE urr_queue_waiting gauge\n\
             urr_queue_waiting{event=\"a\"} 5\nurr_queue_waiting{event=\"b\"} 7\n\
             t_bucket{service=\"x\",route=\"/a/{id}\",le=\"0.0025\"} 3\n\
             t_bucket{service=\"x\",route=\"/a/{id}\",le=\"+Inf\"} 4\nt_sum 0.25\n# EOF\n",
        );
        scrape.add("urr_queue_waiting{event=\"a\"} 6\nplain 9\n");
        assert_eq!(scrape.sum("urr_queue_waiting", &[]), 18);
        assert_eq!(scrape.max("urr_queue_waiting", &[("event", "a")]), 6);
        assert_eq!(scrape.label_values("urr_queue_waiting", "event"), ["a", "b"]);
        assert_eq!(scrape.sum("plain", &[]), 9);
        assert_eq!(scrape.buckets("t_bucket", &[("service", "x")]), [(Some(2_500), 3), (None, 4)]);
    }
}
