//! All reservations of an event as a CSV file.

use urr_contracts::internal::auth::USERS_PER_CALL_MAX;
use urr_kernel::{CallContext, Language, Timestamp, Uuid};
use urr_service::{ApiError, CsvColumn, CsvFile, CsvPage, CsvRow, EventScope, csv_row};
use urr_storage::{StorageError, Tx};

use crate::TicketService;
use crate::reservations::buyers::Buyers;
use crate::reservations::details::{ReservationDetails, ReservationFilter};
use crate::reservations::search::ReservationSearchError;
use crate::reservations::store::{items, list};

const COLUMNS: &[CsvColumn] = &[
    CsvColumn("예매 번호", "Reservation"),
    CsvColumn("상태", "Status"),
    CsvColumn("결제 상태", "Payment status"),
    CsvColumn("예매 일시(한국 시간)", "Made at (Korean time)"),
    CsvColumn("예매자", "Buyer"),
    CsvColumn("이메일", "E-mail"),
    CsvColumn("매수", "Tickets"),
    CsvColumn("좌석·권종", "Seats or ticket types"),
    CsvColumn("결제 금액", "Total (won)"),
    CsvColumn("그중 예매 수수료", "Of it booking fee (won)"),
    CsvColumn("일부 취소 금액", "Cancelled one by one (won)"),
    CsvColumn("환불 금액", "Refund (won)"),
    CsvColumn("취소 수수료", "Cancellation fee (won)"),
    CsvColumn("결제 수단", "Payment method"),
    CsvColumn("종료 사유", "Reason of its end"),
];

/// So many buyers can be asked for at once.
const PAGE: u32 = 100;
const _: () = assert!(PAGE as usize <= USERS_PER_CALL_MAX);

/// What a file has.
#[derive(Clone, Copy, Debug)]
pub struct ReservationExport {
    pub event_id: Uuid,
    pub scope: EventScope,
    pub language: Language,
}

impl TicketService {
    /// The file, read a page at a time in the order of making. Without the buyers there is none: an
    /// empty column would look as if they had no names.
    pub async fn export_reservations(
        &self,
        export: ReservationExport,
        context: CallContext,
    ) -> Result<axum::response::Response, ApiError> {
        let name = format!("reservations-{}", export.event_id);
        let file = CsvFile::new(&name, export.language, COLUMNS);
        let ticket = self.clone();
        let page = move |after: Uuid| {
            let ticket = ticket.clone();
            async move { ticket.export_page(export, after, &context).await }
        };
        file.paged(Uuid::nil(), page).await
    }

    async fn export_page(
        &self,
        export: ReservationExport,
        after: Uuid,
        context: &CallContext,
    ) -> Result<CsvPage<Uuid>, ApiError> {
        let filter =
            ReservationFilter { event_id: Some(export.event_id), ..ReservationFilter::default() };
        let read = move |tx: &mut Tx<'_>| {
            let records = list::record_page_from(tx, &filter, after, PAGE)?;
            let ids: Vec<Uuid> = records.iter().map(|record| record.reservation.id.0).collect();
            Ok::<_, StorageError>((records, items::item_list_of(tx, &ids)?))
        };
        let (records, items) = self.db.read(read).await?;
        let is_full = records.len() == PAGE as usize;
        let next = records.last().map(|last| last.reservation.id.0).filter(|_| is_full);
        let user_ids = records.iter().map(|record| record.reservation.user_id).collect();
        let buyers = self.find_buyers(user_ids, export.scope, context).await;
        let buyers = buyers.ok_or(ReservationSearchError::BuyersUnavailable)?;
        let details = self.with_inventories(records, items).await?;
        let now = self.clock.now();
        Ok(CsvPage { rows: details.iter().map(|one| row(one, &buyers, now)).collect(), next })
    }
}

fn row(details: &ReservationDetails, buyers: &Buyers, now: Timestamp) -> CsvRow {
    let record = &details.record;
    let reservation = &record.reservation;
    let buyer = buyers.get(&reservation.user_id);
    csv_row![
        reservation.number.as_str(),
        record.status(now).as_str(),
        reservation.payment_status.as_str(),
        reservation.created_at,
        buyer.map(|buyer| buyer.name.as_str()),
        buyer.map(|buyer| buyer.email.as_str()),
        reservation.quantity,
        details.places().join("; "),
        reservation.total_amount,
        reservation.booking_fee,
        record.cancelled_amount,
        record.refund_amount,
        record.cancellation_fee(),
        record.payment_method.as_deref(),
        record.end_reason.as_deref(),
    ]
}
