//! Points of memberships: for tickets, for what was written, and back.

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use urr_bus::HandlerOutcome;
use urr_kernel::Uuid;
use urr_service::Caller;
use urr_storage::{StorageError, params};
use urr_test::engines::writings;
use urr_ticket::{MembershipId, Sweeper, Tier};

use crate::contract;
use crate::fixture::{Form, World, hall, kind_name, new_sale, run};
use crate::memberships::{DAY, point_lines};
use crate::operations::CallerIdentity;
use crate::payables::confirmed;
use crate::projection::deliver;

const AWARD: &str = "/internal/ticket/memberships/award-points";
const RETURN: &str = "/internal/ticket/memberships/return-points";

impl World {
    /// An event of an artist, on sale for everybody.
    pub async fn open_sale_of(&self, artist_id: Uuid) -> Uuid {
        let mut sale = new_sale(self.ids.next_id(), hall(10, 10), &self.clock);
        sale.facts.artist_id = Some(artist_id);
        let event_id = sale.inventory.event_id;
        assert!(self.sale_insert(sale).await);
        event_id
    }

    /// All points, whether they count yet or not.
    pub async fn all_points(&self, id: MembershipId) -> i64 {
        let membership = self.membership(id).await;
        membership.points + membership.pending_points
    }

    async fn points(&self, user_id: Uuid, artist_id: Uuid) -> i64 {
        self.my_membership(user_id, artist_id).await["points"].as_i64().unwrap()
    }

    async fn my_membership(&self, user_id: Uuid, artist_id: Uuid) -> Value {
        let path = format!("/api/memberships/my/{artist_id}");
        let (_, mine) =
            self.call(CallerIdentity::User(user_id), Method::GET, &path, Value::Null).await;
        mine["membership"].clone()
    }

    async fn award(&self, action: &str, user_id: Uuid, artist_id: Option<Uuid>) -> (u16, Value) {
        self.award_for(action, user_id, artist_id, self.ids.next_id()).await
    }

    async fn award_for(
        &self,
        action: &str,
        user_id: Uuid,
        artist_id: Option<Uuid>,
        reference_id: Uuid,
    ) -> (u16, Value) {
        let body = json!({"userId": user_id, "actionType": action, "referenceId": reference_id,
            "artistId": artist_id});
        self.call(CallerIdentity::Service(Caller::Community), Method::POST, AWARD, body).await
    }
}

fn awarded(points: i64, memberships: u64) -> (u16, Value) {
    (200, json!({"points": points, "memberships": memberships}))
}

