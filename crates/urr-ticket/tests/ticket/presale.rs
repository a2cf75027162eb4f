//! A pre-sale: who may buy, and what it costs them beside their seats.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, params};
use urr_ticket::inventory::store::NewSale;
use urr_ticket::{ChangeSeats, LockResult, PaymentClaim, ReservationRejection, TransitionError};

use crate::contract;
use crate::fixture::{Form, MINUTE, World, hall, kind_name, new_sale, run};
use crate::gateway::{Fan, GatewayClient};
use crate::operations::CallerIdentity;
use crate::stalls::Standstill;

const HOUR: Duration = Duration::from_secs(60 * 60);
const MICROSECOND: Duration = Duration::from_micros(1);

/// An event of an artist, with a pre-sale that began so long ago.
struct Presale {
    event_id: Uuid,
    artist_id: Uuid,
}

impl Presale {
    async fn begun(world: &World, ago: Duration) -> Presale {
        let sale = new_sale(world.ids.next_id(), hall(4, 10), &world.clock);
        Presale::of(world, sale, ago).await
    }

    async fn of(world: &World, mut sale: NewSale, ago: Duration) -> Presale {
        let (event_id, artist_id) = (sale.inventory.event_id, world.ids.next_id());
        sale.facts.has_presale = true;
        sale.facts.artist_id = Some(artist_id);
        sale.facts.sale_starts_at = world.clock.now() - ago;
        assert!(world.sale_insert(sale).await);
        Presale { event_id, artist_id }
    }

    async fn member(&self, world: &World, tier: &'static str) -> Fan {
        let until = world.clock.now() + 1_000 * HOUR;
        self.member_until(world, tier, "active", until).await
    }

    async fn member_until(
        &self,
        world: &World,
        tier: &'static str,
        status: &'static str,
        until: Timestamp,
    ) -> Fan {
        let (fan, artist_id, id) = (Fan::new(world), self.artist_id, world.ids.next_id());
        let user_id = fan.user_id;
        let joined = world.db.write(move |tx| {
            tx.execute(
                "insert into memberships (id, user_id, artist_id, tier, status, expires_at) \
                 values ($1, $2, $3, $4, $5, $6)",
                params![id, user_id, artist_id, tier, status, until],
            )
        });
        assert_eq!(joined.await, Ok::<u64, StorageError>(1));
        fan
    }
}

/// What someone is told to pay: for the booking, and altogether.
fn amounts(reservation: &Value) -> (i64, i64) {
    let amount = |name: &str| reservation[name].as_i64().unwrap_or_else(|| panic!("{reservation}"));
    (amount("bookingFee"), amount("totalAmount"))
}

/// A user is not taken for a non-member because the table could not be read. Only SQLite lets the
/// service's login drop a table.
#[test]
fn b_1_a_tier_that_cannot_be_looked_up_refuses_nobody() {
    run(Form::Sqlite, async |world: World| {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        let (event_id, gold) = (presale.event_id, presale.member(&world, "gold").await);
        world.execute("alter table memberships rename to lost").await;
        let (status, body) = gateway.reserve(&gold, event_id, &[0]).await;
        assert!(status.is_server_error(), "{body}");
        let (probe, attempt) = (world.ids.next_id(), world.ids.next_id());
        assert_eq!(world.locks.acquire(event_id, &[0], probe, attempt).await, LockResult::Acquired);
        world.locks.abandon(event_id, &[0], attempt).await;
        world.execute("alter table lost rename to memberships").await;
        gateway.must_reserve(&gold, event_id, &[0]).await;
    });
}

