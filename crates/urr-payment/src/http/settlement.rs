//! The settlement of an event, its payments and the ledger as files.

mod files;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use urr_contracts::internal::ticket::GradeSales;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{
    Admin, ApiError, Context, CsvFile, CsvLanguage, CsvQuery, Errors, EventReader, Json, Path,
    Query,
};
use urr_storage::{TIME_MAX, TIME_MIN, storable_time};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::PaymentService;
use crate::settlement::{EventMoneyError, EventSettlement, MethodSales};

pub fn routes() -> OpenApiRouter<PaymentService> {
    OpenApiRouter::new()
        .routes(routes!(get_settlement))
        .routes(routes!(export_settlement))
        .routes(routes!(export_payments))
        .routes(routes!(export_ledger))
}

/// What an event has earned, by the ledger.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SettlementView {
    event_id: Uuid,
    at: Timestamp,
    /// What buyers paid for what they got, also those who bought from another member.
    #[schema(value_type = i64)]
    gross_sales: Won,
    /// What of it goes back through the provider, paid or due.
    #[schema(value_type = i64)]
    refunds: Won,
    /// What went back by other means.
    #[schema(value_type = i64)]
    paid_otherwise: Won,
    /// Gross sales less refunds: ticket sales and fees together.
    #[schema(value_type = i64)]
    kept: Won,
    #[schema(value_type = i64)]
    ticket_sales: Won,
    #[schema(value_type = i64)]
    booking_fees: Won,
    #[schema(value_type = i64)]
    cancellation_fees: Won,
    #[schema(value_type = i64)]
    transfer_fees: Won,
    /// Part of the refunds: those that are not done yet.
    #[schema(value_type = i64)]
    refunds_due: Won,
    /// Charged, and neither delivered nor to be refunded yet.
    #[schema(value_type = i64)]
    undelivered: Won,
    /// What the providers hold for the event now.
    #[schema(value_type = i64)]
    at_provider: Won,
    /// What the box office has in cash, and at its card terminal.
    #[schema(value_type = i64)]
    box_office_cash: Won,
    #[schema(value_type = i64)]
    box_office_card: Won,
    /// Whether the payments and the ledger say the same. If not, an administrator has to look.
    explained: bool,
    methods: Vec<MethodSalesView>,
    /// Tickets by grade or ticket type, at their price without booking fees. Null while the ticket
    /// service is away.
    grades: Option<Vec<GradeSalesView>>,
    /// Valid tickets that were given away, which are not among the grades. Null while the ticket
    /// service is away.
    complimentary_tickets: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MethodSalesView {
    /// Null: the provider did not say.
    #[schema(example = "card")]
    method: Option<String>,
    payments: u64,
    #[schema(value_type = i64)]
    charged: Won,
    #[schema(value_type = i64)]
    refunded: Won,
    #[schema(value_type = i64)]
    net: Won,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GradeSalesView {
    #[schema(example = "VIP")]
    grade: String,
    sold: u64,
    #[schema(value_type = i64)]
    sold_amount: Won,
    cancelled: u64,
    #[schema(value_type = i64)]
    cancelled_amount: Won,
}

impl From<EventSettlement> for SettlementView {
    fn from(settled: EventSettlement) -> SettlementView {
        let explained = settled.is_explained();
        let EventSettlement { event_id, at, settlement, methods, grades, complimentary_tickets } =
            settled;
        SettlementView {
            event_id,
            at,
            gross_sales: settlement.gross,
            refunds: settlement.refunds,
            paid_otherwise: settlement.paid_otherwise,
            kept: settlement.kept(),
            ticket_sales: settlement.sales,
            booking_fees: settlement.booking_fees,
            cancellation_fees: settlement.cancellation_fees,
            transfer_fees: settlement.transfer_fees,
            refunds_due: settlement.refunds_due,
            undelivered: settlement.undelivered,
            at_provider: settlement.at_provider,
            box_office_cash: settlement.box_office_cash,
            box_office_card: settlement.box_office_card,
            complimentary_tickets,
            explained,
            methods: methods.into_iter().map(MethodSalesView::from).collect(),
            grades: grades.map(|all| all.into_iter().map(GradeSalesView::from).collect()),
        }
    }
}

impl From<MethodSales> for MethodSalesView {
    fn from(sales: MethodSales) -> MethodSalesView {
        let net = sales.net();
        let MethodSales { method, payments, charged, refunded } = sales;
        MethodSalesView { method, payments, charged, refunded, net }
    }
}

impl From<GradeSales> for GradeSalesView {
    fn from(sales: GradeSales) -> GradeSalesView {
        let GradeSales { grade, sold, sold_amount, cancelled, cancelled_amount } = sales;
        GradeSalesView { grade, sold, sold_amount, cancelled, cancelled_amount }
    }
}

impl From<EventMoneyError> for ApiError {
    fn from(error: EventMoneyError) -> ApiError {
        match error {
            EventMoneyError::NotFound => ApiError::not_found("EVENT_NOT_FOUND", error.to_string()),
            EventMoneyError::NotYours(not_yours) => not_yours.into(),
            EventMoneyError::Storage(error) => error.into(),
        }
    }
}

/// Returns the settlement of an event.
///
/// For its organiser, support and administrators: what the ledger says about the event's payments,
/// by the same rules as the audit. Gross sales less refunds are ticket sales and fees. Errors: 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/settlement", tag = "admin",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = SettlementView), Errors<401, 403, 404>),
)]
async fn get_settlement(
    State(payments): State<PaymentService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
) -> Result<Json<SettlementView>, ApiError> {
    let settled = payments.settle_event(event_id, reader.event_scope(), &context).await?;
    Ok(Json(settled.into()))
}