contract! {
    async fn m_18_a_ticket_of_the_artist_is_worth_a_hundred_points_once(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, _) = world.join(user_id, artist_id).await;
        let event_id = world.open_sale_of(artist_id).await;
        let held = world.hold(event_id, user_id, &[0, 1, 2]).await;
        let claim = world.pin(&held).await;
        for _ in 0..2 {
            world.confirm(held.reservation.id, claim).await.unwrap();
            let told = confirmed(&world, &held, claim);
            assert_eq!(deliver(&world, &told).await, Ok(HandlerOutcome::Done));
        }
        assert_eq!(world.all_points(membership.id).await, 300);
        let lines = point_lines(&world).await;
        assert_eq!(lines[1], ("TICKET_PURCHASE".to_owned(), 100), "{lines:?}");
        assert_eq!(lines.len(), 2);
        // The next one is another purchase.
        let held = world.hold(event_id, user_id, &[3]).await;
        world.pay(&held).await;
        assert_eq!(world.all_points(membership.id).await, 400);
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    async fn m_18_without_a_membership_that_counts_a_ticket_gives_no_points(world: World) {
        let (artist_id, other) = (world.artist().await, world.artist().await);
        let event_id = world.open_sale_of(artist_id).await;
        let plain = world.open_sale(hall(1, 5)).await;
        let (member, _) = world.join(world.ids.next_id(), artist_id).await;
        let (of_other, _) = world.join(world.ids.next_id(), other).await;
        let unpaid = world.subscribe(world.ids.next_id(), artist_id).await;
        for (event_id, user_id, seat_id) in [
            (event_id, of_other.user_id, 0),
            (event_id, unpaid.user_id, 2),
            (event_id, world.ids.next_id(), 4),
            (plain, member.user_id, 0),
        ] {
            let held = world.hold(event_id, user_id, &[seat_id]).await;
            world.pay(&held).await;
        }
        // What is over at the very moment of the purchase.
        let now = world.clock.now();
        let over = world.db.write(move |tx| {
            let sql = "update memberships set expires_at = $2 where id = $1";
            tx.execute(sql, params![member.id.0, now])
        });
        assert_eq!(over.await, Ok::<u64, StorageError>(1));
        let held = world.hold(event_id, member.user_id, &[6]).await;
        world.pay(&held).await;
        let given = "select count(*) as n from membership_points where action = 'TICKET_PURCHASE'";
        assert_eq!(world.number(given).await, 0);
        // The control: the same purchase of a member that counts.
        let (member, _) = world.join(world.ids.next_id(), artist_id).await;
        let held = world.hold(event_id, member.user_id, &[8]).await;
        world.pay(&held).await;
        assert_eq!(world.number(given).await, 1);
    }

    async fn m_18_what_is_cancelled_gives_its_points_back_once(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, _) = world.join(user_id, artist_id).await;
        let event_id = world.open_sale_of(artist_id).await;
        let held = world.hold(event_id, user_id, &[0]).await;
        let paid = world.pay(&held).await;
        let kept = world.hold(event_id, user_id, &[2]).await;
        world.pay(&kept).await;
        assert_eq!(world.all_points(membership.id).await, 400);
        for _ in 0..2 {
            world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
            assert_eq!(world.all_points(membership.id).await, 300);
        }
        world.refund(&paid, 100_000).await.unwrap();
        assert_eq!(world.all_points(membership.id).await, 300);
        let back = "select count(*) as n from membership_points \
                    where action = 'TICKET_PURCHASE_RETURNED' and points = -100";
        assert_eq!(world.number(back).await, 1);
        // A hold that is given back has none to return.
        let held = world.hold(event_id, user_id, &[4]).await;
        let id = held.reservation.id;
        world.ticket.cancel_reservation(id, user_id, world.context()).await.unwrap();
        assert_eq!(world.all_points(membership.id).await, 300);
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    /// Two events of one artist are cancelled at once: their fans are the same.
    async fn m_18_cancelled_events_take_the_points_of_all_their_fans_back(world: World) {
        let artist_id = world.artist().await;
        let events = [world.open_sale_of(artist_id).await, world.open_sale_of(artist_id).await];
        let mut fans = Vec::new();
        for seat_id in 0..10 {
            let (member, _) = world.join(world.ids.next_id(), artist_id).await;
            for event_id in events {
                let held = world.hold(event_id, member.user_id, &[4 * seat_id]).await;
                world.pay(&held).await;
            }
            fans.push(member);
        }
        world.execute("update sales set status = 'cancelled'").await;
        let mut sweepers = [Sweeper::new(world.ticket.clone()), Sweeper::new(world.ticket.clone())];
        let [one, other] = &mut sweepers;
        let (one, other) = tokio::join!(one.empty_closed_sales(), other.empty_closed_sales());
        assert_eq!(one.unwrap().ended + other.unwrap().ended, 20);
        for member in fans {
            assert_eq!(world.all_points(member.id).await, 200);
        }
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    async fn points_make_a_tier_and_a_tier_goes_with_them(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let event_id = world.open_sale_of(artist_id).await;
        world.execute("update sales set seats_per_user_max = 10").await;
        let mut paid = Vec::new();
        for seat_id in 0..9 {
            let held = world.hold(event_id, user_id, &[2 * seat_id]).await;
            paid.push(world.pay(&held).await);
        }
        let (silver, gold) = (Some(Tier::Silver), Some(Tier::Gold));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(silver));
        // From now on cancelling costs something.
        world.clock.advance(8 * DAY);
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(gold));
        // 1,100 by now.
        let more = async |count: usize| {
            for _ in 0..count {
                world.clock.advance(DAY);
                for _ in 0..3 {
                    world.award("COMMUNITY_POST", user_id, Some(artist_id)).await;
                }
            }
        };
        more(4).await;
        assert_eq!(world.points(user_id, artist_id).await, 1_460);
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(gold));
        more(1).await;
        assert_eq!(world.points(user_id, artist_id).await, 1_550);
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(Some(Tier::Diamond)));
        let id = paid[0].id();
        world.ticket.cancel_reservation(id, user_id, world.context()).await.unwrap();
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(gold));
        world.assert_balances().await;
    }

    async fn the_community_is_rewarded_by_our_table_and_each_thing_once(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let post = world.ids.next_id();
        for memberships in [1, 0] {
            let answer = world.award_for("COMMUNITY_POST", user_id, Some(artist_id), post).await;
            assert_eq!(answer, awarded(30, memberships));
        }
        // The same reference of another kind is another thing.
        let answer = world.award_for("COMMUNITY_COMMENT", user_id, Some(artist_id), post).await;
        assert_eq!(answer, awarded(10, 1));
        assert_eq!(world.points(user_id, artist_id).await, 240);
        // In all memberships that count.
        let other = world.artist().await;
        world.join(user_id, other).await;
        world.subscribe(user_id, world.artist().await).await;
        assert_eq!(world.award("NEWS_CREATION", user_id, None).await, awarded(30, 2));
        assert_eq!(world.points(user_id, other).await, 230);
        let stranger = world.ids.next_id();
        assert_eq!(world.award("COMMUNITY_POST", stranger, Some(artist_id)).await, awarded(30, 0));
        for action in ["MEMBERSHIP_JOIN", "TICKET_PURCHASE", "community_post", ""] {
            let (status, body) = world.award(action, user_id, Some(artist_id)).await;
            assert_eq!((status, &body["code"]), (400, &json!("INVALID_ACTION")), "{action}");
        }
        // No caller says how many points something is worth.
        let body = json!({"userId": user_id, "actionType": "COMMUNITY_POST", "points": 5_000,
            "referenceId": world.ids.next_id(), "artistId": artist_id});
        let community = CallerIdentity::Service(Caller::Community);
        let called = world.call(community, Method::POST, AWARD, body.clone()).await;
        assert_eq!((called.0, &called.1["points"]), (200, &json!(30)));
        for caller in Caller::ALL.into_iter().filter(|caller| *caller != Caller::Community) {
            let mut body = body.clone();
            body.as_object_mut().unwrap().remove("points");
            let called = world.call(CallerIdentity::Service(caller), Method::POST, AWARD, body).await;
            assert_eq!(called.0, 403, "{caller}");
            let body = json!({"actionType": "COMMUNITY_POST", "referenceId": post});
            let called = world.call(CallerIdentity::Service(caller), Method::POST, RETURN, body).await;
            assert_eq!(called.0, 403, "{caller}");
        }
        world.assert_balances().await;
    }

    async fn what_was_deleted_gives_its_points_back_once_and_stays_counted(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let post = world.ids.next_id();
        world.award_for("COMMUNITY_POST", user_id, Some(artist_id), post).await;
        let community = CallerIdentity::Service(Caller::Community);
        let back = async |action: &str, reference_id: Uuid| {
            let body = json!({"actionType": action, "referenceId": reference_id});
            world.call(community, Method::POST, RETURN, body).await
        };
        // Neither another kind nor what was never rewarded.
        assert_eq!(back("COMMUNITY_COMMENT", post).await.0, 200);
        assert_eq!(back("COMMUNITY_POST", world.ids.next_id()).await.0, 200);
        assert_eq!(world.points(user_id, artist_id).await, 230);
        for _ in 0..2 {
            assert_eq!(back("COMMUNITY_POST", post).await, (200, json!({"ok": true})));
            assert_eq!(world.points(user_id, artist_id).await, 200);
        }
        // A late repetition of the award changes nothing.
        let again = world.award_for("COMMUNITY_POST", user_id, Some(artist_id), post).await;
        assert_eq!(again, awarded(30, 0));
        // It counts for the day all the same.
        for memberships in [1, 1, 0] {
            let answer = world.award("COMMUNITY_POST", user_id, Some(artist_id)).await;
            assert_eq!(answer, awarded(30, memberships));
        }
        let body = json!({"actionType": "TICKET_PURCHASE", "referenceId": post});
        assert_eq!(world.call(community, Method::POST, RETURN, body).await.0, 400);
        world.assert_balances().await;
    }

    async fn a_day_has_a_limit_however_many_write_at_once_and_the_next_day_begins_in_korea(
        world: World
    ) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let world = Arc::new(world);
        for (action, most) in [("COMMUNITY_POST", 3), ("COMMUNITY_COMMENT", 10)] {
            let mut writing = tokio::task::JoinSet::new();
            for _ in 0..25 {
                let world = Arc::clone(&world);
                writing.spawn(async move { world.award(action, user_id, Some(artist_id)).await });
            }
            let answers = writing.join_all().await;
            let given: u64 =
                answers.iter().map(|(_, body)| body["memberships"].as_u64().unwrap()).sum();
            assert_eq!(given, most, "{action}");
        }
        assert_eq!(world.points(user_id, artist_id).await, 200 + 90 + 100);
        // It is 21:00 in Korea: three hours to midnight.
        world.clock.advance(DAY / 8 - std::time::Duration::from_micros(1));
        let late = world.award("COMMUNITY_POST", user_id, Some(artist_id)).await;
        assert_eq!(late, awarded(30, 0));
        world.clock.advance(std::time::Duration::from_micros(1));
        let next = world.award("COMMUNITY_POST", user_id, Some(artist_id)).await;
        assert_eq!(next, awarded(30, 1));
        world.assert_balances().await;
    }

    /// The control of all that say that points agree.
    async fn m_18_points_that_do_not_agree_are_found(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let event_id = world.open_sale_of(artist_id).await;
        let held = world.hold(event_id, user_id, &[0]).await;
        let paid = world.pay(&held).await;
        let kinds = async || {
            let found = world.ticket.audit().await.unwrap().differences;
            found.iter().map(kind_name).collect::<Vec<_>>()
        };
        world.execute("update memberships set points = points + 1").await;
        assert_eq!(kinds().await, ["points"]);
        world.execute("update memberships set points = points - 1").await;
        world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        assert_eq!(kinds().await, [""; 0]);
        world.execute("delete from membership_points where points < 0").await;
        world.execute("update memberships set points = 300").await;
        assert_eq!(kinds().await, ["points"]);
    }

    async fn the_history_comes_in_pages_the_newest_first(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        for _ in 0..4 {
            world.clock.advance(DAY);
            world.award("COMMUNITY_COMMENT", user_id, Some(artist_id)).await;
        }
        let mut seen = Vec::new();
        for page in 1..=3 {
            let path = format!("/api/memberships/my/{artist_id}?page={page}&limit=2");
            let (_, mine) = world.call(CallerIdentity::User(user_id), Method::GET, &path, Value::Null).await;
            assert_eq!(mine["pagination"],
                json!({"page": page, "limit": 2, "total": 5, "totalPages": 3}));
            seen.extend(mine["pointHistory"].as_array().unwrap().clone());
        }
        let points: Vec<_> = seen.iter().map(|line| line["points"].as_i64().unwrap()).collect();
        assert_eq!(points, [10, 10, 10, 10, 200]);
        assert!(seen.is_sorted_by(|a, b| a["createdAt"].as_str() >= b["createdAt"].as_str()));
    }

    async fn p_11_looking_at_memberships_writes_nothing(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        let before = writings(&world.db).await;
        world.clock.advance(500 * DAY);
        for path in [
            "/api/memberships/my".to_owned(),
            format!("/api/memberships/my/{artist_id}"),
            format!("/api/memberships/benefits/{artist_id}"),
        ] {
            let (status, _) = world.call(CallerIdentity::User(user_id), Method::GET, &path, Value::Null).await;
            assert_eq!(status, 200, "{path}");
        }
        assert_eq!(writings(&world.db).await, before);
        // The control: the sweep is seen.
        assert_eq!(world.ticket.end_memberships().await, Ok(1));
        assert_ne!(writings(&world.db).await, before);
    }
}

/// On SQLite a statement is no journey.
#[test]
fn p_4_the_points_of_a_sale_are_two_statements_and_without_an_artist_none() {
    run(Form::Postgres, async |world: World| {
        let artist_id = world.artist().await;
        let (of_artist, plain) =
            (world.open_sale_of(artist_id).await, world.open_sale(hall(10, 10)).await);
        let (member, _) = world.join(world.ids.next_id(), artist_id).await;
        let stranger = world.ids.next_id();
        let mut counts = Vec::new();
        for (event_id, user_id) in [
            (plain, stranger),
            (plain, member.user_id),
            (of_artist, stranger),
            (of_artist, member.user_id),
        ] {
            let held =
                world.hold(event_id, user_id, &[if user_id == stranger { 0 } else { 2 }]).await;
            let claim = world.pin(&held).await;
            let before = world.db.stats().statements;
            world.confirm(held.reservation.id, claim).await.unwrap();
            counts.push(world.db.stats().statements - before);
        }
        let without = counts[0];
        assert_eq!(counts, [without, without, without + 2, without + 2]);
        assert_eq!(world.all_points(member.id).await, 300);
    });
}
