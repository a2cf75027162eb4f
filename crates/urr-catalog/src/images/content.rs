//! The kind and size of an image, decided by its bytes and never by the declared type.

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

impl ImageKind {
    pub const fn content_type(self) -> &'static str {
        match self {
            ImageKind::Png => "image/png",
            ImageKind::Jpeg => "image/jpeg",
            ImageKind::Webp => "image/webp",
            ImageKind::Gif => "image/gif",
            ImageKind::Svg => "image/svg+xml",
        }
    }
}

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
    Dimensions,
}

/// Checks the bytes of an upload.
pub fn inspect(bytes: &[u8]) -> Result<ImageInfo, InvalidImage> {
    if bytes.is_empty() {
        return Err(InvalidImage::Empty);
    }
    if bytes.len() > IMAGE_BYTES_MAX {
        return Err(InvalidImage::TooLarge);
    }
    let (kind, size) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (ImageKind::Png, png_size(bytes))
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        (ImageKind::Jpeg, jpeg_size(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        (ImageKind::Gif, gif_size(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        (ImageKind::Webp, webp_size(bytes))
    } else {
        return Err(InvalidImage::UnknownKind);
    };
    let sides = 1..=SIDE_MAX;
    match size {
        Some((width, height)) if sides.contains(&width) && sides.contains(&height) => {
            Ok(ImageInfo { kind, width, height })
        }
        _ => Err(InvalidImage::Dimensions),
    }
}

fn big_endian_32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn big_endian_16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)))
}

fn little_endian_16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)))
}

fn little_endian_24(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = *bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let has_header = bytes.get(12..16) == Some(b"IHDR");
    let has_end = bytes.get(bytes.len().checked_sub(8)?..)?.starts_with(b"IEND");
    if !has_header || !has_end {
        return None;
    }
    Some((big_endian_32(bytes, 16)?, big_endian_32(bytes, 20)?))
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.len() > 13).then_some(())?;
    Some((little_endian_16(bytes, 6)?, little_endian_16(bytes, 8)?))
}

/// Walks the segments to the one that starts a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Fill bytes before a marker, and markers without content.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big_endian_16(bytes, at + 7)?, big_endian_16(bytes, at + 5)?));
            }
            // The picture itself, or its end, before any frame.
            0xda | 0xd9 => return None,
            _ => {
                let length = usize::try_from(big_endian_16(bytes, at + 2)?).ok()?;
                at += 2 + length.max(2);
            }
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            (bytes.get(23..26)? == b"\x9d\x01\x2a").then_some(())?;
            Some((little_endian_16(bytes, 26)? & 0x3fff, little_endian_16(bytes, 28)? & 0x3fff))
        }
        b"VP8L" => {
            (*bytes.get(20)? == 0x2f).then_some(())?;
            let bits = u32::from_le_bytes(*bytes.get(21..)?.first_chunk()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little_endian_24(bytes, 24)? + 1, little_endian_24(bytes, 27)? + 1)),
        _ => None,
    }
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
            assert_eq!(inspect(&bytes), Err(InvalidImage::Dimensions));
        }
        // Cut off everywhere: nothing panics, nothing passes.
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\x08\x01\xe0\x02\x80";
        for length in 3..jpeg.len() {
            assert_eq!(inspect(&jpeg[..length]), Err(InvalidImage::Dimensions), "{length}");
        }
        assert_eq!(inspect(b"\xff\xd8\xff\xda\0\x02"), Err(InvalidImage::Dimensions));
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
