//! The readiness probe: one GET over plain loopback TCP.
//!
//! Written by hand in forty lines, because all it needs is the status line: no client
//! with pools, proxies and redirects can lead it elsewhere.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A status line is shorter than this.
const STATUS_LINE_BYTES_MAX: usize = 256;

/// Where and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Loopback port.
    pub(super) port: u16,
    /// Path and query.
    pub(super) path: String,
    /// Then the probe has failed.
    pub(super) timeout: Duration,
}

/// Does the target answer 200 in time?
pub(super) async fn is_ready(target: &Target) -> bool {
    matches!(tokio::time::timeout(target.timeout, status(target)).await, Ok(Ok(200)))
}

async fn status(target: &Target) -> std::io::Result<u16> {
    let Target { port, path, .. } = target;
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: occ\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(STATUS_LINE_BYTES_MAX);
    while !head.contains(&b'\n') && head.len() < STATUS_LINE_BYTES_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    parse_status(&head).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

fn parse_status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read() {
        assert_eq!(parse_status(b"HTTP/1.1 200 OK\r\nA: b\r\n"), Some(200));
        assert_eq!(parse_status(b"HTTP/1.0 503 Service Unavailable\r\n"), Some(503));
    }

    #[test]
    fn other_protocols_have_no_status() {
        assert_eq!(parse_status(b"SSH-2.0-OpenSSH_9.2\r\n"), None);
        assert_eq!(parse_status(b"HTTP/2 200\r\n"), None);
        assert_eq!(parse_status(b""), None);
    }

    #[tokio::test]
    async fn a_closed_port_is_not_ready() {
        let port = {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap().port()
        };
        let target = Target { port, path: "/readyz".to_owned(), timeout: Duration::from_secs(1) };
        assert!(!is_ready(&target).await);
    }
}
