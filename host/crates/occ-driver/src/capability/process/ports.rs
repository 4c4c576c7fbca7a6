//! Loopback ports: who has which, and which are free.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::types::{Port, ProcessError, ProcessRefusal};

/// Ports that the entries of this host hold, whether their process runs or not.
#[derive(Debug)]
pub(super) struct PortBook {
    range: RangeInclusive<u16>,
    held: Mutex<BTreeMap<u16, String>>,
}

impl PortBook {
    pub(super) fn new(range: RangeInclusive<u16>) -> Self {
        Self { range, held: Mutex::new(BTreeMap::new()) }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u16, String>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the ports of an entry that was found on disk.
    pub(super) fn hold(&self, id: &str, ports: &[Port]) {
        let mut held = self.held();
        for port in ports {
            held.entry(port.number).or_insert_with(|| id.to_owned());
        }
    }

    /// Gives back everything that the entry holds.
    pub(super) fn release(&self, id: &str) {
        self.held().retain(|_, holder| holder != id);
    }

    /// Ports for a start that is about to happen: a fixed one as asked, a drawn one as
    /// before if nobody has taken it since, else another.
    pub(super) fn assign(
        &self,
        id: &str,
        asked: &[Port],
        before: &[Port],
    ) -> Result<Vec<Port>, ProcessError> {
        let mut held = self.held();
        held.retain(|_, holder| holder != id);
        let mut assigned = Vec::with_capacity(asked.len());
        for port in asked {
            let number = if port.number != 0 {
                fixed(&held, port.number)?
            } else {
                let kept = before.iter().find(|it| it.name == port.name).map(|it| it.number);
                self.draw(&held, kept)?
            };
            held.insert(number, id.to_owned());
            assigned.push(Port { name: port.name.clone(), number });
        }
        Ok(assigned)
    }

    fn draw(&self, held: &BTreeMap<u16, String>, kept: Option<u16>) -> Result<u16, ProcessError> {
        let usable = |number: &u16| !held.contains_key(number) && is_free(*number);
        let kept = kept.filter(|number| self.range.contains(number)).filter(usable);
        kept.or_else(|| self.range.clone().find(usable)).ok_or(ProcessError::Refused(ProcessRefusal::Limit))
    }
}

fn fixed(held: &BTreeMap<u16, String>, number: u16) -> Result<u16, ProcessError> {
    if held.contains_key(&number) || !is_free(number) {
        return Err(ProcessError::PortTaken(number));
    }
    Ok(number)
}

/// Could a process bind this port now?
fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, number: u16) -> Port {
        Port { name: name.to_owned(), number }
    }

    /// A listener of a stranger and its port.
    fn stranger() -> (TcpListener, u16) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let number = listener.local_addr().unwrap().port();
        (listener, number)
    }

    #[test]
    fn a_drawn_port_is_kept_until_a_stranger_takes_it() {
        let (listener, number) = stranger();
        drop(listener);
        let book = PortBook::new(number..=number.saturating_add(20));
        let first = book.assign("a", &[port("gateway", 0)], &[]).unwrap();
        assert_eq!(first, [port("gateway", number)]);
        assert_eq!(book.assign("a", &[port("gateway", 0)], &first).unwrap(), first);
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        let second = book.assign("a", &[port("gateway", 0)], &first).unwrap();
        assert_ne!(second, first);
    }

    #[test]
    fn two_entries_never_share_a_port() {
        let (listener, number) = stranger();
        drop(listener);
        let book = PortBook::new(number..=number.saturating_add(20));
        let one = book.assign("a", &[port("gateway", 0)], &[]).unwrap();
        let two = book.assign("b", &[port("gateway", 0)], &[]).unwrap();
        assert_ne!(one, two);
        book.release("a");
        assert_eq!(book.assign("c", &[port("gateway", 0)], &[]).unwrap(), one);
    }

    #[test]
    fn a_fixed_port_is_refused_when_taken() {
        let (_listener, number) = stranger();
        let book = PortBook::new(1..=1);
        let error = book.assign("a", &[port("gateway", number)], &[]).unwrap_err();
        assert_eq!(error, ProcessError::PortTaken(number));
    }

    #[test]
    fn an_empty_range_is_a_limit() {
        let (_listener, number) = stranger();
        let book = PortBook::new(number..=number);
        let error = book.assign("a", &[port("gateway", 0)], &[]).unwrap_err();
        assert_eq!(error, ProcessError::Refused(ProcessRefusal::Limit));
    }
}
