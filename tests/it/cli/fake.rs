//! A tiny HTTP server whose answers a test writes, and which remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// `METHOD target`
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// Bytes that are announced but never sent.
    missing: usize,
    hold: Duration,
    hang_up: bool,
}

impl Reply {
    /// A body that is sent as it is.
    pub(super) fn raw(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
            missing: 0,
            hold: Duration::ZERO,
            hang_up: false,
        }
    }

    /// `{data, meta}`
    pub(super) fn data(status: u16, data: &Value) -> Self {
        Self::raw(status, json!({"data": data, "meta": {"requestId": "req_1"}}).to_string())
    }

    /// A page of a list.
    pub(super) fn page(items: &Value, next: Option<&str>) -> Self {
        Self::raw(200, json!({"data": items, "meta": {"requestId": "req_1", "nextCursor": next}}).to_string())
    }

    /// `{error, meta}`
    pub(super) fn error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"error": {"code": code, "message": message}, "meta": {"requestId": "req_1"}});
        Self::raw(status, body.to_string())
    }

    /// No answer: the connection is closed after the request was read.
    pub(super) fn hang_up() -> Self {
        Self { hang_up: true, ..Self::raw(0, "") }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Announces more than is sent.
    pub(super) fn cut_by(mut self, bytes: usize) -> Self {
        self.missing = bytes;
        self
    }

    pub(super) fn held(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }
}

/// Runs until the test process ends.
pub(super) struct Fake {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Answers each request by a function of the request and its number, from 0.
    pub(super) fn start(answer: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || {
                    let Some(request) = read(&connection) else { return };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    write(connection, &answer(&request, number));
                });
            }
        });
        Self { url, asked }
    }

    /// The same answer to everything.
    pub(super) fn always(reply: Reply) -> Self {
        Self::start(move |_, _| reply.clone())
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The only request.
    pub(super) fn only(&self) -> Asked {
        let asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.into_iter().next().unwrap()
    }
}

fn read(connection: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, target, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

fn write(mut connection: TcpStream, reply: &Reply) {
    if reply.hang_up {
        return;
    }
    thread::sleep(reply.hold);
    let length = if reply.status == 204 {
        String::new()
    } else {
        format!("content-length: {}\r\n", reply.body.len() + reply.missing)
    };
    let mut text = format!("HTTP/1.1 {} x\r\n{length}connection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(&reply.body);
    // The client may be gone already.
    let _ = connection.write_all(text.as_bytes());
}
