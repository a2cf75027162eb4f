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
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">"#);
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
        let (x, label) = (x_of(x_max * share), short((x_max * share).round()));
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
        match style {
            PlotStyle::Lines => {
                let path: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                put(
                    &mut svg,
                    format_args!(
                        r#"<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{}"/>"#,
                        path.join(" ")
                    ),
                );
            }
            PlotStyle::Points => {
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
        put(&mut svg, format_args!(r#"<span style="color:{colour}">■</span> {} "#, it.name));
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

/// A number in a few characters.
fn short(number: f64) -> String {
    match number.abs() {
        it if it >= 1e6 => format!("{:.1}M", number / 1e6),
        it if it >= 1e4 => format!("{:.0}k", number / 1e3),
        it if it >= 10.0 || it == 0.0 => format!("{number:.0}"),
        _ => format!("{number:.2}"),
    }
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
        assert!(plot(&[], "", PlotStyle::Lines).contains("</svg>"));
    }

    #[test]
    fn a_scale_ends_with_a_round_number() {
        assert_eq!([1.0, 11.3, 321.0, 9_000.0].map(round_up), [1.0, 12.0, 400.0, 10_000.0]);
    }

    #[test]
    fn numbers_are_short() {
        let short_ones = [0.0, 0.5, 12.3, 52_500.0, 1_234_567.0].map(short);
        assert_eq!(short_ones, ["0", "0.50", "12", "52k", "1.2M"]);
    }
}
