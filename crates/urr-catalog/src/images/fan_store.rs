//! The SQL of fans' pictures: how many somebody uploads, which posts show them, and their end.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, from_row, params};

/// When the current hour of a fan began, and how much was uploaded in it. The row is locked, so
/// that uploads at the same time are counted one after the other.
pub fn uploads_lock(tx: &mut Tx<'_>, user_id: Uuid, now: Timestamp) -> DbResult<(Timestamp, u32)> {
    let insert = "insert into fan_uploads (user_id, since, uploads) values ($1, $2, 0) \
                  on conflict (user_id) do nothing";
    tx.execute(insert, params![user_id, now])?;
    let sql = "select since, uploads from fan_uploads where user_id = $1 for update";
    tx.query_one(sql, params![user_id], |row| Ok((row.get("since")?, row.get("uploads")?)))
}

pub fn uploads_set(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    (since, uploads): (Timestamp, u32),
) -> DbResult<()> {
    let sql = "update fan_uploads set since = $2, uploads = $3 where user_id = $1";
    tx.execute(sql, params![user_id, since, uploads]).map(drop)
}

/// A picture that a post does not show any more.
pub struct RemovedPicture {
    pub image_id: String,
    pub shown_since: Timestamp,
}

/// Notes which pictures a post shows, unless a newer announcement is known. Returns those that it
/// showed before.
pub fn post_pictures_replace(
    tx: &mut Tx<'_>,
    post_id: Uuid,
    image_ids: &[String],
    announced_at: Timestamp,
) -> DbResult<Vec<RemovedPicture>> {
    let newest = tx.execute(
        "insert into picture_posts (post_id, announced_at) values ($1, $2) \
         on conflict (post_id) do update set announced_at = excluded.announced_at \
         where picture_posts.announced_at < excluded.announced_at",
        params![post_id, announced_at],
    )?;
    if newest == 0 {
        return Ok(Vec::new());
    }
    let shown = "select image_id, shown_since from post_pictures where post_id = $1";
    let mut removed: Vec<RemovedPicture> = tx.query(shown, params![post_id], |row| {
        Ok(from_row!(row => RemovedPicture { image_id, shown_since }))
    })?;
    removed.retain(|picture| !image_ids.contains(&picture.image_id));
    for RemovedPicture { image_id, .. } in &removed {
        let sql = "delete from post_pictures where post_id = $1 and image_id = $2";
        tx.execute(sql, params![post_id, image_id])?;
    }
    for image_id in image_ids {
        let sql = "insert into post_pictures (post_id, image_id, shown_since) \
                   values ($1, $2, $3) on conflict (post_id, image_id) do nothing";
        tx.execute(sql, params![post_id, image_id, announced_at])?;
    }
    Ok(removed)
}

/// What shows a picture. Organisers may have taken the address of a fan's.
const UNUSED: &str = "is_of_fan \
    and not exists (select 1 from post_pictures p where p.image_id = images.id) \
    and not exists (select 1 from events e where e.poster_image_url = '/api/image/' || images.id) \
    and not exists (select 1 from artists a where a.image_url = '/api/image/' || images.id)";

/// Deletes a fan's picture if nothing shows it. One that was uploaded again meanwhile may be for a
/// post that is being written; it has its day.
pub fn image_delete_unused(tx: &mut Tx<'_>, picture: &RemovedPicture) -> DbResult<()> {
    let sql = format!("delete from images where id = $1 and created_at <= $2 and {UNUSED}");
    tx.execute(&sql, params![picture.image_id, picture.shown_since]).map(drop)
}

/// Deletes fans' pictures that were uploaded before a time and are shown nowhere.
pub fn images_purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    let sql = format!(
        "delete from images where id in (select id from images where {UNUSED} \
         and created_at < $1 order by created_at, id limit $2)"
    );
    tx.execute(&sql, params![before, limit])
}
