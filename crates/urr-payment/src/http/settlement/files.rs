//! The rows of the payment service's CSV files.

use urr_kernel::{Language, Timestamp, Uuid};
use urr_service::{ApiError, CsvColumn, CsvPage, CsvRow, csv_row};

use crate::PaymentService;
use crate::domain::payment::Payment;
use crate::settlement::{EventSettlement, LedgerRow};
use crate::store::settlement as store;

/// How many payments or entries are in memory at once.
const PAGE: u32 = 500;

pub const SETTLEMENT: &[CsvColumn] = &[
    CsvColumn("구분", "Section"),
    CsvColumn("항목", "Item"),
    CsvColumn("건수", "Count"),
    CsvColumn("금액(원)", "Amount (won)"),
    CsvColumn("환불·취소 건수", "Refunded or cancelled, count"),
    CsvColumn("환불·취소 금액(원)", "Refunded or cancelled (won)"),
];

pub const PAYMENTS: &[CsvColumn] = &[
    CsvColumn("결제 ID", "Payment"),
    CsvColumn("주문 번호", "Order"),
    CsvColumn("주문명", "Order name"),
    CsvColumn("상태", "Status"),
    CsvColumn("종류", "Kind"),
    CsvColumn("예매 ID", "Reservation id"),
    CsvColumn("결제 수단", "Method"),
    CsvColumn("결제 대행사", "Provider"),
    CsvColumn("주문 금액(원)", "Amount (won)"),
    CsvColumn("청구 금액(원)", "Charged (won)"),
    CsvColumn("환불 금액(원)", "Refunded (won)"),
    CsvColumn("주문 일시(한국 시간)", "Ordered at (Korean time)"),
    CsvColumn("승인 일시(한국 시간)", "Charged at (Korean time)"),
    CsvColumn("실패 사유", "Failure"),
];

pub const LEDGER: &[CsvColumn] = &[
    CsvColumn("분개 ID", "Entry"),
    CsvColumn("일시(한국 시간)", "Time (Korean time)"),
    CsvColumn("종류", "Kind"),
    CsvColumn("계정", "Account"),
    CsvColumn("금액(원)", "Amount (won)"),
    CsvColumn("주문 번호", "Order"),
    CsvColumn("결제 ID", "Payment"),
    CsvColumn("환불 ID", "Refund"),
    CsvColumn("공연 ID", "Event"),
];

pub fn settlement_rows(settled: &EventSettlement, language: Language) -> Vec<CsvRow> {
    let sums = &settled.settlement;
    let total = language.pick("합계", "Totals");
    let parts = [
        ("총매출", "Gross sales", sums.gross),
        ("환불", "Refunds", sums.refunds),
        ("다른 방법으로 지급한 환불", "Refunds by other means", sums.paid_otherwise),
        ("남은 금액", "Kept", sums.kept()),
        ("티켓 판매", "Ticket sales", sums.sales),
        ("예매 수수료", "Booking fees", sums.booking_fees),
        ("취소 수수료", "Cancellation fees", sums.cancellation_fees),
        ("양도 수수료", "Transfer fees", sums.transfer_fees),
        ("처리 중인 환불", "Refunds due", sums.refunds_due),
        ("전달 전 결제", "Not delivered yet", sums.undelivered),
        ("결제 대행사 잔액", "At the providers", sums.at_provider),
        ("현장 판매 현금", "Box office, cash", sums.box_office_cash),
        ("현장 판매 카드", "Box office, card terminal", sums.box_office_card),
    ];
    let none = None::<u64>;
    let mut rows: Vec<CsvRow> = Vec::new();
    for (korean, english, amount) in parts {
        rows.push(csv_row![total, language.pick(korean, english), none, amount, none, none]);
    }
    let by_method = language.pick("결제 수단", "Payment method");
    for method in &settled.methods {
        let name = method.method.as_deref();
        let (charged, refunded) = (method.charged, method.refunded);
        rows.push(csv_row![by_method, name, method.payments, charged, none, refunded]);
    }
    if let Some(given) = settled.complimentary_tickets {
        let name = language.pick("초대권", "Complimentary tickets");
        rows.push(csv_row![total, name, given, none, none, none]);
    }
    let by_grade = language.pick("등급·권종", "Grade or ticket type");
    for sales in settled.grades.iter().flatten() {
        rows.push(csv_row![
            by_grade,
            sales.grade.as_str(),
            sales.sold,
            sales.sold_amount,
            sales.cancelled,
            sales.cancelled_amount,
        ]);
    }
    rows
}

pub async fn payment_page(
    payments: PaymentService,
    event_id: Uuid,
    after: Uuid,
) -> Result<CsvPage<Uuid>, ApiError> {
    let read = payments.read(move |tx| store::payment_page_of_event(tx, event_id, after, PAGE));
    let page = read.await?;
    let next = page.last().map(|last| last.id.0).filter(|_| page.len() == PAGE as usize);
    Ok(CsvPage { rows: page.iter().map(payment_row).collect(), next })
}

fn payment_row(payment: &Payment) -> CsvRow {
    csv_row![
        payment.id.0,
        payment.order_id.as_str(),
        payment.order_name.as_str(),
        payment.status.as_str(),
        payment.payable.kind.as_str(),
        payment.reservation(),
        payment.method.as_deref(),
        payment.provider.as_str(),
        payment.amount,
        payment.charged,
        payment.refunded,
        payment.created_at,
        payment.approved_at,
        payment.failure_code.as_deref(),
    ]
}

pub async fn ledger_page(
    payments: PaymentService,
    range: (Timestamp, Timestamp),
    after: Uuid,
) -> Result<CsvPage<Uuid>, ApiError> {
    let lines = payments.read(move |tx| store::ledger_page(tx, range, after, PAGE)).await?;
    // Entries have several lines each, so only an empty page is the end.
    let next = lines.last().map(|last| last.entry_id);
    Ok(CsvPage { rows: lines.iter().map(ledger_row).collect(), next })
}

fn ledger_row(line: &LedgerRow) -> CsvRow {
    csv_row![
        line.entry_id,
        line.at,
        line.kind.as_str(),
        line.account.as_str(),
        line.amount,
        line.order_id.as_str(),
        line.payment_id,
        line.refund_id,
        line.event_id,
    ]
}
