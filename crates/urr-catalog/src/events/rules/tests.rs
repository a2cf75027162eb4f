//! The rules of events over one event in November.

use std::time::Duration;

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-{text}Z").parse().unwrap()
}

fn schedule() -> Schedule {
    Schedule::parse(at("12-20T10:00:00"), at("11-20T11:00:00"), at("12-10T00:00:00")).unwrap()
}

fn event() -> EventRecord {
    EventRecord {
        id: EventId(Uuid::from_u128(1)),
        revision: 7,
        title: "한강의 밤".to_owned(),
        description: String::new(),
        kind: EventKind::Seated,
        announced_status: EventStatus::Upcoming,
        artist: Some(ArtistRef {
            id: ArtistId(Uuid::from_u128(2)), name: "한강 밴드".to_owned()
        }),
        venue: VenueRef {
            id: VenueId(Uuid::from_u128(3)),
            name: "강변 극장".to_owned(),
            address: String::new(),
        },
        hall: Some(HallRef { id: HallId(Uuid::from_u128(4)), name: "대극장".to_owned() }),
        schedule: schedule(),
        has_presale: true,
        seats_per_user_max: 4,
        requires_identity: false,
        allows_reentry: false,
        organiser_id: Uuid::nil(),
        poster_image_url: String::new(),
        terms: EventTerms::default(),
        prices: BTreeMap::from([("VIP".to_owned(), Won::new(100_000))]),
        price_min: Won::new(100_000),
        price_max: Won::new(100_000),
        ordered: OrderedInventory { seats: 10, ticket_types: 0, places: 10 },
        capacity: 10,
        inventory_ready: true,
        inventory_problem: String::new(),
        cancel_reason: String::new(),
        created_by: Uuid::nil(),
        created_at: at("11-01T00:00:00"),
        updated_at: at("11-01T00:00:00"),
        deleted_at: None,
    }
}

#[test]
fn an_event_is_not_moved_into_the_past_and_what_has_begun_is_not_moved() {
    let now = at("12-15T00:00:00");
    let moved = |to: &str, now: Timestamp| {
        let (starts_at, sale_ends_at) = (Some(at(to)), Some(at("12-01T00:00:00")));
        let change = EventChange { revision: 7, starts_at, sale_ends_at, ..EventChange::default() };
        decide_edit(&event(), &change, now).map(|event| event.schedule.starts_at())
    };
    assert_eq!(moved("12-15T00:00:00", now), Err(StartsInPast.into()));
    assert_eq!(moved("12-14T00:00:00", now), Err(StartsInPast.into()));
    assert_eq!(moved("12-15T00:00:01", now), Ok(at("12-15T00:00:01")));
    let begun = at("12-20T10:00:00");
    assert_eq!(moved("12-24T10:00:00", begun), Err(EditRejection::HasBegun));
    // What does not change is no move.
    assert_eq!(moved("12-20T10:00:00", begun), Ok(begun));
}

#[test]
fn the_status_follows_the_window_to_the_microsecond() {
    let step = Duration::from_micros(1);
    let (opens, ends) = (at("11-20T11:00:00"), at("12-10T00:00:00"));
    assert_eq!(schedule().status_at(opens - step), EventStatus::Upcoming);
    assert_eq!(schedule().status_at(opens), EventStatus::OnSale);
    assert_eq!(schedule().status_at(ends - step), EventStatus::OnSale);
    assert_eq!(schedule().status_at(ends), EventStatus::Ended);
    assert_eq!(schedule().next_change_after(opens - step), Some(opens));
    assert_eq!(schedule().next_change_after(opens), Some(ends));
    assert_eq!(schedule().next_change_after(ends), None);
    let cancelled = EventRecord { announced_status: EventStatus::Cancelled, ..event() };
    assert_eq!(cancelled.status_at(opens), EventStatus::Cancelled);
    assert_eq!(event().status_at(opens), EventStatus::OnSale, "whatever was announced");
}

