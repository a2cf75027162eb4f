//! Searching, in Korean and English, by an index.

use axum::http::StatusCode;
use serde_json::json;

use crate::contract;
use crate::fixture::{Form, World};

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn find(world: &World, text: &str) -> Vec<String> {
    world.titles(&format!("?sort=title&q={}", encode(text))).await
}

async fn programme(world: &World) {
    let artist = world.artist("달무리").await;
    let river = world.venue("한강 노들섬").await;
    let opera = world.venue("Opera House").await;
    let (river, opera) = (world.hall(&river).await, world.hall(&opera).await);
    for (title, hall, artist) in [
        ("가을 콘서트", &river, Some(&artist)),
        ("Moonlight Sonata", &opera, None),
        ("100% Live_2026 'it''s'", &opera, None),
        ("한여름 밤 NIGHT", &opera, Some(&artist)),
    ] {
        let mut body = world.seated(hall);
        body["title"] = json!(title);
        if let Some(artist) = artist {
            body["artistId"] = json!(artist);
        }
        world.create_event(&body).await;
    }
}

contract! {
    async fn p_14_title_artist_venue_and_address_are_searched(world: World) {
        programme(&world).await;
        assert_eq!(find(&world, "콘서트").await, ["가을 콘서트"]);
        assert_eq!(find(&world, "달무리").await, ["가을 콘서트", "한여름 밤 NIGHT"]);
        assert_eq!(find(&world, "노들").await, ["가을 콘서트"]);
        assert_eq!(find(&world, "opera house").await.len(), 3);
        assert_eq!(find(&world, "마포구").await.len(), 4, "the address");
        assert_eq!(find(&world, "MOON").await, ["Moonlight Sonata"]);
        assert_eq!(find(&world, "ｍｏｏｎ").await, ["Moonlight Sonata"]);
        assert_eq!(find(&world, "달무리 night").await, ["한여름 밤 NIGHT"]);
        assert_eq!(find(&world, "ㄷㅁㄹ").await.len(), 2, "initial consonants");
        assert_eq!(find(&world, "ㅎㄱ").await, ["가을 콘서트"], "한강");
        assert_eq!(find(&world, "밤").await, ["한여름 밤 NIGHT"], "a single letter");
        assert_eq!(find(&world, "달무").await.len(), 2);
        assert_eq!(find(&world, "무달").await, [""; 0]);
        assert_eq!(find(&world, "을가").await, [""; 0]);
        // "oo" and "on" of moon, "nl" and "li" of moonlight: the pairs are there, the word is not.
        assert_eq!(find(&world, "moonon").await, [""; 0]);
        assert_eq!(find(&world, " ").await.len(), 4, "nothing was asked for");
    }

    /// P-14: what has a meaning in SQL or in its patterns has none here.
    async fn p_14_signs_of_sql_are_harmless(world: World) {
        programme(&world).await;
        let odd = "100% Live_2026 'it''s'";
        for (text, found) in [
            ("%", vec![odd]),
            ("_", vec![odd]),
            ("'", vec![odd]),
            ("''", vec![odd]),
            ("%live", vec![]),
            ("100%", vec![odd]),
            ("live_2", vec![odd]),
            ("livex2", vec![]),
            ("l%e", vec![]),
            ("\\", vec![]),
            ("\\%", vec![]),
            ("'; drop table events; --", vec![]),
            ("$1", vec![]),
            ("?", vec![]),
        ] {
            assert_eq!(find(&world, text).await, found, "{text}");
        }
        let long = world.get(&format!("/api/events?q={}", "a".repeat(101))).await;
        assert_eq!(long.refusal(), (400, "INVALID_QUERY"));
        let most = world.get(&format!("/api/events?q={}", encode(&"가나".repeat(50)))).await;
        assert_eq!(most.status, StatusCode::OK);
    }

    /// P-14: the database looks into the index of letters and not through all events.
    async fn p_14_the_search_uses_the_index(world: World) {
        programme(&world).await;
        // Enough that looking through everything would be a bad plan.
        let letters = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers \
             where n < 20000) insert into event_grams (gram, event_id) \
             select 'x' || n, (select min(id::text)::uuid from events) from numbers";
        let letters = match world.form {
            Form::Postgres => letters,
            Form::Sqlite => {
                "with recursive numbers (n) as (select 1 union all select n + 1 from numbers \
                 where n < 20000) insert into event_grams (gram, event_id) \
                 select 'x' || n, (select min(id) from events) from numbers"
            }
        };
        world.db.write(move |tx| {
            tx.execute(letters, &[])?;
            tx.execute("analyze event_grams", &[])
        }).await.unwrap_or_else(|error: urr_storage::StorageError| panic!("{error}"));
        let plan = world.catalog.explain_search("달무리 콘서트").await.unwrap().unwrap();
        let plan = plan.join("\n");
        let (index, scan) = match world.form {
            Form::Postgres => ("event_grams_pkey", "Seq Scan on event_grams"),
            Form::Sqlite => ("SEARCH event_grams USING", "SCAN event_grams"),
        };
        assert!(plan.contains(index), "{plan}");
        assert!(!plan.contains(scan), "{plan}");
        assert_eq!(world.catalog.explain_search(" ").await.unwrap(), None);
        // The control: a search without the index does look through all of it.
        let naive = match world.form {
            Form::Postgres => "explain select event_id from event_grams where gram like '%달%'",
            Form::Sqlite => {
                "explain query plan select event_id from event_grams where gram like '%달%'"
            }
        };
        let plan = match world.form {
            Form::Postgres => world.rows(naive, |row| row.get::<String>("QUERY PLAN")).await,
            Form::Sqlite => world.rows(naive, |row| row.get::<String>("detail")).await,
        };
        assert!(plan.join("\n").contains("event_grams"), "{plan:?}");
        assert!(plan.join("\n").to_lowercase().contains("scan"), "{plan:?}");
    }

    async fn a_deleted_event_is_not_found(world: World) {
        programme(&world).await;
        let list = world.get(&format!("/api/events?q={}", encode("sonata"))).await;
        let id = list.body["events"][0]["id"].as_str().unwrap();
        world.delete(&format!("/api/admin/events/{id}")).await;
        assert_eq!(find(&world, "sonata").await, [""; 0]);
    }
}
