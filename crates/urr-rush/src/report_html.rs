//! The report as one HTML page that needs nothing else.

use std::collections::BTreeMap;

use crate::plot::{PlotStyle, Series, plot};
use crate::recorder::Operation;
use crate::report::{RushReport, SecondReport};

const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;\
    max-width:780px;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}\
    .wide{overflow-x:auto}p,li{overflow-wrap:anywhere}h1{font-size:1.5rem;line-height:1.25;\
    overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .3rem}ul{padding-left:1.2rem}\
    table{border-collapse:collapse;width:100%}td,th{padding:.25rem .5rem;text-align:right;\
    font-variant-numeric:tabular-nums;white-space:nowrap;border-bottom:1px solid #8883}\
    td:first-child,th:first-child{text-align:left}th{font-weight:600}tbody th{font-weight:400}\
    svg{display:block;width:100%;height:auto}svg text{font-size:11px;fill:currentColor}\
    .legend{margin:0 0 .8rem;font-size:13px}.legend span{margin-right:.8em;white-space:nowrap}\
    .legend i{display:inline-block;width:.7em;height:.7em;margin-right:.3em;border-radius:2px}\
    .bad,.bad th{color:#c0281e;font-weight:600}\
    @media(max-width:500px){body{margin:1rem auto}svg text{font-size:20px}\
    td,th{padding:.25rem .4rem;font-size:13px}}\
    @media(prefers-color-scheme:dark){body{color:#eee;background:#16161a}\
    .bad,.bad th{color:#ff8a80}}";

/// Kinds of failures in a plot.
const KINDS_MAX: usize = 8;

/// The whole page.
pub fn to_html(report: &RushReport) -> String {
    let setup = &report.setup;
    let title = format!("Rush: {} fans, {}", setup.fans, escape(&setup.event_title));
    let sections = [
        format!("<h1>{title}</h1>{}", facts(report)),
        section("Faults and the server", &system(report)),
        section("Expectations", &expectations(report)),
        section("Requests", &operations(report)),
        section("Arrivals, admissions and sold seats", &flow(report)),
        section("The waiting room", &room(report)),
        section("Money", &money(report)),
        section(
            "Latency, half of requests, from the moment of the wish",
            &latencies(report, |it| &it.p50_ms),
        ),
        section(
            "Latency, 99 % of requests, from the moment of the wish",
            &latencies(report, |it| &it.p99_ms),
        ),
        section("Deferred and failed requests", &errors(report)),
        section("Failed requests by kind", &failures(report)),
        section("Order: rank by number and by admission", &order(report)),
        section("Estimate (upper end) and the wait that came true", &estimates(report)),
    ];
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><body><main>{}</main></body></html>",
        sections.concat()
    )
}

fn section(heading: &str, content: &str) -> String {
    match content.is_empty() {
        true => String::new(),
        false => format!("<h2>{heading}</h2>{content}"),
    }
}

fn facts(report: &RushReport) -> String {
    let setup = &report.setup;
    let mut ended = report.sales_sentence().map_or_else(String::new, |it| format!(" {it}"));
    ended.extend(report.ended.sentence().map(|it| format!(" <b>{it}</b>")));
    let outcomes = report.outcomes.iter().map(|(name, count)| format!("{name} {count}"));
    let is_more = report.seats_sold > setup.capacity as u64;
    let again = if is_more { "; what was cancelled was sold again" } else { "" };
    format!(
        "<p>{} at {}, {:.0} s, seed {}. {} seats sold in a hall of {} for {} won{again}.{ended}</p>\
         <p>{}.</p>",
        to_second(&setup.started_at.to_string()),
        escape(&setup.url),
        report.seconds_total,
        setup.seed,
        report.seats_sold,
        setup.capacity,
        grouped(report.revenue),
        outcomes.collect::<Vec<_>>().join(", ")
    )
}

fn system(report: &RushReport) -> String {
    let item = |line: &String| format!("<li>{}</li>", escape(line));
    let items: String = report.system_lines().iter().map(item).collect();
    if items.is_empty() { items } else { format!("<ul>{items}</ul>") }
}

fn expectations(report: &RushReport) -> String {
    let row = |it: &crate::expectation::ExpectationResult| {
        let (class, verdict) = if it.passed { ("", "met") } else { ("bad", "not met") };
        let (text, measured) = (escape(&it.text), it.measured());
        format!(
            "<tr class=\"{class}\"><th scope=\"row\">{text}</th><td>{measured}</td>\
             <td>{verdict}</td></tr>"
        )
    };
    let rows: String = report.expectations.iter().map(row).collect();
    let head = head(&["expected", "measured", ""]);
    wide("Expectations", &format!("<table>{head}<tbody>{rows}</tbody></table>"))
}

/// A table that is moved sideways by itself on a small screen, also with the keyboard.
fn wide(name: &str, content: &str) -> String {
    format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">{content}</div>"
    )
}

fn head(columns: &[&str]) -> String {
    let cell = |name: &&str| match name.is_empty() {
        true => "<td></td>".to_owned(),
        false => format!("<th scope=\"col\">{name}</th>"),
    };
    format!("<thead><tr>{}</tr></thead>", columns.iter().map(cell).collect::<String>())
}

/// What happened at all: a row of zeros says nothing.
fn operations(report: &RushReport) -> String {
    let row = |it: &crate::report::OperationReport| {
        let cells =
            [it.done, it.refused, it.deferred, it.failed].map(|it| format!("<td>{it}</td>"));
        let times = [it.p50_ms, it.p99_ms, it.max_ms].map(|it| format!("<td>{it:.1}</td>"));
        let (cells, times) = (cells.concat(), times.concat());
        format!("<tr><th scope=\"row\">{}</th>{cells}{times}</tr>", it.name)
    };
    let rows: String = report.operations.iter().filter(|it| it.sent() > 0).map(row).collect();
    let head = head(&["", "done", "refused", "deferred", "failed", "p50 ms", "p99 ms", "max ms"]);
    let table = format!("<table>{head}<tbody>{rows}</tbody></table>");
    let failure = |(text, count): (&String, &u64)| {
        let text = escape(text);
        format!("<tr class=\"bad\"><th scope=\"row\">{text}</th><td>{count}</td></tr>")
    };
    let failures: String = report.failures.iter().map(failure).collect();
    match failures.is_empty() {
        true => wide("Requests", &table),
        false => {
            let failures = format!("<table><tbody>{failures}</tbody></table>");
            wide("Requests", &table) + &wide("Failures", &failures)
        }
    }
}

fn by_second<'a>(
    report: &RushReport,
    name: &'a str,
    of: impl Fn(&SecondReport) -> Option<f64>,
) -> Series<'a> {
    let points = report.seconds.iter().zip(0_u32..);
    let points = points.filter_map(|(second, at)| Some((f64::from(at), of(second)?)));
    Series { name, points: points.collect() }
}

/// Arrivals have a plot of their own: beside a burst the others cannot be seen.
fn flow(report: &RushReport) -> String {
    let arrivals = [by_second(report, "arrivals", |it| Some(f64::from(it.arrived)))];
    let series = [
        by_second(report, "admissions", |it| Some(f64::from(it.admitted))),
        by_second(report, "sold seats", |it| Some(f64::from(it.seats_sold))),
    ];
    let arrivals = plot(&arrivals, "per second", PlotStyle::Lines);
    arrivals + &plot(&series, "per second", PlotStyle::Lines)
}

fn room(report: &RushReport) -> String {
    let of = |name: &'static str, figure: fn(&crate::monitor::RoomSample) -> u64| {
        let point = |it: &crate::monitor::RoomSample| (it.second as f64, figure(it) as f64);
        Series { name, points: report.room.iter().map(point).collect() }
    };
    let inside = [of("inside", |it| it.inside), of("threshold", |it| it.threshold)];
    let waiting = plot(&[of("waiting", |it| it.waiting)], "fans by second", PlotStyle::Lines);
    waiting + &plot(&inside, "fans by second", PlotStyle::Lines)
}

