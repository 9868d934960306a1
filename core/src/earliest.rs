//! The earliest of a fixed set of instants: a tournament in the caller's storage.
//!
//! For the dispatcher, one instant a period class. The winner is known at once; moving one instant
//! replays its matches alone, ⌈log₂ n⌉ of them. Never grows.

use crate::ready::Visit;

/// Entries of storage for `n` instants.
///
/// # Real-time: setup only
pub const fn entries(n: usize) -> usize {
    2 * n.next_power_of_two()
}

/// A match: when the winner is due, and which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    at_ns: u64,
    index: u32,
}

/// A tournament of instants; the lower index wins a tie.
#[derive(Debug)]
pub struct Earliest<'s> {
    /// `[1]` is the winner; `[leaves ..]` are the instants; entry i played 2i against 2i + 1.
    matches: &'s mut [Entry],
    leaves: usize,
    /// The winner, at hand.
    first: Entry,
}

impl<'s> Earliest<'s> {
    /// A tournament of `n` instants, all of them never; `None` when `storage` is too small.
    ///
    /// # Real-time: setup only
    pub fn new(storage: &'s mut [Entry], n: usize) -> Option<Self> {
        let leaves = n.next_power_of_two();
        let matches = storage.get_mut(..entries(n))?;
        for (at, entry) in matches.iter_mut().enumerate() {
            let index = u32::try_from(at.saturating_sub(leaves)).ok()?;
            *entry = Entry { at_ns: u64::MAX, index };
        }
        let mut tournament = Self { matches, leaves, first: Entry::default() };
        tournament.set(0, u64::MAX);
        for index in 0..n {
            tournament.set(index, u64::MAX);
        }
        Some(tournament)
    }

    /// The tournament of `n` instants that `storage` holds, as an earlier one left it there; `None`
    /// when it is too small.
    ///
    /// # Real-time: in loop
    pub fn resume(storage: &'s mut [Entry], n: usize) -> Option<Self> {
        let leaves = n.next_power_of_two();
        let matches = storage.get_mut(..entries(n))?;
        for (index, entry) in matches[leaves..].iter_mut().enumerate() {
            entry.index = u32::try_from(index).ok()?;
            entry.at_ns = if index < n { entry.at_ns } else { u64::MAX };
        }
        for at in (1..leaves).rev() {
            matches[at] = matches[2 * at].min(matches[2 * at + 1]);
        }
        let first = matches[1];
        Some(Self { matches, leaves, first })
    }

    /// An instant.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn at(&self, index: usize) -> u64 {
        self.matches[self.leaves + index].at_ns
    }

    /// Moves an instant.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn set(&mut self, index: usize, at_ns: u64) {
        let mut at = self.leaves + index;
        self.matches[at].at_ns = at_ns;
        while at > 1 {
            at /= 2;
            self.matches[at] = self.matches[2 * at].min(self.matches[2 * at + 1]);
        }
        self.first = self.matches[1];
    }

    /// Passes the memory that it lies in to `visit`.
    ///
    /// # Real-time: in loop
    pub fn visit(&self, visit: &mut impl Visit) {
        visit.part(self.matches);
    }

    /// The first instant, `u64::MAX` for never, and whose it is.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn first(&self) -> (u64, usize) {
        (self.first.at_ns, self.first.index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn agrees_with_a_search() {
        for n in [1, 2, 3, 7, 64, 100] {
            let mut storage = vec![Entry::default(); entries(n)];
            let mut earliest = Earliest::new(&mut storage, n).expect("it fits");
            assert_eq!(earliest.first(), (u64::MAX, 0));
            let mut model: Vec<u64> = vec![u64::MAX; n];
            let mut seed = 3u64;
            for _ in 0..1_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (index, at) = ((seed >> 40) as usize % n, seed >> 58);
                earliest.set(index, at);
                model[index] = at;
                let slow = model.iter().copied().enumerate().map(|(i, at)| (at, i)).min();
                assert_eq!(Some(earliest.first()), slow);
                assert_eq!(earliest.at(index), at);
            }
            let first = earliest.first();
            // What it can work out is not believed.
            storage[..n.next_power_of_two()].fill(Entry { at_ns: 0, index: 9 });
            let resumed = Earliest::resume(&mut storage, n).expect("it fits");
            assert_eq!(resumed.first(), first);
        }
        assert!(Earliest::new(&mut [Entry::default(); 3], 2).is_none());
        assert!(Earliest::resume(&mut [Entry::default(); 3], 2).is_none());
        // What stands where no instant is never comes.
        let mut junk = [Entry { at_ns: 3, index: 77 }; 8];
        let resumed = Earliest::resume(&mut junk, 3).expect("it fits");
        assert_eq!((resumed.first(), resumed.at(3)), ((3, 0), u64::MAX));
    }
}
