//! How one value is read: each rule turns text into a typed value or says what to write instead.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use urr_auth::TermsVersion;
use urr_gateway::AddressRange;
use urr_kernel::Secret;
use urr_service::AcceptedCredential;

use super::source::RawValue;

/// How much of a value `urr config` and error messages show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueVisibility {
    Plain,
    /// An address that may carry a password.
    Address,
    Hidden,
}

/// How one setting is read.
pub struct ValueRule<T> {
    /// Completes "not …".
    pub noun: &'static str,
    /// Completes "use …".
    pub fix: String,
    pub visibility: ValueVisibility,
    read: ReadValue<T>,
}

type ReadValue<T> = Box<dyn Fn(&RawValue) -> Option<T>>;

impl<T> ValueRule<T> {
    pub fn read(&self, raw: &RawValue) -> Option<T> {
        (self.read)(raw)
    }
}

/// A rule over one trimmed text.
fn rule<T>(
    noun: &'static str,
    fix: impl Into<String>,
    read: impl Fn(&str) -> Option<T> + 'static,
) -> ValueRule<T> {
    let read = move |raw: &RawValue| match raw {
        RawValue::Text(text) => read(text.trim()),
        RawValue::List(_) => None,
    };
    ValueRule { noun, fix: fix.into(), visibility: ValueVisibility::Plain, read: Box::new(read) }
}

/// Empty means none.
pub fn optional<T: 'static>(inner: ValueRule<T>) -> ValueRule<Option<T>> {
    let fix = format!("{}, or leave it empty", inner.fix);
    let ValueRule { noun, visibility, read, .. } = inner;
    let read = move |raw: &RawValue| {
        if raw.is_empty() { Some(None) } else { read(raw).map(Some) }
    };
    ValueRule { noun, fix, visibility, read: Box::new(read) }
}

/// Several values: a TOML list, or text with commas.
pub fn list<T: 'static>(inner: ValueRule<T>) -> ValueRule<Vec<T>> {
    let fix = format!("a list whose items are each {}", inner.fix);
    let ValueRule { visibility, read, .. } = inner;
    let read = move |raw: &RawValue| {
        let items = match raw {
            RawValue::Text(text) => text.split(',').map(str::to_owned).collect(),
            RawValue::List(items) => items.clone(),
        };
        let written = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
        written.map(|item| read(&RawValue::Text(item.to_owned()))).collect()
    };
    ValueRule { noun: "such a list", fix, visibility, read: Box::new(read) }
}

pub fn number<T>(range: RangeInclusive<T>) -> ValueRule<T>
where
    T: std::str::FromStr + PartialOrd + Display + 'static,
{
    let fix = format!("a number from {} to {}", range.start(), range.end());
    rule("a number in range", fix, move |text| {
        text.parse().ok().filter(|number| range.contains(number))
    })
}

pub fn port() -> ValueRule<u16> {
    ValueRule { noun: "a port", ..number(1..=u16::MAX) }
}

/// How long something lasts: at most a year, so that it can be added to any time.
pub fn seconds() -> ValueRule<u64> {
    number(1..=31_536_000)
}

/// The time between two runs of a job: at most a day.
pub fn millis() -> ValueRule<u64> {
    number(10..=86_400_000)
}

pub fn flag() -> ValueRule<bool> {
    rule("a yes or no", "true or false", |text| match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    })
}

pub fn choice<T: Copy + 'static>(choices: &'static [(&'static str, T)]) -> ValueRule<T> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    rule("a known choice", format!("one of {}", names.join(", ")), move |text| {
        choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
    })
}

pub fn text() -> ValueRule<String> {
    rule("text", "one line of text", |text| {
        let one_line = !text.is_empty() && !text.chars().any(char::is_control);
        one_line.then(|| text.to_owned())
    })
}

pub fn terms_version() -> ValueRule<TermsVersion> {
    let fix = "1 to 20 letters, digits, dots or dashes, such as 2026-11";
    rule("a version", fix, TermsVersion::parse)
}

