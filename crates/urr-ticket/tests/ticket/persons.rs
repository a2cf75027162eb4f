//! An event that requires a checked identity: its limit holds per person, across accounts.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use urr_kernel::Uuid;
use urr_ticket::{
    ChangeSeats, Hold, HoldRejection, PersonFinder, PersonHashes, RequestedItems, ReserveError,
    ReserveRequest, SeatPreference, TransferError, TransferRejection,
};

use crate::contract;
use crate::fixture::{World, hall, new_sale};

/// The persons of accounts, by account.
fn persons(of: &[(Uuid, &[&str])]) -> PersonFinder {
    let hashes = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let person = |names: &[&str]| PersonHashes::parse(hashes(names)).unwrap();
    let known: HashMap<Uuid, PersonHashes> =
        of.iter().map(|(user_id, names)| (*user_id, person(names))).collect();
    PersonFinder::Listed(Arc::new(known))
}

/// An event with twenty seats, four for each.
async fn open(world: &World, requires_identity: bool) -> Uuid {
    let event_id = world.ids.next_id();
    let mut new = new_sale(event_id, hall(4, 5), &world.clock);
    new.facts.requires_identity = requires_identity;
    assert!(world.sale_insert(new).await);
    event_id
}

async fn reserve(
    world: &World,
    event_id: Uuid,
    user_id: Uuid,
    seat_ids: &[u32],
) -> Result<Hold, ReserveError> {
    let requested = RequestedItems::of_seats(seat_ids.to_vec()).unwrap();
    let request = ReserveRequest { user_id, event_id, requested, key: None };
    world.ticket.reserve(request, world.context()).await
}

fn limit(live_quantity: u32) -> ReserveError {
    HoldRejection::SeatLimit { seats_per_user_max: 4, live_quantity }.into()
}

contract! {
    async fn two_accounts_of_one_person_have_one_limit(world: World) {
        let [one, two, other, stranger] = [(); 4].map(|()| world.ids.next_id());
        let known = persons(&[(one, &["mina"]), (two, &["mina"]), (other, &["junho"])]);
        let ticket = world.ticket_with_persons(known);
        let world = world.with_ticket(ticket);
        let event_id = open(&world, true).await;
        let unchecked = reserve(&world, event_id, stranger, &[0]).await;
        assert_eq!(unchecked.unwrap_err(), HoldRejection::IdentityRequired.into());
        let held = reserve(&world, event_id, one, &[1, 2, 3]).await.unwrap();
        assert_eq!(reserve(&world, event_id, two, &[4, 5]).await.unwrap_err(), limit(3));
        reserve(&world, event_id, two, &[4]).await.unwrap();
        reserve(&world, event_id, other, &[5, 6, 7, 8]).await.unwrap();
        // Changing seats is no way around it.
        let fencing_token = Some(held.reservation.fence);
        let change = ChangeSeats { user_id: one, seat_ids: vec![1, 2, 3, 9], fencing_token };
        let changed = world.ticket.change_seats(held.reservation.id, change, world.context()).await;
        assert_eq!(changed.unwrap_err(), limit(1));
        // What is given back does not count any more.
        let id = held.reservation.id;
        world.ticket.release_hold(id, one, None, world.context()).await.unwrap();
        assert_eq!(reserve(&world, event_id, one, &[1, 2, 3, 9]).await.unwrap_err(), limit(1));
        reserve(&world, event_id, one, &[1, 2, 3]).await.unwrap();
    }

    /// The control: without the requirement every account has a limit of its own.
    async fn without_the_requirement_each_account_has_its_own_limit(world: World) {
        let [one, two] = [(); 2].map(|()| world.ids.next_id());
        let ticket = world.ticket_with_persons(persons(&[(one, &["mina"]), (two, &["mina"])]));
        let world = world.with_ticket(ticket);
        let event_id = open(&world, false).await;
        reserve(&world, event_id, one, &[0, 1, 2, 3]).await.unwrap();
        reserve(&world, event_id, two, &[4, 5, 6, 7]).await.unwrap();
    }

    async fn many_accounts_of_one_person_at_the_same_moment_have_one_limit(world: World) {
        let accounts: Vec<Uuid> = (0..8).map(|_| world.ids.next_id()).collect();
        let known: Vec<(Uuid, &[&str])> =
            accounts.iter().map(|user_id| (*user_id, &["mina"][..])).collect();
        let ticket = world.ticket_with_persons(persons(&known));
        let world = world.with_ticket(ticket);
        let event_id = open(&world, true).await;
        let ask = |(number, user_id): (u32, &Uuid)| {
            let (world, user_id) = (&world, *user_id);
            async move { reserve(world, event_id, user_id, &[2 * number, 2 * number + 1]).await }
        };
        let answers = join_all((0..).zip(&accounts).map(ask)).await;
        let held = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(held, 2, "two holds of two seats are four: {answers:?}");
        let sum = "select coalesce(sum(quantity), 0)::bigint as n from reservations";
        assert_eq!(world.number(sum).await, 4);
    }

    async fn the_best_seats_are_for_checked_persons_too(world: World) {
        let [one, two, stranger] = [(); 3].map(|()| world.ids.next_id());
        let known = persons(&[(one, &["mina"]), (two, &["mina"])]);
        let ticket = world.ticket_with_persons(known);
        let world = world.with_ticket(ticket);
        let event_id = open(&world, true).await;
        let best = async |user_id: Uuid, count: u32| {
            let grade = Some("R".to_owned());
            let preference = SeatPreference { count, grade, section: None, accessible: false };
            let requested = RequestedItems::Best(preference);
            let request = ReserveRequest { user_id, event_id, requested, key: None };
            world.ticket.reserve(request, world.context()).await
        };
        let unchecked = best(stranger, 1).await.unwrap_err();
        assert_eq!(unchecked, HoldRejection::IdentityRequired.into());
        best(one, 3).await.unwrap();
        assert_eq!(best(two, 2).await.unwrap_err(), limit(3));
        best(two, 1).await.unwrap();
    }

    async fn a_new_data_key_does_not_reset_the_limit(world: World) {
        let [one, two] = [(); 2].map(|()| world.ids.next_id());
        let before = world.ticket_with_persons(persons(&[(one, &["old"])]));
        let after = world.ticket_with_persons(persons(&[(two, &["new", "old"])]));
        let world = world.with_ticket(before);
        let event_id = open(&world, true).await;
        reserve(&world, event_id, one, &[0, 1, 2]).await.unwrap();
        let world = world.with_ticket(after);
        assert_eq!(reserve(&world, event_id, two, &[3, 4]).await.unwrap_err(), limit(3));
    }

    async fn a_personal_ticket_cannot_be_passed_on(world: World) {
        let one = world.ids.next_id();
        let ticket = world.ticket_with_persons(persons(&[(one, &["mina"])]));
        let world = world.with_ticket(ticket);
        for (requires_identity, expected) in [
            (true, Err(TransferError::Rejected(TransferRejection::Personal))),
            (false, Ok(())),
        ] {
            let event_id = open(&world, requires_identity).await;
            let held = world.hold(event_id, one, &[0]).await;
            let paid = world.pay(&held).await;
            let listed = world.ticket.list_for_transfer(paid.id(), one).await;
            assert_eq!(listed.map(drop), expected, "{requires_identity}");
        }
    }
}
