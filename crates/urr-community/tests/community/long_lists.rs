//! Long lists: a page costs the same wherever it is, and reads a range of an index.

use serde_json::json;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, Value, params};

use crate::contract;
use crate::fixture::{BAND, MINA, OTHER_BAND, World};

const POSTS: u128 = 1_000;
const COMMENTS: u128 = 100_000;
const CHUNK: u128 = 500;

fn post_id(number: u128) -> Uuid {
    Uuid::from_u128(0x0198_1000_0000_7000_8000_0000_0000_0000 + number)
}

fn other_id(number: u128) -> Uuid {
    Uuid::from_u128(0x0198_1000_0000_7000_8000_0001_0000_0000 + number)
}

fn comment_id(number: u128) -> Uuid {
    Uuid::from_u128(0x0198_2000_0000_7000_8000_0000_0000_0000 + number)
}

fn fill(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StorageError> {
    for number in 0..3 * POSTS {
        // Among them as many posts about another artist, and as much news.
        let (id, kind, artist_id) = match number % 3 {
            0 => (post_id(number / 3), "post", BAND),
            1 => (other_id(number), "post", OTHER_BAND),
            _ => (other_id(number), "news", BAND),
        };
        tx.execute(
            "insert into posts (id, kind, artist_id, author_id, title, content, images, \
             status, is_pinned, views, comment_count, created_at, search_text) values \
             ($1, $2, $3, $4, 'x', 'x', $5, 'visible', false, 0, 0, $6, '')",
            params![id, kind, artist_id, MINA, json!([]), now],
        )?;
    }
    let rows: Vec<String> =
        (0..CHUNK).map(|number| format!("(${}, $1, $2, 'x', 'visible', $3)", number + 4)).collect();
    let sql = format!(
        "insert into comments (id, post_id, author_id, content, status, created_at) values {}",
        rows.join(", ")
    );
    for chunk in 0..COMMENTS / CHUNK {
        let ids: Vec<Uuid> = (0..CHUNK).map(|number| comment_id(chunk * CHUNK + number)).collect();
        let mut values = vec![Value::Uuid(post_id(0)), Value::Uuid(MINA), Value::Time(now)];
        values.extend(ids.into_iter().map(Value::Uuid));
        tx.execute(&sql, &values)?;
    }
    tx.execute("analyze", &[])?;
    Ok(())
}

/// How many statements a page takes, and its items.
async fn page(world: &World, path: &str, list: &str) -> (u64, Vec<String>, Option<String>) {
    let before = world.db.stats().statements;
    let answer = world.get(path).await;
    let ids = answer.texts(list, "id");
    let next = answer.body["nextCursor"].as_str().map(str::to_owned);
    (world.db.stats().statements - before, ids, next)
}

contract! {
    async fn a_page_of_a_thousand_posts_and_a_hundred_thousand_comments_costs_the_same(world: World) {
        let now = world.clock.now();
        let filled: Result<(), StorageError> = world.db.write(move |tx| fill(tx, now)).await;
        filled.unwrap();
        let posts = format!("/api/community/posts?artistId={BAND}&limit=100");
        // The pinned posts are on the first page only.
        let (first, ids, mut next) = page(&world, &posts, "posts").await;
        assert_eq!((first, ids.len()), (2, 100));
        let mut seen = ids;
        while let Some(cursor) = next {
            let (statements, ids, after) =
                page(&world, &format!("{posts}&cursor={cursor}"), "posts").await;
            assert_eq!(statements, 1);
            seen.extend(ids);
            next = after;
        }
        let all: Vec<String> =
            (0..POSTS).rev().map(|number| post_id(number).to_string()).collect();
        assert_eq!(seen, all, "every post once, newest first");

        let comments = format!("/api/community/posts/{}/comments?limit=100", post_id(0));
        let (first, ids, next) = page(&world, &comments, "comments").await;
        assert_eq!((first, ids.len(), next), (2, 100, Some(comment_id(99).to_string())));
        let deep = comment_id(COMMENTS - 101);
        let path = format!("{comments}&cursor={deep}");
        let (last, ids, next) = page(&world, &path, "comments").await;
        assert_eq!((last, ids.len(), next), (2, 100, None));
        assert_eq!(ids[0], comment_id(COMMENTS - 100).to_string());
        for plan in world.community.explain_pages(BAND, post_id(0), deep).await.unwrap() {
            assert!(plan.text.contains(plan.index), "{plan:?}");
            let sorts = ["TEMP B-TREE", "Sort", "Seq Scan on posts", "Seq Scan on comments", "SCAN p", "SCAN comments"];
            assert!(!sorts.iter().any(|word| plan.text.contains(word)), "{plan:?}");
        }
    }
}
