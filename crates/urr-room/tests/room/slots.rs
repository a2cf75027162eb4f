//! Slots: they slide while their owner is seen, end for good at last, and die at once when they are
//! given up, used or taken away.

use urr_room::{AdmissionState, LinePosition, Slot, UserStatus};

use crate::fixture::{MILLISECOND, MINUTE, NOBODY, SECOND, SLOT_MAX, SLOT_TTL, slot};

on_all_forms! {
    async fn a_slot_slides_whenever_its_owner_is_seen(world: World) {
        let ann = world.user();
        let first = world.enter(ann).await;
        let begin = world.now();
        let expected = Slot {
            id: first.id,
            admitted_at: begin,
            ends_at: begin + SLOT_TTL,
            last_end: begin + SLOT_MAX,
        };
        assert_eq!(first, expected);
        world.pass(3 * MINUTE);
        assert_eq!(slot(world.check(ann).await), Slot { ends_at: begin + 13 * MINUTE, ..first });
        world.pass(3 * MINUTE);
        assert_eq!(slot(world.poll(ann).await), Slot { ends_at: begin + 16 * MINUTE, ..first });
        world.pass(3 * MINUTE);
        assert!(world.holds(ann, first.id).await);
        world.pass(SLOT_TTL - MILLISECOND);
        assert!(world.holds(ann, first.id).await, "asking for the slot was being seen");
        assert_eq!(slot(world.poll(ann).await).ends_at, begin + 29 * MINUTE - MILLISECOND);
    }

    async fn a_slot_ends_when_its_owner_was_not_seen_for_its_time(world: World) {
        let (ann, ben) = (world.user(), world.user());
        let (ann_slot, ben_slot) = (world.enter(ann).await, world.enter(ben).await);
        world.pass(SLOT_TTL - MILLISECOND);
        assert!(world.holds(ann, ann_slot.id).await);
        world.pass(MILLISECOND);
        assert!(!world.holds(ben, ben_slot.id).await, "it ends at its end, not after it");
        assert_eq!(world.status(ben).await, UserStatus::Absent);
        assert_eq!(world.counts().await, (0, 1));
        assert!(world.holds(ann, ann_slot.id).await);
    }

    async fn who_is_not_asked_for_is_not_counted_after_their_end(world: World) {
        world.enter(world.user()).await;
        assert_eq!(world.counts().await, (0, 1));
        world.pass(SLOT_TTL - MILLISECOND);
        assert_eq!(world.counts().await, (0, 1));
        world.pass(MILLISECOND);
        assert_eq!(world.counts().await, (0, 0));
        assert_eq!(world.poll(world.user()).await.active, 0);
    }

    async fn r_2_polling_for_ever_does_not_keep_a_slot_for_ever(world: World) {
        let ann = world.user();
        let first = world.enter(ann).await;
        for minutes in (5..30).step_by(5) {
            world.pass(5 * MINUTE);
            let slot = slot(world.poll(ann).await);
            let ends_at = (world.now() + SLOT_TTL).min(first.last_end);
            assert_eq!(slot, Slot { ends_at, ..first }, "after {minutes} minutes");
        }
        world.pass(5 * MINUTE - MILLISECOND);
        assert_eq!(slot(world.check(ann).await), Slot { ends_at: first.last_end, ..first });
        assert!(world.holds(ann, first.id).await);
        world.pass(MILLISECOND);
        assert!(!world.holds(ann, first.id).await);
        assert_eq!(world.status(ann).await, UserStatus::Absent);
        assert_eq!(world.counts().await, (0, 0));
    }

    async fn the_last_end_is_the_end_however_long_one_may_be_unseen(world: World) {
        let world = world.with(|rules| rules.slot_max = rules.slot_ttl / 2);
        let ann = world.user();
        let slot = world.enter(ann).await;
        assert_eq!((slot.ends_at, slot.last_end), (world.now() + SLOT_TTL / 2, slot.ends_at));
        world.with(|rules| rules.admission = AdmissionState::Closed).line_up(world.user()).await;
        assert_eq!(world.admit().await.len(), 1);
        assert_eq!(world.counts().await, (0, 2));
        world.pass(SLOT_TTL / 2);
        assert_eq!(world.counts().await, (0, 0));
        assert!(!world.holds(ann, slot.id).await);
    }

    async fn whose_slot_has_ended_lines_up_again_behind_the_others(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben) = (world.user(), world.user());
        let old = world.enter(ann).await;
        world.line_up(ben).await;
        world.pass(SLOT_MAX);
        assert_eq!(world.line_up(ann).await, LinePosition { number: 2, position: 2 });
        assert!(!world.holds(ann, old.id).await);
        assert_eq!(world.admit().await, [ben]);
    }

    async fn r_2_leaving_ends_the_slot_at_once(world: World) {
        let ann = world.user();
        let slot = world.enter(ann).await;
        assert!(world.leave(ann).await);
        assert!(!world.holds(ann, slot.id).await);
        assert_eq!(world.status(ann).await, UserStatus::Absent);
        assert_eq!(world.counts().await, (0, 0));
    }

    async fn r_2_buying_ends_the_slot_at_once(world: World) {
        let ann = world.user();
        let slot = world.enter(ann).await;
        world.pass(MINUTE);
        assert!(world.finish(ann, world.now()).await);
        assert!(!world.holds(ann, slot.id).await);
        assert_eq!(world.status(ann).await, UserStatus::Absent);
        assert_eq!(world.counts().await, (0, 0));
        assert!(!world.finish(ann, world.now()).await, "there is nothing left to end");
    }

    async fn r_2_clearing_ends_the_slot_at_once(world: World) {
        let ann = world.user();
        let slot = world.enter(ann).await;
        assert_eq!(world.clear().await, (0, 1));
        assert!(!world.holds(ann, slot.id).await);
        assert_eq!(world.status(ann).await, UserStatus::Absent);
    }

    async fn r_2_a_new_slot_has_a_new_id_and_the_old_one_stays_dead(world: World) {
        let ann = world.user();
        let mut ids = vec![world.enter(ann).await.id];
        world.leave(ann).await;
        ids.push(world.enter(ann).await.id);
        world.finish(ann, world.now()).await;
        ids.push(world.enter(ann).await.id);
        world.clear().await;
        ids.push(world.enter(ann).await.id);
        world.pass(SLOT_TTL);
        ids.push(world.enter(ann).await.id);
        world.leave(ann).await;
        world.with(|rules| rules.admission = AdmissionState::Closed).line_up(ann).await;
        assert_eq!(world.admit().await, [ann]);
        ids.push(slot(world.poll(ann).await).id);
        let newest = ids.pop().unwrap();
        for old in &ids {
            assert!(!world.holds(ann, *old).await);
        }
        assert!(world.holds(ann, newest).await);
        ids.push(newest);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 6, "each was another one");
    }

    async fn the_news_of_an_older_purchase_does_not_end_a_newer_slot(world: World) {
        let ann = world.user();
        world.enter(ann).await;
        world.pass(MINUTE);
        let bought_at = world.now();
        assert!(world.finish(ann, bought_at).await);
        world.pass(SECOND);
        let again = world.enter(ann).await;
        assert!(!world.finish(ann, bought_at).await, "the same news, a second time");
        assert!(!world.finish(ann, again.admitted_at - MILLISECOND).await);
        assert!(world.holds(ann, again.id).await);
        assert!(world.finish(ann, again.admitted_at).await, "bought in the moment of coming in");
        assert!(!world.holds(ann, again.id).await);
    }

    async fn the_news_of_a_purchase_ends_no_place_in_the_line(world: World) {
        let ann = world.user();
        assert!(!world.finish(ann, world.now()).await, "they are not here at all");
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let place = shut.line_up(ann).await;
        assert!(!shut.finish(ann, shut.now()).await);
        assert_eq!(shut.status(ann).await, UserStatus::Waiting(place));
        assert_eq!(shut.crowd().await.left_total, 0);
    }

    async fn a_purchase_makes_room_for_the_next_one(world: World) {
        let world = world.with(|rules| rules.threshold = 1);
        let (ann, ben) = (world.user(), world.user());
        world.enter(ann).await;
        world.line_up(ben).await;
        assert_eq!(world.admit().await, NOBODY);
        world.finish(ann, world.now()).await;
        assert_eq!(world.admit().await, [ben]);
    }

    async fn r_2_asking_for_a_dead_slot_is_not_being_seen(world: World) {
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let (ann, ben) = (world.user(), world.user());
        let old = world.enter(ann).await;
        world.leave(ann).await;
        let slot = world.enter(ann).await;
        shut.line_up(ben).await;
        let begin = world.now();
        world.pass_swept(SLOT_TTL / 2).await;
        assert!(!world.holds(ann, old.id).await);
        assert!(!world.holds(ben, old.id).await);
        assert_eq!(world.sweep(begin, 100).await, 1, "the one who waits was not seen");
        world.pass(SLOT_TTL / 2 - MILLISECOND);
        assert_eq!(world.counts().await, (0, 1));
        world.pass(MILLISECOND);
        assert!(!world.holds(ann, slot.id).await, "nor was the owner of another slot");
    }

    async fn a_slot_is_nobody_elses(world: World) {
        let (ann, ben) = (world.user(), world.user());
        let (ann_slot, ben_slot) = (world.enter(ann).await, world.enter(ben).await);
        assert!(!world.holds(ben, ann_slot.id).await);
        assert!(!world.holds(ann, ben_slot.id).await);
        assert!(!world.holds(world.user(), ann_slot.id).await);
        assert!(!world.holds(ann, world.ids.next_id()).await);
        let shut = world.with(|rules| rules.admission = AdmissionState::Closed);
        let cho = world.user();
        shut.line_up(cho).await;
        assert!(!shut.holds(cho, ann_slot.id).await, "who waits holds none");
        assert!(world.holds(ann, ann_slot.id).await);
    }
}
