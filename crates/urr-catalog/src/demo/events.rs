//! Demo events of every status, with times relative to now.

use std::collections::BTreeMap;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won};

use super::halls::{ARENA, CLUB, OPERA, STADIUM, THEATRE};
use super::{SeedError, poster};
use crate::{
    ArtistChoice, CatalogService, EventId, EventLocation, EventRecord, HallId, NewEvent, Schedule,
    TicketType, VenueId,
};

/// Ids that no [`urr_kernel::IdSource`] makes: they are of a time long ago.
const EVENT_ID_FIRST: u128 = 0x0190_0000_0000_7000_8000_0000_0000_0000;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

pub struct DemoEvent {
    /// Makes the fixed id, so that a repetition does not create the event again.
    number: u128,
    title: &'static str,
    description: &'static str,
    artist: Option<&'static str>,
    venue: &'static str,
    /// Seconds from now: the sale's start and end, and the event itself.
    opens: i64,
    closes: i64,
    starts: i64,
    has_presale: bool,
    seats_per_user_max: u32,
    is_cancelled: bool,
}

const PLAN: DemoEvent = DemoEvent {
    number: 0,
    title: "",
    description: "",
    artist: None,
    venue: THEATRE,
    opens: 0,
    closes: 20 * DAY,
    starts: 21 * DAY,
    has_presale: false,
    seats_per_user_max: 4,
    is_cancelled: false,
};

pub const PLANS: &[DemoEvent] = &[
    DemoEvent {
        number: 1,
        title: "가을 오페라의 밤 Autumn Opera Night",
        description: "서울 시티 앙상블과 함께하는 갈라 콘서트.\nA gala with the ensemble.",
        artist: Some("서울 시티 앙상블"),
        venue: OPERA,
        opens: -DAY,
        ..PLAN
    },
    DemoEvent {
        number: 2,
        title: "달무리 소극장 라이브 Moonlit Live",
        description: "세 분 뒤에 예매가 열립니다.\nThe sale opens three minutes after the start.",
        artist: Some("달무리"),
        venue: THEATRE,
        opens: 3 * MINUTE,
        seats_per_user_max: 2,
        ..PLAN
    },
    DemoEvent {
        number: 3,
        title: "별빛소년단 월드 투어 서울 World Tour Seoul",
        description: "5만 석 스타디움 공연.\nA stadium of more than 50,000 seats.",
        artist: Some("별빛소년단"),
        venue: STADIUM,
        opens: -HOUR,
        ..PLAN
    },
    DemoEvent {
        number: 4,
        title: "한강 밴드 아레나 콘서트 Riverside in the Arena",
        description: "멤버십 회원 선예매 진행 중.\nMembers buy first.",
        artist: Some("한강 밴드"),
        venue: ARENA,
        opens: -30 * MINUTE,
        has_presale: true,
        ..PLAN
    },
    DemoEvent {
        number: 5,
        title: "정가온: 소리의 바다 Sea of Sound",
        description: "다음 주에 예매가 시작됩니다.\nThe sale starts next week.",
        artist: Some("정가온"),
        venue: OPERA,
        opens: 7 * DAY,
        closes: 30 * DAY,
        starts: 31 * DAY,
        ..PLAN
    },
    DemoEvent {
        number: 6,
        title: "NEON SPARROW: Afterglow",
        description: "멤버십 선예매 예정.\nA pre-sale for members comes first.",
        artist: Some("NEON SPARROW"),
        venue: ARENA,
        opens: 2 * DAY,
        closes: 25 * DAY,
        starts: 40 * DAY,
        has_presale: true,
        ..PLAN
    },
    DemoEvent {
        number: 7,
        title: "NEON SPARROW 클럽 나이트 Club Night",
        description: "스탠딩 공연.\nEverybody stands.",
        artist: Some("NEON SPARROW"),
        venue: CLUB,
        opens: -2 * HOUR,
        ..PLAN
    },
    DemoEvent {
        number: 8,
        title: "Paper Lanterns 겨울 노래 Winter Songs",
        description: "내일 예매가 열립니다.\nThe sale opens tomorrow.",
        artist: Some("Paper Lanterns"),
        venue: CLUB,
        opens: DAY,
        ..PLAN
    },
    DemoEvent {
        number: 9,
        title: "극단 여름비: 장마 The Long Rain",
        description: "예매가 끝난 공연.\nThe sale is over.",
        artist: Some("극단 여름비"),
        venue: THEATRE,
        opens: -30 * DAY,
        closes: -2 * DAY,
        starts: -DAY,
        ..PLAN
    },
    DemoEvent {
        number: 10,
        title: "한여름 밤의 낭독 Midsummer Reading",
        description: "출연자 사정으로 취소된 공연.\nThis one was cancelled.",
        artist: None,
        venue: THEATRE,
        opens: -3 * DAY,
        is_cancelled: true,
        ..PLAN
    },
];