pub fn path() -> ValueRule<PathBuf> {
    rule("a folder", "the path of a folder", |text| (!text.is_empty()).then(|| text.into()))
}

pub fn file() -> ValueRule<PathBuf> {
    rule("a file", "the path of a file", |text| (!text.is_empty()).then(|| text.into()))
}

pub fn ip_address() -> ValueRule<IpAddr> {
    rule("an IP address", "an address such as 127.0.0.1 or 0.0.0.0", |text| text.parse().ok())
}

/// What is logged. Stricter than the filter itself, which takes the misspelt `inof` for a module.
pub fn log_filter() -> ValueRule<String> {
    let fix = "error, warn, info, debug, trace or off, also per module: info,urr_gateway=debug";
    let is_level =
        |text: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&text.trim());
    rule("a log level", fix, move |text| {
        let known = text.split(',').all(|directive| match directive.split_once('=') {
            Some((module, level)) => !module.trim().is_empty() && is_level(level),
            None => is_level(directive),
        });
        known.then(|| text.to_owned())
    })
}

/// `host:port`.
pub fn host_and_port() -> ValueRule<String> {
    rule("a host and port", "host:port", |text| is_host(text, true).then(|| text.to_owned()))
}

/// A host alone.
pub fn host() -> ValueRule<String> {
    rule("a host", "a host name or address without port", |text| {
        (is_host(text, false) && !text.contains(':')).then(|| text.to_owned())
    })
}

/// An address of another service, kept without its last slash so that paths can be appended.
pub fn http_url() -> ValueRule<String> {
    let rule = rule("an HTTP address", "http://host:port or https://host", |text| {
        let (_, rest) = scheme_of(text, &["http", "https"])?;
        let host = rest.split('/').next().unwrap_or(rest);
        is_host(host, false).then(|| text.trim_end_matches('/').to_owned())
    });
    ValueRule { visibility: ValueVisibility::Address, ..rule }
}

/// Where one of our own services listens.
pub fn service_url() -> ValueRule<String> {
    let fix = "http://host:port or https://host:port without a path";
    let rule = rule("the address of a service", fix, |text| {
        let (_, rest) = scheme_of(text, &["http", "https"])?;
        let host = rest.strip_suffix('/').unwrap_or(rest);
        is_host(host, false).then(|| text.trim_end_matches('/').to_owned())
    });
    ValueRule { visibility: ValueVisibility::Address, ..rule }
}

/// A web origin. `*` is refused, because our answers depend on cookies.
pub fn web_origin() -> ValueRule<String> {
    rule("a web origin", "http://host:port or https://host, without path", |text| {
        let (_, host) = scheme_of(text, &["http", "https"])?;
        is_host(host, false).then(|| text.to_owned())
    })
}

/// The address of a server that may carry a user name and password. The `jdbc:` of the addresses
/// that Java services use is taken off.
pub fn connection_url(schemes: &'static [&'static str]) -> ValueRule<Secret> {
    let rule = rule("such an address", format!("{}://host:port", schemes[0]), move |text| {
        let text = text.strip_prefix("jdbc:").unwrap_or(text);
        let (_, rest) = scheme_of(text, schemes)?;
        let host = rest.rsplit('@').next().unwrap_or(rest);
        (!host.is_empty() && !host.starts_with(['/', '?'])).then(|| Secret::new(text))
    });
    ValueRule { visibility: ValueVisibility::Address, ..rule }
}

/// A secret of another party, such as a password.
pub fn password() -> ValueRule<Secret> {
    ValueRule {
        visibility: ValueVisibility::Hidden,
        ..rule("a password", "one", |text| Some(Secret::new(text)))
    }
}

/// A secret of our own.
pub fn secret(bytes_min: usize) -> ValueRule<Secret> {
    let fix = format!("at least {bytes_min} bytes; `openssl rand -hex 32` makes one");
    let rule =
        rule("long enough", fix, move |text| (text.len() >= bytes_min).then(|| Secret::new(text)));
    ValueRule { visibility: ValueVisibility::Hidden, ..rule }
}

