//! The waiting page: `/queue/{eventId}`, and the list of one's own lines at `/queue`.
//!
//! A million people load it at once, so `/queue/{eventId}` is the same for everybody: it is made
//! once a second for an event and sent from memory. Its script asks the API for the user's own
//! place. Without the script the browser goes on to `?plain`, where the program writes the user's
//! figures into the page, which then reloads by itself; joining and leaving are forms.

mod figures;
mod texts;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    LOCATION, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use urr_kernel::{Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_service::{ETag, unknown_path};

use self::figures::{CrowdAnswer, QueueFigures, StatusAnswer};
use self::texts::{ENGLISH_SCRIPT, KOREAN_SCRIPT, QueueTexts};
use crate::content_policy::{ProviderScripts, content_policy};
use crate::language::PageLanguage;
use crate::page_api::{ApiRefusal, ApiRequest, Asker};
use crate::preview::{Preview, PreviewKind};
use crate::site_files::{AcceptedEncodings, SiteFile, gzip};
use crate::{Pages, WebPages};

/// As long as the crowd document lasts.
const KEPT: CacheOptions = CacheOptions { ttl: Duration::from_secs(1), entries_max: 2_000 };
pub const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' \
    viewBox='0 0 64 64'%3E%3Crect width='64' height='64' rx='14' fill='%23131418'/%3E%3Cpath \
    d='M14 19h33v13.5H18V46h16' fill='none' stroke='%23fff' stroke-width='8'/%3E%3Ccircle cx='46' \
    cy='46' r='6' fill='%23ff4b26'/%3E%3C/svg%3E";

pub fn routes() -> Router<WebPages> {
    Router::new()
        .route("/queue", get(list_own_lines))
        .route("/queue/assets/{name}", get(get_asset))
        .route("/queue/{event_id}", get(get_waiting_page))
        .route("/queue/{event_id}/join", post(join_line))
        .route("/queue/{event_id}/leave", post(leave_line))
}

/// Script and style of the page, with hashes in their names.
pub struct QueueAssets {
    script_path: String,
    style_path: String,
    font_path: Option<&'static str>,
    script: SiteFile,
    style: SiteFile,
}

/// What the page keeps for everybody.
pub struct QueuePages {
    pub assets: QueueAssets,
    shared: Cache<(Uuid, PageLanguage), Arc<SharedPage>, ApiRefusal>,
}

/// The page that everybody gets within a second.
struct SharedPage {
    html: Bytes,
    gzip: Bytes,
    policy: HeaderValue,
}

/// The event that is waited for.
struct EventLink {
    id: Uuid,
    title: String,
    /// Where an admitted user chooses tickets.
    next_path: String,
}

#[derive(Template)]
#[template(path = "queue.html")]
struct QueuePage<'a> {
    t: &'static QueueTexts,
    lock: String,
    hold: String,
    script_texts: &'static str,
    icon: &'static str,
    assets: &'a QueueAssets,
    event: EventLink,
    view: QueueFigures,
    /// Whether the figures are the user's own.
    plain: bool,
}

#[derive(Template)]
#[template(path = "queue_list.html")]
struct QueueListPage<'a> {
    t: &'static QueueTexts,
    icon: &'static str,
    assets: &'a QueueAssets,
    lines: Vec<OwnLine>,
    needs_login: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnLine {
    event_id: Uuid,
    title: String,
}

impl QueuePages {
    pub fn new(font_path: Option<&'static str>, clock: Clock) -> QueuePages {
        QueuePages { assets: QueueAssets::new(font_path), shared: Cache::new(clock, KEPT) }
    }
}

impl QueueAssets {
    fn new(font_path: Option<&'static str>) -> QueueAssets {
        let script = compact(include_str!("../assets/queue.js"), "//");
        let mut style = compact(include_str!("../assets/queue.css"), "/*");
        if let Some(path) = font_path {
            write!(
                style,
                "\n@font-face{{font-family:urr;src:url({path}) format('woff2');\
                 font-weight:400 900;font-display:swap}}"
            )
            .expect("a text takes it");
        }
        let path = |text: &str, extension| {
            let tag = ETag::of_bytes(text.as_bytes()).header();
            let hash =
                tag.to_str().expect("a tag is ASCII").trim_start_matches("W/").trim_matches('"');
            format!("/queue/assets/{hash}.{extension}")
        };
        QueueAssets {
            script_path: path(&script, "js"),
            style_path: path(&style, "css"),
            font_path,
            script: SiteFile::immutable("text/javascript; charset=utf-8", script),
            style: SiteFile::immutable("text/css; charset=utf-8", style),
        }
    }

    pub fn style_path(&self) -> &str {
        &self.style_path
    }
}

/// A source without indentation, blank lines and lines of comment.
fn compact(source: &str, comment: &str) -> String {
    let lines = source.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(comment));
    lines.collect::<Vec<_>>().join("\n")
}

async fn get_asset(State(WebPages(pages)): State<WebPages>, request: Request) -> Response {
    let assets = &pages.queue.assets;
    match request.uri().path() {
        path if path == assets.script_path => assets.script.respond(request.headers()),
        path if path == assets.style_path => assets.style.respond(request.headers()),
        _ => unknown_path().await.into_response(),
    }
}

