//! What the `process` capability asks of a supervisor: the real one, or a double.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::process::{LogLine, ProcessError, ProcessGrant, ProcessHost, ProcessSpec, ProcessStatus};
use crate::call::CallContext;

/// Supervises processes. [`ProcessHost`] is the one that runs agents; the conformance
/// suite has a double that starts nothing.
pub trait ProcessSupervisor: Send + Sync + 'static {
    /// Would this command be allowed and found? Starts nothing.
    fn check(&self, grant: &ProcessGrant, command: &[String]) -> Result<(), ProcessError>;
    /// Starts a process, or answers the status of the one that this spec describes.
    fn start<'a>(
        &'a self,
        cx: &'a CallContext,
        grant: &'a ProcessGrant,
        spec: ProcessSpec,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>>;
    /// Begins a stop.
    fn stop<'a>(&'a self, cx: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ProcessError>>;
    /// Removes an entry and its state.
    fn remove_state<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), ProcessError>>;
    /// Entries of the call's tenant that carry every label.
    fn list<'a>(
        &'a self,
        cx: &'a CallContext,
        labels: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>>;
    /// Lines of an entry's output, oldest first.
    fn logs<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<LogLine>, ProcessError>>;
}

impl ProcessSupervisor for ProcessHost {
    fn check(&self, grant: &ProcessGrant, command: &[String]) -> Result<(), ProcessError> {
        Self::check(self, grant, command)
    }

    fn start<'a>(
        &'a self,
        cx: &'a CallContext,
        grant: &'a ProcessGrant,
        spec: ProcessSpec,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Self::start(self, cx, grant, spec).boxed()
    }

    fn stop<'a>(&'a self, cx: &'a CallContext, id: &'a str) -> BoxFuture<'a, Result<(), ProcessError>> {
        Self::stop(self, cx, id).boxed()
    }

    fn remove_state<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        Self::remove_state(self, cx, id).boxed()
    }

    fn list<'a>(
        &'a self,
        cx: &'a CallContext,
        labels: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>> {
        Self::list(self, cx, labels).boxed()
    }

    fn logs<'a>(
        &'a self,
        cx: &'a CallContext,
        id: &'a str,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<LogLine>, ProcessError>> {
        Self::logs(self, cx, id, previous, tail_lines, since_seconds).boxed()
    }
}
