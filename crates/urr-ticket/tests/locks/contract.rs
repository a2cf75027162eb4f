//! What every form of the locks does.

/// Runs each case in memory, on one Redis and on a Cluster (F-5). Where those cannot be started that
/// is skipped, with a line that says so; with `CI=true` it is a failure.
macro_rules! on_all_forms {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::cases::$case(crate::world::World::memory()).await;
            })*
        }

        mod redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(world) = crate::world::World::single().await {
                    super::cases::$case(world).await;
                }
            })*
        }

        mod cluster {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                if let Some(world) = crate::world::World::cluster().await {
                    super::cases::$case(world).await;
                }
            })*
        }
    };
}

on_all_forms!(
    f_5_every_script_takes_the_seats_of_a_whole_reservation_at_once,
    several_seats_are_taken_all_or_none,
    of_a_hundred_who_want_a_seat_at_once_one_gets_it,
    of_many_who_want_overlapping_seats_none_keeps_a_part,
    events_do_not_share_locks,
    taking_again_changes_nothing,
    m_14_a_double_click_never_weakens_the_hold,
    m_14_a_double_click_before_the_commit_leaves_the_first_lock,
    r_5_a_crash_before_the_commit_frees_the_seat_after_the_deciding_time,
    a_kept_seat_is_free_after_its_time,
    a_higher_token_wins_and_a_lower_one_does_nothing,
    a_commit_wins_over_another_who_is_being_decided,
    only_its_own_token_releases_a_hold,
    giving_up_undoes_what_this_attempt_took_and_nothing_else,
    changing_seats_keeps_what_stays_and_frees_what_goes,
    no_seats_are_everybodys,
);

mod cases {
    use urr_ticket::LockResult;

    use crate::world::{DECIDING_TTL, HOLD_TTL, SECOND, SLACK, World, deciding, kept};

    /// The seats of a reservation are as many keys of one script: on a Cluster they must be in one
    /// slot, or every reservation would be refused.
    pub async fn f_5_every_script_takes_the_seats_of_a_whole_reservation_at_once(world: World) {
        let seat_ids: Vec<u32> = (0..10).map(|number| number * 4_999).collect();
        // Of many events, so that they are on several servers.
        for _ in 0..20 {
            let (world, ann) = (world.another_event(), world.fan());
            let (taken, attempt) = world.take(ann, &seat_ids).await;
            assert_eq!(
                taken,
                LockResult::Acquired,
                "not even `Unknown`: that is what a refusal becomes"
            );
            let look = async |expected: fn(u32) -> LockResult| {
                for &seat_id in &seat_ids {
                    assert_eq!(world.look(seat_id).await, expected(seat_id));
                }
            };
            look(deciding).await;
            world.give_up(&seat_ids, attempt).await;
            look(|_| LockResult::Acquired).await;
            world.keep(ann, &seat_ids, 7).await;
            look(|seat_id| kept(seat_id, 7)).await;
            world.release(&seat_ids, 7).await;
            look(|_| LockResult::Acquired).await;
        }
    }

    pub async fn several_seats_are_taken_all_or_none(world: World) {
        let (ann, ben) = (world.fan(), world.fan());
        assert_eq!(world.take(ann, &[3]).await.0, LockResult::Acquired);
        assert_eq!(world.take(ben, &[1, 2, 3, 4]).await.0, deciding(3));
        for free in [1, 2, 4] {
            assert_eq!(world.look(free).await, LockResult::Acquired, "{free}");
        }
        assert_eq!(world.take(ben, &[1, 2, 4]).await.0, LockResult::Acquired);
        for (seat_id, owner) in [(1, ben), (2, ben), (3, ann), (4, ben)] {
            assert_eq!(world.look(seat_id).await, deciding(seat_id));
            assert_eq!(world.take(owner, &[seat_id]).await.0, LockResult::Acquired, "it is his");
        }
    }

