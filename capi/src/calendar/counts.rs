//! `punctual_unit_counts`: what a task's units did that its page does not hold.
//!
//! Of a run that is over; plain numbers.

use std::ffi::c_int;

use punctual::core::calendar::UnitCounters;

use crate::border;
use crate::record::{self, Record};

/// As in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct UnitCounts {
    pub(super) size: usize,
    pub(super) ran: u64,
    pub(super) missed: u64,
    pub(super) spare: u64,
    pub(super) breaks: u64,
    pub(super) terminated: u64,
    pub(super) missed_frames: u64,
    pub(super) over_frame: u64,
}

const _: () = assert!(size_of::<UnitCounts>() == 64);

// SAFETY: `repr(C)` of eight words, without padding, the size first.
unsafe impl Record for UnitCounts {
    const LEAST: usize = 64;

    fn blank() -> Self {
        Self::of(&UnitCounters::default())
    }
}

impl UnitCounts {
    /// Those of a task.
    pub(super) fn of(counters: &UnitCounters) -> Self {
        Self {
            size: size_of::<Self>(),
            ran: counters.ran,
            missed: counters.missed_units,
            spare: counters.spare_units,
            breaks: counters.breaks,
            terminated: counters.terminated,
            missed_frames: counters.missed,
            over_frame: counters.over_frame,
        }
    }
}

/// Writes empty counts.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_unit_counts_init(counts: *mut UnitCounts, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    border::enter(|| unsafe { record::init(counts, size) })
}
