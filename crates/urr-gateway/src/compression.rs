//! Compresses long text responses with gzip for clients that accept it (G7).
//!
//! Not compressed: responses that are short, streamed (unknown length), already encoded, partial, or
//! marked `no-transform`. Nor those of auth, the waiting room and payments: they may hold secrets
//! beside text that a client sent, and the compressed length tells how alike the two are (BREACH).
//!
//! `tower-http`'s layer does not fit: it has no limit on encoders in use, so slow readers could fill
//! our memory, it keeps strong entity tags, and it ignores `no-transform` and `Accept-Encoding: *`.

use std::io::Write;
use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use urr_service::RouteLabel;

/// Shorter responses fit into one packet anyway.
const BYTES_MIN: u64 = 1_024;
/// An encoder takes a third of a megabyte until its client has read the response. Beyond this number
/// responses are not compressed, so that slow clients cannot fill our memory.
pub const ENCODERS_MAX: usize = 64;
/// How much is compressed before the task yields to others.
const YIELD_BYTES: usize = 128 * 1024;
/// Routes whose responses may hold secrets.
const SECRETS: [&str; 3] = ["/api/auth", "/api/queue", "/api/payments"];

/// How the response to a request may be compressed.
#[derive(Debug)]
pub struct ResponseCompression {
    /// `None` if the client does not accept gzip.
    encoders: Option<Arc<Semaphore>>,
    is_head: bool,
}

impl ResponseCompression {
    pub fn for_request(encoders: &Arc<Semaphore>, request: &Request) -> ResponseCompression {
        let headers = request.headers();
        let is_accepted = accepts_gzip(headers) && !forbids_transform(headers);
        ResponseCompression {
            encoders: is_accepted.then(|| Arc::clone(encoders)),
            is_head: request.method() == Method::HEAD,
        }
    }

    /// Compresses the response if the client accepts it and it gains by it. A response to `HEAD` has
    /// the headers that `GET` would have.
    pub fn apply(self, mut response: Response) -> Response {
        if !is_long(&response, self.is_head) || !is_compressible(&response) {
            return response;
        }
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
        let Some(encoders) = self.encoders else { return response };
        let Ok(permit) = encoders.try_acquire_owned() else { return response };
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::ACCEPT_RANGES);
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        weaken_etag(headers);
        // The server sends no body to `HEAD`, and writes no `Content-Length` of an unknown length.
        response.map(|body| GzipBody::compress(body, permit))
    }
}

/// By the body, or for `HEAD`, which has none, by its `Content-Length`.
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

/// Whether this response may be compressed and gains by it.
fn is_compressible(response: &Response) -> bool {
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
        && !forbids_transform(headers)
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

/// `Cache-Control: no-transform`, in a request or a response.
fn forbids_transform(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    values.filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
    })
}

/// A strong tag promises identical bytes, which compression changes.
fn weaken_etag(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(header::ETAG) else { return };
    if tag.as_bytes().starts_with(b"W/") {
        return;
    }
    let weak = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat());
    headers.insert(header::ETAG, weak.expect("a header value with a prefix is valid"));
}

/// Whether the client accepts gzip and does not prefer `identity` (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let offers = values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let offers: Vec<(&str, f32)> = offers
        .map(|offer| {
            let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
            (name.trim(), weight_of(weight))
        })
        .collect();
    let weight = |wanted: &str| {
        let mut named = offers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.next().map(|(_, weight)| *weight)
    };
    let gzip = weight("gzip").or_else(|| weight("x-gzip")).or_else(|| weight("*")).unwrap_or(0.0);
    gzip > 0.0 && gzip >= weight("identity").unwrap_or(0.0)
}

/// The weight of `q=0.5`. Without a parameter it is 1, and 0 if it cannot be parsed.
fn weight_of(parameter: &str) -> f32 {
    let parameter = parameter.trim();
    if parameter.is_empty() {
        return 1.0;
    }
    let value = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    // At most three decimals (RFC 9110, 12.4.2).
    let value = value.map(|(_, value)| value.trim()).filter(|value| value.len() <= "0.000".len());
    let weight = value.and_then(|value| value.parse().ok());
    weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0)
}

