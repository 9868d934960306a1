//! The book of followed threads: each at its place, found by its number.

use std::ops::{Deref, DerefMut};

use punctual_trace::event::{TaskName, Tid};

use crate::config::{BlameConfig, FollowedThreads};
use crate::thread::Thread;

/// Words of the sieve, 64 bits each.
const SIEVE: usize = 16;

/// The threads that are followed, at most as many as the configuration has room for. One that has
/// ended keeps its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct FollowedBook {
    threads: Vec<Thread>,
    /// Numbers of threads with their place, sorted.
    places: Vec<(Tid, usize)>,
    /// A bit for the last digits of each of those numbers: most events concern none of them.
    sieve: [u64; SIEVE],
    unfollowed: u64,
}

impl FollowedBook {
    /// The place of a thread that is followed already.
    // For each event.
    #[inline]
    pub(crate) fn place(&self, tid: Tid) -> Option<usize> {
        let bit = tid as usize % (SIEVE * 64);
        if self.sieve[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let found = self.places.binary_search_by_key(&tid, |(known, _)| *known).ok()?;
        Some(self.places[found].1)
    }

    /// The place of a thread that is followed, from now on where it is one of those.
    pub(crate) fn follow(
        &mut self,
        task: TaskName,
        at_ns: u64,
        config: &BlameConfig,
    ) -> Option<usize> {
        let behind = match self.places.binary_search_by_key(&task.tid, |(known, _)| *known) {
            Ok(found) => {
                let place = self.places[found].1;
                self.threads[place].task = task;
                return Some(place);
            }
            Err(behind) => behind,
        };
        if task.tid == 0 || !config.follow.includes(task) || self.is_successor(task, config) {
            return None;
        }
        let bounds = config.bounds;
        if self.threads.len() >= bounds.threads {
            self.unfollowed += 1;
            return None;
        }
        let place = self.threads.len();
        let mut thread = Thread::new(task, at_ns, bounds.pieces, bounds.causes);
        if config.is_cut {
            thread.learn_no_margin();
        }
        self.threads.push(thread);
        self.places.insert(behind, (task.tid, place));
        let bit = task.tid as usize % (SIEVE * 64);
        self.sieve[bit / 64] |= 1 << (bit % 64);
        Some(place)
    }

    /// Returns true where the thread of this number was followed by number and has ended: another
    /// has the number now.
    fn is_successor(&self, task: TaskName, config: &BlameConfig) -> bool {
        let is_by_number = matches!(config.follow, FollowedThreads::Threads(_));
        is_by_number && self.threads.iter().any(|thread| thread.task.tid == task.tid)
    }

    /// The thread of this number has ended: whoever has the number from now on is another.
    pub(crate) fn end(&mut self, tid: Tid) {
        self.places.retain(|(known, _)| *known != tid);
    }

    /// Times that a thread should have been followed and there was no room.
    pub(crate) const fn unfollowed(&self) -> u64 {
        self.unfollowed
    }
}

impl Deref for FollowedBook {
    type Target = [Thread];

    fn deref(&self) -> &[Thread] {
        &self.threads
    }
}

impl DerefMut for FollowedBook {
    fn deref_mut(&mut self) -> &mut [Thread] {
        &mut self.threads
    }
}
