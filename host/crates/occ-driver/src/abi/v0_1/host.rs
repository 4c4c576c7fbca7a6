//! The host's side of version 0.1: imports, mapped to capabilities.

use std::time::Instant;

use super::bindings::occ::plugin::{kubernetes, log, process, settings, types, workload};
use crate::capability::process as native;
use crate::capability::{Capability, Level, write_log};
use crate::state::CallState;

type Json = String;

impl types::Host for CallState {}
impl workload::Host for CallState {}

impl log::Host for CallState {
    fn write(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.enter_host(Capability::Log)?;
        let bytes = fields.iter().fold(message.len(), |sum, (key, value)| sum + key.len() + value.len());
        self.log(bytes, 1)?;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        write_log(&self.cx, level, &message, &fields);
        Ok(())
    }
}

impl settings::Host for CallState {
    fn get(&mut self) -> wasmtime::Result<Json> {
        self.enter_host(Capability::Settings)?;
        self.answer(self.granted.settings.len())?;
        Ok(self.granted.settings.clone())
    }
}

impl CallState {
    fn no_kubernetes<T>(&mut self) -> wasmtime::Result<Result<T, kubernetes::ApiError>> {
        self.enter_host(Capability::Kubernetes)?;
        self.refuse(Capability::Kubernetes);
        Ok(Err(kubernetes::ApiError::Refused(kubernetes::Refusal::NotGranted)))
    }
}

/// Not built yet, so nobody is granted it.
impl kubernetes::Host for CallState {
    fn server_version(&mut self) -> wasmtime::Result<Result<String, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn get(&mut self, _key: kubernetes::ObjectKey) -> wasmtime::Result<Result<Json, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn list(
        &mut self,
        _kind: kubernetes::ObjectKind,
        _namespace: Option<String>,
        _labels: Vec<(String, String)>,
        _fields: Vec<(String, String)>,
    ) -> wasmtime::Result<Result<Vec<Json>, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn create(&mut self, _object: Json) -> wasmtime::Result<Result<Json, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn keep(
        &mut self,
        _object: Json,
        _guard: kubernetes::Guard,
    ) -> wasmtime::Result<Result<(), kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn apply(
        &mut self,
        _object: Json,
        _guard: kubernetes::Guard,
    ) -> wasmtime::Result<Result<Json, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn apply_all(
        &mut self,
        objects: Vec<(Json, kubernetes::Guard)>,
    ) -> wasmtime::Result<Vec<Result<Json, kubernetes::ApiError>>> {
        objects.iter().map(|_| self.no_kubernetes()).collect()
    }

    fn merge_patch(
        &mut self,
        _key: kubernetes::ObjectKey,
        _patch: Json,
        _guard: kubernetes::Guard,
    ) -> wasmtime::Result<Result<Json, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn delete(
        &mut self,
        _key: kubernetes::ObjectKey,
        _guard: kubernetes::Guard,
    ) -> wasmtime::Result<Result<(), kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn pod_document(
        &mut self,
        _namespace: String,
        _pod: String,
        _port: u16,
        _path: String,
    ) -> wasmtime::Result<Result<Json, kubernetes::ApiError>> {
        self.no_kubernetes()
    }

    fn pod_logs(
        &mut self,
        _namespace: String,
        _pod: String,
        _container: String,
        _previous: bool,
        _tail_lines: u32,
        _since_seconds: Option<u32>,
    ) -> wasmtime::Result<Result<String, kubernetes::ApiError>> {
        self.no_kubernetes()
    }
}

type Answer<T> = wasmtime::Result<Result<T, process::ProcessError>>;

/// Runs `$body` with the supervisor and the grant, or answers that there is none.
macro_rules! granted {
    ($state:ident, |$supervisor:ident, $grant:ident| $body:expr) => {{
        $state.enter_host(Capability::Process)?;
        let entered = Instant::now();
        let granted = std::sync::Arc::clone(&$state.granted);
        let Some(($supervisor, $grant)) = &granted.process else {
            $state.refuse(Capability::Process);
            return Ok(Err(process::ProcessError::Refused(process::ProcessRefusal::NotGranted)));
        };
        let answer = $body;
        $state.leave_host(entered);
        answer.map_err(error)
    }};
}

impl process::Host for CallState {
    async fn check(&mut self, command: Vec<String>) -> Answer<()> {
        Ok(granted!(self, |supervisor, grant| supervisor.check(grant, &command)))
    }