contract! {
    async fn b_1_a_presale_asks_for_the_tier(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        let now = world.clock.now();
        let members = [
            ("gold", "active", now + MINUTE, StatusCode::CREATED),
            ("silver", "active", now + MINUTE, StatusCode::FORBIDDEN),
            ("diamond", "active", now, StatusCode::FORBIDDEN),
            ("diamond", "pending", now + MINUTE, StatusCode::FORBIDDEN),
        ];
        for (seat_id, (tier, status, until, expected)) in (0..).zip(members) {
            let fan = presale.member_until(&world, tier, status, until).await;
            let (answered, body) = gateway.reserve(&fan, presale.event_id, &[seat_id]).await;
            assert_eq!(answered, expected, "{tier} {body}");
        }
        let (status, body) = gateway.reserve(&Fan::new(&world), presale.event_id, &[8]).await;
        assert_eq!((status.as_u16(), &body["code"]), (403, &json!("PRESALE_MEMBERS_ONLY")));
        assert_eq!(body["opensAt"], "2026-12-03T11:00:00Z");
    }

    /// The many who may not buy yet do not make a seat look busy for those who may.
    async fn b_1_who_may_not_buy_yet_is_refused_without_touching_a_seat(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        let (event_id, gold) = (presale.event_id, presale.member(&world, "gold").await);
        let strangers = [Fan::new(&world), presale.member(&world, "silver").await];
        let stall = Standstill::begin(&world, event_id).await;
        let decided = |world: &World| {
            let stats = world.db.stats();
            stats.committed + stats.rolled_back
        };
        let before = decided(&world);
        for fan in &strangers {
            // Nothing can be decided now, and nothing has to be.
            let (status, body) = gateway.reserve(fan, event_id, &[3, 4]).await;
            assert_eq!((status.as_u16(), &body["code"]), (403, &json!("PRESALE_MEMBERS_ONLY")));
        }
        assert_eq!(decided(&world), before);
        let (probe, attempt) = (world.ids.next_id(), world.ids.next_id());
        assert_eq!(world.locks.acquire(event_id, &[3, 4], probe, attempt).await, LockResult::Acquired);
        // Not even a seat that another one has is looked at.
        let (_, body) = gateway.reserve(&strangers[0], event_id, &[3, 4]).await;
        assert_eq!(body["code"], "PRESALE_MEMBERS_ONLY");
        world.locks.abandon(event_id, &[3, 4], attempt).await;
        let requested = [3, 4];
        let (member, stranger, ()) = tokio::join!(
            gateway.reserve(&gold, event_id, &requested),
            gateway.reserve(&strangers[0], event_id, &requested),
            stall.end(),
        );
        assert_eq!(member.0, StatusCode::CREATED, "{}", member.1);
        assert_eq!(stranger.1["code"], "PRESALE_MEMBERS_ONLY");
    }

    /// A membership counts from the moment in which it is paid.
    async fn b_1_who_becomes_a_member_buys_at_once(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        let until = world.clock.now() + HOUR;
        let fan = presale.member_until(&world, "diamond", "pending", until).await;
        let (status, _) = gateway.reserve(&fan, presale.event_id, &[0]).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        world.execute("update memberships set status = 'active'").await;
        gateway.must_reserve(&fan, presale.event_id, &[0]).await;
    }

    /// What was read a moment ago only refuses. It never lets anyone in.
    async fn b_1_the_database_decides_for_who_is_let_through(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        world.execute("update sales set has_presale = false").await;
        gateway.must_reserve(&Fan::new(&world), presale.event_id, &[0]).await;
        world.execute("update sales set has_presale = true").await;
        let (status, body) = gateway.reserve(&Fan::new(&world), presale.event_id, &[1]).await;
        assert_eq!((status.as_u16(), &body["code"]), (403, &json!("PRESALE_MEMBERS_ONLY")));
        assert_eq!(world.number("select count(*) as n from reservations").await, 1);
    }

    async fn b_1_in_the_general_sale_nobody_is_asked_for_their_tier(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, 48 * HOUR).await);
        let plain = world.open_sale(hall(1, 10)).await;
        let mut statements = Vec::new();
        for event_id in [presale.event_id, plain] {
            gateway.must_reserve(&Fan::new(&world), event_id, &[0]).await;
            let (fan, before) = (Fan::new(&world), world.db.stats().statements);
            gateway.must_reserve(&fan, event_id, &[1]).await;
            statements.push(world.db.stats().statements - before);
        }
        assert_eq!(statements[0], statements[1]);
    }

    async fn b_3_each_tier_pays_its_fee_once_for_a_booking(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, 24 * HOUR).await);
        let tiers = [("diamond", 1_000), ("gold", 2_000), ("silver", 3_000)];
        for (row, (tier, fee)) in (0..).zip(tiers) {
            let fan = presale.member(&world, tier).await;
            let seat_ids = [10 * row, 10 * row + 1, 10 * row + 2];
            let made = gateway.must_reserve(&fan, presale.event_id, &seat_ids).await;
            assert_eq!(amounts(&made), (fee, 300_000 + fee), "{tier}");
            let id = made["id"].as_str().unwrap();
            for path in [format!("/api/reservations/{id}"), "/api/reservations/my".to_owned()] {
                let (_, body) =
                    world.call(CallerIdentity::User(fan.user_id), Method::GET, &path, Value::Null).await;
                let seen = body.get("reservation").unwrap_or(&body["reservations"][0]);
                assert_eq!(amounts(seen), (fee, 300_000 + fee), "{path}: {body}");
            }
        }
        let announced = world.announced("RESERVATION_CREATED").await;
        let announced: Vec<_> = announced.iter().map(amounts).collect();
        assert_eq!(announced, [(1_000, 301_000), (2_000, 302_000), (3_000, 303_000)]);
        world.assert_agrees().await;
    }

    /// From the first moment in which everybody may buy, nobody pays for buying early.
    async fn b_3_the_general_sale_has_no_fee_from_its_first_moment(world: World) {
        let (gateway, presale) =
            (GatewayClient::new(&world), Presale::begun(&world, 48 * HOUR - MICROSECOND).await);
        let gold = presale.member(&world, "gold").await;
        let made = gateway.must_reserve(&gold, presale.event_id, &[0]).await;
        assert_eq!(amounts(&made), (2_000, 102_000));
        let (status, _) = gateway.reserve(&Fan::new(&world), presale.event_id, &[1]).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        world.clock.advance(MICROSECOND);
        let members = [
            presale.member(&world, "diamond").await,
            presale.member(&world, "gold").await,
            presale.member(&world, "silver").await,
            Fan::new(&world),
        ];
        for (seat_id, fan) in (1..).zip(&members) {
            let made = gateway.must_reserve(fan, presale.event_id, &[seat_id]).await;
            assert_eq!(amounts(&made), (0, 100_000));
        }
        world.assert_agrees().await;
    }

    async fn b_3_an_event_without_a_presale_has_no_fee_for_anyone(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        world.execute("update sales set has_presale = false").await;
        for (seat_id, tier) in (0..).zip(["diamond", "gold", "silver"]) {
            let fan = presale.member(&world, tier).await;
            let made = gateway.must_reserve(&fan, presale.event_id, &[seat_id]).await;
            assert_eq!(amounts(&made), (0, 100_000), "{tier}");
        }
        let made = gateway.must_reserve(&Fan::new(&world), presale.event_id, &[9]).await;
        assert_eq!(amounts(&made), (0, 100_000));
    }

    async fn b_3_standing_tickets_and_the_best_seats_have_the_fee_too(world: World) {
        let (gateway, presale) = (GatewayClient::new(&world), Presale::begun(&world, HOUR).await);
        let gold = presale.member(&world, "gold").await;
        let preference = json!({"eventId": presale.event_id, "grade": "R", "count": 2});
        let (status, body) = gateway.post(&gold, presale.event_id, "/api/seats/best", preference).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        assert_eq!(amounts(&body["reservation"]), (2_000, 202_000));
        let (event_id, type_id) = world.open_standing(9).await;
        let artist_id = presale.artist_id;
        let claim = "update sales set has_presale = true, artist_id = $2 where event_id = $1";
        let turned = world.db.write(move |tx| tx.execute(claim, params![event_id, artist_id]));
        assert_eq!(turned.await, Ok::<u64, StorageError>(1));
        let items = json!([{"ticketTypeId": type_id, "quantity": 3}]);
        let (status, body) = gateway.reserve_tickets(&gold, event_id, items).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        assert_eq!(amounts(&body["reservation"]), (2_000, 266_000));
        world.assert_agrees().await;
    }

    async fn b_3_requests_of_one_batch_have_each_their_own_fee(world: World) {
        let presale = Presale::begun(&world, 24 * HOUR).await;
        let (gateway, mut asking) = (GatewayClient::new(&world), tokio::task::JoinSet::new());
        for seat_id in 0..30 {
            let tier = ["diamond", "gold", "silver"][seat_id % 3];
            let fan = presale.member(&world, tier).await;
            let (gateway, event_id) = (gateway.clone(), presale.event_id);
            let seat_ids = [u32::try_from(seat_id).unwrap()];
            asking.spawn(async move { (tier, gateway.must_reserve(&fan, event_id, &seat_ids).await) });
        }
        for (tier, made) in asking.join_all().await {
            let fee = match tier {
                "diamond" => 1_000,
                "gold" => 2_000,
                _ => 3_000,
            };
            assert_eq!(amounts(&made), (fee, 100_000 + fee), "{tier}");
        }
        world.assert_agrees().await;
    }

    /// Neither a seat more nor the general sale changes what the booking cost.
    async fn b_3_a_change_of_seats_keeps_the_fee(world: World) {
        let presale = Presale::begun(&world, 48 * HOUR - MINUTE).await;
        let silver = presale.member(&world, "silver").await;
        let record = world.hold(presale.event_id, silver.user_id, &[0]).await;
        world.clock.advance(2 * MINUTE);
        let request = ChangeSeats {
            user_id: silver.user_id,
            seat_ids: vec![1, 2],
            fencing_token: None,
        };
        let id = record.reservation.id;
        let changed = world.ticket.change_seats(id, request, world.context()).await.unwrap();
        let reservation = &changed.reservation;
        assert_eq!(
            (reservation.booking_fee, reservation.total_amount),
            (Won::new(3_000), Won::new(203_000))
        );
        let announced = world.announced("RESERVATION_CHANGED").await;
        assert_eq!(amounts(&announced[0]), (3_000, 203_000));
        world.assert_agrees().await;
    }

    async fn b_3_the_fee_is_paid_and_paid_back_with_the_seats(world: World) {
        let presale = Presale::begun(&world, HOUR).await;
        let gold = presale.member(&world, "gold").await;
        let record = world.hold(presale.event_id, gold.user_id, &[0]).await;
        // A payment for the seats alone is too little.
        let short = PaymentClaim { amount: Won::new(100_000), ..world.claim(&record) };
        let refused = world.ticket.pin_hold(record.reservation.id, gold.user_id, short, 1, None).await;
        assert_eq!(refused, Err(TransitionError::Rejected(ReservationRejection::WrongAmount)));
        let paid = world.pay(&record).await;
        world.ticket.cancel_reservation(paid.id(), gold.user_id, world.context()).await.unwrap();
        let cancelled = &world.announced("RESERVATION_CANCELLED").await[0];
        assert_eq!(amounts(cancelled), (2_000, 102_000));
        assert_eq!(cancelled["refundAmount"], 102_000);
        world.assert_agrees().await;
    }

    /// The control: a fee that is not in the total is found. Impossible ones the schema refuses.
    async fn b_3_a_fee_that_is_not_in_the_total_is_found(world: World) {
        let presale = Presale::begun(&world, HOUR).await;
        let gold = presale.member(&world, "gold").await;
        world.hold(presale.event_id, gold.user_id, &[0]).await;
        world.assert_agrees().await;
        assert_eq!(world.execute("update reservations set booking_fee = 1000").await, 1);
        let found = world.ticket.audit().await.unwrap().differences;
        assert_eq!(found.iter().map(kind_name).collect::<Vec<_>>(), ["amount"]);
        for sql in [
            "update reservations set booking_fee = -1",
            "update reservations set booking_fee = total_amount + 1",
        ] {
            let done = world.db.write(move |tx| tx.execute(sql, &[])).await;
            let error: StorageError = done.unwrap_err();
            assert!(error.violates("reservations_booking_fee"), "{error}");
        }
    }
}
