//! The pages: the built web application, and the pages that the program makes itself.
//!
//! `web/build` is compiled into the program (`build.rs`); without it every page says how to build
//! it. [`Site`] answers a path with a file or with the shell of its route. Made by the program are
//! the waiting page (`queue_page.rs`), because a million people load it at once, and the payment
//! window of the sandbox (`sandbox_window.rs`).
//!
//! Pages ask the API as the client itself would ([`PageApi`]), so the gateway's limits and checks
//! hold for them too. Deliberately absent: storage, business rules, other services' addresses.

mod content_policy;
mod language;
mod page_api;
mod preview;
mod queue_page;
mod sandbox_window;
mod site;
mod site_files;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use urr_kernel::Clock;
use urr_service::{RouteLabel, unknown_path};

pub use content_policy::ProviderScripts;
pub use page_api::PageApi;
pub use site::{Site, SiteError};
pub use site_files::{BuiltFile, read_built_files};

use crate::language::PageLanguage;
use crate::preview::Previews;
use crate::queue_page::QueuePages;
use crate::site::SiteAnswer;

/// The files of `web/build`, as they were when the program was compiled.
pub const BUILT_FILES: &[BuiltFile] = include!(concat!(env!("OUT_DIR"), "/built_files.rs"));

/// What pages depend on besides their files.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Where browsers find this site, such as `https://urr.example`; otherwise the `Host` decides.
    pub public_url: Option<String>,
    /// How long a place in line is kept for a user who is not seen.
    pub seen_ttl: Duration,
    /// How long chosen seats wait for their payment.
    pub hold_ttl: Duration,
    /// Whether payments go to the sandbox, which then has its window here.
    pub has_sandbox: bool,
}

/// The pages. Clones share everything.
#[derive(Clone)]
pub struct WebPages(Arc<Pages>);

struct Pages {
    site: Site,
    api: PageApi,
    previews: Previews,
    queue: QueuePages,
    settings: WebSettings,
}

impl WebPages {
    pub fn new(site: Site, api: PageApi, settings: WebSettings, clock: Clock) -> WebPages {
        let previews = Previews::new(api.clone(), clock.clone());
        let queue = QueuePages::new(site.queue_font(), clock);
        WebPages(Arc::new(Pages { site, api, previews, queue, settings }))
    }

    /// Answers every path that no other route has.
    pub fn router(self) -> Router {
        let built = Router::new().route("/", any(get_page)).route("/{*path}", any(get_page));
        built.merge(queue_page::routes()).merge(sandbox_window::routes()).with_state(self)
    }
}

async fn get_page(State(WebPages(pages)): State<WebPages>, request: Request) -> Response {
    let (client, _) = request.into_parts();
    if ![Method::GET, Method::HEAD].contains(&client.method) {
        return unknown_path().await.into_response();
    }
    let (path, language) = (client.uri.path(), PageLanguage::of(&client.headers));
    match pages.site.find(path) {
        SiteAnswer::File(file) => labelled("/{file}", file.respond(&client.headers)),
        SiteAnswer::Page(page, parameters) => {
            let preview = pages.previews.find(page.preview(), &parameters, &client).await;
            let response = match preview {
                None => page.respond(language, &client.headers),
                Some(preview) => {
                    let address = format!("{}{path}", origin(&pages.settings, &client.headers));
                    page.respond_with_preview(language, &preview, &address)
                }
            };
            labelled(page.label(), response)
        }
        SiteAnswer::Redirect(path) => moved(&path, client.uri.query()),
        // A program that mistook an address gets the error that it can read.
        SiteAnswer::Unknown if !accepts_html(&client.headers) => {
            unknown_path().await.into_response()
        }
        SiteAnswer::Unknown => labelled("/{unknown}", pages.site.not_found(language)),
    }
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let kinds = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    kinds.is_some_and(|kinds| kinds.contains("text/html"))
}

/// Gives a response its name in the metrics.
fn labelled(label: &'static str, mut response: Response) -> Response {
    response.extensions_mut().insert(RouteLabel(label));
    response
}

fn moved(path: &str, query: Option<&str>) -> Response {
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    match HeaderValue::try_from(target) {
        Ok(target) => {
            (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, target)]).into_response()
        }
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Scheme and host of this site, for addresses that others see.
fn origin(settings: &WebSettings, headers: &HeaderMap) -> String {
    if let Some(url) = &settings.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_plain = |host: &&str| {
        host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    };
    host.filter(is_plain).map(|host| format!("http://{host}")).unwrap_or_default()
}
