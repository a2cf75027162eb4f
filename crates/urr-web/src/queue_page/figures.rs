//! What the waiting page shows, from the answers of the waiting room.

use axum::http::StatusCode;
use serde::Deserialize;
use urr_kernel::Timestamp;

use crate::language::PageLanguage;
use crate::page_api::ApiRefusal;

/// Reloading faster tells a user nothing new and costs a page each time.
const REFRESH_SECONDS_MIN: u64 = 5;

/// The crowd document, as far as the page shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrowdAnswer {
    pub phase: String,
    pub gathers_at: Option<Timestamp>,
    pub opens_at: Timestamp,
    pub server_time: Timestamp,
    pub waiting: u32,
    pub rate_per_minute: u32,
    pub sold_out: bool,
    pub message: Option<String>,
    pub draw_commitment: Option<String>,
}

/// A user's status, as far as the page shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    pub status: String,
    pub phase: String,
    pub position: Option<u32>,
    pub people_ahead: Option<u32>,
    pub people_behind: Option<u32>,
    pub estimated_wait_range: Option<WaitRange>,
    pub sold_out: bool,
    pub message: Option<String>,
    pub next_poll: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WaitRange {
    pub from: u64,
    pub to: u64,
}

/// The figures of the page, written as it shows them.
#[derive(Debug, Default)]
pub struct QueueFigures {
    /// Which part of the page is shown.
    pub state: &'static str,
    pub phase: String,
    pub opens_at: String,
    pub gathers_at: String,
    pub server_time: String,
    /// When it opens, for those without a script.
    pub opens_text: String,
    pub position: String,
    pub ahead: String,
    pub behind: String,
    pub wait: String,
    pub waiting: String,
    pub speed: String,
    pub message: String,
    pub commitment: String,
    pub refusal: &'static str,
    pub is_sold_out: bool,
    pub is_paused: bool,
    pub refresh_seconds: u64,
}

impl QueueFigures {
    /// For everybody.
    pub fn of_crowd(crowd: &CrowdAnswer, language: PageLanguage) -> QueueFigures {
        let state = match crowd.phase.as_str() {
            "over" => "end",
            "cancelled" => "off",
            "closed" => "early",
            _ => "load",
        };
        let is_early = crowd.server_time < crowd.opens_at;
        QueueFigures {
            state,
            phase: crowd.phase.clone(),
            opens_at: crowd.opens_at.to_string(),
            gathers_at: crowd.gathers_at.map(|at| at.to_string()).unwrap_or_default(),
            server_time: crowd.server_time.to_string(),
            opens_text: if is_early { opens_text(crowd.opens_at, language) } else { String::new() },
            waiting: people(crowd.waiting, language),
            speed: speed(crowd.rate_per_minute, language),
            message: crowd.message.clone().unwrap_or_default(),
            commitment: crowd.draw_commitment.clone().unwrap_or_default(),
            is_sold_out: crowd.sold_out,
            is_paused: crowd.phase == "paused",
            ..QueueFigures::unknown(language)
        }
    }

    /// While the waiting room does not answer.
    pub fn unknown(language: PageLanguage) -> QueueFigures {
        let unknown = language.pick("계산 중", "not known yet").to_owned();
        QueueFigures {
            state: "load",
            wait: unknown.clone(),
            speed: unknown,
            refresh_seconds: REFRESH_SECONDS_MIN,
            ..QueueFigures::default()
        }
    }

    /// Of an event that the waiting room has forgotten.
    pub fn closed(is_cancelled: bool, language: PageLanguage) -> QueueFigures {
        let (state, phase) = if is_cancelled { ("off", "cancelled") } else { ("end", "over") };
        QueueFigures { state, phase: phase.to_owned(), ..QueueFigures::unknown(language) }
    }

