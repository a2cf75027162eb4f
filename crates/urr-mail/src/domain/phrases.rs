//! Amounts, times and reasons in words, in Korean and English.

use urr_kernel::{Language, Timestamp, Won};

pub fn amount(amount: Won, language: Language) -> String {
    let korean = amount.to_string();
    match language {
        Language::Korean => korean,
        Language::English => format!("KRW {}", korean.trim_end_matches('원')),
    }
}

pub fn title(title: Option<&str>, language: Language) -> String {
    let title = title.filter(|title| !title.trim().is_empty());
    let unknown = match language {
        Language::Korean => "공연",
        Language::English => "your event",
    };
    title.unwrap_or(unknown).to_owned()
}

/// The first ten, and how many more there are.
pub fn places(places: &[String], language: Language) -> String {
    const SHOWN_MAX: usize = 10;
    let shown = places.iter().take(SHOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match (places.len().saturating_sub(SHOWN_MAX), language) {
        (0, _) => shown,
        (more, Language::Korean) => format!("{shown} 외 {more}"),
        (more, Language::English) => format!("{shown} and {more} more"),
    }
}

/// Providers have different names for the same method. None for an unknown one.
pub fn method(name: &str, language: Language) -> Option<String> {
    let (korean, english) = match name.to_lowercase().as_str() {
        "" | "unknown" => return None,
        "card" | "카드" | "paymentmethodcard" => ("카드", "Card"),
        "transfer" | "bank_transfer" | "계좌이체" | "paymentmethodtransfer" => {
            ("계좌이체", "Bank transfer")
        }
        "virtual_account" | "가상계좌" | "paymentmethodvirtualaccount" => {
            ("가상계좌", "Virtual account")
        }
        "mobile" | "휴대폰" | "paymentmethodmobile" => ("휴대폰", "Mobile phone"),
        "easy_pay" | "간편결제" | "paymentmethodeasypay" => ("간편결제", "Easy payment"),
        "naver_pay" => ("네이버페이", "Naver Pay"),
        "kakao_pay" => ("카카오페이", "Kakao Pay"),
        _ => (name, name),
    };
    Some(pick(language, korean, english))
}

/// A reason is one of our codes or the words of an administrator.
pub fn reason(code: &str, language: Language) -> Option<String> {
    let (korean, english) = match code {
        "" => return None,
        "CANCELLED_BY_OWNER" | "RELEASED_BY_OWNER" => ("고객 요청", "At your request"),
        "EVENT_CANCELLED" | "EVENT_DELETED" => ("공연 취소", "The event was cancelled"),
        "cancelled" => ("예매 취소", "The booking was cancelled"),
        "partly_cancelled" => ("예매 일부 취소", "Some of your tickets were cancelled"),
        "not_confirmable" => ("좌석을 확정하지 못했습니다", "The seats could not be given to you"),
        "duplicate" => ("중복 결제", "It was paid twice"),
        "transferred" => ("티켓이 양도되었습니다", "Your ticket was bought by somebody else"),
        "mismatch" => (
            "결제 내용이 주문과 달라 예매되지 않았습니다",
            "The charge was not what was ordered, so nothing was booked",
        ),
        _ => (code, code),
    };
    Some(pick(language, korean, english))
}

/// What the owner of a ticket can do about a moved event.
pub fn free_cancellation(language: Language) -> String {
    pick(
        language,
        "새 일시에 관람하기 어려우시면 공연 시작 전까지 수수료 없이 취소하실 수 있습니다.",
        "If you cannot come at the new time, you can cancel without a fee until the event begins.",
    )
}

pub fn presale(language: Language) -> String {
    pick(
        language,
        "멤버십 선예매로 구매하실 수 있습니다.",
        "As a member you can buy in the pre-sale.",
    )
}

/// How long a fan has returned seats before others are told.
pub fn head_start(until: Timestamp, language: Language) -> String {
    let time = language.date(until);
    pick(
        language,
        &format!("{time}까지는 알림을 먼저 신청하신 분만 예매하실 수 있습니다."),
        &format!("Until {time} only fans who asked first can take them."),
    )
}

/// Where the tickets are. Whoever has the code of a ticket can enter with it.
pub fn attachment(is_attached: bool, is_guest: bool, language: Language) -> String {
    match (is_attached, is_guest) {
        (true, _) => pick(
            language,
            "티켓은 첨부된 PDF에 있습니다. QR 코드를 가진 사람은 누구나 입장할 수 있으니 이 메일을 전달하지 \
             마세요.",
            "Your tickets are attached as a PDF. Whoever has a QR code can enter with it, so please \
             do not forward this mail.",
        ),
        (false, false) => pick(
            language,
            "티켓은 아래 예매 내역에서 보거나 PDF로 받으실 수 있습니다.",
            "Your tickets are on the page below, where you can also get them as a PDF.",
        ),
        (false, true) => pick(
            language,
            "티켓을 첨부하지 못했습니다. 초대한 분에게 문의해 주세요.",
            "The tickets could not be attached. Please ask whoever invited you.",
        ),
    }
}

pub fn position(position: u32, language: Language) -> String {
    match position {
        0 => pick(language, "지금 입장하실 수 있습니다", "you can enter now"),
        _ => pick(language, &format!("{position}번째"), &position.to_string()),
    }
}

/// In minutes, rounded up.
pub fn wait(seconds: u64, language: Language) -> String {
    let minutes = seconds.max(1).div_ceil(60);
    let english = match minutes {
        1 => "about a minute".to_owned(),
        minutes => format!("about {minutes} minutes"),
    };
    pick(language, &format!("약 {minutes}분"), &english)
}

fn pick(language: Language, korean: &str, english: &str) -> String {
    match language {
        Language::Korean => korean.to_owned(),
        Language::English => english.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_groups_and_their_currency() {
        let won = Won::new(1_234_000);
        assert_eq!(amount(won, Language::Korean), "1,234,000원");
        assert_eq!(amount(won, Language::English), "KRW 1,234,000");
        assert_eq!(amount(Won::ZERO, Language::English), "KRW 0");
    }

    #[test]
    fn times_are_koreas_and_say_so() {
        let late = "2026-12-31T15:00:00Z".parse().unwrap();
        assert_eq!(Language::Korean.date(late), "2027년 1월 1일 (금) 00:00 (한국 시간)");
        assert_eq!(Language::English.date(late), "Fri, 1 January 2027, 00:00 (Korean time, UTC+9)");
    }

    #[test]
    fn a_begun_minute_counts() {
        let minutes = [0, 1, 60, 61, 180].map(|seconds| wait(seconds, Language::Korean));
        assert_eq!(minutes, ["약 1분", "약 1분", "약 1분", "약 2분", "약 3분"]);
    }

    #[test]
    fn methods_and_reasons_are_translated_where_they_are_known() {
        assert_eq!(method("카드", Language::English).as_deref(), Some("Card"));
        assert_eq!(method("unknown", Language::Korean), None);
        assert_eq!(method("Points", Language::Korean).as_deref(), Some("Points"));
        let wrong = "잘못된 좌석";
        assert_eq!(reason(wrong, Language::English).as_deref(), Some(wrong));
        let cancelled = reason("EVENT_CANCELLED", Language::English);
        assert_eq!(cancelled.as_deref(), Some("The event was cancelled"));
    }

    #[test]
    fn of_many_places_the_first_are_named() {
        let many: Vec<String> = (1..=12).map(|n| format!("A-1-{n}")).collect();
        assert!(places(&many, Language::English).ends_with("A-1-10 and 2 more"));
        assert!(places(&many, Language::Korean).ends_with("A-1-10 외 2"));
        assert_eq!(places(&many[..2], Language::Korean), "A-1-1, A-1-2");
    }
}
