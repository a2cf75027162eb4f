//! Answers are compressed for those who can read it (G7): texts of some length, with gzip.
//!
//! Left as they are: what is short, of unknown length (it comes as it is made, such as events),
//! encoded already, a part of something, or not to be changed on the way. And whatever may hold
//! secrets beside what a client sent: the length of a compressed answer tells how alike the two are
//! (BREACH), so answers of the accounts, the waiting room and payments are never compressed.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use urr_service::RouteLabel;

/// Shorter answers fit into a packet anyway.
const BYTES_MIN: u64 = 1_024;
/// An encoder takes a third of a megabyte until its client has read enough. More answers at once
/// than this go out as they are: clients that read slowly cannot fill our memory.
const ENCODERS_MAX: usize = 64;
/// So much is compressed in one piece, and so much before others get their turn.
const PIECE_BYTES: usize = 16 * 1024;
const TURN_BYTES: usize = 128 * 1024;
/// Where answers may hold secrets.
const SECRETS: [&str; 3] = ["/api/auth", "/api/queue", "/api/payments"];

/// The right to use an encoder, for as many as there are. Clones share them.
#[derive(Clone, Debug)]
pub struct Encoders(Arc<Semaphore>);

impl Default for Encoders {
    fn default() -> Encoders {
        Encoders(Arc::new(Semaphore::new(ENCODERS_MAX)))
    }
}

/// What is needed of a request to answer it: whether its client reads gzip.
#[derive(Debug)]
pub struct Wish {
    encoders: Option<Encoders>,
    is_head: bool,
}

impl Wish {
    pub fn read(encoders: &Encoders, request: &Request) -> Wish {
        let headers = request.headers();
        let wanted = accepts_gzip(headers) && !forbids_change(headers);
        Wish {
            encoders: wanted.then(|| encoders.clone()),
            is_head: request.method() == Method::HEAD,
        }
    }

    /// The answer, compressed if that is wished for and makes sense. `HEAD` is told what `GET`
    /// would be.
    pub fn fulfil(self, mut response: Response) -> Response {
        if !is_long(&response, self.is_head) || !is_fit(&response) {
            return response;
        }
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
        let Some(Encoders(encoders)) = self.encoders else { return response };
        let Ok(permit) = encoders.try_acquire_owned() else { return response };
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::ACCEPT_RANGES);
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        weaken_etag(headers);
        response.map(|body| match self.is_head {
            // Nothing is sent, of a length that is not known: so the server writes none.
            true => Body::new(Gzip::silent(permit)),
            false => Body::new(Gzip::new(body, permit)),
        })
    }
}

/// By the body, or, where `HEAD` has lost it on the way, by its announcement.
fn is_long(response: &Response, is_head: bool) -> bool {
    let announced = || {
        let bytes = response.headers().get(header::CONTENT_LENGTH)?;
        bytes.to_str().ok()?.parse().ok()
    };
    match response.body().size_hint().exact() {
        Some(0) | None if is_head => announced().is_some_and(|bytes: u64| bytes >= BYTES_MIN),
        bytes => bytes.is_some_and(|bytes| bytes >= BYTES_MIN),
    }
}

/// Whether this answer may be compressed and gains by it.
fn is_fit(response: &Response) -> bool {
    let headers = response.headers();
    let is_whole = response.status() != StatusCode::PARTIAL_CONTENT
        && response.status() != StatusCode::NO_CONTENT
        && response.status() != StatusCode::NOT_MODIFIED
        && !headers.contains_key(header::CONTENT_RANGE);
    let may_hold_secrets = response
        .extensions()
        .get()
        .is_some_and(|RouteLabel(route)| SECRETS.iter().any(|secret| route.starts_with(secret)));
    is_whole
        && !may_hold_secrets
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !forbids_change(headers)
        && headers.get(header::CONTENT_TYPE).is_some_and(is_text)
}

