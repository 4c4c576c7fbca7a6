//! The one server that a command talks to: an http or https origin and nothing more.

use std::fmt;

use crate::failure::{Failure, Result};

/// Scheme, host and port, in lower case, without a port that the scheme implies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    text: String,
    host: String,
    port: u16,
}

impl Origin {
    /// Reads an origin: no user info, no path other than `/`, no query, no fragment.
    ///
    /// # Errors
    /// Names what the URL must not have.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let wrong = |why: &str| Err(Failure::usage(format!("the URL {} {why}", shown(url))));
        if url.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return wrong("must not contain white space");
        }
        let lower = url.to_ascii_lowercase();
        let (scheme, implied, rest) = if let Some(rest) = lower.strip_prefix("https://") {
            ("https", 443, rest)
        } else if let Some(rest) = lower.strip_prefix("http://") {
            ("http", 80, rest)
        } else {
            return wrong("must begin with http:// or https://");
        };
        if rest.contains(['?', '#']) {
            return wrong("must not have a query or fragment");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return wrong("must not have a path");
        }
        if authority.contains('@') {
            return wrong("must not have user info");
        }
        let Ok(parsed) = authority.parse::<ureq::http::uri::Authority>() else {
            return wrong("has no valid host");
        };
        if parsed.host().is_empty() || authority.ends_with(':') {
            return wrong("has no valid host");
        }
        let port = parsed.port_u16().unwrap_or(implied);
        let shown = if port == implied { String::new() } else { format!(":{port}") };
        let host = parsed.host().to_owned();
        Ok(Self { text: format!("{scheme}://{host}{shown}"), host, port })
    }

    /// The origin as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Does the connection use TLS?
    pub(crate) fn is_https(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// Host and port, for looking up addresses.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (self.host.trim_start_matches('[').trim_end_matches(']'), self.port)
    }

    /// Is the host this machine? Then no proxy stands between.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.starts_with("127.") || self.host == "[::1]"
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A URL for messages: without user info, query and fragment.
pub(crate) fn shown(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let plain = match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) =
                rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let path = path.map(|path| format!("/{path}")).unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => plain.to_owned(),
    };
    crate::failure::printable(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_spelling() {
        for (url, origin) in [
            ("HTTPS://OCC.Example.com:443/", "https://occ.example.com"),
            ("http://127.0.0.1:7480", "http://127.0.0.1:7480"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(Origin::parse(url).unwrap().as_str(), origin);
        }
        assert!(Origin::parse("http://[::1]").unwrap().is_loopback());
        assert!(!Origin::parse("https://localhost.example.com").unwrap().is_loopback());
    }

    #[test]
    fn what_is_not_an_origin_is_named() {
        for (url, why) in [
            ("occ.example.com", "must begin with http"),
            ("ftp://x", "must begin with http"),
            ("http://user:secret@host", "user info"),
            ("http://host/path", "must not have a path"),
            ("http://host/?q=secret", "query or fragment"),
            ("http://host#secret", "query or fragment"),
            ("http://", "no valid host"),
            ("http://host:", "no valid host"),
            ("http://ho st", "white space"),
        ] {
            let failure = Origin::parse(url).unwrap_err();
            assert!(failure.message().contains(why), "{url}: {}", failure.message());
            assert!(!failure.message().contains("secret"), "{}", failure.message());
            assert_eq!(failure.exit().code(), 2);
        }
    }
}
