//! The HTTP client: one origin, no redirects, strict envelopes, retries where repeating is safe.

mod answer;
mod roots;

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::http::{Method, Request};

use crate::failure::{Exit, Failure, Result};
use crate::origin::Origin;

pub(crate) use answer::{Answer, Raw};

/// Times that a request is repeated.
const REPEATS_MAX: u32 = 3;
/// First pause before a repetition; doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// Largest answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Items that are asked for at once.
const PAGE_ITEMS: usize = 100;
/// Seconds of `Retry-After` that make sense.
const RETRY_AFTER_SECS: std::ops::RangeInclusive<u64> = 1..=3600;

/// Talks to one server with one credential.
pub(crate) struct Client {
    agent: Agent,
    origin: Origin,
    key: Option<String>,
    timeout: Duration,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    if_match: Option<String>,
    idempotency_key: Option<String>,
    server_wait: Duration,
    limit: Option<Duration>,
    read_back: Option<String>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
            if_match: None,
            idempotency_key: None,
            server_wait: Duration::ZERO,
            limit: None,
            read_back: None,
        }
    }

    /// Reads.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates or starts something.
    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    /// Changes.
    pub(crate) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::PATCH, path).body(body)
    }

    /// Removes.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Any method, for `occ api`.
    pub(crate) fn of(method: Method, path: impl Into<String>) -> Self {
        Self::new(method, path)
    }

    /// Sends a document.
    pub(crate) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a query parameter if there is a value.
    pub(crate) fn query_if(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Makes the write conditional.
    pub(crate) fn if_match(mut self, tag: Option<String>) -> Self {
        self.if_match = tag;
        self
    }

    /// Declares the operation repeatable under a key: the given one or a new one.
    pub(crate) fn repeatable(mut self, key: Option<String>) -> Self {
        self.idempotency_key = Some(key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()));
        self
    }

    /// Lets the server hold the answer back for a while.
    pub(crate) fn held(mut self, wait: Duration) -> Self {
        self.server_wait = wait;
        self.query("wait", wait.as_secs().to_string())
    }

    /// Gives the whole exchange less time than the flag does.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The command that shows what became of an uncertain write.
    pub(crate) fn read_back(mut self, command: impl Into<String>) -> Self {
        self.read_back = Some(command.into());
        self
    }

    fn is_repeatable(&self) -> bool {
        self.method == Method::GET || self.idempotency_key.is_some()
    }

    fn target(&self) -> String {
        let mut target = self.path.clone();
        for (index, (name, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            target.push_str(&segment(value));
        }
        target
    }
}

/// A text as one segment of a path or one value of a query.
pub(crate) fn segment(text: &str) -> String {
    const KEPT: percent_encoding::AsciiSet =
        percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    percent_encoding::utf8_percent_encode(text, &KEPT).to_string()
}

