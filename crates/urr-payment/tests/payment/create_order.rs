//! A command has its effect once per order, action and key: the six scenarios, by name.

use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{CommandContext, CreateError, CreateOrder, CreateResult};

use crate::contract;
use crate::fixture::{PRICE, World, uuid};

fn order(order_id: &str) -> CreateOrder {
    CreateOrder {
        order_id: order_id.to_owned(),
        user_id: uuid(1),
        payable: PayableRef { kind: PayableKind::Reservation, id: uuid(2) },
        event_id: Some(uuid(3)),
        reservation_id: None,
        fencing_token: Some(7),
        order_name: "A concert".to_owned(),
        amount: PRICE,
        booking_fee: Won::ZERO,
    }
}

fn caused_by(event: &str) -> CommandContext {
    CommandContext { correlation_id: uuid(4), causation_id: Some(event.to_owned()) }
}

async fn keys(world: &World) -> Vec<String> {
    let sql = "select order_id, action, idempotency_key from payment_idempotency \
               order by order_id, action, idempotency_key";
    let read = |row: &urr_storage::Row<'_>| {
        let word = |name: &str| row.get::<String>(name);
        Ok(format!("{} {} {}", word("order_id")?, word("action")?, word("idempotency_key")?))
    };
    world.query(sql, read).await
}

async fn payments(world: &World) -> i64 {
    world.number("select count(*) as number from payments").await
}

contract! {
    async fn a_new_event_stores_its_idempotency_key(world: World) {
        let created = world.payments.create_order(order("123"), caused_by("abc123")).await;
        assert!(matches!(created, Ok(CreateResult::New(_))));
        assert_eq!(keys(&world).await, ["123 CREATE abc123"]);
    }

    async fn a_duplicate_event_creates_no_second_payment(world: World) {
        let Ok(CreateResult::New(first)) =
            world.payments.create_order(order("123"), caused_by("abc123")).await
        else {
            panic!("it is new");
        };
        // The same event again, and another event for the same order.
        for event in ["abc123", "def456"] {
            let again = world.payments.create_order(order("123"), caused_by(event)).await;
            assert_eq!(again, Ok(CreateResult::Before(first.clone())));
        }
        assert_eq!(payments(&world).await, 1);
        assert_eq!(keys(&world).await, ["123 CREATE abc123", "123 CREATE def456"]);
    }

    async fn concurrent_duplicate_events_create_one_payment(world: World) {
        for round in 0..5 {
            let order_id = format!("race-{round}");
            let (same, different): (Vec<_>, Vec<_>) = (0..20)
                .map(|number| {
                    let one = world.payments.create_order(order(&order_id), caused_by("abc"));
                    let key = caused_by(&format!("event-{number}"));
                    (one, world.payments.create_order(order(&order_id), key))
                })
                .unzip();
            let all = futures_util::future::join_all(same.into_iter().chain(different)).await;
            let new = all.iter().filter(|made| matches!(made, Ok(CreateResult::New(_)))).count();
            assert_eq!(new, 1);
            assert!(all.iter().all(Result::is_ok), "a repetition is a success");
        }
        assert_eq!(payments(&world).await, 5);
    }

    async fn the_same_key_for_different_orders_is_allowed(world: World) {
        for order_id in ["123", "456"] {
            let created = world.payments.create_order(order(order_id), caused_by("abc123")).await;
            assert!(matches!(created, Ok(CreateResult::New(_))));
        }
        assert_eq!(keys(&world).await, ["123 CREATE abc123", "456 CREATE abc123"]);
    }

    async fn different_actions_of_one_order_are_allowed(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        world.settle().await;
        let actions: Vec<String> = keys(&world)
            .await
            .iter()
            .map(|key| {
                let mut words = key.split(' ');
                assert_eq!(words.next(), Some(payment.order_id.as_str()));
                words.next().unwrap().to_owned()
            })
            .collect();
        assert_eq!(actions, ["APPROVE", "CREATE", "REFUND"]);
    }

    async fn without_a_causation_id_nothing_is_processed(world: World) {
        for causation_id in [None, Some(String::new())] {
            let context = CommandContext { correlation_id: uuid(4), causation_id };
            let refused = world.payments.create_order(order("123"), context).await;
            assert_eq!(refused, Err(CreateError::CausationMissing));
        }
        assert_eq!((payments(&world).await, keys(&world).await.len()), (0, 0));
    }
}
