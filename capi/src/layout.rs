//! `punctual_layout`: where a task of an executive is.
//!
//! Plain numbers of `punctual::Placed`.

use std::ffi::c_int;

use punctual::Placed;

use crate::ffi;
use crate::record::{self, Record};

/// As in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Layout {
    size: usize,
    pub(crate) phase_ns: u64,
    pub(crate) rank: u32,
    pub(crate) cpu: i32,
}

const _: () = assert!(size_of::<Layout>() == 24);

// SAFETY: `repr(C)`; two words and two halves of one make 24 bytes, so that there is no padding.
unsafe impl Record for Layout {
    const LEAST: usize = 24;

    fn blank() -> Self {
        Self { size: size_of::<Self>(), phase_ns: u64::MAX, rank: u32::MAX, cpu: -1 }
    }
}

impl Layout {
    /// That of a task.
    pub(crate) fn of(placed: &Placed) -> Self {
        let ns = |phase: std::time::Duration| u64::try_from(phase.as_nanos()).ok();
        Self {
            phase_ns: placed.phase.and_then(ns).unwrap_or(u64::MAX),
            rank: placed.rank.and_then(|rank| u32::try_from(rank).ok()).unwrap_or(u32::MAX),
            cpu: placed.cpu.and_then(|cpu| i32::try_from(cpu).ok()).unwrap_or(-1),
            ..Self::blank()
        }
    }
}

/// Writes an empty one.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_layout_init(layout: *mut Layout, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(layout, size) })
}
