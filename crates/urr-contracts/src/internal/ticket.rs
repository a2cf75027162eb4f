//! Internal calls to the ticket service: payables for payments, summaries and documents for mails,
//! sales health and tiers for waiting rooms, points for the community, figures for organisers.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Tier, Timestamp, Uuid, Won};
use urr_service::Caller;

use super::problems::{self, ListTicketProblems, ProblemList};
use crate::events::payment::PaymentType;
use crate::internal::auth::AccountLanguage;

const PAYMENT: &[Caller] = &[Caller::Payment];
const MAIL: &[Caller] = &[Caller::Mail];
const QUEUE: &[Caller] = &[Caller::Queue];
const COMMUNITY: &[Caller] = &[Caller::Community];
const AUTH: &[Caller] = &[Caller::Auth];
const CATALOG: &[Caller] = &[Caller::Catalog];
const DEADLINE: Duration = Duration::from_secs(5);
/// Users wait for these answers.
const SHORT_DEADLINE: Duration = Duration::from_secs(2);

internal_calls! {
    /// The calls to the ticket service. Every one can be repeated without harm.
    pub enum TicketCalls {
        GetPayable -> PayableAnswer: Get "/internal/ticket/payables/{kind}/{id}", PAYMENT, DEADLINE;
        ValidatePayable -> PayableAnswer:
            Get "/internal/ticket/payables/{kind}/{id}/validate", PAYMENT, DEADLINE;
        PinPayable -> Acknowledged:
            Post "/internal/ticket/payables/{kind}/{id}/pin", PAYMENT, DEADLINE;
        UnpinPayable -> Acknowledged:
            Post "/internal/ticket/payables/{kind}/{id}/unpin", PAYMENT, DEADLINE;
        ConfirmPayable -> Acknowledged:
            Post "/internal/ticket/payables/{kind}/{id}/confirm", PAYMENT, DEADLINE;
        MarkPayableRefunded -> Acknowledged:
            Post "/internal/ticket/payables/{kind}/{id}/refunded", PAYMENT, DEADLINE;
        ListPaidReservations -> PaidReservationPage:
            Get "/internal/ticket/paid", PAYMENT, DEADLINE;
        CancelReservation -> PayableAnswer:
            Post "/internal/ticket/reservations/{id}/cancel", PAYMENT, DEADLINE;
        ReleaseHold -> Acknowledged:
            Post "/internal/ticket/reservations/{id}/release", PAYMENT, DEADLINE;
        GetReservationSummary -> ReservationSummaryAnswer:
            Get "/internal/ticket/reservations/{id}/summary", MAIL, DEADLINE;
        GetTicketDocument -> TicketDocumentAnswer:
            Get "/internal/ticket/reservations/{id}/document", MAIL, DEADLINE;
        // Asked for every second, so never repeated.
        GetSalesHealth -> SalesHealthAnswer:
            PostOnce "/internal/ticket/sales-health", QUEUE, SHORT_DEADLINE;
        GetSaleBoard -> SaleBoard:
            Get "/internal/ticket/sale-board/{eventId}", QUEUE, SHORT_DEADLINE;
        ListTicketProblems -> ProblemList:
            Get "/internal/ticket/problems", problems::CALLERS, problems::DEADLINE;
        GetTier -> TierAnswer:
            Get "/internal/ticket/tier/{eventId}/{userId}", QUEUE, SHORT_DEADLINE;
        GetHoldings -> HoldingsAnswer:
            Get "/internal/ticket/holdings/{userId}", AUTH, DEADLINE;
        GetReservationFigures -> ReservationFigures:
            Get "/internal/ticket/reservation-figures", CATALOG, SHORT_DEADLINE;
        PreviewMove -> MovePreviewAnswer:
            Get "/internal/ticket/events/{eventId}/move-preview", CATALOG, DEADLINE;
        GetGradeSales -> GradeSalesAnswer:
            Get "/internal/ticket/events/{eventId}/grade-sales", PAYMENT, DEADLINE;
        AwardPoints -> AwardPointsAnswer:
            Post "/internal/ticket/memberships/award-points", COMMUNITY, DEADLINE;
        ReturnPoints -> ReturnPointsAnswer:
            Post "/internal/ticket/memberships/return-points", COMMUNITY, DEADLINE;
    }
}

/// [`GetSalesHealth`] answers for at most this many events at once.
pub const SALES_HEALTH_EVENTS_MAX: usize = 1_000;

wire_enum! {
    /// What can be paid.
    pub enum PayableKind {
        Reservation => "reservation",
        Transfer => "transfer",
        Membership => "membership",
    }
}

