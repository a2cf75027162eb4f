//! The built site: its files, and which shell answers which path.
//!
//! `routes.json`, which the build of the pages writes, lists the routes with their shells by
//! language. A shell brings the preloads of its page, so that the page is usable one round trip
//! later.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use crate::content_policy::{ProviderScripts, content_policy};
use crate::language::PageLanguage;
use crate::preview::{Preview, PreviewKind};
use crate::site_files::{BuiltFile, REVALIDATED, SiteFile};

const MANIFEST: &str = "/routes.json";
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The language of a page depends on these, and its compression on the last.
const VARIES: HeaderValue = HeaderValue::from_static("accept-language, cookie, accept-encoding");
/// The page of a program that was built without pages.
const NOT_BUILT: BuiltFile = BuiltFile {
    path: "/not_built.html",
    plain: include_bytes!("../assets/not_built.html"),
    brotli: None,
    gzip: None,
};

/// `routes.json` as the build of the pages writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteManifest {
    not_found: ShellPaths,
    routes: Vec<ManifestRoute>,
    /// The figures of the display face, for the waiting page.
    queue_font: Option<String>,
}

#[derive(Deserialize)]
struct ManifestRoute {
    /// `{name}` stands for one segment.
    pattern: String,
    shells: ShellPaths,
}

/// The file of a page in each language.
#[derive(Clone, Deserialize, PartialEq, Eq)]
struct ShellPaths {
    ko: String,
    en: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("web/build/routes.json cannot be read")]
    Manifest(#[from] serde_json::Error),
    #[error("web/build has no file {0}, which its routes.json names")]
    MissingShell(String),
}

/// The files and pages of a built site.
pub struct Site {
    files: HashMap<&'static str, SiteFile>,
    pages: Vec<SitePage>,
    not_found: SitePage,
    queue_font: Option<&'static str>,
}

/// What the site has at a path.
pub enum SiteAnswer<'a> {
    File(&'a SiteFile),
    /// The page and the segments that its pattern names.
    Page(&'a SitePage, Vec<&'a str>),
    /// The same path without the slash at its end.
    Redirect(String),
    Unknown,
}

impl Site {
    /// Prepares what is sent. Without files every path has the page that says how to build them.
    pub fn new(built: &[BuiltFile], providers: ProviderScripts) -> Result<Site, SiteError> {
        let Some(manifest) = built.iter().find(|file| file.path == MANIFEST) else {
            return Ok(Site::not_built());
        };
        let RouteManifest { not_found, routes, queue_font } =
            serde_json::from_slice(manifest.plain)?;
        let find = |path: &String| {
            let shell = built.iter().find(|file| file.path.strip_prefix('/') == Some(path));
            shell.ok_or_else(|| SiteError::MissingShell(path.clone()))
        };
        let page = |pattern: &str, shells: &ShellPaths, status| {
            let files = [find(&shells.ko)?, find(&shells.en)?];
            Ok::<_, SiteError>(SitePage::new(pattern, files, status, providers))
        };
        let pages = routes.iter().map(|route| page(&route.pattern, &route.shells, StatusCode::OK));
        let shells = || routes.iter().map(|route| &route.shells).chain([&not_found]);
        let is_file = |file: &&BuiltFile| {
            let name = &file.path[1..];
            file.path != MANIFEST && !shells().any(|shells| shells.ko == name || shells.en == name)
        };
        let files = built.iter().filter(is_file).map(|file| (file.path, SiteFile::new(file)));
        let queue_font = queue_font.as_ref().map(find).transpose()?;
        Ok(Site {
            queue_font: queue_font.map(|file| file.path),
            pages: pages.collect::<Result<_, _>>()?,
            not_found: page("/{unknown}", &not_found, StatusCode::NOT_FOUND)?,
            files: files.collect(),
        })
    }

    fn not_built() -> Site {
        let files = [&NOT_BUILT, &NOT_BUILT];
        let page =
            |pattern, status| SitePage::new(pattern, files, status, ProviderScripts::default());
        Site {
            files: HashMap::new(),
            queue_font: None,
            pages: vec![page("/", StatusCode::OK)],
            not_found: page("/{unknown}", StatusCode::NOT_FOUND),
        }
    }

