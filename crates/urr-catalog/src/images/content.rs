//! The kind and size of an image, decided by its bytes and never by the declared type.

use urr_storage::storable_enum;

pub const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
const SIDE_MAX: u32 = 12_000;

/// The kinds of images that may be uploaded, and SVG, which only our own code makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    Png,
    Jpeg,
    Webp,
    Gif,
    /// It can hold scripts, so uploads of it are refused.
    Svg,
}

// The names are content types.
storable_enum!(ImageKind {
    Png => "image/png",
    Jpeg => "image/jpeg",
    Webp => "image/webp",
    Gif => "image/gif",
    Svg => "image/svg+xml",
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    pub kind: ImageKind,
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidImage {
    #[error("The image is empty.")]
    Empty,
    #[error("The image is larger than 5 MB.")]
    TooLarge,
    #[error("This is not an image. It must be PNG, JPEG, WebP or GIF.")]
    UnknownKind,
    #[error("The image is damaged, or a side has more than {SIDE_MAX} pixels.")]
    Damaged,
}

/// Checks the bytes of an upload.
pub fn inspect(bytes: &[u8]) -> Result<ImageInfo, InvalidImage> {
    if bytes.is_empty() {
        return Err(InvalidImage::Empty);
    }
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(InvalidImage::TooLarge);
    }
    let kind = kind_of(bytes).ok_or(InvalidImage::UnknownKind)?;
    let size = imagesize::blob_size(bytes).map_err(|_| InvalidImage::Damaged)?;
    let side =
        |length: usize| u32::try_from(length).ok().filter(|length| (1..=SIDE_MAX).contains(length));
    let (width, height) = (side(size.width), side(size.height));
    let (Some(width), Some(height)) = (width, height) else { return Err(InvalidImage::Damaged) };
    match kind == ImageKind::Png && !is_complete_png(bytes) {
        true => Err(InvalidImage::Damaged),
        false => Ok(ImageInfo { kind, width, height }),
    }
}

fn kind_of(bytes: &[u8]) -> Option<ImageKind> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageKind::Png)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some(ImageKind::Jpeg)
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some(ImageKind::Gif)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some(ImageKind::Webp)
    } else {
        None
    }
}

/// Whether a PNG has its first and its last chunk: an upload that was cut off has not.
fn is_complete_png(bytes: &[u8]) -> bool {
    let end = bytes.len().checked_sub(8).and_then(|end| bytes.get(end..));
    bytes.get(12..16) == Some(b"IHDR") && end.is_some_and(|end| end.starts_with(b"IEND"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(b"\x08\x02\0\0\0....\0\0\0\0IEND\xaeB`\x82");
        bytes
    }

    fn info(kind: ImageKind, width: u32, height: u32) -> Result<ImageInfo, InvalidImage> {
        Ok(ImageInfo { kind, width, height })
    }

    #[test]
    fn d_19_the_kind_is_decided_by_the_bytes() {
        assert_eq!(inspect(&png(640, 480)), info(ImageKind::Png, 640, 480));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08\x01\xe0\x02\x80\x01\x01\x11\0";
        assert_eq!(inspect(jpeg), info(ImageKind::Jpeg, 640, 480));
        assert_eq!(inspect(b"GIF89a\x80\x02\xe0\x01\0\0\0;"), info(ImageKind::Gif, 640, 480));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        assert_eq!(inspect(lossy), info(ImageKind::Webp, 640, 480));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        assert_eq!(inspect(extended), info(ImageKind::Webp, 640, 480));
        let bits: u32 = 639 | 479 << 14;
        let mut lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".to_vec();
        lossless.extend(bits.to_le_bytes());
        assert_eq!(inspect(&lossless), info(ImageKind::Webp, 640, 480));
    }

    #[test]
    fn d_19_what_is_no_picture_is_refused() {
        assert_eq!(inspect(b""), Err(InvalidImage::Empty));
        let vector = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
        for bytes in [&vector[..], b"<html>", b"MZ\x90", b"%PDF-1.7", b"GIF90a......."] {
            assert_eq!(inspect(bytes), Err(InvalidImage::UnknownKind));
        }
        for bytes in [png(0, 480), png(640, 12_001), png(u32::MAX, 1), png(1, 1)[..20].to_vec()] {
            assert_eq!(inspect(&bytes), Err(InvalidImage::Damaged));
        }
        // Cut off everywhere: nothing panics, nothing passes.
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08\x01\xe0\x02\x80";
        for length in 3..jpeg.len() {
            assert_eq!(inspect(&jpeg[..length]), Err(InvalidImage::Damaged), "{length}");
        }
        assert_eq!(inspect(b"\xff\xd8\xff\xda\0\x02"), Err(InvalidImage::Damaged));
    }

    #[test]
    fn f_10_a_picture_may_have_five_megabytes() {
        let sized = |length: usize| {
            let mut bytes = png(640, 480);
            let end = bytes.split_off(bytes.len() - 12);
            bytes.resize(length - end.len(), 0);
            bytes.extend(end);
            bytes
        };
        assert!(inspect(&sized(IMAGE_BYTES_MAX)).is_ok());
        assert_eq!(inspect(&sized(IMAGE_BYTES_MAX + 1)), Err(InvalidImage::TooLarge));
    }
}