fn is_text(kind: &HeaderValue) -> bool {
    let Ok(kind) = kind.to_str() else { return false };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if let Some(text) = kind.strip_prefix("text/") {
        return text != "event-stream";
    }
    let Some((group, name)) = kind.split_once('/') else { return false };
    name.ends_with("+json")
        || name.ends_with("+xml")
        || group == "application"
            && ["json", "javascript", "xml", "openmetrics-text"].contains(&name)
}

/// `Cache-Control: no-transform`, of either side.
fn forbids_change(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    values.filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
    })
}

/// A strong tag promises the same bytes, and these are others.
fn weaken_etag(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(header::ETAG) else { return };
    if tag.as_bytes().starts_with(b"W/") {
        return;
    }
    let weak = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat());
    headers.insert(header::ETAG, weak.expect("a header stays one with letters before it"));
}

/// Whether gzip is among what the client accepts, and not less welcome than nothing (RFC 9110,
/// 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut plain) = (None, None, None);
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    for offer in values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')) {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let name = name.trim();
        let weight = weight_of(weight);
        match () {
            () if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                gzip = Some(weight);
            }
            () if name.eq_ignore_ascii_case("identity") => plain = Some(weight),
            () if name == "*" => any = Some(weight),
            () => {}
        }
    }
    let gzip = gzip.or(any).unwrap_or(0);
    gzip > 0 && gzip >= plain.unwrap_or(0)
}

