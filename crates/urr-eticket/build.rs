//! Packs the fonts of the pages into the program, for documents. Without them (the pages were not
//! built) the program makes no PDF.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// With TrueType outlines.
const FONTS: &str = "../../web/node_modules/pretendard/dist/public/static/alternative";

#[expect(clippy::disallowed_methods, reason = "cargo names the folders of a build script so")]
fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["Regular", "Bold"] {
        let font = root.join(FONTS).join(format!("Pretendard-{name}.ttf"));
        // A path that does not exist would run this script in every build. So the build of the pages
        // touches this file when it has installed the fonts.
        if font.is_file() {
            println!("cargo::rerun-if-changed={}", font.display());
        }
        let packed = fs::read(&font).map(|font| pack(&font)).unwrap_or_default();
        write(&out.join(format!("{name}.deflate")), &packed);
    }
}

fn pack(font: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(font).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).expect("the output folder can be written");
}
