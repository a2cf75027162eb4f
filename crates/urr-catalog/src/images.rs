//! Images: checked by their content, named by its hash, and stored once.

pub mod content;
pub(crate) mod fan_store;
pub mod http;
mod store;

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use urr_kernel::{Timestamp, hex};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError, Tx};

use crate::images::content::{ImageInfo, ImageKind, InvalidImage, inspect};
use crate::{AdminActor, CatalogService};

/// The SHA-256 of an image's bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageId(String);

impl ImageId {
    fn of(bytes: &[u8]) -> ImageId {
        ImageId(hex::encode(Sha256::digest(bytes)))
    }

    /// `None` if no image can have this id.
    pub fn parse(text: &str) -> Option<ImageId> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| ImageId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path at which it is served.
    pub fn url(&self) -> String {
        format!("/api/image/{}", self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub id: ImageId,
    pub kind: ImageKind,
    pub width: u32,
    pub height: u32,
    pub bytes: Bytes,
}

/// How many pictures a fan may upload in an hour.
const FAN_UPLOADS_MAX: u32 = 20;
const HOUR: Duration = Duration::from_hours(1);
/// So long a fan's picture may wait for its post.
const UNUSED_MAX: Duration = Duration::from_hours(24);

/// Whose an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOwner {
    /// It stays, and its upload is logged.
    Organiser,
    /// It is for a post, and goes with it.
    Fan,
}

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error(transparent)]
    Invalid(#[from] InvalidImage),
    #[error("You have uploaded many pictures. Please wait before you upload the next one.")]
    TooMany { retry_after: Duration },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CatalogService {
    /// Stores an upload, if it is an image.
    pub async fn upload_image(
        &self,
        bytes: Bytes,
        owner: ImageOwner,
        actor: AdminActor,
    ) -> Result<Image, UploadError> {
        let info = inspect(&bytes)?;
        self.store_image(info, bytes, owner, actor).await
    }

    /// Stores an SVG drawing of our own code. Uploads of SVG are refused: they can hold scripts.
    pub(crate) async fn store_drawing(
        &self,
        svg: String,
        (width, height): (u32, u32),
        actor: AdminActor,
    ) -> DbResult<Image> {
        let info = ImageInfo { kind: ImageKind::Svg, width, height };
        let stored = self.store_image(info, svg.into(), ImageOwner::Organiser, actor).await;
        stored.map_err(|error| match error {
            UploadError::Storage(error) => error,
            other => unreachable!("only a fan's upload is refused: {other}"),
        })
    }

    /// Deletes fans' pictures that no post has shown for a day. Returns how many.
    pub async fn purge_images(&self, limit: u32) -> DbResult<u64> {
        let before = self.0.clock.now() - UNUSED_MAX;
        self.0.db.write(move |tx| fan_store::images_purge(tx, before, limit)).await
    }

    /// It needs no new revision: readers cannot see an image before an event or artist names it.
    async fn store_image(
        &self,
        info: ImageInfo,
        bytes: Bytes,
        owner: ImageOwner,
        actor: AdminActor,
    ) -> Result<Image, UploadError> {
        let image = Image {
            id: ImageId::of(&bytes),
            kind: info.kind,
            width: info.width,
            height: info.height,
            bytes,
        };
        let now = self.0.clock.now();
        let summary = format!("{}, {} bytes", image.kind, image.bytes.len());
        let logged = self.admin_action(actor, ("IMAGE_UPLOADED", "image", image.id.as_str()));
        let logged = AdminAction { summary, ..logged };
        let is_of_fan = owner == ImageOwner::Fan;
        let written = self.0.db.write(move |tx| {
            if is_of_fan {
                count_upload(tx, actor, now)?;
            }
            let is_new = store::image_insert(tx, &image, (actor.admin_id, is_of_fan), now)?;
            if is_new && !is_of_fan {
                admin_log::insert(tx, &logged)?;
            }
            Ok(image.clone())
        });
        written.await
    }

    pub async fn get_image(&self, id: ImageId) -> DbResult<Option<Image>> {
        self.0.db.read(move |tx| store::image_find(tx, &id)).await
    }
}

/// Refuses what is too much for an hour. A clock that was set back begins no new hour.
fn count_upload(tx: &mut Tx<'_>, actor: AdminActor, now: Timestamp) -> Result<(), UploadError> {
    let (since, uploads) = fan_store::uploads_lock(tx, actor.admin_id, now)?;
    let (since, uploads) = match now >= since + HOUR {
        true => (now, 0),
        false => (since, uploads),
    };
    if uploads >= FAN_UPLOADS_MAX {
        let left = (since + HOUR).duration_since(now);
        let retry_after = Duration::try_from(left).unwrap_or(HOUR);
        return Err(UploadError::TooMany { retry_after });
    }
    Ok(fan_store::uploads_set(tx, actor.admin_id, (since, uploads + 1))?)
}
