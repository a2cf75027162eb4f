//! The views of administrators and operators.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_room::ClearedCounts;
use urr_service::{Page, Paged, Pagination};
use utoipa::ToSchema;

use crate::admin::RoomReport;
use crate::status::EventContext;
use crate::{EventRoom, OpeningOrder, QueueSettings, RoomSettings};

#[derive(Serialize, ToSchema)]
pub struct SingleRoomView {
    room: RoomView,
}

impl SingleRoomView {
    pub fn new(report: &RoomReport, settings: &QueueSettings) -> SingleRoomView {
        SingleRoomView { room: RoomView::new(report, settings) }
    }
}

#[derive(Serialize, ToSchema)]
pub struct RoomListView {
    rooms: Vec<RoomView>,
    pagination: Pagination,
}

impl RoomListView {
    pub fn new(
        reports: &[RoomReport],
        settings: &QueueSettings,
        total: u64,
        page: Page,
    ) -> RoomListView {
        let rooms = reports.iter().map(|report| RoomView::new(report, settings)).collect();
        let Paged { items: rooms, pagination } = Paged::new(rooms, total, page);
        RoomListView { rooms, pagination }
    }
}

/// A room at a moment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RoomView {
    event_id: Uuid,
    title: String,
    artist_name: Option<String>,
    /// `closed`, `gathering`, `drawing`, `open`, `paused`, `over` or `cancelled`.
    #[schema(example = "open")]
    phase: &'static str,
    gathers_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    waiting: u32,
    active: u32,
    /// How many slots are free.
    available: u32,
    threshold: u32,
    /// In force, with the limit of the autopilot.
    admitted_per_second_max: u32,
    /// Admitted from the line within the last minute.
    rate_per_minute: u64,
    /// Left the line by themselves, or were dropped, within the last minute.
    left_per_minute: u64,
    admitted_total: u64,
    left_total: u64,
    /// The wait of the last user in the line; null if nobody waits.
    last_wait: Option<LastWaitView>,
    sold_out: bool,
    paused: bool,
    message: Option<String>,
    autopilot: AutopilotView,
    settings: RoomSettingsView,
    server_time: Timestamp,
}

/// In seconds, from when users are admitted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastWaitView {
    estimated_wait: u64,
    from: u64,
    to: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AutopilotView {
    enabled: bool,
    /// The present limit; null while it is off.
    rate_per_second: Option<u32>,
}

/// The settings in force and their sources: `event` or `default`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RoomSettingsView {
    threshold: RoomSettingView<u32>,
    admitted_per_second_max: RoomSettingView<u32>,
    gathering_seconds: RoomSettingView<u64>,
    /// `fifo` or `lottery`.
    opening: RoomSettingView<String>,
    autopilot: RoomSettingView<bool>,
}

#[derive(Serialize, ToSchema)]
struct RoomSettingView<T> {
    value: T,
    #[schema(example = "default")]
    source: &'static str,
}

impl RoomView {
    fn new(report: &RoomReport, settings: &QueueSettings) -> RoomView {
        let RoomReport { context, crowd, .. } = report;
        let EventContext { event, phase, rules, .. } = context;
        let EventRoom { room_settings, .. } = &**event;
        let sum = |counts: &[u32]| counts.iter().copied().map(u64::from).sum();
        let gathering = room_settings.gathering.unwrap_or(settings.gathering);
        RoomView {
            event_id: event.event_id,
            title: event.title.clone(),
            artist_name: event.artist_name.clone(),
            phase: phase.as_str(),
            gathers_at: event.sale_starts_at - gathering,
            sale_starts_at: event.sale_starts_at,
            sale_ends_at: event.sale_ends_at,
            waiting: crowd.waiting,
            active: crowd.active,
            available: rules.threshold.saturating_sub(crowd.active),
            threshold: rules.threshold,
            admitted_per_second_max: rules.admitted_per_second_max,
            rate_per_minute: sum(&crowd.pace.admitted),
            left_per_minute: sum(&crowd.pace.left),
            admitted_total: crowd.admitted_total,
            left_total: crowd.left_total,
            last_wait: report.wait_of_last.map(|wait| LastWaitView {
                estimated_wait: wait.seconds,
                from: wait.from,
                to: wait.to,
            }),
            sold_out: context.is_sold_out,
            paused: room_settings.is_paused,
            message: room_settings.message.clone(),
            autopilot: AutopilotView {
                enabled: room_settings.has_autopilot,
                rate_per_second: report.autopilot_rate,
            },
            settings: RoomSettingsView::new(room_settings, settings),
            server_time: context.now,
        }
    }
}

impl<T> RoomSettingView<T> {
    fn new(own: Option<T>, default: T) -> RoomSettingView<T> {
        let source = if own.is_some() { "event" } else { "default" };
        RoomSettingView { value: own.unwrap_or(default), source }
    }
}

impl RoomSettingsView {
    fn new(own: &RoomSettings, default: &QueueSettings) -> RoomSettingsView {
        let opening = own.opening.to_string();
        let has_own_order = own.opening != OpeningOrder::default();
        RoomSettingsView {
            threshold: RoomSettingView::new(own.threshold, default.threshold),
            admitted_per_second_max: RoomSettingView::new(
                own.admitted_per_second_max,
                default.admitted_per_second_max,
            ),
            gathering_seconds: RoomSettingView::new(
                own.gathering.map(|gathering| gathering.as_secs()),
                default.gathering.as_secs(),
            ),
            opening: RoomSettingView::new(has_own_order.then(|| opening.clone()), opening),
            autopilot: RoomSettingView::new(own.has_autopilot.then_some(true), false),
        }
    }
}

/// The positions and slots that were ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearedView {
    event_id: Uuid,
    /// How many users waited.
    waiting: u32,
    /// How many users had a slot.
    active: u32,
}

impl ClearedView {
    pub fn new(event_id: Uuid, cleared: ClearedCounts) -> ClearedView {
        let ClearedCounts { waiting, active } = cleared;
        ClearedView { event_id, waiting, active }
    }
}