/// A body that is compressed while it is sent.
struct GzipBody {
    body: BodyDataStream,
    encoder: GzEncoder<Vec<u8>>,
    _permit: OwnedSemaphorePermit,
}

impl GzipBody {
    fn compress(body: Body, permit: OwnedSemaphorePermit) -> Body {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let gzip = GzipBody { body: body.into_data_stream(), encoder, _permit: permit };
        Body::from_stream(stream::try_unfold(Some(gzip), async |gzip| match gzip {
            Some(gzip) => gzip.next_part().await.map(Some),
            None => Ok(None),
        }))
    }

    /// The next compressed bytes, and what is left. If the body fails, so does this: without the gzip
    /// trailer the client sees that the response is incomplete.
    async fn next_part(mut self) -> Result<(Bytes, Option<GzipBody>), axum::Error> {
        while let Some(data) = self.body.next().await.transpose()? {
            for piece in data.chunks(YIELD_BYTES) {
                self.encoder.write_all(piece).expect("writing into memory does not fail");
                tokio::task::yield_now().await;
            }
            let compressed = std::mem::take(self.encoder.get_mut());
            if !compressed.is_empty() {
                return Ok((compressed.into(), Some(self)));
            }
        }
        Ok((self.encoder.finish().map_err(axum::Error::new)?.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt;

    use super::*;

    fn accepts(value: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
        accepts_gzip(&headers)
    }

    #[test]
    fn accept_encoding_is_read_with_its_weights() {
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
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    #[tokio::test]
    async fn a_body_of_any_length_and_number_of_pieces_is_compressed_completely() {
        let text = |bytes: usize| {
            let words =
                (0..).flat_map(|n: u32| format!("seat {} ", n * 7_919 % 1_000).into_bytes());
            Bytes::from_iter(words.take(bytes))
        };
        for pieces in [vec![1_024], vec![5 * YIELD_BYTES + 1], vec![1, 0, 70_000, 3, 200_000]] {
            let pieces: Vec<Bytes> = pieces.into_iter().map(text).collect();
            let whole = pieces.concat();
            let body = Body::from_stream(stream::iter(pieces).map(Ok::<_, axum::Error>));
            let sent = GzipBody::compress(body, permit()).collect().await.unwrap().to_bytes();
            let mut read = Vec::new();
            GzDecoder::new(&sent[..]).read_to_end(&mut read).unwrap();
            assert_eq!(read, whole);
            assert!(sent.len() < whole.len() / 2, "{} of {}", sent.len(), whole.len());
        }
    }

    #[tokio::test]
    async fn a_response_that_breaks_off_has_no_trailer() {
        let parts = [Ok(Bytes::from_static(b"half")), Err(axum::Error::new(std::fmt::Error))];
        let mut body = GzipBody::compress(Body::from_stream(stream::iter(parts)), permit());
        let mut failed = false;
        while let Some(frame) = body.frame().await {
            failed = frame.is_err();
            if failed {
                break;
            }
        }
        assert!(failed, "it does not end as if it were complete");
    }

    #[tokio::test]
    async fn slow_readers_cannot_use_more_encoders_than_the_limit() {
        let encoders = Arc::new(Semaphore::new(ENCODERS_MAX));
        let answer = || {
            let request = Request::builder().header(header::ACCEPT_ENCODING, "gzip");
            let compression =
                ResponseCompression::for_request(&encoders, &request.body(Body::empty()).unwrap());
            let kind = [(header::CONTENT_TYPE, "text/plain")];
            compression
                .apply(axum::response::IntoResponse::into_response((kind, vec![b'a'; 4_096])))
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
        assert!(is_compressed(&answer()), "the permits are released");
    }
}