    pub async fn of_a_hundred_who_want_a_seat_at_once_one_gets_it(world: World) {
        let takers = (0..100).map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.take(world.fan(), &[5, 6]).await.0 })
        });
        let mut outcomes = Vec::new();
        for taker in takers.collect::<Vec<_>>() {
            outcomes.push(taker.await.unwrap());
        }
        let won = outcomes.iter().filter(|taken| **taken == LockResult::Acquired).count();
        let lost = outcomes.iter().filter(|taken| **taken == deciding(5)).count();
        assert_eq!((won, lost), (1, 99));
    }

    /// Pairs of neighbours around a table: whoever wins has both, and each seat one owner.
    pub async fn of_many_who_want_overlapping_seats_none_keeps_a_part(world: World) {
        let takers = (0..100_u32).map(|number| {
            let world = world.clone();
            tokio::spawn(async move {
                let fan = world.fan();
                let mut seat_ids = [number % 8, (number + 1) % 8];
                seat_ids.sort_unstable();
                (fan, seat_ids, world.take(fan, &seat_ids).await.0)
            })
        });
        let mut owner = [None; 8];
        for taker in takers.collect::<Vec<_>>() {
            let (fan, seat_ids, taken) = taker.await.unwrap();
            if taken != LockResult::Acquired {
                continue;
            }
            for seat_id in seat_ids {
                let before = owner[usize::try_from(seat_id).unwrap()].replace(fan);
                assert_eq!(before, None, "seat {seat_id} was given twice");
            }
        }
        for (seat_id, owner) in (0_u32..).zip(owner) {
            let expected = if owner.is_some() { deciding(seat_id) } else { LockResult::Acquired };
            assert_eq!(world.look(seat_id).await, expected, "seat {seat_id}");
        }
        assert!(owner.iter().flatten().count() >= 4, "{owner:?}: someone always goes on");
    }

    pub async fn events_do_not_share_locks(world: World) {
        let other = world.another_event();
        let fan = world.fan();
        assert_eq!(world.take(fan, &[1]).await.0, LockResult::Acquired);
        assert_eq!(other.look(1).await, LockResult::Acquired);
        other.keep(fan, &[1], 4).await;
        assert_eq!(world.look(1).await, deciding(1));
        assert_eq!(other.look(1).await, kept(1, 4));
    }

    pub async fn taking_again_changes_nothing(world: World) {
        let fan = world.fan();
        assert_eq!(world.take(fan, &[1]).await.0, LockResult::Acquired);
        world.pass(DECIDING_TTL - SLACK).await;
        assert_eq!(world.take(fan, &[1]).await.0, LockResult::Acquired);
        assert_eq!(world.look(1).await, deciding(1));
        world.pass(SLACK).await;
        assert_eq!(
            world.look(1).await,
            LockResult::Acquired,
            "who repeats does not block a seat for ever"
        );

        world.keep(fan, &[1], 7).await;
        assert_eq!(world.take(fan, &[1]).await.0, LockResult::Acquired);
        assert_eq!(world.look(1).await, kept(1, 7), "it did not become undecided");
        world.pass(HOLD_TTL - SLACK).await;
        assert_eq!(world.look(1).await, kept(1, 7), "its life did not become shorter");
    }

    pub async fn m_14_a_double_click_never_weakens_the_hold(world: World) {
        let fan = world.fan();
        let (first, _) = world.take(fan, &[1, 2]).await;
        assert_eq!(first, LockResult::Acquired);
        world.keep(fan, &[1, 2], 11).await;

        // The second click has another key. The lock lets him through and the database refuses.
        let (second, attempt) = world.take(fan, &[1, 2]).await;
        assert_eq!(second, LockResult::Acquired);
        world.give_up(&[1, 2], attempt).await;

        for seat_id in [1, 2] {
            assert_eq!(world.look(seat_id).await, kept(seat_id, 11));
        }
        world.pass(DECIDING_TTL + SLACK).await;
        assert_eq!(world.look(1).await, kept(1, 11));
    }

    pub async fn m_14_a_double_click_before_the_commit_leaves_the_first_lock(world: World) {
        let fan = world.fan();
        let (_, first) = world.take(fan, &[1]).await;
        let (_, second) = world.take(fan, &[1, 2]).await;
        world.give_up(&[1, 2], second).await;
        assert_eq!(world.look(1).await, deciding(1), "the first attempt's");
        assert_eq!(world.look(2).await, LockResult::Acquired, "the second attempt's");

        // The other way round: the second is decided first, and wins.
        let (_, second) = world.take(fan, &[1]).await;
        world.keep(fan, &[1], 3).await;
        world.give_up(&[1], first).await;
        world.give_up(&[1], second).await;
        assert_eq!(world.look(1).await, kept(1, 3));
    }

    pub async fn r_5_a_crash_before_the_commit_frees_the_seat_after_the_deciding_time(
        world: World,
    ) {
        let (crashed, next) = (world.fan(), world.fan());
        assert_eq!(world.take(crashed, &[1, 2]).await.0, LockResult::Acquired);
        if let Some(life) = world.life(1).await {
            assert!(life <= DECIDING_TTL && life > DECIDING_TTL - SLACK, "{life:?}");
        }
        world.pass(DECIDING_TTL - SLACK).await;
        assert_eq!(world.take(next, &[1]).await.0, deciding(1));
        world.pass(SLACK).await;
        assert_eq!(world.take(next, &[1]).await.0, LockResult::Acquired);
    }

    pub async fn a_kept_seat_is_free_after_its_time(world: World) {
        let fan = world.fan();
        world.take(fan, &[1]).await;
        world.keep(fan, &[1], 1).await;
        if let Some(life) = world.life(1).await {
            assert!(life <= HOLD_TTL && life > HOLD_TTL - SLACK, "{life:?}");
        }
        world.pass(HOLD_TTL - SLACK).await;
        assert_eq!(world.look(1).await, kept(1, 1));
        world.pass(SLACK).await;
        assert_eq!(world.look(1).await, LockResult::Acquired);
    }

    pub async fn a_higher_token_wins_and_a_lower_one_does_nothing(world: World) {
        let (old, new) = (world.fan(), world.fan());
        world.keep(new, &[1], 1_000).await;
        world.keep(old, &[1], 999).await;
        assert_eq!(world.look(1).await, kept(1, 1_000), "numbers, not texts, are compared");
        assert_eq!(world.take(new, &[1]).await.0, LockResult::Acquired);
        assert_eq!(world.take(old, &[1]).await.0, kept(1, 1_000), "the owner stayed, too");

        // What arrives twice does no harm.
        world.keep(new, &[1], 1_000).await;
        world.keep(old, &[1], 1_001).await;
        world.keep(old, &[1], 1_001).await;
        assert_eq!(world.look(1).await, kept(1, 1_001));
        assert_eq!(world.take(old, &[1]).await.0, LockResult::Acquired);
        assert_eq!(world.take(new, &[1]).await.0, kept(1, 1_001));
    }

    /// The first was slow: his deciding time was over, and another came in between.
    pub async fn a_commit_wins_over_another_who_is_being_decided(world: World) {
        let (slow, other) = (world.fan(), world.fan());
        world.take(slow, &[1]).await;
        world.pass(DECIDING_TTL + SECOND).await;
        let (taken, attempt) = world.take(other, &[1]).await;
        assert_eq!(taken, LockResult::Acquired);
        world.keep(slow, &[1], 6).await;
        assert_eq!(world.look(1).await, kept(1, 6));
        world.give_up(&[1], attempt).await;
        assert_eq!(world.look(1).await, kept(1, 6));
        assert_eq!(world.take(slow, &[1]).await.0, LockResult::Acquired);
    }

    pub async fn only_its_own_token_releases_a_hold(world: World) {
        let fan = world.fan();
        world.keep(fan, &[1], 20).await;
        for other in [2, 19, 21, 200] {
            world.release(&[1], other).await;
            assert_eq!(world.look(1).await, kept(1, 20), "{other}");
        }
        world.release(&[1], 20).await;
        assert_eq!(world.look(1).await, LockResult::Acquired);

        let (_, attempt) = world.take(fan, &[1]).await;
        world.release(&[1], 20).await;
        assert_eq!(world.look(1).await, deciding(1), "the next one is being decided");
        world.give_up(&[1], attempt).await;
        assert_eq!(world.look(1).await, LockResult::Acquired);
    }

    pub async fn giving_up_undoes_what_this_attempt_took_and_nothing_else(world: World) {
        let (ann, ben) = (world.fan(), world.fan());
        let (_, of_ann) = world.take(ann, &[1]).await;
        let (refused, of_ben) = world.take(ben, &[1, 2]).await;
        assert_eq!(refused, deciding(1));
        world.give_up(&[1, 2], of_ben).await;
        assert_eq!(world.look(1).await, deciding(1));
        world.give_up(&[1], of_ann).await;
        assert_eq!(world.look(1).await, LockResult::Acquired);
        world.give_up(&[1], of_ann).await;
    }

    pub async fn changing_seats_keeps_what_stays_and_frees_what_goes(world: World) {
        let fan = world.fan();
        world.take(fan, &[1, 2]).await;
        world.keep(fan, &[1, 2], 30).await;
        assert_eq!(world.take(fan, &[2, 3]).await.0, LockResult::Acquired);
        world.keep(fan, &[2, 3], 31).await;
        world.release(&[1, 2], 30).await;
        assert_eq!(world.look(1).await, LockResult::Acquired);
        assert_eq!(world.look(2).await, kept(2, 31));
        assert_eq!(world.look(3).await, kept(3, 31));
    }

    pub async fn no_seats_are_everybodys(world: World) {
        let (taken, attempt) = world.take(world.fan(), &[]).await;
        assert_eq!(taken, LockResult::Acquired);
        world.keep(world.fan(), &[], 1).await;
        world.release(&[], 1).await;
        world.give_up(&[], attempt).await;
    }
}

#[tokio::test]
async fn without_locks_everyone_asks_the_database() {
    let locks = urr_ticket::SeatLocks::off();
    let id = urr_kernel::Uuid::from_u128;
    for fan in [1, 2] {
        assert_eq!(
            locks.acquire(id(1), &[1], id(fan), id(fan)).await,
            urr_ticket::LockResult::Unknown
        );
        locks.confirm(id(1), &[1], id(fan), 1, crate::world::HOLD_TTL).await;
    }
}
