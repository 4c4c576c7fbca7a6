//! From an id to the task that supervises it: looked up, adopted or made.
//!
//! The map of entries is locked while one is looked up or taken over, so two calls never
//! make two tasks of one entry; the file lock does the same between hosts.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::admit;
use super::folder::{self, Folder, Lock};
use super::launch::failed;
use super::record::{Record, spec_digest};
use super::supervise::{Handle, Supervisor, blocking};
use super::types::{ProcessError, ProcessRefusal, ProcessSpec};
use super::{ENTRIES_MAX, Entries, FOREIGN, ProcessHost};
use crate::call::CallContext;

/// Where an id leads.
enum Found {
    /// To an entry of this host.
    Ours(Handle),
    /// To one that another host supervises; its last record.
    Foreign(Box<Record>),
    Absent,
}

/// Entries of the folder that this host does not supervise.
#[derive(Debug, Default)]
pub(super) struct NotOurs {
    /// Another host has some.
    pub(super) foreign: bool,
    /// These cannot be read.
    pub(super) unreadable: BTreeMap<String, io::Error>,
}

impl ProcessHost {
    pub(super) async fn entry_for_write(&self, cx: &CallContext, id: &str) -> Result<Handle, ProcessError> {
        if !admit::is_name(id) {
            return Err(ProcessRefusal::Malformed.into());
        }
        let tenant = self.authorise(cx).await?;
        let found = self.find(&mut *self.entries.lock().await, id).await?;
        self.owned(cx, &tenant, id, found).await?.ok_or(ProcessError::NotFound)
    }

    pub(super) async fn entry_for_start(
        &self,
        cx: &CallContext,
        tenant: String,
        spec: &ProcessSpec,
    ) -> Result<Handle, ProcessError> {
        let mut entries = self.entries.lock().await;
        let found = self.find(&mut entries, &spec.id).await?;
        if let Some(handle) = self.owned(cx, &tenant, &spec.id, found).await? {
            return Ok(handle);
        }
        if entries.len() >= ENTRIES_MAX {
            return Err(ProcessRefusal::Limit.into());
        }
        let folder = self.folder(&spec.id);
        let written = |error: &io::Error| failed("the process folder cannot be made", error);
        let digest = spec_digest(spec).map_err(|error| written(&error))?;
        let record = Record::new(tenant, cx.plugin.clone(), spec.clone(), digest);
        let bytes = record.to_bytes().map_err(|error| written(&error))?;
        let target = folder.clone();
        let locked = blocking(move || {
            let lock = target.lock()?;
            if lock.is_some() {
                target.write_record(&bytes)?;
            }
            Ok(lock)
        });
        let lock = locked.await.map_err(|error| written(&error))?;
        let lock = lock.ok_or_else(|| ProcessError::Failed(FOREIGN.to_owned()))?;
        Ok(self.take_over(&mut entries, folder, lock, record).await)
    }

    /// The handle of what was found, if it is the tenant's.
    async fn owned(
        &self,
        cx: &CallContext,
        tenant: &str,
        id: &str,
        found: Found,
    ) -> Result<Option<Handle>, ProcessError> {
        let (owner, handle) = match found {
            Found::Absent => return Ok(None),
            Found::Ours(handle) => {
                let owner = handle.view.borrow().tenant.clone();
                (owner, Some(handle))
            }
            Found::Foreign(record) => (record.tenant, None),
        };
        if owner != tenant {
            return Err(self.refuse_stranger(cx, id).await);
        }
        match handle {
            Some(handle) => Ok(Some(handle)),
            None => Err(ProcessError::Failed(FOREIGN.to_owned())),
        }
    }

    /// Looks an id up, adopting its entry if no other host has it.
    async fn find(&self, entries: &mut Entries, id: &str) -> Result<Found, ProcessError> {
        if let Some(handle) = entries.get(id).filter(|handle| !handle.inbox.is_closed()) {
            return Ok(Found::Ours(handle.clone()));
        }
        entries.remove(id);
        if !self.folder(id).exists() {
            return Ok(Found::Absent);
        }
        let unreadable = |error: io::Error| failed("the process folder cannot be read", &error);
        if let Some(handle) = self.adopt(entries, id).await.map_err(unreadable)? {
            return Ok(Found::Ours(handle));
        }
        let folder = self.folder(id);
        let record = blocking(move || folder.read_record()).await.map_err(unreadable)?;
        Ok(record.map_or(Found::Absent, |record| Found::Foreign(Box::new(record))))
    }

    /// Adopts every entry that no host supervises. Answers which could not be read, and
    /// which another host has: one bad entry must not keep the others from being
    /// supervised.
    pub(super) async fn adopt_all(&self) -> io::Result<NotOurs> {
        let root = self.shared.config.folder.clone();
        let ids = blocking(move || folder::ids(&root)).await?;
        let mut entries = self.entries.lock().await;
        entries.retain(|_, handle| !handle.inbox.is_closed());
        let mut not_ours = NotOurs::default();
        for id in ids {
            if entries.contains_key(&id) {
                continue;
            }
            match self.adopt(&mut entries, &id).await {
                Ok(Some(_)) => {}
                Ok(None) => not_ours.foreign = true,
                Err(error) => drop(not_ours.unreadable.insert(id, error)),
            }
        }
        Ok(not_ours)
    }

    async fn adopt(&self, entries: &mut Entries, id: &str) -> io::Result<Option<Handle>> {
        let (folder, root) = (self.folder(id), self.shared.config.folder.clone());
        let target = folder.clone();
        let found = blocking(move || {
            let Some(lock) = target.lock()? else {
                return Ok(None);
            };
            let record = target.read_record()?;
            if record.is_none() {
                // A host died before the first record: nothing has ever run here.
                target.remove(&root)?;
            }
            Ok(record.map(|record| (lock, record)))
        });
        match found.await? {
            Some((lock, record)) => Ok(Some(self.take_over(entries, folder, lock, record).await)),
            None => Ok(None),
        }
    }

    async fn take_over(&self, entries: &mut Entries, folder: Folder, lock: Lock, record: Record) -> Handle {
        let id = record.spec.id.clone();
        let taken = Supervisor::take_over(Arc::clone(&self.shared), folder, lock, record).await;
        let (supervisor, handle) = taken;
        self.shared.tasks.spawn(supervisor.run());
        entries.insert(id, handle.clone());
        handle
    }
}
