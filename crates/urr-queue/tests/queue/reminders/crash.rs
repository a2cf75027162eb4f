//! A process that is killed while it tells people.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use urr_kernel::IdSource;

use super::*;

/// Lets work go on until it has waited so often. True: it was done before.
async fn go_on(mut work: Pin<&mut impl Future<Output = ()>>, waits: usize) -> bool {
    let mut waited = 0;
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if waited == waits => Poll::Ready(false),
        Poll::Pending => {
            waited += 1;
            Poll::Pending
        }
    })
    .await
}

/// How many are to be told and how many were, at one moment.
async fn balance(world: &World) -> (i64, i64) {
    let sql = "select (select count(*) from reminders) as kept, \
               (select count(*) from outbox) as told";
    let rows = world.rows(sql, |row| Ok((row.get("kept")?, row.get("told")?))).await;
    rows[0]
}

contract! {
    /// Wherever it happens, nobody is forgotten and nobody told twice.
    async fn who_is_killed_at_any_moment_has_told_and_ended_all_of_a_batch_or_nothing(
        world: World
    ) {
        let (event, fans) = world.paused_line(5).await;
        world.set_room(event, "is_paused = false").await;
        let mut broken_off = 0;
        for waits in 0.. {
            world.clock.advance(SECOND);
            let is_done = go_on(pin!(world.queue.remind(event)), waits).await;
            if is_done {
                break;
            }
            broken_off += 1;
            let (kept, told) = balance(&world).await;
            assert_eq!(kept + told, 5, "after {waits} waits");
            assert!(kept == 0 || told == 0, "after {waits} waits: {kept} kept, {told} told");
        }
        assert!(broken_off >= 2, "it waits for its tables, and for the commit: {broken_off}");
        world.remind(event).await;
        let told: Vec<Uuid> = world.told().await.into_iter().map(|(user_id, _)| user_id).collect();
        assert_eq!(told, sorted(&fans));
        assert_eq!(world.kept().await, []);
    }

    /// The commit fails after the reminders were deleted in it.
    async fn if_nothing_can_be_announced_nothing_is_ended(world: World) {
        let (first, _) = world.paused_line(3).await;
        let (second, fans) = world.paused_line(3).await;
        for (event, has_clash) in [(first, false), (second, true)] {
            world.set_room(event, "is_paused = false").await;
            // The second one makes the same ids, which the outbox has already.
            let ids = IdSource::seeded(world.clock.clone(), 77);
            let queue = world.another_with_ids(&ids);
            queue.load().await.unwrap();
            queue.remind(event).await;
            assert_eq!(world.announced().await.len(), 3, "{has_clash}");
        }
        assert_eq!(world.kept_users().await, sorted(&fans));
        world.remind(second).await;
        assert_eq!(world.told().await.len(), 6);
        assert_eq!(world.kept().await, []);
    }

    /// They had gone when it was looked, and have come and asked anew before that was written down.
    async fn what_was_asked_for_anew_is_not_ended_by_an_old_look(world: World) {
        let (event, fans) = world.slow_line(NEAR + 30).await;
        let other = world.another(QueueSettings::default());
        other.load().await.unwrap();
        for (turn, fan) in fans[..NEAR].iter().enumerate() {
            // How often it waits before it looks is not always the same: each is tried four times.
            let waits = turn / 4;
            world.clock.advance(SECOND);
            Fan::is_noted(&fan.ask_reminder(event).await);
            fan.leave(event).await.ok();
            let mut work = pin!(other.remind(event));
            let is_done = go_on(work.as_mut(), waits).await;
            let number = fan.check(event).await.ok()["number"].as_i64().unwrap();
            Fan::is_noted(&fan.ask_reminder(event).await);
            if !is_done {
                work.await;
            }
            assert_eq!(world.kept().await, [(fan.id, number)], "after {waits} waits");
            Fan::is_noted(&fan.withdraw_reminder(event).await);
            if is_done {
                assert!(waits >= 2, "it waits for its tables, and for the commit");
                return;
            }
        }
        panic!("it is done at last");
    }
}