wire_enum! {
    /// The state of a payable. Each kind has some of them.
    pub open enum PayableStatus {
        /// A hold, or a membership whose first year is not paid.
        Pending => "pending",
        /// A reservation that was paid.
        Confirmed => "confirmed",
        /// A reservation or a listing that was cancelled.
        Cancelled => "cancelled",
        /// A hold or a membership whose time is over.
        Expired => "expired",
        /// A transfer that is on offer.
        Listed => "listed",
        /// A transfer that was bought.
        Completed => "completed",
        /// A membership that is paid.
        Active => "active",
    }
}

wire_enum! {
    /// Whether a payable is paid.
    pub enum PayablePaymentStatus {
        Unpaid => "unpaid",
        Paid => "paid",
        Refunding => "refunding",
        Refunded => "refunded",
    }
}

impl From<PayableKind> for PaymentType {
    fn from(kind: PayableKind) -> PaymentType {
        match kind {
            PayableKind::Reservation => PaymentType::Reservation,
            PayableKind::Transfer => PaymentType::Transfer,
            PayableKind::Membership => PaymentType::Membership,
        }
    }
}

impl PaymentType {
    /// None for a type that is newer than this program.
    pub fn payable_kind(self) -> Option<PayableKind> {
        match self {
            PaymentType::Reservation => Some(PayableKind::Reservation),
            PaymentType::Transfer => Some(PayableKind::Transfer),
            PaymentType::Membership => Some(PayableKind::Membership),
            PaymentType::Other => None,
        }
    }
}

/// Names a payable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PayableRef {
    pub kind: PayableKind,
    pub id: Uuid,
}

/// Asks for a payable in whatever state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetPayable {
    #[serde(flatten)]
    pub payable: PayableRef,
}

/// Asks for a payable if this user can pay it now; otherwise its rules refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidatePayable {
    #[serde(flatten)]
    pub payable: PayableRef,
    pub user_id: Uuid,
}

/// A reservation, a transfer or a membership, as payments see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PayableView {
    pub kind: PayableKind,
    pub id: Uuid,
    /// The order's name at the provider; only in the answer of [`ValidatePayable`].
    #[serde(default)]
    pub order_name: Option<String>,
    /// Who pays; null for a transfer that nobody has pinned or bought.
    #[serde(default)]
    pub user_id: Option<Uuid>,
    #[serde(default)]
    pub event_id: Option<Uuid>,
    /// Of a membership.
    #[serde(default)]
    pub artist_id: Option<Uuid>,
    /// Of a reservation.
    #[serde(default)]
    pub reservation_number: Option<String>,
    /// What a transfer hands over.
    #[serde(default)]
    pub reservation_id: Option<Uuid>,
    /// Of a transfer.
    #[serde(default)]
    pub seller_id: Option<Uuid>,
    pub status: PayableStatus,
    pub payment_status: PayablePaymentStatus,
    pub total_amount: Won,
    /// Part of the total: the surcharge of a purchase in a pre-sale.
    #[serde(default)]
    pub booking_fee: Won,
    /// Part of the total: what a transfer costs.
    #[serde(default)]
    pub transfer_fee: Won,
    /// Seats or standing tickets of a reservation.
    #[serde(default)]
    pub quantity: Option<u32>,
    /// When a hold ends.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// A payable with another token is another purchase: its payment must not be confirmed.
    pub fencing_token: i64,
    /// The payment that is under way.
    #[serde(default)]
    pub pinned_by: Option<Uuid>,
    #[serde(default)]
    pub payment_id: Option<Uuid>,
    /// Whether a reservation was sold at the box office: the payment follows the sale.
    #[serde(default)]
    pub is_box_office: bool,
    #[serde(default)]
    pub refund_amount: Option<Won>,
    #[serde(default)]
    pub cancellation_fee: Option<Won>,
    /// The price of tickets of a reservation that were cancelled one by one. The total is without
    /// them; the present payment has paid both.
    #[serde(default)]
    pub cancelled_amount: Won,
    /// Of a reservation.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
    /// The flow that it began; only in the answer of [`ValidatePayable`] for a reservation.
    #[serde(default)]
    pub correlation_id: Option<Uuid>,
    /// The last event about it; only in the answer of [`ValidatePayable`] for a reservation.
    #[serde(default)]
    pub last_event_id: Option<Uuid>,
}

/// The answer about a payable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayableAnswer {
    pub payable: PayableView,
}

/// The answer to a change of a payable: it was made, now or before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {}

/// Keeps a payable from expiring while its payment is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinPayable {
    #[serde(flatten)]
    pub payable: PayableRef,
    pub payment_id: Uuid,
    pub user_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
    /// Which attempt of the payment, from 1. After its unpin a late copy of the call is refused.
    pub attempt: i64,
    /// The event, if it is known: calls about one event share a transaction.
    #[serde(default)]
    pub event_id: Option<Uuid>,
}

