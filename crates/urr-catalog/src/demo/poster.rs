//! SVG posters for the demo data: a gradient, some shapes, and the texts.

use sha2::{Digest, Sha256};

/// Width and height.
pub const SIZE: (u32, u32) = (600, 800);

const PALETTES: [[&str; 4]; 6] = [
    ["#1b1f3b", "#53599a", "#6d9dc5", "#f2c14e"],
    ["#2d0a31", "#8a1c7c", "#da4167", "#f0bcd4"],
    ["#0b3c49", "#16697a", "#489fb5", "#ffa62b"],
    ["#132a13", "#31572c", "#90a955", "#ecf39e"],
    ["#3d0e1e", "#9b2226", "#ee9b00", "#e9d8a6"],
    ["#10002b", "#3c096c", "#7b2cbf", "#e0aaff"],
];
const MARGIN: u32 = 40;
const TITLE_SIZE: u32 = 54;
const LINES_MAX: usize = 4;

/// A poster of an event. The same words give the same drawing.
pub fn draw(title: &str, artist: &str, venue: &str) -> String {
    let digest = Sha256::digest(format!("{title}\n{artist}\n{venue}").as_bytes());
    let [dark, deep, light, accent] = PALETTES[usize::from(digest[0]) % PALETTES.len()];
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\">\
         <defs><linearGradient id=\"g\" x1=\"0\" y1=\"0\" x2=\"1\" y2=\"1\">\
         <stop offset=\"0\" stop-color=\"{dark}\"/><stop offset=\"0.6\" stop-color=\"{deep}\"/>\
         <stop offset=\"1\" stop-color=\"{light}\"/></linearGradient></defs>\
         <rect width=\"{width}\" height=\"{height}\" fill=\"url(#g)\"/>"
    );
    for bytes in digest[1..25].chunks_exact(4) {
        svg.push_str(&shape(bytes, light, accent));
    }
    for (number, line) in (0_u32..).zip(lines(title)) {
        let y = 470 + number * 68;
        svg.push_str(&words(&line, y, TITLE_SIZE, "#ffffff", "bold"));
    }
    svg.push_str(&words(artist, 110, 30, accent, "normal"));
    svg.push_str(&words(venue, 756, 24, "#ffffff", "normal"));
    svg.push_str("</svg>");
    svg
}

fn shape(bytes: &[u8], light: &str, accent: &str) -> String {
    let (x, y) = (u32::from(bytes[0]) * 600 / 255, u32::from(bytes[1]) * 420 / 255);
    let size = 20 + u32::from(bytes[2]) / 2;
    let colour = if bytes[3] & 1 == 0 { light } else { accent };
    match bytes[3] % 3 {
        0 => format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{size}\" fill=\"{colour}\" opacity=\"0.35\"/>"
        ),
        1 => format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{size}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"6\" opacity=\"0.6\"/>"
        ),
        _ => format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" fill=\"{colour}\" \
             opacity=\"0.3\" transform=\"rotate({} {x} {y})\"/>",
            bytes[2]
        ),
    }
}

/// One line. Words that are too long for it are set smaller.
fn words(text: &str, y: u32, size: u32, colour: &str, weight: &str) -> String {
    let size = size.min(line_width() * 100 / width(text).max(1));
    let text = escape(text);
    format!(
        "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"{size}\" font-weight=\"{weight}\" \
         fill=\"{colour}\">{text}</text>"
    )
}

/// The title in lines that fit.
fn lines(title: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.truncate(LINES_MAX);
    lines
}

fn fits(line: &str) -> bool {
    width(line) * TITLE_SIZE <= line_width() * 100
}

fn line_width() -> u32 {
    SIZE.0 - 2 * MARGIN
}

/// In hundredths of the font size, for a bold face and rather too wide than too narrow.
fn width(text: &str) -> u32 {
    let of_letter = |letter: char| match letter {
        ' ' => 35,
        'a'..='z' | '0'..='9' => 64,
        _ if letter.is_ascii_punctuation() => 45,
        'A'..='Z' => 80,
        _ => 100,
    };
    text.chars().map(of_letter).sum()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_become_markup() {
        let svg = draw("<script>alert(1)</script>", "a & b", "\"c\"");
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains("a &amp; b") && svg.contains("&quot;c&quot;"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    }

    #[test]
    fn no_line_is_wider_than_the_poster() {
        let titles = [
            "WINTER WONDERLAND MEMORIES",
            "한강의 밤",
            "아주아주아주아주긴제목하나",
            "IMMMMMMMMMMMMMMMMENSE",
        ];
        for title in titles {
            let svg = draw(title, "THE VERY LONG NAME OF AN ARTIST WHO TOURS THE WORLD", "");
            for text in svg.split("<text ").skip(1) {
                let (_, rest) = text.split_once("font-size=\"").unwrap();
                let (size, rest) = rest.split_once('"').unwrap();
                let line = rest.split_once('>').unwrap().1.split_once('<').unwrap().0;
                let wide = width(line) * size.parse::<u32>().unwrap() / 100;
                assert!(wide <= SIZE.0 - 2 * MARGIN, "{line}: {wide}");
            }
        }
    }

    #[test]
    fn the_same_words_give_the_same_poster_and_others_another() {
        assert_eq!(draw("가을", "", ""), draw("가을", "", ""));
        assert_ne!(draw("가을", "", ""), draw("겨울", "", ""));
    }
}
