//! Link previews: title, description and picture of an event or artist in the head of its page.
//!
//! They come from the catalogue's public answer and are kept for a minute. If the catalogue does not
//! answer quickly, the page is sent without them.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use serde::Deserialize;
use tracing::debug;
use urr_kernel::{Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};

use crate::language::PageLanguage;
use crate::page_api::{ApiRefusal, ApiRequest, Asker, PageApi};

const KEPT: CacheOptions = CacheOptions { ttl: Duration::from_secs(60), entries_max: 20_000 };
/// A page is worth more than its preview.
const ANSWER_WITHIN: Duration = Duration::from_millis(400);
const DESCRIPTION_CHARS_MAX: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreviewKind {
    Event,
    Artist,
}

/// What the catalogue says about the subject of a page.
#[derive(Debug)]
pub enum Preview {
    Found(PreviewFacts),
    Missing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewFacts {
    pub title: String,
    pub description: String,
    /// A path of ours or an address elsewhere.
    pub image: Option<String>,
    /// Of an event.
    pub is_standing: bool,
    /// Of an event.
    pub is_cancelled: bool,
}

/// What the catalogue answers, as far as previews need it.
#[derive(Deserialize)]
#[serde(untagged)]
enum CatalogAnswer {
    Event { event: EventFacts },
    Artist { artist: ArtistFacts },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventFacts {
    title: String,
    kind: String,
    status: String,
    description: String,
    artist_name: Option<String>,
    venue_name: String,
    poster_image_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArtistFacts {
    name: String,
    description: String,
    image_url: Option<String>,
}

/// The previews of pages, kept for a while.
pub struct Previews {
    api: PageApi,
    cache: Cache<(PreviewKind, Uuid), Arc<Preview>, ApiRefusal>,
}

impl Previews {
    pub fn new(api: PageApi, clock: Clock) -> Previews {
        Previews { api, cache: Cache::new(clock, KEPT) }
    }

    /// The preview of a page whose first parameter is the id of its subject.
    pub async fn find(
        &self,
        kind: Option<PreviewKind>,
        parameters: &[&str],
        client: &Parts,
    ) -> Option<Arc<Preview>> {
        let kind = kind?;
        let Ok(id) = parameters.first()?.parse() else { return Some(Arc::new(Preview::Missing)) };
        self.find_by_id(kind, id, client).await
    }

    pub async fn find_by_id(
        &self,
        kind: PreviewKind,
        id: Uuid,
        client: &Parts,
    ) -> Option<Arc<Preview>> {
        let load = || load(self.api.clone(), kind, id, client.clone());
        let loaded = self.cache.get_or_load((kind, id), load);
        match tokio::time::timeout(ANSWER_WITHIN, loaded).await {
            Ok(Ok(preview)) => Some(preview),
            Ok(Err(refusal)) => {
                debug!(?kind, %id, ?refusal, "a page is sent without its preview");
                None
            }
            Err(_) => None,
        }
    }
}

async fn load(
    api: PageApi,
    kind: PreviewKind,
    id: Uuid,
    client: Parts,
) -> Result<Arc<Preview>, ApiRefusal> {
    let path = match kind {
        PreviewKind::Event => format!("/api/events/{id}"),
        PreviewKind::Artist => format!("/api/artists/{id}"),
    };
    let request = ApiRequest {
        method: Method::GET,
        path,
        body: None,
        client: &client,
        asker: Asker::Anybody,
        language: PageLanguage::Korean,
    };
    match api.call::<CatalogAnswer>(request).await {
        Ok(answer) => Ok(Arc::new(Preview::Found(answer.into()))),
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(Arc::new(Preview::Missing)),
        Err(refusal) => Err(refusal),
    }
}

impl From<CatalogAnswer> for PreviewFacts {
    fn from(answer: CatalogAnswer) -> PreviewFacts {
        match answer {
            CatalogAnswer::Event { event } => {
                let names = [event.artist_name.as_deref(), Some(event.venue_name.as_str())];
                let names = names.into_iter().flatten().collect::<Vec<_>>().join(" · ");
                PreviewFacts {
                    title: event.title,
                    description: shortened(&format!("{names} {}", event.description)),
                    image: event.poster_image_url.filter(|url| !url.is_empty()),
                    is_standing: event.kind == "standing",
                    is_cancelled: event.status == "cancelled",
                }
            }
            CatalogAnswer::Artist { artist } => PreviewFacts {
                title: artist.name,
                description: shortened(&artist.description),
                image: artist.image_url.filter(|url| !url.is_empty()),
                is_standing: false,
                is_cancelled: false,
            },
        }
    }
}

/// In one line, and not longer than previews show.
fn shortened(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
        None => words,
    }
}

#[derive(Template)]
#[template(path = "preview.html")]
struct PreviewHead<'a> {
    facts: &'a PreviewFacts,
    address: &'a str,
    image: Option<String>,
}

impl PreviewFacts {
    /// A shell with this preview. `address` is the page's own.
    pub fn add_to(&self, shell: &str, address: &str) -> String {
        let origin = address.find("://").and_then(|at| {
            let end = address[at + 3..].find('/')? + at + 3;
            Some(&address[..end])
        });
        let image = self.image.as_deref().map(|image| match (image.starts_with('/'), origin) {
            (true, Some(origin)) => format!("{origin}{image}"),
            _ => image.to_owned(),
        });
        let head = PreviewHead { facts: self, address, image };
        let head = head.render().expect("a text takes it");
        let shell = without_title(shell);
        shell.replacen("</head>", &format!("{head}</head>"), 1)
    }
}

/// The preview brings a title of its own.
fn without_title(shell: &str) -> String {
    let parts = shell.split_once("<title>").and_then(|(before, rest)| {
        let (_, after) = rest.split_once("</title>")?;
        Some(format!("{before}{after}"))
    });
    parts.unwrap_or_else(|| shell.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(title: &str) -> PreviewFacts {
        PreviewFacts {
            title: title.to_owned(),
            description: "\"x\" <y>".to_owned(),
            image: Some("/api/image/1".to_owned()),
            is_standing: false,
            is_cancelled: false,
        }
    }

    #[test]
    fn what_an_organiser_wrote_cannot_leave_its_attribute() {
        let shell = "<html><head><title>URR</title></head><body></body></html>";
        let title = "</title><script>alert(1)</script>\" onload=\"x";
        let html = facts(title).add_to(shell, "https://urr.kr/events/1");
        assert!(!html.contains("<script>") && !html.contains("\" onload"), "{html}");
        assert!(!html.contains("<title>URR</title>") && html.matches("<title>").count() == 1);
        assert!(html.contains("property=\"og:image\" content=\"https://urr.kr/api/image/1\""));
        assert!(html.contains("property=\"og:url\" content=\"https://urr.kr/events/1\""));
        // Control: the text itself is there.
        assert!(html.contains("onload="), "{html}");
    }

    #[test]
    fn a_preview_ends_the_head_and_a_shell_without_a_title_gets_one() {
        let html = facts("A").add_to("<head>1</head>2", "/events/1");
        let (head, rest) = html.split_once("</head>").unwrap();
        assert!(head.contains("<title>A · URR</title>") && rest == "2", "{html}");
        assert!(html.contains("content=\"/api/image/1\""), "an unknown origin is left out");
    }

    #[test]
    fn a_description_is_one_line_of_a_bounded_length() {
        assert_eq!(shortened(" a\n\n b "), "a b");
        let long = shortened(&"가".repeat(500));
        assert_eq!(long.chars().count(), DESCRIPTION_CHARS_MAX + 1);
    }
}
