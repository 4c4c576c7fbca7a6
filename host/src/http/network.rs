//! Network admission: who may reach the listener at all.
//!
//! In development peer, `Host` and `Origin` must be loopback, so that no web page and no other
//! machine reaches a control plane on a workstation. In production client identity headers are
//! refused: no proxy is trusted.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{FORWARDED, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use occ_api::error::ErrorCode;

use crate::config::Mode;
use crate::error::{Error, Result};

/// Row 6 of the order of checks.
pub(super) fn admit(mode: Mode, peer: SocketAddr, headers: &HeaderMap) -> Result<()> {
    let admitted = match mode {
        Mode::Development => is_local(peer, headers),
        Mode::Production => !carries_client_identity(headers),
    };
    if admitted {
        Ok(())
    } else {
        Err(Error::new(ErrorCode::Forbidden, "The request does not come from an admitted network."))
    }
}

fn is_local(peer: SocketAddr, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host_is_local = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(authority_is_local),
        _ => false,
    };
    let origins_are_local = headers.get_all(ORIGIN).iter().all(|origin| {
        let uri = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
        uri.is_some_and(|uri| {
            uri.scheme().is_some() && uri.authority().is_some_and(|part| authority_is_local(part.as_str()))
        })
    });
    is_loopback(peer.ip()) && host_is_local && origins_are_local
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
    }
}

/// `127.0.0.1`, `[::1]` or `localhost`, with or without a port.
fn authority_is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(_, port)| is_port(port)).map(|(host, _)| host),
        None => match authority.split_once(':') {
            Some((host, port)) => port.bytes().all(|byte| byte.is_ascii_digit()).then_some(host),
            None => Some(authority),
        },
    };
    host.is_some_and(|host| matches!(host, "127.0.0.1" | "::1") || host.eq_ignore_ascii_case("localhost"))
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn carries_client_identity(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| *name == FORWARDED || name == "x-real-ip" || name.as_str().starts_with("x-forwarded-"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn development(peer: &str, pairs: &[(&'static str, &'static str)]) -> bool {
        admit(Mode::Development, peer.parse().unwrap(), &headers(pairs)).is_ok()
    }

    #[test]
    fn development_is_loopback_all_the_way() {
        for host in ["127.0.0.1:7480", "localhost", "LOCALHOST:1", "[::1]:7480", "[::1]"] {
            assert!(development("127.0.0.1:9", &[("host", host)]), "{host}");
        }
        assert!(development("[::ffff:127.0.0.1]:9", &[("host", "localhost")]));
        assert!(development("127.0.0.1:9", &[("host", "localhost"), ("origin", "http://localhost:3000")]));
        assert!(!development("10.0.0.1:9", &[("host", "localhost")]));
        assert!(!development("127.0.0.1:9", &[]));
        assert!(!development("127.0.0.1:9", &[("host", "localhost"), ("host", "localhost")]));
        for host in ["example.com", "127.0.0.1.example.com", "localhost:1@example.com", "[::1]x", "127.0.0.2"]
        {
            assert!(!development("127.0.0.1:9", &[("host", host)]), "{host}");
        }
        for origin in ["http://example.com", "null", "localhost"] {
            assert!(!development("127.0.0.1:9", &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn production_refuses_client_identity_headers() {
        let admits = |pairs: &[(&'static str, &'static str)]| {
            admit(Mode::Production, "10.0.0.1:9".parse().unwrap(), &headers(pairs)).is_ok()
        };
        assert!(admits(&[("host", "occ.example.com")]));
        for name in ["forwarded", "x-real-ip", "x-forwarded-for", "x-forwarded-prefix"] {
            assert!(!admits(&[("host", "occ.example.com"), (name, "1")]), "{name}");
        }
    }
}
