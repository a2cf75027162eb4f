//! QR codes as pictures.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use qrcodegen::{QrCode, QrCodeEcc};

/// Modules of white around the code. The standard asks for four.
const QUIET: usize = 4;

/// Pixels of a module in a PNG: a code of a ticket is about 400 pixels wide.
const PIXELS: usize = 8;

/// The text is too long for a QR code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is too long for a QR code")]
pub struct QrError;

/// A QR code with its quiet zone, row by row from the top.
pub struct QrPicture {
    size: usize,
    dark: Vec<bool>,
}

impl QrPicture {
    /// Encodes a text with medium error correction, as the pages do.
    pub fn encode(text: &str) -> Result<QrPicture, QrError> {
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).map_err(|_| QrError)?;
        let modules = usize::try_from(code.size()).expect("a code has a size");
        let size = modules + 2 * QUIET;
        let mut dark = vec![false; size * size];
        for (y, row) in (0..code.size()).zip(QUIET..) {
            for (x, column) in (0..code.size()).zip(QUIET..) {
                dark[row * size + column] = code.get_module(x, y);
            }
        }
        Ok(QrPicture { size, dark })
    }

    /// The width and height in modules, with the quiet zone.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The dark modules as runs of a row: column, row and length.
    pub fn dark_runs(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.dark.chunks(self.size).enumerate().flat_map(|(y, row)| {
            let mut runs = Vec::new();
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if run[0] {
                    runs.push((x, y, run.len()));
                }
                x += run.len();
            }
            runs
        })
    }

    /// Dark on light, whatever is behind it: scanners need that.
    pub fn svg(&self) -> String {
        let size = self.size;
        let mut path = String::new();
        for (x, y, length) in self.dark_runs() {
            write!(path, "M{x} {y}h{length}v1h-{length}z").expect("a text takes it");
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" \
             shape-rendering=\"crispEdges\"><rect width=\"{size}\" height=\"{size}\" \
             fill=\"#fff\"/><path d=\"{path}\"/></svg>"
        )
    }

    /// A PNG of one bit per pixel.
    pub fn png(&self) -> Vec<u8> {
        let width = self.size * PIXELS;
        let side = u32::try_from(width).expect("a code is at most 177 modules wide").to_be_bytes();
        let mut png = vec![0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
        // One bit, grayscale, deflated, filtered by rows, not interlaced.
        let header = [&side[..], &side[..], &[1, 0, 0, 0, 0][..]].concat();
        chunk(&mut png, *b"IHDR", &header);
        chunk(&mut png, *b"IDAT", &deflate(&self.pixel_rows()));
        chunk(&mut png, *b"IEND", &[]);
        png
    }

    /// Each row with its filter in front, which is none. A set bit is white.
    fn pixel_rows(&self) -> Vec<u8> {
        let mut pixels = Vec::new();
        for row in self.dark.chunks(self.size) {
            let bits: Vec<bool> =
                row.iter().flat_map(|dark| std::iter::repeat_n(!dark, PIXELS)).collect();
            let packed = bits.chunks(8).map(|eight| {
                eight.iter().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit)) << (8 - eight.len())
            });
            let line: Vec<u8> = std::iter::once(0).chain(packed).collect();
            for _ in 0..PIXELS {
                pixels.extend_from_slice(&line);
            }
        }
        pixels
    }
}

fn chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).expect("a picture of a code is small");
    png.extend_from_slice(&length.to_be_bytes());
    let checked = [&kind[..], data].concat();
    png.extend_from_slice(&checked);
    let mut crc = flate2::Crc::new();
    crc.update(&checked);
    png.extend_from_slice(&crc.sum().to_be_bytes());
}

/// Compresses with the header of zlib, which PNG and PDF expect.
pub fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_modules_of_the_code_and_white_around_them() {
        let text = "URR1.01980000-0000-7000-8000-000000000001.c2lnbmF0dXJl";
        let picture = QrPicture::encode(text).unwrap();
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        assert_eq!(picture.size(), usize::try_from(code.size()).unwrap() + 8);
        let dark: usize = picture.dark_runs().map(|(_, _, length)| length).sum();
        let all = || (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y)));
        assert_eq!(dark, all().filter(|(x, y)| code.get_module(*x, *y)).count());
        // The corner of the first finder pattern.
        assert_eq!(picture.dark_runs().next(), Some((4, 4, 7)));
    }

    #[test]
    fn a_png_unpacks_to_its_rows() {
        let picture = QrPicture::encode("URR").unwrap();
        let png = picture.png();
        let rows = picture.pixel_rows();
        assert_eq!(rows.len(), picture.size() * 8 * (1 + picture.size()));
        let data = png.windows(4).position(|at| at == b"IDAT").unwrap() + 4;
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::ZlibDecoder::new(&png[data..]);
        std::io::Read::read_to_end(&mut reader, &mut unpacked).unwrap();
        assert_eq!(unpacked, rows);
        assert_eq!(&png[16..24], [0, 0, 0, 232, 0, 0, 0, 232], "29 modules of 8 pixels");
    }

    #[test]
    fn a_text_that_no_code_can_hold_is_an_error() {
        assert_eq!(QrPicture::encode(&"x".repeat(5_000)).err(), Some(QrError));
    }
}