impl Client {
    /// A client; `key` may be absent for routes that take no credential.
    ///
    /// # Errors
    /// A CA bundle that cannot be read.
    pub(crate) fn new(
        origin: Origin,
        key: Option<String>,
        ca_bundle: Option<&std::path::Path>,
        timeout: Duration,
    ) -> Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("occ/", env!("CARGO_PKG_VERSION")))
            .accept("application/json");
        if origin.is_https() {
            config = config.tls_config(roots::tls(ca_bundle)?);
        }
        if origin.is_loopback() {
            config = config.proxy(None);
        }
        Ok(Self { agent: config.build().into(), origin, key, timeout })
    }

    /// Sends a request and reads its envelope.
    ///
    /// # Errors
    /// No connection, time is up, an error answer, an answer that breaks the contract.
    pub(crate) fn send(&self, call: &Call) -> Result<Answer> {
        answer::read(self.exchange(call)?, &self.origin)
    }

    /// Sends a request and returns what came, whatever its shape.
    ///
    /// # Errors
    /// No connection, time is up, a redirect, an error answer.
    pub(crate) fn send_raw(&self, call: &Call) -> Result<Raw> {
        let raw = self.exchange(call)?;
        answer::refuse(&raw, &self.origin)?;
        Ok(raw)
    }

    /// Sends a request and returns what came, error answers too.
    ///
    /// # Errors
    /// No connection, time is up.
    pub(crate) fn look(&self, call: &Call) -> Result<Raw> {
        self.exchange(call)
    }

    /// The `data` of a GET.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub(crate) fn get(&self, path: impl Into<String>) -> Result<Value> {
        Ok(self.send(&Call::get(path))?.data)
    }

    /// All items of a list, or the first `limit`.
    ///
    /// # Errors
    /// As [`Client::send`]; an answer that is not a list.
    pub(crate) fn list(&self, call: &Call, limit: Option<usize>) -> Result<Vec<Value>> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let wanted = limit.map_or(PAGE_ITEMS, |limit| (limit - items.len()).min(PAGE_ITEMS));
            let page = call.clone().query("limit", wanted.to_string()).query_if("cursor", cursor.take());
            let answer = self.send(&page)?;
            let Value::Array(found) = answer.data else {
                return Err(Failure::invalid_response("a list has no array in data"));
            };
            if found.is_empty() && answer.next_cursor.is_some() {
                return Err(Failure::invalid_response("a page is empty but not the last"));
            }
            items.extend(found);
            cursor = answer.next_cursor;
            if cursor.is_none() || limit.is_some_and(|limit| items.len() >= limit) {
                items.truncate(limit.unwrap_or(usize::MAX));
                return Ok(items);
            }
        }
    }

    /// Sends, and repeats where that is safe.
    fn exchange(&self, call: &Call) -> Result<Raw> {
        let whole = self.timeout + call.server_wait;
        let deadline = Instant::now() + call.limit.map_or(whole, |limit| limit.min(whole));
        let mut pause = PAUSE_FIRST;
        let last: OnceCell<Failure> = OnceCell::new();
        for repeat in 0..=REPEATS_MAX {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let (outcome, wait) = match self.once(call, left) {
                Ok(raw) => match self.wait_of(&raw, call, repeat, pause) {
                    None => return Ok(raw),
                    Some(wait) => (Ok(raw), wait),
                },
                Err(failure) if call.is_repeatable() && failure.code() == "CONNECTION_FAILED" => {
                    (Err(failure), pause)
                }
                Err(failure) => return Err(failure),
            };
            let fits = wait < deadline.saturating_duration_since(Instant::now());
            if repeat == REPEATS_MAX || !fits {
                return outcome;
            }
            std::thread::sleep(wait);
            pause *= 2;
            if let Err(failure) = outcome {
                // Kept in case that time is up before another answer.
                let _ = last.set(failure);
            }
        }
        Err(last.into_inner().unwrap_or_else(|| timed_out(&self.origin, self.timeout)))
    }

    /// How long to wait before the request is repeated; `None` when the answer stands.
    fn wait_of(&self, raw: &Raw, call: &Call, repeat: u32, pause: Duration) -> Option<Duration> {
        if !call.is_repeatable() {
            return None;
        }
        let asked = retry_after(raw).map(Duration::from_secs);
        match raw.status {
            503 => Some(asked.filter(|asked| *asked < self.timeout).unwrap_or(pause)),
            429 => asked,
            // The first try of the same request has not ended.
            409 if repeat > 0 && raw.error_code().as_deref() == Some("IDEMPOTENCY_IN_PROGRESS") => {
                Some(asked.unwrap_or(pause))
            }
            _ => None,
        }
    }

    fn once(&self, call: &Call, left: Duration) -> Result<Raw> {
        let url = format!("{}{}", self.origin, call.target());
        let mut request = Request::builder().method(call.method.clone()).uri(url);
        if let Some(key) = &self.key {
            request = request.header("x-api-key", key);
        }
        if let Some(tag) = &call.if_match {
            request = request.header("if-match", tag);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let invalid =
            |error: ureq::http::Error| Failure::usage(format!("the request cannot be made: {error}"));
        let sent = match &call.body {
            Some(body) => {
                let bytes = serde_json::to_vec(body).map_err(Failure::invalid_response)?;
                let request =
                    request.header("content-type", "application/json").body(bytes).map_err(invalid)?;
                self.agent.run(self.limited(request, left))
            }
            // An empty body, announced as such, where one is usual.
            None if matches!(call.method, Method::POST | Method::PATCH | Method::PUT) => {
                let request = request.body(Vec::<u8>::new()).map_err(invalid)?;
                self.agent.run(self.limited(request, left))
            }
            None => self.agent.run(self.limited(request.body(()).map_err(invalid)?, left)),
        };
        let mut response = sent.map_err(|error| self.unsent(call, &error))?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = read.map_err(|error| self.unsent(call, &error))?;
        Ok(Raw { status, headers, body })
    }

    fn limited<B: ureq::AsSendBody>(&self, request: Request<B>, left: Duration) -> Request<B> {
        self.agent.configure_request(request).timeout_global(Some(left)).build()
    }

    /// The failure of an exchange that brought no answer.
    fn unsent(&self, call: &Call, error: &ureq::Error) -> Failure {
        let before_sending = match error {
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
            ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            ureq::Error::Timeout(at) => matches!(at, ureq::Timeout::Resolve | ureq::Timeout::Connect),
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) => true,
            _ => false,
        };
        let failure = match error {
            ureq::Error::Timeout(_) => timed_out(&self.origin, self.timeout),
            ureq::Error::BodyExceedsLimit(_) => Failure::invalid_response("it is too large"),
            error => Failure::local(
                Exit::Failed,
                "CONNECTION_FAILED",
                format!("no answer from {}: {}", self.origin, crate::failure::printable(&error.to_string())),
            ),
        };
        match &call.read_back {
            Some(command) if !before_sending && call.method != Method::GET => {
                failure.hint(format!("it is not known whether this took effect; see: {command}"))
            }
            _ => failure,
        }
    }
}

fn timed_out(origin: &Origin, timeout: Duration) -> Failure {
    Failure::local(
        Exit::TimedOut,
        "TIMED_OUT",
        format!("no answer from {origin} within {} s", timeout.as_secs()),
    )
    .hint("--timeout-seconds gives it longer")
}

fn retry_after(raw: &Raw) -> Option<u64> {
    let secs = raw.headers.get("retry-after")?.to_str().ok()?.parse::<u64>().ok()?;
    RETRY_AFTER_SECS.contains(&secs).then_some(secs)
}
