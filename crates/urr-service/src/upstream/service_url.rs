//! Where a service listens.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::{Authority, Scheme};

/// Where a process of a service listens: `http://host:port` or `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrl {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
}

/// Where the processes of a service listen: one address or several, with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceUrls(pub(super) Vec<ServiceUrl>);

/// Text that is not the address of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the address of a service: expected http://host:port or https://host:port without a path"
)]
pub struct InvalidServiceUrl(String);

impl ServiceUrl {
    /// The host without brackets, and the port.
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        let usual = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        (host, self.authority.port_u16().unwrap_or(usual))
    }
}

impl FromStr for ServiceUrl {
    type Err = InvalidServiceUrl;

    fn from_str(text: &str) -> Result<ServiceUrl, InvalidServiceUrl> {
        let invalid = || InvalidServiceUrl(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let is_whole = uri.path() == "/" && uri.query().is_none();
        let scheme = uri.scheme().filter(|scheme| [&Scheme::HTTP, &Scheme::HTTPS].contains(scheme));
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.filter(|_| is_whole).ok_or_else(invalid)?.clone();
        Ok(ServiceUrl { scheme: scheme.ok_or_else(invalid)?.clone(), authority })
    }
}

impl FromStr for ServiceUrls {
    type Err = InvalidServiceUrl;

    fn from_str(text: &str) -> Result<ServiceUrls, InvalidServiceUrl> {
        text.split(',').map(|url| url.trim().parse()).collect::<Result<_, _>>().map(ServiceUrls)
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_and_a_host() {
        for good in ["http://ticket.urr.svc:8080", "https://ticket.urr.svc:8443"] {
            let url: ServiceUrl = good.parse().unwrap();
            assert_eq!(url.to_string(), good);
        }
        for bad in [
            "",
            "ticket:8080",
            "ftp://ticket",
            "http://ticket/api",
            "http://ticket/?x",
            "http://user:secret@ticket",
        ] {
            assert!(bad.parse::<ServiceUrl>().is_err(), "{bad}");
            assert!(format!("http://a:1,{bad}").parse::<ServiceUrls>().is_err(), "{bad}");
        }
        let list: ServiceUrls = "http://a:1, https://[::1]".parse().unwrap();
        let places: Vec<_> = list.0.iter().map(ServiceUrl::host_and_port).collect();
        assert_eq!(places, [("a", 1), ("::1", 443)]);
    }
}
