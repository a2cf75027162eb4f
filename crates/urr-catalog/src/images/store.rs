//! The SQL of images.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::images::{Image, ImageId};

/// `false` if the image is stored already. A fan's that is uploaded again begins its day anew, and
/// is an organiser's from when one uploads it.
pub fn image_insert(
    tx: &mut Tx<'_>,
    image: &Image,
    (created_by, is_of_fan): (Uuid, bool),
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into images (id, content_type, width, height, bytes, created_by, created_at, \
         is_of_fan) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (id) do update \
         set created_at = excluded.created_at, is_of_fan = excluded.is_of_fan \
         where images.is_of_fan",
        params![
            image.id.as_str(),
            image.kind,
            image.width,
            image.height,
            &image.bytes[..],
            created_by,
            now,
            is_of_fan
        ],
    )?;
    Ok(rows == 1)
}

pub fn image_find(tx: &mut Tx<'_>, id: &ImageId) -> DbResult<Option<Image>> {
    tx.query_opt(
        "select content_type, width, height, bytes from images where id = $1",
        params![id.as_str()],
        |row| {
            Ok(Image {
                id: id.clone(),
                kind: row.get("content_type")?,
                width: row.get("width")?,
                height: row.get("height")?,
                bytes: row.get::<Vec<u8>>("bytes")?.into(),
            })
        },
    )
}
