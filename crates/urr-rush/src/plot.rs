//! Plots as SVG, without scripts.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 12.0;
const COLOURS: [&str; 9] = [
    "#d9362b", "#2b6cd9", "#1f9d55", "#b7791f", "#805ad5", "#0e9fb8", "#6b7280", "#d5489b",
    "#7a9a1f",
];
const TICKS: u32 = 4;

/// Points of one line.
pub struct Series<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Whether points are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PlotStyle {
    Lines,
    Points,
}

/// A plot with its legend. Names must not contain markup.
pub fn plot(series: &[Series<'_>], unit: &str, style: PlotStyle) -> String {
    let all = || series.iter().flat_map(|it| it.points.iter());
    let x_max = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let y_max = round_up(all().map(|(_, y)| *y).fold(1.0, f64::max) * 1.02);
    let x_of = |x: f64| LEFT + x / x_max * (WIDTH - LEFT - RIGHT);
    let y_of = |y: f64| HEIGHT - BOTTOM - y / y_max * (HEIGHT - BOTTOM - TOP);
    let names: Vec<&str> = series.iter().map(|it| it.name).collect();
    let label = format!("{}, {unit}", names.join(", "));
    let mut svg =
        format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">"#);
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (y, label) = (y_of(y_max * share), short(y_max * share));
        put(
            &mut svg,
            format_args!(
                r##"<path d="M{LEFT} {y:.1}H{}" stroke="#8884"/><text x="{}" y="{:.1}" text-anchor="end">{label}</text>"##,
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            ),
        );
        let (x, label) = (x_of(x_max * share), short(x_max * share));
        // The last one ends with the frame: on a phone half of it would be outside.
        let anchor = if tick == TICKS { "end" } else { "middle" };
        put(
            &mut svg,
            format_args!(
                r#"<text x="{x:.1}" y="{}" text-anchor="{anchor}">{label}</text>"#,
                HEIGHT - 8.0
            ),
        );
    }
    for (it, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let points = it.points.iter().map(|(x, y)| (x_of(*x), y_of(*y)));
        // One point is no line.
        match style {
            PlotStyle::Lines if it.points.len() > 1 => {
                let path: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                put(
                    &mut svg,
                    format_args!(
                        r#"<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{}"/>"#,
                        path.join(" ")
                    ),
                );
            }
            PlotStyle::Lines | PlotStyle::Points => {
                for (x, y) in points {
                    put(
                        &mut svg,
                        format_args!(
                            r#"<circle cx="{x:.1}" cy="{y:.1}" r="1.5" fill="{colour}"/>"#
                        ),
                    );
                }
            }
        }
    }
    svg.push_str("</svg><p class=\"legend\">");
    for (it, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        put(
            &mut svg,
            format_args!(r#"<span><i style="background:{colour}"></i>{}</span> "#, it.name),
        );
    }
    put(&mut svg, format_args!("({unit})</p>"));
    svg
}

/// The next number whose quarters are short.
fn round_up(number: f64) -> f64 {
    const STEPS: [f64; 9] = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0];
    let magnitude = 10_f64.powf(number.log10().floor());
    let step = STEPS.into_iter().find(|step| step * magnitude >= number);
    step.unwrap_or(10.0) * magnitude
}

fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes everything");
}

/// A number in a few characters, without zeros that say nothing.
fn short(number: f64) -> String {
    let (digits, unit) = match number.abs() {
        it if it >= 1e6 => (format!("{:.1}", number / 1e6), "M"),
        it if it >= 1e4 => (format!("{:.0}.0", number / 1e3), "k"),
        it if it >= 100.0 => (format!("{number:.0}.0"), ""),
        it if it >= 10.0 => (format!("{number:.1}"), ""),
        _ => (format!("{number:.2}"), ""),
    };
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_points_are_drawn_within_the_frame() {
        let series = [Series { name: "waiting", points: vec![(0.0, 0.0), (10.0, 50_000.0)] }];
        let lines = plot(&series, "fans", PlotStyle::Lines);
        assert!(lines.contains("points=\"64.0,192.0 708.0,"), "{lines}");
        assert!(lines.contains("waiting") && lines.contains("(fans)"));
        assert!(
            lines.contains(r#"<text x="708.0" y="212" text-anchor="end">10</text>"#),
            "{lines}"
        );
        assert_eq!(plot(&series, "fans", PlotStyle::Points).matches("<circle").count(), 2);
        let once = [Series { name: "left", points: vec![(3.0, 4.0)] }];
        let dot = plot(&once, "ms", PlotStyle::Lines);
        assert!(dot.contains("<circle") && !dot.contains("<polyline"), "one point can be seen");
        assert!(plot(&[], "", PlotStyle::Lines).contains("</svg>"));
    }

    #[test]
    fn a_scale_ends_with_a_round_number() {
        assert_eq!([1.0, 11.3, 321.0, 9_000.0].map(round_up), [1.0, 12.0, 400.0, 10_000.0]);
    }

    #[test]
    fn numbers_are_short() {
        let numbers = [0.0, 0.5, 2.25, 6.0, 12.3, 100.0, 52_500.0, 1_234_567.0, 20e6];
        let short_ones = numbers.map(short);
        assert_eq!(short_ones, ["0", "0.5", "2.25", "6", "12.3", "100", "52k", "1.2M", "20M"]);
    }
}
