//! The client's IP address (E-2).
//!
//! The peer of the connection is the client unless it is one of our trusted proxies. Then the last
//! address in the forwarding header that is not a trusted proxy is the client. Services get it in
//! `x-urr-client-address`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::Gateway;
use crate::headers::remove_matching;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const FORWARDED_PREFIX: &str = "x-forwarded-";
pub const CLIENT_ADDRESS: HeaderName = HeaderName::from_static("x-urr-client-address");

/// The client's address. `None` if the request came over no connection, as in tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub Option<IpAddr>);

impl ClientAddress {
    /// The name under which the client is rate limited. An IPv6 client is its /64 network, because
    /// whoever has one address usually has all of them.
    pub fn bucket(self) -> String {
        match self.0 {
            None => "unknown".to_owned(),
            Some(IpAddr::V4(address)) => ipv4_text(address),
            Some(IpAddr::V6(address)) => {
                let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
                format!("{network}/64")
            }
        }
    }
}

/// As `Display` writes it, but ten times as fast: every request needs it twice.
fn ipv4_text(address: Ipv4Addr) -> String {
    let mut text = String::with_capacity("255.255.255.255".len());
    for octet in address.octets() {
        if !text.is_empty() {
            text.push('.');
        }
        let digit = |unit: u8| char::from(b'0' + octet / unit % 10);
        if octet >= 100 {
            text.push(digit(100));
        }
        if octet >= 10 {
            text.push(digit(10));
        }
        text.push(digit(1));
    }
    text
}

/// A range of addresses such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    pub address: IpAddr,
    pub prefix_bits: u8,
}

impl AddressRange {
    pub fn contains(self, address: IpAddr) -> bool {
        let (range, address) = (self.address.to_canonical(), address.to_canonical());
        let shift = |bits: u32| bits.saturating_sub(u32::from(self.prefix_bits));
        match (range, address) {
            (IpAddr::V4(range), IpAddr::V4(address)) => {
                let different = range.to_bits() ^ address.to_bits();
                different.checked_shr(shift(u32::BITS)).unwrap_or(0) == 0
            }
            (IpAddr::V6(range), IpAddr::V6(address)) => {
                let different = range.to_bits() ^ address.to_bits();
                different.checked_shr(shift(u128::BITS)).unwrap_or(0) == 0
            }
            (_, _) => false,
        }
    }
}

/// Finds the address, writes it for the service, and removes the forwarding headers.
pub fn resolve_address(gateway: &Gateway, request: &mut Request) -> ClientAddress {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
    let is_trusted = |address: IpAddr| {
        gateway.settings.trusted_proxies.iter().any(|range| range.contains(address))
    };
    let address = peer.map(|peer| client_behind(peer, request.headers(), is_trusted));
    remove_matching(request.headers_mut(), is_forwarding_header);
    if let Some(address) = address {
        let text = match address {
            IpAddr::V4(address) => ipv4_text(address),
            IpAddr::V6(address) => address.to_string(),
        };
        let text = HeaderValue::try_from(text).expect("an address is ASCII");
        request.headers_mut().insert(CLIENT_ADDRESS, text);
    }
    ClientAddress(address)
}

fn is_forwarding_header(name: &HeaderName) -> bool {
    *name == header::FORWARDED || *name == X_REAL_IP || name.as_str().starts_with(FORWARDED_PREFIX)
}

