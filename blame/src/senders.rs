//! Senders of interrupts to other CPUs: matches an interrupt from another CPU, or the call that it
//! brought, with whoever sent it.

use std::collections::BTreeMap;

use punctual_trace::event::{CodeAddress, TaskName};

/// A send further back than this explains no interrupt, ns.
const WINDOW_NS: u64 = 2_000_000;
/// Requests that wait for their call: direct-mapped.
const REQUESTS: usize = 1 << 10;
/// Senders whose interrupts are counted.
const COUNTED: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Send {
    at_ns: u64,
    sender: TaskName,
}

#[derive(Debug, Clone, Copy, Default)]
struct Request {
    address: u64,
    at_ns: u64,
    sender: TaskName,
}

/// Interrupts that threads of one name and priority sent to other CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderCount {
    /// The thread; its number is that of the first of its name.
    pub sender: TaskName,
    /// Sends, each to any number of CPUs.
    pub sends: u64,
    /// The function that was called last; 0 where none was recorded.
    pub function: CodeAddress,
}

/// Sends that are not matched yet.
#[derive(Debug, Clone)]
pub(crate) struct Senders {
    last: Vec<Option<Send>>,
    requests: Vec<Request>,
    counts: BTreeMap<(punctual_trace::event::ShortName, i32), SenderCount>,
    uncounted: u64,
    max_cpus: usize,
}

impl Senders {
    pub(crate) fn new(max_cpus: usize) -> Self {
        Self {
            last: Vec::new(),
            requests: Vec::new(),
            counts: BTreeMap::new(),
            uncounted: 0,
            max_cpus,
        }
    }

    /// A thread interrupts the CPUs of a mask.
    pub(crate) fn send(&mut self, at_ns: u64, sender: TaskName, mask: &[u64], called: CodeAddress) {
        self.count(sender, called);
        for (word, &bits) in mask.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let cpu = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.aim(cpu, Send { at_ns, sender });
            }
            if word * 64 >= self.max_cpus {
                return;
            }
        }
    }

    /// A thread queues a call for a CPU.
    pub(crate) fn queue(&mut self, at_ns: u64, sender: TaskName, cpu: u32, address: u64) {
        self.aim(cpu as usize, Send { at_ns, sender });
        self.requests.resize(REQUESTS, Request::default());
        self.requests[Self::place(address)] = Request { address, at_ns, sender };
    }

    fn aim(&mut self, cpu: usize, send: Send) {
        if cpu >= self.max_cpus {
            return;
        }
        if self.last.len() <= cpu {
            self.last.resize(cpu + 1, None);
        }
        self.last[cpu] = Some(send);
    }

    /// The thread that interrupted this CPU last, 2 ms ago at most.
    pub(crate) fn of_interrupt(&self, cpu: u32, at_ns: u64) -> Option<TaskName> {
        let send = (*self.last.get(cpu as usize)?)?;
        (at_ns.saturating_sub(send.at_ns) <= WINDOW_NS).then_some(send.sender)
    }

    /// The thread that queued a call: by its request, or else the one that interrupted last.
    pub(crate) fn of_call(&self, cpu: u32, request: u64, at_ns: u64) -> Option<TaskName> {
        let queued = self.requests.get(Self::place(request)).copied().unwrap_or_default();
        let is_fresh = at_ns.saturating_sub(queued.at_ns) <= 1_000 * WINDOW_NS;
        if queued.address == request && queued.at_ns != 0 && is_fresh {
            return Some(queued.sender);
        }
        self.of_interrupt(cpu, at_ns)
    }

    fn count(&mut self, sender: TaskName, function: CodeAddress) {
        let key = (sender.name, sender.kernel_priority);
        if let Some(count) = self.counts.get_mut(&key) {
            count.sends += 1;
            count.function = function;
        } else if self.counts.len() < COUNTED {
            self.counts.insert(key, SenderCount { sender, sends: 1, function });
        } else {
            self.uncounted += 1;
        }
    }

    /// Sends of senders beyond the room.
    pub(crate) const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// Senders, most sends first.
    pub(crate) fn counts(&self) -> Vec<SenderCount> {
        let mut counts: Vec<SenderCount> = self.counts.values().copied().collect();
        counts.sort_by_key(|count| std::cmp::Reverse(count.sends));
        counts
    }

    const fn place(request: u64) -> usize {
        (request.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - REQUESTS.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::event::ShortName;

    fn task(name: &[u8]) -> TaskName {
        TaskName { tid: 9, name: ShortName::new(name), kernel_priority: 120 }
    }

    #[test]
    fn an_interrupt_belongs_to_the_last_send_within_two_milliseconds() {
        let mut senders = Senders::new(128);
        senders.send(1_000, task(b"mprotect"), &[0b10, 0b1], 0x5);
        assert_eq!(senders.of_interrupt(1, 2_001_000), Some(task(b"mprotect")));
        assert_eq!(senders.of_interrupt(1, 2_001_001), None);
        assert_eq!(senders.of_interrupt(64, 2_000), Some(task(b"mprotect")));
        assert_eq!(senders.of_interrupt(0, 2_000), None);
    }

    #[test]
    fn a_call_belongs_to_its_request() {
        let mut senders = Senders::new(4);
        senders.queue(1_000, task(b"asker"), 1, 0xbeef);
        senders.send(1_100, task(b"later"), &[0b10], 0x5);
        assert_eq!(senders.of_call(1, 0xbeef, 5_000), Some(task(b"asker")));
        assert_eq!(senders.of_call(1, 0xdead, 5_000), Some(task(b"later")));
        assert_eq!(senders.of_interrupt(1, 5_000), Some(task(b"later")));
    }

    #[test]
    fn counts_are_by_name_and_bounded() {
        let mut senders = Senders::new(4);
        for number in 0..300_u32 {
            senders.send(1, task(format!("s{number}").as_bytes()), &[1], 0);
            senders.send(1, task(b"s7"), &[u64::MAX; 4], 8);
        }
        let counts = senders.counts();
        assert_eq!((counts.len(), counts[0].sends, counts[0].function), (COUNTED, 301, 8));
        assert_eq!(senders.uncounted(), 300 - COUNTED as u64);
        assert_eq!(senders.last.len(), 4);
    }
}
