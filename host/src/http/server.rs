//! The API listener: connections with limits that no request can argue with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::any;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::admission::{self, Peer};
use super::router;
use crate::app::App;

/// Most bytes of the header section of a request.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Longest time for a client to send its headers.
pub const HEADER_READ_MAX: Duration = Duration::from_secs(10);
/// How long an API that was asked to stop goes on accepting, so that load balancers see `/readyz` fail.
pub const LAME_DUCK: Duration = Duration::from_secs(5);
/// How long running requests may take to finish after that.
pub const FINISH_MAX: Duration = Duration::from_secs(30);
/// Most connections at once; more wait in the listener's queue.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Pause after a failed accept, such as one without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The API as a service; every path of the table, and 404 for the rest.
pub fn api(app: &App) -> Router {
    let mut routes = Router::new();
    for resource in router::resources() {
        let app = app.clone();
        routes = routes.route(
            resource.path,
            any(move |request: axum::extract::Request| admission::answer(app.clone(), resource, request)),
        );
    }
    let app = app.clone();
    routes.fallback(move |request: axum::extract::Request| async move {
        admission::unknown_path(&app, request.method())
    })
}

/// Serves until the process is asked to stop, then drains. `lame_duck` is [`LAME_DUCK`] in production
/// and nothing in development. True when every request ended by itself.
pub async fn serve(app: App, listener: TcpListener, lame_duck: Duration) -> bool {
    let routes = api(&app);
    let connections = Connections::new();
    tokio::select! {
        () = accept_all(&listener, &routes, &connections) => {}
        () = app.shutdown.token().cancelled() => {}
    }
    tokio::select! {
        () = accept_all(&listener, &routes, &connections) => {}
        () = tokio::time::sleep(lame_duck) => {}
    }
    drop(listener);
    connections.finish(FINISH_MAX).await
}

/// Serves the private listener until `stop`.
pub async fn private(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let served = axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await;
    if let Err(error) = served {
        tracing::warn!(cause = %error, "private-listener.ended");
    }
}

struct Connections {
    stop: CancellationToken,
    tasks: TaskTracker,
    places: Arc<Semaphore>,
}

impl Connections {
    fn new() -> Self {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { stop: CancellationToken::new(), tasks: TaskTracker::new(), places }
    }

    async fn finish(self, patience: Duration) -> bool {
        self.stop.cancel();
        self.tasks.close();
        tokio::time::timeout(patience, self.tasks.wait()).await.is_ok()
    }
}

async fn accept_all(listener: &TcpListener, routes: &Router, connections: &Connections) {
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&connections.places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (stop, tasks) = (connections.stop.clone(), connections.tasks.clone());
                let connection = connection(stream, peer, routes.clone(), stop, tasks);
                connections.tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection. **A request runs to its end even when its client goes away**, so that no change is left
/// without its event and no denial goes unrecorded.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Router,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    // Without it small answers wait for the client's acknowledgement; failing to set it is harmless.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        let answering = tasks.spawn(routes.clone().oneshot(request.map(Body::new)));
        async move {
            match answering.await {
                Ok(Ok(response)) => Ok::<_, std::io::Error>(response),
                Ok(Err(never)) => match never {},
                // The connection ends without an answer: the task panicked outside of a handler.
                Err(error) => Err(std::io::Error::other(error)),
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_READ_MAX).max_header_size(HEADER_BYTES_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(cause = %error, "http.connection-ended");
    }
}