/// An attempt of the payment has failed: the payable may expire again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnpinPayable {
    #[serde(flatten)]
    pub payable: PayableRef,
    pub payment_id: Uuid,
    /// As in [`PinPayable`]. Earlier attempts are over as well.
    pub attempt: i64,
}

/// The payment was charged: the buyer gets what was paid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmPayable {
    #[serde(flatten)]
    pub payable: PayableRef,
    pub payment_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
    #[serde(default)]
    pub payment_method: Option<String>,
    /// As in [`PinPayable`].
    #[serde(default)]
    pub event_id: Option<Uuid>,
}

/// The money has gone back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkPayableRefunded {
    #[serde(flatten)]
    pub payable: PayableRef,
    pub payment_id: Uuid,
    /// The amount that the ticket service asked for.
    pub amount: Won,
    /// The amount that really went back; null if it is the same. It is less if an administrator
    /// had given back a part before.
    #[serde(default)]
    pub returned_amount: Option<Won>,
}

/// Cancels a paid reservation. The refund is announced as `RESERVATION_CANCELLED`. Exactly one of
/// user and administrator says who cancels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelReservation {
    pub id: Uuid,
    /// The owner.
    #[serde(default)]
    pub user_id: Option<Uuid>,
    #[serde(default)]
    pub admin_id: Option<Uuid>,
    /// Why an administrator cancels.
    #[serde(default)]
    pub reason: String,
    /// The payment that an administrator wants refunded. It is refused if the reservation has been
    /// sold on and is paid by another payment (M-8).
    #[serde(default)]
    pub payment_id: Option<Uuid>,
}

/// Gives up a hold: its payments were declined too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseHold {
    pub id: Uuid,
    /// The owner.
    pub user_id: Uuid,
    pub fencing_token: i64,
}

/// Asks for every reservation that was ever paid, in the order of ids, for reconciliation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPaidReservations {
    /// The last reservation of the page before.
    #[serde(default)]
    pub after: Option<Uuid>,
}

/// The answer of [`ListPaidReservations`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaidReservationPage {
    /// In the order of their ids.
    pub reservations: Vec<PayableView>,
    /// Whether there are others behind them.
    pub more: bool,
}

/// Asks what a mail says about a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetReservationSummary {
    pub id: Uuid,
}

/// What was booked, in words for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSummary {
    pub reservation_number: String,
    pub event_id: Uuid,
    pub event_title: String,
    pub venue_name: String,
    pub event_starts_at: Timestamp,
    /// Labels of seats, and standing tickets with their number.
    pub places: Vec<String>,
    pub quantity: u32,
}

/// The answer of [`GetReservationSummary`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationSummaryAnswer {
    pub reservation: ReservationSummary,
    /// The address of a guest without an account.
    #[serde(default)]
    pub guest_email: Option<String>,
}

/// Asks for the valid tickets of a user's reservation as a PDF. Whoever has it can enter, so it is
/// made for the present owner only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTicketDocument {
    pub id: Uuid,
    /// The owner.
    pub user_id: Uuid,
    pub language: AccountLanguage,
}

/// The answer of [`GetTicketDocument`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TicketDocumentAnswer {
    pub file_name: String,
    /// In base64.
    pub pdf: String,
}

/// The codes in the document are not printed.
impl std::fmt::Debug for TicketDocumentAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketDocumentAnswer")
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
    }
}

/// Asks what is left of events, and how booking goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSalesHealth {
    pub event_ids: Vec<Uuid>,
}

/// What is left of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventAvailability {
    pub available: u32,
    /// Held by users who may still give it back.
    pub held: u32,
    pub total: u32,
}

/// How booking went in the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BookingHealth {
    /// Requests that were answered, rejections by a rule included.
    pub answered: u64,
    /// Requests that failed or took too long.
    pub failed: u64,
    #[serde(default)]
    pub p50_micros: u64,
    pub p95_micros: u64,
    #[serde(default)]
    pub p99_micros: u64,
}

/// The answer of [`GetSalesHealth`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SalesHealthAnswer {
    /// Events that the ticket service does not know are left out.
    pub events: HashMap<Uuid, EventAvailability>,
    pub booking: BookingHealth,
}

/// Asks what is sold of an event, by grade, for its live board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetSaleBoard {
    pub event_id: Uuid,
}

/// The answer of [`GetSaleBoard`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaleBoard {
    pub availability: EventAvailability,
    /// Of all ticket processes and events.
    pub booking: BookingHealth,
    /// In the order of the hall or of the ticket types.
    pub grades: Vec<GradeSeats>,
}

/// What is left of a grade or of a ticket type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeSeats {
    pub name: String,
    pub price: Won,
    pub total: u32,
    pub available: u32,
    /// Null for ticket types, where holds and sales are counted together.
    #[serde(default)]
    pub held: Option<u32>,
    /// Kept out of the sale by the organiser. Null for ticket types.
    #[serde(default)]
    pub blocked: Option<u32>,
}