/// Of people: programs are slowed down on purpose.
fn latencies(report: &RushReport, of: fn(&SecondReport) -> &BTreeMap<String, f64>) -> String {
    let people = Operation::ALL.into_iter().filter(|it| *it != Operation::Program);
    let series = |operation: Operation| {
        let name = operation.name();
        by_second(report, name, |it| of(it).get(name).copied())
    };
    let series: Vec<Series<'_>> =
        people.map(series).filter(|series| !series.points.is_empty()).collect();
    plot(&series, "ms by second", PlotStyle::Lines)
}

fn errors(report: &RushReport) -> String {
    let series = [
        by_second(report, "deferred", |it| Some(f64::from(it.deferred))),
        by_second(report, "deferred programs", |it| Some(f64::from(it.programs_deferred))),
        by_second(report, "failed", |it| Some(f64::from(it.failed))),
    ];
    plot(&series, "per second", PlotStyle::Lines)
}

/// The kinds that happened most. Nothing if no request failed.
fn failures(report: &RushReport) -> String {
    let mut kinds: Vec<(&String, &u64)> = report.failures.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let names: Vec<(&str, String)> =
        kinds.into_iter().take(KINDS_MAX).map(|(kind, _)| (kind.as_str(), escape(kind))).collect();
    let of = |it: &SecondReport, kind: &str| it.failures.get(kind).copied().unwrap_or(0);
    let series: Vec<Series<'_>> = names
        .iter()
        .map(|(kind, name)| by_second(report, name, |it| Some(f64::from(of(it, kind)))))
        .collect();
    if series.is_empty() {
        return String::new();
    }
    plot(&series, "per second", PlotStyle::Lines)
}

