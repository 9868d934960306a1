//! A list that keeps its first and last entries, and counts the dropped ones between them.
//!
//! For rare events over months. Never longer than its limit.

use serde::{Deserialize, Serialize};

/// A list of at most `MAX` entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ends<T, const MAX: usize> {
    listed: Vec<T>,
    unlisted: u64,
}

impl<T, const MAX: usize> Default for Ends<T, MAX> {
    fn default() -> Self {
        Self { listed: Vec::new(), unlisted: 0 }
    }
}

impl<T, const MAX: usize> Ends<T, MAX> {
    /// Adds the next entry; when the list is full, drops the one in the middle.
    pub fn push(&mut self, entry: T) {
        if self.listed.len() >= MAX {
            self.listed.remove(MAX / 2);
            self.unlisted += 1;
        }
        self.listed.push(entry);
    }

    /// The entries that are kept, oldest first.
    pub fn listed(&self) -> &[T] {
        &self.listed
    }

    /// How many entries were dropped.
    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.listed.last_mut()
    }

    pub(super) fn is_sound(&self, each: impl Fn(&T) -> bool) -> bool {
        self.listed.len() <= MAX && self.unlisted <= 1 << 56 && self.listed.iter().all(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_stay() {
        let mut ends = Ends::<u32, 4>::default();
        (0..10).for_each(|n| ends.push(n));
        assert_eq!((ends.listed(), ends.unlisted()), (&[0, 1, 8, 9][..], 6));
    }
}
