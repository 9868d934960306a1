//! The tasks that are or were there, each by its number.
//!
//! A number is given once. Of those that were removed the last [`KEPT`] stay with what they
//! counted, so that an executive whose tasks come and go for months needs no more memory than one
//! of a minute. For setup and readers: no loop comes here.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Index, IndexMut};

use crate::counting::{Stats as Memory, Words};
use crate::summary::Stats;

/// Removed tasks that are kept: 34 KiB each.
pub(super) const KEPT: usize = 64;

/// A task that is or was there.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// None for a process whose memory is not there yet.
    pub(super) stats: Option<Memory>,
    pub(super) removed: bool,
    /// Of a calendar's task: its units' names, when they are ready in the frame, ns, and the page
    /// of each; that of an only one is the task's.
    pub(super) units: Vec<(String, u64, Words)>,
}

impl Entry {
    /// A task of this name, without statistics yet.
    pub(super) fn new(name: String) -> Self {
        Self { name, stats: None, removed: false, units: Vec::new() }
    }

    pub(super) fn stats(&self) -> Stats {
        let view = self.stats.as_ref().and_then(Memory::view);
        Stats::of(&self.name, view.as_ref())
    }
}

/// All tasks that are known.
#[derive(Debug)]
pub(super) struct Entries {
    by_number: BTreeMap<usize, Entry>,
    next: usize,
    removed: VecDeque<usize>,
}

impl Entries {
    /// Those that an executive begins with, numbered in their order.
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let next = entries.len();
        let by_number = entries.into_iter().enumerate().collect();
        Self { by_number, next, removed: VecDeque::new() }
    }

    /// One more, and its number.
    pub(super) fn push(&mut self, entry: Entry) -> usize {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, entry);
        number
    }

    /// The number that the next one gets.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Takes back one that never ran.
    pub(super) fn withdraw(&mut self, number: usize) {
        self.by_number.remove(&number);
    }

    /// Marks one as removed, and forgets the one that was removed [`KEPT`] before it.
    pub(super) fn remove(&mut self, number: usize) {
        self[number].removed = true;
        self.removed.push_back(number);
        if self.removed.len() > KEPT
            && let Some(oldest) = self.removed.pop_front()
        {
            self.by_number.remove(&oldest);
        }
    }

    /// The one of this number, unless it is forgotten.
    pub(super) fn get(&self, number: usize) -> Option<&Entry> {
        self.by_number.get(&number)
    }

    /// All, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.by_number.values()
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    /// # Panics
    /// Where there is none of this number.
    fn index(&self, number: usize) -> &Entry {
        &self.by_number[&number]
    }
}

impl IndexMut<usize> for Entries {
    fn index_mut(&mut self, number: usize) -> &mut Entry {
        self.by_number.get_mut(&number).expect("the number of a task that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_were_removed_stay_and_no_number_comes_twice() {
        let mut entries = Entries::new(vec![Entry::new("a".to_owned())]);
        for round in 0..3 * KEPT {
            let number = entries.push(Entry::new(format!("{round}")));
            assert_eq!(number, round + 1);
            entries.remove(number);
            assert!(entries.get(number).is_some_and(|entry| entry.removed));
        }
        assert_eq!(entries.iter().count(), 1 + KEPT);
        assert!(entries.get(0).is_some() && entries.get(1).is_none());
        assert_eq!(entries.next(), 3 * KEPT + 1);
        let never = entries.push(Entry::new("never ran".to_owned()));
        entries.withdraw(never);
        assert!(entries.get(never).is_none());
    }
}
