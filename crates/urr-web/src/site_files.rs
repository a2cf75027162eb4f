//! A file of the site as it is sent: its kind, how long it may be kept, and its compressed forms.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use urr_service::ETag;

/// A file of `web/build` with its compressed forms.
#[derive(Clone, Copy, Debug)]
pub struct BuiltFile {
    /// From the root of the site.
    pub path: &'static str,
    pub plain: &'static [u8],
    pub brotli: Option<&'static [u8]>,
    pub gzip: Option<&'static [u8]>,
}

/// Reads the files of a built site. The program keeps them until it ends, as it keeps its own.
pub fn read_built_files(folder: &Path) -> io::Result<Vec<BuiltFile>> {
    let mut contents = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let inside = path.strip_prefix(folder).map_err(io::Error::other)?;
            contents.insert(format!("/{}", inside.display()), fs::read(&path)?);
        }
    }
    let contents: BTreeMap<&'static str, &'static [u8]> =
        contents.into_iter().map(|(path, content)| (&*path.leak(), &*content.leak())).collect();
    let encoded = |path: &str, extension| contents.get(&*format!("{path}.{extension}")).copied();
    let is_plain = |path: &str| {
        let form = path.strip_suffix(".br").or_else(|| path.strip_suffix(".gz"));
        form.is_none_or(|plain| !contents.contains_key(plain))
    };
    let files = contents.iter().filter(|(path, _)| is_plain(path)).map(|(path, plain)| BuiltFile {
        path,
        plain,
        brotli: encoded(path, "br"),
        gzip: encoded(path, "gz"),
    });
    Ok(files.collect())
}

/// Vite writes a hash of the content into the names of these files.
const IMMUTABLE: &str = "/_app/immutable/";
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
pub const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

#[derive(Debug)]
pub struct SiteFile {
    content_type: &'static str,
    plain: Bytes,
    brotli: Option<Bytes>,
    gzip: Option<Bytes>,
    /// `None` for a file that never changes.
    tag: Option<ETag>,
}

impl SiteFile {
    pub fn new(file: &BuiltFile) -> SiteFile {
        let is_immutable = file.path.starts_with(IMMUTABLE);
        SiteFile {
            content_type: content_type(file.path),
            plain: Bytes::from_static(file.plain),
            brotli: file.brotli.map(Bytes::from_static),
            gzip: file.gzip.map(Bytes::from_static),
            tag: (!is_immutable).then(|| ETag::of_bytes(file.plain)),
        }
    }

    /// A file that the program makes itself, under a name that changes with its content.
    pub fn immutable(content_type: &'static str, content: String) -> SiteFile {
        SiteFile {
            content_type,
            gzip: Some(gzip(content.as_bytes())),
            brotli: None,
            plain: content.into(),
            tag: None,
        }
    }

    pub fn respond(&self, headers: &HeaderMap) -> Response {
        if let Some(tag) = self.tag.as_ref().filter(|tag| tag.matches(headers)) {
            let mut response = tag.not_modified();
            response.headers_mut().insert(CACHE_CONTROL, REVALIDATED);
            return response;
        }
        let accepted = AcceptedEncodings::of(headers);
        let (body, encoding) = match (&self.brotli, &self.gzip) {
            (Some(brotli), _) if accepted.brotli => (brotli, Some("br")),
            (_, Some(gzip)) if accepted.gzip => (gzip, Some("gzip")),
            _ => (&self.plain, None),
        };
        let mut response = Response::new(Body::from(body.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if self.brotli.is_some() || self.gzip.is_some() {
            headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(encoding) = encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        match &self.tag {
            Some(tag) => {
                headers.insert(CACHE_CONTROL, REVALIDATED);
                headers.insert(ETAG, tag.header());
            }
            None => {
                headers.insert(CACHE_CONTROL, FOR_EVER);
            }
        }
        response
    }
}

/// Which compressed forms a client reads. A form with the weight 0 is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptedEncodings {
    pub brotli: bool,
    pub gzip: bool,
}

impl AcceptedEncodings {
    pub fn of(headers: &HeaderMap) -> AcceptedEncodings {
        let mut accepted = AcceptedEncodings::default();
        let values =
            headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for offer in values.flat_map(|value| value.split(',')) {
            let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
            let weight = weight.trim().strip_prefix("q=").map(str::trim);
            let is_accepted =
                weight.is_none_or(|weight| weight.parse().is_ok_and(|q: f32| q > 0.0));
            match name.trim() {
                "br" => accepted.brotli = is_accepted,
                "gzip" => accepted.gzip = is_accepted,
                _ => {}
            }
        }
        accepted
    }
}

/// The compressed form of a page that the program has put together.
pub fn gzip(content: &[u8]) -> Bytes {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("memory takes it");
    encoder.finish().expect("memory takes it").into()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "gif" => "image/gif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        "xml" => "application/xml",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: BuiltFile = BuiltFile {
        path: "/_app/immutable/a.js",
        plain: b"plain",
        brotli: Some(b"brotli"),
        gzip: Some(b"gzip"),
    };

    fn encoding(file: &BuiltFile, accepted: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
        let response = SiteFile::new(file).respond(&headers);
        let encoding = response.headers().get(CONTENT_ENCODING);
        encoding.map_or("", |encoding| encoding.to_str().unwrap()).to_owned()
    }

    #[test]
    fn a_client_gets_the_smallest_form_that_it_reads() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip", "gzip"),
            ("br;q=0, gzip;q=0.5", "gzip"),
            ("br;q=0,gzip;q=0.0", ""),
            ("identity", ""),
            ("brx, x-gzip", ""),
            ("gzip;q=x", ""),
        ] {
            assert_eq!(encoding(&SCRIPT, accepted), expected, "{accepted}");
        }
        let only_gzip = BuiltFile { brotli: None, ..SCRIPT };
        assert_eq!(encoding(&only_gzip, "br, gzip"), "gzip");
    }

    #[test]
    fn a_hashed_name_is_kept_for_ever_and_any_other_is_asked_for_again() {
        let none = HeaderMap::new();
        let response = SiteFile::new(&SCRIPT).respond(&none);
        assert_eq!(response.headers()[CACHE_CONTROL], FOR_EVER);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert_eq!(response.headers()[VARY], "accept-encoding");
        assert!(!response.headers().contains_key(ETAG));
        let manifest = BuiltFile { path: "/manifest.webmanifest", ..SCRIPT };
        let response = SiteFile::new(&manifest).respond(&none);
        assert_eq!(response.headers()[CACHE_CONTROL], REVALIDATED);
        let mut known = HeaderMap::new();
        known.insert("if-none-match", response.headers()[ETAG].clone());
        assert_eq!(SiteFile::new(&manifest).respond(&known).status(), 304);
        let changed = BuiltFile { plain: b"other", ..manifest };
        assert_eq!(SiteFile::new(&changed).respond(&known).status(), 200);
    }
    #[test]
    fn a_folder_has_the_files_that_the_build_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("_app/immutable");
        fs::create_dir_all(&inner).unwrap();
        for (name, content) in [("a.js", "plain"), ("a.js.br", "brotli"), ("b.gz", "no form")] {
            fs::write(inner.join(name), content).unwrap();
        }
        let files = read_built_files(folder.path()).unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path).collect();
        assert_eq!(paths, ["/_app/immutable/a.js", "/_app/immutable/b.gz"]);
        assert_eq!((files[0].plain, files[0].brotli), (&b"plain"[..], Some(&b"brotli"[..])));
        assert!(read_built_files(&folder.path().join("missing")).is_err());
    }
}