async fn get_waiting_page(
    State(WebPages(pages)): State<WebPages>,
    Path(event_id): Path<String>,
    request: Request,
) -> Response {
    let (client, _) = request.into_parts();
    let language = PageLanguage::of(&client.headers);
    let Ok(event_id) = event_id.parse() else { return pages.site.not_found(language) };
    let is_plain = client.uri.query().is_some_and(|query| query.split('&').any(|q| q == "plain"));
    match is_plain {
        true => own_page(&pages, event_id, language, &client).await,
        false => shared_page(&pages, event_id, language, &client).await,
    }
}

async fn shared_page(
    pages: &Arc<Pages>,
    event_id: Uuid,
    language: PageLanguage,
    client: &Parts,
) -> Response {
    let load = || {
        let (pages, client) = (Arc::clone(pages), client.clone());
        async move {
            let view = match crowd(&pages, event_id, language, &client).await {
                Ok(crowd) => QueueFigures::of_crowd(&crowd, language),
                Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                    closed_room(&pages, event_id, language, &client).await.ok_or(refusal)?
                }
                Err(refusal) => return Err(refusal),
            };
            let html = render(&pages, event_id, language, &client, view, false).await;
            Ok(Arc::new(SharedPage::new(html)))
        }
    };
    match pages.queue.shared.get_or_load((event_id, language), load).await {
        Ok(page) => page.respond(language, &client.headers),
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => pages.site.not_found(language),
        // The script goes on asking until the waiting room answers.
        Err(_) => {
            let view = QueueFigures::unknown(language);
            let html = render(pages, event_id, language, client, view, false).await;
            SharedPage::new(html).respond(language, &client.headers)
        }
    }
}

/// What to show if the waiting room does not have an event: a day after the end of its sale that is
/// so. None if the catalogue does not have it either.
async fn closed_room(
    pages: &Pages,
    event_id: Uuid,
    language: PageLanguage,
    client: &Parts,
) -> Option<QueueFigures> {
    match pages.previews.find_by_id(PreviewKind::Event, event_id, client).await.as_deref() {
        Some(Preview::Found(facts)) => Some(QueueFigures::closed(facts.is_cancelled, language)),
        Some(Preview::Missing) => None,
        // The script goes on asking.
        None => Some(QueueFigures::unknown(language)),
    }
}