    pub fn find<'a>(&'a self, path: &'a str) -> SiteAnswer<'a> {
        if let Some(file) = self.files.get(path) {
            return SiteAnswer::File(file);
        }
        // `/community/write` is no `/community/{id}`.
        let page = |path| {
            let matching =
                self.pages.iter().filter_map(|page| Some((page, page.pattern.parameters(path)?)));
            matching.min_by_key(|(_, parameters)| parameters.len())
        };
        if let Some((page, parameters)) = page(path) {
            return SiteAnswer::Page(page, parameters);
        }
        match path.strip_suffix('/').filter(|shorter| !shorter.ends_with('/')) {
            Some(shorter) if page(shorter).is_some() => SiteAnswer::Redirect(shorter.to_owned()),
            _ => SiteAnswer::Unknown,
        }
    }

    /// Where the font of the waiting page is, if the pages were built.
    pub fn queue_font(&self) -> Option<&'static str> {
        self.queue_font
    }

    pub fn not_found(&self, language: PageLanguage) -> Response {
        self.not_found.respond(language, &HeaderMap::new())
    }
}

/// A path with parameters, such as `/events/{id}`.
#[derive(Debug)]
struct PathPattern(&'static str);

impl PathPattern {
    /// The segments that stand for parameters, if the path matches.
    fn parameters<'a>(&self, path: &'a str) -> Option<Vec<&'a str>> {
        let mut found = Vec::new();
        let mut segments = path.split('/');
        for expected in self.0.split('/') {
            let segment = segments.next()?;
            match expected.starts_with('{') {
                true if segment.is_empty() => return None,
                true => found.push(segment),
                false if expected != segment => return None,
                false => {}
            }
        }
        segments.next().is_none().then_some(found)
    }
}

/// A page of the site in both languages.
pub struct SitePage {
    pattern: PathPattern,
    status: StatusCode,
    korean: Shell,
    english: Shell,
}

struct Shell {
    language: PageLanguage,
    file: SiteFile,
    html: String,
    policy: HeaderValue,
}

impl SitePage {
    fn new(
        pattern: &str,
        [korean, english]: [&BuiltFile; 2],
        status: StatusCode,
        providers: ProviderScripts,
    ) -> SitePage {
        SitePage {
            // Routes live as long as the program, and metrics name them.
            pattern: PathPattern(String::from(pattern).leak()),
            status,
            korean: Shell::new(korean, PageLanguage::Korean, providers),
            english: Shell::new(english, PageLanguage::English, providers),
        }
    }

    /// The page's name in the metrics.
    pub fn label(&self) -> &'static str {
        self.pattern.0
    }

    /// What a link to the page shows elsewhere, if that depends on the catalogue.
    pub fn preview(&self) -> Option<PreviewKind> {
        match self.pattern.0 {
            "/events/{id}" => Some(PreviewKind::Event),
            "/artists/{id}" => Some(PreviewKind::Artist),
            _ => None,
        }
    }

    pub fn respond(&self, language: PageLanguage, headers: &HeaderMap) -> Response {
        let shell = self.shell(language);
        let mut response = shell.with_headers(shell.file.respond(headers));
        if response.status() == StatusCode::OK {
            *response.status_mut() = self.status;
        }
        response
    }

    /// The page with title, description and picture for link previews. A page about something that
    /// does not exist has the status 404.
    pub fn respond_with_preview(
        &self,
        language: PageLanguage,
        preview: &Preview,
        address: &str,
    ) -> Response {
        let shell = self.shell(language);
        let (html, status) = match preview {
            Preview::Found(facts) => (facts.add_to(&shell.html, address), self.status),
            Preview::Missing => (shell.html.clone(), StatusCode::NOT_FOUND),
        };
        let mut response = shell.with_headers(Response::new(Body::from(html)));
        *response.status_mut() = status;
        response.headers_mut().insert(CACHE_CONTROL, REVALIDATED);
        response
    }

    fn shell(&self, language: PageLanguage) -> &Shell {
        language.pick(&self.korean, &self.english)
    }
}

impl Shell {
    fn new(file: &BuiltFile, language: PageLanguage, providers: ProviderScripts) -> Shell {
        let html = String::from_utf8_lossy(file.plain).into_owned();
        Shell {
            language,
            file: SiteFile::new(file),
            policy: content_policy(&html, providers),
            html,
        }
    }

    fn with_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HTML);
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(self.language.tag()));
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(VARY, VARIES);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_segments() {
        let pattern = PathPattern("/events/{id}/seats");
        assert_eq!(pattern.parameters("/events/7/seats"), Some(vec!["7"]));
        for other in ["/events//seats", "/events/7", "/events/7/seats/", "/x/7/seats", "/", ""] {
            assert_eq!(pattern.parameters(other), None, "{other}");
        }
        assert_eq!(PathPattern("/").parameters("/"), Some(vec![]));
        assert_eq!(PathPattern("/").parameters("//"), None);
    }
}
