//! Supervised processes in tests: an authority, calls, specs of the double.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use occ_driver::call::{AuthorityError, CallAuthority, CallContext, SecretRef, SecretValue, SecurityEvent};
use occ_driver::capability::process::{
    EnvValue, EnvVar, HttpProbe, Port, ProcessGrant, ProcessHostConfig, ProcessMode, ProcessSpec, StateMount,
};
use tokio::time::Instant;

/// Ports that tests draw: apart from those of `occ-host dev` and of the system.
const PORTS: RangeInclusive<u16> = 21_100..=30_999;
/// Ports of one folder.
const PORTS_OF_FOLDER: u16 = 40;

/// Tests run side by side, each on a folder of its own, and hosts on different folders do
/// not know of each other: each folder has its own ports.
fn ports_of(folder: &Path) -> RangeInclusive<u16> {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = folders.iter().position(|known| known == folder);
    let slot = known.unwrap_or(folders.len());
    if known.is_none() {
        folders.push(folder.to_owned());
    }
    let slots = PORTS.len() / usize::from(PORTS_OF_FOLDER);
    let first = PORTS.start() + u16::try_from(slot % slots).unwrap_or(0) * PORTS_OF_FOLDER;
    first..=first + PORTS_OF_FOLDER - 1
}

/// An authority that tests can steer.
#[derive(Debug, Default)]
pub struct FakeAuthority {
    state: Mutex<FakeState>,
}

#[derive(Debug, Default)]
struct FakeState {
    lost_leases: BTreeSet<String>,
    secrets: BTreeMap<String, String>,
    asked: Vec<SecretRef>,
    events: Vec<SecurityEvent>,
}

impl FakeAuthority {
    fn with<T>(&self, act: impl FnOnce(&mut FakeState) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on, calls for this work key have no lease.
    pub fn lose_lease(&self, work_key: &str) {
        self.with(|state| state.lost_leases.insert(work_key.to_owned()));
    }

    /// Gives the secret or generated credential of this name a value.
    pub fn set_secret(&self, name: &str, value: &str) {
        self.with(|state| state.secrets.insert(name.to_owned(), value.to_owned()));
    }

    /// Every secret that was asked for, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<SecretRef> {
        self.with(|state| state.asked.clone())
    }

    /// Every security event, in order.
    #[must_use]
    pub fn events(&self) -> Vec<SecurityEvent> {
        self.with(|state| state.events.clone())
    }
}

impl CallAuthority for FakeAuthority {
    fn lease_alive<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, bool> {
        let alive =
            call.work_key.as_ref().is_some_and(|key| !self.with(|state| state.lost_leases.contains(key)));
        ready(alive).boxed()
    }

    fn fence(&self, call: &CallContext) -> u64 {
        call.epoch
    }

    fn fence_floor<'a>(&'a self, _call: &'a CallContext) -> BoxFuture<'a, Result<u64, AuthorityError>> {
        ready(Ok(0)).boxed()
    }

    fn tenant_namespaces<'a>(
        &'a self,
        _call: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<String>, AuthorityError>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn secret_value<'a>(
        &'a self,
        _call: &'a CallContext,
        secret: &'a SecretRef,
    ) -> BoxFuture<'a, Result<SecretValue, AuthorityError>> {
        let (SecretRef::Secret(name) | SecretRef::Generated(name)) = secret;
        let value = self.with(|state| {
            state.asked.push(secret.clone());
            state.secrets.get(name).cloned()
        });
        ready(value.map(SecretValue::new).ok_or(AuthorityError::Missing)).boxed()
    }

    fn security_event<'a>(&'a self, _call: &'a CallContext, event: SecurityEvent) -> BoxFuture<'a, ()> {
        self.with(|state| state.events.push(event));
        ready(()).boxed()
    }
}

/// A host's configuration on this folder.
#[must_use]
pub fn config(folder: &Path, mode: ProcessMode) -> ProcessHostConfig {
    ProcessHostConfig {
        folder: folder.to_owned(),
        port_range: ports_of(folder),
        mode,
        search_path: "/usr/bin:/bin".to_owned(),
        now_ms: Arc::new(now_ms),
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no clock of the host")]
fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A call about this tenant with a live lease; its work key is `work-EPOCH`.
#[must_use]
pub fn call(tenant: &str, epoch: u64) -> CallContext {
    CallContext {
        plugin: "compute-local".to_owned(),
        operation: "activate",
        tenant: Some(tenant.to_owned()),
        agent: Some("agent-1".to_owned()),
        revision: Some("revision-1".to_owned()),
        work_key: Some(format!("work-{epoch}")),
        epoch,
        deadline: Instant::now() + Duration::from_secs(60),
    }
}

/// A grant of exactly this command.
///
/// # Panics
/// When the program is not absolute.
#[must_use]
#[expect(clippy::expect_used, reason = "ends the test")]
pub fn grant(command: &[String]) -> ProcessGrant {
    ProcessGrant::new(vec![command.to_vec()]).expect("an absolute program")
}

/// A process of the double at `program`, listening on a drawn port, with these literal
/// variables.
#[must_use]
pub fn double_spec(program: &str, id: &str, variables: &[(&str, &str)]) -> ProcessSpec {
    let mut env: Vec<EnvVar> = variables
        .iter()
        .map(|(name, text)| EnvVar { name: (*name).to_owned(), value: EnvValue::Literal((*text).to_owned()) })
        .collect();
    env.push(EnvVar { name: "PORT".to_owned(), value: EnvValue::PortNumber("http".to_owned()) });
    ProcessSpec {
        id: id.to_owned(),
        labels: vec![("agent".to_owned(), id.to_owned())],
        command: vec![program.to_owned()],
        env,
        state: vec![StateMount { name: "home".to_owned(), path: "/home/node".to_owned() }],
        scratch: Vec::new(),
        files: Vec::new(),
        ports: vec![Port { name: "http".to_owned(), number: 0 }],
        readiness: HttpProbe {
            path: "/readyz".to_owned(),
            port: "http".to_owned(),
            period_seconds: 1,
            timeout_seconds: 2,
        },
        grace_seconds: 5,
    }
}
