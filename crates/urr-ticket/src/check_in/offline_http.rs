//! The routes for phones that lose their network: the list of tickets beforehand, the report of
//! their scans afterwards, and what the reports have shown.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, DoorStaff, ETag, Errors, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::check_in::EntryNote;
use crate::check_in::http::{DirectionBody, ScannedTicketView, parse_code, parse_door};
use crate::check_in::list::{CheckInListPage, LIST_PAGE_MAX};
use crate::check_in::offline::{
    CheckInConflict, ReportedScan, SCANS_PER_REPORT_MAX, ScanReport, ScanResult,
};
use crate::check_in::store::ListedTicket;
use crate::{Inventory, TicketService};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(get_check_in_list))
        .routes(routes!(report_scans))
        .routes(routes!(list_check_in_conflicts))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
struct CheckInListQuery {
    /// The `next` of the page before.
    after: Option<Uuid>,
    /// How many tickets are on a page.
    #[param(minimum = 1, maximum = 1_000, default = 1_000)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CheckInListView {
    event_id: Uuid,
    allows_reentry: bool,
    tickets: Vec<ListedTicketView>,
    /// What to ask after next; null at the end of the list.
    next: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ListedTicketView {
    id: Uuid,
    number: String,
    /// Only this issue of the ticket is valid; a code carries its own.
    issue: u32,
    /// The seat, as it is on the ticket; null for a standing ticket.
    #[schema(example = "1층 A-12-7")]
    seat_label: Option<String>,
    ticket_type_name: Option<String>,
    /// `unused`, `inside`, `outside` (they left and may come back) or `cancelled`.
    #[schema(example = "unused")]
    status: &'static str,
    /// The first entry.
    checked_in_at: Option<Timestamp>,
    door: Option<String>,
    /// The first letters of the owner's name; null if the name is not known.
    holder_initials: Option<String>,
}

impl ListedTicketView {
    fn new(
        ticket: &ListedTicket,
        page: &CheckInListPage,
        inventory: &Inventory,
    ) -> ListedTicketView {
        let status = match ticket {
            ListedTicket { is_valid: false, .. } => "cancelled",
            ListedTicket { is_inside: true, .. } => "inside",
            ListedTicket { checked_in_at: Some(_), .. } => "outside",
            _ => "unused",
        };
        let seat = ticket.seat_id.and_then(|id| inventory.layout.place(id));
        ListedTicketView {
            id: ticket.id,
            number: ticket.number.clone(),
            issue: ticket.issue,
            seat_label: seat.map(|seat| seat.label()),
            ticket_type_name: ticket.ticket_type_name.clone(),
            status,
            checked_in_at: ticket.checked_in_at,
            door: ticket.checked_in_door.clone(),
            holder_initials: page.initials.get(&ticket.user_id).cloned(),
        }
    }
}

/// Lists the tickets of an event for a phone that may lose its network.
///
/// For door staff of the event, its organiser and administrators. A page has up to 1,000 tickets
/// and is at most five seconds old; ask again with `after` until `next` is null. Send the entity tag
/// of a page back in `If-None-Match`: 304 means that it has not changed. Of owners only initials
/// are given. Errors: 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/check-in-list", tag = "tickets",
    params(("eventId" = Uuid, Path), CheckInListQuery),
    responses(
        (status = 200, body = CheckInListView),
        (status = 304, description = "The page has not changed."),
        Errors<401, 403, 404>,
    ),
)]
async fn get_check_in_list(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Context(context): Context,
    Path(event_id): Path<Uuid>,
    Query(query): Query<CheckInListQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let inventory = ticket.check_door(event_id, &staff).await?;
    let limit = query.limit.unwrap_or(LIST_PAGE_MAX).clamp(1, LIST_PAGE_MAX);
    let page = ticket.check_in_list(event_id, query.after, limit, context).await?;
    let view = CheckInListView {
        event_id,
        allows_reentry: page.allows_reentry,
        tickets: page
            .tickets
            .iter()
            .map(|ticket| ListedTicketView::new(ticket, &page, &inventory))
            .collect(),
        next: page.next,
    };
    let body = serde_json::to_vec(&view).expect("a view is JSON");
    let etag = ETag::of_bytes(&body);
    if etag.matches(&headers) {
        return Ok(etag.not_modified());
    }
    let json = HeaderValue::from_static("application/json");
    Ok(([(CONTENT_TYPE, json), (ETAG, etag.header())], body).into_response())
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScanReportBody {
    event_id: Uuid,
    /// The time on the phone now. The clock of a phone may be wrong: a scan happened as long ago as
    /// `scannedAt` is before this, at most a day.
    sent_at: Timestamp,
    #[schema(min_items = 1, max_items = 500)]
    scans: Vec<ReportedScanBody>,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReportedScanBody {
    /// The phone's name for the scan; a repetition changes nothing.
    scan_id: Uuid,
    /// The text of the QR code, or the number of the ticket.
    #[schema(max_length = 500)]
    payload: String,
    #[serde(default)]
    direction: DirectionBody,
    #[serde(default)]
    #[schema(max_length = 40)]
    door: String,
    /// The time on the phone when it saw the ticket.
    scanned_at: Timestamp,
}

impl ScanReportBody {
    fn parse(self, staff_id: Uuid) -> Result<ScanReport, ApiError> {
        let ids: BTreeSet<Uuid> = self.scans.iter().map(|scan| scan.scan_id).collect();
        if ids.len() != self.scans.len() || !(1..=SCANS_PER_REPORT_MAX).contains(&ids.len()) {
            let sentence = "A report has 1 to 500 scans with different ids.";
            return Err(ApiError::bad_request("INVALID_SCANS", sentence));
        }
        let parse = |scan: ReportedScanBody| -> Result<ReportedScan, ApiError> {
            Ok(ReportedScan {
                scan_id: scan.scan_id,
                code: parse_code(&scan.payload)?,
                direction: scan.direction.into(),
                door: parse_door(&scan.door)?,
                scanned_at: scan.scanned_at,
            })
        };
        let scans = self.scans.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(ScanReport { event_id: self.event_id, staff_id, sent_at: self.sent_at, scans })
    }
}

#[derive(Serialize, ToSchema)]
struct ScanReportView {
    /// In the order of the scans.
    results: Vec<ScanResultView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScanResultView {
    scan_id: Uuid,
    /// `accepted`, `duplicate`, `not_inside`, `reentry_not_allowed`, `cancelled`, `reissued`,
    /// `unknown`, `wrong_event`, `forged` or `scan_id_reused`.
    #[schema(example = "accepted")]
    outcome: &'static str,
    ticket: Option<ScannedTicketView>,
    /// For a duplicate: the entry that counts. For an accepted entry: a later one of the same
    /// ticket at another door, which is a duplicate now.
    other_entry: Option<EntryView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EntryView {
    door: String,
    at: Timestamp,
    by: Uuid,
}

impl From<EntryNote> for EntryView {
    fn from(entry: EntryNote) -> EntryView {
        EntryView { door: entry.door.as_str().to_owned(), at: entry.at, by: entry.by }
    }
}

impl ScanResultView {
    fn new(result: ScanResult, inventory: &Inventory) -> ScanResultView {
        ScanResultView {
            scan_id: result.scan_id,
            outcome: result.verdict.as_str(),
            ticket: result.ticket.map(|ticket| ScannedTicketView::new(ticket, inventory)),
            other_entry: result.other_entry.map(EntryView::from),
        }
    }
}

/// Records scans that a phone made without a network.
///
/// For door staff of the event, its organiser and administrators. The visitors are in already, so
/// each scan is recorded with what it turned out to be. If two phones let the same ticket in, the
/// earlier scan counts and the other is a `duplicate`; the organiser finds it among the conflicts.
/// Repeating a report changes nothing. Errors: 400 `INVALID_SCANS`, `INVALID_TICKET`, `INVALID_DOOR`;
/// 403 `NOT_YOUR_EVENT`; 404 `EVENT_NOT_FOUND`.
#[utoipa::path(
    post, path = "/api/admin/check-ins/batch", tag = "tickets", request_body = ScanReportBody,
    responses((status = 200, body = ScanReportView), Errors<401, 403, 404>),
)]
async fn report_scans(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Json(body): Json<ScanReportBody>,
) -> Result<Json<ScanReportView>, ApiError> {
    let report = body.parse(staff.user_id)?;
    let inventory = ticket.check_door(report.event_id, &staff).await?;
    let results = ticket.report_scans(report).await?;
    let results = results.into_iter().map(|result| ScanResultView::new(result, &inventory));
    Ok(Json(ScanReportView { results: results.collect() }))
}

#[derive(Serialize, ToSchema)]
struct CheckInConflictsView {
    conflicts: Vec<CheckInConflictView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CheckInConflictView {
    scan_id: Uuid,
    /// As in the answer to a report.
    #[schema(example = "duplicate")]
    outcome: &'static str,
    ticket: ScannedTicketView,
    /// `entry` or `exit`.
    direction: &'static str,
    door: String,
    at: Timestamp,
    by: Uuid,
    /// The entry that counts, if there is one before it.
    entry: Option<EntryView>,
}

impl CheckInConflictView {
    fn new(conflict: CheckInConflict, inventory: &Inventory) -> CheckInConflictView {
        let CheckInConflict { scan, ticket, entry } = conflict;
        CheckInConflictView {
            scan_id: scan.id,
            outcome: scan.outcome.as_str(),
            ticket: ScannedTicketView::new(ticket, inventory),
            direction: scan.direction.as_str(),
            door: scan.door.as_str().to_owned(),
            at: scan.scanned_at,
            by: scan.staff_id,
            entry: entry.map(EntryView::from),
        }
    }
}

/// Lists the scans by which somebody was let in who should not have been.
///
/// For door staff of the event, its organiser and administrators: the newest hundred, for example of
/// a ticket that two phones without a network both let in. Errors: 403 `NOT_YOUR_EVENT`; 404
/// `EVENT_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/admin/events/{eventId}/check-in-conflicts", tag = "tickets",
    params(("eventId" = Uuid, Path)),
    responses((status = 200, body = CheckInConflictsView), Errors<401, 403, 404>),
)]
async fn list_check_in_conflicts(
    State(ticket): State<TicketService>,
    DoorStaff(staff): DoorStaff,
    Path(event_id): Path<Uuid>,
) -> Result<Json<CheckInConflictsView>, ApiError> {
    let inventory = ticket.check_door(event_id, &staff).await?;
    let conflicts = ticket.list_conflicts(event_id).await?.into_iter();
    let conflicts = conflicts.map(|conflict| CheckInConflictView::new(conflict, &inventory));
    Ok(Json(CheckInConflictsView { conflicts: conflicts.collect() }))
}
