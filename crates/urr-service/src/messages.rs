//! The sentences of errors in Korean, by their code, and the language a client prefers.
//!
//! The English sentence is in the code, where the error is made. A code without a Korean sentence
//! fails the test `every_code_of_an_error_has_a_korean_sentence`.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;
use urr_kernel::Language;

/// The language that a client prefers; without a preference English.
pub fn preferred_language(headers: &HeaderMap) -> Language {
    let values = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    Language::preferred(values).unwrap_or(Language::English)
}

/// The Korean sentence of a code.
pub(crate) fn korean(code: &str) -> Option<&'static str> {
    let found = KOREAN.binary_search_by_key(&code, |(code, _)| code);
    found.ok().map(|index| KOREAN[index].1)
}

/// In the order of the codes.
const KOREAN: &[(&str, &str)] = &[
    ("ACCOUNTS_UNAVAILABLE", "지금은 계정을 찾을 수 없습니다. 계정 번호를 입력해 주세요."),
    ("ACCOUNT_SUSPENDED", "이용이 정지된 계정입니다. 고객센터로 문의해 주세요."),
    ("ADDRESS_OF_ADMIN", "관리자의 이메일 주소는 해제할 수 없습니다. 먼저 역할을 변경해 주세요."),
    ("ADDRESS_TOO_LONG", "주소가 너무 깁니다."),
    ("ADMIN_INVITE_INVALID", "이미 사용되었거나 만료된 초대입니다."),
    ("ADMIN_REQUIRED", "관리자만 이용할 수 있습니다."),
    ("ALREADY_CHECKED_IN", "이미 입장 확인된 티켓입니다."),
    ("ALREADY_MEMBER", "이미 멤버십에 가입되어 있습니다. 만료 한 달 전부터 갱신할 수 있습니다."),
    ("ALREADY_PAID", "이미 결제가 완료되었습니다."),
    ("ALREADY_REPLAYED", "이미 다시 보낸 메시지입니다."),
    ("ALREADY_SUSPENDED", "이미 이용이 정지된 계정입니다."),
    ("ALREADY_VERIFIED", "이미 본인 확인을 마쳤습니다."),
    (
        "ALREADY_VERIFIED_ELSEWHERE",
        "이미 다른 계정으로 본인 확인을 하셨습니다. 계정은 한 사람당 하나만 만들 수 있습니다.",
    ),
    ("AMBIGUOUS_LENGTH", "요청 본문의 길이를 확인할 수 없습니다."),
    ("AMBIGUOUS_REFERENCE", "결제 대상을 하나만 지정해 주세요."),
    ("AMOUNT_MISMATCH", "결제 금액이 주문 금액과 다릅니다."),
    ("ARTIST_NAME_TAKEN", "같은 이름의 아티스트가 이미 있습니다."),
    ("ARTIST_NOT_FOUND", "아티스트를 찾을 수 없습니다."),
    ("AUTHENTICATION_REQUIRED", "로그인이 필요합니다."),
    ("BODY_TOO_LARGE", "요청 본문이 너무 큽니다."),
    ("BUSY", "이용자가 많아 처리가 지연되고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("BUS_UNAVAILABLE", "지금은 메시지를 읽을 수 없습니다. 잠시 후 다시 시도해 주세요."),
    ("BUYERS_UNAVAILABLE", "지금은 구매자를 찾을 수 없습니다. 번호로는 찾을 수 있습니다."),
    ("CALLER_NOT_ALLOWED", "이 호출을 할 수 있는 서비스가 아닙니다."),
    ("CANCEL_INSTEAD", "전액 환불은 금액을 비워 두면 예매 취소로 처리됩니다."),
    ("CHECKOUT_REQUIRED", "결제창에서 결제를 진행해 주세요."),
    ("CHOSEN_TWICE", "같은 좌석 또는 권종을 두 번 선택했습니다."),
    ("COMMENT_NOT_FOUND", "댓글을 찾을 수 없습니다."),
    ("CONFIRMATION_REQUIRED", "계속하려면 확인이 필요합니다."),
    ("CROSS_SITE_REQUEST", "다른 사이트에서 보낸 요청은 처리할 수 없습니다."),
    ("DEADLINE_EXCEEDED", "응답 시간이 초과되었습니다. 다시 시도해 주세요."),
    ("DEAD_LETTER_NOT_FOUND", "처리하지 못한 메시지를 찾을 수 없습니다."),
    ("DOCUMENTS_UNAVAILABLE", "이 서버에서는 문서를 만들 수 없습니다."),
    ("EMAIL_ALREADY_VERIFIED", "이미 인증된 이메일 주소입니다."),
    (
        "EMAIL_IN_USE",
        "이미 가입된 이메일입니다. 기존 방식으로 로그인한 뒤 프로필에서 서비스를 연결해 주세요.",
    ),
    ("EMAIL_NOT_VERIFIED", "먼저 이메일 주소를 인증해 주세요."),
    ("EMAIL_REQUIRED", "이메일 주소가 필요합니다. 서비스에서 이메일 제공에 동의해 주세요."),
    ("ENTRY_TOKEN_INVALID", "입장 정보가 유효하지 않습니다. 대기실에서 다시 입장해 주세요."),
    ("ENTRY_TOKEN_OTHER_EVENT", "다른 공연의 입장 정보입니다. 이 공연의 대기실로 이동해 주세요."),
    ("ENTRY_TOKEN_REQUIRED", "예매하려면 먼저 대기실을 거쳐야 합니다."),
    ("EVENT_BEGUN", "이미 시작된 공연의 일시는 바꿀 수 없습니다."),
    ("EVENT_CANCELLED", "취소된 공연입니다."),
    ("EVENT_HAS_SEATS", "지정석 공연에는 권종을 둘 수 없습니다."),
    ("EVENT_IN_PAST", "지난 일시로는 공연을 열거나 옮길 수 없습니다."),
    ("EVENT_IS_STANDING", "스탠딩 예매에는 좌석이 없습니다."),
    (
        "EVENT_NOT_DELETABLE",
        "판매된 티켓이 있을 수 있습니다. 먼저 공연을 취소하거나 종료 후에 삭제해 주세요.",
    ),
    ("EVENT_NOT_FOUND", "공연을 찾을 수 없습니다."),
    ("EVENT_OVER", "이미 시작된 공연은 취소할 수 없습니다."),
    ("EVENT_STARTED", "공연이 이미 시작되었습니다."),
    (
        "EXPORT_UNAVAILABLE",
        "지금은 데이터의 일부를 불러올 수 없습니다. 잠시 후 다시 시도해 주세요.",
    ),
    ("FENCING_TOKEN_REQUIRED", "바꾸려는 예매의 버전(fencingToken)을 보내 주세요."),
    ("GATHERING_FIXED", "이미 대기가 시작되어 대기 시작 시각을 바꿀 수 없습니다."),
    ("GRADE_NOT_FOUND", "해당 구역에 이 등급의 좌석이 없습니다."),
    ("HALL_IN_USE", "공연에 사용된 홀은 변경하거나 삭제할 수 없습니다."),
    ("HALL_NOT_FOUND", "홀을 찾을 수 없습니다."),
    ("HEADERS_TOO_LARGE", "요청 헤더가 너무 큽니다."),
    ("HOLD_IN_PROGRESS", "이 공연에서 이미 선점한 좌석이 있습니다. 먼저 결제하거나 취소해 주세요."),
    ("HOLD_NOT_EXTENDABLE", "결제 시간을 연장할 수 없습니다."),
    ("IDEMPOTENCY_KEY_REUSED", "이 멱등키는 이미 다른 요청에 사용되었습니다."),
    ("IDENTITY_CHECK_OFF", "본인 확인을 사용하지 않는 서비스입니다."),
    ("IDENTITY_IN_USE", "이미 다른 계정에 연결된 로그인입니다."),
    ("IDENTITY_NOT_LINKED", "이 서비스와 연결된 계정이 아닙니다."),
    (
        "IDENTITY_PROVIDER_UNAVAILABLE",
        "본인 확인 기관이 응답하지 않습니다. 잠시 후 다시 시도해 주세요.",
    ),
    (
        "IDENTITY_REQUIRED",
        "본인 확인을 마친 분만 예매할 수 있는 공연입니다. 먼저 본인 확인을 해 주세요.",
    ),
    (
        "IDENTITY_UNAVAILABLE",
        "지금은 본인 확인 여부를 확인할 수 없습니다. 잠시 후 다시 시도해 주세요.",
    ),
    ("IMAGE_NOT_FOUND", "이미지를 찾을 수 없습니다."),
    ("IMAGE_TOO_LARGE", "이미지가 너무 큽니다."),
    ("INTERNAL_CREDENTIAL_REQUIRED", "내부 서비스만 호출할 수 있는 주소입니다."),
    ("INTERNAL_ERROR", "일시적인 오류가 발생했습니다. 다시 시도해 주세요."),
    ("INVALID_ACTION", "지원하지 않는 동작입니다."),
    (
        "INVALID_ALERT",
        "알림은 한 등급, 한 권종 또는 공연 전체에 대해 1매에서 10매까지 신청할 수 있습니다.",
    ),
    ("INVALID_ALT_TEXT", "사진 설명을 확인해 주세요. 너무 길거나 표시할 수 없는 문자가 있습니다."),
    ("INVALID_BODY", "요청 본문이 올바르지 않습니다."),
    ("INVALID_CANCELLER", "취소 주체가 올바르지 않습니다."),
    ("INVALID_CANCEL_POLICY", "취소 수수료 규정이 올바르지 않습니다."),
    ("INVALID_CASTING", "출연진은 100명까지, 이름과 배역은 100자까지 입력할 수 있습니다."),
    (
        "INVALID_CONTENT",
        "내용을 확인해 주세요. 비어 있거나 너무 길거나 표시할 수 없는 문자가 있습니다.",
    ),
    ("INVALID_COUNT", "매수가 올바르지 않습니다."),
    ("INVALID_CREDENTIAL", "내부 호출의 인증 정보가 올바르지 않습니다."),
    ("INVALID_CREDENTIALS", "이메일 또는 비밀번호가 올바르지 않습니다."),
    ("INVALID_DESCRIPTION", "설명이 올바르지 않습니다."),
    ("INVALID_DOOR", "출입구 이름은 한 줄, 40자 이하로 입력해 주세요."),
    ("INVALID_EMAIL", "이메일 주소가 올바르지 않습니다."),
    ("INVALID_FORM", "양식이 올바르지 않습니다."),
    ("INVALID_GATHERING", "대기 시작 시각이 올바르지 않습니다."),
    (
        "INVALID_GUEST",
        "계정을 고르거나 초대할 분의 이름을 입력해 주세요. 이메일은 있을 때만 입력합니다.",
    ),
    (
        "INVALID_HOUSE_SEATS",
        "좌석 또는 권종별 수량을 다시 골라 주세요. 한 번에 처리할 수 있는 수에 한도가 있습니다.",
    ),
    ("INVALID_IDEMPOTENCY_KEY", "멱등키는 공백 없는 1~64자여야 합니다."),
    ("INVALID_IDENTITY", "로그인 정보를 확인할 수 없습니다. 다시 로그인해 주세요."),
    ("INVALID_IMAGE", "이미지가 올바르지 않습니다."),
    ("INVALID_IMAGE_URL", "이미지 주소가 올바르지 않습니다."),
    ("INVALID_JSON", "요청 본문이 올바른 JSON이 아닙니다."),
    ("INVALID_KEY", "키가 올바르지 않습니다."),
    ("INVALID_KIND", "지원하지 않는 종류입니다."),
    ("INVALID_LANGUAGE", "지원하지 않는 언어입니다."),
    ("INVALID_LAYOUT", "좌석 배치가 올바르지 않습니다."),
    ("INVALID_MEMBERSHIP_PRICE", "멤버십 가격이 올바르지 않습니다."),
    ("INVALID_MESSAGE", "안내 문구가 올바르지 않습니다."),
    ("INVALID_NAME", "이름이 올바르지 않습니다."),
    ("INVALID_NOTE", "메모를 확인해 주세요. 너무 길거나 표시할 수 없는 문자가 있습니다."),
    ("INVALID_OUTCOME", "결과 값이 올바르지 않습니다."),
    ("INVALID_PASSWORD", "사용할 수 없는 비밀번호입니다."),
    ("INVALID_PATH", "주소가 올바르지 않습니다."),
    ("INVALID_PAYABLE_IDS", "결제 대상 목록이 올바르지 않습니다."),
    ("INVALID_PAYMENT_METHOD", "결제 수단이 올바르지 않습니다."),
    ("INVALID_PAYMENT_TYPE", "지원하지 않는 결제 대상입니다."),
    ("INVALID_PHONE", "휴대전화 번호가 올바르지 않습니다."),
    ("INVALID_PLACE", "위치가 올바르지 않습니다."),
    ("INVALID_PRESALE", "선예매 설정이 올바르지 않습니다."),
    ("INVALID_PRICE", "가격이 올바르지 않습니다."),
    ("INVALID_PRICES", "등급별 가격이 올바르지 않습니다."),
    ("INVALID_QUERY", "조회 조건이 올바르지 않습니다."),
    ("INVALID_RATE", "입장 속도가 올바르지 않습니다."),
    ("INVALID_REASON", "사유가 올바르지 않습니다."),
    ("INVALID_RECEIPT_NUMBER", "영수증 번호는 50자 이하로 입력해 주세요."),
    ("INVALID_REDIRECT", "이 사이트 안의 주소로만 이동할 수 있습니다."),
    ("INVALID_REFUND_AMOUNT", "환불 금액은 1원 이상이며 남은 결제 금액을 넘을 수 없습니다."),
    ("INVALID_ROLE", "역할은 user, staff, organiser, support, admin 중 하나여야 합니다."),
    ("INVALID_RUNNING_TIME", "공연 시간은 1분부터 1,440분까지 입력할 수 있습니다."),
    ("INVALID_SCANS", "한 번에 서로 다른 입장 확인 1~500건을 보낼 수 있습니다."),
    ("INVALID_SCHEDULE", "공연 또는 판매 일정이 올바르지 않습니다."),
    ("INVALID_SEATS_PER_USER", "1인당 구매 한도가 올바르지 않습니다."),
    ("INVALID_SIGNATURE", "결제대행사가 보낸 메시지가 아닙니다."),
    ("INVALID_STATUS", "없는 상태입니다."),
    ("INVALID_TERMS", "약관 동의 정보가 올바르지 않습니다."),
    ("INVALID_TEXT", "사용할 수 없는 문구입니다."),
    ("INVALID_THRESHOLD", "동시 입장 인원이 올바르지 않습니다."),
    ("INVALID_TICKET", "유효한 티켓이 아닙니다."),
    ("INVALID_TICKETS", "취소할 티켓을 1장 이상 10장 이하로 골라 주세요."),
    ("INVALID_TICKET_TYPES", "권종 정보가 올바르지 않습니다."),
    (
        "INVALID_TITLE",
        "제목을 확인해 주세요. 비어 있거나 너무 길거나 표시할 수 없는 문자가 있습니다.",
    ),
    ("INVALID_TOKEN", "토큰이 유효하지 않습니다."),
    ("INVALID_TOTAL", "판매 수량이 올바르지 않습니다."),
    ("INVALID_USER_IDS", "사용자 목록이 올바르지 않습니다."),
    ("INVALID_WEBHOOK", "결제 알림을 읽을 수 없습니다."),
    ("INVENTORY_FIXED", "판매할 좌석과 권종은 공연을 만든 뒤에는 바꿀 수 없습니다."),
    ("LAST_ADMIN", "마지막 관리자는 나갈 수 없습니다. 먼저 다른 관리자를 지정해 주세요."),
    (
        "LAST_WAY_IN",
        "더 이상 로그인할 수 없게 됩니다. 먼저 비밀번호를 설정하거나 다른 서비스를 연결해 주세요.",
    ),
    ("LEFT_LATELY", "최근에 탈퇴한 계정이 있습니다. 나중에 다시 시도해 주세요."),
    ("LINK_INVALID", "이미 사용되었거나 만료된 링크입니다. 다시 요청해 주세요."),
    (
        "LINK_LIMIT",
        "이미 여러 번 메일을 보냈습니다. 메일함을 확인하시거나 한 시간 뒤에 다시 시도해 주세요.",
    ),
    ("LINK_NOT_FOUND", "유효한 링크가 아닙니다."),
    ("LOGIN_BUSY", "로그인이 몰리고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("LOGIN_REQUIRED", "로그인한 뒤 다시 연결해 주세요."),
    (
        "LOSSES_NOT_ACCEPTED",
        "탈퇴하면 아직 유효한 티켓과 멤버십을 잃게 됩니다. 목록을 확인해 주세요.",
    ),
    ("MAIL_NOT_FAILED", "발송에 실패한 메일만 다시 보낼 수 있습니다."),
    ("MAIL_NOT_FOUND", "메일을 찾을 수 없습니다."),
    ("MAIL_SENT_RECENTLY", "방금 티켓 메일을 보냈습니다. 잠시 후 다시 보내 주세요."),
    ("MEMBERSHIP_BEING_PAID", "멤버십 결제가 진행 중입니다."),
    ("MEMBERSHIP_NOT_FOR_SALE", "결제할 멤버십이 없습니다."),
    ("MEMBERSHIP_NOT_FOUND", "멤버십을 찾을 수 없습니다."),
    ("MEMBERSHIP_PAID", "이미 결제된 멤버십입니다."),
    ("MEMBERSHIP_REFUNDED", "환불된 멤버십입니다."),
    ("MEMBERSHIP_REQUIRED", "멤버십 회원만 이용할 수 있습니다."),
    ("METHOD_NOT_ALLOWED", "지원하지 않는 요청 방식입니다."),
    ("METHOD_NOT_SUPPORTED", "지원하지 않는 결제 수단입니다."),
    ("NAME_TAKEN", "이미 사용 중인 이름입니다."),
    ("NEWS_NOT_FOUND", "소식을 찾을 수 없습니다."),
    ("NOTHING_CHOSEN", "좌석 또는 권종을 선택해 주세요."),
    ("NOT_ADJACENT", "나란히 붙은 좌석이 없습니다."),
    ("NOT_AN_IMAGE", "지원하는 이미지 파일이 아닙니다."),
    ("NOT_CANCELLABLE", "멤버십은 요청으로 환불되지 않습니다."),
    ("NOT_COMPLIMENTARY", "초대권이 아닙니다."),
    ("NOT_DRAWN_YET", "아직 추첨 전입니다. 추첨이 끝난 뒤 다시 확인해 주세요."),
    ("NOT_ENOUGH", "남은 수량이 부족합니다."),
    ("NOT_ENOUGH_BLOCKED", "보류된 수량이 부족합니다."),
    ("NOT_FOUND", "페이지를 찾을 수 없습니다."),
    ("NOT_IN_QUEUE", "대기열에 등록되어 있지 않습니다."),
    ("NOT_PINNED", "이 결제로 고정된 대상이 아닙니다."),
    ("NOT_REFUNDING", "이 결제로 구매한 대상이 아닙니다."),
    ("NOT_SOLD_HERE", "현장에서 판매한 예매가 아닙니다."),
    ("NOT_SUSPENDED", "이용이 정지된 계정이 아닙니다."),
    ("NOT_THE_AUTHOR", "작성자만 할 수 있습니다."),
    ("NOT_WAITING", "이 공연의 대기열에 없어 순번을 알려드릴 수 없습니다."),
    ("NOT_YOUR_ARTIST", "이 아티스트의 주최자만 할 수 있습니다."),
    ("NOT_YOUR_EVENT", "다른 주최자의 공연입니다."),
    ("NOT_YOUR_HALL", "다른 사용자가 등록한 홀입니다."),
    ("NO_LOTTERY", "추첨으로 입장하는 공연이 아닙니다."),
    ("NO_SEAT_SELECTION", "지정석이 없는 공연입니다. 권종을 선택해 주세요."),
    ("NO_VALID_TICKET", "유효한 티켓이 없는 예매입니다."),
    ("OPENING_FIXED", "이미 대기가 시작되어 입장 방식을 바꿀 수 없습니다."),
    ("ORDER_OVER", "종료된 주문입니다. 처음부터 다시 진행해 주세요."),
    ("ORGANISER_FIXED", "주최자는 관리자만 정할 수 있습니다."),
    (
        "OUTCOME_UNKNOWN",
        "처리 여부를 확인하지 못했습니다. 다시 시도하기 전에 내역을 확인해 주세요.",
    ),
    ("OVERLOADED", "접속자가 많습니다. 잠시 후 다시 시도해 주세요."),
    ("OWN_TRANSFER", "본인이 등록한 티켓입니다."),
    ("OWN_WRITING", "본인이 쓴 글은 신고할 수 없습니다. 직접 삭제할 수 있습니다."),
    ("PASSWORD_REQUIRED", "현재 비밀번호를 입력해 주세요."),
    ("PAYMENT_ATTEMPT_OVER", "이 결제 시도는 이미 끝났습니다."),
    ("PAYMENT_DECLINED", "결제가 승인되지 않았습니다. 다른 결제 수단을 이용해 주세요."),
    ("PAYMENT_IN_PROGRESS", "결제가 진행 중입니다."),
    ("PAYMENT_NOT_CONFIRMED", "환불할 결제가 없습니다."),
    ("PAYMENT_NOT_FOUND", "결제 내역을 찾을 수 없습니다."),
    ("PAYMENT_RETURNED", "예매가 확정되지 않아 결제 금액을 돌려드렸습니다."),
    ("POST_NOT_FOUND", "게시글을 찾을 수 없습니다."),
    ("PRESALE_MEMBERS_ONLY", "지금은 선예매 대상 회원만 구매할 수 있습니다."),
    ("PRICE_IS_FIXED", "양도 가격은 결제한 금액으로 정해져 있습니다."),
    ("PROOF_REQUIRED", "본인 확인이 필요합니다."),
    ("PROVIDER_NOT_CONFIGURED", "이 서비스로는 로그인할 수 없습니다."),
    ("PROVIDER_NOT_FOUND", "지원하지 않는 서비스입니다."),
    ("PROVIDER_SILENT", "결제대행사가 응답하지 않습니다. 잠시 후 결제 내역을 확인해 주세요."),
    (
        "PROVIDER_UNAVAILABLE",
        "지금은 이 서비스에 연결할 수 없습니다. 잠시 후 다시 시도하거나 다른 방법을 이용해 주세요.",
    ),
    ("QUEUE_FULL", "대기 인원이 가득 찼습니다. 잠시 후 다시 시도해 주세요."),
    ("QUEUE_UNAVAILABLE", "대기실에 연결할 수 없습니다. 잠시 후 다시 시도해 주세요."),
    ("RATE_LIMITED", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요."),
    ("RECENT_LOGIN_REQUIRED", "다시 로그인한 뒤 10분 안에 진행해 주세요."),
    ("REENTRY_NOT_ALLOWED", "이 공연은 퇴장 후 재입장할 수 없습니다."),
    ("REFERENCE_ID_REQUIRED", "결제 대상을 지정해 주세요."),
    ("REFRESH_TOKEN_EXPIRED", "오랫동안 이용하지 않아 로그아웃되었습니다. 다시 로그인해 주세요."),
    ("REFRESH_TOKEN_INVALID", "다시 로그인해 주세요."),
    ("REFRESH_TOKEN_REQUIRED", "먼저 로그인해 주세요."),
    ("REFRESH_TOKEN_REUSED", "안전을 위해 로그아웃되었습니다. 다시 로그인해 주세요."),
    ("REFRESH_TOKEN_REVOKED", "로그아웃되었습니다. 다시 로그인해 주세요."),
    (
        "REFUND_ABOVE_LIMIT",
        "고객 지원 담당자가 환불할 수 있는 금액을 넘습니다. 관리자에게 문의해 주세요.",
    ),
    ("REFUND_NOT_DECLINED", "결제대행사가 거절한 환불이 아닙니다."),
    ("REFUND_NOT_FOUND", "환불 내역을 찾을 수 없습니다."),
    ("REFUND_OVER", "이미 다른 결과로 끝난 환불입니다."),
    ("REFUND_OWED", "고객에게 지급해야 하는 환불이므로 철회할 수 없습니다."),
    ("REFUND_UNCLEAR", "결제대행사의 환불 여부가 아직 확인되지 않았습니다."),
    ("REGISTRATION_FAILED", "이 이메일로 가입할 수 없습니다. 이미 계정이 있다면 로그인해 주세요."),
    ("REQUEST_TIMEOUT", "요청 본문이 제때 도착하지 않았습니다."),
    ("RESERVATION_CANCELLED", "취소된 예매입니다."),
    ("RESERVATION_CONFIRMED", "이미 결제된 예매입니다."),
    ("RESERVATION_EXPIRED", "결제 시간이 지나 예매가 만료되었습니다."),
    ("RESERVATION_ID_REQUIRED", "예매 번호를 지정해 주세요."),
    ("RESERVATION_LISTED", "양도 등록된 예매입니다. 취소하려면 먼저 양도 등록을 철회해 주세요."),
    ("RESERVATION_NOT_CONFIRMED", "결제가 완료된 예매만 양도할 수 있습니다."),
    ("RESERVATION_NOT_FOUND", "예매 내역을 찾을 수 없습니다."),
    ("RESERVATION_UNPAID", "아직 결제하지 않은 예매입니다."),
    ("ROLE_REQUIRED", "이 작업을 할 수 있는 권한이 없습니다."),
    ("ROOM_NOT_READY", "대기실을 준비하고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("SALE_ENDED", "판매가 종료되었습니다."),
    ("SALE_HAS_BEGUN", "판매가 시작되어 지금 예매하실 수 있습니다."),
    (
        "SALE_IN_PAST",
        "복사본의 판매가 이미 시작된 것으로 계산됩니다. 판매 시작과 종료 시각을 입력해 주세요.",
    ),
    ("SALE_NOT_OPEN", "아직 판매 시작 전입니다."),
    ("SALE_NOT_READY", "좌석을 준비하고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("SALE_STARTED", "판매가 시작된 뒤에는 바꿀 수 없습니다."),
    ("SCAN_ID_REUSED", "같은 번호로 다른 티켓이 이미 확인되었습니다."),
    ("SCAN_NOT_FOUND", "입장 확인 기록을 찾을 수 없습니다."),
    ("SEATS_LEFT", "아직 좌석이 남아 있어 지금 예매하실 수 있습니다."),
    ("SEATS_OFFERED", "방금 나온 취소표입니다. 취소표 알림을 신청한 분께 먼저 기회가 있습니다."),
    ("SEAT_BEING_DECIDED", "다른 고객이 이 좌석을 선택하고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("SEAT_LIMIT", "1인당 구매할 수 있는 매수를 초과했습니다."),
    ("SEAT_LOST", "예매한 좌석을 확보하지 못했습니다."),
    ("SEAT_NOT_BLOCKED", "보류된 좌석이 아닙니다."),
    ("SEAT_NOT_FOUND", "좌석을 찾을 수 없습니다."),
    ("SEAT_TAKEN", "이미 선택된 좌석입니다."),
    ("SECTION_NOT_FOUND", "구역을 찾을 수 없습니다."),
    ("SERVICE_UNAVAILABLE", "서비스를 일시적으로 이용할 수 없습니다. 잠시 후 다시 시도해 주세요."),
    ("SESSION_NOT_FOUND", "로그인 기록을 찾을 수 없습니다."),
    ("SOCIAL_ALREADY_LINKED", "이 서비스의 다른 로그인과 이미 연결되어 있습니다."),
    ("SOCIAL_CANCELLED", "로그인이 취소되었습니다."),
    ("SOCIAL_LOGIN_REJECTED", "로그인 정보를 확인할 수 없습니다. 처음부터 다시 시도해 주세요."),
    (
        "SOCIAL_STATE_INVALID",
        "로그인 시간이 초과되었거나 다른 곳에서 시작된 로그인입니다. 다시 시도해 주세요.",
    ),
    ("SOLD_OUT", "매진되었습니다."),
    ("STAFF_NOT_FOUND", "이 이메일의 입장 확인 담당자가 없습니다."),
    ("STALE_FENCING_TOKEN", "그 사이 상태가 변경되었습니다."),
    ("STALE_REVISION", "다른 관리자가 먼저 수정했습니다. 내용을 다시 확인해 주세요."),
    ("STATISTICS_REBUILDING", "통계를 다시 집계하고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("STORAGE_UNAVAILABLE", "지금은 처리할 수 없습니다. 잠시 후 다시 시도해 주세요."),
    ("STREAM_LIMIT", "실시간 연결이 너무 많습니다. 잠시 후 다시 시도해 주세요."),
    ("STREAM_NOT_YET", "아직 실시간 연결을 사용할 수 없습니다."),
    ("TERMS_NOT_FOUND", "이 약관에는 그런 판이 없습니다."),
    ("TERMS_OUTDATED", "약관이 변경되었습니다. 새 약관을 확인해 주세요."),
    ("TERMS_REQUIRED", "먼저 약관에 동의해 주세요."),
    ("TICKETS_COMPLIMENTARY", "초대권은 한꺼번에 회수합니다."),
    ("TICKETS_UNAVAILABLE", "지금은 예매 내역을 확인할 수 없습니다. 잠시 후 다시 시도해 주세요."),
    ("TICKET_CANCELLED", "취소된 티켓입니다."),
    ("TICKET_FORGED", "위조된 티켓입니다."),
    ("TICKET_FOR_OTHER_EVENT", "다른 공연의 티켓입니다."),
    ("TICKET_IS_PERSONAL", "본인 확인이 필요한 공연의 티켓은 양도할 수 없습니다."),
    ("TICKET_NOT_FOR_SALE", "초대권과 현장 판매 티켓은 양도할 수 없습니다."),
    ("TICKET_NOT_FOUND", "티켓을 찾을 수 없습니다."),
    ("TICKET_NOT_VALID", "더 이상 유효하지 않은 티켓입니다."),
    ("TICKET_REISSUED", "다시 발급된 티켓입니다. 새 티켓을 제시해 주세요."),
    ("TICKET_SERVICE_UNAVAILABLE", "예매 서비스가 응답하지 않습니다. 잠시 후 다시 시도해 주세요."),
    ("TICKET_TRANSFERRED", "양도된 티켓입니다. 결제 금액은 환불되었습니다."),
    ("TICKET_TYPE_NAME_TAKEN", "같은 이름의 권종이 이미 있습니다."),
    ("TICKET_TYPE_NOT_FOUND", "권종을 찾을 수 없습니다."),
    ("TOKEN_EXPIRED", "로그인이 만료되었습니다."),
    ("TOKEN_INVALID", "로그인 정보가 유효하지 않습니다."),
    ("TOKEN_MALFORMED", "로그인 정보를 읽을 수 없습니다."),
    ("TOKEN_REVOKED", "로그아웃되었습니다. 다시 로그인해 주세요."),
    ("TOO_MANY_ALERTS", "신청할 수 있는 알림 수를 초과했습니다. 먼저 다른 알림을 해제해 주세요."),
    ("TOO_MANY_BUYERS", "같은 이름의 구매자가 너무 많습니다. 이메일 주소나 번호로 찾아 주세요."),
    (
        "TOO_MANY_DECLINES",
        "결제가 여러 번 거절되어 선점한 좌석을 놓았습니다. 결제된 금액은 없습니다. 좌석을 다시 선택해 주세요.",
    ),
    (
        "TOO_MANY_DOWNLOADS",
        "동시에 내려받을 수 있는 수를 초과했습니다. 잠시 후 다시 시도해 주세요.",
    ),
    ("TOO_MANY_EVENTS", "관련된 공연이 너무 많아 지금은 이름을 바꿀 수 없습니다."),
    ("TOO_MANY_HEADERS", "요청 헤더가 너무 많습니다."),
    (
        "TOO_MANY_PASSWORD_FAILURES",
        "비밀번호를 너무 많이 틀렸습니다. 15분 뒤에 다시 시도해 주세요.",
    ),
    ("TOO_MANY_PINNED", "게시판마다 고정 글은 다섯 개까지입니다."),
    (
        "TOO_MANY_QUEUES",
        "동시에 대기할 수 있는 공연 수를 초과했습니다. 먼저 다른 대기열에서 나가 주세요.",
    ),
    ("TOO_MANY_SLOT_CHECKS", "한 번에 확인할 수 있는 입장 자리 수를 초과했습니다."),
    ("TOO_MANY_STAFF", "한 공연에 배정할 수 있는 입장 확인 담당자 수를 넘었습니다."),
    ("TOO_MANY_STREAMS", "실시간 연결이 너무 많습니다."),
    ("TOO_MANY_TICKET_TYPES", "한 공연에 둘 수 있는 권종 수를 초과했습니다."),
    ("TOO_MANY_UPLOADS", "사진을 너무 많이 올렸습니다. 잠시 후 다시 시도해 주세요."),
    ("TOO_MANY_VERIFICATIONS", "본인 확인을 너무 많이 시도했습니다. 15분 뒤에 다시 시도해 주세요."),
    ("TOO_MUCH_WRITTEN", "짧은 시간에 너무 많이 작성했습니다. 잠시 후 다시 시도해 주세요."),
    ("TOTAL_BELOW_SOLD", "이미 판매된 수량보다 적게 줄일 수 없습니다."),
    ("TRANSFER_BEING_PAID", "다른 고객이 이 티켓을 결제하고 있습니다."),
    ("TRANSFER_CANCELLED", "양도가 철회된 티켓입니다."),
    ("TRANSFER_LISTED", "이미 양도 등록된 티켓입니다."),
    ("TRANSFER_NOT_FOUND", "양도 내역을 찾을 수 없습니다."),
    ("TRANSFER_SOLD", "이미 양도된 티켓입니다."),
    ("UNDO_TOO_LATE", "입장 확인은 1분 안에만 되돌릴 수 있습니다."),
    ("UNKNOWN_ARTIST", "등록되지 않은 아티스트입니다. 먼저 등록해 주세요."),
    ("UNKNOWN_HALL", "등록되지 않은 홀입니다."),
    ("UNKNOWN_VENUE", "등록되지 않은 공연장입니다."),
    ("UNSUPPORTED_MEDIA_TYPE", "지원하지 않는 형식의 요청입니다."),
    ("UNTRUSTED_IDENTITY", "신뢰할 수 없는 로그인 정보입니다."),
    ("UPSTREAM_TIMEOUT", "응답이 지연되고 있습니다. 잠시 후 다시 시도해 주세요."),
    ("USER_NOT_FOUND", "사용자를 찾을 수 없습니다."),
    ("VENUE_IN_USE", "홀이나 공연이 있는 공연장은 삭제할 수 없습니다."),
    ("VENUE_NOT_FOUND", "공연장을 찾을 수 없습니다."),
    ("VERIFICATION_EXPIRED", "본인 확인 시간이 초과되었습니다. 처음부터 다시 진행해 주세요."),
    ("VERIFICATION_FAILED", "본인 확인에 실패했습니다. 처음부터 다시 진행해 주세요."),
    (
        "VERIFICATION_INCOMPLETE",
        "이 방법으로는 본인 확인을 마칠 수 없습니다. 다른 방법을 선택해 주세요.",
    ),
    ("VERIFICATION_NOT_FOUND", "본인 확인 요청을 찾을 수 없습니다. 처음부터 다시 진행해 주세요."),
    ("VERIFICATION_PENDING", "먼저 본인 확인 창에서 확인을 마쳐 주세요."),
    ("VERIFIED_AS_ANOTHER", "이미 다른 사람으로 확인된 계정입니다."),
    ("VISITOR_NOT_INSIDE", "입장하지 않은 티켓입니다."),
    ("WRONG_AMOUNT", "결제할 금액과 다릅니다."),
    ("WRONG_PASSWORD", "비밀번호가 올바르지 않습니다."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn preferred(value: &str) -> Language {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_LANGUAGE, value.parse().unwrap());
        preferred_language(&headers)
    }

    #[test]
    fn the_language_is_the_preferred_one_or_english() {
        assert_eq!(preferred("fr, KO ;q=0.1"), Language::Korean);
        assert_eq!(preferred("*, ko"), Language::English);
        assert_eq!(preferred_language(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn codes_are_in_order_and_have_whole_sentences() {
        assert!(KOREAN.is_sorted_by(|a, b| a.0 < b.0));
        assert!(KOREAN.iter().all(|(_, sentence)| sentence.ends_with('.')));
        assert_eq!(korean("SOLD_OUT"), Some("매진되었습니다."));
        assert_eq!(korean("NO_SUCH_CODE"), None);
    }

    /// Looks for codes in the sources of all crates: the first text in capitals that a constructor
    /// of `ApiError` is given, and the first of a pair of a code and its sentence.
    #[test]
    fn every_code_of_an_error_has_a_korean_sentence() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            list_sources(&entry.unwrap().path().join("src"), &mut files);
        }
        let mut codes = BTreeSet::new();
        for file in files {
            let source = std::fs::read_to_string(file).unwrap();
            let production = source.split("#[cfg(test)]").next().unwrap_or_default();
            codes.extend(codes_in(production));
        }
        assert!(codes.len() > 150, "only {} codes were found", codes.len());
        let missing: Vec<_> = codes.iter().filter(|code| korean(code).is_none()).collect();
        assert!(missing.is_empty(), "without a Korean sentence: {missing:?}");
    }

    fn list_sources(folder: &Path, files: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.extension() {
                None => list_sources(&path, files),
                Some(extension) if extension == "rs" => files.push(path),
                Some(_) => {}
            }
        }
    }

    fn codes_in(source: &str) -> Vec<String> {
        const CONSTRUCTORS: [&str; 10] = [
            "new(",
            "bad_request(",
            "unauthorized(",
            "forbidden(",
            "not_found(",
            "conflict(",
            "unprocessable(",
            "too_many(",
            "unavailable(",
            "timeout(",
        ];
        if !source.contains("ApiError") {
            return Vec::new();
        }
        let mut codes = Vec::new();
        for call in source.split("ApiError::").skip(1) {
            if CONSTRUCTORS.iter().any(|name| call.starts_with(name)) {
                // The code is the first or, after the status, the second argument.
                let arguments = call.split_once('(').map_or("", |(_, rest)| rest).trim_start();
                let code = arguments
                    .strip_prefix('"')
                    .or_else(|| arguments.split_once(',')?.1.trim_start().strip_prefix('"'));
                codes.extend(code.and_then(code_at_start));
            }
        }
        // `("SOLD_OUT", "…")` and `("SOLD_OUT", format!(…))`: a match that gives both.
        for pair in source.split("(\"").skip(1) {
            let Some(code) = code_at_start(pair) else { continue };
            let rest = pair[code.len() + 1..].trim_start_matches(',').trim_start();
            if rest.starts_with('"') && rest.contains(' ') || rest.starts_with("format!(") {
                codes.push(code);
            }
        }
        // `Refused::SoldOut => "SOLD_OUT",`: a match that gives the code.
        codes.extend(source.split("=> \"").skip(1).filter_map(code_at_start));
        codes
    }

    fn code_at_start(text: &str) -> Option<String> {
        let (code, _) = text.split_once('"')?;
        let is_code = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        (code.len() > 3 && code.chars().all(is_code)).then(|| code.to_owned())
    }
}
