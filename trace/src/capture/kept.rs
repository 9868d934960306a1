//! The late wakes that a capture was cut down to: the times of which it has every event, and from
//! which lateness on wakes of a thread were kept.

use serde::{Deserialize, Serialize};

use crate::event::Tid;

/// Most windows, and most threads, of one capture: more than wakes are ever kept.
const PLACES_MAX: usize = 4_096;

/// A time of which a capture has every event, ns on its clock, both ends in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptWindow {
    /// Its begin, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub to_ns: u64,
}

/// A thread of which late wakes were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptThread {
    /// Its number.
    pub tid: Tid,
    /// The lateness beyond which its wakes were late, ns.
    pub late_over_ns: u64,
}

/// What a capture was cut down to. Events outside of its windows say what held when one began.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptWakes {
    windows: Vec<KeptWindow>,
    threads: Vec<KeptThread>,
}

impl KeptWakes {
    /// Adds a window behind the others.
    ///
    /// # Errors
    /// It is not behind them, ends before it begins, or is one too many.
    pub fn add_window(&mut self, window: KeptWindow) -> Result<(), &'static str> {
        let KeptWindow { from_ns, to_ns } = window;
        if to_ns < from_ns || self.windows.last().is_some_and(|last| last.to_ns >= from_ns) {
            return Err("windows are not in order and apart");
        }
        if self.windows.len() == PLACES_MAX {
            return Err("more windows than are ever kept");
        }
        self.windows.push(window);
        Ok(())
    }

    /// Adds a thread.
    ///
    /// # Errors
    /// It is one too many.
    pub fn add_thread(&mut self, thread: KeptThread) -> Result<(), &'static str> {
        if self.threads.len() == PLACES_MAX {
            return Err("more threads than are ever kept");
        }
        self.threads.push(thread);
        Ok(())
    }

    /// The times of which it has every event, in their order and apart; none of a capture that has
    /// all of what passed.
    #[must_use]
    pub fn windows(&self) -> &[KeptWindow] {
        &self.windows
    }

    /// The threads whose late wakes were kept.
    #[must_use]
    pub fn threads(&self) -> &[KeptThread] {
        &self.threads
    }

    /// The place of the window that has an event of this instant, or the first one behind it, for
    /// which it says what held; `None` behind the last.
    #[must_use]
    pub fn place(&self, at_ns: u64) -> Option<usize> {
        let place = self.windows.partition_point(|window| window.to_ns < at_ns);
        (place < self.windows.len()).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_in_order_and_apart() {
        let mut kept = KeptWakes::default();
        let mut add = |from_ns, to_ns| kept.add_window(KeptWindow { from_ns, to_ns });
        assert_eq!(add(1, 2), Ok(()));
        for wrong in [(3, 2), (0, 0), (2, 5)] {
            assert!(add(wrong.0, wrong.1).is_err(), "{wrong:?}");
        }
        assert_eq!(add(4, 4), Ok(()));
        let places = [0, 1, 2, 3, 4, 5].map(|at_ns| kept.place(at_ns));
        assert_eq!(places, [Some(0), Some(0), Some(0), Some(1), Some(1), None]);
        let many = (0..PLACES_MAX as u64).map(|at| KeptWindow { from_ns: at, to_ns: at });
        let mut kept = KeptWakes::default();
        assert!(many.into_iter().all(|window| kept.add_window(window).is_ok()));
        assert!(kept.add_window(KeptWindow { from_ns: u64::MAX, to_ns: u64::MAX }).is_err());
    }
}