    async fn start(&mut self, spec: process::Spec) -> Answer<process::Status> {
        let spec = native_spec(spec);
        let answer = granted!(self, |supervisor, grant| supervisor.start(&self.cx, grant, spec).await);
        Ok(answer.map(status))
    }

    async fn stop(&mut self, id: String) -> Answer<()> {
        Ok(granted!(self, |supervisor, _grant| supervisor.stop(&self.cx, &id).await))
    }

    async fn remove_state(&mut self, id: String) -> Answer<()> {
        Ok(granted!(self, |supervisor, _grant| supervisor.remove_state(&self.cx, &id).await))
    }

    async fn list(&mut self, labels: Vec<(String, String)>) -> Answer<Vec<process::Status>> {
        let answer = granted!(self, |supervisor, _grant| supervisor.list(&self.cx, &labels).await);
        if let Ok(statuses) = &answer {
            self.answer(statuses.iter().map(status_bytes).sum())?;
        }
        Ok(answer.map(|statuses| statuses.into_iter().map(status).collect()))
    }

    async fn logs(
        &mut self,
        id: String,
        previous: bool,
        tail_lines: u32,
        since_seconds: Option<u32>,
    ) -> Answer<Vec<(Option<u64>, bool, String)>> {
        let answer = granted!(self, |supervisor, _grant| {
            supervisor.logs(&self.cx, &id, previous, tail_lines, since_seconds).await
        });
        if let Ok(lines) = &answer {
            self.answer(lines.iter().map(|line| line.text.len()).sum())?;
        }
        Ok(answer.map(|lines| {
            lines.into_iter().map(|line| (line.time_ms, line.error_stream, line.text)).collect()
        }))
    }
}

fn status_bytes(status: &native::ProcessStatus) -> usize {
    status.labels.iter().fold(status.id.len(), |sum, (key, value)| sum + key.len() + value.len())
}

fn error(error: native::ProcessError) -> process::ProcessError {
    use native::ProcessRefusal as Native;
    use process::ProcessRefusal as Wit;
    match error {
        native::ProcessError::NotFound => process::ProcessError::NotFound,
        native::ProcessError::CommandNotFound(file) => process::ProcessError::CommandNotFound(file),
        native::ProcessError::PortTaken(port) => process::ProcessError::PortTaken(port),
        native::ProcessError::InUse => process::ProcessError::InUse,
        native::ProcessError::SecretUnavailable(name) => process::ProcessError::SecretUnavailable(name),
        native::ProcessError::Failed(text) => process::ProcessError::Failed(text),
        native::ProcessError::Refused(refusal) => process::ProcessError::Refused(match refusal {
            Native::NotGranted => Wit::NotGranted,
            Native::CommandNotAllowed => Wit::CommandNotAllowed,
            Native::OutsideTenant => Wit::OutsideTenant,
            Native::Limit => Wit::Limit,
            Native::Fenced => Wit::Fenced,
            Native::LeaseLost => Wit::LeaseLost,
            Native::Malformed => Wit::Malformed,
        }),
    }
}

fn native_spec(spec: process::Spec) -> native::ProcessSpec {
    use super::output;
    native::ProcessSpec {
        id: spec.id,
        labels: spec.labels,
        command: spec.command,
        env: spec.env.into_iter().map(output::env_var).collect(),
        state: spec.state.into_iter().map(output::state_mount).collect(),
        scratch: spec.scratch.into_iter().map(output::scratch_mount).collect(),
        files: spec.files.into_iter().map(output::file).collect(),
        ports: spec.ports.into_iter().map(output::port).collect(),
        readiness: output::probe(spec.readiness),
        grace_seconds: spec.grace_seconds,
    }
}

fn status(status: native::ProcessStatus) -> process::Status {
    process::Status {
        id: status.id,
        labels: status.labels,
        spec_digest: status.spec_digest,
        start_id: status.start_id,
        running: status.running,
        ready: status.ready,
        stopping: status.stopping,
        stopped: status.stopped,
        held: status.held,
        restarting: status.restarting,
        ready_once: status.ready_once,
        restarts: status.restarts,
        exits_since_ready: status.exits_since_ready,
        last_exit: status.last_exit.map(|exit| process::Exit {
            code: exit.code,
            signal: exit.signal,
            at_ms: exit.at_ms,
        }),
        ports: status.ports.iter().map(super::input::port).collect(),
        started_at_ms: status.started_at_ms,
    }
}
