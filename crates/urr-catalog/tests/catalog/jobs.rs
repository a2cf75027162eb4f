//! The job that announces that sales open and end.

use serde_json::json;
use urr_catalog::CacheSettings;

use crate::contract;
use crate::fixture::{DAY, World, all};

async fn status(world: &World, id: &str) -> (String, i64) {
    let id: urr_kernel::Uuid = id.parse().unwrap();
    let found = world.catalog.get_event(urr_catalog::EventId(id)).await.unwrap().unwrap();
    (found.event.announced_status.as_str().to_owned(), found.event.revision)
}

contract! {
    async fn the_job_announces_openings_and_ends(world: World) {
        let id = world.some_event().await;
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 0);
        assert_eq!(status(&world, &id).await, ("upcoming".to_owned(), 1));
        world.clock.advance(DAY);
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 1);
        assert_eq!(status(&world, &id).await, ("on_sale".to_owned(), 2));
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 0, "once");
        world.clock.advance(19 * DAY);
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 1);
        assert_eq!(status(&world, &id).await, ("ended".to_owned(), 3));
        let announced = world.announced().await;
        let told: Vec<_> = announced
            .iter()
            .filter(|event| event.event_type.starts_with("EVENT_"))
            .map(|event| (event.data["status"].as_str().unwrap(), &event.data["revision"]))
            .collect();
        assert_eq!(told, [("upcoming", &json!(1)), ("on_sale", &json!(2)), ("ended", &json!(3))]);
    }

    /// Several processes look at the same time: each change is announced by one of them.
    async fn many_replicas_announce_each_opening_once(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        for _ in 0..12 {
            world.create_event(&world.seated(&hall)).await;
        }
        world.clock.advance(DAY);
        let replicas = (0..4).map(|_| world.replica(CacheSettings::default()));
        let updated = all(replicas.map(|replica| async move {
            let mut updated = 0;
            loop {
                match replica.update_statuses(5).await.unwrap() {
                    0 => return updated,
                    count => updated += count,
                }
            }
        }))
        .await;
        assert_eq!(updated.iter().sum::<usize>(), 12, "{updated:?}");
        let types = world.announced_types().await;
        assert_eq!(types.iter().filter(|name| *name == "EVENT_UPDATED").count(), 12);
        assert_eq!(world.number("select count(*) as n from events where revision = 2").await, 12);
    }

    async fn what_was_missed_is_made_up_for_in_one_step(world: World) {
        let id = world.some_event().await;
        world.clock.advance(25 * DAY);
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 1);
        assert_eq!(status(&world, &id).await, ("ended".to_owned(), 2));
        let deleted = world.some_other_event().await;
        world.delete(&format!("/api/admin/events/{deleted}")).await;
        world.clock.advance(5 * DAY);
        assert_eq!(world.catalog.update_statuses(10).await.unwrap(), 0, "deleted ones stay");
    }
}
