//! The whole API in one table: one line per operation, grouped by slice.
//!
//! The server, `/openapi.json` and the tests read this table; nothing else declares a route.

mod administration;
mod tenant;

use std::sync::LazyLock;

use super::admission::Resource;
use super::operation::{Operation, get};
use super::{health, openapi};

static TABLE: LazyLock<Vec<Operation>> = LazyLock::new(operations);

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    let mut resources: Vec<Resource> = Vec::new();
    for operation in TABLE.iter() {
        match resources.iter_mut().find(|resource| resource.path == operation.path) {
            Some(resource) => resource.operations.push(operation),
            None => resources.push(Resource { path: operation.path, operations: vec![operation] }),
        }
    }
    resources
});

/// Every operation that this server answers.
#[must_use]
pub fn table() -> &'static [Operation] {
    &TABLE
}

pub(super) fn resources() -> &'static [Resource] {
    &RESOURCES
}

fn operations() -> Vec<Operation> {
    [service(), tenant::operations(), administration::operations()].into_iter().flatten().collect()
}

fn service() -> Vec<Operation> {
    vec![
        get("/healthz", "health", health::health).open::<health::Health>(),
        get("/readyz", "readiness", health::readiness).open::<health::Readiness>(),
        get("/openapi.json", "openapi", openapi::document).open::<serde_json::Value>(),
    ]
}