/// What one of our own programs proves itself with to this process.
pub fn caller_credential() -> ValueRule<AcceptedCredential> {
    let fix = "caller=credential, as `urr credentials` prints it";
    let rule = rule("a credential of a caller", fix, |text| {
        let (caller, credential) = text.split_once('=')?;
        let is_derived =
            credential.len() == 64 && credential.bytes().all(|b| b.is_ascii_hexdigit());
        let caller = caller.parse().ok()?;
        is_derived.then(|| AcceptedCredential { caller, credential: Secret::new(credential) })
    });
    ValueRule { visibility: ValueVisibility::Hidden, ..rule }
}

/// The secret that signs log-ins: see [`signing_key`].
pub fn jwt_secret() -> ValueRule<Secret> {
    let fix = "Base64 of at least 32 bytes, or at least 32 plain bytes; `openssl rand -base64 32` \
               makes one";
    let rule = rule("long enough", fix, |text| {
        (signing_key(text).len() >= SIGNING_KEY_BYTES_MIN).then(|| Secret::new(text))
    });
    ValueRule { visibility: ValueVisibility::Hidden, ..rule }
}

/// Of every secret that we make ourselves.
pub const OWN_SECRET_BYTES_MIN: usize = 32;
const SIGNING_KEY_BYTES_MIN: usize = 32;

/// The bytes a signing secret stands for: its Base64 decoding when that is long enough, otherwise
/// its own bytes. One function for the signer and every verifier, so that they cannot disagree.
pub fn signing_key(text: &str) -> Vec<u8> {
    decode_base64(text)
        .filter(|bytes| bytes.len() >= SIGNING_KEY_BYTES_MIN)
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Standard Base64, with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(text).ok()
}

pub fn address_range() -> ValueRule<AddressRange> {
    rule("an address range", "10.0.0.0/8, or one address", |text| {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix.map_or(Some(bits_max), |prefix| prefix.parse().ok())?;
        (prefix_bits <= bits_max).then_some(AddressRange { address, prefix_bits })
    })
}

fn scheme_of<'a>(text: &'a str, schemes: &[&str]) -> Option<(&'a str, &'a str)> {
    let (scheme, rest) = text.split_once("://")?;
    let plain = !rest.chars().any(|c| c.is_whitespace() || c.is_control());
    (plain && schemes.contains(&scheme)).then_some((scheme, rest))
}

