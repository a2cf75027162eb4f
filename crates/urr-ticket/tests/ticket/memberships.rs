//! Fan memberships: joining, paying, renewing, ending.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_bus::HandlerOutcome;
use urr_kernel::{DomainEvent, Timestamp, Uuid, Won};
use urr_service::Caller;
use urr_storage::{StorageError, params};
use urr_ticket::{
    CompletedPayment, Membership, MembershipError, MembershipId, MembershipRejection,
    MembershipStatus, PaymentClaim, Tier,
};

use crate::contract;
use crate::fixture::World;
use crate::operations::CallerIdentity;
use crate::operations::assert_fields;
use crate::payables::event;
use crate::projection::deliver;

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub const PRICE: i64 = 30_000;

impl World {
    /// An artist as the catalog announces them.
    pub async fn artist(&self) -> Uuid {
        let artist_id = self.ids.next_id();
        self.tell_artist("ARTIST_CREATED", artist_id, PRICE).await;
        artist_id
    }

    pub async fn tell_artist(&self, event_type: &str, artist_id: Uuid, price: i64) {
        let told = artist_told(self, event_type, artist_id, price);
        assert_eq!(deliver(self, &told).await, Ok(HandlerOutcome::Done));
    }

    pub async fn subscribe(&self, user_id: Uuid, artist_id: Uuid) -> Membership {
        self.ticket.subscribe(user_id, artist_id).await.unwrap()
    }

    /// A claim of a new payment that fits the term for sale.
    pub fn membership_claim(&self, membership: &Membership) -> PaymentClaim {
        PaymentClaim {
            payment_id: self.ids.next_id(),
            fencing_token: membership.last_term,
            amount: membership.amount(),
        }
    }

    pub async fn pin_membership(&self, membership: &Membership) -> PaymentClaim {
        let claim = self.membership_claim(membership);
        let (id, user_id) = (membership.id, membership.user_id);
        self.ticket.pin_membership(id, user_id, claim, 1).await.unwrap();
        claim
    }

    pub async fn activate(
        &self,
        id: MembershipId,
        claim: PaymentClaim,
    ) -> Result<Membership, MembershipError> {
        let made = CompletedPayment::new(claim, Some("card"));
        self.ticket.activate_membership(id, made, self.context()).await
    }

    /// Subscribes, pins and pays.
    pub async fn join(&self, user_id: Uuid, artist_id: Uuid) -> (Membership, PaymentClaim) {
        let membership = self.subscribe(user_id, artist_id).await;
        let claim = self.pin_membership(&membership).await;
        (self.activate(membership.id, claim).await.unwrap(), claim)
    }

    pub async fn membership(&self, id: MembershipId) -> Membership {
        self.ticket.find_membership(id).await.unwrap()
    }

    /// Every balance is the sum of its points, and every tier follows from it.
    pub async fn assert_balances(&self) {
        let wrong = "select count(*) as n from memberships as m where m.points <> (\
             select coalesce(sum(p.points), 0) from membership_points as p \
             where p.membership_id = m.id and p.is_settled) or m.pending_points <> (\
             select coalesce(sum(p.points), 0) from membership_points as p \
             where p.membership_id = m.id and not p.is_settled) \
             or m.tier <> case when m.points >= 1500 then 'diamond' when m.points >= 500 then 'gold' else 'silver' end";
        assert_eq!(self.number(wrong).await, 0);
    }
}

fn artist_told(world: &World, event_type: &str, artist_id: Uuid, price: i64) -> DomainEvent {
    let data = json!({"artistId": artist_id, "name": "한강 밴드", "membershipPrice": price,
        "somethingNew": 1});
    event(world, event_type, data)
}

/// What a payment says of a membership.
fn paid(world: &World, membership: &Membership, claim: PaymentClaim) -> DomainEvent {
    let data = json!({
        "paymentId": claim.payment_id, "orderId": "ord_1", "userId": membership.user_id,
        "referenceId": membership.id.0, "paymentType": "membership", "amount": claim.amount,
        "paymentMethod": "card", "fencingToken": claim.fencing_token, "bookingFee": 0,
    });
    event(world, "PAYMENT_CONFIRMED", data)
}