#[test]
fn a_sale_ends_after_it_starts_and_before_the_event() {
    let parse = |starts, sale_starts, sale_ends| {
        Schedule::parse(at(starts), at(sale_starts), at(sale_ends)).err()
    };
    let (a, b, c) = ("01-01T00:00:00", "02-01T00:00:00", "03-01T00:00:00");
    assert_eq!(parse(c, a, b), None);
    assert_eq!(parse(b, a, b), None, "sold until the doors open");
    assert_eq!(parse(c, a, a), Some(InvalidSchedule::EndsBeforeStart));
    assert_eq!(parse(c, b, a), Some(InvalidSchedule::EndsBeforeStart));
    assert_eq!(parse(b, a, c), Some(InvalidSchedule::EndsAfterEvent));
    for text in ["2019-12-31T23:59:59Z", "2101-01-01T00:00:00Z", "-009999-01-03T00:00:00Z"] {
        let far: Timestamp = text.parse().unwrap();
        assert_eq!(Schedule::parse(far, far, far), Err(InvalidSchedule::Year), "{text}");
    }
}

#[test]
fn a_presale_opens_by_tier() {
    let presale = event().presale_schedule().unwrap();
    assert_eq!(presale.diamond, at("11-20T11:00:00"));
    assert_eq!(presale.gold, at("11-20T12:00:00"));
    assert_eq!(presale.silver, at("11-21T11:00:00"));
    assert_eq!(presale.general, at("11-22T11:00:00"));
    assert_eq!(EventRecord { has_presale: false, ..event() }.presale_schedule(), None);
    assert_eq!(check_presale(true, false, &schedule()), Err(InvalidPresale::NoArtist));
    let short =
        Schedule::parse(at("12-20T10:00:00"), at("11-20T11:00:00"), at("11-22T11:00:00")).unwrap();
    assert_eq!(check_presale(true, true, &short), Err(InvalidPresale::TooShort));
    assert_eq!(check_presale(false, false, &short), Ok(()));
}

#[test]
fn an_edit_keeps_what_tickets_were_made_of() {
    let now = at("11-15T00:00:00");
    let change = EventChange { revision: 7, ..EventChange::default() };
    let title = Some("다른 제목".to_owned());
    let edited = decide_edit(&event(), &EventChange { title, ..change.clone() }, now).unwrap();
    assert_eq!((edited.title.as_str(), edited.revision), ("다른 제목", 8));

    let stale = EventChange { revision: 6, ..change.clone() };
    assert_eq!(decide_edit(&event(), &stale, now), Err(EditRejection::Stale { revision: 7 }));
    let hall = EventChange { hall_id: Some(HallId(Uuid::from_u128(9))), ..change.clone() };
    assert_eq!(decide_edit(&event(), &hall, now), Err(EditRejection::InventoryFixed("The hall")));
    let prices = BTreeMap::from([("VIP".to_owned(), Won::new(1))]);
    let prices = EventChange { prices: Some(prices), ..change.clone() };
    let fixed = EditRejection::InventoryFixed("The prices");
    assert_eq!(decide_edit(&event(), &prices, now), Err(fixed));
    let same = EventChange { prices: Some(event().prices), ..change.clone() };
    assert!(decide_edit(&event(), &same, now).is_ok(), "a form sends everything back");
    let cancelled = EventRecord { announced_status: EventStatus::Cancelled, ..event() };
    assert_eq!(decide_edit(&cancelled, &change, now), Err(EditRejection::Cancelled));
}

#[test]
fn an_edit_keeps_what_buyers_relied_on_once_the_sale_has_started() {
    let (before, after) = (at("11-20T10:59:00"), at("11-20T11:00:00"));
    let change = EventChange { revision: 7, ..EventChange::default() };
    let later = EventChange { sale_starts_at: Some(at("11-25T00:00:00")), ..change.clone() };
    assert_eq!(
        decide_edit(&event(), &later, before).unwrap().announced_status,
        EventStatus::Upcoming
    );
    let started = |what| Err(EditRejection::SaleStarted(what));
    assert_eq!(decide_edit(&event(), &later, after), started("The beginning of the sale"));
    let about_to = at("11-20T10:59:00.000001");
    assert_eq!(decide_edit(&event(), &later, about_to), started("The beginning of the sale"));
    let open = EventChange { has_presale: Some(false), ..change.clone() };
    assert_eq!(decide_edit(&event(), &open, after), started("The pre-sale"));
    assert_eq!(decide_edit(&event(), &open, about_to), started("The pre-sale"));
    assert!(!decide_edit(&event(), &open, before).unwrap().has_presale);
    let nobody = EventChange { artist: Some(None), ..change.clone() };
    assert_eq!(decide_edit(&event(), &nobody, after), started("The artist"));
    let longer = EventChange { sale_ends_at: Some(at("12-15T00:00:00")), ..change };
    let longer = decide_edit(&event(), &longer, at("12-11T00:00:00")).unwrap();
    assert_eq!(longer.announced_status, EventStatus::OnSale, "computed again");
}

