//! What problems are called, and the page that mends them.

use urr_contracts::internal::problems::{Problem, ProblemCode};
use urr_kernel::Language;

/// A sentence for people.
pub fn sentence(problem: &Problem, language: Language) -> String {
    let (count, subject) = (problem.count, problem.subject.as_deref().unwrap_or("-"));
    match language {
        Language::Korean => korean(problem.code, count, subject),
        Language::English => english(problem.code, count, subject),
    }
}

fn english(code: ProblemCode, count: u64, subject: &str) -> String {
    match code {
        ProblemCode::ServiceAway => format!("The {subject} service does not answer."),
        ProblemCode::BreakerOpen => format!("Calls are stopped because they failed: {subject}."),
        ProblemCode::DeadLetters => format!("{count} messages could not be handled."),
        ProblemCode::PaymentsUnclear => {
            format!("Whether {count} payments were charged is not known for more than a minute.")
        }
        ProblemCode::RefundsDeclined => format!("The provider has declined {count} refunds."),
        ProblemCode::LedgerUnexplained => format!("The ledger does not explain {count} payments."),
        ProblemCode::ProviderDiffers => format!("The provider and we differ about {count} orders."),
        ProblemCode::PaymentAlarm => format!("Payments need attention: {subject} ({count} times)."),
        ProblemCode::SeatsDiffer => {
            format!("Seats and reservations do not agree in {count} places.")
        }
        ProblemCode::RoomPaused => format!("{subject}: paused while {count} people wait."),
        ProblemCode::RoomsAway => "The waiting rooms do not answer.".to_owned(),
        ProblemCode::MailsFailed => format!("{count} mails could not be sent."),
        ProblemCode::Other => format!("Something is wrong: {subject}."),
    }
}

fn korean(code: ProblemCode, count: u64, subject: &str) -> String {
    match code {
        ProblemCode::ServiceAway => format!("{subject} 서비스가 응답하지 않습니다."),
        ProblemCode::BreakerOpen => format!("실패가 계속되어 호출을 멈췄습니다: {subject}"),
        ProblemCode::DeadLetters => format!("처리하지 못한 메시지가 {count}건 있습니다."),
        ProblemCode::PaymentsUnclear => {
            format!("1분 넘게 결과를 알 수 없는 결제가 {count}건 있습니다.")
        }
        ProblemCode::RefundsDeclined => format!("결제대행사가 거절한 환불이 {count}건 있습니다."),
        ProblemCode::LedgerUnexplained => {
            format!("원장으로 설명되지 않는 결제가 {count}건 있습니다.")
        }
        ProblemCode::ProviderDiffers => {
            format!("결제대행사 기록과 다른 주문이 {count}건 있습니다.")
        }
        ProblemCode::PaymentAlarm => format!("결제에 확인이 필요합니다: {subject} ({count}회)"),
        ProblemCode::SeatsDiffer => format!("좌석과 예매가 맞지 않는 곳이 {count}곳 있습니다."),
        ProblemCode::RoomPaused => {
            format!("{subject}: {count}명이 기다리는데 입장이 일시 중지되어 있습니다.")
        }
        ProblemCode::RoomsAway => "대기실이 응답하지 않습니다.".to_owned(),
        ProblemCode::MailsFailed => format!("보내지 못한 메일이 {count}통 있습니다."),
        ProblemCode::Other => format!("확인이 필요합니다: {subject}"),
    }
}

/// The page on which it can be mended.
pub fn link(problem: &Problem) -> String {
    match (problem.code, problem.event_id) {
        (ProblemCode::RoomPaused, Some(event_id)) => format!("/admin/events/{event_id}/live"),
        (ProblemCode::DeadLetters, _) => "/admin/dead-letters".to_owned(),
        (ProblemCode::PaymentsUnclear, _) => "/admin/payments?status=unknown".to_owned(),
        (ProblemCode::RefundsDeclined, _) => "/admin/payments?status=refunding".to_owned(),
        (
            ProblemCode::LedgerUnexplained
            | ProblemCode::ProviderDiffers
            | ProblemCode::PaymentAlarm,
            _,
        ) => "/admin/payments".to_owned(),
        (ProblemCode::SeatsDiffer, _) => "/admin/reservations".to_owned(),
        (ProblemCode::MailsFailed, _) => "/admin/mails?status=failed".to_owned(),
        _ => "/admin/settings".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_sentence_in_both_languages_and_a_page() {
        for code in ProblemCode::ALL {
            let problem = Problem { subject: Some("x".to_owned()), ..Problem::new(code, 3) };
            let [korean, english] =
                [Language::Korean, Language::English].map(|language| sentence(&problem, language));
            assert!(english.is_ascii() && !korean.is_ascii(), "{english} {korean}");
            assert!(link(&problem).starts_with("/admin"));
        }
    }
}