/// Returns the settlement of an event as a CSV file.
///
/// For its organiser, support and administrators. Errors: 400 `INVALID_LANGUAGE`; 403
/// `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/settlement.csv", tag = "admin",
    params(("eventId" = Uuid, Path), CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403, 404>),
)]
async fn export_settlement(
    State(payments): State<PaymentService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let settled = payments.settle_event(event_id, reader.event_scope(), &context).await?;
    let file = CsvFile::new(&format!("settlement-{event_id}"), language, files::SETTLEMENT);
    Ok(file.whole(&files::settlement_rows(&settled, language)))
}

/// Returns the payments of an event as a CSV file.
///
/// For its organiser, support and administrators, in the order of making, in all states. Errors: 400
/// `INVALID_LANGUAGE`; 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/payments.csv", tag = "admin",
    params(("eventId" = Uuid, Path), CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403, 404>),
)]
async fn export_payments(
    State(payments): State<PaymentService>,
    EventReader(reader): EventReader,
    Path(event_id): Path<Uuid>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    payments.check_event(event_id, reader.event_scope()).await?;
    let file = CsvFile::new(&format!("payments-{event_id}"), language, files::PAYMENTS);
    let page = move |after| files::payment_page(payments.clone(), event_id, after);
    file.paged(Uuid::nil(), page).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LedgerQuery {
    /// Entries from this time on.
    from: Option<Timestamp>,
    /// Entries before this time.
    to: Option<Timestamp>,
}

/// Returns the entries of the ledger as a CSV file, a row per line.
///
/// For administrators. The lines of an entry add up to zero. What we have or are owed is above zero;
/// what we owe or have earned is below. Errors: 400 `INVALID_LANGUAGE`.
#[utoipa::path(
    get, path = "/api/admin/payments/ledger.csv", tag = "admin",
    params(LedgerQuery, CsvQuery),
    responses((status = 200, content_type = "text/csv", body = String), Errors<401, 403>),
)]
async fn export_ledger(
    State(payments): State<PaymentService>,
    _admin: Admin,
    Query(query): Query<LedgerQuery>,
    CsvLanguage(language): CsvLanguage,
) -> Result<Response, ApiError> {
    let from = query.from.map_or(TIME_MIN, storable_time);
    let to = query.to.map_or(TIME_MAX, storable_time);
    let file = CsvFile::new("ledger", language, files::LEDGER);
    let page = move |after| files::ledger_page(payments.clone(), (from, to), after);
    file.paged(Uuid::nil(), page).await
}