/// The page with the user's own figures.
async fn own_page(
    pages: &Pages,
    event_id: Uuid,
    language: PageLanguage,
    client: &Parts,
) -> Response {
    let crowd = match crowd(pages, event_id, language, client).await {
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => None,
        crowd => Some(crowd.ok()),
    };
    let view = match crowd {
        Some(crowd) => {
            let path = format!("/api/queue/status/{event_id}");
            let status = ask::<StatusAnswer>(pages, Method::GET, path, language, client).await;
            QueueFigures::of_user(crowd.as_ref(), &status, language)
        }
        None => match closed_room(pages, event_id, language, client).await {
            Some(view) => view,
            None => return pages.site.not_found(language),
        },
    };
    let html = render(pages, event_id, language, client, view, true).await;
    let mut response = SharedPage::new(html).respond(language, &client.headers);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn join_line(
    State(WebPages(pages)): State<WebPages>,
    Path(event_id): Path<Uuid>,
    request: Request,
) -> Response {
    let (client, _) = request.into_parts();
    let path = format!("/api/queue/check/{event_id}");
    let language = PageLanguage::of(&client.headers);
    let joined = ask::<IgnoredAny>(&pages, Method::POST, path, language, &client).await;
    see_other(event_id, "?plain", joined)
}

async fn leave_line(
    State(WebPages(pages)): State<WebPages>,
    Path(event_id): Path<Uuid>,
    request: Request,
) -> Response {
    let (client, _) = request.into_parts();
    let path = format!("/api/queue/leave/{event_id}");
    let language = PageLanguage::of(&client.headers);
    let left = ask::<IgnoredAny>(&pages, Method::POST, path, language, &client).await;
    see_other(event_id, "?left", left)
}

/// Back to the page after a form. A refusal is shown there, because the page asks for the status.
fn see_other(event_id: Uuid, query: &str, done: Result<IgnoredAny, ApiRefusal>) -> Response {
    let target = match done {
        Ok(_) => format!("/queue/{event_id}{query}"),
        Err(ApiRefusal { status: StatusCode::UNAUTHORIZED, .. }) => {
            format!("/login?return=%2Fqueue%2F{event_id}")
        }
        Err(ApiRefusal { status: StatusCode::FORBIDDEN, code }) if code == "CROSS_SITE_REQUEST" => {
            return StatusCode::FORBIDDEN.into_response();
        }
        Err(_) => format!("/queue/{event_id}?plain"),
    };
    (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response()
}

/// The user's lines, for those who come without an event: `redirectTo` of refusals leads here.
async fn list_own_lines(State(WebPages(pages)): State<WebPages>, request: Request) -> Response {
    let (client, _) = request.into_parts();
    let language = PageLanguage::of(&client.headers);
    let path = "/api/queue/mine".to_owned();
    let lines = ask::<Vec<OwnLine>>(&pages, Method::GET, path, language, &client).await;
    if let Ok([line]) = lines.as_deref() {
        return (StatusCode::SEE_OTHER, [(LOCATION, format!("/queue/{}", line.event_id))])
            .into_response();
    }
    let needs_login =
        lines.as_ref().is_err_and(|refusal| refusal.status == StatusCode::UNAUTHORIZED);
    let page = QueueListPage {
        t: QueueTexts::of(language),
        icon: ICON,
        assets: &pages.queue.assets,
        lines: lines.unwrap_or_default(),
        needs_login,
    };
    let html = page.render().expect("a text takes it");
    let mut response = SharedPage::new(html).respond(language, &client.headers);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn ask<T: serde::de::DeserializeOwned>(
    pages: &Pages,
    method: Method,
    path: String,
    language: PageLanguage,
    client: &Parts,
) -> Result<T, ApiRefusal> {
    let asker = Asker::Client;
    pages.api.call(ApiRequest { method, path, body: None, client, asker, language }).await
}

async fn crowd(
    pages: &Pages,
    event_id: Uuid,
    language: PageLanguage,
    client: &Parts,
) -> Result<CrowdAnswer, ApiRefusal> {
    let request = ApiRequest {
        method: Method::GET,
        path: format!("/api/queue/crowd/{event_id}"),
        body: None,
        client,
        asker: Asker::Anybody,
        language,
    };
    pages.api.call(request).await
}

async fn render(
    pages: &Pages,
    event_id: Uuid,
    language: PageLanguage,
    client: &Parts,
    view: QueueFigures,
    plain: bool,
) -> String {
    let preview = pages.previews.find_by_id(PreviewKind::Event, event_id, client).await;
    let (title, is_standing) = match preview.as_deref() {
        Some(Preview::Found(facts)) => (facts.title.clone(), facts.is_standing),
        Some(Preview::Missing) | None => ("URR".to_owned(), false),
    };
    let place = if is_standing { "book" } else { "seats" };
    let page = QueuePage {
        t: QueueTexts::of(language),
        lock: lock_text(pages.settings.seen_ttl, language),
        hold: hold_text(pages.settings.hold_ttl, language),
        script_texts: language.pick(KOREAN_SCRIPT, ENGLISH_SCRIPT),
        icon: ICON,
        assets: &pages.queue.assets,
        event: EventLink { id: event_id, title, next_path: format!("/events/{event_id}/{place}") },
        view,
        plain,
    };
    page.render().expect("a text takes it")
}

/// How long the phone may be locked.
fn lock_text(seen_ttl: Duration, language: PageLanguage) -> String {
    let minutes = seen_ttl.as_secs() / 60;
    match language {
        PageLanguage::Korean => format!(
            "화면을 잠그거나 다른 앱을 써도 됩니다. 순번은 {minutes}분 동안 그대로 있으니 그 안에 한 번씩 \
             돌아와 주세요. 새로 고침을 하거나 다른 기기로 들어와도 순번은 같습니다."
        ),
        PageLanguage::English => format!(
            "You may lock your phone or use another app: your place is kept for {minutes} minutes, \
             so look in before they are over. Reloading or another device does not change it."
        ),
    }
}

/// How long chosen seats wait.
fn hold_text(hold_ttl: Duration, language: PageLanguage) -> String {
    let (minutes, seconds) = (hold_ttl.as_secs() / 60, hold_ttl.as_secs() % 60);
    let time = match (minutes, seconds, language) {
        (0, _, PageLanguage::Korean) => format!("{seconds}초"),
        (0, _, PageLanguage::English) => format!("{seconds} seconds"),
        (_, 0, PageLanguage::Korean) => format!("{minutes}분"),
        (1, 0, PageLanguage::English) => "a minute".to_owned(),
        (_, 0, PageLanguage::English) => format!("{minutes} minutes"),
        (_, _, PageLanguage::Korean) => format!("{minutes}분 {seconds}초"),
        (_, _, PageLanguage::English) => format!("{minutes} min {seconds} s"),
    };
    match language {
        PageLanguage::Korean => {
            format!("좌석을 고르면 {time} 동안 다른 사람이 가져갈 수 없습니다.")
        }
        PageLanguage::English => format!("The seats you choose are yours alone for {time}."),
    }
}

impl SharedPage {
    fn new(html: String) -> SharedPage {
        SharedPage {
            policy: content_policy(&html, ProviderScripts::default()),
            gzip: gzip(html.as_bytes()),
            html: html.into(),
        }
    }

    fn respond(&self, language: PageLanguage, headers: &HeaderMap) -> Response {
        let is_packed = AcceptedEncodings::of(headers).gzip;
        let body = if is_packed { &self.gzip } else { &self.html };
        let mut response = Response::new(body.clone().into());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        let varies = "accept-language, cookie, accept-encoding";
        headers.insert(VARY, HeaderValue::from_static(varies));
        if is_packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}
