//! Points of a purchase count when it cannot be cancelled for free any more.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::{Uuid, Won};
use urr_ticket::{MembershipId, Tier};

use crate::contract;
use crate::fixture::{World, hall, new_sale};
use crate::operations::{CallerIdentity, PaidReservation};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    /// A member with three paid reservations of an event of the artist: 500 points, if they count.
    async fn three_purchases(&self, artist_id: Uuid) -> (Uuid, MembershipId, Vec<PaidReservation>) {
        let user_id = self.ids.next_id();
        let (membership, _) = self.join(user_id, artist_id).await;
        let mut paid = Vec::new();
        for _ in 0..3 {
            let event_id = self.open_sale_of(artist_id).await;
            let held = self.hold(event_id, user_id, &[0]).await;
            paid.push(self.pay(&held).await);
        }
        (user_id, membership.id, paid)
    }

    async fn points_of(&self, id: MembershipId) -> (i64, i64, Tier) {
        let membership = self.membership(id).await;
        (membership.points, membership.pending_points, membership.tier)
    }
}

contract! {
    /// The attack: join, buy three cheap tickets, become gold, buy in the gold window, cancel the
    /// three for free.
    async fn gold_is_not_for_nothing(world: World) {
        let artist_id = world.artist().await;
        let (user_id, id, paid) = world.three_purchases(artist_id).await;
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.points_of(id).await, (200, 300, Tier::Silver));
        // A pre-sale in its gold hour: it has begun an hour ago.
        let mut sale = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
        (sale.facts.has_presale, sale.facts.artist_id) = (true, Some(artist_id));
        let gold_window = sale.inventory.event_id;
        assert!(world.sale_insert(sale).await);
        let requested = urr_ticket::RequestedItems::of_seats(vec![0]).unwrap();
        let request = urr_ticket::ReserveRequest { user_id, event_id: gold_window, requested, key: None };
        let refused = world.ticket.reserve(request.clone(), world.context()).await;
        assert!(refused.is_err(), "{refused:?}");
        for paid in &paid {
            world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        }
        assert_eq!(world.points_of(id).await, (200, 0, Tier::Silver));
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    /// The control: who can only cancel with a fee is gold, buys in the window, and pays for it.
    async fn what_costs_a_fee_counts(world: World) {
        let artist_id = world.artist().await;
        let (user_id, id, paid) = world.three_purchases(artist_id).await;
        // The event is on the 21st: seven days after the booking are free, to their last moment.
        world.clock.advance(7 * DAY + 3 * HOUR - Duration::from_micros(1));
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.points_of(id).await, (200, 300, Tier::Silver));
        world.clock.advance(Duration::from_micros(1));
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.points_of(id).await, (500, 0, Tier::Gold));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(Some(Tier::Gold)));
        world.assert_balances().await;
        // Cancelling takes the points back, and costs.
        world.ticket.cancel_reservation(paid[0].id(), user_id, world.context()).await.unwrap();
        assert_eq!(world.points_of(id).await, (400, 0, Tier::Silver));
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["cancellationFee"], 4_000);
        world.assert_balances().await;
        world.assert_agrees().await;
    }

    async fn pending_points_are_shown_as_such(world: World) {
        let artist_id = world.artist().await;
        let (user_id, _, _) = world.three_purchases(artist_id).await;
        let path = format!("/api/memberships/my/{artist_id}");
        let (_, mine) =
            world.call(CallerIdentity::User(user_id), Method::GET, &path, Value::Null).await;
        assert_eq!((&mine["membership"]["points"], &mine["membership"]["pendingPoints"]),
            (&json!(200), &json!(300)));
        let history = mine["pointHistory"].as_array().unwrap();
        let pending: Vec<&Value> =
            history.iter().filter(|entry| entry["isSettled"] == false).collect();
        assert_eq!(pending.len(), 3, "{mine}");
        assert_eq!(pending[0]["settlesAt"], "2026-12-08T15:00:00Z");
    }

    async fn an_event_for_nothing_gives_no_points(world: World) {
        let artist_id = world.artist().await;
        let user_id = world.ids.next_id();
        let (membership, _) = world.join(user_id, artist_id).await;
        for price in [0, 1] {
            let mut sale = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
            sale.facts.artist_id = Some(artist_id);
            sale.inventory.prices = [("R".to_owned(), Won::new(price))].into();
            let event_id = sale.inventory.event_id;
            assert!(world.sale_insert(sale).await);
            let held = world.hold(event_id, user_id, &[0]).await;
            world.pay(&held).await;
            let awarded = world.number("select count(*) as n from membership_points \
                 where action = 'TICKET_PURCHASE'").await;
            assert_eq!(awarded, price, "only what costs something gives points");
        }
        assert_eq!(world.points_of(membership.id).await.1, 100);
    }

    /// A moved event can be cancelled for free again, so its points wait for the new day.
    async fn points_of_a_moved_event_wait_for_its_new_day(world: World) {
        let artist_id = world.artist().await;
        let (_, id, paid) = world.three_purchases(artist_id).await;
        let event_id = paid[0].record.reservation.event_id;
        let moved = world.clock.now() + 30 * DAY;
        world.move_event(event_id, 2, moved).await;
        world.ticket.announce_moved_events().await.unwrap();
        world.clock.advance(8 * DAY);
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.points_of(id).await, (400, 100, Tier::Silver));
        world.clock.advance(22 * DAY);
        world.ticket.settle_points().await.unwrap();
        assert_eq!(world.points_of(id).await, (500, 0, Tier::Gold));
        assert_eq!(world.ticket.settle_points().await, Ok(0));
        world.assert_balances().await;
    }
}
