//! Sales are made once and whole.

use crate::contract;
use crate::fixture::hall;

contract! {
    async fn a_sale_is_made_once_with_every_seat_of_its_layout(world: World) {
        let event_id = world.open_sale(hall(3, 10)).await;
        assert_eq!(world.number("select count(*) as n from seats").await, 30);
        assert!(!world.sale_create(event_id, hall(3, 10)).await, "it was made before");
        assert_eq!(world.number("select count(*) as n from seats").await, 30);
        assert_eq!(world.number("select max(seat_id) as n from seats").await, 29);
    }
}