/// `q=0.5` in thousandths. Nothing said is 1; what cannot be read is 0: then nothing is done.
fn weight_of(parameter: &str) -> u16 {
    let parameter = parameter.trim();
    if parameter.is_empty() {
        return 1_000;
    }
    let Some((name, value)) = parameter.split_once('=') else { return 0 };
    let (whole, part) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_number = part.len() <= 3 && part.bytes().all(|digit| digit.is_ascii_digit());
    if !name.trim().eq_ignore_ascii_case("q") || !is_number {
        return 0;
    }
    match whole {
        "1" => 1_000,
        "0" => format!("{part:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

/// A body that is compressed while it is sent.
struct Gzip {
    body: Body,
    /// Read and not compressed yet.
    rest: Bytes,
    /// None when all has been said.
    encoder: Option<GzEncoder<Vec<u8>>>,
    turn_bytes: usize,
    _permit: OwnedSemaphorePermit,
}

impl Gzip {
    fn new(body: Body, permit: OwnedSemaphorePermit) -> Gzip {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Gzip { body, rest: Bytes::new(), encoder, turn_bytes: 0, _permit: permit }
    }

    fn silent(permit: OwnedSemaphorePermit) -> Gzip {
        let (body, rest) = (Body::empty(), Bytes::new());
        Gzip { body, rest, encoder: None, turn_bytes: 0, _permit: permit }
    }
}

impl HttpBody for Gzip {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Gzip { body, rest, encoder, turn_bytes, .. } = &mut *self;
        while let Some(gzip) = encoder {
            if *turn_bytes >= TURN_BYTES {
                *turn_bytes = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if rest.is_empty() {
                match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                    Some(Ok(frame)) => *rest = frame.into_data().unwrap_or_default(),
                    // No end is written: the client sees that it does not have all of it.
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => {
                        let gzip = encoder.take().expect("it was there a moment ago");
                        let last = gzip.finish().map(|last| Frame::data(last.into()));
                        return Poll::Ready(Some(last.map_err(axum::Error::new)));
                    }
                }
            }
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            *turn_bytes += piece.len();
            gzip.write_all(&piece).expect("writing into memory does not fail");
            let made = std::mem::take(gzip.get_mut());
            if !made.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(made.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    fn accepts(value: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
        accepts_gzip(&headers)
    }

    #[test]
    fn clients_say_with_weights_what_they_read() {
        assert!(!accepts_gzip(&HeaderMap::new()));
        for yes in [
            "gzip",
            "GZip",
            "x-gzip",
            "br, gzip;q=0.8, *;q=0.1",
            "deflate, gzip ; q=0.001",
            "*",
            "gzip;q=1.000, identity;q=1",
            "gzip;q=0.5, identity;q=0.2",
            "identity;q=0, *",
        ] {
            assert!(accepts(yes), "{yes}");
        }
        for no in [
            "",
            "br",
            "identity",
            "gzip;q=0",
            "gzip;q=0.000, *",
            "*;q=0",
            "gzip;q=0.5, identity",
            "gzip;q=0.1, identity;q=0.2",
            "gzip;q=2",
            "gzip;q=nan",
            "gzip;q=0.0001",
            "gzip;level=1",
            "gzipped",
        ] {
            assert!(!accepts(no), "{no}");
        }
    }

    #[test]
    fn texts_are_compressed_and_pictures_and_events_are_not() {
        for yes in [
            "text/html; charset=utf-8",
            "text/css",
            "application/json",
            "Application/JSON;charset=utf-8",
            "application/problem+json",
            "image/svg+xml",
            "application/openmetrics-text; version=1.0.0",
        ] {
            assert!(is_text(&HeaderValue::from_static(yes)), "{yes}");
        }
        for no in
            ["text/event-stream", "image/png", "application/octet-stream", "json", "", "video/mp4"]
        {
            assert!(!is_text(&HeaderValue::from_static(no)), "{no}");
        }
    }

    fn permit() -> OwnedSemaphorePermit {
        Encoders::default().0.try_acquire_owned().unwrap()
    }

    #[tokio::test]
    async fn what_arrives_is_what_was_said_however_long_and_in_how_many_pieces() {
        let text = |bytes: usize| {
            let words =
                (0..).flat_map(|n: u32| format!("seat {} ", n * 7_919 % 1_000).into_bytes());
            Bytes::from_iter(words.take(bytes))
        };
        for pieces in [vec![1_024], vec![5 * TURN_BYTES + 1], vec![1, 0, 70_000, 3, 200_000]] {
            let pieces: Vec<Bytes> = pieces.into_iter().map(text).collect();
            let whole = pieces.concat();
            let body = Body::from_stream(stream::iter(pieces).map(Ok::<_, axum::Error>));
            let sent = Gzip::new(body, permit()).collect().await.unwrap().to_bytes();
            let mut read = Vec::new();
            GzDecoder::new(&sent[..]).read_to_end(&mut read).unwrap();
            assert_eq!(read, whole);
            assert!(sent.len() < whole.len() / 2, "{} of {}", sent.len(), whole.len());
        }
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_has_no_end() {
        let parts = [Ok(Bytes::from_static(b"half")), Err(axum::Error::new(std::fmt::Error))];
        let mut body = Gzip::new(Body::from_stream(stream::iter(parts)), permit());
        let mut failed = false;
        while let Some(frame) = body.frame().await {
            failed = frame.is_err();
            if failed {
                break;
            }
        }
        assert!(failed, "it does not end as if it were whole");
    }

    #[tokio::test]
    async fn a_crowd_that_reads_slowly_cannot_have_more_encoders_than_there_are() {
        let encoders = Encoders::default();
        let answer = || {
            let request = Request::builder().header(header::ACCEPT_ENCODING, "gzip");
            let wish = Wish::read(&encoders, &request.body(Body::empty()).unwrap());
            let kind = [(header::CONTENT_TYPE, "text/plain")];
            wish.fulfil(axum::response::IntoResponse::into_response((kind, vec![b'a'; 4_096])))
        };
        let is_compressed =
            |answer: &Response| answer.headers().contains_key(header::CONTENT_ENCODING);
        let held: Vec<Response> = (0..ENCODERS_MAX).map(|_| answer()).collect();
        assert!(held.iter().all(is_compressed));
        let plain = answer();
        assert!(!is_compressed(&plain));
        assert_eq!(plain.headers()[header::VARY], "accept-encoding");
        assert_eq!(plain.into_body().collect().await.unwrap().to_bytes().len(), 4_096);
        drop(held);
        assert!(is_compressed(&answer()), "they give them back");
    }
}
