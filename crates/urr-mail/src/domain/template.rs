//! Templates and how they are filled.
//!
//! A template is a text: its first line is the subject, the others are the body. `{name}` stands
//! for a value; a line with a value that is not known is left out. Both parts of a mail are made
//! from it.
//!
//! Values come from people (titles, reasons), so a value has no line breaks or other control
//! characters, is of bounded length, and is escaped in HTML: it can neither begin a header nor a
//! tag.

use urr_kernel::Won;

use super::facts::Facts;
use super::mail::{Kind, Language};
use super::words;

const VALUE_CHARS_MAX: usize = 300;
const FRAME: &str = include_str!("../../templates/frame.html");

/// A mail as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub subject: String,
    pub text: String,
    pub html: String,
    /// Where one can see more.
    pub link: String,
}

/// `public_url` is the address of the pages, without a slash at its end.
pub fn render(kind: Kind, language: Language, facts: &Facts, public_url: &str) -> Rendered {
    let link = link(kind, facts, public_url);
    let values = Values { language, facts, link: &link };
    let (head, body) = template(kind, language).split_once('\n').expect("a template has a subject");
    let subject = fill(head, &values, Part::Text).expect("a subject needs what is always known");
    let (mut text, mut html) = (Vec::new(), Vec::new());
    for paragraph in body.trim().split("\n\n") {
        let lines = |part: Part| -> Vec<String> {
            paragraph.lines().filter_map(|line| fill(line, &values, part)).collect()
        };
        let (plain, marked) = (lines(Part::Text), lines(Part::Html));
        if !plain.is_empty() {
            text.push(plain.join("\n"));
            html.push(format!("<p>{}</p>", marked.join("<br>\n")));
        }
    }
    Rendered {
        text: text.join("\n\n") + "\n",
        html: frame(language, &subject, &html.join("\n")),
        subject,
        link,
    }
}

const fn template(kind: Kind, language: Language) -> &'static str {
    match (kind, language) {
        (Kind::Purchase, Language::Korean) => include_str!("../../templates/purchase.ko.txt"),
        (Kind::Purchase, Language::English) => include_str!("../../templates/purchase.en.txt"),
        (Kind::Cancellation, Language::Korean) => {
            include_str!("../../templates/cancellation.ko.txt")
        }
        (Kind::Cancellation, Language::English) => {
            include_str!("../../templates/cancellation.en.txt")
        }
        (Kind::Refund, Language::Korean) => include_str!("../../templates/refund.ko.txt"),
        (Kind::Refund, Language::English) => include_str!("../../templates/refund.en.txt"),
        (Kind::TurnNear, Language::Korean) => include_str!("../../templates/turn_near.ko.txt"),
        (Kind::TurnNear, Language::English) => include_str!("../../templates/turn_near.en.txt"),
    }
}

fn link(kind: Kind, facts: &Facts, public_url: &str) -> String {
    match (kind, facts.reservation_id, facts.event_id) {
        (Kind::TurnNear, _, Some(event_id)) => format!("{public_url}/queue/{event_id}"),
        (Kind::TurnNear, _, None) => format!("{public_url}/"),
        (_, Some(reservation_id), _) => format!("{public_url}/reservations/{reservation_id}"),
        (_, None, _) => format!("{public_url}/my-reservations"),
    }
}

#[derive(Clone, Copy)]
enum Part {
    Text,
    Html,
}

struct Values<'a> {
    language: Language,
    facts: &'a Facts,
    link: &'a str,
}

impl Values<'_> {
    /// What a name in a template stands for. None: it is not known.
    fn get(&self, name: &str) -> Option<String> {
        let Values { language, facts, link } = *self;
        let amount = |amount: Option<Won>| amount.map(|amount| words::amount(amount, language));
        match name {
            "title" => Some(words::title(facts.event_title.as_deref(), language)),
            "event" => facts.event_title.clone(),
            "date" => facts.starts_at.map(|time| words::date(time, language)),
            "venue" => facts.venue_name.clone(),
            "places" => (!facts.places.is_empty()).then(|| words::places(&facts.places, language)),
            "quantity" => facts.quantity.map(|quantity| quantity.to_string()),
            "number" => facts.reservation_number.clone(),
            "amount" => amount(facts.amount),
            "refund" => amount(facts.refund),
            "fee" => amount(facts.fee),
            "method" => facts.method.as_deref().and_then(|name| words::method(name, language)),
            "reason" => facts.reason.as_deref().and_then(|code| words::reason(code, language)),
            "position" => facts.position.map(|position| words::position(position, language)),
            "wait" => facts.wait_seconds.map(|seconds| words::wait(seconds, language)),
            "link" => Some(link.to_owned()),
            unknown => unreachable!("no template has the name {unknown}"),
        }
    }
}

/// None: the line has a value that is not known.
fn fill(line: &str, values: &Values<'_>, part: Part) -> Option<String> {
    let literal = |text: &str| match part {
        Part::Text => text.to_owned(),
        Part::Html => escape(text),
    };
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a name in a template ends");
        let value = clean(&values.get(name)?);
        filled.push_str(&literal(before));
        match (part, name) {
            (Part::Html, "link") => {
                let url = escape(&value);
                filled.push_str(&format!("<a href=\"{url}\">{url}</a>"));
            }
            _ => filled.push_str(&literal(&value)),
        }
        rest = after;
    }
    filled.push_str(&literal(rest));
    Some(filled)
}

fn frame(language: Language, subject: &str, body: &str) -> String {
    // The body last: what it holds is not looked through for names any more.
    FRAME
        .replace("{language}", language.code())
        .replace("{subject}", &escape(subject).replace('{', "&#123;"))
        .replace("{body}", body)
}

/// In one line, of bounded length. What could turn the direction of the text goes as well.
fn clean(value: &str) -> String {
    let is_unfit =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let spaced: String = value.chars().map(|c| if is_unfit(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let line = words.join(" ");
    match line.chars().count() > VALUE_CHARS_MAX {
        true => line.chars().take(VALUE_CHARS_MAX - 1).chain(['…']).collect(),
        false => line,
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