fn price(grade: &str) -> Won {
    Won::new(match grade {
        "VIP" => 165_000,
        "R" => 132_000,
        "S" => 99_000,
        _ => 66_000,
    })
}

fn ticket_types() -> Vec<TicketType> {
    let ticket_type = |name: &str, description: &str, price, total| TicketType {
        id: Uuid::nil(),
        name: name.to_owned(),
        description: description.to_owned(),
        price: Won::new(price),
        total,
    };
    vec![
        ticket_type("스탠딩 A", "무대 앞 구역. In front of the stage.", 99_000, 200),
        ticket_type("스탠딩 B", "뒤쪽 구역. Behind it.", 77_000, 400),
        ticket_type("얼리버드 Early bird", "수량 한정. Few of them.", 55_000, 50),
    ]
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { now - distance } else { now + distance }
}

impl CatalogService {
    pub(super) async fn seed_event(&self, plan: &DemoEvent) -> Result<(), SeedError> {
        let id = EventId(Uuid::from_u128(EVENT_ID_FIRST + plan.number));
        let event = match self.get_event(id).await? {
            Some(existing) => existing.event,
            None => self.create_demo_event(id, plan).await?,
        };
        if plan.is_cancelled && event.deleted_at.is_none() && !event.has_begun(self.clock.now()) {
            let reason = "출연자 사정. The performers fell ill.".to_owned();
            self.cancel_event(event.id, reason, self.demo_actor()).await?;
        }
        Ok(())
    }

    async fn create_demo_event(
        &self,
        id: EventId,
        plan: &DemoEvent,
    ) -> Result<EventRecord, SeedError> {
        let (venue, hall) = self.demo_venue(plan.venue).await?;
        let now = self.clock.now();
        let schedule = Schedule::parse(
            after(now, plan.starts),
            after(now, plan.opens),
            after(now, plan.closes),
        );
        let artist = plan.artist.unwrap_or_default();
        let drawing = poster::draw(plan.title, artist, plan.venue);
        let image = self.store_drawing(drawing, poster::SIZE, self.demo_actor()).await?;
        let (location, prices) = match &hall {
            Some(hall) => {
                let grades = hall.grades.iter();
                let prices = grades.map(|grade| (grade.to_owned(), price(grade))).collect();
                (seated(hall.id, venue.id), prices)
            }
            None => (EventLocation::Venue(venue.id), BTreeMap::new()),
        };
        let new = NewEvent {
            id: Some(id),
            title: plan.title.to_owned(),
            description: plan.description.to_owned(),
            location,
            artist: plan.artist.map(|name| ArtistChoice::Name(name.to_owned())),
            schedule: schedule.expect("the demo times are in order"),
            has_presale: plan.has_presale,
            seats_per_user_max: plan.seats_per_user_max,
            poster_image_url: image.id.url(),
            prices,
            ticket_types: if hall.is_some() { Vec::new() } else { ticket_types() },
            request: None,
        };
        Ok(self.create_event(new, self.demo_actor()).await?)
    }
}

fn seated(hall_id: HallId, venue_id: VenueId) -> EventLocation {
    EventLocation::Hall { hall_id, venue_id: Some(venue_id) }
}