#[test]
fn only_what_nobody_paid_for_or_waits_for_may_vanish() {
    assert!(may_delete(&event(), at("11-20T10:58:00")));
    assert!(!may_delete(&event(), at("11-20T10:59:30")), "about to open");
    assert!(!may_delete(&event(), at("12-01T00:00:00")));
    assert!(!may_delete(&event(), at("12-15T00:00:00")), "sold, and yet to happen");
    assert!(may_delete(&event(), at("12-20T10:00:00")));
    let cancelled = EventRecord { announced_status: EventStatus::Cancelled, ..event() };
    assert!(may_delete(&cancelled, at("12-01T00:00:00")));
    assert!(event().has_taken_place(at("12-20T10:00:00")));
    assert!(!event().has_taken_place(at("12-20T09:59:59")));
    assert!(!cancelled.has_taken_place(at("12-20T10:00:00")), "nobody came for it");
}

#[test]
fn every_grade_has_a_price_and_nothing_else() {
    let layout: Layout = serde_json::from_value(serde_json::json!({"sections": [
        {"name": "A", "grade": "VIP", "rows": [{"label": "1", "seats": 2}]},
        {"name": "B", "grade": "R", "rows": [{"label": "1", "seats": 2}]},
    ]}))
    .unwrap();
    let prices = |pairs: &[(&str, i64)]| -> BTreeMap<String, Won> {
        pairs.iter().map(|(grade, won)| ((*grade).to_owned(), Won::new(*won))).collect()
    };
    let check = |pairs: &[(&str, i64)]| check_prices(&layout, &prices(pairs));
    assert_eq!(check(&[("VIP", 0), ("R", 10_000_000)]), Ok(()));
    assert_eq!(check(&[("VIP", 1)]), Err(InvalidPrices::Missing("R".to_owned())));
    let extra = Err(InvalidPrices::NoSuchGrade("S".to_owned()));
    assert_eq!(check(&[("VIP", 1), ("R", 1), ("S", 1)]), extra);
    assert_eq!(check(&[("VIP", -1), ("R", 1)]), Err(InvalidPrices::OutOfRange));
    assert_eq!(check(&[("VIP", 10_000_001), ("R", 1)]), Err(InvalidPrices::OutOfRange));
}

#[test]
fn ticket_types_are_few_and_named_apart() {
    let kind = |name: &str, price, total| TicketType {
        id: Uuid::nil(),
        name: name.to_owned(),
        description: String::new(),
        price: Won::new(price),
        total,
    };
    assert_eq!(check_ticket_types(&[kind("A", 0, 1)]), Ok(()));
    assert_eq!(check_ticket_types(&[]), Err(InvalidTicketTypes::Number));
    let many: Vec<_> = (0..21).map(|i| kind(&i.to_string(), 1, 1)).collect();
    assert_eq!(check_ticket_types(&many), Err(InvalidTicketTypes::Number));
    let twins = [kind("A", 1, 1), kind("A", 2, 1)];
    assert_eq!(check_ticket_types(&twins), Err(InvalidTicketTypes::SameName));
    let wrong = |invalid| Err(InvalidTicketTypes::Type(invalid));
    let (price, total) = (wrong(InvalidTicketType::Price), wrong(InvalidTicketType::Total));
    assert_eq!(check_ticket_types(&[kind("A", -1, 1)]), price);
    assert_eq!(check_ticket_types(&[kind("A", 1, 0)]), total);
    assert_eq!(check_ticket_types(&[kind("A", 1, 100_001)]), total);
}