/// Asks for the tier of a user with the artist of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTier {
    pub event_id: Uuid,
    pub user_id: Uuid,
}

/// The answer of [`GetTier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierAnswer {
    /// Null for the general public.
    #[serde(default)]
    pub tier: Option<Tier>,
}

/// Asks how reservations go, for the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetReservationFigures {
    /// Only of this organiser's events; null: of all.
    #[serde(default)]
    pub organiser_id: Option<Uuid>,
}

/// The answer of [`GetReservationFigures`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationFigures {
    /// Holds and confirmed reservations; neither cancelled nor expired ones.
    pub total_reservations: u64,
    /// What of them is paid.
    pub total_revenue: Won,
    /// Those that were made today, by the calendar of Korea.
    pub today_reservations: u64,
    /// The last ones in any state, the newest first.
    pub recent_reservations: Vec<RecentReservation>,
}

/// One of the last reservations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentReservation {
    pub id: Uuid,
    pub user_id: Uuid,
    pub reservation_number: String,
    pub event_title: String,
    pub total_amount: Won,
    pub status: PayableStatus,
    pub created_at: Timestamp,
}

/// Rewards a user of the community. The ticket service decides how many points that is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwardPoints {
    pub user_id: Uuid,
    /// `COMMUNITY_POST`, `COMMUNITY_COMMENT` or `NEWS_CREATION`.
    pub action_type: String,
    /// The post, comment or news item. The same one is rewarded once.
    pub reference_id: Uuid,
    /// Null: all active memberships of the user.
    #[serde(default)]
    pub artist_id: Option<Uuid>,
}

/// The answer of [`AwardPoints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwardPointsAnswer {
    /// Points per membership.
    pub points: i64,
    /// How many memberships got them: 0 if the user has none, if it was rewarded before, or if the
    /// daily maximum is reached.
    pub memberships: u64,
}

/// The post or comment that was rewarded was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReturnPoints {
    pub action_type: String,
    pub reference_id: Uuid,
}

/// The answer of [`ReturnPoints`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnPointsAnswer {
    pub ok: bool,
}

wire_enum! {
    /// What a user has in the ticket service.
    pub open enum HoldingKind {
        /// Seats that are held and not paid.
        Hold => "hold",
        /// A paid reservation of an event that is not over.
        Reservation => "reservation",
        /// A reservation that the user offers to others.
        Listing => "listing",
        /// A membership that is paid and in force.
        Membership => "membership",
    }
}

/// Asks what a user has, and what they ever did: before an account is closed, and for a copy of all
/// of the user's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetHoldings {
    pub user_id: Uuid,
}

/// Something that a user would lose with the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holding {
    pub kind: HoldingKind,
    pub id: Uuid,
    /// The event, or the artist of a membership.
    pub title: String,
    /// The number of a reservation.
    #[serde(default)]
    pub number: Option<String>,
    #[serde(default)]
    pub quantity: Option<u32>,
    /// When the event begins, or when a membership ends.
    #[serde(default)]
    pub time: Option<Timestamp>,
}

/// The answer of [`GetHoldings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldingsAnswer {
    /// Whether the user ever paid for anything, or is about to.
    pub has_bought: bool,
    /// What is valid now, in the order of ids.
    pub holdings: Vec<Holding>,
    /// Everything that is stored about the user, as plain JSON by table.
    pub records: serde_json::Value,
}

/// Asks what it means to the owners of tickets if an event begins at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewMove {
    pub event_id: Uuid,
    pub starts_at: Timestamp,
}

/// The answer of [`PreviewMove`]. It counts paid reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovePreviewAnswer {
    pub reservations: u64,
    pub tickets: u64,
    /// How many different users have them: each is told.
    pub buyers: u64,
    /// Reservations that could be cancelled for free, because the day is another one.
    pub free_reservations: u64,
    /// What would be paid back if all of them were cancelled.
    pub refund_max: Won,
}

/// Asks what was sold of an event by grade or ticket type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetGradeSales {
    pub event_id: Uuid,
}

/// The answer of [`GetGradeSales`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GradeSalesAnswer {
    pub grades: Vec<GradeSales>,
    /// Valid tickets that were given away. They are not among the grades.
    #[serde(default)]
    pub complimentary_tickets: u64,
}

/// The paid tickets of a grade or a ticket type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GradeSales {
    pub grade: String,
    /// Those that stand, and their price without booking fees.
    pub sold: u64,
    pub sold_amount: Won,
    /// Those that were paid and cancelled since.
    pub cancelled: u64,
    pub cancelled_amount: Won,
}
