//! Tests of the rules of check-in.

use super::*;

const START: Timestamp = Timestamp::constant(1_796_122_800, 0);

/// `in@3` is an entry after three seconds; its id is its place in the text, from 1.
fn scans(text: &str) -> Vec<Scan> {
    let scan = |(place, word): (usize, &str)| {
        let (direction, second) = word.split_once('@').expect("a direction and a second");
        let (direction, is_undone) = match direction {
            "in" => (ScanDirection::Entry, false),
            "out" => (ScanDirection::Exit, false),
            "undone" => (ScanDirection::Entry, true),
            other => panic!("{other}"),
        };
        let scanned_at = START + Duration::from_secs(second.parse().expect("a number"));
        Scan {
            id: Uuid::from_u128(u128::try_from(place).expect("few") + 1),
            ticket_id: Uuid::nil(),
            direction,
            door: DoorName::parse("A").expect("a name"),
            staff_id: Uuid::nil(),
            scanned_at,
            recorded_at: scanned_at,
            outcome: ScanOutcome::Accepted,
            undone_at: is_undone.then_some(scanned_at),
        }
    };
    text.split_whitespace().enumerate().map(scan).collect()
}

#[track_caller]
fn check(text: &str, allows_reentry: bool, expected: &str) {
    let mut scans = scans(text);
    let presence = judge_scans(&mut scans, allows_reentry);
    scans.sort_by_key(|scan| scan.id);
    let outcomes: Vec<&str> = scans.iter().map(|scan| scan.outcome.as_str()).collect();
    let inside = if presence.is_inside { "inside" } else { "outside" };
    assert_eq!(format!("{} {inside}", outcomes.join(" ")), expected, "{text}");
}

#[test]
fn without_reentry_the_earliest_entry_counts_and_no_other() {
    check("in@1", false, "accepted inside");
    check("in@1 in@2", false, "accepted duplicate inside");
    check("in@2 in@1 in@3", false, "duplicate accepted duplicate inside");
    check("in@1 out@2 in@3", false, "accepted reentry_not_allowed duplicate inside");
}

#[test]
fn with_reentry_entries_and_exits_take_turns() {
    check("in@1 out@2 in@3", true, "accepted accepted accepted inside");
    check("in@1 out@2", true, "accepted accepted outside");
    check("out@1 in@2", true, "not_inside accepted inside");
    check("in@1 in@2 out@3", true, "accepted duplicate accepted outside");
}

#[test]
fn an_undone_scan_counts_for_nothing() {
    check("undone@1 in@2", false, "accepted accepted inside");
    check("undone@1", false, "accepted outside");
}

#[test]
fn the_order_of_arrival_changes_nothing() {
    let all = scans("in@1 in@2 out@3 in@5 out@4 in@6 undone@0");
    let mut expected = all.clone();
    let presence = judge_scans(&mut expected, true);
    let mut arrived = Vec::new();
    // Each arrival is judged with those before it, and the outcomes are kept in between.
    for rotation in 0..all.len() {
        arrived.clear();
        let mut last = Presence::default();
        for at in 0..all.len() {
            arrived.push(all[(at * 3 + rotation) % all.len()].clone());
            last = judge_scans(&mut arrived, true);
        }
        assert_eq!((&arrived, &last), (&expected, &presence), "{rotation}");
    }
}

#[test]
fn a_duplicate_names_the_entry_before_it_and_an_earlier_entry_the_one_it_displaced() {
    let mut all = scans("in@5 in@1");
    judge_scans(&mut all, false);
    let (first, second) = (&all[0], &all[1]);
    assert_eq!(other_entry(&all, second), Some(first));
    assert_eq!(other_entry(&all, first), Some(second));
    let mut alone = scans("in@5");
    judge_scans(&mut alone, false);
    assert_eq!(other_entry(&alone, &alone[0]), None);
}

#[test]
fn of_a_phones_clock_only_the_age_of_a_scan_is_believed() {
    let minutes = |minutes: u64| Duration::from_mins(minutes);
    let now = START;
    // A clock that is an hour ahead, or a year behind.
    let ahead = now + minutes(60);
    assert_eq!(scan_time(ahead - minutes(5), ahead, now), now - minutes(5));
    let behind = now - minutes(525_600);
    assert_eq!(scan_time(behind - minutes(5), behind, now), now - minutes(5));
    // A scan after its own report is not in the future, and an old one not older than a day.
    assert_eq!(scan_time(now + minutes(5), now, now), now);
    assert_eq!(scan_time(now - minutes(100_000), now, now), now - SCAN_AGE_MAX);
}

#[test]
fn a_scan_can_be_undone_for_a_minute() {
    let scan = &scans("in@0")[0];
    assert!(may_undo(scan, START + UNDO_WINDOW));
    assert!(!may_undo(scan, START + UNDO_WINDOW + Duration::from_millis(1)));
}

#[test]
fn initials_are_the_first_letter_of_each_word() {
    assert_eq!(initials("김민수"), "김");
    assert_eq!(initials(" Jane  Mary Ann Doe "), "J M A");
    assert_eq!(initials(""), "");
}

#[test]
fn a_door_has_a_short_name_or_none() {
    assert_eq!(DoorName::parse(" 1번 출입구 ").map(|door| door.0), Ok("1번 출입구".to_owned()));
    assert_eq!(DoorName::parse("  ").map(|door| door.0), Ok(String::new()));
    assert!(DoorName::parse(&"가".repeat(41)).is_err());
    assert!(DoorName::parse("a\nb").is_err());
}
