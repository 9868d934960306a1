//! Addresses of kernel code at which late wakes had a gap: one that comes again is where interrupts
//! are off, for a host stops a CPU anywhere.
//!
//! Of fixed size: the oldest address that came once makes way for a new one.

use std::collections::{BTreeMap, VecDeque};

use punctual_trace::event::CodeAddress;
use serde::{Deserialize, Serialize};

use crate::cause::Certainty;
use crate::ledger::Booking;
use crate::part::WakePart;

/// An address at which so many late wakes had a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepeatedAddress {
    pub(crate) at: CodeAddress,
    pub(crate) times: u64,
}

/// Addresses that are remembered.
const ADDRESSES: usize = 1_024;
/// Late wakes with a gap at one address from which on interrupts count as off there.
const REPEATED: u64 = 2;
/// Late wakes from which on that is strong evidence, and no longer fair.
const OFTEN: u64 = 3;

/// The first wake of an address, as it was booked before it was known to come again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FirstWake {
    pub(crate) thread: usize,
    pub(crate) booking: Booking,
    /// Its gap as it is booked once the address came again, its cause as rows have it.
    pub(crate) again: WakePart,
}

#[derive(Debug, Clone, Default)]
struct Known {
    count: u64,
    first: Option<FirstWake>,
}

/// Addresses of gaps with their counts, 1024 at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressBook {
    known: BTreeMap<CodeAddress, Known>,
    /// The known addresses in the order in which they came.
    order: VecDeque<CodeAddress>,
    /// Times that each repeated address came, where that is known beforehand: then none is counted.
    recalled: Option<BTreeMap<CodeAddress, u64>>,
}

impl AddressBook {
    /// An empty book; with `recalled`, one that counts nothing and knows these.
    pub(crate) fn recalled(recalled: Option<BTreeMap<CodeAddress, u64>>) -> Self {
        Self { recalled, ..Self::default() }
    }

    /// Addresses that came twice or more.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = RepeatedAddress> + '_ {
        let counts =
            self.known.iter().map(|(&at, known)| RepeatedAddress { at, times: known.count });
        counts.filter(|repeated| repeated.times >= REPEATED)
    }

    /// Counts an address once for a late wake; returns the times that it came so far, from 1, or
    /// those that are known beforehand.
    pub(crate) fn count(&mut self, at: CodeAddress) -> u64 {
        if let Some(recalled) = &self.recalled {
            return recalled.get(&at).copied().unwrap_or(1);
        }
        if let Some(known) = self.known.get_mut(&at) {
            known.count += 1;
            return known.count;
        }
        if self.known.len() >= ADDRESSES && !self.make_way() {
            return 1;
        }
        self.known.insert(at, Known { count: 1, first: None });
        self.order.push_back(at);
        1
    }

    /// Forgets the oldest address that came once; returns false where there is none.
    fn make_way(&mut self) -> bool {
        for _ in 0..self.order.len() {
            let Some(oldest) = self.order.pop_front() else { return false };
            if self.known.get(&oldest).is_some_and(|known| known.count < REPEATED) {
                self.known.remove(&oldest);
                return true;
            }
            self.order.push_back(oldest);
        }
        false
    }

    /// Remembers how the first wake of an address was booked.
    pub(crate) fn set_first(&mut self, at: CodeAddress, first: FirstWake) {
        if let Some(known) = self.known.get_mut(&at) {
            known.first = Some(first);
        }
    }

    /// Takes out the first wake of an address; `None` where it was taken before or is not known.
    pub(crate) fn take_first(&mut self, at: CodeAddress) -> Option<FirstWake> {
        self.known.get_mut(&at)?.first.take()
    }

    /// Times that an address came; 0 where it is not known.
    pub(crate) fn times(&self, at: CodeAddress) -> u64 {
        match &self.recalled {
            Some(recalled) => recalled.get(&at).copied().unwrap_or(0),
            None => self.known.get(&at).map_or(0, |known| known.count),
        }
    }
}

/// The certainty that interrupts are off at an address that came so many times; `None` where that
/// shows nothing yet.
pub(crate) const fn repeated_certainty(times: u64) -> Option<Certainty> {
    match times {
        0..REPEATED => None,
        REPEATED..OFTEN => Some(Certainty::Fair),
        OFTEN.. => Some(Certainty::Strong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_again_outlives_any_number_of_others() {
        let mut book = AddressBook::default();
        book.count(7);
        for address in 1_000..20_000 {
            assert_eq!(book.count(address), 1);
            if address % 500 == 0 {
                book.count(7);
            }
        }
        assert_eq!(book.times(7), 1 + 38);
        assert_eq!(book.times(1_000), 0);
        assert!(book.known.len() <= ADDRESSES && book.order.len() <= ADDRESSES);
    }

    #[test]
    fn a_book_full_of_repeated_ones_takes_no_more() {
        let mut book = AddressBook::default();
        for address in 0..ADDRESSES as u64 {
            book.count(address);
            book.count(address);
        }
        assert_eq!((book.count(9_999), book.count(9_999)), (1, 1));
        assert_eq!(book.count(5), 3);
    }

    #[test]
    fn three_are_surer_than_two() {
        assert_eq!(repeated_certainty(1), None);
        assert_eq!(repeated_certainty(2), Some(Certainty::Fair));
        assert_eq!(repeated_certainty(3), Some(Certainty::Strong));
    }
}
