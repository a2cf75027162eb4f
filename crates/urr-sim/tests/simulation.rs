//! Short searches for every test run, and the proof that the oracle notices.

use urr_sim::run::{RunOptions, prepare, run};
use urr_sim::sabotage::Sabotage;
use urr_sim::search::{SearchOptions, replay_command, search};

/// Guards that are off must be noticed within so many seeds.
const SEEDS_TO_NOTICE: u64 = 1_000;

fn seeds(seeds: u64, sabotage: Option<Sabotage>) -> SearchOptions {
    SearchOptions { first_seed: 1, seeds, threads: 1, sabotage, is_shrunk: true }
}

fn options(seed: u64) -> RunOptions {
    RunOptions { seed, ..RunOptions::default() }
}

#[test]
fn no_seed_breaks_a_rule_and_all_of_a_sale_happens() {
    let report = search(&SearchOptions { threads: 2, ..seeds(300, None) });
    if let Some(failure) = &report.failure {
        let again = replay_command(failure, None);
        let violation = failure.violation.as_ref().expect("a failure breaks a rule");
        panic!("{}\nseed {}: {violation}\n{again}", failure.lines.join("\n"), failure.seed);
    }
    let all = report.figures;
    assert_eq!(report.seeds, 300);
    let reached = [all.confirmed, all.cancelled, all.expired, all.charges, all.refunds];
    assert!(reached.iter().all(|count| *count > 100), "{all:?}");
    assert!(all.transfers > 5 && all.memberships > 50 && all.waited > 100, "{all:?}");
    assert!(all.crashes > 300 && all.faults > 1_000, "{all:?}");
}

/// A copy of a pin came after the unpin (464, 1798), a slot had ended by a clock that was ahead (636),
/// a process did not record its charge because another one had taken the payment over (1447), and
/// whoever had sold a ticket on reserved once more with the same key (3728).
#[test]
fn seeds_that_broke_a_rule_break_none_any_more() {
    let databases = prepare(None);
    for seed in [464, 636, 1_447, 1_798, 3_728] {
        let violation = run(&databases, &options(seed)).violation;
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
    }
    // The control: without the guard a copy pins for ever, for one seed or another.
    let sabotage = Some(Sabotage::EndedAttempts);
    let databases = prepare(sabotage);
    let is_broken = |seed| {
        let broken = run(&databases, &RunOptions { sabotage, ..options(seed) }).violation;
        broken.is_some_and(|it| it.invariant.starts_with("5:"))
    };
    assert!((1..=1_000).any(is_broken));
}

#[test]
fn a_seed_repeats_its_trace_and_another_seed_has_another() {
    let (one, other) = (prepare(None), prepare(None));
    let hashes: Vec<_> = (1..=12).map(|seed| run(&one, &options(seed)).hash).collect();
    // In another order, and after other runs.
    for seed in (1..=12).rev() {
        let hash = run(&other, &options(seed)).hash;
        assert_eq!(hash, hashes[usize::try_from(seed).unwrap() - 1], "seed {seed}");
    }
    let mut distinct: Vec<String> = hashes.iter().map(ToString::to_string).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn a_failure_is_made_short_and_can_be_repeated() {
    let sabotage = Some(Sabotage::SlotInJournal);
    let failure = search(&seeds(SEEDS_TO_NOTICE, sabotage)).failure.expect("it is noticed");
    assert!(failure.happened.actions.len() <= 3, "{:?}", failure.happened);
    assert!(failure.happened.faults.is_empty(), "{:?}", failure.happened);
    let kept = Some(failure.happened.clone());
    let again = RunOptions { seed: failure.seed, sabotage, kept, has_lines: true };
    let repeated = run(&prepare(sabotage), &again);
    assert_eq!((repeated.hash, repeated.violation), (failure.hash, failure.violation));
    assert_eq!(repeated.lines, failure.lines);
}

/// Switches off a guard. The rule that is broken is named, so that none is found by accident.
fn is_noticed(sabotage: Sabotage, rule: &str) {
    let options = seeds(SEEDS_TO_NOTICE, Some(sabotage));
    let report = search(&SearchOptions { is_shrunk: false, ..options });
    let failure = report.failure.unwrap_or_else(|| panic!("{sabotage:?} was not noticed"));
    let violation = failure.violation.expect("a failure breaks a rule");
    let is_expected = rule.split(" or ").any(|rule| violation.invariant.starts_with(rule));
    assert!(is_expected, "{sabotage:?} breaks {violation}");
}

macro_rules! guards {
    ($($name:ident: $sabotage:ident breaks $rule:literal;)*) => {
        $(#[test]
        fn $name() {
            is_noticed(Sabotage::$sabotage, $rule);
        })*

        #[test]
        fn every_guard_has_its_test() {
            let tested = [$(Sabotage::$sabotage),*];
            assert!(Sabotage::ALL.iter().all(|guard| tested.contains(guard)));
        }
    };
}

guards! {
    without_the_seat_guard_a_seat_is_held_twice: SeatGuard breaks "1: or 3:";
    without_the_slot_check_a_foreign_slot_is_good: SlotCheck breaks "11: or 13:";
    without_an_inbox_an_event_counts_twice: Inbox breaks "10:";
    without_its_event_a_cancellation_refunds_nothing: OutboxRow breaks "8: or 10:";
    what_is_marked_too_early_is_not_published: OutboxMark breaks "9:";
    what_is_acknowledged_without_effect_is_lost: ConsumerEffect breaks "8:";
    without_a_pin_a_hold_expires_while_it_is_paid: Pin breaks "8:";
    a_pin_that_comes_after_its_unpin_is_noticed: EndedAttempts breaks "5:";
    a_hold_that_ends_early_is_noticed: HoldEnd breaks "5:";
    without_the_expiry_job_holds_remain: ExpiryJob breaks "5:";
    without_recovery_payments_stay_half_way: SagaRecovery breaks "8:";
    what_is_answered_before_the_commit_is_lost: CommitBeforeAnswer breaks "14: or 8: or 10: or 9:";
    a_place_that_is_not_in_the_journal_is_noticed: PlaceInJournal breaks "14:";
    a_slot_that_is_not_in_the_journal_is_noticed: SlotInJournal breaks "14:";
    a_changed_hold_that_keeps_its_token_is_noticed: FencingToken breaks "2:";
    a_release_with_an_old_token_is_noticed: ReleaseToken breaks "2:";
    a_release_of_a_foreign_hold_is_noticed: HoldOwner breaks "2:";
    an_unpin_by_a_foreign_payment_is_noticed: PinOwner breaks "2:";
    slots_that_do_not_end_are_noticed: SlotEnd breaks "13: or 12:";
    an_old_answer_about_a_slot_is_noticed: SlotAnswer breaks "13:";
    one_too_many_in_the_room_is_noticed: Threshold breaks "13:";
    another_order_after_a_restart_is_noticed: LineOrder breaks "12: or 14: or nothing panics";
    without_keys_a_repeated_request_reserves_again: IdempotencyKey breaks "5:";
    a_missing_line_of_the_ledger_is_noticed: LedgerLine breaks "8:";
    lost_points_are_noticed: Points breaks "10:";
    stock_that_grows_is_noticed: Stock breaks "3:";
    a_lost_fact_of_the_statistics_is_noticed: StatsFact breaks "10:";
}
