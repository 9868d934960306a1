//! A table of one task, and the storage of its state: the loop runs a turn on it to warm up.
//!
//! For the loop while it has time in hand. On the stack and dropped after the turn; the state of
//! the real tasks is never touched.

use super::{Counters, Cursor, Pace, Released, Storage};
use crate::earliest::{self, Entry};
use crate::ready;
use crate::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, Slot, Table};
use crate::time::{Instant, Period};

const CLASSES: &[PeriodClass] = &[PeriodClass { period: PERIOD, runs: (0, 1), moves: false }];
const RUNS: &[PhaseGroup] = &[PhaseGroup { phase_ns: 0, masks: (0, 1) }];
const MASKS: &[Mask] = &[Mask { word: 0, bits: 1 }];
const SLOTS: &[Slot] = &[Slot {
    class: 0,
    run: 0,
    deadline_ns: u64::MAX,
    budget_ns: u64::MAX,
    start_ns: u64::MAX,
    policy: OnOverrun::Skip,
}];

/// Long enough that nothing is late in it.
const PERIOD: Period = match Period::from_ns(1 << 40) {
    Some(period) => period,
    None => panic!(),
};

/// The table of one task that is due at `epoch`.
#[inline]
pub(crate) fn table(epoch: Instant) -> Table<'static> {
    Table { epoch, classes: CLASSES, runs: RUNS, masks: MASKS, slots: SLOTS }
}

/// Storage of the state of that table.
#[derive(Debug, Default)]
pub(crate) struct OneTask {
    cursors: [Cursor; 1],
    matches: [Entry; earliest::entries(1)],
    words: [u64; ready::words(1)],
    released: [Released; 1],
    paces: [Pace; 1],
    counters: [Counters; 1],
}

impl OneTask {
    #[inline]
    pub(crate) fn lend(&mut self) -> Storage<'_> {
        let Self { cursors, matches, words, released, paces, counters } = self;
        Storage { cursors, matches, words, released, paces, counters }
    }
}
