//! What the kernel says about processes: identity, family, signals.
//!
//! **A pid alone names nothing**: it is used again. Every process here is a pid with
//! the start ticks of `/proc/PID/stat`, which a second process of that pid cannot have
//! within one boot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process that cannot be mistaken for a later one of the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessRef {
    /// Process id.
    pub(super) pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub(super) start_ticks: u64,
}

/// The fields of `/proc/PID/stat` that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
    group: i32,
    session: i32,
    start_ticks: u64,
}

impl Stat {
    /// Reads one line. The command in parentheses may hold spaces and parentheses, so
    /// fields are counted from the last closing one.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// A zombie has ended; only its exit status is left.
    fn is_live(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Names this boot of the machine.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The live process that has this pid now.
pub(super) fn process_of(pid: i32) -> Option<ProcessRef> {
    let stat = Stat::read(pid)?;
    Some(ProcessRef { pid, start_ticks: stat.start_ticks })
}

/// Does this very process still run?
pub(super) fn is_alive(process: ProcessRef) -> bool {
    Stat::read(process.pid).is_some_and(|stat| stat.start_ticks == process.start_ticks && stat.is_live())
}

/// Sends a signal to this very process; one that has ended is fine.
pub(super) fn signal(process: ProcessRef, signal: Signal) -> io::Result<()> {
    if !is_alive(process) {
        return Ok(());
    }
    match kill(Pid::from_raw(process.pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(io::Error::from(errno)),
    }
}

/// One look at every process of the machine.
struct Table(BTreeMap<i32, Stat>);

impl Table {
    fn read() -> io::Result<Self> {
        let mut table = BTreeMap::new();
        for entry in fs::read_dir("/proc")? {
            let Ok(pid) = entry?.file_name().to_string_lossy().parse::<i32>() else {
                continue;
            };
            if let Some(stat) = Stat::read(pid).filter(Stat::is_live) {
                table.insert(pid, stat);
            }
        }
        Ok(Self(table))
    }

    fn process(&self, pid: i32) -> Option<ProcessRef> {
        self.0.get(&pid).map(|stat| ProcessRef { pid, start_ticks: stat.start_ticks })
    }

    fn holds(&self, process: ProcessRef) -> bool {
        self.process(process.pid) == Some(process)
    }

    /// Adds all children of what is in `family`, and theirs.
    fn close(&self, family: &mut BTreeSet<i32>) {
        loop {
            let before = family.len();
            let children =
                self.0.iter().filter(|(_, stat)| family.contains(&stat.parent)).map(|(pid, _)| *pid);
            let children: Vec<i32> = children.collect();
            family.extend(children);
            if family.len() == before {
                return;
            }
        }
    }
}

/// Was this process started with `marker` (`NAME=value`) in its environment?
fn is_marked(pid: i32, marker: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()))
}

/// The leader of a launch whose pid nobody had the time to write down: marked, and at
/// the head of its own process group.
pub(super) fn find_leader(marker: &str) -> io::Result<Option<ProcessRef>> {
    let table = Table::read()?;
    let leader = table.0.iter().find(|(pid, stat)| stat.group == **pid && is_marked(**pid, marker));
    Ok(leader.and_then(|(pid, _)| table.process(*pid)))
}

/// Every live process that belongs to a launch: the leader, its group and session, all
/// that carry its marker, those known from an earlier look, and the descendants of all
/// of them. So a child that made a session of its own and lost its parent is found by
/// its marker, and one that also cleared its environment if an earlier look saw it.
pub(super) fn family(
    leader: Option<ProcessRef>,
    known: &BTreeSet<ProcessRef>,
    marker: &str,
) -> io::Result<BTreeSet<ProcessRef>> {
    let table = Table::read()?;
    let mut pids: BTreeSet<i32> = known.iter().filter(|it| table.holds(**it)).map(|it| it.pid).collect();
    if let Some(leader) = leader {
        // A stranger may lead a new group of that number once ours is gone.
        let stranger = table.process(leader.pid).is_some_and(|now| now != leader);
        for (pid, stat) in &table.0 {
            if stat.start_ticks < leader.start_ticks {
                continue;
            }
            let of_group = !stranger && (stat.group == leader.pid || stat.session == leader.pid);
            if of_group || is_marked(*pid, marker) {
                pids.insert(*pid);
            }
        }
    } else {
        pids.extend(table.0.keys().filter(|pid| is_marked(**pid, marker)));
    }
    table.close(&mut pids);
    Ok(pids.into_iter().filter_map(|pid| table.process(pid)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_command_with_parentheses() {
        let line = "42 (a) b (c)) S 7 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat, Stat { state: 'S', parent: 7, group: 42, session: 41, start_ticks: 987_654 });
    }

    #[test]
    fn stat_of_a_zombie_is_not_live() {
        let line = "42 (x) Z 7 42 41 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 5 1 2";
        assert!(!Stat::parse(line).unwrap().is_live());
    }

    #[test]
    fn a_truncated_stat_is_nothing() {
        assert_eq!(Stat::parse("42 (x) S 7 42"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_is_alive_and_its_like_with_other_ticks_is_not() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let this = process_of(pid).unwrap();
        assert!(is_alive(this));
        assert!(!is_alive(ProcessRef { start_ticks: this.start_ticks + 1, ..this }));
    }
}
