//! A table of one task, to rehearse a turn of the loop on.
//!
//! For the loop while it has time in hand. On the stack, done with when the turn is over; what the
//! real tasks are about is never touched.

use super::{Counters, Cursor, Pace, Released, State, Storage};
use crate::earliest::{self, Entry};
use crate::ready;
use crate::table::{Class, Mask, OnOverrun, Run, Slot, Table};
use crate::time::{Instant, Period};

const CLASSES: &[Class] = &[Class { period: PERIOD, runs: (0, 1), moves: false }];
const RUNS: &[Run] = &[Run { phase_ns: 0, masks: (0, 1) }];
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

/// Lends a table whose task is due at `now`, and its state.
///
/// # Real-time: in loop
#[inline]
pub fn rehearse(now: Instant, turn: impl FnOnce(&Table<'_>, &mut State<'_>)) {
    let epoch = now;
    let table = Table { epoch, classes: CLASSES, runs: RUNS, masks: MASKS, slots: SLOTS };
    let storage = Storage {
        cursors: &mut [Cursor::default()],
        matches: &mut [Entry::default(); earliest::entries(1)],
        words: &mut [0; ready::words(1)],
        released: &mut [Released::default()],
        paces: &mut [Pace::default()],
        counters: &mut [Counters::default()],
    };
    if let Some(mut state) = State::begin(&table, storage, now) {
        turn(&table, &mut state);
    }
}
