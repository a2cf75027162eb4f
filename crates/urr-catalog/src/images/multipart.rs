//! One file of a form. A form is small and in memory, so this needs no crate.

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use urr_service::ApiError;

const BOUNDARY_CHARS_MAX: usize = 70;
const PARTS_MAX: usize = 20;

fn invalid(sentence: &'static str) -> ApiError {
    ApiError::bad_request("INVALID_FORM", sentence)
}

/// The content of the field `name` of a form.
pub fn field(headers: &HeaderMap, body: &Bytes, name: &str) -> Result<Bytes, ApiError> {
    let boundary = boundary(headers).ok_or_else(|| {
        ApiError::new(
            axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            "The body must be a form: Content-Type: multipart/form-data with a boundary.",
        )
    })?;
    // Every delimiter begins on a new line, but for the first.
    let delimiter = format!("\r\n--{boundary}");
    let first = &delimiter.as_bytes()[2..];
    if !body.starts_with(first) {
        return Err(invalid("The form does not begin with its boundary."));
    }
    let mut at = first.len();
    for _ in 0..PARTS_MAX {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Err(invalid("The form has no field \"image\"."));
        }
        let rest = rest.strip_prefix(b"\r\n").ok_or_else(|| invalid("The form is broken."))?;
        let start = at + 2;
        let end = find(rest, delimiter.as_bytes());
        let end = start + end.ok_or_else(|| invalid("The form does not end."))?;
        let part = body.slice(start..end);
        let head = find(&part, b"\r\n\r\n").ok_or_else(|| invalid("The form is broken."))?;
        if is_named(&part[..head], name) {
            return Ok(part.slice(head + 4..));
        }
        at = end + delimiter.len();
    }
    Err(invalid("The form has too many fields."))
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let mut parts = value.split(';');
    let essence = parts.next()?.trim();
    if !essence.eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let is_fit = (1..=BOUNDARY_CHARS_MAX).contains(&value.len());
        (name.trim().eq_ignore_ascii_case("boundary") && is_fit).then(|| value.to_owned())
    })
}

/// Whether the head of a part says that it is the field of this name.
fn is_named(head: &[u8], name: &str) -> bool {
    let Ok(head) = str::from_utf8(head) else { return false };
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    lines.any(|(header, value)| {
        header.trim().eq_ignore_ascii_case("content-disposition")
            && value.split(';').skip(1).any(|part| {
                let named = part.trim().strip_prefix("name=");
                named.is_some_and(|value| value.trim_matches('"') == name)
            })
    })
}

/// Where `needle` begins. Pictures are searched once, so a simple way is fast enough: the first
/// byte is looked for by the library, which is good at that.
fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut from = 0;
    loop {
        let at = from + haystack.get(from..)?.iter().position(|byte| byte == first)?;
        if haystack[at + 1..].starts_with(rest) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, body: &[u8]) -> Result<Vec<u8>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        let content = field(&headers, &Bytes::copy_from_slice(body), "image");
        content.map(|bytes| bytes.to_vec()).map_err(|error| error.code().to_owned())
    }

    const FORM: &str = "multipart/form-data; boundary=x";

    #[test]
    fn the_field_is_found_among_others_and_its_bytes_are_untouched() {
        let body = b"--x\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nhi\r\n\
            --x\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\
            Content-Type: text/html\r\n\r\n\xff\r\n--y\r\n\0\r\n--x--\r\n";
        assert_eq!(read(FORM, body), Ok(b"\xff\r\n--y\r\n\0".to_vec()));
        let quoted = "multipart/form-data; charset=utf-8; boundary=\"x\"";
        assert!(read(quoted, body).is_ok());
    }

    #[test]
    fn a_broken_form_is_refused() {
        let invalid = Err("INVALID_FORM".to_owned());
        let form_without_image =
            b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--";
        let endless = b"--x\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\nabc";
        let headless = b"--x\r\nabc\r\n--x--";
        for body in [&b""[..], b"--", b"--x", b"--x--", b"--y\r\n", form_without_image, endless] {
            assert_eq!(read(FORM, body), invalid, "{:?}", String::from_utf8_lossy(body));
        }
        assert_eq!(read(FORM, headless), invalid);
        for kind in ["application/json", "multipart/form-data", "multipart/mixed; boundary=x"] {
            assert_eq!(read(kind, b"--x--"), Err("UNSUPPORTED_MEDIA_TYPE".to_owned()), "{kind}");
        }
    }
}
