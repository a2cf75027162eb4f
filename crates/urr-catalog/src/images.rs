//! Posters and portraits: checked by their content, named by it, stored once.

pub mod content;
pub mod http;
mod multipart;
mod store;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use urr_storage::StorageError;

use crate::CatalogService;
use crate::admin_log::store::audit_insert;
use crate::admin_log::{Actor, Deed};
use crate::images::content::{ImageInfo, ImageKind, InvalidImage, inspect};

/// The SHA-256 of a picture's bytes, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageId(String);

impl ImageId {
    fn of(bytes: &[u8]) -> ImageId {
        let digest = Sha256::digest(bytes);
        ImageId(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `None`: no picture can have this name.
    pub fn parse(text: &str) -> Option<ImageId> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| ImageId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where it is served.
    pub fn url(&self) -> String {
        format!("/api/image/{}", self.0)
    }
}

/// A stored picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub id: ImageId,
    pub content_type: String,
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
    /// Stores what somebody uploaded, if it is a picture.
    pub async fn upload_image(&self, bytes: Bytes, actor: Actor) -> Result<Image, UploadError> {
        let info = inspect(&bytes)?;
        Ok(self.store_image(info, bytes, actor).await?)
    }

    /// Stores a drawing of our own code. Nobody else's vector graphics are taken: they can hold
    /// scripts.
    pub(crate) async fn store_drawing(
        &self,
        svg: String,
        (width, height): (u32, u32),
        actor: Actor,
    ) -> Result<Image, StorageError> {
        let info = ImageInfo { kind: ImageKind::Svg, width, height };
        self.store_image(info, svg.into(), actor).await
    }

    /// Readers cannot see a picture before an event or artist names it: no new revision.
    async fn store_image(
        &self,
        info: ImageInfo,
        bytes: Bytes,
        actor: Actor,
    ) -> Result<Image, StorageError> {
        let image = Image {
            id: ImageId::of(&bytes),
            content_type: info.kind.content_type().to_owned(),
            width: info.width,
            height: info.height,
            bytes,
        };
        let now = self.clock.now();
        let deed = Deed { action: "IMAGE_UPLOADED", resource_type: "image" };
        let summary = format!("{}, {} bytes", image.content_type, image.bytes.len());
        let entry = self.audit_entry(&actor, deed, image.id.as_str(), &summary);
        self.db
            .write(move |tx| {
                if store::image_insert(tx, &image, actor.admin_id, now)? {
                    audit_insert(tx, &entry)?;
                }
                Ok(image.clone())
            })
            .await
    }

    pub async fn get_image(&self, id: ImageId) -> Result<Option<Image>, StorageError> {
        self.db.read(move |tx| store::image_find(tx, &id)).await
    }
}