    /// For one user.
    pub fn of_user(
        crowd: Option<&CrowdAnswer>,
        status: &Result<StatusAnswer, ApiRefusal>,
        language: PageLanguage,
    ) -> QueueFigures {
        let shared = match crowd {
            Some(crowd) => QueueFigures::of_crowd(crowd, language),
            None => QueueFigures::unknown(language),
        };
        let status = match status {
            Ok(status) => status,
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                return QueueFigures { state: "login", refresh_seconds: 60, ..shared };
            }
            Err(_) => return shared,
        };
        let state = match (status.status.as_str(), status.position) {
            ("queued", Some(_)) => "wait",
            ("queued", None) => "draw",
            ("active", _) => "turn",
            ("ended", _) if status.phase == "cancelled" => "off",
            ("ended", _) => "end",
            _ if shared.state == "early" => "early",
            _ => "join",
        };
        let count = |figure: Option<u32>| figure.map(|n| people(n, language)).unwrap_or_default();
        QueueFigures {
            state,
            phase: status.phase.clone(),
            position: status.position.map(grouped).unwrap_or_default(),
            ahead: count(status.people_ahead),
            behind: count(status.people_behind),
            wait: wait_text(status.estimated_wait_range, language),
            message: match status.status.as_str() {
                "queued" => status.message.clone().unwrap_or_default(),
                _ => String::new(),
            },
            is_sold_out: status.sold_out,
            is_paused: status.phase == "paused",
            refresh_seconds: refresh_after(status.next_poll),
            ..shared
        }
    }
}

/// In whole seconds, and not too often.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the room says a minute at most"
)]
fn refresh_after(next_poll: f64) -> u64 {
    (next_poll.ceil().clamp(0.0, 600.0) as u64).max(REFRESH_SECONDS_MIN)
}

/// `12345` is `12,345` in both languages.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn people(number: u32, language: PageLanguage) -> String {
    format!("{}{}", grouped(number), language.pick("명", ""))
}

fn speed(per_minute: u32, language: PageLanguage) -> String {
    match (per_minute, language) {
        (0, _) => language.pick("계산 중", "not known yet").to_owned(),
        (n, PageLanguage::Korean) => format!("1분에 {}명", grouped(n)),
        (n, PageLanguage::English) => format!("{} a minute", grouped(n)),
    }
}

fn wait_text(range: Option<WaitRange>, language: PageLanguage) -> String {
    let Some(WaitRange { from, to }) = range else {
        return language.pick("계산 중", "not known yet").to_owned();
    };
    let (from, to) = (duration_text(from, language), duration_text(to, language));
    match from == to {
        true => from,
        false => format!("{from} {} {to}", language.pick("~", "–")),
    }
}

fn duration_text(seconds: u64, language: PageLanguage) -> String {
    let minutes = (seconds + 30) / 60;
    match (minutes, language) {
        (0, _) => language.pick("1분 미만", "<1 min").to_owned(),
        (1..60, _) => format!("{minutes}{}", language.pick("분", " min")),
        (_, PageLanguage::Korean) => format!("{}시간 {}분", minutes / 60, minutes % 60),
        (_, PageLanguage::English) => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Korean time in both languages, because that is where events take place.
fn opens_text(at: Timestamp, language: PageLanguage) -> String {
    let seconds_in_korea = at.as_second() + 9 * 3_600;
    let time = seconds_in_korea.rem_euclid(86_400);
    let clock = format!("{:02}:{:02}", time / 3_600, time / 60 % 60);
    match language {
        PageLanguage::Korean => format!("오픈 {clock}"),
        PageLanguage::English => format!("Opens at {clock} (Korean time)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!([1, 999, 1_000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
        let wait = |from, to| wait_text(Some(WaitRange { from, to }), PageLanguage::Korean);
        assert_eq!(wait(0, 20), "1분 미만");
        assert_eq!(wait(90, 290), "2분 ~ 5분");
        assert_eq!(wait(3_000, 7_500), "50분 ~ 2시간 5분");
        assert_eq!(wait(0, 1_981), "1분 미만 ~ 33분", "a full room that nobody leaves");
        let stuck = Some(WaitRange { from: 0, to: 1_981 });
        assert_eq!(wait_text(stuck, PageLanguage::English), "<1 min – 33 min");
        assert_eq!(wait_text(None, PageLanguage::Korean), "계산 중");
        assert_eq!(wait_text(None, PageLanguage::English), "not known yet");
        let opens = "2026-11-16T11:30:00Z".parse().expect("a time");
        assert_eq!(opens_text(opens, PageLanguage::Korean), "오픈 20:30");
    }

    #[test]
    fn a_page_reloads_as_the_room_says_and_not_too_often() {
        for (next_poll, expected) in [(1.07, 5), (5.0, 5), (30.2, 31), (-1.0, 5), (1e9, 600)] {
            assert_eq!(refresh_after(next_poll), expected, "{next_poll}");
        }
        assert_eq!(refresh_after(f64::NAN), 5);
    }
}
