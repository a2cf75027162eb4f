//! SVG drawings of the stage as it is seen from a section, for the demo halls.

use std::fmt::Write as _;

/// Width and height.
pub const SIZE: (u32, u32) = (640, 360);
const WIDTH: i32 = 640;
const HEIGHT: i32 = 360;

const FLOOR_Y: i32 = 250;
/// So wide a stage looks from a metre away; it shrinks with the distance.
const STAGE_WIDTH: i32 = 300_000;
const HEADS_MAX: i32 = 9;

/// The stage from a place, in centimetres from its middle. Near seats see it large, seats at the
/// side see it at the other edge.
pub fn draw(x: i32, y: i32) -> String {
    let (width, height) = (WIDTH, HEIGHT);
    let distance = (x.abs() + y.abs()).max(400);
    let stage = (STAGE_WIDTH / distance).clamp(90, 520);
    let middle = width / 2 - (x * 100 / distance).clamp(-80, 80);
    let (left, right, tall) = (middle - stage / 2, middle + stage / 2, stage * 2 / 5);
    let top = FLOOR_Y - tall;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#14161d\"/>\
         <rect y=\"{FLOOR_Y}\" width=\"{width}\" height=\"{height}\" fill=\"#1d2029\"/>\
         <rect x=\"{left}\" y=\"{top}\" width=\"{stage}\" height=\"{tall}\" fill=\"#3c2a5e\"/>"
    );
    for beam in 0..5 {
        let from = left + stage * (2 * beam + 1) / 10;
        let (a, b) = (from - stage / 9, from + stage / 9);
        write!(
            svg,
            "<path d=\"M{from} {top}L{a} {FLOOR_Y}H{b}Z\" fill=\"#ffd166\" opacity=\"0.28\"/>"
        )
        .expect("a text can be written to");
    }
    let (edge, thick) = (stage / 12, (stage / 24).max(4));
    write!(
        svg,
        "<path d=\"M{left} {FLOOR_Y}H{right}l{edge} {thick}H{}Z\" fill=\"#e8e6df\"/>",
        left - edge
    )
    .expect("a text can be written to");
    // The further away, the more heads are in front, and the smaller they are.
    let rows = (distance / 600).clamp(1, 5);
    for row in 0..rows {
        let size = 34 - 4 * (rows - row);
        let heads = HEADS_MAX + 2 * (rows - row);
        for head in 0..heads {
            let cx = width * (2 * head + 1 + row % 2) / (2 * heads);
            let cy = height - (rows - row - 1) * 16 + 6;
            write!(svg, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"{size}\" fill=\"#0a0b0f\"/>")
                .expect("a text can be written to");
        }
    }
    svg.push_str("</svg>");
    svg
}
