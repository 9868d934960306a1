//! `punctual_worker_outcome`: what became of a worker, beside what its page holds.
//!
//! Of a run that is over; plain numbers.

use std::ffi::c_int;

use punctual::os::scheduler::SchedPolicy;
use punctual::workers;

use crate::border;
use crate::record::{self, Record};

/// As in the header.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Outcome {
    size: usize,
    overran: u64,
    demoted: u64,
    restored: u64,
    priority: i32,
    reserved: u32,
}

const _: () = assert!(size_of::<Outcome>() == 40);

// SAFETY: `repr(C)`; four words and two halves of one make 40 bytes, so that there is no padding.
unsafe impl Record for Outcome {
    const LEAST: usize = 40;

    fn blank() -> Self {
        Self { size: size_of::<Self>(), ..Self::default() }
    }
}

impl Outcome {
    /// That of a worker.
    pub(super) fn of(outcome: &workers::Outcome) -> Self {
        Self {
            overran: outcome.overran,
            demoted: outcome.demoted.0,
            restored: outcome.demoted.1,
            priority: match outcome.policy {
                SchedPolicy::Fifo(priority) => i32::from(priority),
                _ => 0,
            },
            ..Self::blank()
        }
    }
}

/// Writes an empty one.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_worker_outcome_init(outcome: *mut Outcome, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    border::enter(|| unsafe { record::init(outcome, size) })
}
