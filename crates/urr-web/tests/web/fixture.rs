//! A site of a few files, an API in place of the gateway's, and requests to both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;
use urr_kernel::Clock;
use urr_web::{BuiltFile, PageApi, ProviderScripts, Site, WebPages, WebSettings};

pub const EVENT: &str = "0198b2f0-0000-7000-8000-000000000001";

const ROUTES: &str = r#"{ "version": 1, "notFound": { "ko": "404.html", "en": "en/404.html" },
    "routes": [
        { "pattern": "/", "shells": { "ko": "index.html", "en": "en.html" } },
        { "pattern": "/events", "shells": { "ko": "events.html", "en": "en/events.html" } },
        { "pattern": "/events/{id}", "shells": { "ko": "events/_.html", "en": "en/events/_.html" } },
        { "pattern": "/events/new", "shells": { "ko": "events/new.html", "en": "events/new.html" } }
    ], "queueFont": "_app/immutable/queue.woff2" }"#;
const KOREAN: &str = "<!doctype html><html lang=\"ko\"><head><title>URR</title></head>\
    <body><script>start()</script></body></html>";
const ENGLISH: &str = "<!doctype html><html lang=\"en\"><head><title>URR</title></head>\
    <body><script>start()</script></body></html>";

const fn file(path: &'static str, text: &'static str) -> BuiltFile {
    BuiltFile { path, plain: text.as_bytes(), brotli: None, gzip: None }
}

pub const FILES: &[BuiltFile] = &[
    file("/routes.json", ROUTES),
    BuiltFile { gzip: Some(b"gzip"), ..file("/index.html", KOREAN) },
    file("/en.html", ENGLISH),
    file("/events.html", KOREAN),
    file("/en/events.html", ENGLISH),
    file("/events/_.html", KOREAN),
    file("/en/events/_.html", ENGLISH),
    file("/events/new.html", "<html lang=\"ko\"><head></head><body>새 공연</body></html>"),
    file("/404.html", "<html lang=\"ko\"><head></head><body>없음</body></html>"),
    file("/en/404.html", "<html lang=\"en\"><head></head><body>Not here.</body></html>"),
    BuiltFile { brotli: Some(b"br"), ..file("/_app/immutable/start.js", "start") },
    file("/_app/immutable/queue.woff2", "figures"),
    file("/robots.txt", "User-agent: *"),
];

pub fn settings() -> WebSettings {
    WebSettings {
        public_url: None,
        seen_ttl: Duration::from_secs(600),
        hold_ttl: Duration::from_secs(300),
        has_sandbox: true,
    }
}

/// The pages with an API, and how often that was asked.
pub struct TestPages {
    router: Router,
    pub asked: Arc<AtomicU32>,
}

/// A response that was read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
    /// As sent.
    pub bytes: usize,
}

impl TestPages {
    pub fn new(files: &[BuiltFile], api: Router) -> TestPages {
        TestPages::with_settings(settings(), files, api)
    }

    pub fn without_sandbox(files: &[BuiltFile], api: Router) -> TestPages {
        TestPages::with_settings(WebSettings { has_sandbox: false, ..settings() }, files, api)
    }

    pub fn with_settings(settings: WebSettings, files: &[BuiltFile], api: Router) -> TestPages {
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        let api = api.layer(axum::middleware::map_request(move |request: Request| {
            counter.fetch_add(1, Ordering::SeqCst);
            std::future::ready(request)
        }));
        let site = Site::new(files, ProviderScripts::default())
            .expect("a test request and its answer are sound");
        let pages = WebPages::new(site, PageApi::new(api), settings, Clock::System);
        TestPages { router: pages.router(), asked }
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send_body(method, path, headers, "").await
    }

    pub async fn send_form(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        form: &'static str,
    ) -> Answer {
        self.send_body(Method::POST, path, headers, form).await
    }

    async fn send_body(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &'static str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "urr.kr");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request =
            request.body(Body::from(body)).expect("a test request and its answer are sound");
        let Ok(response) = self.router.clone().oneshot(request).await;
        Answer::read(response).await
    }

    /// As a browser asks for a page.
    pub async fn page(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[("accept", "text/html,*/*")]).await
    }

    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Answer {
    async fn read(response: Response) -> Answer {
        let (parts, body) = response.into_parts();
        let body =
            body.collect().await.expect("a test request and its answer are sound").to_bytes();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            bytes: body.len(),
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("a test request and its answer are sound"))
    }
}
