//! Metrics of this process in the Prometheus text format, on a private listener.
//!
//! Labels come from closed sets; none holds an id of a tenant.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::db::PgPool;

/// Upper bounds of the request duration histogram, in seconds.
const DURATION_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 60.0];
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The registry and the families of this layer; cheap to clone. Others add theirs with [`Metrics::register`].
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    /// Requests.
    pub http: HttpMetrics,
    /// Decisions.
    pub iam: IamMetrics,
    pool: PoolMetrics,
}

impl Metrics {
    /// A registry with the families of this layer; `service` labels each of them.
    #[must_use]
    pub fn new(service: &'static str) -> Self {
        let labels = [(std::borrow::Cow::Borrowed("service"), std::borrow::Cow::Borrowed(service))];
        let metrics = Self {
            registry: Arc::new(Mutex::new(Registry::with_labels(labels.into_iter()))),
            ..Self::default()
        };
        metrics.register(|registry| {
            registry.register("occ_http_requests", "Requests answered", metrics.http.requests.clone());
            registry.register(
                "occ_http_request_duration_seconds",
                "Time from the request to its answer",
                metrics.http.durations.clone(),
            );
            registry.register(
                "occ_iam_invalid_rows",
                "Rows that break a rule of IAM",
                metrics.iam.invalid_rows.clone(),
            );
            registry.register(
                "occ_db_pool_connections",
                "Database connections",
                metrics.pool.connections.clone(),
            );
        });
        metrics
    }

    /// Adds families of another layer.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The text of one scrape. `pool` is measured now.
    #[must_use]
    pub fn scrape(&self, pool: &PgPool) -> Option<String> {
        let idle = i64::try_from(pool.num_idle()).unwrap_or(i64::MAX);
        let used = i64::from(pool.size()).saturating_sub(idle);
        for (state, value) in [("idle", idle), ("used", used)] {
            self.pool.connections.get_or_create(&PoolLabels { pool: "main", state }).set(value);
        }
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).ok().map(|()| text)
    }
}

/// The private listener's service: `GET /metrics` and nothing else.
pub fn private(metrics: Metrics, pool: PgPool) -> Router {
    Router::new().route("/metrics", get(move || std::future::ready(scraped(&metrics, &pool))))
}

/// The private listener's service of a worker: metrics, and `/healthz` and `/readyz`, which ask `alive`
/// and `ready` anew each time.
pub fn private_of_worker<A, R>(metrics: Metrics, pool: PgPool, alive: A, ready: R) -> Router
where
    A: Fn() -> bool + Clone + Send + Sync + 'static,
    R: Fn() -> bool + Clone + Send + Sync + 'static,
{
    private(metrics, pool)
        .route("/healthz", get(move || std::future::ready(told(alive(), "ok"))))
        .route("/readyz", get(move || std::future::ready(told(ready(), "ready"))))
}

fn told(well: bool, word: &'static str) -> Response {
    let (status, word) =
        if well { (StatusCode::OK, word) } else { (StatusCode::SERVICE_UNAVAILABLE, "unavailable") };
    (status, axum::Json(serde_json::json!({"status": word}))).into_response()
}

fn scraped(metrics: &Metrics, pool: &PgPool) -> Response {
    match metrics.scrape(pool) {
        Some(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
    status_class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    pool: &'static str,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RecordLabels {
    record: &'static str,
}

/// Requests by method, route template and class of status.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    requests: Family<RouteLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(DURATION_BUCKETS);
        Self { requests: Family::default(), durations: Family::new_with_constructor(histogram) }
    }
}

impl HttpMetrics {
    pub(super) fn observe(&self, method: &Method, route: &str, status: StatusCode, took: Duration) {
        let labels = RouteLabels {
            method: method_label(method),
            route: route.to_owned(),
            status_class: class(status),
        };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// Rows of IAM that were skipped.
#[derive(Debug, Clone, Default)]
pub struct IamMetrics {
    invalid_rows: Family<RecordLabels, Counter>,
}

impl IamMetrics {
    /// Counts one row of `record`: binding, role, restriction or identity.
    pub fn invalid_row(&self, record: &'static str) {
        self.invalid_rows.get_or_create(&RecordLabels { record }).inc();
    }
}

#[derive(Debug, Clone, Default)]
struct PoolMetrics {
    connections: Family<PoolLabels, Gauge<i64, AtomicI64>>,
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