/// What the fans have paid so far.
fn money(report: &RushReport) -> String {
    let mut paid = 0;
    let points = report.seconds.iter().zip(0_u32..).map(|(second, at)| {
        paid += second.revenue;
        (f64::from(at), paid as f64)
    });
    let series = [Series { name: "paid, without refunds", points: points.collect() }];
    plot(&series, "won by second", PlotStyle::Lines)
}

fn order(report: &RushReport) -> String {
    let fairness = &report.fairness;
    if fairness.sample.is_empty() {
        return String::new();
    }
    let points = fairness.sample.iter().map(|(by_number, rank)| (*by_number as f64, *rank as f64));
    let series = [Series { name: "fans", points: points.collect() }];
    let text = format!(
        "<p>{} of {} fans joined out of order, {} of {} were admitted out of order.</p>",
        fairness.joined_out_of_order,
        fairness.numbered,
        fairness.admitted_out_of_order,
        fairness.admitted
    );
    plot(&series, "rank by admission over rank by number", PlotStyle::Points) + &text
}

fn estimates(report: &RushReport) -> String {
    let estimates = &report.estimates;
    if estimates.compared == 0 {
        return String::new();
    }
    let series = [Series { name: "fans", points: estimates.sample.clone() }];
    let text = estimates.sentence().map_or_else(String::new, |it| format!("<p>{it}.</p>"));
    plot(&series, "seconds waited over seconds told", PlotStyle::Points) + &text
}

/// A time such as `2026-11-18T10:19:35.740832Z` without fractions of a second.
fn to_second(time: &str) -> String {
    let (date, clock) = time.split_once('T').unwrap_or((time, ""));
    let clock = clock.split(['.', 'Z']).next().unwrap_or_default();
    format!("{date} {clock} UTC")
}

/// With a comma after every three digits.
fn grouped(won: i64) -> String {
    let digits = won.unsigned_abs().to_string();
    let first = digits.len() % 3;
    let mut text = if won < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::RushEnding;

    #[test]
    fn money_is_grouped() {
        let texts = [0, 999, 1_000, -12_345, 4_506_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "-12,345", "4,506,000"]);
    }

    #[test]
    fn a_time_is_told_to_the_second() {
        let texts = ["2026-11-18T10:19:35.740832Z", "2026-11-18T10:19:35Z"].map(to_second);
        assert_eq!(texts, ["2026-11-18 10:19:35 UTC", "2026-11-18 10:19:35 UTC"]);
    }

    #[test]
    fn the_page_is_whole_and_texts_are_escaped() {
        let mut report = RushReport::empty();
        report.failures.insert("<script>".to_owned(), 1);
        report.seconds = vec![SecondReport {
            failures: report.failures.keys().map(|kind| (kind.clone(), 1)).collect(),
            revenue: 70_000,
            ..SecondReport::default()
        }];
        report.judge(&["failed=0".parse().unwrap()]);
        let html = to_html(&report);
        assert!(html.contains("&lt;b&gt;제목") && html.contains("&lt;script&gt;"));
        assert!(!html.contains("<b>") && !html.contains("<script"));
        report.ended = RushEnding::Interrupted;
        assert!(to_html(&report).contains("<b>Ended early: it was interrupted.</b>"));
        assert!(html.contains("programs-succeeded=0"));
        assert!(html.contains("Failed requests by kind") && html.contains("<h2>Money</h2>"));
        report.failures.clear();
        assert!(!to_html(&report).contains("Failed requests by kind"), "nothing failed");
        assert!(!html.contains("http-equiv") && !html.contains("src="), "it needs nothing else");
    }
}