/// Goes from the nearest hop to the farthest, as long as the hop before is a trusted proxy.
fn client_behind(peer: IpAddr, headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> IpAddr {
    if !is_trusted(peer) {
        return peer;
    }
    let old = headers.contains_key(X_FORWARDED_FOR);
    let new = headers.contains_key(header::FORWARDED);
    let hops = match (old, new) {
        (true, false) => hops(headers, &X_FORWARDED_FOR, parse_hop),
        (false, true) => hops(headers, &header::FORWARDED, parse_forwarded),
        // Our proxy writes one of them and forwards the other as the client sent it. We cannot
        // tell which, so neither is used.
        (true, true) | (false, false) => Vec::new(),
    };
    let mut client = peer;
    for hop in hops.into_iter().rev() {
        let Some(hop) = hop else { break };
        client = hop;
        if !is_trusted(hop) {
            break;
        }
    }
    client
}

/// The hops that a header lists, farthest first. A hop that cannot be parsed is `None`.
fn hops(
    headers: &HeaderMap,
    name: &HeaderName,
    parse: fn(&str) -> Option<IpAddr>,
) -> Vec<Option<IpAddr>> {
    let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
    values.flat_map(|value| value.split(',')).map(parse).collect()
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    address.or_else(|| bare().map(IpAddr::V6)).map(|address| address.to_canonical())
}

/// An element of `Forwarded` (RFC 7239): `for="[2001:db8::1]:80";proto=https`.
fn parse_forwarded(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    match (named.next(), named.next()) {
        (Some((_, value)), None) => parse_hop(value.trim().trim_matches('"')),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(address: &str, prefix_bits: u8) -> AddressRange {
        AddressRange { address: address.parse().unwrap(), prefix_bits }
    }

    fn client(peer: &str, pairs: &[(HeaderName, &str)]) -> String {
        let trusted = [range("10.0.0.0", 8), range("2001:db8::", 32)];
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value.parse().unwrap());
        }
        let is_trusted = |address| trusted.iter().any(|range| range.contains(address));
        client_behind(peer.parse().unwrap(), &headers, is_trusted).to_string()
    }

    fn forwarded_for(value: &str) -> [(HeaderName, &str); 1] {
        [(X_FORWARDED_FOR, value)]
    }

    #[test]
    fn e_2_only_trusted_proxies_are_believed() {
        assert_eq!(client("203.0.113.9", &forwarded_for("1.2.3.4")), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &forwarded_for("1.2.3.4")), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("2001:db8::5", &forwarded_for("1.2.3.4")), "1.2.3.4");
    }

    #[test]
    fn e_2_hops_that_the_client_wrote_are_not_believed() {
        // The client pretends to be 6.6.6.6; our proxy adds who really called.
        assert_eq!(client("10.0.0.1", &forwarded_for("6.6.6.6, 1.2.3.4")), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &forwarded_for("6.6.6.6, 1.2.3.4, 10.0.0.2")), "1.2.3.4");
        assert_eq!(client("10.0.0.1", &forwarded_for("10.0.0.7, 1.2.3.4, 10.0.0.2")), "1.2.3.4");
        let lines = [(X_FORWARDED_FOR, "6.6.6.6"), (X_FORWARDED_FOR, "1.2.3.4")];
        assert_eq!(client("10.0.0.1", &lines), "1.2.3.4");
        // A hop that cannot be parsed ends the chain: the nearest parsed one counts.
        assert_eq!(client("10.0.0.1", &forwarded_for("1.2.3.4, unknown")), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &forwarded_for("1.2.3.4, unknown, 10.0.0.2")), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &forwarded_for("")), "10.0.0.1");
    }

    #[test]
    fn e_2_forwarded_is_read_where_it_stands_alone() {
        let forwarded = |value| [(header::FORWARDED, value)];
        for (value, expected) in [
            ("for=1.2.3.4", "1.2.3.4"),
            ("for=6.6.6.6, For=\"1.2.3.4:8080\";proto=https", "1.2.3.4"),
            ("proto=http;for=\"[2a00::1]:443\"", "2a00::1"),
            ("for=_hidden", "10.0.0.1"),
            ("for=1.2.3.4;for=5.6.7.8", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &forwarded(value)), expected, "{value}");
        }
        let both = [(header::FORWARDED, "for=1.2.3.4"), (X_FORWARDED_FOR, "5.6.7.8")];
        assert_eq!(client("10.0.0.1", &both), "10.0.0.1");
    }

    #[test]
    fn ranges_have_edges() {
        let check = |range: AddressRange, address: &str| range.contains(address.parse().unwrap());
        assert!(check(range("10.1.0.0", 16), "10.1.255.255"));
        assert!(!check(range("10.1.0.0", 16), "10.2.0.0"));
        assert!(check(range("10.1.0.1", 32), "10.1.0.1"));
        assert!(!check(range("10.1.0.1", 32), "10.1.0.2"));
        assert!(check(range("0.0.0.0", 0), "255.255.255.255"));
        assert!(check(range("::", 0), "ffff::"));
        assert!(!check(range("::", 0), "1.2.3.4"));
        assert!(check(range("10.0.0.0", 8), "::ffff:10.1.2.3"), "a mapped address is the same");
    }

    #[test]
    fn an_ipv4_address_is_written_as_display_writes_it() {
        for octet in 0..=u8::MAX {
            let address = Ipv4Addr::new(octet, 0, u8::MAX - octet, 10);
            assert_eq!(ipv4_text(address), address.to_string());
        }
    }

    #[test]
    fn neighbours_of_one_ipv6_network_are_one_client() {
        let bucket = |text: &str| ClientAddress(Some(text.parse().unwrap())).bucket();
        assert_eq!(bucket("2a00:1:2:3:4::1"), bucket("2a00:1:2:3:ffff::9"));
        assert_ne!(bucket("2a00:1:2:3::1"), bucket("2a00:1:2:4::1"));
        assert_eq!(bucket("1.2.3.4"), "1.2.3.4");
        assert_ne!(bucket("1.2.3.4"), bucket("1.2.3.5"));
    }
}