fn returned(
    world: &World,
    membership: &Membership,
    payment_id: Uuid,
    fields: Value,
) -> DomainEvent {
    let mut data = json!({
        "paymentId": payment_id, "orderId": "ord_1", "userId": membership.user_id,
        "referenceId": membership.id.0, "paymentType": "membership", "amount": PRICE, "fee": 0,
        "reason": "관리자 환불", "cause": "admin:1", "isWhole": true,
    });
    data.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event(world, "PAYMENT_REFUNDED", data)
}

fn refused<T>(refused: MembershipRejection) -> Result<T, MembershipError> {
    Err(MembershipError::Rejected(refused))
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn post(world: &World, caller: Caller, path: &str, body: Value) -> (u16, Value) {
    world.call(CallerIdentity::Service(caller), Method::POST, path, body).await
}

async fn get(world: &World, who: CallerIdentity, path: &str) -> (u16, Value) {
    world.call(who, Method::GET, path, Value::Null).await
}

/// All that was announced, in its envelope.
async fn outbox(world: &World) -> Vec<Value> {
    let sql = "select body from outbox order by seq";
    let bodies = world.rows(sql, |row| row.get::<String>("body")).await;
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

/// The lines of all points: what for, and how many.
pub async fn point_lines(world: &World) -> Vec<(String, i64)> {
    let sql = "select action, points from membership_points order by created_at, action";
    world.rows(sql, |row| Ok((row.get("action")?, row.get("points")?))).await
}

contract! {
    async fn artists_are_those_of_the_catalogue_and_the_newest_price_counts(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.ids.next_id());
        assert_eq!(
            world.ticket.subscribe(user_id, artist_id).await,
            refused(MembershipRejection::ArtistNotFound)
        );
        let old = artist_told(&world, "ARTIST_CREATED", artist_id, 10_000);
        world.clock.advance(DAY);
        world.tell_artist("ARTIST_UPDATED", artist_id, 20_000).await;
        // An older one that comes late.
        assert_eq!(deliver(&world, &old).await, Ok(HandlerOutcome::Done));
        assert_eq!(world.subscribe(user_id, artist_id).await.amount(), Won::new(20_000));
        let impossible = artist_told(&world, "ARTIST_UPDATED", artist_id, -1);
        assert!(deliver(&world, &impossible).await.is_err());
        // A buyer who has not begun to pay pays the new price.
        world.tell_artist("ARTIST_UPDATED", artist_id, 25_000).await;
        assert_eq!(world.subscribe(user_id, artist_id).await.amount(), Won::new(25_000));
    }

    async fn who_subscribes_again_before_paying_has_one_membership_and_one_term(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let world = Arc::new(world);
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let world = Arc::clone(&world);
            asking.spawn(async move { world.subscribe(user_id, artist_id).await });
        }
        let all = asking.join_all().await;
        assert!(all.iter().all(|membership| *membership == all[0]), "{all:?}");
        assert_eq!(world.number("select count(*) as n from memberships").await, 1);
        assert_eq!(world.number("select count(*) as n from membership_terms").await, 1);
        // While it is being paid, too.
        let claim = world.pin_membership(&all[0]).await;
        let again = world.subscribe(user_id, artist_id).await;
        assert_eq!(again.term.unwrap().pinned_by, Some(claim.payment_id));
    }

    async fn a_fan_joins_over_the_calls_of_fans_and_payments(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let fan = CallerIdentity::User(user_id);
        let body = json!({"artistId": artist_id});
        let (status, made) =
            world.call(fan, Method::POST, "/api/memberships/subscribe", body.clone()).await;
        assert_eq!(status, 201, "{made}");
        let id = made["membershipId"].as_str().unwrap().to_owned();
        assert_eq!(made, json!({"membershipId": id, "artistId": artist_id, "price": PRICE,
            "artistName": "한강 밴드", "status": "pending", "isRenewal": false}));
        let path = format!("/internal/ticket/payables/membership/{id}");
        let payments = CallerIdentity::Service(Caller::Payment);
        let (_, payable) =
            get(&world, payments, &format!("{path}/validate?userId={user_id}")).await;
        assert_fields(&payable["payable"], &json!({
            "kind": "membership", "id": id, "orderName": "한강 밴드 멤버십 1년", "userId": user_id,
            "artistId": artist_id, "eventId": null, "status": "pending",
            "paymentStatus": "unpaid", "totalAmount": PRICE, "bookingFee": 0, "fencingToken": 1,
            "pinnedBy": null, "paymentId": null, "refundAmount": null, "updatedAt": null,
        }));
        let payment_id = world.ids.next_id();
        let pin = json!({"paymentId": payment_id, "userId": user_id, "fencingToken": 1, "attempt": 1,
            "amount": PRICE});
        let confirm = json!({"paymentId": payment_id, "fencingToken": 1, "amount": PRICE,
            "paymentMethod": "card"});
        for (step, body, field, value) in [
            ("pin", &pin, "pinnedBy", json!(payment_id)),
            ("pin", &pin, "pinnedBy", json!(payment_id)),
            ("confirm", &confirm, "paymentStatus", json!("paid")),
            ("confirm", &confirm, "status", json!("active")),
        ] {
            let done = post(&world, Caller::Payment, &format!("{path}/{step}"), body.clone()).await;
            assert_eq!(done, (200, json!({})), "{step}");
            let (_, state) = get(&world, payments, &path).await;
            assert_eq!(state["payable"][field], value, "{step}");
        }
        let (_, state) = get(&world, payments, &path).await;
        assert_eq!(state["payable"]["paymentId"], json!(payment_id));
        assert_eq!(state["payable"]["orderName"], Value::Null);
        let (_, mine) = get(&world, fan, &format!("/api/memberships/my/{artist_id}")).await;
        let membership = json!({"id": id, "artistId": artist_id, "artistName": "한강 밴드",
            "membershipPrice": PRICE, "status": "active", "tier": "silver",
            "effectiveTier": "silver", "points": 200, "pendingPoints": 0, "joinedAt": "2026-12-01T12:00:00Z",
            "expiresAt": "2027-12-01T12:00:00Z", "renewableFrom": "2027-11-01T12:00:00Z",
            "isPaymentPending": false});
        let line = json!({"actionType": "MEMBERSHIP_JOIN", "referenceId": payment_id,
            "points": 200, "createdAt": "2026-12-01T12:00:00Z",
            "settlesAt": "2026-12-01T12:00:00Z", "isSettled": true});
        let benefits = json!({"tier": "silver", "pointsFrom": 0, "preSalePhase": 3,
            "preSaleLabel": "선예매 3", "preSaleDelaySeconds": 86_400, "bookingFeeSurcharge": 3_000, "transferAccess": true, "transferFeePercent": 10,
            "nextTierThreshold": 500});
        assert_eq!(mine, json!({"membership": membership, "pointHistory": [line],
            "pagination": {"page": 1, "limit": 20, "total": 1, "totalPages": 1},
            "benefits": benefits}));
        let (_, all) = get(&world, fan, "/api/memberships/my").await;
        assert_eq!(all["memberships"], json!([membership]));
        let (_, seen) = get(&world, fan, &format!("/api/memberships/benefits/{artist_id}")).await;
        assert_eq!(seen, benefits);
        let announced = world.announced("MEMBERSHIP_ACTIVATED").await;
        assert_eq!(announced, [json!({"membershipId": id, "userId": user_id,
            "artistId": artist_id, "tier": "silver", "expiresAt": "2027-12-01T12:00:00Z",
            "paymentId": payment_id, "amount": PRICE, "isRenewal": false,
            "timestamp": world.clock.now()})]);
        let (status, body) =
            world.call(fan, Method::POST, "/api/memberships/subscribe", body).await;
        assert_eq!((status, &body["code"]), (409, &json!("ALREADY_MEMBER")));
    }

    async fn who_is_no_member_is_bronze_and_sees_nothing_of_others(world: World) {
        let artist_id = world.artist().await;
        let (membership, _) = world.join(world.ids.next_id(), artist_id).await;
        let stranger = world.ids.next_id();
        let (status, mine) =
            get(&world, CallerIdentity::User(stranger), &format!("/api/memberships/my/{artist_id}")).await;
        assert_eq!(status, 200);
        let bronze = json!({"tier": "bronze", "pointsFrom": null, "preSalePhase": null,
            "preSaleLabel": "일반예매", "preSaleDelaySeconds": 172_800, "bookingFeeSurcharge": 0, "transferAccess": false, "transferFeePercent": null,
            "nextTierThreshold": null});
        assert_eq!((&mine["membership"], &mine["pointHistory"], &mine["benefits"]),
            (&Value::Null, &json!([]), &bronze));
        let (status, table) = get(&world, CallerIdentity::Nobody, "/api/memberships/tiers").await;
        assert_eq!((status, &table["tiers"][3]), (200, &bronze), "everybody may see all tiers");
        assert_eq!(table["tiers"].as_array().map(Vec::len), Some(4));
        let (_, all) = get(&world, CallerIdentity::User(stranger), "/api/memberships/my").await;
        assert_eq!(all["memberships"], json!([]));
        for path in ["/api/memberships/my", &format!("/api/memberships/benefits/{artist_id}")] {
            assert_eq!(get(&world, CallerIdentity::Nobody, path).await.0, 401, "{path}");
        }
        let path = format!("/internal/ticket/payables/membership/{}", membership.id.0);
        let path = format!("{path}/validate?userId={stranger}");
        let (status, body) = get(&world, CallerIdentity::Service(Caller::Payment), &path).await;
        assert_eq!((status, &body["code"]), (404, &json!("MEMBERSHIP_NOT_FOUND")));
        // The control: a member is not.
        let path = format!("/api/memberships/benefits/{artist_id}");
        let (_, seen) = get(&world, CallerIdentity::User(membership.user_id), &path).await;
        assert_eq!(seen["tier"], "silver");
    }

    async fn only_payments_take_the_steps_of_payments(world: World) {
        let artist_id = world.artist().await;
        let membership = world.subscribe(world.ids.next_id(), artist_id).await;
        let path = format!("/internal/ticket/payables/membership/{}", membership.id.0);
        let all = json!({"paymentId": Uuid::nil(), "userId": Uuid::nil(), "fencingToken": 1, "attempt": 1,
            "amount": PRICE});
        for caller in Caller::ALL.into_iter().filter(|caller| *caller != Caller::Payment) {
            assert_eq!(get(&world, CallerIdentity::Service(caller), &path).await.0, 403, "{caller}");
            let (status, _) = post(&world, caller, &format!("{path}/pin"), all.clone()).await;
            assert_eq!(status, 403, "{caller}");
        }
        assert_eq!(world.membership(membership.id).await, membership);
    }

    async fn while_it_is_being_paid_nobody_else_pays_and_the_price_stays(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let membership = world.subscribe(user_id, artist_id).await;
        let (id, claim) = (membership.id, world.membership_claim(&membership));
        let pin = async |claim| world.ticket.pin_membership(id, user_id, claim, 1).await;
        let cheap = PaymentClaim { amount: Won::new(1), ..claim };
        assert_eq!(pin(cheap).await, refused(MembershipRejection::WrongAmount));
        for fencing_token in [0, 2] {
            let stale = PaymentClaim { fencing_token, ..claim };
            assert_eq!(pin(stale).await, refused(MembershipRejection::StaleToken));
        }
        let someone = world.ids.next_id();
        let theirs = world.ticket.pin_membership(id, someone, claim, 1).await;
        assert_eq!(theirs, refused(MembershipRejection::NotFound));
        assert_eq!(world.activate(id, claim).await, refused(MembershipRejection::NotPinned));
        // The price changes between preparing and paying.
        world.tell_artist("ARTIST_UPDATED", artist_id, 35_000).await;
        assert_eq!(pin(claim).await, refused(MembershipRejection::WrongAmount));
        let claim = PaymentClaim { amount: Won::new(35_000), ..claim };
        pin(claim).await.unwrap();
        world.tell_artist("ARTIST_UPDATED", artist_id, 40_000).await;
        let other = PaymentClaim { payment_id: world.ids.next_id(), ..claim };
        assert_eq!(pin(other).await, refused(MembershipRejection::PaymentInProgress));
        assert_eq!(world.activate(id, other).await, refused(MembershipRejection::PaymentInProgress));
        let path = format!("/internal/ticket/payables/membership/{}/validate?userId={user_id}", id.0);
        let (status, body) = get(&world, CallerIdentity::Service(Caller::Payment), &path).await;
        assert_eq!((status, &body["code"]), (409, &json!("MEMBERSHIP_BEING_PAID")));
        let active = world.activate(id, claim).await.unwrap();
        assert_eq!(active.amount(), Won::new(35_000));
        assert_eq!(world.announced("MEMBERSHIP_ACTIVATED").await[0]["amount"], 35_000);
        // What is paid is not let go.
        let unpinned = world.ticket.unpin_membership(id, claim.payment_id, 1).await;
        assert_eq!(unpinned, refused(MembershipRejection::Paid));
    }

    async fn of_many_payments_at_once_one_pays(world: World) {
        let artist_id = world.artist().await;
        let membership = world.subscribe(world.ids.next_id(), artist_id).await;
        let (id, user_id) = (membership.id, membership.user_id);
        let mut paying = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (ticket, claim) = (world.ticket.clone(), world.membership_claim(&membership));
            paying.spawn(async move { (claim, ticket.pin_membership(id, user_id, claim, 1).await) });
        }
        let (won, lost): (Vec<_>, Vec<_>) =
            paying.join_all().await.into_iter().partition(|(_, pinned)| pinned.is_ok());
        assert_eq!(won.len(), 1);
        for (claim, pinned) in lost {
            assert_eq!(pinned, refused(MembershipRejection::PaymentInProgress));
            let late = world.activate(id, claim).await;
            assert_eq!(late, refused(MembershipRejection::PaymentInProgress));
        }
        assert_eq!(world.activate(id, won[0].0).await.unwrap().points, 200);
    }

    async fn a_payment_that_comes_to_nothing_leaves_the_membership_to_the_next(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let membership = world.subscribe(user_id, artist_id).await;
        let claim = world.pin_membership(&membership).await;
        let others = world.ticket.unpin_membership(membership.id, world.ids.next_id(), 1).await;
        assert_eq!(others.unwrap().term.unwrap().pinned_by, Some(claim.payment_id));
        for _ in 0..2 {
            let free = world.ticket.unpin_membership(membership.id, claim.payment_id, 1).await;
            assert_eq!(free.unwrap().term.unwrap().pinned_by, None);
        }
        let late = world.activate(membership.id, claim).await;
        assert_eq!(late, refused(MembershipRejection::NotPinned));
        assert_eq!(world.number("select count(*) as n from membership_points").await, 0);
        world.join(user_id, artist_id).await;
        assert_eq!(point_lines(&world).await, [("MEMBERSHIP_JOIN".to_owned(), 200)]);
    }

    async fn a_pin_that_comes_after_its_unpin_leaves_the_term_free(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let membership = world.subscribe(user_id, artist_id).await;
        let (id, claim) = (membership.id, world.membership_claim(&membership));
        let pin = async |attempt| world.ticket.pin_membership(id, user_id, claim, attempt).await;
        let unpin = async |attempt| {
            let unpinned = world.ticket.unpin_membership(id, claim.payment_id, attempt).await;
            unpinned.unwrap().term.unwrap().pinned_by
        };
        assert_eq!(unpin(1).await, None);
        assert_eq!(pin(1).await, refused(MembershipRejection::AttemptOver));
        for _ in 0..2 {
            pin(2).await.unwrap();
        }
        assert_eq!(unpin(1).await, Some(claim.payment_id), "a late unpin has no effect");
        assert_eq!(unpin(2).await, None);
        assert_eq!(pin(2).await, refused(MembershipRejection::AttemptOver));
        world.join(user_id, artist_id).await;
    }

    /// The call and the event of a payment at the same moment: one of them activates.
    async fn r_9_a_call_and_its_event_at_once_activate_once(world: World) {
        let artist_id = world.artist().await;
        let world = Arc::new(world);
        for _ in 0..20 {
            let membership = world.subscribe(world.ids.next_id(), artist_id).await;
            let claim = world.pin_membership(&membership).await;
            let (told, id) = (paid(&world, &membership, claim), membership.id);
            let here = Arc::clone(&world);
            let call = tokio::spawn(async move { here.activate(id, claim).await.map(|_| ()) });
            let here = Arc::clone(&world);
            let news = tokio::spawn(async move { deliver(&here, &told).await });
            assert_eq!(call.await.unwrap(), Ok(()));
            assert_eq!(news.await.unwrap(), Ok(HandlerOutcome::Done));
            assert_eq!(world.membership(id).await.points, 200);
        }
        assert_eq!(world.announced("MEMBERSHIP_ACTIVATED").await.len(), 20);
        assert_eq!(world.number("select count(*) as n from membership_points").await, 20);
        world.assert_balances().await;
    }

    async fn r_9_the_event_activates_alone_if_no_call_comes_through(world: World) {
        let artist_id = world.artist().await;
        let membership = world.subscribe(world.ids.next_id(), artist_id).await;
        let claim = world.pin_membership(&membership).await;
        let told = paid(&world, &membership, claim);
        assert_eq!(deliver(&world, &told).await, Ok(HandlerOutcome::Done));
        let active = world.membership(membership.id).await;
        assert_eq!(active.status(world.clock.now()), MembershipStatus::Active);
        let last = outbox(&world).await.pop().unwrap();
        assert_eq!((&last["type"], &last["causationid"], &last["subject"]),
            (&json!("MEMBERSHIP_ACTIVATED"), &json!(told.id), &json!(membership.id.0)));
        // The call that comes late is answered as if it had been first.
        assert_eq!(world.activate(membership.id, claim).await, Ok(active));
        assert_eq!(world.announced("MEMBERSHIP_ACTIVATED").await.len(), 1);
        // A refusal is final and leaves nothing behind.
        let cheap = PaymentClaim { amount: Won::new(1), ..claim };
        let handled = deliver(&world, &paid(&world, &membership, cheap)).await;
        assert!(matches!(handled, Ok(HandlerOutcome::Rejected { .. })), "{handled:?}");
    }

    /// The control: whatever else would fail, points are given once by the index.
    async fn r_9_the_index_is_the_last_guard_of_points(world: World) {
        let artist_id = world.artist().await;
        let (membership, claim) = world.join(world.ids.next_id(), artist_id).await;
        // As a bug would leave it: it is forgotten that the term was paid.
        world
            .execute("update membership_terms set payment_status = 'unpaid', \
                      pinned_by = payment_id, pinned_at = created_at, payment_id = null")
            .await;
        world.execute("update memberships set joined_at = null").await;
        assert_eq!(world.activate(membership.id, claim).await.unwrap().points, 200);
        assert_eq!(world.announced("MEMBERSHIP_ACTIVATED").await.len(), 2, "it was forgotten");
        world.assert_balances().await;
        let twice = world.db.write(|tx| {
            tx.execute("insert into membership_points select * from membership_points", &[])
        });
        let error: StorageError = twice.await.unwrap_err();
        assert!(error.violates("membership_points_once"), "{error}");
    }

    /// M-7c, K-4: the next year has a payment of its own, which nothing of the first one swallows.
    async fn b_5_m_7c_k_4_a_membership_is_renewed_in_its_last_month(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, first) = world.join(user_id, artist_id).await;
        let id = membership.id;
        world.clock.advance(334 * DAY);
        let early = world.ticket.subscribe(user_id, artist_id).await;
        assert_eq!(early, refused(MembershipRejection::AlreadyMember));
        world.clock.advance(DAY);
        let offered = world.subscribe(user_id, artist_id).await;
        assert_eq!((offered.id, offered.last_term), (id, 2));
        assert!(offered.is_for_sale());
        assert_eq!(offered.status(world.clock.now()), MembershipStatus::Active, "as before");
        let second = world.pin_membership(&offered).await;
        let told = paid(&world, &offered, second);
        assert_eq!(deliver(&world, &told).await, Ok(HandlerOutcome::Done));
        let renewed = world.membership(id).await;
        assert_eq!(renewed.expires_at, at("2028-12-01T12:00:00Z"));
        assert_eq!(renewed.points, 400);
        // The first payment once more, and the second, by call and by event: nothing happens.
        for claim in [first, second] {
            world.activate(id, claim).await.unwrap();
            let told = paid(&world, &offered, claim);
            assert_eq!(deliver(&world, &told).await, Ok(HandlerOutcome::Done));
        }
        assert_eq!(world.membership(id).await, renewed);
        let announced = world.announced("MEMBERSHIP_ACTIVATED").await;
        let renewals: Vec<_> = announced.iter().map(|data| data["isRenewal"].clone()).collect();
        assert_eq!(renewals, [json!(false), json!(true)]);
        let expected = [("MEMBERSHIP_JOIN".to_owned(), 200), ("MEMBERSHIP_RENEW".to_owned(), 200)];
        assert_eq!(point_lines(&world).await, expected);
        // At the end of the first year nothing ends.
        world.clock.advance(31 * DAY);
        assert_eq!(world.ticket.end_memberships().await, Ok(0));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(Some(Tier::Silver)));
        world.assert_balances().await;
    }

    async fn f_12_what_is_over_is_bronze_at_once_and_told_once(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, _) = world.join(user_id, artist_id).await;
        let (late, _) = {
            world.clock.advance(DAY);
            world.join(world.ids.next_id(), artist_id).await
        };
        world.clock.advance(364 * DAY - Duration::from_micros(1));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(Some(Tier::Silver)));
        assert_eq!(world.ticket.end_memberships().await, Ok(0));
        world.clock.advance(Duration::from_micros(1));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(None));
        let path = format!("/api/memberships/my/{artist_id}");
        let (_, mine) = get(&world, CallerIdentity::User(user_id), &path).await;
        assert_eq!((&mine["membership"]["status"], &mine["membership"]["effectiveTier"]),
            (&json!("expired"), &json!("bronze")));
        // Two processes sweep at once.
        let (one, other) =
            tokio::join!(world.ticket.end_memberships(), world.ticket.end_memberships());
        assert_eq!(one.unwrap() + other.unwrap(), 1);
        assert_eq!(world.ticket.end_memberships().await, Ok(0));
        let told = world.announced("MEMBERSHIP_EXPIRED").await;
        assert_eq!(told, [json!({"membershipId": membership.id.0, "userId": user_id,
            "artistId": artist_id, "tier": "silver", "expiresAt": "2027-12-01T12:00:00Z",
            "timestamp": world.clock.now()})]);
        let other = world.membership(late.id).await;
        assert_eq!(other.status(world.clock.now()), MembershipStatus::Active);
        // A returning member begins now.
        world.clock.advance(10 * DAY);
        let (back, _) = world.join(user_id, artist_id).await;
        assert_eq!((back.id, back.expires_at), (membership.id, at("2028-12-11T12:00:00Z")));
        assert_eq!(back.points, 400);
    }

    async fn f_12_who_comes_back_before_the_end_was_told_has_it_told_first(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        world.join(user_id, artist_id).await;
        world.clock.advance(400 * DAY);
        world.join(user_id, artist_id).await;
        assert_eq!(world.ticket.end_memberships().await, Ok(0));
        let types: Vec<_> =
            outbox(&world).await.iter().map(|event| event["type"].clone()).collect();
        let expected = ["MEMBERSHIP_ACTIVATED", "MEMBERSHIP_EXPIRED", "MEMBERSHIP_ACTIVATED"];
        assert_eq!(types, expected);
    }

    async fn f_12_many_memberships_end_each_once_whoever_sweeps_at_the_same_time(world: World) {
        let artist_id = world.artist().await;
        let (ids, now) = (world.ids.clone(), world.clock.now());
        let made = world.db.write(move |tx| {
            for _ in 0..501 {
                tx.execute(
                    "insert into memberships (id, user_id, artist_id, tier, status, expires_at, \
                     joined_at, is_live) values ($1, $2, $3, 'gold', 'active', $4, $4, true)",
                    params![ids.next_id(), ids.next_id(), artist_id, now],
                )?;
            }
            Ok::<_, StorageError>(())
        });
        made.await.unwrap();
        let mut sweeps = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let ticket = world.ticket.clone();
            sweeps.spawn(async move { ticket.end_memberships().await.unwrap() });
        }
        let swept: u64 = sweeps.join_all().await.into_iter().sum();
        // A transaction that skips a locked row may end before the other one.
        assert_eq!(swept + world.ticket.end_memberships().await.unwrap(), 501);
        let told = world.announced("MEMBERSHIP_EXPIRED").await;
        assert_eq!(told.len(), 501);
        let ids: HashSet<_> = told.iter().map(|data| data["membershipId"].to_string()).collect();
        assert_eq!(ids.len(), 501);
    }

    /// An administrator gives the whole price back: the membership ends, and so do its points.
    async fn a_refunded_year_ends_and_its_points_are_taken_back_once(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, claim) = world.join(user_id, artist_id).await;
        let id = membership.id;
        let path = format!("/internal/ticket/payables/membership/{}/refunded", id.0);
        let refund = async |payment_id: Uuid, amount: i64| {
            let body = json!({"paymentId": payment_id, "amount": amount});
            post(&world, Caller::Payment, &path, body).await
        };
        world.clock.advance(DAY);
        let (status, answer) = refund(claim.payment_id, 1).await;
        assert_eq!((status, &answer["code"]), (409, &json!("WRONG_AMOUNT")));
        let (status, answer) = refund(world.ids.next_id(), PRICE).await;
        assert_eq!((status, &answer["code"]), (409, &json!("NOT_REFUNDING")));
        assert_eq!(world.membership(id).await, membership);
        for _ in 0..2 {
            assert_eq!(refund(claim.payment_id, PRICE).await, (200, json!({})));
            let payments = CallerIdentity::Service(Caller::Payment);
            let (_, answer) = get(&world, payments, path.strip_suffix("/refunded").unwrap()).await;
            let seen = &answer["payable"];
            assert_eq!((&seen["paymentStatus"], &seen["refundAmount"], &seen["status"]),
                (&json!("refunded"), &json!(PRICE), &json!("expired")));
        }
        // The event says it once more.
        let told = returned(&world, &membership, claim.payment_id, json!({}));
        assert_eq!(deliver(&world, &told).await, Ok(HandlerOutcome::Done));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(None));
        let expected =
            [("MEMBERSHIP_JOIN".to_owned(), 200), ("MEMBERSHIP_JOIN_RETURNED".to_owned(), -200)];
        assert_eq!(point_lines(&world).await, expected);
        assert_eq!(world.ticket.end_memberships().await, Ok(1));
        assert_eq!(world.announced("MEMBERSHIP_EXPIRED").await[0]["expiresAt"],
            "2026-12-02T12:00:00Z");
        // A payment that was given back buys nothing any more.
        assert_eq!(world.activate(id, claim).await, refused(MembershipRejection::Refunded));
        let (back, _) = world.join(user_id, artist_id).await;
        assert_eq!((back.last_term, back.points), (2, 200));
        world.assert_balances().await;
    }

    async fn what_is_told_of_refunds_ends_only_what_was_given_back_whole(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, claim) = world.join(user_id, artist_id).await;
        let told = |fields| returned(&world, &membership, claim.payment_id, fields);
        for fields in [
            json!({"isWhole": false, "amount": 100}),
            json!({"cause": "not_confirmable"}),
            json!({"cause": "duplicate"}),
            json!({"cause": "mismatch"}),
        ] {
            assert_eq!(deliver(&world, &told(fields)).await, Ok(HandlerOutcome::Ignored));
        }
        let others = told(json!({"paymentId": world.ids.next_id()}));
        assert!(matches!(deliver(&world, &others).await, Ok(HandlerOutcome::Rejected { .. })));
        assert_eq!(world.membership(membership.id).await, membership);
        // The rest of what went back in parts.
        let rest = told(json!({"amount": 1_000}));
        assert_eq!(deliver(&world, &rest).await, Ok(HandlerOutcome::Done));
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(None));
        assert_eq!(world.membership(membership.id).await.points, 0);
    }

    async fn of_two_years_the_refunded_one_is_lost_and_the_other_stays(world: World) {
        let (user_id, artist_id) = (world.ids.next_id(), world.artist().await);
        let (membership, first) = world.join(user_id, artist_id).await;
        world.clock.advance(355 * DAY);
        world.join(user_id, artist_id).await;
        let refund = world.ticket.mark_membership_refunded(
            membership.id, first.payment_id, Won::new(PRICE));
        refund.await.unwrap();
        // Ten days were left of the first one.
        let left = world.membership(membership.id).await;
        assert_eq!(left.expires_at, at("2028-11-21T12:00:00Z"));
        assert_eq!(left.term.unwrap().period.unwrap().starts_at, world.clock.now());
        assert_eq!(left.points, 200);
        assert_eq!(world.ticket.tier_with(user_id, artist_id).await, Ok(Some(Tier::Silver)));
        assert_eq!(world.ticket.end_memberships().await, Ok(0));
        world.assert_balances().await;
    }
}
