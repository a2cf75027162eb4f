//! First come, first served: a hundred thousand people from 64 tasks, and how it is measured.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_room::{AdmissionState, LinePosition};

use crate::fixture::{self, Form, SECOND, World, waiting};

const TASKS: usize = 64;

/// Someone who came. What began after another has ended, came later.
struct Arrival {
    user_id: Uuid,
    place: LinePosition,
    began: u64,
    ended: u64,
}

/// How many pairs are in the wrong order. Zero is a Kendall tau of one.
fn count_inversions(numbers: &[i64]) -> u64 {
    fn sort(numbers: &mut [i64]) -> u64 {
        if numbers.len() < 2 {
            return 0;
        }
        let (left, right) = numbers.split_at_mut(numbers.len() / 2);
        let mut count = sort(left) + sort(right);
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut at_left, mut at_right) = (0, 0);
        while at_left < left.len() && at_right < right.len() {
            if left[at_left] <= right[at_right] {
                merged.push(left[at_left]);
                at_left += 1;
            } else {
                count += u64::try_from(left.len() - at_left).unwrap();
                merged.push(right[at_right]);
                at_right += 1;
            }
        }
        merged.extend(&left[at_left..]);
        merged.extend(&right[at_right..]);
        numbers.copy_from_slice(&merged);
        count
    }
    sort(&mut numbers.to_vec())
}

/// How many were overtaken by someone who began to come only after they had been answered.
fn count_overtaken(arrivals: &[Arrival]) -> usize {
    let mut by_number: Vec<&Arrival> = arrivals.iter().collect();
    by_number.sort_unstable_by_key(|arrival| arrival.place.number);
    let mut newest_begin = 0;
    let mut overtaken = 0;
    for arrival in by_number {
        overtaken += usize::from(newest_begin > arrival.ended);
        newest_begin = newest_begin.max(arrival.began);
    }
    overtaken
}

#[test]
fn inversions_are_counted() {
    assert_eq!(count_inversions(&[]), 0);
    assert_eq!(count_inversions(&[1, 2, 3, 4, 5]), 0);
    assert_eq!(count_inversions(&[1, 2, 4, 3, 5]), 1);
    assert_eq!(count_inversions(&[5, 4, 3, 2, 1]), 10);
    let mut numbers: Vec<i64> = (1..=100_000).collect();
    numbers.swap(70_000, 70_001);
    assert_eq!(count_inversions(&numbers), 1, "one pair among five billion");
    numbers.swap(0, 99_999);
    assert_eq!(count_inversions(&numbers), 2 * 99_998 + 2, "and the outermost");
}

#[test]
fn who_was_overtaken_is_noticed() {
    let arrival = |number, began, ended| {
        let place = LinePosition { number, position: 1 };
        Arrival { user_id: Uuid::nil(), place, began, ended }
    };
    let at_once = [arrival(1, 1, 4), arrival(2, 0, 3), arrival(3, 2, 9), arrival(4, 5, 8)];
    assert_eq!(count_overtaken(&at_once), 0, "who comes at the same time may come in any order");
    let unfair = [arrival(1, 1, 4), arrival(2, 6, 9), arrival(3, 0, 5)];
    assert_eq!(count_overtaken(&unfair), 1);
}

/// This many people join, from 64 tasks at once.
async fn gather(world: &World, count: usize) -> Vec<Arrival> {
    let users = Arc::new(world.users(count));
    let (next, moment) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(1)));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (world, users) = (world.clone(), Arc::clone(&users));
        let (next, moment) = (Arc::clone(&next), Arc::clone(&moment));
        tasks.spawn(async move {
            let mut arrivals = Vec::new();
            loop {
                let Some(user_id) = users.get(next.fetch_add(1, Ordering::SeqCst)).copied() else {
                    return arrivals;
                };
                let began = moment.fetch_add(1, Ordering::SeqCst);
                let place = waiting(world.check(user_id).await);
                let ended = moment.fetch_add(1, Ordering::SeqCst);
                arrivals.push(Arrival { user_id, place, began, ended });
            }
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

/// Everybody who waits, in the order in which they are let in.
async fn admit_everybody(world: &World) -> Vec<Uuid> {
    let world = world.with(|rules| rules.admitted_per_second_max = 4_096);
    let mut order = Vec::new();
    loop {
        let turn = world.admit().await;
        if turn.is_empty() {
            return order;
        }
        assert!(turn.len() <= 4_096);
        order.extend(turn);
        world.pass(SECOND);
    }
}

async fn check_fairness(world: World, count: usize) {
    let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
    let arrivals = gather(&shut, count).await;
    let mut numbers: Vec<i64> = arrivals.iter().map(|arrival| arrival.place.number).collect();
    numbers.sort_unstable();
    let expected: Vec<i64> = (1..).take(count).collect();
    assert_eq!(numbers, expected, "everybody has a number, and nobody another's");
    for arrival in &arrivals {
        assert_eq!(i64::from(arrival.place.position), arrival.place.number, "nobody has left");
    }
    assert_eq!(count_overtaken(&arrivals), 0);
    for arrival in arrivals.iter().step_by(count / 2_000) {
        assert_eq!(waiting(shut.poll(arrival.user_id).await), arrival.place);
    }
    let order = admit_everybody(&world).await;
    assert_eq!(order.len(), count);
    let number_of: HashMap<Uuid, i64> =
        arrivals.iter().map(|arrival| (arrival.user_id, arrival.place.number)).collect();
    let admitted: Vec<i64> = order.iter().map(|user| number_of[user]).collect();
    assert_eq!(count_inversions(&admitted), 0, "they come in as they came");
    let mut distinct = admitted;
    distinct.sort_unstable();
    assert_eq!(distinct, expected, "everybody once");
}

#[test]
fn a_hundred_thousand_keep_their_order_in_memory() {
    fixture::run(Form::Memory, |world| check_fairness(world, 100_000));
}

/// Redis takes the most of this time, so fewer people will do.
#[test]
fn thirty_thousand_keep_their_order_in_redis() {
    fixture::run(Form::Redis, |world| check_fairness(world, 30_000));
}

#[test]
fn ten_thousand_keep_their_order_in_a_cluster() {
    fixture::run(Form::Cluster, |world| check_fairness(world, 10_000));
}
