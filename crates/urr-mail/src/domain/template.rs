//! Templates and how they are filled.
//!
//! A template is a text: its first line is the subject, the others are the body. `{name}` stands
//! for a value; a line with a value that is not known is left out, and so is a paragraph with a link
//! for a guest. Both parts of a mail are made
//! from it.
//!
//! TemplateContext come from people (titles, reasons), so a value has no line breaks or other control
//! characters, is of bounded length, and is escaped in HTML: it can neither begin a header nor a
//! tag.

use urr_kernel::{Language, Won, fits_in_line};

use super::mail::MailKind;
use super::phrases;
use super::template_data::{LinkToken, TemplateData};

const VALUE_CHARS_MAX: usize = 300;
const HTML_PAGE: &str = include_str!("../../templates/page.html");

/// A mail as its recipient reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedMail {
    pub subject: String,
    pub text: String,
    pub html: String,
    /// The page with more about it.
    pub link: String,
}

/// `public_url` is the address of the pages, without a slash at its end.
pub fn render(
    kind: MailKind,
    language: Language,
    data: &TemplateData,
    public_url: &str,
) -> RenderedMail {
    let link = link(kind, data, public_url);
    let values = TemplateContext { language, data, link: &link };
    let (head, body) = template(kind, language).split_once('\n').expect("a template has a subject");
    let subject =
        fill(head, &values, BodyFormat::Text).expect("a subject needs what is always known");
    let (mut text, mut html) = (Vec::new(), Vec::new());
    // A guest has no account, so there is no page to lead to.
    let is_shown = |paragraph: &&str| !(data.is_guest && paragraph.contains("{link}"));
    for paragraph in body.trim().split("\n\n").filter(is_shown) {
        let lines = |format: BodyFormat| -> Vec<String> {
            paragraph.lines().filter_map(|line| fill(line, &values, format)).collect()
        };
        let (plain, marked) = (lines(BodyFormat::Text), lines(BodyFormat::Html));
        if !plain.is_empty() {
            text.push(plain.join("\n"));
            html.push(format!("<p>{}</p>", marked.join("<br>\n")));
        }
    }
    RenderedMail {
        text: text.join("\n\n") + "\n",
        html: html_page(language, &subject, &html.join("\n")),
        subject,
        link,
    }
}

const fn template(kind: MailKind, language: Language) -> &'static str {
    macro_rules! text {
        ($name:literal) => {
            match language {
                Language::Korean => {
                    include_str!(concat!("../../templates/", $name, ".ko.txt"))
                }
                Language::English => {
                    include_str!(concat!("../../templates/", $name, ".en.txt"))
                }
            }
        };
    }
    match kind {
        MailKind::Purchase => text!("purchase"),
        MailKind::Complimentary => text!("complimentary"),
        MailKind::Cancellation => text!("cancellation"),
        MailKind::PartCancellation => text!("part_cancellation"),
        MailKind::EventMoved => text!("event_moved"),
        MailKind::Refund => text!("refund"),
        MailKind::AdmissionNear => text!("admission_near"),
        MailKind::SaleAlert => text!("sale_alert"),
        MailKind::SeatAlert => text!("seat_alert"),
        MailKind::EmailVerification => text!("email_verification"),
        MailKind::PasswordReset => text!("password_reset"),
    }
}

/// The secret of a link comes after `#`, which browsers do not send: it is in no log of a server.
fn link(kind: MailKind, data: &TemplateData, public_url: &str) -> String {
    let with_token = |page: &str| {
        let token = data.link_token.as_ref().map(|LinkToken(token)| format!("#{token}"));
        format!("{public_url}/{page}{}", token.unwrap_or_default())
    };
    match (kind, data.reservation_id, data.event_id) {
        (MailKind::AdmissionNear, _, Some(event_id)) => format!("{public_url}/queue/{event_id}"),
        (MailKind::SaleAlert, _, Some(event_id)) => format!("{public_url}/events/{event_id}"),
        (MailKind::SeatAlert, _, Some(event_id)) => format!("{public_url}/queue/{event_id}"),
        (MailKind::AdmissionNear | MailKind::SaleAlert | MailKind::SeatAlert, _, None) => {
            format!("{public_url}/")
        }
        (MailKind::EmailVerification, ..) => with_token("verify"),
        (MailKind::PasswordReset, ..) => with_token("reset"),
        (_, Some(reservation_id), _) => format!("{public_url}/reservations/{reservation_id}"),
        (_, None, _) => format!("{public_url}/my-reservations"),
    }
}

#[derive(Clone, Copy)]
enum BodyFormat {
    Text,
    Html,
}

struct TemplateContext<'a> {
    language: Language,
    data: &'a TemplateData,
    link: &'a str,
}

impl TemplateContext<'_> {
    /// The value of a name in a template; none if it is not known.
    fn get(&self, name: &str) -> Option<String> {
        let TemplateContext { language, data, link } = *self;
        let amount = |amount: Option<Won>| amount.map(|amount| phrases::amount(amount, language));
        match name {
            "title" => Some(phrases::title(data.event_title.as_deref(), language)),
            "event" => data.event_title.clone(),
            "previous_date" => data.previous_starts_at.map(|time| language.date(time)),
            "free_cancellation" => {
                data.is_free_to_cancel?.then(|| phrases::free_cancellation(language))
            }
            "opens_at" => data.opens_at.map(|time| language.date(time)),
            "presale" => data.is_presale?.then(|| phrases::presale(language)),
            "grade" => data.grade.clone(),
            "head_start" => data.head_start_until.map(|time| phrases::head_start(time, language)),
            "attachment" => {
                let is_attached = data.has_attached_tickets.unwrap_or(false);
                Some(phrases::attachment(is_attached, data.is_guest, language))
            }
            "date" => data.starts_at.map(|time| language.date(time)),
            "venue" => data.venue_name.clone(),
            "places" => (!data.places.is_empty()).then(|| phrases::places(&data.places, language)),
            "quantity" => data.quantity.map(|quantity| quantity.to_string()),
            "number" => data.reservation_number.clone(),
            "amount" => amount(data.amount),
            "refund" => amount(data.refund),
            "fee" => amount(data.fee),
            "method" => data.method.as_deref().and_then(|name| phrases::method(name, language)),
            "reason" => data.reason.as_deref().and_then(|code| phrases::reason(code, language)),
            "position" => data.position.map(|position| phrases::position(position, language)),
            "wait" => data.wait_seconds.map(|seconds| phrases::wait(seconds, language)),
            "link" => Some(link.to_owned()),
            unknown => unreachable!("no template has the name {unknown}"),
        }
    }
}

/// None if a value of the line is not known.
fn fill(line: &str, values: &TemplateContext<'_>, format: BodyFormat) -> Option<String> {
    let literal = |text: &str| match format {
        BodyFormat::Text => text.to_owned(),
        BodyFormat::Html => escape(text),
    };
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a name in a template ends");
        let value = single_line(&values.get(name)?);
        filled.push_str(&literal(before));
        match (format, name) {
            (BodyFormat::Html, "link") => {
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

fn html_page(language: Language, subject: &str, body: &str) -> String {
    // The body comes last, so that names in its values are not replaced.
    HTML_PAGE
        .replace("{language}", language.as_str())
        .replace("{subject}", &escape(subject).replace('{', "&#123;"))
        .replace("{body}", body)
}

/// One line of bounded length, without characters that change the direction of the text.
fn single_line(value: &str) -> String {
    let spaced: String = value.chars().map(|c| if fits_in_line(c) { c } else { ' ' }).collect();
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
