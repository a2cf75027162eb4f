//! Lists the files of `web/build`, which the program carries, or none if the pages were not built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "cargo names the folders of a build script so")]
fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let build = root.join("../../web/build");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    // A path that does not exist would run this script in every build. So `make web` touches this
    // file when it has made the first build, and later ones are noticed in the folder.
    if build.join("routes.json").is_file() {
        println!("cargo::rerun-if-changed={}", build.display());
        collect(&build, &mut files);
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files.iter().filter(|file| !is_encoded(file, &files)) {
        let path = file.strip_prefix(&build).expect("it was found there").display();
        let encoded = |extension: &str| {
            let encoded = PathBuf::from(format!("{}.{extension}", file.display()));
            match files.contains(&encoded) {
                true => format!("Some(include_bytes!({encoded:?}))"),
                false => "None".to_owned(),
            }
        };
        let (brotli, gzip) = (encoded("br"), encoded("gz"));
        writeln!(
            list,
            "    BuiltFile {{ path: \"/{path}\", plain: include_bytes!({file:?}), \
             brotli: {brotli}, gzip: {gzip} }},"
        )
        .expect("a text takes it");
    }
    list.push(']');
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("built_files.rs"), list).expect("the output folder can be written");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

/// Whether a file is the compressed form of another one.
fn is_encoded(file: &Path, files: &[PathBuf]) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("br" | "gz")) && files.contains(&file.with_extension(""))
}
