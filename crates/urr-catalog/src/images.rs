//! Images: checked by their content, named by its hash, and stored once.

pub mod content;
pub mod http;
mod store;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use urr_kernel::hex;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError};

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

#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error(transparent)]
    Invalid(#[from] InvalidImage),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CatalogService {
    /// Stores an upload, if it is an image.
    pub async fn upload_image(
        &self,
        bytes: Bytes,
        actor: AdminActor,
    ) -> Result<Image, UploadError> {
        let info = inspect(&bytes)?;
        Ok(self.store_image(info, bytes, actor).await?)
    }

    /// Stores an SVG drawing of our own code. Uploads of SVG are refused: they can hold scripts.
    pub(crate) async fn store_drawing(
        &self,
        svg: String,
        (width, height): (u32, u32),
        actor: AdminActor,
    ) -> DbResult<Image> {
        let info = ImageInfo { kind: ImageKind::Svg, width, height };
        self.store_image(info, svg.into(), actor).await
    }

    /// It needs no new revision: readers cannot see an image before an event or artist names it.
    async fn store_image(
        &self,
        info: ImageInfo,
        bytes: Bytes,
        actor: AdminActor,
    ) -> DbResult<Image> {
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
        let written = self.0.db.write(move |tx| {
            if store::image_insert(tx, &image, actor.admin_id, now)? {
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