/// Whether this is a host, with a port if it has one or `port_required`.
fn is_host(text: &str, port_required: bool) -> bool {
    let bracket_end = text.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match text[bracket_end..].rfind(':') {
        Some(colon) => text.split_at(bracket_end + colon),
        None => (text, ""),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let port_fits = port.strip_prefix(':').map_or(!port_required, is_port);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_fits = bracketed.map_or(!host.is_empty() && host.chars().all(is_name), |address| {
        address.parse::<std::net::Ipv6Addr>().is_ok()
    });
    host_fits && port_fits
}

/// An address without the credentials it may carry.
///
/// Everything up to the last `@` goes: a password that was not encoded may itself hold `@` or `/`.
/// An address that is not one is hidden wholly.
pub fn mask_address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return if text.is_empty() { String::new() } else { "[hidden]".to_owned() };
    };
    let rest = match rest.rsplit_once('@') {
        // The last `@` is in the query, where a password may stand too.
        Some((before, _)) if before.contains('?') => return format!("{scheme}://[hidden]"),
        Some((_, rest)) => format!("[hidden]@{rest}"),
        None => rest.to_owned(),
    };
    let Some((place, query)) = rest.split_once('?') else {
        return format!("{scheme}://{rest}");
    };
    let mask = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=[hidden]"),
        _ => pair.to_owned(),
    };
    let query: Vec<_> = query.split('&').map(mask).collect();
    format!("{scheme}://{place}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads each text; shows what was understood, or `-` when it was refused.
    fn check<T: std::fmt::Debug>(rule: ValueRule<T>, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            let read = rule.read(&RawValue::Text((*text).to_owned()));
            let found = read.map_or("-".to_owned(), |value| format!("{value:?}"));
            assert_eq!(found, *expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_outside_their_range_are_refused() {
        let cases = [("1", "1"), (" 80 ", "80"), ("0", "-"), ("70000", "-"), ("x", "-"), ("", "-")];
        check(port(), &cases);
        check(number(0.0..=1.0), &[("0.5", "0.5"), ("1", "1.0"), ("1.1", "-"), ("NaN", "-")]);
    }

    #[test]
    fn lists_are_split_at_commas_and_trimmed() {
        check(
            list(web_origin()),
            &[
                ("", "[]"),
                ("https://a.kr , http://b:80,", r#"["https://a.kr", "http://b:80"]"#),
                ("*", "-"),
                ("https://a.kr/path", "-"),
            ],
        );
    }

    #[test]
    fn a_misspelt_log_level_is_refused() {
        check(
            log_filter(),
            &[
                ("info", "\"info\""),
                ("warn,urr_gateway=debug", "\"warn,urr_gateway=debug\""),
                ("inof", "-"),
                ("info,urr=loud", "-"),
                ("", "-"),
            ],
        );
    }

    #[test]
    fn hosts_and_http_addresses_are_told_from_nonsense() {
        check(
            host_and_port(),
            &[("a:9092", "\"a:9092\""), ("[::1]:9092", "\"[::1]:9092\""), ("a", "-"), (":1", "-")],
        );
        check(
            http_url(),
            &[
                ("http://auth:3005/", "\"http://auth:3005\""),
                ("https://[::1]/x", "\"https://[::1]/x\""),
                ("auth:3005", "-"),
                ("http://user:password@auth", "-"),
                ("http://auth:port", "-"),
                ("ftp://auth", "-"),
            ],
        );
    }

    #[test]
    fn address_ranges_have_a_prefix_that_fits() {
        let range = |text: &str| address_range().read(&RawValue::Text(text.to_owned()));
        let ten = range("10.0.0.0/8").unwrap();
        assert_eq!((ten.address.to_string().as_str(), ten.prefix_bits), ("10.0.0.0", 8));
        assert_eq!(range("::1").unwrap().prefix_bits, 128);
        assert_eq!(
            (range("10.0.0.0/33"), range("10.0.0/8"), range("10.0.0.0/")),
            (None, None, None)
        );
    }

    #[test]
    fn a_java_database_address_loses_its_prefix() {
        let rule = connection_url(&["postgres", "postgresql"]);
        let read = |text: &str| rule.read(&RawValue::Text(text.to_owned()));
        let secret = read("jdbc:postgresql://localhost:5438/auth_db").unwrap();
        assert_eq!(secret.expose(), "postgresql://localhost:5438/auth_db");
        assert!(read("mysql://localhost/auth_db").is_none());
        assert!(read("postgres:///auth_db").is_none());
        assert!(read("postgres://user@/auth_db").is_none());
    }

    #[test]
    fn base64_is_decoded_when_it_is_long_enough_and_taken_as_it_is_otherwise() {
        let encoded = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        assert_eq!(signing_key(encoded), b"0123456789abcdef0123456789abcdef");
        assert_eq!(signing_key(encoded.trim_end_matches('=')), signing_key(encoded));
        // Forty letters are Base64 of thirty bytes: too few, so they count as forty plain bytes.
        assert_eq!(signing_key(&"a".repeat(40)).len(), 40);
        assert_eq!(signing_key("correct horse battery staple, twice over").len(), 40);
        check(jwt_secret(), &[("too short", "-"), (encoded, "[secret]")]);
    }

    #[test]
    fn addresses_are_shown_without_their_credentials() {
        for (address, expected) in [
            ("", ""),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://urr:hunter2@host/db", "postgres://[hidden]@host/db"),
            ("redis://:hun@ter/2@host", "redis://[hidden]@host"),
            (
                "jdbc:postgresql://h/db?user=u&password=hunter2",
                "jdbc:postgresql://h/db?user=u&password=[hidden]",
            ),
            ("urr:hunter2@host", "[hidden]"),
        ] {
            assert_eq!(mask_address(address), expected);
        }
    }
}
